# Built-in functions and exceptions that the engine lacks, or has with fewer parameters.

import builtins

from _format import ascii_, format_


def zip_(*iterables, strict=False):
    if not strict:
        return zip(*iterables)
    return _zip_strict(iterables)


def _zip_strict(iterables):
    sources = [iter(iterable) for iterable in iterables]
    if not sources:
        return
    while True:
        row = []
        for index, source in enumerate(sources):
            try:
                row.append(next(source))
            except StopIteration:
                if index:
                    raise ValueError(_uneven(index, "shorter"))
                for later in range(1, len(sources)):
                    try:
                        next(sources[later])
                    except StopIteration:
                        continue
                    raise ValueError(_uneven(later, "longer"))
                return
        yield tuple(row)


def _uneven(index, word):
    others = "argument 1" if index == 1 else "arguments 1-{}".format(index)
    return "zip() argument {} is {} than {}".format(index + 1, word, others)


def sum_(iterable, start=0):
    return sum(iterable, start)


class _Until:
    def __init__(self, function, sentinel):
        self._function = function
        self._sentinel = sentinel
        self._over = False

    def __iter__(self):
        return self

    def __next__(self):
        if not self._over:
            value = self._function()
            if value != self._sentinel:
                return value
            self._over = True
        raise StopIteration


def iter_(function, sentinel):
    return _Until(function, sentinel)


def pow_(base, exp, mod=None):
    if mod is None:
        return pow(base, exp)
    if exp < 0:
        base, exp = _inverse(base, mod), -exp
    value = pow(base, exp, abs(mod)) % abs(mod)
    return value + mod if mod < 0 and value else value


def _inverse(value, mod):
    one, other, a, b = 1, 0, value % mod, mod
    while b:
        quotient = a // b
        a, b = b, a - quotient * b
        one, other = other, one - quotient * other
    if a != 1:
        raise ValueError("base is not invertible for the given modulus")
    return one % mod


def round_(number, ndigits=None):
    own = getattr(number, "__round__", None)
    if own is not None:
        return own(ndigits)
    return round(number) if ndigits is None else round(number, ndigits)


def print_(*values, sep=" ", end="\n", file=None, flush=False):
    sep = " " if sep is None else sep
    end = "\n" if end is None else end
    if file is None:
        print(*values, sep=sep, end=end)
    else:
        file.write(sep.join([str(value) for value in values]) + end)


def int_(value=0, base=10):
    return int(value, base) if isinstance(value, (str, bytes, bytearray)) else int(value)


def str_(value=b"", encoding="utf-8", errors="strict"):
    from _text import decode

    return decode(bytes(value), encoding, errors)


def bytes_(source, encoding, errors="strict"):
    from _text import encode

    return encode(source, encoding, errors)


def dict_(source, **named):
    """A dict of any mapping: the engine's own only knows dicts and pairs."""
    if type(source) is not dict and hasattr(source, "keys"):
        source = [(key, source[key]) for key in source.keys()]
    made = dict(source)
    if named:
        made.update(named)
    return made


def enumerate_(iterable, start=0):
    return enumerate(iterable, start)


def reversed_(sequence):
    own = getattr(sequence, "__reversed__", None)
    if own is not None:
        return own()
    if isinstance(sequence, dict) or type(sequence).__name__ == "dict_view":
        sequence = list(sequence)
    return reversed(sequence)


class _Slicer:
    def __getitem__(self, cut):
        return cut


def slice_(*parts):
    slicer = _Slicer()
    if len(parts) == 1:
        return slicer[: parts[0]]
    if len(parts) == 2:
        return slicer[parts[0] : parts[1]]
    return slicer[parts[0] : parts[1] : parts[2]]


def type_(name, bases, namespace, **keywords):
    from _rt import finish

    return finish(tuple(namespace), (), **keywords)(type(name, bases or (object,), namespace))


def vars_(value):
    if isinstance(value, type) or hasattr(value, "__dict__"):
        return value.__dict__
    raise TypeError("vars() argument must have __dict__ attribute")


def aiter_(iterable):
    return iterable.__aiter__()


async def anext_(iterator, *default):
    try:
        return await iterator.__anext__()
    except StopAsyncIteration:
        if default:
            return default[0]
        raise


class FloatingPointError(ArithmeticError):
    pass


class BufferError(Exception):
    pass


class ReferenceError(Exception):
    pass


class ConnectionError(OSError):
    pass


class PermissionError(OSError):
    pass


class FileNotFoundError(OSError):
    pass


class FileExistsError(OSError):
    pass


class TimeoutError(OSError):
    pass


class Warning(Exception):
    pass


class DeprecationWarning(Warning):
    pass


class UserWarning(Warning):
    pass


class RuntimeWarning(Warning):
    pass


class FutureWarning(Warning):
    pass


def install():
    from _groups import BaseExceptionGroup, ExceptionGroup

    made = {
        "format": format_,
        "ascii": ascii_,
        "vars": vars_,
        "aiter": aiter_,
        "anext": anext_,
        "BaseExceptionGroup": BaseExceptionGroup,
        "ExceptionGroup": ExceptionGroup,
        # The engine raises these under their parents' names.
        "RecursionError": RuntimeError,
        "UnicodeDecodeError": UnicodeError,
        "UnicodeEncodeError": UnicodeError,
        "ModuleNotFoundError": ImportError,
        "UnboundLocalError": NameError,
        "EnvironmentError": OSError,
        "IOError": OSError,
    }
    own = (
        FloatingPointError, BufferError, ReferenceError, ConnectionError, PermissionError, FileNotFoundError,
        FileExistsError, TimeoutError, Warning, DeprecationWarning, UserWarning, RuntimeWarning, FutureWarning,
    )  # fmt: skip
    for cls in own:
        made[cls.__name__] = cls
    for name, value in made.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)

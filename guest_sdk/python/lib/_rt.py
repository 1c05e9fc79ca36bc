# What lowered modules call for: the parts of Python's meaning that depend on values.
# `import _rt` is written by the host's lowering; an author has no reason to.

import sys

from _builtins import (
    bytes_,
    dict_,
    enumerate_,
    int_,
    iter_,
    pow_,
    print_,
    reversed_,
    round_,
    slice_,
    str_,
    sum_,
    type_,
    zip_,
)
from _format import ascii_, format_
from _gaps import attr
from _groups import Groups
from _super import super_attr

MISSING = object()
END = None
NEVER = False

# Whatever the author has made of the name.
classmethod = classmethod

# Objects that stand for a class which is finished: see `enum`.
_stand_ins = {}


def stand_in(cls, made):
    _stand_ins[cls] = made


def mixin(kind):
    """What stands for `str` or `int` among the bases of an enumeration."""
    import enum

    return enum.MixedStr if kind is str else enum.MixedInt


def type_of(value):
    """`type(value)`."""
    cls = type(value)
    return _stand_ins[cls] if cls in _stand_ins else cls


class classmethod_:
    """A class method of an enumeration: its class is what the enumeration's name stands for."""

    def __init__(self, function):
        self._function = function

    def bound(self, cls):
        return lambda *args, **keywords: self._function(cls, *args, **keywords)

    def __get__(self, value, owner):
        return self.bound(getattr(owner, "_facade_", owner))

_NoneType = type(None)


# Displays.


def list_of(*values):
    return list(values)


def tuple_of(*values):
    return values


def set_of(*values):
    return set(values)


def dict_of(*parts):
    merged = {}
    for part in parts:
        if not isinstance(part, dict):
            part = {key: part[key] for key in part.keys()}
        merged.update(part)
    return merged


# Slices with a step, and of what is no list: the engine's lists can be read by them, not changed.


def set_cut(target, start, stop, step, values):
    cut = slice_(start, stop, step)
    if not isinstance(target, list):
        target[cut] = values
    elif step in (None, 1):
        target[cut] = list(values)
    else:
        places = range(*cut.indices(len(target)))
        values = list(values)
        if len(values) != len(places):
            text = "attempt to assign sequence of size {} to extended slice of size {}"
            raise ValueError(text.format(len(values), len(places)))
        for place, value in zip(places, values):
            target[place] = value


def del_cut(target, start, stop, step):
    cut = slice_(start, stop, step)
    if not isinstance(target, list):
        del target[cut]
    else:
        for place in sorted(range(*cut.indices(len(target))), reverse=True):
            target.pop(place)


def of_view(value):
    """A set instead of a dict's keys or items, for operations of sets."""
    return set(value) if type(value).__name__ == "dict_view" else value


# Patterns.

_TEXTS = (str, bytes, bytearray)
_OWN_VALUE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def size(value):
    """The length of what a sequence pattern may match; -1 for all else."""
    if isinstance(value, (list, tuple)):
        return len(value)
    if isinstance(value, _TEXTS):
        return -1
    if isinstance(value, (range, memoryview)) or type(value).__name__ in ("deque", "array"):
        return len(value)
    return len(value) if getattr(value, "_is_sequence_", False) else -1


def middle(value, before, after):
    """What a star takes."""
    end = len(value) - after
    return [value[index] for index in range(before, end)]


def is_mapping(value):
    return isinstance(value, dict) or getattr(value, "_is_mapping_", False)


def rest(value, taken):
    return {key: value[key] for key in value.keys() if key not in taken}


def positional(value, cls, index, count):
    """The part of a value that a class pattern's positional part looks at."""
    names = getattr(cls, "__match_args__", None)
    if names is None:
        if cls in _OWN_VALUE or issubclass(cls, _OWN_VALUE) and not hasattr(cls, "_fields"):
            if count > 1:
                raise TypeError("{}() accepts 1 positional sub-pattern ({} given)".format(cls.__name__, count))
            return value
        names = getattr(cls, "_fields", ())
    if count > len(names):
        text = "{}() accepts {} positional sub-pattern{} ({} given)"
        raise TypeError(text.format(cls.__name__, len(names), "" if len(names) == 1 else "s", count))
    return getattr(value, names[index], MISSING)


# Types.


def isinstance_(value, cls):
    if isinstance(cls, tuple):
        for one in cls:
            if isinstance_(value, one):
                return True
        return False
    if cls is int:
        return isinstance(value, (int, bool))
    if cls is type:
        return isinstance(value, type) or hasattr(value, "_real_")
    if not isinstance(cls, type):
        cls = getattr(cls, "_real_", cls)
    check = _check_of(cls)
    return isinstance(value, cls) if check is None else isinstance(value, cls) or check(value)


def issubclass_(cls, parent):
    if isinstance(parent, tuple):
        for one in parent:
            if issubclass_(cls, one):
                return True
        return False
    cls, parent = getattr(cls, "_real_", cls), getattr(parent, "_real_", parent)
    return issubclass(cls, parent) or (cls is bool and parent is int)


def _check_of(cls):
    # Its own, not its parents': what is a Mapping is not for that an instance of each of its subclasses.
    try:
        return cls.__dict__.get("_check_")
    except AttributeError:
        return None


def _is_type(value):
    return value is None or isinstance(value, (type, tuple, TypeVariable))


def base_init(parent, cls, value, *args, **keywords):
    """`Exception.__init__(self, …)`: the engine's built-in classes have no such attribute."""
    own = cls.__dict__.get("__init__") if hasattr(cls, "__dict__") else None
    if own is None and cls is not object:
        return parent.__init__(*args, **keywords)
    return None if own is None else own(value, *args, **keywords)


def union(one, other):
    """`A | B`: of types, what `isinstance` takes."""
    if not (_is_type(one) and _is_type(other)) or (one is None and other is None):
        return one | other
    return _alternatives(one) + _alternatives(other)


def _alternatives(value):
    if isinstance(value, tuple):
        return value
    return (_NoneType if value is None else value,)


def item(value, key):
    """`value[key]`, where the value may be a generic class."""
    if type(value) is not type:
        return value[key]
    get = getattr(value, "__class_getitem__", None)
    return value if get is None else get(key)


def base(value, key):
    """A base class with parameters, which are only looked at by a class that wants to know them."""
    if type(value) is type and not hasattr(value, "__class_getitem__"):
        return value
    return item(value, key())


class TypeVariable:
    """What `TypeVar`, `def f[T]` and `type X = …` make: a name."""

    def __init__(self, name):
        self.__name__ = name

    def __repr__(self):
        return self.__name__


def type_variable(name):
    return TypeVariable(name)


# Classes.


def finish(names, annotations=(), **keywords):
    """Does what CPython does when a class's body is done."""

    def done(cls):
        if annotations:
            cls.__annotations__ = dict(annotations)
        own = cls.__dict__
        if "__repr__" in own and "__str__" not in own and issubclass(cls, _OWN_VALUE):
            # The engine would show the built-in value inside.
            cls.__str__ = own["__repr__"]
        for name in names:
            value = own.get(name)
            tell = getattr(type(value), "__set_name__", None)
            if tell is not None:
                tell(value, cls, name)
        hook = getattr(cls, "_finish_class_", None)
        if hook is not None:
            made = hook(cls, names, annotations, keywords)
            if made is not None:
                return made
        started = getattr(super(cls, cls), "__init_subclass__", None)
        if started is not None:
            started(**keywords)
        elif keywords and "abstract" not in keywords:
            raise TypeError("{}.__init_subclass__() takes no keyword arguments".format(cls.__name__))
        return cls

    return done


def registering(function, annotation):
    """`@function.register` without a type: of `singledispatch`, the one that the annotation names."""
    if getattr(function, "_is_dispatcher_", False):
        return function.register(annotation())
    return function.register


# Exceptions.


def caused(error, cause):
    """`raise error from cause`."""
    if isinstance(error, type):
        error = error()
    if isinstance(cause, type):
        cause = cause()
    if cause is not None and not isinstance(cause, BaseException):
        raise TypeError("exception causes must derive from BaseException")
    error.__cause__ = cause
    error.__suppress_context__ = True
    return error


def asserted(text, left, right):
    return "{} ({} and {})".format(text, _short(left), _short(right))


def _short(value):
    shown = repr(value)
    return shown if len(shown) <= 200 else shown[:200] + "…"


# Asynchronous generators.


class Yielded:
    """What an asynchronous generator yields: what it awaits comes out of its body as it is."""

    def __init__(self, value):
        self.value = value


class AsyncGenerator:
    """An asynchronous generator, on top of a body that yields and awaits alike."""

    def __init__(self, body):
        self._body = body
        self._begun = False

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._step(None, None)

    def asend(self, value):
        return self._step(value, None)

    def athrow(self, error, value=None, traceback=None):
        return self._step(None, error() if isinstance(error, type) else error)

    async def aclose(self):
        if not self._begun:
            self._body.close()
            return
        try:
            await self._step(None, GeneratorExit())
        except (GeneratorExit, StopAsyncIteration):
            return
        raise RuntimeError("async generator ignored GeneratorExit")

    def _step(self, value, error):
        body = self._body
        self._begun = True
        try:
            got = body.send(value) if error is None else body.throw(error)
            while type(got) is not Yielded:
                try:
                    sent = yield got
                except BaseException as thrown:
                    got = body.throw(thrown)
                else:
                    got = body.send(sent)
        except StopIteration:
            raise StopAsyncIteration
        return got.value


def async_generator(function):
    def make(*args, **keywords):
        return AsyncGenerator(function(*args, **keywords))

    return make


def install():
    """Give the engine's built-in types and functions what they lack. Called once, before any agent."""
    import _builtins
    import _gaps

    _builtins.install()
    _gaps.install()

# Attributes that the engine's built-in types lack, and methods that take more than the engine's do.

import _numbers
import _text
from _format import format_text


def _format(*args, **names):
    # A field may have any name, so no parameter has one.
    return format_text(args[0], args[1:], names)


def _many(step):
    def method(first, *others):
        result = first.copy()
        for other in others:
            result = step(result, other)
        return result

    return method


def _many_here(name):
    def method(first, *others):
        for other in others:
            getattr(first, name)(other)

    return method


def _update(mapping, *others, **named):
    for other in others:
        if type(other) is not dict and hasattr(other, "keys"):
            other = [(key, other[key]) for key in other.keys()]
        mapping.update(other)
    if named:
        mapping.update(named)


_UNION = _many(lambda one, other: one | set(other))
_INTERSECTION = _many(lambda one, other: one & set(other))
_DIFFERENCE = _many(lambda one, other: one - set(other))

# Methods that the engine has, in shapes that it has not: the lowering asks for these by name.
_FULLER = {
    "format": ((str, _format),),
    "center": ((str, _text.center), (bytes, _text.center)),
    "split": ((str, _text.split), (bytes, _text.split)),
    "rsplit": ((str, _text.rsplit), (bytes, _text.rsplit)),
    "splitlines": ((str, _text.splitlines),),
    "replace": ((str, _text.replace),),
    "encode": ((str, _text.encode),),
    "decode": ((bytes, _text.decode), (bytearray, _text.decode)),
    "hex": ((bytes, _text.hex_bytes),),
    "to_bytes": ((int, _numbers.to_bytes),),
    "from_bytes": ((int, _numbers.from_bytes),),
    "union": ((set, _UNION), (frozenset, _UNION)),
    "intersection": ((set, _INTERSECTION), (frozenset, _INTERSECTION)),
    "difference": ((set, _DIFFERENCE), (frozenset, _DIFFERENCE)),
    "update": ((set, _many_here("update")), (dict, _update)),
    "intersection_update": ((set, _many_here("intersection_update")),),
    "difference_update": ((set, _many_here("difference_update")),),
}


def attr(value, name, *default):
    """`value.name`, with what the engine's own method of that name can't do."""
    for kind, function in _FULLER.get(name, ()):
        if value is kind:
            return function
        if isinstance(value, kind) and not _overrides(type(value), kind, name):
            return lambda *args, **keywords: function(value, *args, **keywords)
    return getattr(value, name, *default)


def _overrides(cls, kind, name):
    """Whether a class of the author's, below the built-in one, has its own method of this name."""
    if cls is kind or cls is object:
        return False
    return name in cls.__dict__ or any([_overrides(base, kind, name) for base in cls.__bases__])


def _notes(error):
    # Only where a note was added is there such an attribute.
    raise AttributeError("'{}' object has no attribute '__notes__'".format(type(error).__name__))


def _add_note(error, note):
    if not isinstance(note, str):
        raise TypeError("note must be a str, not '{}'".format(type(note).__name__))
    notes = getattr(error, "__notes__", None)
    if notes is None:
        error.__notes__ = [note]
    else:
        notes.append(note)


def _mro(cls):
    order = []
    ahead = [cls]
    while ahead:
        one = ahead.pop(0)
        if one not in order and one is not object:
            order.append(one)
            ahead = list(one.__bases__) + ahead
    return order + [object]


def _function():
    pass


def install():
    import _host

    extend = getattr(_host, "extend", None)
    if extend is None:
        return
    extend(str, _text.STR)
    extend(bytes, _text.BYTES)
    extend(int, _numbers.INT)
    extend(float, _numbers.FLOAT)
    extend(complex, _numbers.COMPLEX)
    exception = {
        "add_note": _add_note,
        "with_traceback": lambda error, traceback: error,
        "__cause__": property(lambda error: None),
        "__context__": property(lambda error: None),
        "__traceback__": property(lambda error: None),
        "__suppress_context__": property(lambda error: False),
    }
    extend(BaseException, exception)
    nameless = {
        "__qualname__": property(lambda function: function.__name__),
        "__doc__": property(lambda function: None),
        "__module__": property(lambda function: None),
        "__defaults__": property(lambda function: None),
        "__annotations__": property(lambda function: {}),
    }
    # Functions, closures, generator functions and bound methods are types of their own.
    kinds = {type(_function), type(_notes), type([].append), type(attr), type(lambda: (yield))}

    class Bound:
        def method(self):
            return (lambda: self) if self else None

    kinds.add(type(Bound().method))
    kinds.add(type(Bound().method()) if Bound().method() else type(_function))
    for kind in kinds:
        extend(kind, nameless)
    extend(
        type,
        {
            "mro": lambda cls: _mro(cls),
            "__mro__": property(lambda cls: tuple(_mro(cls))),
            "__doc__": property(lambda cls: None),
            "__annotations__": property(lambda cls: {}),
            "__module__": property(lambda cls: "builtins"),
        },
    )

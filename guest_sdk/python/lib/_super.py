# `super().__repr__()` and its like: what `object` and the built-in types have in CPython under these names.


def super_attr(parent, value, name):
    """`parent.name`, where `parent` is `super()` in a method of `value` (or, in a class method, of a class)."""
    found = getattr(parent, name, None)
    if found is not None:
        return found
    if name == "__init_subclass__":
        return _init_subclass
    make = _of_container(parent, value, name) or _OBJECT.get(name)
    if make is None:
        raise AttributeError("'super' object has no attribute '{}'".format(name))
    return lambda *args: make(value, *args)


def _init_subclass(**keywords):
    if keywords:
        raise TypeError("__init_subclass__() takes no keyword arguments")


def _exception_text(value):
    args = value.args
    return "" if not args else str(args[0]) if len(args) == 1 else str(args)


def _repr(value):
    if isinstance(value, BaseException):
        shown = ", ".join([repr(arg) for arg in value.args])
        return "{}({})".format(type(value).__name__, shown)
    return "<{} object at {}>".format(type(value).__name__, hex(id(value)))


def _str(value):
    return _exception_text(value) if isinstance(value, BaseException) else repr(value)


def _format(value, spec):
    if spec:
        raise TypeError("unsupported format string passed to {}.__format__".format(type(value).__name__))
    return str(value)


_OBJECT = {
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
    "__eq__": lambda value, other: True if value is other else NotImplemented,
    "__ne__": lambda value, other: False if value is other else NotImplemented,
    "__lt__": lambda value, other: NotImplemented,
    "__le__": lambda value, other: NotImplemented,
    "__gt__": lambda value, other: NotImplemented,
    "__ge__": lambda value, other: NotImplemented,
    "__hash__": lambda value: id(value),
    "__set_name__": lambda value, owner, name: None,
    "__dir__": lambda value: dir(value),
    "__getattribute__": lambda value, name: getattr(value, name),
}


def _of_container(parent, value, name):
    if isinstance(value, type):
        return None
    if isinstance(value, list):
        change = _LIST_CHANGES.get(name)
        if change is not None:
            return lambda _, *args: change(parent, *args)
        plain = parent.copy
    elif isinstance(value, dict):
        plain = lambda: dict(parent.items())
    elif isinstance(value, set):
        plain = parent.copy
    elif isinstance(value, str):
        plain = lambda: str(parent.encode(), "utf-8")
    else:
        return None
    read = _READS.get(name)
    return None if read is None else lambda _, *args: read(plain(), *args)


def _set(parent, index, value):
    parent.pop(index)
    parent.insert(index, value) if index != -1 else parent.append(value)


_LIST_CHANGES = {"__setitem__": _set, "__delitem__": lambda parent, index: parent.pop(index)}

_READS = {
    "__contains__": lambda plain, value: value in plain,
    "__len__": lambda plain: len(plain),
    "__iter__": lambda plain: iter(plain),
    "__getitem__": lambda plain, key: plain[key],
    "__repr__": lambda plain: repr(plain),
    "__str__": lambda plain: str(plain),
    "__eq__": lambda plain, other: plain == other,
    "__ne__": lambda plain, other: plain != other,
    "__lt__": lambda plain, other: plain < other,
    "__gt__": lambda plain, other: plain > other,
    "__add__": lambda plain, other: plain + other,
    "__hash__": lambda plain: hash(plain),
    "__reversed__": lambda plain: reversed(plain),
}

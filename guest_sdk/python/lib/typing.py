# Names for annotations, which are text here and checked by nobody; and the few that do something when they are called.

from _rt import TypeVariable

TYPE_CHECKING = False


class _Special:
    """`Optional`, `Literal` and the like: may be subscripted, and means nothing at run time."""

    def __init__(self, name):
        self._name = name

    def __getitem__(self, key):
        return self

    def __call__(self, *args, **keywords):
        raise TypeError("Cannot instantiate typing.{}".format(self._name))

    def __repr__(self):
        return "typing." + self._name

    def __or__(self, other):
        return self

    __ror__ = __or__


Any = _Special("Any")
Optional = _Special("Optional")
Union = _Special("Union")
Literal = _Special("Literal")
Final = _Special("Final")
ClassVar = _Special("ClassVar")
Annotated = _Special("Annotated")
Callable = _Special("Callable")
Concatenate = _Special("Concatenate")
TypeGuard = _Special("TypeGuard")
TypeIs = _Special("TypeIs")
TypeAlias = _Special("TypeAlias")
Self = _Special("Self")
Never = _Special("Never")
NoReturn = _Special("NoReturn")
LiteralString = _Special("LiteralString")
Required = _Special("Required")
NotRequired = _Special("NotRequired")
ReadOnly = _Special("ReadOnly")
Unpack = _Special("Unpack")
Type = _Special("Type")

List, Dict, Set, FrozenSet, Tuple = list, dict, set, frozenset, tuple
Text, AnyStr = str, str

_FROM_ABC = (
    "Awaitable", "Coroutine", "AsyncIterable", "AsyncIterator", "AsyncGenerator", "Iterable", "Iterator", "Generator",
    "Reversible", "Container", "Collection", "Sequence", "MutableSequence", "Mapping", "MutableMapping", "Hashable",
    "Sized", "AbstractSet", "MutableSet", "KeysView", "ValuesView", "ItemsView",
)  # fmt: skip
_FROM_COLLECTIONS = {
    "DefaultDict": "defaultdict",
    "OrderedDict": "OrderedDict",
    "Counter": "Counter",
    "ChainMap": "ChainMap",
    "Deque": "deque",
}


def __getattr__(name):
    # Loaded when they are asked for: most of these names only stand in annotations.
    if name in _FROM_ABC:
        import collections.abc as module

        return getattr(module, {"AbstractSet": "Set"}.get(name, name))
    if name in _FROM_COLLECTIONS:
        import collections as module

        return getattr(module, _FROM_COLLECTIONS[name])
    if name in ("Pattern", "Match"):
        import re

        return getattr(re, name)
    raise AttributeError(name)


def TypeVar(name, *constraints, **keywords):
    return TypeVariable(name)


ParamSpec = TypeVarTuple = TypeVar


def NewType(name, kind):
    return lambda value: value


class Generic:
    @classmethod
    def __class_getitem__(cls, key):
        return cls


class Protocol(Generic):
    @staticmethod
    def _finish_class_(cls, names, annotations, keywords):
        import abc

        abc.ABC._finish_class_(cls, names, annotations, keywords)
        if Protocol in cls.__bases__:
            wanted = [name for name in cls.__dict__ if name[:1] != "_" or name in _CHECKED]
            wanted += [name for name, _ in annotations]
            cls._check_ = lambda value: all([hasattr(value, name) for name in wanted])


_CHECKED = ("__call__", "__len__", "__iter__", "__getitem__", "__contains__", "__enter__", "__exit__")


class TypedDict:
    """Its classes make plain dicts."""

    def __new__(cls, *args, **keywords):
        return dict(*args, **keywords)

    @staticmethod
    def _finish_class_(cls, names, annotations, keywords):
        keywords.clear()
        cls.__total__ = True


class NamedTuple:
    @staticmethod
    def _finish_class_(cls, names, annotations, keywords):
        from collections import _named_tuple_class

        return _named_tuple_class(cls, [name for name, _ in annotations])


def cast(kind, value):
    return value


def assert_never(value):
    raise AssertionError("Expected code to be unreachable, but got: {!r}".format(value))


def assert_type(value, kind):
    return value


def reveal_type(value):
    return value


def _same(value):
    return value


def overload(function):
    return function


final = override = no_type_check = runtime_checkable = _same


def dataclass_transform(**keywords):
    return _same


def get_type_hints(value, *args, **keywords):
    """Annotations as they are kept: as text."""
    hints = {}
    bases = list(getattr(value, "__mro__", (value,)))
    for cls in reversed(bases):
        hints.update(getattr(cls, "__dict__", {}).get("__annotations__", {}))
    return hints


def get_args(kind):
    return ()


def get_origin(kind):
    return None


def is_typeddict(kind):
    return isinstance(kind, type) and issubclass(kind, TypedDict)


class SupportsInt(Protocol):
    pass


SupportsFloat = SupportsAbs = SupportsIndex = SupportsInt

# Abstract containers. A built-in container, or any object with the methods that count, is an instance.

from abc import ABC


def _with(*names):
    return lambda value: all([hasattr(value, name) for name in names])


def _kinds(*kinds):
    return lambda value: isinstance(value, kinds)


def _of(*checks):
    def check(value):
        for one in checks:
            if one(value):
                return True
        return False

    return check


class _Generic(ABC):
    @classmethod
    def __class_getitem__(cls, key):
        return cls


_CONTAINERS = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)


class Hashable(_Generic):
    def _check_(value):
        return not isinstance(value, (list, dict, set, bytearray))


class Callable(_Generic):
    _check_ = callable


class Sized(_Generic):
    _check_ = _of(_kinds(*_CONTAINERS), _with("__len__"))


class Container(_Generic):
    _check_ = _of(_kinds(*_CONTAINERS), _with("__contains__"))


class Iterable(_Generic):
    _check_ = _of(_kinds(*_CONTAINERS), _with("__iter__"), _with("__next__"))


class Iterator(Iterable):
    _check_ = _with("__next__")

    def __iter__(self):
        return self


class Generator(Iterator):
    _check_ = _with("send", "throw", "close")


class Reversible(Iterable):
    _check_ = _of(_kinds(str, bytes, list, tuple, dict, range), _with("__reversed__"))


class Awaitable(_Generic):
    _check_ = _of(_with("__await__"), _with("send", "throw"))


class Coroutine(Awaitable):
    _check_ = _with("send", "throw", "close")


class AsyncIterable(_Generic):
    _check_ = _with("__aiter__")


class AsyncIterator(AsyncIterable):
    _check_ = _with("__aiter__", "__anext__")

    def __aiter__(self):
        return self


class AsyncGenerator(AsyncIterator):
    _check_ = _with("__anext__", "asend", "athrow", "aclose")


class Collection(_Generic):
    _check_ = _of(_kinds(*_CONTAINERS), _with("__len__", "__iter__", "__contains__"))


class Sequence(_Generic):
    _is_sequence_ = True

    def _check_(value):
        if isinstance(value, (str, bytes, bytearray, list, tuple, range, memoryview)):
            return True
        return getattr(value, "_is_sequence_", False) or type(value).__name__ == "deque"

    def __iter__(self):
        index = 0
        while True:
            try:
                value = self[index]
            except IndexError:
                return
            yield value
            index += 1

    def __contains__(self, value):
        for one in self:
            if one is value or one == value:
                return True
        return False

    def __reversed__(self):
        for index in range(len(self) - 1, -1, -1):
            yield self[index]

    def index(self, value, start=0, stop=None):
        for index in range(start, len(self) if stop is None else min(stop, len(self))):
            if self[index] == value:
                return index
        raise ValueError

    def count(self, value):
        return len([one for one in self if one == value])


class MutableSequence(Sequence):
    def _check_(value):
        return isinstance(value, (list, bytearray)) or hasattr(value, "insert") and hasattr(value, "append")

    def append(self, value):
        self.insert(len(self), value)

    def clear(self):
        while len(self):
            self.pop()

    def reverse(self):
        values = list(self)
        for index, value in enumerate(values):
            self[len(values) - 1 - index] = value

    def extend(self, values):
        for value in list(values):
            self.append(value)

    def pop(self, index=-1):
        value = self[index]
        del self[index]
        return value

    def remove(self, value):
        del self[self.index(value)]

    def __iadd__(self, values):
        self.extend(values)
        return self


class Set(_Generic):
    _check_ = _kinds(set, frozenset)

    @classmethod
    def _from_iterable(cls, values):
        return cls(values)

    def __and__(self, other):
        return self._from_iterable([value for value in other if value in self])

    def __or__(self, other):
        return self._from_iterable(list(self) + [value for value in other if value not in self])

    def __sub__(self, other):
        return self._from_iterable([value for value in self if value not in other])

    def __xor__(self, other):
        return (self - other) | [value for value in other if value not in self]

    def __le__(self, other):
        return all([value in other for value in self])

    def __lt__(self, other):
        return len(self) < len(other) and self <= other

    def __ge__(self, other):
        return all([value in self for value in other])

    def __gt__(self, other):
        return len(self) > len(other) and self >= other

    def __eq__(self, other):
        return len(self) == len(other) and self <= other

    def isdisjoint(self, other):
        return not any([value in self for value in other])


class MutableSet(Set):
    _check_ = _kinds(set)

    def remove(self, value):
        if value not in self:
            raise KeyError(value)
        self.discard(value)

    def pop(self):
        for value in self:
            self.discard(value)
            return value
        raise KeyError

    def clear(self):
        for value in list(self):
            self.discard(value)

    def __ior__(self, other):
        for value in other:
            self.add(value)
        return self

    def __isub__(self, other):
        for value in list(other):
            self.discard(value)
        return self


class Mapping(_Generic):
    _is_mapping_ = True

    def _check_(value):
        return isinstance(value, dict) or getattr(value, "_is_mapping_", False)

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key):
        try:
            self[key]
        except KeyError:
            return False
        return True

    def keys(self):
        return [key for key in self]

    def values(self):
        return [self[key] for key in self]

    def items(self):
        return [(key, self[key]) for key in self]

    def __eq__(self, other):
        return dict(self.items()) == dict(other.items()) if hasattr(other, "items") else NotImplemented


_NOTHING = object()


class MutableMapping(Mapping):
    def pop(self, key, default=_NOTHING):
        try:
            value = self[key]
        except KeyError:
            if default is _NOTHING:
                raise
            return default
        del self[key]
        return value

    def popitem(self):
        for key in self:
            return key, self.pop(key)
        raise KeyError

    def clear(self):
        for key in list(self):
            del self[key]

    def update(self, other=(), **named):
        if hasattr(other, "keys"):
            other = [(key, other[key]) for key in other.keys()]
        for key, value in other:
            self[key] = value
        for key, value in named.items():
            self[key] = value

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]


class MappingView(Sized):
    _check_ = None


KeysView = ItemsView = ValuesView = MappingView


class ByteString(Sequence):
    _check_ = _kinds(bytes, bytearray)


class Buffer(_Generic):
    _check_ = _kinds(bytes, bytearray, memoryview)

# Containers beyond the built-in ones.

from ucollections import namedtuple as _namedtuple


class _Wrapped:
    """A container around one of the engine's; what is not here is the inner one's."""

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return iter(self._data)

    def __contains__(self, value):
        return value in self._data

    def __getitem__(self, key):
        return self._data[key]

    def __bool__(self):
        return bool(self._data)


class deque(_Wrapped):
    """A list with two ends. It is a window that slides over a list, so both ends cost the same."""

    def __init__(self, iterable=(), maxlen=None):
        self.maxlen = maxlen
        self._data = []
        self._start = 0
        self.extend(iterable)

    # Elements are `_data[_start:]`; room in front is made when it is needed, as much as there are elements.

    def _size(self):
        return len(self._data) - self._start

    def __len__(self):
        return len(self._data) - self._start

    def __bool__(self):
        return len(self._data) > self._start

    def __iter__(self):
        index = 0
        while index < len(self):
            yield self._data[self._start + index]
            index += 1

    def __reversed__(self):
        for index in range(len(self) - 1, -1, -1):
            yield self._data[self._start + index]

    def __contains__(self, value):
        return value in self._data[self._start :]

    def _index(self, index):
        size = len(self)
        if index < 0:
            index += size
        if not 0 <= index < size:
            raise IndexError("deque index out of range")
        return self._start + index

    def __getitem__(self, index):
        return self._data[self._index(index)]

    def __setitem__(self, index, value):
        self._data[self._index(index)] = value

    def __delitem__(self, index):
        self._data.pop(self._index(index))

    def append(self, value):
        self._data.append(value)
        if self.maxlen is not None and len(self) > self.maxlen:
            self.popleft()

    def appendleft(self, value):
        if not self._start:
            room = len(self._data) + 4
            self._data = [None] * room + self._data
            self._start = room
        self._start -= 1
        self._data[self._start] = value
        if self.maxlen is not None and len(self) > self.maxlen:
            self._data.pop()

    def pop(self):
        if not self:
            raise IndexError("pop from an empty deque")
        return self._data.pop()

    def popleft(self):
        if not self:
            raise IndexError("pop from an empty deque")
        value = self._data[self._start]
        self._data[self._start] = None
        self._start += 1
        if self._start > 16 and self._start * 2 > len(self._data):
            self._data = self._data[self._start :]
            self._start = 0
        return value

    def extend(self, iterable):
        for value in list(iterable) if iterable is self else iterable:
            self.append(value)

    def extendleft(self, iterable):
        for value in list(iterable) if iterable is self else iterable:
            self.appendleft(value)

    def clear(self):
        self._data = []
        self._start = 0

    def _replace(self, values):
        self._data = values
        self._start = 0

    def rotate(self, n=1):
        values = list(self)
        if values:
            n %= len(values)
            self._replace(values[len(values) - n :] + values[: len(values) - n])

    def reverse(self):
        values = list(self)
        values.reverse()
        self._replace(values)

    def insert(self, index, value):
        if self.maxlen is not None and len(self) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        values = list(self)
        values.insert(index, value)
        self._replace(values)

    def remove(self, value):
        values = list(self)
        if value not in values:
            raise ValueError("deque.remove(x): x not in deque")
        values.remove(value)
        self._replace(values)

    def index(self, value, start=0, stop=None):
        values = list(self)
        return start + values[start:stop].index(value)

    def count(self, value):
        return list(self).count(value)

    def copy(self):
        return deque(self, self.maxlen)

    __copy__ = copy

    def __add__(self, other):
        return deque(list(self) + list(other), self.maxlen)

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, count):
        return deque(list(self) * count, self.maxlen)

    def __eq__(self, other):
        return list(self) == list(other) if isinstance(other, deque) else NotImplemented

    def __lt__(self, other):
        return list(self) < list(other)

    def __repr__(self):
        if self.maxlen is None:
            return "deque({!r})".format(list(self))
        return "deque({!r}, maxlen={})".format(list(self), self.maxlen)


def namedtuple(typename, field_names, *, rename=False, defaults=None, module=None):
    names = field_names.replace(",", " ").split() if isinstance(field_names, str) else list(field_names)
    seen = set()
    for index, name in enumerate(names):
        is_wrong = not name.isidentifier() or name[:1] == "_" or name in seen
        if is_wrong and rename:
            names[index] = "_{}".format(index)
        elif name in seen:
            raise ValueError("Encountered duplicate field name: {!r}".format(name))
        elif is_wrong:
            raise ValueError("Type names and field names must be valid identifiers: {!r}".format(name))
        seen.add(name)
    defaults = tuple(defaults or ())
    if len(defaults) > len(names):
        raise TypeError("Got more default values than field names")
    given = dict(zip(names[len(names) - len(defaults) :], defaults))
    return _named_tuple(typename, tuple(names), given, {})


def _named_tuple(typename, names, defaults, more):
    plain = _namedtuple(typename, names)

    def init(self, *args, **keywords):
        if len(args) > len(names):
            text = "{}.__new__() takes {} positional arguments but {} were given"
            raise TypeError(text.format(typename, len(names) + 1, len(args) + 1))
        values = list(args)
        for name in names[len(args) :]:
            if name in keywords:
                values.append(keywords.pop(name))
            elif name in defaults:
                values.append(defaults[name])
            else:
                text = "{}.__new__() missing 1 required positional argument: '{}'"
                raise TypeError(text.format(typename, name))
        for name in keywords:
            raise TypeError("{}.__new__() got an unexpected keyword argument '{}'".format(typename, name))
        super(made, self).__init__(*values)

    space = {
        "__init__": init,
        "_fields": names,
        "_field_defaults": defaults,
        "__match_args__": names,
        "_make": classmethod(lambda cls, values: cls(*values)),
        "_asdict": lambda self: dict(zip(names, self)),
        "_replace": _replaced,
        "__repr__": lambda self: _shown(self, names),
        "__str__": lambda self: _shown(self, names),
    }
    # The engine's tuples can't be joined with what only derives from them.
    space["__add__"] = lambda self, other: tuple(list(self) + list(other))
    space["__radd__"] = lambda self, other: tuple(list(other) + list(self))
    space.update(more)
    made = type(typename, (plain,), space)
    return made


def _replaced(self, **changes):
    values = self._asdict()
    for name in changes:
        if name not in values:
            raise ValueError("Got unexpected field names: {!r}".format([name]))
    values.update(changes)
    return type(self)(**values)


def _shown(self, names):
    return "{}({})".format(type(self).__name__, ", ".join(["{}={!r}".format(n, v) for n, v in zip(names, self)]))


def _named_tuple_class(cls, names):
    """What a class statement with `typing.NamedTuple` as its base makes."""
    space = dict(cls.__dict__)
    defaults = {name: space.pop(name) for name in names if name in space}
    return _named_tuple(cls.__name__, tuple(names), defaults, space)


class OrderedDict(dict):
    """Every dict is in order; this one can be put in another, which counts when two are compared."""

    def move_to_end(self, key, last=True):
        if last:
            self[key] = self.pop(key)
            return
        items = [(one, value) for one, value in self.items() if one != key]
        first = self[key]
        self.clear()
        self[key] = first
        for one, value in items:
            self[one] = value

    def popitem(self, last=True):
        if not len(self):
            raise KeyError("dictionary is empty")
        key = list(self.keys())[-1 if last else 0]
        return key, self.pop(key)

    def copy(self):
        return type(self)(self.items())

    __copy__ = copy

    def __eq__(self, other):
        if isinstance(other, OrderedDict):
            return list(self.items()) == list(other.items())
        return dict(self.items()) == other

    def __repr__(self):
        return "OrderedDict({})".format(dict(self.items()) if len(self) else "")

    __str__ = __repr__


class defaultdict(dict):
    def __init__(self, default_factory=None, *args, **keywords):
        self.default_factory = default_factory
        super().__init__(*args, **keywords)

    def __getitem__(self, key):
        if key in self.keys():
            return super().__getitem__(key)
        return self.__missing__(key)

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        value = self.default_factory()
        self[key] = value
        return value

    def copy(self):
        return defaultdict(self.default_factory, self)

    __copy__ = copy

    def __repr__(self):
        return "defaultdict({!r}, {!r})".format(self.default_factory, dict(self.items()))

    __str__ = __repr__


class Counter(dict):
    def __init__(self, iterable=None, **keywords):
        super().__init__()
        self.update(iterable, **keywords)

    def __getitem__(self, key):
        return super().get(key, 0)

    def _counted(self, iterable, keywords, sign):
        if iterable is not None:
            pairs = iterable.items() if hasattr(iterable, "items") else [(value, 1) for value in iterable]
            for key, count in pairs:
                self[key] = self[key] + sign * count
        for key, count in keywords.items():
            self[key] = self[key] + sign * count

    def update(self, iterable=None, **keywords):
        self._counted(iterable, keywords, 1)

    def subtract(self, iterable=None, **keywords):
        self._counted(iterable, keywords, -1)

    def most_common(self, n=None):
        ordered = sorted(self.items(), key=lambda pair: -pair[1])
        return ordered if n is None else ordered[:n]

    def elements(self):
        for key, count in self.items():
            for _ in range(count):
                yield key

    def total(self):
        return sum(self.values())

    def copy(self):
        return Counter(self)

    __copy__ = copy

    def _merged(self, other, choose):
        made = Counter()
        for key in list(self) + [key for key in other if key not in self]:
            count = choose(self[key], other[key])
            if count > 0:
                made[key] = count
        return made

    def __add__(self, other):
        return self._merged(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._merged(other, lambda a, b: a - b)

    def __and__(self, other):
        return self._merged(other, min)

    def __or__(self, other):
        return self._merged(other, max)

    def __iadd__(self, other):
        self.update(other)
        return self._kept()

    def __isub__(self, other):
        self.subtract(other)
        return self._kept()

    def _kept(self):
        for key in [key for key, count in self.items() if count <= 0]:
            del self[key]
        return self

    def __pos__(self):
        return self + Counter()

    def __neg__(self):
        return Counter() - self

    def __eq__(self, other):
        for key in list(self.keys()) + list(other.keys()):
            if self[key] != (other[key] if isinstance(other, Counter) else other.get(key, 0)):
                return False
        return True

    def __le__(self, other):
        return all([self[key] <= other[key] for key in list(self.keys()) + list(other.keys())])

    def __repr__(self):
        if not len(self):
            return "Counter()"
        pairs = ["{!r}: {!r}".format(key, count) for key, count in self.most_common()]
        return "Counter({" + ", ".join(pairs) + "})"

    __str__ = __repr__


class ChainMap:
    _is_mapping_ = True

    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for one in self.maps:
            if key in one:
                return one[key]
        raise KeyError(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError("Key not found in the first mapping: {!r}".format(key))
        del self.maps[0][key]

    def pop(self, key, *default):
        return self.maps[0].pop(key, *default)

    def update(self, *args, **keywords):
        self.maps[0].update(*args, **keywords)

    def setdefault(self, key, default=None):
        return self.maps[0].setdefault(key, default)

    def clear(self):
        self.maps[0].clear()

    def _merged(self):
        made = {}
        for one in reversed(self.maps):
            made.update(one)
        return made

    def __iter__(self):
        return iter(self._merged())

    def __len__(self):
        return len(self._merged())

    def __contains__(self, key):
        return any([key in one for one in self.maps])

    def keys(self):
        return self._merged().keys()

    def values(self):
        return self._merged().values()

    def items(self):
        return self._merged().items()

    def new_child(self, m=None, **keywords):
        child = {} if m is None else m
        child.update(keywords)
        return ChainMap(child, *self.maps)

    @property
    def parents(self):
        return ChainMap(*self.maps[1:])

    def __eq__(self, other):
        return self._merged() == dict(other.items())

    def __repr__(self):
        return "ChainMap({})".format(", ".join([repr(one) for one in self.maps]))


def __getattr__(name):
    if name in ("UserDict", "UserList", "UserString"):
        import _user

        return getattr(_user, name)
    raise AttributeError(name)

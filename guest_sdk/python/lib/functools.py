# Functions that make functions of functions.

_MISSING = object()


class partial:
    def __init__(self, func, *args, **keywords):
        if isinstance(func, partial):
            merged = dict(func.keywords)
            merged.update(keywords)
            func, args, keywords = func.func, func.args + args, merged
        self.func = func
        self.args = args
        self.keywords = keywords

    def __call__(self, *args, **keywords):
        if self.keywords:
            merged = dict(self.keywords)
            merged.update(keywords)
            keywords = merged
        return self.func(*(self.args + args), **keywords)


class partialmethod:
    def __init__(self, func, *args, **keywords):
        self._func = func
        self._args = args
        self._keywords = keywords

    def __get__(self, value, owner):
        return partial(self._func, value, *self._args, **self._keywords)


def reduce(function, iterable, initial=_MISSING):
    source = iter(iterable)
    if initial is _MISSING:
        try:
            initial = next(source)
        except StopIteration:
            raise TypeError("reduce() of empty iterable with no initial value")
    for value in source:
        initial = function(initial, value)
    return initial


WRAPPER_ASSIGNMENTS = ("__module__", "__name__", "__qualname__", "__doc__")
WRAPPER_UPDATES = ("__dict__",)


def update_wrapper(wrapper, wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    """Names what can be named: the engine's functions have no attributes of their own, objects of a class have."""
    for name in assigned:
        try:
            setattr(wrapper, name, getattr(wrapped, name))
        except (AttributeError, TypeError):
            pass
    try:
        wrapper.__wrapped__ = wrapped
    except (AttributeError, TypeError):
        pass
    return wrapper


def wraps(wrapped, assigned=WRAPPER_ASSIGNMENTS, updated=WRAPPER_UPDATES):
    return lambda wrapper: update_wrapper(wrapper, wrapped, assigned, updated)


class _Method:
    """A method of an object, for what is callable and no function."""

    def __init__(self, function, value):
        self._function = function
        self._value = value

    def __call__(self, *args, **keywords):
        return self._function(self._value, *args, **keywords)


class _Cached:
    """A function that remembers; the least recently used result goes first."""

    def __init__(self, function, maxsize, typed):
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", "cached")
        self._maxsize = maxsize
        self._typed = typed
        self.cache_clear()

    def __call__(self, *args, **keywords):
        key = args
        if keywords:
            key += (_MISSING,) + tuple(keywords.items())
        if self._typed:
            key += (_MISSING,) + tuple([type(value) for value in args])
        found = self._results.pop(key, _MISSING)
        if found is not _MISSING:
            self._hits += 1
            self._results[key] = found
            return found
        self._misses += 1
        value = self.__wrapped__(*args, **keywords)
        if self._maxsize != 0:
            self._results[key] = value
            if self._maxsize is not None and len(self._results) > self._maxsize:
                del self._results[next(iter(self._results))]
        return value

    def __get__(self, value, owner):
        return self if value is None else _Method(self, value)

    def cache_info(self):
        from collections import namedtuple

        make = namedtuple("CacheInfo", ("hits", "misses", "maxsize", "currsize"))
        return make(self._hits, self._misses, self._maxsize, len(self._results))

    def cache_parameters(self):
        return {"maxsize": self._maxsize, "typed": self._typed}

    def cache_clear(self):
        self._results = {}
        self._hits = self._misses = 0


def lru_cache(maxsize=128, typed=False):
    if callable(maxsize):
        return _Cached(maxsize, 128, False)
    return lambda function: _Cached(function, maxsize, typed)


def cache(function):
    return _Cached(function, None, False)


class cached_property:
    def __init__(self, func):
        self.func = func
        self._name = getattr(func, "__name__", None)

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, value, owner):
        if value is None:
            return self
        kept = value.__dict__
        key = "_cached_" + self._name
        found = kept.get(key, _MISSING)
        if found is _MISSING:
            found = self.func(value)
            setattr(value, key, found)
        return found

    def __set__(self, value, new):
        setattr(value, "_cached_" + self._name, new)

    def __delete__(self, value):
        delattr(value, "_cached_" + self._name)


def _turned(name, other):
    """A comparison by another one and equality."""
    if name == "__lt__":
        if other == "__gt__":
            return lambda a, b: _or_not(a.__lt__(b), lambda less: not less and a != b)
        if other == "__le__":
            return lambda a, b: _or_not(a.__lt__(b), lambda less: less or a == b)
        return lambda a, b: _or_not(a.__lt__(b), lambda less: not less)
    if name == "__gt__":
        if other == "__lt__":
            return lambda a, b: _or_not(a.__gt__(b), lambda more: not more and a != b)
        if other == "__ge__":
            return lambda a, b: _or_not(a.__gt__(b), lambda more: more or a == b)
        return lambda a, b: _or_not(a.__gt__(b), lambda more: not more)
    if name == "__le__":
        if other == "__ge__":
            return lambda a, b: _or_not(a.__le__(b), lambda up_to: not up_to or a == b)
        if other == "__lt__":
            return lambda a, b: _or_not(a.__le__(b), lambda up_to: up_to and a != b)
        return lambda a, b: _or_not(a.__le__(b), lambda up_to: not up_to)
    if other == "__le__":
        return lambda a, b: _or_not(a.__ge__(b), lambda from_: not from_ or a == b)
    if other == "__gt__":
        return lambda a, b: _or_not(a.__ge__(b), lambda from_: from_ and a != b)
    return lambda a, b: _or_not(a.__ge__(b), lambda from_: not from_)


def _or_not(result, then):
    return result if result is NotImplemented else then(result)


def total_ordering(cls):
    names = ("__lt__", "__gt__", "__le__", "__ge__")
    own = [name for name in names if hasattr(cls, name)]
    if not own:
        raise ValueError("must define at least one ordering operation: < > <= >=")
    for name in names:
        if name not in own:
            setattr(cls, name, _turned(own[0], name))
    return cls


def cmp_to_key(compare):
    class Key:
        def __init__(self, obj):
            self.obj = obj

        def __lt__(self, other):
            return compare(self.obj, other.obj) < 0

        def __gt__(self, other):
            return compare(self.obj, other.obj) > 0

        def __eq__(self, other):
            return compare(self.obj, other.obj) == 0

        def __le__(self, other):
            return compare(self.obj, other.obj) <= 0

        def __ge__(self, other):
            return compare(self.obj, other.obj) >= 0

    return Key


class singledispatch:
    """A function that is chosen by the class of its first argument."""

    _is_dispatcher_ = True
    _skip = 0

    def __init__(self, function):
        self.__name__ = getattr(function, "__name__", "function")
        self.registry = {object: function}

    def register(self, cls, function=None):
        if function is None:
            return lambda made: self.register(cls, made)
        for one in cls if isinstance(cls, tuple) else (cls,):
            self.registry[type(None) if one is None else one] = function
        return function

    def dispatch(self, cls):
        for one in getattr(cls, "__mro__", (cls,)):
            if one in self.registry:
                return self.registry[one]
        if cls is bool and int in self.registry:
            return self.registry[int]
        return self.registry[object]

    def __call__(self, *args, **keywords):
        if not args:
            raise TypeError("{} requires at least 1 positional argument".format(self.__name__))
        value = args[self._skip]
        chosen = self.dispatch(type(value))
        if chosen is self.registry[object]:
            chosen = self._abstract(value, chosen)
        return chosen(*args, **keywords)

    def _abstract(self, value, chosen):
        # Abstract classes have no place among the bases of what belongs to them.
        from _rt import isinstance_

        for cls, function in self.registry.items():
            if cls is not object and isinstance_(value, cls):
                return function
        return chosen


class singledispatchmethod(singledispatch):
    _skip = 1

    def __get__(self, value, owner):
        return self if value is None else _Method(self, value)

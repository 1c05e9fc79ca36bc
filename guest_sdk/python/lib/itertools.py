# Iterators made of iterators.


class count:
    def __init__(self, start=0, step=1):
        self._next = start
        self._step = step

    def __iter__(self):
        return self

    def __next__(self):
        value = self._next
        self._next = value + self._step
        return value


def cycle(iterable):
    kept = []
    for value in iterable:
        kept.append(value)
        yield value
    while kept:
        for value in kept:
            yield value


def repeat(object, times=None):
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def accumulate(iterable, func=None, *, initial=None):
    total = initial
    begun = initial is not None
    if begun:
        yield total
    for value in iterable:
        if not begun:
            total, begun = value, True
        else:
            total = total + value if func is None else func(total, value)
        yield total


def batched(iterable, n, *, strict=False):
    if n < 1:
        raise ValueError("n must be at least one")
    batch = []
    for value in iterable:
        batch.append(value)
        if len(batch) == n:
            yield tuple(batch)
            batch = []
    if batch:
        if strict:
            raise ValueError("batched(): incomplete batch")
        yield tuple(batch)


class chain:
    def __init__(self, *iterables):
        self._all = _chained(iterables)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._all)

    @staticmethod
    def from_iterable(iterables):
        return _chained(iterables)


def _chained(iterables):
    for iterable in iterables:
        yield from iterable


def compress(data, selectors):
    for value, selected in zip(data, selectors):
        if selected:
            yield value


def dropwhile(predicate, iterable):
    source = iter(iterable)
    for value in source:
        if not predicate(value):
            yield value
            break
    yield from source


def takewhile(predicate, iterable):
    for value in iterable:
        if not predicate(value):
            return
        yield value


def filterfalse(predicate, iterable):
    for value in iterable:
        if not (value if predicate is None else predicate(value)):
            yield value


class groupby:
    def __init__(self, iterable, key=None):
        self._source = iter(iterable)
        self._key = key
        self._has = False
        self._group = None

    def __iter__(self):
        return self

    def __next__(self):
        # What is left of a group that was not read to its end.
        if self._group is not None:
            for _ in self._group:
                pass
        if not self._has:
            self._advance()
        key = self._current
        self._group = self._members(key)
        return key, self._group

    def _advance(self):
        self._value = next(self._source)
        self._current = self._value if self._key is None else self._key(self._value)
        self._has = True

    def _members(self, key):
        while self._has and self._current == key:
            self._has = False
            yield self._value
            try:
                self._advance()
            except StopIteration:
                return


def islice(iterable, *args):
    start, step = 0, 1
    if len(args) == 1:
        stop = args[0]
    elif len(args) == 2:
        start, stop = args
    else:
        start, stop, step = args
    start, step = start or 0, 1 if step is None else step
    if start < 0 or step < 1 or (stop is not None and stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    return _sliced(iterable, start, stop, step)


def _sliced(iterable, start, stop, step):
    source = iter(iterable)
    index = 0
    wanted = start
    while stop is None or index < max(start, stop):
        try:
            value = next(source)
        except StopIteration:
            return
        if index == wanted and (stop is None or index < stop):
            wanted += step
            yield value
        index += 1


def pairwise(iterable):
    before = _NOTHING
    for value in iterable:
        if before is not _NOTHING:
            yield before, value
        before = value


_NOTHING = object()


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def tee(iterable, n=2):
    source = iter(iterable)
    waiting = [[] for _ in range(n)]
    return tuple([_branch(source, waiting, mine) for mine in waiting])


def _branch(source, waiting, mine):
    while True:
        if not mine:
            try:
                value = next(source)
            except StopIteration:
                return
            for one in waiting:
                one.append(value)
        yield mine.pop(0)


def zip_longest(*iterables, fillvalue=None):
    sources = [iter(iterable) for iterable in iterables]
    left = len(sources)
    while left:
        row = []
        for index, source in enumerate(sources):
            value = fillvalue
            if source is not None:
                try:
                    value = next(source)
                except StopIteration:
                    sources[index] = None
                    left -= 1
                    if not left:
                        return
            row.append(value)
        yield tuple(row)


def product(*iterables, repeat=1):
    pools = [tuple(iterable) for iterable in iterables] * repeat
    if not all(pools):
        return
    at = [0] * len(pools)
    while True:
        yield tuple([pool[index] for pool, index in zip(pools, at)])
        place = len(pools) - 1
        while place >= 0:
            at[place] += 1
            if at[place] < len(pools[place]):
                break
            at[place] = 0
            place -= 1
        else:
            return


def permutations(iterable, r=None):
    pool = tuple(iterable)
    size = len(pool) if r is None else r
    if size > len(pool):
        return
    chosen = []
    yield from _permuted(pool, size, chosen)


def _permuted(pool, size, chosen):
    if len(chosen) == size:
        yield tuple([pool[index] for index in chosen])
        return
    for index in range(len(pool)):
        if index not in chosen:
            chosen.append(index)
            yield from _permuted(pool, size, chosen)
            chosen.pop()


def combinations(iterable, r):
    pool = tuple(iterable)
    return _combined(pool, r, 1)


def combinations_with_replacement(iterable, r):
    pool = tuple(iterable)
    return _combined(pool, r, 0)


def _combined(pool, size, step):
    if size < 0:
        raise ValueError("r must be non-negative")
    top = len(pool)
    at = [index * step for index in range(size)]
    if size and (not top or (step and size > top)):
        return
    while True:
        yield tuple([pool[index] for index in at])
        place = size - 1
        while place >= 0 and at[place] == top - 1 - (size - 1 - place) * step:
            place -= 1
        if place < 0:
            return
        at[place] += 1
        for later in range(place + 1, size):
            at[later] = at[later - 1] + step

# Heaps: the engine's, and what it lacks.

from uheapq import heapify, heappop, heappush


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _sink(heap)
    return item


def heapreplace(heap, item):
    result = heap[0]
    heap[0] = item
    _sink(heap)
    return result


def _sink(heap):
    at, size = 0, len(heap)
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if not heap[child] < heap[at]:
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    sources = [iter(iterable) for iterable in iterables]
    heads = []
    for source in sources:
        try:
            value = next(source)
        except StopIteration:
            continue
        heads.append([value if key is None else key(value), value, source])
    while heads:
        best = 0
        for index in range(1, len(heads)):
            one, other = heads[index][0], heads[best][0]
            if (other < one) if reverse else (one < other):
                best = index
        head = heads[best]
        yield head[1]
        try:
            value = next(head[2])
        except StopIteration:
            heads.pop(best)
            continue
        head[0], head[1] = value if key is None else key(value), value

# What agents use of `asyncio`, on top of the engine's own tasks. There is no loop to run: an agent's handlers are
# awaited by the engine.

from runner_tasks import (
    CancelledError,
    Future,
    InvalidStateError,
    Task,
    Timeout as TimeoutError,
    create_task,
    current_task,
    ensure_future,
    gather,
    sleep,
    timer as _timer,
    wait_for,
)

FIRST_COMPLETED = "FIRST_COMPLETED"
FIRST_EXCEPTION = "FIRST_EXCEPTION"
ALL_COMPLETED = "ALL_COMPLETED"


def run(main, **options):
    raise RuntimeError("asyncio.run: an agent's handlers are awaited already; write 'async def run(input)'")


def iscoroutine(value):
    from _host import is_coroutine

    return is_coroutine(value)


def isfuture(value):
    return isinstance(value, Future)


def shield(awaitable):
    """Lets the waiter be cancelled, but not what it waits for."""
    inner, outer = ensure_future(awaitable), Future()

    def copy(done):
        if outer.done():
            return
        if done._error is not None:
            done._seen = True
            outer.set_exception(done._error)
        else:
            outer.set_result(done._value)

    inner.add_done_callback(copy)
    return outer


async def wait(awaitables, *, timeout=None, return_when=ALL_COMPLETED):
    """Waits for some or all of them; gives those that are done and those that are not."""
    futures = [ensure_future(one) for one in awaitables]
    if not futures:
        raise ValueError("nothing to wait for")
    reached = Future()

    def check(_):
        done = [one for one in futures if one.done()]
        failed = any(one._error is not None for one in done)
        if reached.done():
            return
        if len(done) == len(futures) or (return_when == FIRST_COMPLETED and done) or (
            return_when == FIRST_EXCEPTION and failed
        ):
            reached.set_result(None)

    for one in futures:
        one.add_done_callback(check)
    if timeout is None:
        await reached
    else:
        try:
            await wait_for(reached, timeout)
        except TimeoutError:
            pass
    return {one for one in futures if one.done()}, {one for one in futures if not one.done()}


def as_completed(awaitables):
    """Futures of the results, in the order in which they come."""
    futures = [ensure_future(one) for one in awaitables]
    results = [Future() for _ in futures]
    waiting = list(results)

    def pass_on(done):
        first = waiting.pop(0)
        if done._error is not None:
            done._seen = True
            first.set_exception(done._error)
        else:
            first.set_result(done._value)

    for one in futures:
        one.add_done_callback(pass_on)
    return iter(results)


class Event:
    """Something that happens once, for all who wait."""

    def __init__(self):
        self._set = False
        self._waiters = []

    def is_set(self):
        return self._set

    def set(self):
        self._set = True
        waiters, self._waiters = self._waiters, []
        for one in waiters:
            if not one.done():
                one.set_result(True)

    def clear(self):
        self._set = False

    async def wait(self):
        if not self._set:
            waiter = Future()
            self._waiters.append(waiter)
            await waiter
        return True


class Semaphore:
    """At most so many at a time."""

    def __init__(self, value=1):
        if value < 0:
            raise ValueError("a semaphore begins at 0 or above")
        self._free = value
        self._waiters = []

    def locked(self):
        return self._free == 0

    async def acquire(self):
        while self._free == 0:
            waiter = Future()
            self._waiters.append(waiter)
            try:
                await waiter
            except CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                elif self._free > 0:
                    # It was this one's turn; the next must not wait for ever.
                    self._wake()
                raise
        self._free -= 1
        return True

    def release(self):
        self._free += 1
        self._wake()

    def _wake(self):
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return

    async def __aenter__(self):
        await self.acquire()

    async def __aexit__(self, kind, error, trace):
        self.release()


class BoundedSemaphore(Semaphore):
    """A semaphore that is not released more often than it was taken."""

    def __init__(self, value=1):
        super().__init__(value)
        self._most = value

    def release(self):
        if self._free >= self._most:
            raise ValueError("released too many times")
        super().release()


class Lock(Semaphore):
    """One at a time."""

    def __init__(self):
        super().__init__(1)

    def release(self):
        if self._free > 0:
            raise RuntimeError("the lock is not taken")
        super().release()


class QueueEmpty(Exception):
    pass


class QueueFull(Exception):
    pass


class Queue:
    """First in, first out."""

    def __init__(self, maxsize=0):
        self.maxsize = maxsize
        self._items = []
        self._getters = []
        self._putters = []
        self._unfinished = 0
        self._finished = Event()
        self._finished.set()

    def qsize(self):
        return len(self._items)

    def empty(self):
        return not self._items

    def full(self):
        return 0 < self.maxsize <= len(self._items)

    def put_nowait(self, item):
        if self.full():
            raise QueueFull()
        self._put(item)
        self._unfinished += 1
        self._finished.clear()
        self._wake(self._getters)

    def get_nowait(self):
        if not self._items:
            raise QueueEmpty()
        item = self._get()
        self._wake(self._putters)
        return item

    async def put(self, item):
        while self.full():
            await self._wait_in(self._putters)
        self.put_nowait(item)

    async def get(self):
        while not self._items:
            await self._wait_in(self._getters)
        return self.get_nowait()

    def task_done(self):
        if self._unfinished == 0:
            raise ValueError("task_done() called too many times")
        self._unfinished -= 1
        if self._unfinished == 0:
            self._finished.set()

    async def join(self):
        await self._finished.wait()

    def _put(self, item):
        self._items.append(item)

    def _get(self):
        return self._items.pop(0)

    async def _wait_in(self, waiters):
        waiter = Future()
        waiters.append(waiter)
        try:
            await waiter
        except CancelledError:
            if waiter in waiters:
                waiters.remove(waiter)
            else:
                self._wake(waiters)
            raise

    def _wake(self, waiters):
        while waiters:
            waiter = waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return


class LifoQueue(Queue):
    """Last in, first out."""

    def _get(self):
        return self._items.pop()


class PriorityQueue(Queue):
    """Smallest first."""

    def _put(self, item):
        from heapq import heappush

        heappush(self._items, item)

    def _get(self):
        from heapq import heappop

        return heappop(self._items)


class TaskGroup:
    """Tasks that end together: the first that fails cancels the others."""

    def __init__(self):
        self._tasks = []
        self._failed = None
        self._parent = None

    async def __aenter__(self):
        self._parent = current_task()
        return self

    def create_task(self, coroutine, *, name=None):
        task = create_task(coroutine, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task):
        if task._error is None or isinstance(task._error, CancelledError):
            return
        task._seen = True
        if self._failed is None:
            self._failed = task._error
            for other in self._tasks:
                other.cancel()

    async def __aexit__(self, kind, error, trace):
        if error is not None:
            for task in self._tasks:
                task.cancel()
        for task in self._tasks:
            if not task.done():
                try:
                    await task
                except CancelledError:
                    if not task.done():
                        raise
                except Exception:
                    pass
        if error is None and self._failed is not None:
            await sleep(0)
        errors = [task._error for task in self._tasks if task._error is not None]
        errors = [one for one in errors if not isinstance(one, CancelledError)]
        for task in self._tasks:
            task._seen = True
        if errors:
            raise ExceptionGroup("unhandled errors in a TaskGroup", errors)


class _TimeoutScope:
    """`async with timeout(seconds)`."""

    def __init__(self, delay):
        self._delay = delay
        self._limit = None
        self._expired = False

    async def __aenter__(self):
        if self._delay is not None:
            task = current_task()

            def expire(limit):
                if not limit.cancelled():
                    self._expired = True
                    task.cancel()

            self._limit = _timer(self._delay)
            self._limit.add_done_callback(expire)
        return self

    async def __aexit__(self, kind, error, trace):
        if self._limit is not None:
            self._limit.cancel()
        if self._expired and isinstance(error, CancelledError):
            raise TimeoutError("it took longer than {} s".format(self._delay))


def timeout(delay):
    """Ends what stands in the block after some seconds. It needs a resident host."""
    return _TimeoutScope(delay)

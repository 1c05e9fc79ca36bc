"""
The threads on which slices run and records are written: one of them leads, and works for all instances.

A guest must not run on the event loop's thread, where Ctrl-C would not be heard meanwhile, and no other
instance served: what has begun can't be moved. But with a thread for each slice, threads pass the
interpreter's lock to each other at each call into the engine and the database, across cores, and that costs
more than the slices. So one thread leads: it begins what waits, one after the other, then makes all of it
durable, which is one transaction, and wakes the event loop once.

Nobody waits for a guest that spins:

- Behind the leader stands a second thread and looks every `PATIENCE_S` whether it gets on. When it is inside
  the same piece of work as before and others wait, the second takes the lead, and with it what has begun.
  Who has lost the lead finishes what it is at by itself, and then stands back.
- Work that is expected to compute for long is done by a leader that gives the lead away first: when there is
  a core that is free for it, or when the second would have to take it anyway.

Nothing that has begun is cut off here: that is for deadlines and interrupts.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

T = TypeVar("T")

Confirm = Callable[[], T]
"""
The second half of a piece of work: waits until what the first half did is durable, and gives what came of it.
"""

PATIENCE_S: Final = 0.005
"""
How often the second thread looks; others wait for a guest twice as long at most.
"""

LONG_S: Final = 0.001
"""
Work that computes for so long is worth a change of threads.
"""

_BATCH_S: Final = 0.01
"""
How long work is begun before what has begun is made durable.
"""

_CORES: Final = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

_staffed: Final[set[Crew]] = set()


@atexit.register
def _end_all() -> None:
    """
    End every thread before the interpreter goes, as the ticker does, which still ticks: a guest that runs now
    ends by its deadline.
    """
    for crew in tuple(_staffed):
        crew.close()


class _Work:
    """
    One piece of work, and what came of it.
    """

    __slots__ = ("_begin", "_confirm", "error", "expected_s", "future", "loop", "result")

    def __init__(self, begin: Callable[[], Confirm[Any]], expected_s: float) -> None:
        self._begin = begin
        self._confirm: Confirm[Any] | None = None
        self.expected_s = expected_s
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def begin(self) -> None:
        try:
            self._confirm = self._begin()
        except BaseException as error:  # noqa: BLE001 - whoever waits is told
            self.error = error

    def confirm(self) -> None:
        if self._confirm is not None:
            try:
                self.result = self._confirm()
            except BaseException as error:  # noqa: BLE001 - whoever waits is told
                self.error = error


class _Member:
    """
    One thread, and the bell that wakes it.

    Attributes:
        is_asleep: Whether it waits for the bell, for however long it takes.
    """

    __slots__ = ("_bell", "is_asleep", "thread")

    def __init__(self, target: Callable[[_Member], None]) -> None:
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.is_asleep = False
        self.thread = threading.Thread(target=target, args=(self,), name="runner-crew", daemon=True)

    def ring(self) -> None:
        self.is_asleep = False
        self._bell.put(None)

    def sleep(self, timeout_s: float | None = None) -> None:
        """
        Until the bell rings, or a while; now and then for nothing.
        """
        with contextlib.suppress(queue.Empty):
            self._bell.get(timeout=timeout_s)


class Crew:
    """
    For any number of sessions and event loops of one process. It has threads while it is `staffed`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._members: set[_Member] = set()
        self._leader: _Member | None = None
        self._second: _Member | None = None
        # Work that nobody has begun; what has begun and is not confirmed, and until when more is begun.
        self._waiting: deque[_Work] = deque()
        self._begun: list[_Work] = []
        self._until_s = 0.0
        # Whether the leader is inside a first half, and how many of them there were.
        self._is_inside = False
        self._turns = 0
        # Who has given the lead away to compute.
        self._computing = 0

    @contextlib.contextmanager
    def staffed(self) -> Iterator[None]:
        """
        Hold while there may be work.
        """
        with self._lock:
            self._users += 1
            _staffed.add(self)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._dismiss()

    def close(self) -> None:
        """
        End all threads, when what has begun has ended; what has not begun never will.
        """
        with self._lock:
            self._users = 0
            self._waiting.clear()
            self._dismiss()
            members = tuple(self._members)
        for member in members:
            member.thread.join()

    async def do(
        self, begin: Callable[[], Confirm[T]], *, expected_s: float = 0.0, always: bool = False
    ) -> T:
        """
        Do a piece of work on a thread of the crew.

        Cancelled when this is called, nothing is done; later than that, the end is waited for.

        Args:
            begin: The first half; gives the second, before which first halves of others may come.
            expected_s: For how long the first half will presumably compute without the interpreter's lock.
            always: Do it also when cancelled already.

        Raises:
            BaseException: What one of the halves raised.
        """
        if not always:
            await checkpoint_if_cancelled()
        work = _Work(begin, expected_s)
        with anyio.CancelScope(shield=True):
            self._add(work)
            await work.future
        if work.error is not None:
            raise work.error
        result: T = work.result
        return result

    def _add(self, work: _Work) -> None:
        with self._lock:
            self._waiting.append(work)
            leader = self._leader
            if leader is not None and leader.is_asleep:
                leader.ring()
            elif leader is None or self._is_inside:
                self._call_second()

    # -- its threads --------------------------------------------------------------------------

    def _serve(self, me: _Member) -> None:
        while self._stand_by(me):
            self._lead(me)

    def _stand_by(self, me: _Member) -> bool:
        """
        Wait for the lead; false when this thread is not needed any more.
        """
        seen = None
        while True:
            with self._lock:
                has_work = bool(self._waiting or self._begun)
                is_stuck = self._is_inside and self._turns == seen
                if (self._users or has_work) and (self._leader is None or (is_stuck and has_work)):
                    self._take_lead(me)
                    return True
                if not self._users or self._second not in (None, me):
                    self._retire(me)
                    return False
                self._second = me
                seen = self._turns if self._is_inside else None
                me.is_asleep = not has_work
            me.sleep(PATIENCE_S if has_work else None)

    def _lead(self, me: _Member) -> None:
        """
        Do work until the lead is lost.
        """
        while True:
            with self._lock:
                if self._leader is not me:
                    return
                work, batch = self._next()
                if work is None and not batch:
                    if not self._users:
                        self._leader = None
                        return
                    me.is_asleep = True
            if work is not None:
                self._begin(me, work)
            elif batch:
                _confirm(batch)
            else:
                me.sleep()

    def _next(self) -> tuple[_Work | None, list[_Work]]:
        """
        What to begin, or what to confirm; whoever calls holds the lock.
        """
        now_s = time.monotonic()
        if not self._begun:
            self._until_s = now_s + _BATCH_S
        if not self._waiting or now_s >= self._until_s:
            batch, self._begun = self._begun, []
            return None, batch
        work = self._waiting.popleft()
        self._is_inside = True
        self._turns += 1
        if self._waiting:
            self._call_second()
        return work, []

    def _begin(self, me: _Member, work: _Work) -> None:
        has_left = work.expected_s >= LONG_S and self._give_lead_away(work.expected_s)
        work.begin()
        with self._lock:
            self._computing -= has_left
            if self._leader is me:
                self._is_inside = False
                self._begun.append(work)
                return
        _confirm([work])

    def _give_lead_away(self, expected_s: float) -> bool:
        with self._lock:
            is_worth_it = self._computing < _CORES - 1 or expected_s >= PATIENCE_S
            if not is_worth_it or not (self._waiting or self._begun):
                return False
            self._computing += 1
            self._leader, self._is_inside = None, False
            self._call_second()
            return True

    # -- whoever calls these holds the lock ---------------------------------------------------

    def _take_lead(self, me: _Member) -> None:
        self._leader, self._is_inside = me, False
        if self._second is me:
            self._second = None

    def _call_second(self) -> None:
        """
        See that somebody looks after the leader, or takes the lead if nobody has it.
        """
        if self._second is None:
            member = self._second = _Member(self._serve)
            self._members.add(member)
            member.thread.start()
        elif self._second.is_asleep or self._leader is None:
            self._second.ring()

    def _retire(self, me: _Member) -> None:
        self._members.discard(me)
        if self._second is me:
            self._second = None

    def _dismiss(self) -> None:
        _staffed.discard(self)
        for member in self._members:
            member.ring()


def _confirm(batch: Iterable[_Work]) -> None:
    """
    Second halves, and the news of it to each event loop at once.
    """
    for work in batch:
        work.confirm()
    for loop, theirs in groupby(batch, key=lambda work: work.loop):
        # A loop that has been torn down meanwhile has nobody who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, tuple(theirs))


def _tell(batch: Iterable[_Work]) -> None:
    for work in batch:
        if not work.future.done():
            work.future.set_result(None)

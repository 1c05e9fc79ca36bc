# Tasks: coroutines that take turns. Each turn is a step of the engine, so what goes on between two turns is on
# the heap only, and can be frozen.

import _host

from runner_errors import log_error


# How a turn of a coroutine ended.
_WAITS = 1
_RAISED = 2


class CancelledError(BaseException):
    """Raised where a task waits when it is cancelled."""


class InvalidStateError(Exception):
    """Raised for the result of what has none yet."""


class Future:
    """A value, or an error, that is there later. `await` gives it, as often as one likes."""

    def __init__(self):
        self._done = False
        self._value = None
        self._error = None
        # Whether somebody has been told of the error.
        self._seen = False
        self._waiting = []

    def __iter__(self):
        if not self._done:
            yield self
        return self.result()

    __await__ = __iter__

    def done(self):
        """Whether it is there."""
        return self._done

    def result(self):
        """The value; raises the error."""
        if not self._done:
            raise InvalidStateError("the result is not there yet")
        self._seen = True
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self):
        """The error, or `None`."""
        if not self._done:
            raise InvalidStateError("the result is not there yet")
        self._seen = True
        if isinstance(self._error, CancelledError):
            raise self._error
        return self._error

    def cancelled(self):
        """Whether it was given up."""
        return isinstance(self._error, CancelledError)

    def cancel(self, message=None):
        """Give it up: whoever waits for it gets `CancelledError`."""
        if self._done:
            return False
        self.set_exception(CancelledError(message) if message else CancelledError())
        return True

    def set_result(self, value):
        """What it becomes."""
        self._settle(value, None)

    def set_exception(self, error):
        """The error that it becomes."""
        if isinstance(error, type):
            error = error()
        self._settle(None, error)

    def add_done_callback(self, function):
        """Call a function with it, once it is there."""
        if self._done:
            _ready.append(_Callback(function, self))
        else:
            self._waiting.append(_Callback(function, self))

    def remove_done_callback(self, function):
        """Undo `add_done_callback`."""
        before = len(self._waiting)
        self._waiting = [one for one in self._waiting if not (isinstance(one, _Callback) and one.function == function)]
        return before - len(self._waiting)

    def _settle(self, value, error):
        if self._done:
            raise InvalidStateError("the result is there already")
        self._done = True
        self._value = value
        self._error = error
        waiting, self._waiting = self._waiting, ()
        if error is not None and not isinstance(error, CancelledError):
            _failed.append(self)
        for one in waiting:
            one._wait_for = None
            _ready.append(one)


class _Callback:
    """A function that is to be called with a future."""

    def __init__(self, function, future):
        self.function = function
        self._future = future
        self._wait_for = None

    def turn(self):
        try:
            self.function(self._future)
        except Exception as error:
            log_error("a callback failed", error)

    def broken(self, error):
        log_error("a callback failed", error)


class Task(Future):
    """A coroutine at work beside others."""

    def __init__(self, coroutine, name=None):
        if not _host.is_coroutine(coroutine):
            raise TypeError("a coroutine was expected, not {}".format(type(coroutine).__name__))
        super().__init__()
        self._coroutine = coroutine
        self._name = name
        self._wait_for = None
        # What is raised inside of it at its next turn.
        self._raise = None
        _ready.append(self)

    def get_name(self):
        """Its name."""
        return self._name or "Task"

    def set_name(self, name):
        """Give it a name."""
        self._name = str(name)

    def cancel(self, message=None):
        """Raise `CancelledError` where it waits."""
        if self._done:
            return False
        error = CancelledError(message) if message else CancelledError()
        waits, self._wait_for = self._wait_for, None
        if waits is None:
            self._raise = error
        elif not self._done:
            waits._waiting.remove(self)
            self._raise = error
            # Nobody else waits for a call that was made for this task: the host need not carry it out.
            waits._abandon()
            _ready.append(self)
        return True

    def _abandon(self):
        # A task goes on without those who waited for it.
        pass

    def turn(self):
        """Go on to the next wait."""
        if self._done:
            return
        error, self._raise = self._raise, None
        how, value = _host.resume(self._coroutine, error)
        if how == _WAITS:
            self._wait(value)
        elif how == _RAISED:
            self.set_exception(value)
        else:
            self.set_result(value)

    def _wait(self, waits):
        if waits is None:
            _ready.append(self)
        elif not isinstance(waits, Future):
            self._raise = TypeError("{} can't be awaited".format(type(waits).__name__))
            _ready.append(self)
        elif waits._done:
            _ready.append(self)
        elif self._raise is not None:
            # It was cancelled while it ran.
            waits._abandon()
            _ready.append(self)
        else:
            waits._waiting.append(self)
            self._wait_for = waits

    def broken(self, error):
        """Its turn could not be finished, for lack of memory."""
        if not self._done:
            self.set_exception(error)


def _abandon(self):
    if not self._waiting:
        self.cancel()


Future._abandon = _abandon

# Tasks and callbacks whose turn it is.
_ready = []

# Futures that became an error, until it is clear whether anybody looks.
_failed = []

# Whose turn it is now.
_now = None


def turn():
    """One turn of whoever is first; `False` if nobody is ready."""
    global _now
    if not _ready:
        return False
    _now = _ready.pop(0)
    _now.turn()
    _now = None
    return True


def turn_failed(error):
    """The turn ended with an error of its own; `False` if there was none."""
    global _now
    now, _now = _now, None
    if now is None:
        return False
    now.broken(error)
    return True


def report_failed():
    """Logs errors that nobody has looked at, and forgets them."""
    while _failed:
        future = _failed.pop()
        if not future._seen:
            future._seen = True
            log_error("nobody awaited what failed", future._error)


def current_task():
    """The task whose turn it is, or `None`."""
    return _now if isinstance(_now, Task) else None


def create_task(coroutine, *, name=None, context=None):
    """Start a coroutine beside this one."""
    return Task(coroutine, name)


def ensure_future(awaitable):
    """A future of anything that can be awaited."""
    if isinstance(awaitable, Future):
        return awaitable
    if _host.is_coroutine(awaitable):
        return Task(awaitable)
    if hasattr(awaitable, "__await__") or hasattr(awaitable, "__iter__"):
        return Task(_await(awaitable))
    raise TypeError("{} can't be awaited".format(type(awaitable).__name__))


async def _await(awaitable):
    return await awaitable


class _Gathering(Future):
    """Results of many, in their order."""

    def __init__(self, children, return_exceptions):
        super().__init__()
        self._children = children
        self._return = return_exceptions
        self._left = len(children)
        for child in children:
            child.add_done_callback(self._child_done)
        if not children:
            self.set_result([])

    def cancel(self, message=None):
        if self._done:
            return False
        for child in self._children:
            child.cancel(message)
        return super().cancel(message)

    def _child_done(self, child):
        self._left -= 1
        child._seen = True
        if self._done:
            return
        if child._error is not None and not self._return:
            self.set_exception(child._error)
        elif self._left == 0:
            self.set_result([one._value if one._error is None else one._error for one in self._children])


def gather(*awaitables, return_exceptions=False):
    """Wait for all of them; the results come in the order of the arguments."""
    children = []
    for one in awaitables:
        future = ensure_future(one)
        children.append(future)
    return _Gathering(children, return_exceptions)


class _Turn:
    """One turn for the others."""

    def __iter__(self):
        yield None

    __await__ = __iter__


async def sleep(delay, result=None):
    """Wait for some seconds; 0 lets others take their turn, and needs no timer."""
    if delay <= 0:
        await _Turn()
    else:
        await timer(delay)
    return result


def no_timer(seconds):
    raise RuntimeError("there are no timers yet")


# The module of calls puts a real one in.
timer = no_timer


def set_timer(function):
    """What makes a timer: it takes seconds and gives a future."""
    global timer
    timer = function


class Timeout(Exception):
    """Raised when a wait took too long."""


async def wait_for(awaitable, timeout=None):
    """Wait for it, but not longer than some seconds. Any timeout but `None` and 0 needs a resident host."""
    if timeout is None:
        return await awaitable
    if timeout > 0:
        limit = timer(timeout)
        future = ensure_future(awaitable)
    else:
        limit = None
        future = ensure_future(awaitable)
        await _Turn()
    try:
        if limit is not None and not future._done:
            first = Future()
            wake = lambda _: None if first._done else first.set_result(None)
            future.add_done_callback(wake)
            limit.add_done_callback(wake)
            await first
    except CancelledError:
        future.cancel()
        raise
    finally:
        if limit is not None:
            limit.cancel()
    if not future._done:
        future.cancel()
        raise Timeout("it took longer than {} s".format(timeout))
    return future.result()

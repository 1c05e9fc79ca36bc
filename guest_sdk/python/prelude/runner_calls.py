# Calls: requests to the host, each a future of its answer.

import _host

import runner_tasks
from runner_errors import HostError, answered, log_error, refused
from runner_tasks import Future, Task

_PART = 1
_UNSUPPORTED = -5

# Calls in flight, by number.
in_flight = {}

# What this instance has asked of models, by the answers that it got.
_used = {"calls": 0, "input_tokens": 0, "output_tokens": 0}

_loading = False


def set_loading(loading):
    """While an agent loads it can't ask anything."""
    global _loading, _used, in_flight
    _loading = loading
    if loading:
        # What deliveries change is made anew: so it lies beside what the agent has, and not among what never changes.
        in_flight = {}
        _used = dict(_used)


class Call(Future):
    """A request in flight. It is made when this is, whether it is awaited or not."""

    def __init__(self, operation, request, pick=None, on_part=None):
        super().__init__()
        if _loading:
            raise HostError("{}: an agent can't ask anything while it loads".format(operation), "unsupported")
        self._operation = operation
        self._pick = pick
        self._on_part = on_part
        self._number = _host.call(operation, request)
        if self._number > 0:
            in_flight[self._number] = self
        else:
            self.set_exception(refused(operation, self._number))

    def cancel(self, message=None):
        """Give it up. The host may have carried it out all the same."""
        if self._done:
            return False
        if in_flight.pop(self._number, None) is not None:
            _host.cancel(self._number)
        return super().cancel(message)

    def woken(self, status, payload):
        """The answer, or a part of it."""
        if status == _PART:
            if self._on_part is not None:
                self._on_part(payload)
            return
        del in_flight[self._number]
        if status < 0:
            self.set_exception(answered(self._operation, status, payload))
        elif isinstance(payload, MemoryError):
            self.set_exception(answered(self._operation, status, payload))
        else:
            self.set_result(payload if self._pick is None else self._pick(payload))


def woken(number, status, payload):
    """The host's answer to a call of this number."""
    call = in_flight.get(number)
    if call is not None:
        call.woken(status, payload)


def count_usage(answer):
    """Adds what an answer says that it cost."""
    usage = answer.get("usage")
    if usage:
        _used["calls"] += usage.get("calls") or 0
        _used["input_tokens"] += usage.get("input_tokens") or 0
        _used["output_tokens"] += usage.get("output_tokens") or 0
    return answer


def usage():
    """What the answers of this instance have cost so far."""
    return dict(_used)


def aside(function, *arguments):
    """Calls an agent's function outside of any delivery: only the log hears of its errors."""
    try:
        result = function(*arguments)
        if _host.is_coroutine(result):
            Task(result)
    except Exception as error:
        log_error("a callback failed", error)


# What a timer with a payload is handed to.
_on_tick = None


def set_tick_handler(handler):
    global _on_tick
    _on_tick = handler


def _tick(payload):
    if _on_tick is not None:
        aside(_on_tick, payload)


def _arm(operation, field, delay_ms, what):
    request = {field: max(int(delay_ms), 0)}
    if what is not None and not callable(what):
        request["payload"] = what
    fire = None
    if callable(what):
        fire = lambda payload: aside(what)
    elif what is not None:
        fire = _tick
    made = Call(operation, request, fire, fire)
    if made._done:
        # An author who arms a timer must learn at once that it will never come.
        made._seen = True
        if made._number == _UNSUPPORTED:
            raise HostError("{}: timers need a resident host (resident mode)".format(operation), "unsupported")
        raise made._error
    return made


def after(ms, what=None):
    """Once, when some milliseconds have passed: a function is called, any other value goes to `on_tick`."""
    return _arm("agent.after", "delay_ms", ms, what)


def every(ms, what=None):
    """Again and again, every so many milliseconds, until cancelled."""
    return _arm("agent.every", "interval_ms", max(int(ms), 1), what)


def cancel(handle):
    """Give up a timer, a call or a task; whether there was anything to give up."""
    return handle.cancel()


runner_tasks.set_timer(lambda seconds: after(int(seconds * 1000 + 0.999)))

# What the host hands over: an agent to load, and then its deliveries and the answers to its calls.

import sys

import _host

import runner_calls
import runner_errors
import runner_imports
import runner_tasks
from runner_errors import HostError
from runner_tasks import CancelledError, Task

_KINDS = {1: "message", 2: "event", 3: "tick", 4: "restore", 5: "hand_over", 6: "take_over"}
_UPGRADES = {
    "hand_over": "the agent has no on_hand_over, so it can't be upgraded",
    "take_over": "the agent has no on_take_over, so it can't take over",
}
_HANDLERS = (
    ("run", "run"), ("message", "on_message"), ("event", "on_event"), ("tick", "on_tick"), ("restore", "on_restore"),
    ("hand_over", "on_hand_over"), ("take_over", "on_take_over"),
)
_LIMIT = -4
_INVALID = -2
_MESSAGE_CHARS = 2000

# How many times a loop may go round while an agent loads.
_LOAD_STEPS = 5000000


class Delivery(Task):
    """A delivery at work: the task that makes its reply."""

    def __init__(self, number, handler, payload):
        super().__init__(_handle(handler, payload))
        self.number = number

    def _settle(self, value, error):
        super()._settle(value, error)
        self._seen = True
        _engine.open = None
        # A turn of its own: it finds more memory than the error left.
        runner_tasks._ready.insert(0, _Settlement(self.number, value, error))


async def _handle(handler, payload):
    result = handler(payload)
    if _host.is_coroutine(result) or isinstance(result, runner_tasks.Future):
        return await result
    return result


class _Settlement:
    """The end of a delivery: its reply, or its failure."""

    def __init__(self, number, value, error):
        self._number = number
        self._value = value
        self._error = error

    def turn(self):
        if self._error is not None:
            fail(self._number, self._error)
        else:
            self._reply()
        runner_tasks.report_failed()

    def _reply(self):
        try:
            status = _host.reply(self._number, self._value)
        except MemoryError:
            raise
        except Exception as error:
            fail(self._number, error)
            return
        if status == _LIMIT:
            fail(self._number, HostError("the reply is larger than this instance may give", "limit"))
        elif status == _INVALID:
            fail(self._number, HostError("the reply can't be told", "invalid"))

    def broken(self, error):
        fail(self._number, error)


def fail(number, error, kind=None):
    """Ends a delivery with an error: with all that is known of it, or with as much as goes."""
    told = {"message": runner_errors.title(error), "data": runner_errors.data(error)}
    if kind is not None:
        told["data"]["kind"] = kind
    try:
        if _host.fail(number, told) == 0:
            return
    except Exception:
        pass
    words = runner_errors.title(error)[:_MESSAGE_CHARS].encode().decode("ascii", "replace")
    try:
        _host.fail(number, {"message": words})
    except Exception:
        _host.fail(number, {"message": type(error).__name__})


class EntryError(Exception):
    """Raised when an agent has nothing to be called."""


class _Engine:
    """The agent, once it is loaded."""

    def __init__(self):
        self.handlers = None
        self.suites = None
        # The delivery that waits for its reply.
        self.open = None
        # Whether that is an upgrade, which has one slice and no more.
        self.upgrading = False

    def deliver(self, number, kind, payload):
        if isinstance(payload, BaseException):
            fail(number, payload)
        elif self.handlers is None:
            self._load(number, payload)
        elif self.suites is not None:
            self._start(number, self._test(payload), None)
        else:
            self._hand_over(number, _KINDS.get(kind, "message"), payload)

    def _hand_over(self, number, kind, payload):
        handler = self.handlers.get(kind)
        if kind == "message" and handler is None:
            handler = self.handlers.get("run")
        if handler is not None:
            self._start(number, handler, payload)
            self.upgrading = kind in _UPGRADES
        elif kind in _UPGRADES:
            _host.fail(number, {"message": _UPGRADES[kind]})
        elif kind == "restore":
            _host.reply(number, None)
        else:
            _host.fail(number, {"message": "no handler for '{}'".format(kind)})

    def _start(self, number, handler, payload):
        self.upgrading = False
        self.open = Delivery(number, handler, payload)

    def _test(self, payload):
        test = getattr(self.suites[payload["suite"]], payload["test"])
        return lambda _: test()

    def step(self):
        """One turn; `False` when nobody is ready any more."""
        if runner_tasks.turn():
            return True
        if self.open is None:
            runner_tasks.report_failed()
        elif self.upgrading:
            self.open.set_exception(RuntimeError("an agent is upgraded at once: it can't wait for anything meanwhile"))
            return True
        elif not runner_calls.in_flight:
            self.open.set_exception(RuntimeError("the agent waits for something that will never come"))
            return True
        return False

    def broken(self, error):
        """A step ended with an error of its own."""
        if runner_tasks.turn_failed(error):
            return
        if self.open is not None:
            self.open.set_exception(error)
        else:
            runner_errors.log_error("the engine failed", error)

    def _load(self, number, payload):
        request = payload["load"]
        _host.load_begins(_LOAD_STEPS)
        runner_calls.set_loading(True)
        try:
            answer = self._loaded(request)
        except BaseException as error:
            _host.load_ends()
            fail(number, error, _kind_of(error))
            return
        _host.load_ends()
        runner_calls.set_loading(False)
        # What stands in it has been compiled; only what nobody imported is still there.
        runner_imports.records.clear()
        _host.reply(number, answer)

    def _loaded(self, request):
        names = {}
        for record in request["modules"]:
            name = record.get("module") or record["name"]
            names[record["name"]] = name
            runner_imports.records[name] = record
        if "suites" in request:
            return self._load_suites(request["suites"], names)
        entry = runner_imports.import_module(names[request["entry"]])
        handlers = _handlers_of(entry)
        if not any(word in handlers for word in ("run", "message", "event", "tick")):
            raise EntryError("it has no function 'run', 'on_message', 'on_event' or 'on_tick'")
        self.handlers = handlers
        runner_calls.set_tick_handler(handlers.get("tick"))
        return {"handlers": list(handlers)}

    def _load_suites(self, suites, names):
        tests = []
        modules = {}
        for suite in suites:
            module = modules[suite] = runner_imports.import_module(names[suite])
            for name in dir(module):
                if name.startswith("test") and callable(getattr(module, name)):
                    tests.append([suite, name])
        self.handlers = {}
        self.suites = modules
        return {"tests": tests}


def _handlers_of(entry):
    found = {}
    sources = [entry]
    # Instead of functions, an object of this name may have methods.
    whole = getattr(entry, "agent", None)
    if whole is not None and type(whole) is not type(sys):
        sources.append(whole() if isinstance(whole, type) else whole)
    for word, name in _HANDLERS:
        for source in sources:
            handler = getattr(source, name, None)
            if handler is not None and word not in found:
                if not callable(handler):
                    raise EntryError("'{}' is not a function".format(name))
                found[word] = handler
    return found


def _kind_of(error):
    if isinstance(error, SyntaxError):
        return "syntax"
    if isinstance(error, ImportError):
        return "import"
    return "entry" if isinstance(error, EntryError) else "load"


_engine = _Engine()
_host.install(_engine.deliver, runner_calls.woken, _engine.step, _engine.broken)

# What the library adds to built-in types and functions.
if _host.library("_rt") is not None:
    runner_imports.import_module("_rt").install()

# Module `agent`: all that an agent has of the world.

import _host

from runner_calls import Call, after, cancel, count_usage, every, usage
from runner_errors import HostError
from runner_tasks import CancelledError, Future, Task, Timeout, create_task, current_task, gather, sleep, wait_for

__all__ = (
    "CancelledError", "Future", "HostError", "Task", "Timeout", "after", "cancel", "create_task", "current_task",
    "every", "gather", "last_snapshot", "llm", "log", "memory", "now_ms", "provider", "providers", "restored",
    "sleep", "snapshot", "tool", "usage", "wait_for",
)

# What `chat` and `complete` take beside the messages.
_OPTIONS = ("tools", "system", "model", "max_tokens", "provider")


class Stream(Call):
    """A call whose answer comes in pieces: `async for` gives them, `await` the whole."""

    def __init__(self, operation, request, pick, on_token):
        self._parts = []
        self._on_token = on_token
        self._next = None
        super().__init__(operation, request, pick, self._part)

    def _part(self, part):
        if self._on_token is not None:
            from runner_calls import aside

            aside(self._on_token, part["text"])
        else:
            self._parts.append(part["text"])
            self._wake()

    def _wake(self):
        waiting, self._next = self._next, None
        if waiting is not None and not waiting._done:
            waiting.set_result(None)

    def _settle(self, value, error):
        super()._settle(value, error)
        self._wake()

    def __aiter__(self):
        return self

    async def __anext__(self):
        while not self._parts:
            if self._done:
                self.result()
                raise StopAsyncIteration
            self._next = Future()
            await self._next
        return self._parts.pop(0)


def _text(answer):
    return count_usage(answer)["text"]


def _ask(operation, messages, options, on_token, given, pick, stream=False):
    if callable(options):
        options, on_token = None, options
    options = dict(options) if options else {}
    options.update(given)
    on_token = options.pop("on_token", on_token)
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    request = {"messages": messages}
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError("{} has no option '{}'; it has {}".format(operation, name, ", ".join(_OPTIONS)))
        if value is not None:
            request[name] = value
    if on_token is None and not stream:
        return Call(operation, request, pick)
    request["stream"] = True
    return Stream(operation, request, pick, on_token)


class _Llm:
    """The model."""

    def chat(self, messages, options=None, on_token=None, **given):
        """Ask; the host runs the tools that the model calls. Its final text."""
        return _ask("llm.chat", messages, options, on_token, given, _text)

    def stream(self, messages, options=None, **given):
        """Ask; `async for` over it gives the text in pieces, `await` the whole of it."""
        return _ask("llm.chat", messages, options, None, given, _text, True)

    def complete(self, messages, options=None, on_token=None, **given):
        """Ask for one turn, as `{content, stop, model, usage}`; tool calls in it are yours to make."""
        return _ask("llm.complete", messages, options, on_token, given, count_usage)

    def usage(self):
        """What the host has counted: calls and tokens."""
        return Call("llm.usage", {})

    def providers(self):
        """Which providers may be asked."""
        return Call("llm.providers", {})


class _Provider(_Llm):
    """One provider, and perhaps one model of it."""

    def __init__(self, name, model):
        self._name = name
        self._model = model

    def chat(self, messages, options=None, on_token=None, **given):
        return super().chat(messages, options, on_token, **self._with(options, given))

    def stream(self, messages, options=None, **given):
        return super().stream(messages, options, **self._with(options, given))

    def complete(self, messages, options=None, on_token=None, **given):
        return super().complete(messages, options, on_token, **self._with(options, given))

    def _with(self, options, given):
        given["provider"] = self._name
        if self._model is not None and "model" not in given and "model" not in (options or {}):
            given["model"] = self._model
        return given


class _Tool:
    """The tools that the operator offers."""

    def call(self, name, arguments=None, **given):
        """Call one; its result. Arguments are a dict, or keywords."""
        arguments = dict(arguments) if arguments else {}
        arguments.update(given)
        return Call("tool.call", {"name": name, "arguments": arguments})

    def list(self):
        """Their names, descriptions and input schemas."""
        return Call("tool.list", {})


class _Memory:
    """Notes that outlive the instance."""

    def save(self, title, content):
        """Keep a note; its id."""
        return Call("memory.save", {"title": title, "content": content}, lambda answer: answer["id"])

    def read(self, id):
        """A note as `{id, title, content}`, or `None`."""
        return Call("memory.read", {"id": id})

    def list(self):
        """Ids and titles of all notes."""
        return Call("memory.list", {})

    def search(self, query, limit=5):
        """Notes that fit best, with their score."""
        return Call("memory.search", {"query": query, "limit": limit})

    def forget(self, id):
        """Remove a note; whether there was one."""
        return Call("memory.forget", {"id": id})


class _Log:
    """The operator's log."""

    def __call__(self, *words, **fields):
        self._write(1, words, fields)

    def debug(self, *words, **fields):
        """A line that only matters to who looks for a mistake."""
        self._write(0, words, fields)

    def info(self, *words, **fields):
        """A line."""
        self._write(1, words, fields)

    def warning(self, *words, **fields):
        """A line about what should not be so."""
        self._write(2, words, fields)

    def error(self, *words, **fields):
        """A line about what went wrong."""
        self._write(3, words, fields)

    def _write(self, level, words, fields):
        text = " ".join([str(word) for word in words])
        if fields:
            fields["message"] = text
            _host.log(level, fields)
        else:
            _host.log(level, text)


llm = _Llm()
tool = _Tool()
memory = _Memory()
log = _Log()


def provider(name, model=None):
    """One of the providers that the operator offers, to be asked as `llm` is."""
    return _Provider(name, model)


def providers():
    """Which providers may be asked."""
    return llm.providers()


def snapshot(reason=None):
    """Ask for a snapshot when this slice has ended; whether the host keeps any."""
    return _host.snapshot(reason) == 1


def restored():
    """`None`, or `{count, generation, at}` of the last restore of this instance."""
    told = _host.restored()
    if told is not None:
        told["at"] = told.pop("at_ms")
    return told


def last_snapshot():
    """`None`, or `{ok, bytes, at, error}` of the last snapshot."""
    told = _host.last_snapshot()
    if told is not None:
        told["at"] = told.pop("at_ms", None)
    return told


def now_ms():
    """Milliseconds since 1970. Time stands still while a slice runs."""
    return _host.now_ms()

"""
The script of the scripted provider, as data: its file is described in `docs/scripted-provider.md`.

Input: a file that the operator wrote, regular expressions included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from runner.codec import Value
from runner.errors import ConfigError
from runner.package.fields import (
    FieldProblem,
    Fields,
    alternatives,
    any_map,
    anything,
    count,
    list_of,
    one_of,
    or_null,
    positive,
    text,
)
from runner.providers.base import STOP_REASONS, Stop, StopReason, StreamEvent, TextDelta, ToolCall, Usage
from runner.units import MIB, show_bytes

MAX_SCRIPT_BYTES: Final = 1 * MIB

FaultKind = Literal["http", "reset", "hang", "malformed"]
FAULT_KINDS: Final[tuple[FaultKind, ...]] = ("http", "reset", "hang", "malformed")

_EVENTS: Final = ("text", "tool_call", "usage", "stop", "fault")
_FIRST_ERROR_STATUS: Final = 400
_LAST_ERROR_STATUS: Final = 599


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """
    Something that goes wrong instead of an event.

    Attributes:
        kind: `http` refuses before the first byte, `reset` breaks the connection, `hang` never goes on,
            `malformed` sends what is no event.
        status: HTTP status; only of `http`.
        retry_after_ms: How long the refusal asks to be left alone; only of `http`.
    """

    kind: FaultKind
    status: int | None = None
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """
    One event or fault, `delay_ms` after the one before.
    """

    event: StreamEvent | Fault
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """
    An answer given event by event.
    """

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """
    An answer given as a text, streamed in pieces.

    Attributes:
        template: The text; `{input}` is the newest user message, `{turn}` the number of the request.
        stop: Why it ends, unless `max_tokens` cuts it.
        usage: What to report, or `None` to count words.
        delay_ms: Before each piece.
    """

    template: str
    stop: StopReason = "end"
    usage: Usage | None = None
    delay_ms: int = 0


Answer: TypeAlias = Reply | Events


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    An answer to each request whose newest user message is of a kind.

    Attributes:
        answer: What to say.
        contains: The message has this in it, case included.
        matches: The message has a match of this in it. Without either, every message will do.
    """

    answer: Answer
    contains: str | None = None
    matches: re.Pattern[str] | None = None

    def applies(self, message: str) -> bool:
        """
        Whether it answers this message.
        """
        if self.contains is not None:
            return self.contains in message
        return self.matches is None or self.matches.search(message) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """
    What the scripted provider says.

    Attributes:
        turns: Answers to the first requests, in order.
        rules: For the requests after those; the first that applies.
    """

    turns: tuple[Answer, ...] = ()
    rules: tuple[Rule, ...] = ()


def load_script(path: Path) -> Script:
    """
    The script in a `.toml` or `.json` file.

    Raises:
        ConfigError: If the file can't be read or does not say what it must; names the key.
    """
    try:
        return _script(_parse(path))
    except FieldProblem as error:
        raise ConfigError(str(path), error.key or None, error.problem) from error


def _parse(path: Path) -> Any:
    # Imported here: most starts have no script.
    import tomllib  # noqa: PLC0415

    formats: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": _parse_json}
    if path.suffix not in formats:
        raise ConfigError(str(path), None, "a script is a .toml or a .json file")
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SCRIPT_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), None, f"can't be read: {error.strerror}") from error
    if len(data) > MAX_SCRIPT_BYTES:
        raise ConfigError(str(path), None, f"larger than {show_bytes(MAX_SCRIPT_BYTES)}")
    try:
        return formats[path.suffix](data.decode())
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), None, f"not valid {path.suffix[1:].upper()}: {error}") from error


def _parse_json(written: str) -> Any:
    value = json.loads(written)
    # JSON can spell half a character, which no payload can carry.
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _script(value: Value) -> Script:
    with Fields(value) as fields:
        turns = fields.optional("turns", list_of(_turn)) or ()
        rules = fields.optional("rules", list_of(_rule)) or ()
    if not turns and not rules:
        problem = "says nothing: expected turns or rules"
        raise FieldProblem("", problem)
    return Script(turns=turns, rules=rules)


def _turn(value: Value, at: str) -> Answer:
    with Fields(value, at) as fields:
        return _answer(fields, at)


def _rule(value: Value, at: str) -> Rule:
    with Fields(value, at) as fields:
        contains, matches = fields.optional("when", _when) or (None, None)
        return Rule(answer=_answer(fields, at), contains=contains, matches=matches)


def _when(value: Value, at: str) -> tuple[str | None, re.Pattern[str] | None]:
    with Fields(value, at) as fields:
        contains = fields.optional("contains", text)
        matches = fields.optional("matches", _pattern)
    if (contains is None) == (matches is None):
        raise FieldProblem(at, "expected either contains or matches")
    return contains, matches


def _pattern(value: Value, at: str) -> re.Pattern[str]:
    try:
        return re.compile(text(value, at))
    except re.error as error:
        raise FieldProblem(at, f"not a regular expression: {error}") from error


def _answer(fields: Fields, at: str) -> Answer:
    given = [key for key in ("reply", "events", "fault") if fields.has(key)]
    if len(given) != 1:
        raise FieldProblem(at, f"expected one of {alternatives(('reply', 'events', 'fault'))}")
    if given == ["events"]:
        return Events(steps=fields.required("events", _steps))
    if given == ["fault"]:
        return Events(steps=(Step(_fault(fields), fields.optional("delay_ms", count) or 0),))
    return Reply(
        template=fields.required("reply", text),
        stop=fields.optional("stop", one_of(STOP_REASONS)) or "end",
        usage=fields.optional("usage", _usage),
        delay_ms=fields.optional("delay_ms", count) or 0,
    )


def _steps(value: Value, at: str) -> tuple[Step, ...]:
    steps = list_of(_step, at_least=1)(value, at)
    seen: set[type[StreamEvent | Fault]] = set()
    for index, step in enumerate(steps):
        here = f"{at}[{index}]"
        if seen & {Stop, Fault}:
            raise FieldProblem(here, "nothing may follow a stop or a fault")
        if isinstance(step.event, Usage) and Usage in seen:
            raise FieldProblem(here, "usage is reported once")
        if isinstance(step.event, Fault) and step.event.kind == "http" and seen:
            raise FieldProblem(here, "an http fault comes before anything else")
        seen.add(type(step.event))
    return steps


def _step(value: Value, at: str) -> Step:
    with Fields(value, at) as fields:
        given = [key for key in _EVENTS if fields.has(key)]
        if len(given) != 1:
            raise FieldProblem(at, f"expected one of {alternatives(_EVENTS)}")
        delay_ms = fields.optional("delay_ms", count) or 0
        return Step(_event(fields, given[0]), delay_ms)


def _event(fields: Fields, kind: str) -> StreamEvent | Fault:
    if kind == "text":
        return TextDelta(fields.required("text", text))
    if kind == "tool_call":
        return fields.required("tool_call", _tool_call)
    if kind == "usage":
        return fields.required("usage", _usage)
    if kind == "stop":
        return Stop(fields.required("stop", one_of(STOP_REASONS)))
    return _fault(fields)


def _tool_call(value: Value, at: str) -> ToolCall:
    with Fields(value, at) as fields:
        # Without one it gets one that no other call has.
        return ToolCall(
            id=fields.optional("id", text) or "",
            name=fields.required("name", text),
            arguments=fields.optional("arguments", any_map) or {},
        )


def _usage(value: Value, at: str) -> Usage:
    with Fields(value, at) as fields:
        return Usage(
            input_tokens=fields.optional("input_tokens", or_null(count)),
            output_tokens=fields.optional("output_tokens", or_null(count)),
            cache_read_tokens=fields.optional("cache_read_tokens", or_null(count)),
            cache_write_tokens=fields.optional("cache_write_tokens", or_null(count)),
            reasoning_tokens=fields.optional("reasoning_tokens", or_null(count)),
        )


def _fault(fields: Fields) -> Fault:
    kind = fields.required("fault", one_of(FAULT_KINDS))
    if kind == "http":
        return Fault(
            kind=kind,
            status=fields.required("status", _error_status),
            retry_after_ms=fields.optional("retry_after_ms", positive),
        )
    for key in ("status", "retry_after_ms"):
        if fields.optional(key, anything) is not None:
            raise FieldProblem(fields.place(key), "only a fault of kind http has one")
    return Fault(kind=kind)


def _error_status(value: Value, at: str) -> int:
    status = count(value, at)
    if not _FIRST_ERROR_STATUS <= status <= _LAST_ERROR_STATUS:
        raise FieldProblem(at, f"expected {_FIRST_ERROR_STATUS} to {_LAST_ERROR_STATUS}")
    return status

"""
Streams of a provider as JSON objects: lines, server-sent events, and reading what is in them.

Input: written by strangers. Every line is bounded, text must be well-formed, and what is not of the expected
shape is `Malformed`; keys that nobody asked for are let be, because providers add some every month.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from runner import codec
from runner.codec import Value
from runner.package.fields import MAX_TALLY
from runner.units import MIB

MAX_LINE_BYTES: Final = 4 * MIB
"""
Larger than any event that a provider sends: a seal over reasoning, or a tool call that carries a file.
"""

MAX_LINES: Final = 1 << 20
"""
More than any answer has; empty ones cost time too.
"""

_SHOWN_CHARACTERS: Final = 40
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class Malformed(Exception):
    """
    Raised when what came is no event.

    Args:
        problem: What is wrong; of the text that came, only short plain names are in it.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


async def lines(chunks: AsyncIterable[bytes]) -> AsyncGenerator[str, None]:
    r"""
    The lines of a stream, however it is cut into chunks; ended by `\n`, `\r\n` or `\r`.

    Raises:
        Malformed: If one is too long, or not UTF-8, or there are too many.
    """
    pending: list[bytes] = []
    size = 0
    count = 0
    after_return = False
    async for chunk in chunks:
        data = chunk
        if after_return and data[:1] == b"\n":
            # The other half of a line end that was cut in two.
            data = data[1:]
        if not chunk:
            continue
        after_return = chunk[-1:] == b"\r"
        start = 0
        for match in _LINE_END.finditer(data):
            piece = data[start : match.start()]
            start = match.end()
            count += 1
            if count > MAX_LINES:
                raise Malformed("more lines than any answer has")
            yield _text_line([*pending, piece], size + len(piece))
            pending, size = [], 0
        rest = data[start:]
        size += len(rest)
        if size > MAX_LINE_BYTES:
            raise Malformed("a line that is too long")
        if rest:
            pending.append(rest)
    if pending:
        yield _text_line(pending, size)


def _text_line(pieces: list[bytes], size: int) -> str:
    if size > MAX_LINE_BYTES:
        raise Malformed("a line that is too long")
    try:
        return b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed("text that is not UTF-8") from None


async def server_events(chunks: AsyncIterable[bytes]) -> AsyncGenerator[str, None]:
    """
    The data of each server-sent event. Names of events are left out: their data says what they are.

    An event that the stream breaks off in is none.

    Raises:
        Malformed: If a line or an event is too long, or not UTF-8.
    """
    data: list[str] = []
    size = 0
    first = True
    async for line in lines(chunks):
        text = line.removeprefix("\ufeff") if first else line
        first = False
        if not text:
            if data:
                yield "\n".join(data)
            data, size = [], 0
            continue
        name, _, value = text.partition(":")
        # An empty name is a comment, which keeps a connection alive.
        if name == "data":
            data.append(value.removeprefix(" "))
            size += len(value) + 1
            if size > MAX_LINE_BYTES:
                raise Malformed("an event that is too long")


def json_object(text: str) -> Node:
    """
    The JSON object that a text is.

    Raises:
        Malformed: If it is none.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        raise Malformed("what is not JSON") from None
    return Node.of(value)


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        msg = "a number beyond all numbers"
        raise ValueError(msg)
    return value


# One for all: made anew for each event, it took longer than most events.
_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def json_map(text: str) -> dict[str, Value]:
    """
    The JSON object that a text is, as a value that a payload can carry.

    Raises:
        Malformed: If it is none.
    """
    return payload(json_object(text).values)


def payload(value: Mapping[str, Any]) -> dict[str, Value]:
    """
    A JSON object, if a payload can carry it: no half characters, no numbers beyond 64 bits, not too deep.

    Raises:
        Malformed: If none can.
    """
    try:
        codec.encode(dict(value))
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise Malformed("an object that no payload can carry") from None
    return dict(value)


@dataclass(frozen=True, slots=True)
class Node:
    """
    A JSON object while it is read.

    Attributes:
        values: By key.
    """

    values: dict[str, Any]

    @classmethod
    def of(cls, value: object) -> Node:
        """
        The value, if it is an object.

        Raises:
            Malformed: If it is none.
        """
        if not isinstance(value, dict):
            raise Malformed("what is no JSON object")
        return cls(value)

    def has(self, key: str) -> bool:
        """
        Whether the key is there, and not null.
        """
        return self.values.get(key) is not None

    def text(self, key: str) -> str:
        """
        A text that must be there.

        Raises:
            Malformed: If it is not, or has half a character in it.
        """
        value = self.values.get(key)
        if not isinstance(value, str):
            raise Malformed(f"no text {key}")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Malformed("text that is not UTF-8") from None
        return value

    def text_or(self, key: str, default: str = "") -> str:
        """
        A text, or the default where there is none or null.

        Raises:
            Malformed: If something else is there.
        """
        return self.text(key) if self.has(key) else default

    def node(self, key: str) -> Node:
        """
        An object that must be there.

        Raises:
            Malformed: If it is not.
        """
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise Malformed(f"no object {key}")
        return Node(value)

    def node_or_none(self, key: str) -> Node | None:
        """
        An object, or `None` where there is none or null.

        Raises:
            Malformed: If something else is there.
        """
        return self.node(key) if self.has(key) else None

    def nodes(self, key: str) -> list[Node]:
        """
        A list of objects; empty where there is none or null.

        Raises:
            Malformed: If something else is there.
        """
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise Malformed(f"no list {key}")
        return [Node.of(item) for item in value]

    def index(self, key: str) -> int:
        """
        A small number that must be there.

        Raises:
            Malformed: If it is not.
        """
        value = self.count(key)
        if value is None:
            raise Malformed(f"no number {key}")
        return value

    def count(self, key: str) -> int | None:
        """
        A count, or `None` where there is none or null.

        Raises:
            Malformed: If it is no whole number of a believable size.
        """
        value = self.values.get(key)
        if value is None:
            return None
        if type(value) is not int or not 0 <= value <= MAX_TALLY:
            raise Malformed(f"no number {key}")
        return value


def plain(name: str) -> str:
    """
    A stranger's word, fit to stand in a message: short, and nothing but a name.
    """
    kept = re.sub(r"[^A-Za-z0-9._/-]", "?", name[:_SHOWN_CHARACTERS])
    return kept or "?"


def peek(body: bytes) -> Node:
    """
    The object that a body is, or an empty one: for what is said of errors, which may be anything.
    """
    with suppress(Malformed, UnicodeDecodeError):
        return json_object(body.decode())
    return Node({})

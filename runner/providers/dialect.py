"""
What the dialects of providers have in common: a request becomes a JSON object, JSON objects become events.

No dialect does I/O. Those that read are handed what strangers wrote: a kind of event that is not on a
dialect's list is an error, never skipped, because what is not understood can't be known to be harmless.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from runner.errors import RequestUnsupported
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Reasoning,
    StreamEvent,
    TextPart,
    ToolResult,
)
from runner.providers.wire import Malformed, Node, json_object, plain

OUTPUT_NAME: Final = "answer"
"""
What the schema of an answer is called where it must have a name.
"""


class Said(Exception):
    """
    Raised when an event speaks of an error.

    Args:
        error: What it says of it.
    """

    def __init__(self, error: Node) -> None:
        super().__init__()
        self.error = error


class Reader(Protocol):
    """
    Reads the objects of one stream.
    """

    def take(self, event: Node) -> Iterable[StreamEvent]:
        """
        What the next object says.

        Raises:
            Malformed: If it is none of this dialect.
            Said: If it speaks of an error.
            ProviderError: If it ends the answer in a way that is none.
        """

    def finish(self) -> Iterable[StreamEvent]:
        """
        What was held back until the stream had ended: all of it when the answer is complete, nothing else.

        Raises:
            Malformed: If what was held back does not make sense.
        """


class Dialect(Protocol):
    """
    How to speak with a kind of provider.

    Attributes:
        kind: Its name in a profile.
    """

    kind: str

    def body(self, name: str, request: ModelRequest) -> dict[str, Any]:
        """
        The request as the provider takes it; the same request gives the same bytes.

        Args:
            name: The provider's, for errors.
            request: What is asked.

        Raises:
            RequestUnsupported: If it can't be asked there.
        """

    def reader(self, name: str, request: ModelRequest) -> Reader:
        """
        Reads the answer to `request`.
        """


def body_of(dialect: Dialect, name: str, request: ModelRequest) -> dict[str, Any]:
    """
    The request as the provider takes it, if it can be said in JSON: parts of it may come from a guest.

    Raises:
        RequestUnsupported: If it can't be asked there, or has in it what JSON has not.
    """
    try:
        body = dialect.body(name, request)
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError, RecursionError, Malformed):
        raise RequestUnsupported(name, "words for a request that is no JSON") from None
    return body


def instructions(request: ModelRequest) -> str | None:
    """
    All that stands above the conversation, a blank line between two.
    """
    parts = [request.system, *(message.text for message in request.messages if message.role == "system")]
    return "\n\n".join(part for part in parts if part) or None


def conversation(request: ModelRequest) -> Iterator[Message]:
    """
    The messages that say something, those of role `system` left out.
    """
    return (message for message in request.messages if message.role != "system" and message.parts)


def base64_of(image: ImagePart) -> str:
    """
    A picture's bytes as text.
    """
    return base64.b64encode(image.data).decode("ascii")


def data_url(image: ImagePart) -> str:
    """
    A picture as an address that holds it.
    """
    return f"data:{image.media_type};base64,{base64_of(image)}"


def result_text(name: str, result: ToolResult) -> str:
    """
    A tool's result, for a dialect that has text only there.

    Raises:
        RequestUnsupported: If there is a picture in it.
    """
    if isinstance(result.content, str):
        return result.content
    texts = [part.text for part in result.content if isinstance(part, TextPart)]
    if len(texts) != len(result.content):
        raise RequestUnsupported(name, "pictures in tool results")
    return "".join(texts)


def own_reasoning(part: Reasoning, kind: str, types: frozenset[str]) -> dict[str, Any] | None:
    """
    What a reasoning part is to the dialect that made it; `None` when another did, or when it is none.
    """
    if part.made_by != kind:
        return None
    try:
        node = json_object(part.data)
    except Malformed:
        return None
    return node.values if node.values.get("type") in types else None


def dump(value: Mapping[str, Any]) -> str:
    """
    An object as JSON, the same each time.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def unknown(what: str, name: str) -> Malformed:
    """
    The complaint about something that is not on a list.
    """
    return Malformed(f"{what} {plain(name)}, which it was not expected to")


def refuse_effort(name: str, request: ModelRequest, levels: tuple[str, ...]) -> None:
    """
    Raises:
        RequestUnsupported: If the request wants a level that is none of these.
    """
    if request.effort is not None and request.effort not in levels:
        have = ", ".join(levels)
        raise RequestUnsupported(name, f"effort {request.effort}; it has {have}")

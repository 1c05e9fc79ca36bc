"""
The port: what a model is asked, and the events that its answer comes as.

There are no sampling parameters: current models refuse them, so an agent must not be able to rely on them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from runner.codec import Value

Role = Literal["system", "user", "assistant"]
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")

StopReason = Literal["end", "max_tokens", "stop_sequence", "tool_calls", "refusal"]
STOP_REASONS: Final[tuple[StopReason, ...]] = ("end", "max_tokens", "stop_sequence", "tool_calls", "refusal")

ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
IMAGE_TYPES: Final[tuple[ImageType, ...]] = ("image/png", "image/jpeg", "image/gif", "image/webp")

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""
How much a model is to think. A provider refuses a level that it has not, before it asks anybody.
"""


@dataclass(frozen=True, slots=True)
class TextPart:
    """
    A text.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """
    A picture.

    Attributes:
        media_type: What it is.
        data: Its bytes, as they stand in a file.
    """

    media_type: ImageType
    data: bytes


@dataclass(frozen=True, slots=True)
class ToolCall:
    """
    A model wants a tool. As an event it is complete.

    Attributes:
        id: What the result must name; the provider chose it.
        name: Which tool. Untrusted: perhaps none that was offered.
        arguments: A JSON object, held against no schema yet.
        seal: What the provider wants to see again with the call, of no meaning to anyone else; or `None`.
    """

    id: str
    name: str
    arguments: Mapping[str, Value]
    seal: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """
    What came of a tool.

    Attributes:
        call_id: Of the call, in the message before.
        content: What the model is told.
        is_error: Whether that is what went wrong.
    """

    call_id: str
    content: str | tuple[TextPart | ImagePart, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """
    A piece of a model's thinking, complete, for the provider to see again. Others drop it.

    Attributes:
        made_by: Kind of the provider that can read it, such as `anthropic`.
        data: JSON, of no meaning to anyone else: kept and sent back as it is.
        text: What may be shown of it; often nothing.
    """

    made_by: str
    data: str
    text: str = ""


Part: TypeAlias = TextPart | ImagePart | ToolCall | ToolResult | Reasoning
"""
Closed. `ToolCall` and `Reasoning` are of role `assistant`, `ImagePart` and `ToolResult` of role `user`.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """
    One turn of a conversation.

    Attributes:
        role: Who said it.
        content: What was said: a text, or parts in their order.
    """

    role: Role
    content: str | tuple[Part, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        """
        The content as parts; an empty text is none.
        """
        if isinstance(self.content, str):
            return (TextPart(self.content),) if self.content else ()
        return self.content

    @property
    def text(self) -> str:
        """
        Its texts, one after the other.
        """
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """
    A tool as a model is told of it.

    Attributes:
        name: Letters, digits, `_` and `-`, 64 at most: what every provider takes.
        description: What it does and when to use it.
        input_schema: JSON Schema of its arguments, an object.
    """

    name: str
    description: str
    input_schema: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """
    One request for one turn of a model.

    Attributes:
        messages: The whole conversation, oldest first; one at least. Those of role `system` are told to the
            model above all others, after `system`, whatever stands between them.
        model: The model's name at the provider, without the provider's own name.
        system: Instructions that stand above the conversation, or `None`.
        max_tokens: Most tokens that the answer may have, or `None` for the provider's own bound.
        tools: What it may call; whether it does is its own choice.
        output_schema: JSON Schema that the answer's text must meet, or `None`.
        effort: How much it is to think, or `None` for the provider's own choice.
    """

    messages: tuple[Message, ...]
    model: str
    system: str | None = None
    max_tokens: int | None = None
    tools: tuple[ToolSpec, ...] = ()
    output_schema: Mapping[str, Value] | None = None
    effort: Effort | None = None

    @property
    def last_user_text(self) -> str:
        """
        The newest message of role `user` that says something, tool results aside; or an empty text.
        """
        texts = (message.text for message in reversed(self.messages) if message.role == "user")
        return next((text for text in texts if text), "")


@dataclass(frozen=True, slots=True)
class TextDelta:
    """
    The next piece of the answer's text.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """
    What the request cost, by one convention whatever the provider's own is. What it does not say is `None`,
    never zero.

    Attributes:
        input_tokens: Tokens read, those from and into a cache included.
        output_tokens: Tokens written, those of reasoning included.
        cache_read_tokens: Of the tokens read, those that came from a cache.
        cache_write_tokens: Of the tokens read, those that were put into one.
        reasoning_tokens: Of the tokens written, those that were thinking.
    """

    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None

    @property
    def fresh_tokens(self) -> int | None:
        """
        Of the tokens read, those that had nothing to do with a cache; `None` when any part is not known.
        """
        if self.input_tokens is None or self.cache_read_tokens is None or self.cache_write_tokens is None:
            return None
        return self.input_tokens - self.cache_read_tokens - self.cache_write_tokens


NOTHING_USED: Final = Usage(0, 0, 0, 0, 0)
"""
Of a request that nobody took.
"""

UNKNOWN_USAGE: Final = Usage(None, None)
"""
Of a request of which nobody said what it cost.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """
    An attempt failed, and another will be made; nothing of an answer has come yet.

    Attributes:
        attempt: Number of the one that failed, from 1.
        provider: Who was asked.
        problem: What went wrong, as `ProviderError` says it.
        status: HTTP status, when there was one.
        wait_ms: How long to wait before the next.
    """

    attempt: int
    provider: str
    problem: str
    status: int | None
    wait_ms: int


@dataclass(frozen=True, slots=True)
class Stop:
    """
    The answer is complete; nothing follows.

    Attributes:
        reason: Why it ended here.
    """

    reason: StopReason


StreamEvent: TypeAlias = TextDelta | Reasoning | ToolCall | Usage | Retry | Stop
"""
Closed: whoever reads a stream handles each of them and ends with `assert_never`.
"""


class Provider(Protocol):
    """
    Whoever answers for models.

    Guarantees: the last event of a stream is `Stop`, and at most one `Usage` comes before it. `Retry` comes
    only before all others. No two `ToolCall`s of a stream have the same `id`. Text that was yielded before an
    error is part of no answer, and no tool that was called there may be used.

    Does not guarantee: that asking twice gives the same answer, or that a request that failed cost nothing.
    """

    @property
    def name(self) -> str:
        """
        The provider's name, as in `PROVIDER/MODEL`.
        """
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        Ask, and yield the answer as it comes. Close the generator to give the request up.

        Raises:
            ProviderError: While iterating, if the provider can't be reached, refuses, or breaks off. Its
                message carries nothing of keys, addresses or other inner matters of the host: guests
                read it. `ContextOverflow` and `RequestUnsupported` are two kinds of it.
        """
        ...

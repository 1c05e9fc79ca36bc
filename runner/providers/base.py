"""
The port: what a model is asked, and the events that its answer comes as.

There are no sampling parameters: current models refuse them, so an agent must not be able to rely on them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

Role = Literal["system", "user", "assistant"]
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")

StopReason = Literal["end", "max_tokens", "stop_sequence", "tool_calls", "refusal"]
STOP_REASONS: Final[tuple[StopReason, ...]] = ("end", "max_tokens", "stop_sequence", "tool_calls", "refusal")


@dataclass(frozen=True, slots=True)
class Message:
    """
    One turn of a conversation.

    Attributes:
        role: Who said it.
        content: What was said.
    """

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """
    One request for one turn of a model.

    Attributes:
        messages: The whole conversation, oldest first; one at least.
        model: The model's name at the provider, without the provider's own name.
        system: Instructions that stand above the conversation, or `None`.
        max_tokens: Most tokens that the answer may have, or `None` for the provider's own bound.
    """

    messages: tuple[Message, ...]
    model: str
    system: str | None = None
    max_tokens: int | None = None

    @property
    def last_user_text(self) -> str:
        """
        The newest message of role `user`, or an empty text.
        """
        texts = (message.content for message in reversed(self.messages) if message.role == "user")
        return next(texts, "")


@dataclass(frozen=True, slots=True)
class TextDelta:
    """
    The next piece of the answer's text.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """
    What the request cost; what the provider does not say is `None`, never zero.

    Attributes:
        input_tokens: Tokens read, those from and into a cache included.
        output_tokens: Tokens written.
    """

    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Stop:
    """
    The answer is complete; nothing follows.

    Attributes:
        reason: Why it ended here.
    """

    reason: StopReason


StreamEvent: TypeAlias = TextDelta | Usage | Stop
"""
Closed: whoever reads a stream handles each of them and ends with `assert_never`.
"""


class Provider(Protocol):
    """
    Whoever answers for models.

    Guarantees: the last event of a stream is `Stop`, and at most one `Usage` comes before it. Text that
    was yielded before an error is part of no answer.

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
                read it.
        """
        ...

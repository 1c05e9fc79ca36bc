"""
`llm.*`: asking a model.

A model is named `PROVIDER/MODEL`. Whether an agent may ask it is decided at each request, because the
import says only that it may ask some model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple, assert_never

from runner.capabilities.base import Emit, Handler, Refusal
from runner.capabilities.usage import UsageMeter
from runner.codec import Value
from runner.errors import ProviderError
from runner.kernel.abi import Status
from runner.package.fields import FieldProblem, Fields, flag, list_of, matching, one_of, positive, text
from runner.policy.grants import Grants
from runner.providers.base import (
    ROLES,
    Message,
    ModelRequest,
    Provider,
    Reasoning,
    Retry,
    Stop,
    StopReason,
    StreamEvent,
    TextDelta,
    ToolCall,
    Usage,
)
from runner.units import MIB

MAX_ANSWER_CHARACTERS: Final = 2 * MIB
"""
More text than any model writes in one turn; an answer beyond it is given up.
"""

_MODEL: Final = matching(
    re.compile(r"[A-Za-z0-9_-]{1,64}/[A-Za-z0-9._:/@+-]{1,128}", re.ASCII),
    'a model such as "scripted/default"',
)
_PROVIDER: Final = matching(
    re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII), 'a provider\'s name such as "scripted"'
)
_MODEL_THERE: Final = matching(
    re.compile(r"[A-Za-z0-9._:/@+-]{1,128}", re.ASCII), "a model's name at its provider"
)
_DEFAULT_MODEL: Final = "default"
_NOTHING_USED: Final = Usage(0, 0)
_UNKNOWN: Final = Usage(None, None)


class ModelAnswer(NamedTuple):
    """
    One turn of a model, whole.

    Attributes:
        text: What it said.
        stop: Why it ended.
        usage: What it cost.
    """

    text: str
    stop: StopReason
    usage: Usage


class Asked(NamedTuple):
    """
    A request of a guest, checked.

    Attributes:
        model: `PROVIDER/MODEL`, or `None` for the host's own choice.
        messages: The conversation.
        system: Instructions, or `None`.
        max_tokens: Bound of the answer, or `None`.
        stream: Whether the answer is to come in parts.
    """

    model: str | None
    messages: tuple[Message, ...]
    system: str | None
    max_tokens: int | None
    stream: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """
    The handlers of `llm.*` for one instance.

    Attributes:
        providers: Providers of this host, by name.
        default_model: The model of a request that names none.
        grants: Which models the agent may ask.
        usage: Counts what it uses.
    """

    providers: Mapping[str, Provider]
    default_model: str
    grants: Grants
    usage: UsageMeter

    def handlers(self) -> dict[str, Handler]:
        """
        Handler by operation.
        """
        return {
            "llm.chat": self.chat,
            "llm.complete": self.complete,
            "llm.usage": self.used,
            "llm.providers": self.listing,
        }

    async def chat(self, request: Value, emit: Emit) -> Value:
        """
        The model's final text. No tools exist in this host, so its first turn is the final one.
        """
        asked = read_request(request)
        model, answer = await self._ask("llm.chat", asked, emit)
        return {"text": answer.text, **_ending(model, answer)}

    async def complete(self, request: Value, emit: Emit) -> Value:
        """
        One turn of the model, as content.
        """
        asked = read_request(request)
        model, answer = await self._ask("llm.complete", asked, emit)
        content = [{"type": "text", "text": answer.text}] if answer.text else []
        return {"content": content, **_ending(model, answer)}

    async def used(self, request: Value, emit: Emit) -> Value:
        """
        What the instance has used so far.
        """
        del emit
        with Fields(request):
            return self.usage.to_wire()

    async def listing(self, request: Value, emit: Emit) -> Value:
        """
        The providers whose model of choice is granted; nothing of keys or addresses.
        """
        del emit
        own, _, chosen = self.default_model.partition("/")
        with Fields(request):
            models = {name: chosen if name == own else _DEFAULT_MODEL for name in self.providers}
        return [
            {"id": name, "name": name, "model": model}
            for name, model in sorted(models.items())
            if self.grants.allows_model(f"{name}/{model}")
        ]

    async def _ask(self, operation: str, asked: Asked, emit: Emit) -> tuple[str, ModelAnswer]:
        model = asked.model or self.default_model
        provider, name = self._provider(operation, model)
        request = ModelRequest(
            messages=asked.messages, model=name, system=asked.system, max_tokens=asked.max_tokens
        )
        return model, await self._follow(provider, request, emit if asked.stream else None)

    def _provider(self, operation: str, model: str) -> tuple[Provider, str]:
        # Granted first, there second: what this host has is no matter of an agent that may not ask it.
        decision = self.grants.decide_model(model, operation)
        if not decision.allowed:
            fix = f"add {decision.flag}" if decision.flag else f"remove {decision.rule}"
            raise Refusal(Status.DENIED, f"model {model} is not granted; {fix}")
        name, _, rest = model.partition("/")
        if name not in self.providers:
            raise Refusal(Status.UNSUPPORTED, f"this host has no provider {name}")
        return self.providers[name], rest

    async def _follow(self, provider: Provider, request: ModelRequest, emit: Emit | None) -> ModelAnswer:
        """
        Read the stream to its end, and count the request however it ends.
        """
        turn = _Turn(provider.name)
        try:
            async with aclosing(provider.stream(request)) as events:
                async for event in events:
                    await turn.take(event, emit)
                    if turn.stop is not None:
                        break
            return turn.answer()
        except ProviderError as error:
            # A refusal by status costs nothing; what a broken stream cost is known only if it said so.
            if error.status is not None and not turn.pieces:
                turn.usage = _NOTHING_USED
            raise
        finally:
            self.usage.add(turn.usage)


@dataclass(slots=True)
class _Turn:
    """
    What has come of a model's turn.
    """

    provider: str
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    usage: Usage = _UNKNOWN
    stop: StopReason | None = None

    async def take(self, event: StreamEvent, emit: Emit | None) -> None:
        match event:
            case TextDelta():
                self.characters += len(event.text)
                if self.characters > MAX_ANSWER_CHARACTERS:
                    raise ProviderError(self.provider, "the answer is too long")
                self.pieces.append(event.text)
                if emit is not None:
                    await emit({"text": event.text})
            case Usage():
                self.usage = event
            case Stop():
                self.stop = event.reason
            case ToolCall():
                raise ProviderError(self.provider, "called a tool that it was not offered")
            case Reasoning() | Retry():
                pass
            case _:
                assert_never(event)

    def answer(self) -> ModelAnswer:
        if self.stop is None:
            raise ProviderError(self.provider, "the answer broke off")
        return ModelAnswer("".join(self.pieces), self.stop, self.usage)


def read_request(value: Value) -> Asked:
    """
    The request that a guest's payload states.

    Raises:
        FieldProblem: If it is not of the ABI's shape.
    """
    with Fields(value) as fields:
        provider = fields.optional("provider", _PROVIDER)
        asked = Asked(
            messages=fields.required("messages", list_of(_message, at_least=1)),
            system=fields.optional("system", text),
            model=_model(fields, provider),
            max_tokens=fields.optional("max_tokens", positive),
            stream=fields.optional("stream", flag) or False,
        )
        fields.optional("tools", list_of(_tool))
    return asked


def _model(fields: Fields, provider: str | None) -> str | None:
    """
    `PROVIDER/MODEL`: written so, or with the provider in a key of its own.
    """
    if provider is None:
        return fields.optional("model", _MODEL)
    return f"{provider}/{fields.optional('model', _MODEL_THERE) or _DEFAULT_MODEL}"


def _message(value: Value, at: str) -> Message:
    with Fields(value, at) as fields:
        return Message(fields.required("role", one_of(ROLES)), fields.required("content", text))


def _tool(value: Value, at: str) -> str:
    name = text(value, at)
    raise FieldProblem(at, f"no tool named {name[:64]!r} is granted")


def _ending(model: str, answer: ModelAnswer) -> dict[str, Value]:
    used = answer.usage
    usage = {"calls": 1, "input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
    return {"stop": answer.stop, "model": model, "usage": usage}

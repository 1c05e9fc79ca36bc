"""
`llm.*`: asking a model.

A model is named `PROVIDER/MODEL`. Whether an agent may ask it is decided at each request, because the
import says only that it may ask some model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from runner.capabilities.asking import Asking, Purse
from runner.capabilities.base import Emit, Handler, Refusal, StepHandler, Steps
from runner.capabilities.loop import Loop
from runner.capabilities.progress import Progress, Turn
from runner.capabilities.requests import DEFAULT_MODEL, Asked, part_to_wire, read_request
from runner.capabilities.usage import Tally
from runner.codec import Value
from runner.kernel.abi import Status
from runner.package.fields import FieldProblem, Fields
from runner.policy.grants import Grants
from runner.providers.base import Message, ModelRequest, Provider, ToolCall, ToolSpec

if TYPE_CHECKING:
    from runner.capabilities.tool import Tools

_SHOWN_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Llm:
    """
    The handlers of `llm.*` for one instance.

    Attributes:
        providers: Providers of this host, by name.
        default_model: The model of a request that names none.
        grants: Which models the agent may ask.
        purse: What it may spend, and counts what it uses.
        tools: The tools that models may call for it.
        persona: What stands above all that the agent tells a model, or `None`.
    """

    providers: Mapping[str, Provider]
    default_model: str
    grants: Grants
    purse: Purse
    tools: Tools
    persona: str | None = None

    def handlers(self) -> dict[str, Handler]:
        """
        Handler by operation.
        """
        return {"llm.usage": self.used, "llm.providers": self.listing}

    def step_handlers(self) -> dict[str, StepHandler]:
        """
        Handlers that take several steps, by operation.
        """
        return {"llm.chat": self.chat, "llm.complete": self.complete}

    async def chat(self, request: Value, emit: Emit, steps: Steps) -> Value:
        """
        The model's final text, when it has had the tools that it wanted.
        """
        asked, turns = read_request(request, loops=True), self.purse.budget.turns
        call = self._call("llm.chat", asked, emit, steps)
        loop = Loop(
            ask=call.ask,
            tools=self.tools,
            offered=asked.tools,
            steps=steps,
            progress=call.progress,
            max_turns=asked.max_turns if turns is None else min(asked.max_turns, turns),
            emit=call.emit,
            tell=self.purse.tell,
        )
        turn, too_many = await loop.run(call.messages)
        return {"text": turn.text, **call.ending("max_turns" if too_many else turn.stop)}

    async def complete(self, request: Value, emit: Emit, steps: Steps) -> Value:
        """
        One turn of the model, as content; the tools that it calls are the agent's to use.
        """
        asked = read_request(request, loops=False)
        call = self._call("llm.complete", asked, emit, steps)
        turn = call.progress.turns.get(1)
        if turn is None:
            turn = await call.ask(1, call.messages)
        elif call.emit is not None and turn.text:
            await call.emit({"text": turn.text})
        # A call that was cut off is none, though it may look whole.
        usable = turn.stop == "tool_calls"
        parts = [part for part in turn.parts if usable or not isinstance(part, ToolCall)]
        return {"content": [part_to_wire(part) for part in parts], **call.ending(turn.stop)}

    async def used(self, request: Value, emit: Emit) -> Value:
        """
        What the instance has used so far.
        """
        del emit
        with Fields(request):
            return self.purse.usage.to_wire()

    async def listing(self, request: Value, emit: Emit) -> Value:
        """
        The providers whose model of choice is granted; nothing of keys or addresses.
        """
        del emit
        own, _, chosen = self.default_model.partition("/")
        with Fields(request):
            models = {name: chosen if name == own else DEFAULT_MODEL for name in self.providers}
        return [
            {"id": name, "name": name, "model": model}
            for name, model in sorted(models.items())
            if self.grants.allows_model(f"{name}/{model}")
        ]

    def _call(self, operation: str, asked: Asked, emit: Emit, steps: Steps) -> _Call:
        model = asked.model or self.default_model
        specs = self._specs(asked.tools)
        provider, name = self._provider(operation, model)
        system, messages = _with_persona(self.persona, asked)
        request = ModelRequest(
            messages=messages,
            model=name,
            system=system,
            max_tokens=asked.max_tokens,
            tools=specs,
            output_schema=asked.output_schema,
            effort=asked.effort,
        )
        return _Call(
            model=model,
            provider=provider,
            request=request,
            purse=self.purse,
            steps=steps,
            progress=Progress.of(steps.past),
            emit=emit if asked.stream else None,
        )

    def _specs(self, names: tuple[str, ...]) -> tuple[ToolSpec, ...]:
        if not names:
            return ()
        granted = {tool.name: tool for tool in self.tools.granted}
        for index, name in enumerate(names):
            if name not in granted:
                problem = f"no tool named {name[:_SHOWN_CHARACTERS]!r} is granted"
                raise FieldProblem(f"tools[{index}]", problem)
        return tuple(ToolSpec(name, granted[name].description, granted[name].input_schema) for name in names)

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


@dataclass(slots=True, kw_only=True)
class _Call:
    """
    One call of `llm.chat` or `llm.complete`, for one attempt.
    """

    model: str
    provider: Provider
    request: ModelRequest
    purse: Purse
    steps: Steps
    progress: Progress
    emit: Emit | None

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.request.messages

    async def ask(self, number: int, messages: tuple[Message, ...]) -> Turn:
        turn = await Asking(
            number=number,
            model=self.model,
            provider=self.provider,
            request=replace(self.request, messages=messages),
            purse=self.purse,
            steps=self.steps,
            emit=self.emit,
        ).ask()
        self.progress.turns[number] = turn
        self.progress.ended.append(turn.ended)
        return turn

    def ending(self, stop: str) -> dict[str, Value]:
        used = Tally()
        for ended in self.progress.ended:
            used.add(ended.usage, ended.cost_pico)
        return {"stop": stop, "model": self.model, "usage": used.to_wire()}


def _with_persona(persona: str | None, asked: Asked) -> tuple[str | None, tuple[Message, ...]]:
    """
    What stands above the conversation, and the rest of it. Under a persona there is one such text: the
    persona, and after blank lines what the agent says there.
    """
    if persona is None:
        return asked.system, asked.messages
    own = [asked.system] if asked.system else []
    rest = asked.messages
    while rest and rest[0].role == "system":
        own.append(rest[0].text)
        rest = rest[1:]
    # A conversation of nothing else is still one.
    messages = rest or (Message("user", ""),)
    return "\n\n".join((persona, *(text for text in own if text))), messages

"""
The inside of an `llm.chat`: what is on record of it, and what happens after a death at any point.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import anyio
import pytest

from runner import codec
from runner.capabilities.base import CallResult, Steps
from runner.codec import Value
from runner.errors import ApprovalPending, EffectUncertain, InternalError, RunnerError
from runner.journal.records import Decision, EffectClass, Receipt, Record, Resolution, Slice, Start
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Machine
from runner.kernel.state import Call
from runner.policy.gate import Ruling
from runner.providers.base import ModelRequest, Stop, StreamEvent
from runner.session.chronicle import Chronicle
from runner.session.folding import Fold
from runner.session.recovery import is_step
from runner.session.session import Session
from runner.session.ticker import Ticker
from runner.tools.registry import ToolRegistry
from tests.capabilities.doubles import HI, Agent, Model, Shed, calls, says
from tests.session.doubles import Emit
from tests.session.test_rulings import ASKS, MESSAGE

MakeMachine = Callable[..., Machine]

TOOLS = ["look", "send"]


class Died(InternalError):
    """The process is gone."""


@dataclass(slots=True)
class World:
    """
    What outlives a process: a journal, a model that counts, tools that leave marks.
    """

    dies_at: int = 0
    ask: tuple[str, ...] = ()
    keeps: bool = True
    records: list[Record] = field(default_factory=list)
    boundaries: int = 0
    shed: Shed = field(default_factory=Shed)
    model: Model = field(default_factory=lambda: Model(calls("look", "send", "look"), says("done")))
    where: str = ""
    overruns: bool = False

    def boundary(self, where: str) -> None:
        """A point at which the process may die; after that nothing of it works."""
        self.boundaries += 1
        if 0 < self.dies_at <= self.boundaries:
            self.where = self.where or where
            raise Died(where)

    def hand_in(self, records: Sequence[Record]) -> Callable[[], object]:
        """Keep records, once somebody waits for it."""

        def confirm() -> None:
            kinds = "+".join(type(record).__name__ for record in records)
            self.boundary(f"before {kinds}")
            self.records.extend(records)
            self.boundary(f"after {kinds}")

        return confirm

    # The gate.

    def judge(self, call: Call) -> Ruling:
        """Ask about some tools."""
        name = codec.decode(call.request).get("name")
        return Ruling("ask", f"--ask tool:{name}") if name in self.ask else Ruling("allow", "--allow all")

    def effect(self, call: Call) -> EffectClass:
        """Only sending can't be repeated."""
        return "effectful" if codec.decode(call.request).get("name") == "send" else "idempotent"

    # What calls do.

    async def handle(
        self, operation: str, request: Value, emit: Emit, *, execution: str = "", steps: Steps | None = None
    ) -> CallResult:
        """Chat, whatever the guest said."""
        del request

        async def use(arguments: object) -> Value:
            self.boundary("after a tool")
            return str(arguments)

        async def send(arguments: object) -> Value:
            if self.overruns:
                await anyio.sleep_forever()
            return await use(arguments)

        tools = [self.shed.tool("look", "idempotent", use), self.shed.tool("send", "effectful", send)]
        if self.overruns:
            tools = [replace(tool, timeout_ms=1) if tool.name == "send" else tool for tool in tools]
        async with ToolRegistry(tools) as registry:
            agent = Agent(model=Mortal(self))  # type: ignore[arg-type]
            handlers = agent.handlers(registry)
            return await handlers.handle(
                operation, {**HI, "tools": TOOLS}, emit, execution=execution, steps=steps
            )

    def turns_asked(self) -> list[int]:
        """For each request the number of the turn that it was for."""
        return [1 + sum(each.role == "assistant" for each in asked.messages) for asked in self.model.asked]

    def has_turn(self, number: int) -> bool:
        """Whether a turn is on record."""
        steps = [
            codec.decode(each.payload) for each in self.records if isinstance(each, Receipt) and is_step(each)
        ]
        return any(step["step"] == "turn" and step["turn"] == number for step in steps)


class Mortal:
    """The world's model, seen from a process."""

    name = "scripted"

    def __init__(self, world: World) -> None:
        self._world = world

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The turn that the conversation has come to."""
        model = self._world.model
        model.asked.append(request)
        self._world.boundary("when asked")
        number = 1 + sum(each.role == "assistant" for each in request.messages)
        for event in model.turns[number - 1]:
            assert not isinstance(event, Exception)
            if isinstance(event, Stop):
                self._world.boundary("when answered")
            yield event


def live(world: World, make_machine: MakeMachine, ticker: Ticker) -> Any:
    """
    One process: goes on with what is on record until nothing is under way.

    Returns:
        How the delivery ended, or the error that ended the process.
    """
    fold = Fold(make_machine(ASKS))
    fold.take(enumerate(world.records))
    chronicle = Chronicle(world, world, fold.history, name="rex", clock_ms=lambda: 7)
    ended: list[Any] = []

    async def main() -> None:
        with anyio.fail_after(20):
            async with Session(
                fold.machine, world, ticker, on_log=lambda _: None, chronicle=chronicle, clock_ms=lambda: 7
            ) as session:
                opened = await session.finish_open()
                if opened is None:
                    opened = await session.deliver(MESSAGE, None)
                ended.append(opened)
                await session.drain()

    try:
        anyio.run(main)
    except RunnerError as error:
        return error
    except BaseExceptionGroup as group:
        return group
    return ended[0].failure or ended[0].result


def total_boundaries(make_machine: MakeMachine, ticker: Ticker) -> int:
    """How many there are in a life that nothing ends."""
    world = World()
    assert live(world, make_machine, ticker) == 1
    assert (world.turns_asked(), world.shed.marks) == ([1, 2], ["look 0", "send 1", "look 2"])
    return world.boundaries


def test_after_a_death_at_any_point_no_turn_on_record_is_paid_again_and_no_tool_happens_twice(
    make_machine: MakeMachine, ticker: Ticker
):
    """Of a tool that may not be repeated and was not reported a person says what became of it."""
    places: set[str] = set()
    doubts = 0
    for dies_at in range(1, total_boundaries(make_machine, ticker) + 1):
        world = World(dies_at=dies_at)
        live(world, make_machine, ticker)
        places.add(world.where)
        if any(isinstance(record, Slice) and record.reply for record in world.records):
            # All is over and on record.
            assert (world.turns_asked(), len(world.shed.marks)) == ([1, 2], 3)
            continue
        paid = {number: world.has_turn(number) for number in (1, 2)}
        before = world.turns_asked()
        world.dies_at = 0
        again = live(world, make_machine, ticker)
        if isinstance(again, EffectUncertain):
            doubts += 1
            payload = codec.encode("it was sent")
            world.records.append(Resolution(call=1, ruling="done", payload=payload, by="me", at_ms=8))
            again = live(world, make_machine, ticker)
        assert again == 1, (dies_at, world.where, again)
        asked = world.turns_asked()[len(before) :]
        assert not any(paid[number] for number in asked), (dies_at, world.where)
        assert world.shed.marks.count("send 1") <= 1, (dies_at, world.where)
        for look in ("look 0", "look 2"):
            assert world.shed.marks.count(look) <= 2, (dies_at, world.where)
        told = world.model.results()
        if asked or not paid[2]:
            assert [name for name, _, is_error in told if not is_error] == ["c0", "c1", "c2"], world.where
    assert {"when asked", "when answered", "after a tool"} <= places
    assert doubts >= 2


def test_a_tool_whose_result_is_on_record_never_happens_again(make_machine: MakeMachine, ticker: Ticker):
    """Not even one that may."""
    whole = World()
    live(whole, make_machine, ticker)
    for end in range(2, len(whole.records)):
        world = World(records=whole.records[:end])
        results = [
            codec.decode(record.payload)["part"]
            for record in world.records
            if isinstance(record, Receipt) and is_step(record)
            if codec.decode(record.payload)["step"] == "result"
        ]
        again = live(world, make_machine, ticker)
        if isinstance(again, EffectUncertain):
            continue
        marks = {mark.split()[1] for mark in world.shed.marks}
        assert not marks & {part.partition(".")[2] for part in results}


@pytest.mark.parametrize(
    ("verdict", "marks", "told"),
    [
        ("allow", ["look 0", "send 1", "look 2"], ("c1", "{'n': 1}", False)),
        ("deny", ["look 0", "look 2"], ("c1", "not allowed: not today", True)),
    ],
)
def test_a_tool_that_a_person_has_to_allow_parks_the_whole_call(
    make_machine: MakeMachine, ticker: Ticker, verdict: Literal["allow", "deny"], marks: list[str], told: Any
):
    """Those before it have happened, those after it have not; a refusal is for the model to hear."""
    world = World(ask=("send",))
    pending = live(world, make_machine, ticker)
    assert isinstance(pending, ApprovalPending)
    assert (world.shed.marks, world.turns_asked()) == (["look 0"], [1])
    # Asked again by another process, nothing is done and nobody is asked twice.
    length = len(world.records)
    assert isinstance(live(world, make_machine, ticker), ApprovalPending)
    assert len(world.records) == length
    world.records.append(Decision(call=1, verdict=verdict, rule="not today", by="me", at_ms=8))
    assert live(world, make_machine, ticker) == 1
    assert (world.shed.marks, world.turns_asked()) == (marks, [1, 2])
    assert world.model.results()[1] == told


def test_a_verdict_in_the_same_process_goes_on_with_the_loop(make_machine: MakeMachine, ticker: Ticker):
    """Without a fold in between."""
    world = World(ask=("send",))
    machine = make_machine(ASKS)
    fold = Fold(machine)

    async def main() -> None:
        chronicle = Chronicle(world, world, fold.history, name="rex", clock_ms=lambda: 7)
        with anyio.fail_after(20):
            async with Session(machine, world, ticker, on_log=lambda _: None, chronicle=chronicle) as session:
                told = await session.deliver(DeliveryKind.MESSAGE, None)
                assert isinstance(told.failure, ApprovalPending)
                await session.decide(1, "deny", rule="no", by="me")
                ended = await session.finish_open()
                assert ended is not None
                assert ended.unwrap() == 1

    anyio.run(main)
    assert world.turns_asked() == [1, 2]
    assert world.model.results()[1] == ("c1", "not allowed: no", True)


def test_a_tool_that_overran_and_may_have_happened_leaves_the_call_to_a_person(
    make_machine: MakeMachine, ticker: Ticker
):
    """Its start is on record and no result; the turn before it is not asked for again."""
    world = World()
    world.overruns = True
    uncertain = live(world, make_machine, ticker)
    assert isinstance(uncertain, EffectUncertain)
    assert uncertain.calls == (1,)
    world.overruns = False
    payload = codec.encode("it was sent")
    world.records.append(Resolution(call=1, ruling="done", payload=payload, by="me", at_ms=8))
    assert live(world, make_machine, ticker) == 1
    assert (world.turns_asked(), world.shed.marks) == ([1, 2], ["look 0", "send 1", "look 2"])
    assert world.model.results()[1] == ("c1", "it was sent", False)


def test_policy_and_start_are_on_record_before_a_tool_happens(make_machine: MakeMachine, ticker: Ticker):
    """In the order of the calls, each under the execution of its part."""
    world = World()
    live(world, make_machine, ticker)
    inner = [
        (type(record).__name__, record.execution.partition("/")[2])
        for record in world.records
        if isinstance(record, Start | Receipt) and is_step(record)
    ]
    assert inner == [
        ("Receipt", "1"),
        ("Receipt", "1"),
        ("Start", "1.0"),
        ("Receipt", "1.0"),
        ("Start", "1.1"),
        ("Receipt", "1.1"),
        ("Start", "1.2"),
        ("Receipt", "1.2"),
        ("Receipt", "2"),
        ("Receipt", "2"),
    ]

"""
Calls that wait for a person, and waiting until nothing else is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import anyio
import pytest

from runner.capabilities.base import CallResult
from runner.codec import Value
from runner.errors import ApprovalPending
from runner.journal.records import Decision, EffectClass, Receipt, Record, Start
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.machine import Machine
from runner.kernel.state import Call
from runner.policy.gate import Ruling
from runner.session.chronicle import Chronicle
from runner.session.recovery import CallHistory
from runner.session.session import Session
from runner.session.ticker import Ticker
from tests.session.doubles import Emit, Scripted, at_once

MESSAGE = DeliveryKind.MESSAGE

# Asks once for each message, and replies with 1 if the answer was OK, else with 2.
ASKS = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n)) (drop (call $ask)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (call $answer (select (i32.const 2) (i32.const 1) (i32.lt_s (local.get $status) (i32.const 0)))))
"""

# Asks and replies at once; the answer changes nothing.
LEAVES_BEHIND = """
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n)) (drop (call $ask)) (call $answer (i32.const 0)))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (global.set $count (i32.add (global.get $count) (i32.const 1))))
"""


class Asks:
    """
    A gate that puts every call to a person.
    """

    def judge(self, call: Call) -> Ruling:
        """Ask."""
        del call
        return Ruling("ask", "--ask llm")

    def effect(self, call: Call) -> EffectClass:
        """Nothing may be repeated."""
        del call
        return "effectful"


class Paper:
    """
    A journal in memory.
    """

    keeps = True

    def __init__(self) -> None:
        self.records: list[Record] = []

    def hand_in(self, records: Sequence[Record]) -> Callable[[], object]:
        """Keep them."""
        return lambda: self.records.extend(records)


def session_on(
    machine: Machine, ticker: Ticker, paper: Paper, handlers: Scripted, **hooks: object
) -> Session:
    """A session whose calls all wait for a person."""
    chronicle = Chronicle(paper, Asks(), CallHistory(), name="rex", clock_ms=lambda: 7)
    return Session(
        machine,
        handlers,
        ticker,
        on_log=lambda _: None,
        chronicle=chronicle,
        **hooks,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("verdict", "result"), [("allow", 1), ("deny", 2)])
def test_a_parked_call_goes_on_with_a_persons_verdict(
    make_machine: Callable[..., Machine], ticker: Ticker, verdict: Literal["allow", "deny"], result: int
):
    """Whoever waited is told first; the delivery stays open meanwhile, and nothing has happened."""
    paper, handlers = Paper(), Scripted(at_once)

    async def main() -> None:
        with anyio.fail_after(20):
            async with session_on(make_machine(ASKS), ticker, paper, handlers) as session:
                told = await session.deliver(MESSAGE, None)
                assert isinstance(told.failure, ApprovalPending)
                assert handlers.started == []
                await session.decide(1, verdict, rule="so be it", by="me")
                ended = await session.finish_open()
                assert ended is not None
                assert (ended.delivery, ended.unwrap()) == (told.delivery, result)

    anyio.run(main)
    ruled = [record for record in paper.records if isinstance(record, Decision)]
    assert [(record.verdict, record.by) for record in ruled] == [("ask", "policy"), (verdict, "me")]
    effects = [type(record) for record in paper.records if isinstance(record, Start | Receipt)]
    assert effects == ([Start, Receipt] if verdict == "allow" else [])


def test_only_what_waits_is_ruled_on(make_machine: Callable[..., Machine], ticker: Ticker):
    """A call that nobody made, or that has its verdict, is the caller's mistake."""

    async def main() -> None:
        with anyio.fail_after(20):
            async with session_on(make_machine(ASKS), ticker, Paper(), Scripted(at_once)) as session:
                await session.deliver(MESSAGE, None)
                with pytest.raises(ValueError, match=r"^call 2 does not wait for a decision$"):
                    await session.decide(2, "allow", rule="", by="me")

    anyio.run(main)


def test_draining_waits_for_effects_but_not_for_people(make_machine: Callable[..., Machine], ticker: Ticker):
    """What was begun has its answer handed over; what is parked stays so."""
    machine, ended = make_machine(LEAVES_BEHIND), list[bool]()
    go_on = anyio.Event()

    async def slowly(operation: str, request: Value, emit: Emit) -> CallResult:
        del operation, request, emit
        await go_on.wait()
        return CallResult(Status.OK, None)

    async def main() -> None:
        with anyio.fail_after(20):
            session = session_on(machine, ticker, Paper(), Scripted(slowly), after_slice=ended.append)
            async with session, anyio.create_task_group() as tasks:
                await session.deliver(MESSAGE, None)
                await session.deliver(MESSAGE, None)
                await session.drain()
                await session.decide(1, "allow", rule="", by="me")
                tasks.start_soon(release)
                await session.drain()
                assert [call.number for call in machine.calls] == [2]

    async def release() -> None:
        go_on.set()

    anyio.run(main)
    assert ended == [True, True, False]

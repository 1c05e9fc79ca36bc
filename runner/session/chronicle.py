"""
Between a session and its journal: nothing leaves the host before the record of it is durable.

The order for one call is: the slice that asked, the decision, the start; then the effect; then its receipt;
then the wake that hands it over. A slice, what policy decides on its calls and their starts are one
transaction, because nothing happens between them. The receipt of an effect that may not be repeated is
written at once; others ride with the next transaction: without them the effect is simply done again.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, assert_never

from runner import codec
from runner.journal.records import Abandoned, Decision, Receipt, Start
from runner.kernel.abi import Status
from runner.kernel.state import Call
from runner.policy.gate import Ruling
from runner.session.recording import input_record, slice_record
from runner.session.recovery import (
    Await,
    CallHistory,
    Decide,
    Execute,
    Feed,
    Unknown,
    denial,
    inner_execution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner.capabilities.base import StepRecord
    from runner.errors import RunnerError
    from runner.journal.records import EffectClass, Record
    from runner.kernel.machine import Input, Machine, StepResult
    from runner.kernel.state import Answer
    from runner.session.crew import Confirm
    from runner.session.recording import Recorder


BY_POLICY: Final = "policy"
"""
Who decided, when no person did.
"""


class Gate(Protocol):
    """
    Policy, as a session sees it.
    """

    def judge(self, call: Call) -> Ruling:
        """
        Rule on one call. Not asked again once its answer is written.
        """

    def effect(self, call: Call) -> EffectClass:
        """
        What may be done when the effect of a call was started and never reported.
        """


class OpenGate:
    """
    For an instance whose grants were settled when it was bound.
    """

    def judge(self, call: Call) -> Ruling:
        """
        Allow it.
        """
        del call
        return Ruling("allow", "granted")

    def effect(self, call: Call) -> EffectClass:
        """
        Take each as one that may be made again: nobody keeps a receipt.
        """
        del call
        return "idempotent"


class Execution(NamedTuple):
    """
    An effect that may begin: its start is durable.

    Attributes:
        call: The call.
        key: Identity of the attempt, for the outside to recognise a repetition.
    """

    call: Call
    key: str


@dataclass(frozen=True, slots=True)
class Disposition:
    """
    What is to be done about calls.

    Attributes:
        execute: Effects to begin.
        feed: Answers that are known already.
        parked: Calls that wait for a person.
        uncertain: Calls of which nobody knows whether they happened.
    """

    execute: tuple[Execution, ...] = ()
    feed: tuple[Answer, ...] = ()
    parked: tuple[int, ...] = ()
    uncertain: tuple[int, ...] = ()


@dataclass(slots=True)
class _Draft:
    """
    Records and dispositions in the making.
    """

    records: list[Record] = field(default_factory=list)
    execute: list[Execution] = field(default_factory=list)
    feed: list[Answer] = field(default_factory=list)
    parked: list[int] = field(default_factory=list)
    uncertain: list[int] = field(default_factory=list)

    def finish(self) -> Disposition:
        return Disposition(tuple(self.execute), tuple(self.feed), tuple(self.parked), tuple(self.uncertain))


class Chronicle:
    """
    The journal of one instance, and what follows from it. Its methods hand records in, and give what waits
    until they are durable; both may be called from any thread.

    Args:
        recorder: Where records go.
        gate: What rules on calls.
        history: What earlier records say of calls.
        name: The instance's, part of each attempt's identity.
        clock_ms: Time for decisions.
    """

    def __init__(
        self,
        recorder: Recorder,
        gate: Gate,
        history: CallHistory,
        *,
        name: str,
        clock_ms: Callable[[], int],
    ) -> None:
        self._recorder = recorder
        self._gate = gate
        self._history = history
        self._name = name
        self._clock_ms = clock_ms
        self._keys: dict[int, str] = {}
        self._effects: dict[int, EffectClass] = {}
        self._held: dict[int, Receipt] = {}
        # A receipt may come while a slice is being written down.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """
        The instance's name.
        """
        return self._name

    def writes_at_once(self, call: int) -> bool:
        """
        Whether `receipt` of this call waits for the disk.
        """
        return self._effects.get(call) == "effectful"

    def slice(self, event: Input, result: StepResult, machine: Machine) -> Confirm[Disposition]:
        """
        Write down a slice with its input, and rule on what it asked for.

        Raises:
            RunnerError: If it could not be written; the instance must not go on.
        """
        draft = self._with_receipts()
        draft.records += [input_record(event), slice_record(result, self._digest(machine))]
        for call in result.calls:
            self._rule(call, draft)
        return self._write(draft)

    def abandon(
        self, delivery: int, failure: RunnerError, result: StepResult, machine: Machine
    ) -> Confirm[Disposition]:
        """
        Write down that the host gave up the open delivery.
        """
        given_up = Abandoned(delivery=delivery, error=failure.to_wire())
        draft = self._with_receipts()
        draft.records += [given_up, slice_record(result, self._digest(machine), by_clock=False)]
        return self._write(draft)

    def receipt(self, answer: Answer) -> Confirm[Disposition]:
        """
        Write down an effect's outcome: at once, if the effect may not be repeated.
        """
        call = answer.call
        record = Receipt(
            call=call, execution=self._keys[call], status=int(answer.status), payload=answer.payload
        )
        if self._effects[call] == "effectful":
            return self._write(_Draft([record]))
        self._held[call] = record
        return Disposition

    @property
    def owes(self) -> bool:
        """
        Whether an outcome still waits for the next transaction.
        """
        return bool(self._held)

    def settle_up(self) -> Confirm[Disposition]:
        """
        Write down every outcome that waits, when there will be no other transaction: what was paid for must
        not be paid for again.

        Raises:
            RunnerError: If they could not be written; the instance must not go on.
        """
        return self._write(self._with_receipts())

    def resume(self, calls: Iterable[Call]) -> Confirm[Disposition]:
        """
        What is to be done about the calls that were in flight when the journal ended.
        """
        draft = _Draft()
        for call in calls:
            action = self._history.action(call.number)
            match action:
                case Decide():
                    self._rule(call, draft)
                case Execute():
                    self._start(call, draft)
                case Feed():
                    draft.feed.append(action.answer)
                case Await():
                    draft.parked.append(call.number)
                case Unknown():
                    draft.uncertain.append(call.number)
                case _:
                    assert_never(action)
        if draft.uncertain:
            draft.records.clear()
        return self._write(draft)

    def inside(self, call: int) -> tuple[StepRecord, ...]:
        """
        What is on record of the inside of a call.
        """
        return self._history.inside(call)

    def leaves_doubt(self, call: int) -> bool:
        """
        Whether an effect of the call that was begun and not reported is for a person to rule on.
        """
        return self._recorder.keeps and isinstance(self._history.action(call), Unknown)

    def note_step(self, attempt: Execution, part: str, payload: bytes) -> None:
        """
        Write down what came of a part of a call.

        Raises:
            RunnerError: If it could not be written; the instance must not go on.
        """
        self._write(_Draft([self._step_receipt(attempt, part, payload)]))()

    def rule_on_step(self, attempt: Execution, part: str, name: str, arguments: codec.Value) -> Ruling:
        """
        Rule on a tool that a call wants to use, and write down that it begins or that a person is asked.

        Raises:
            RunnerError: If it could not be written; the instance must not go on.
        """
        tool = _as_call(attempt.call, name, arguments)
        ruling = self._gate.judge(tool)
        draft = _Draft()
        if ruling.verdict == "ask":
            question: codec.Value = {"arguments": arguments, "name": name, "part": part, "step": "ask"}
            draft.records.append(self._step_receipt(attempt, part, codec.encode(question)))
        if ruling.verdict != "deny":
            draft.records.append(
                Decision(
                    call=tool.number,
                    verdict=ruling.verdict,
                    rule=ruling.rule,
                    by=BY_POLICY,
                    at_ms=self._clock_ms(),
                )
            )
        if ruling.verdict == "allow":
            draft.records.append(self._step_start(attempt, part, tool))
        self._write(draft)()
        return ruling

    def start_step(self, attempt: Execution, part: str, name: str, arguments: codec.Value) -> None:
        """
        Write down that a tool begins that a person allowed.

        Raises:
            RunnerError: If it could not be written; the instance must not go on.
        """
        tool = _as_call(attempt.call, name, arguments)
        self._write(_Draft([self._step_start(attempt, part, tool)]))()

    def _step_receipt(self, attempt: Execution, part: str, payload: bytes) -> Receipt:
        execution = inner_execution(attempt.key, part)
        return Receipt(
            call=attempt.call.number, execution=execution, status=int(Status.PART), payload=payload
        )

    def _step_start(self, attempt: Execution, part: str, tool: Call) -> Start:
        return Start(
            call=tool.number, execution=inner_execution(attempt.key, part), effect=self._gate.effect(tool)
        )

    def decide(
        self, call: Call, verdict: Literal["allow", "deny"], *, rule: str, by: str
    ) -> Confirm[Disposition]:
        """
        Write down what a person said of a parked call.
        """
        draft = _Draft()
        self._settle(call, Ruling(verdict, rule), by, draft)
        return self._write(draft)

    def _with_receipts(self) -> _Draft:
        """
        A draft that begins with every outcome that is not written yet, also of calls that are about to be
        given up: what the host holds for the instance is a function of its receipts.
        """
        return _Draft([self._held.pop(call) for call in tuple(self._held)])

    def _digest(self, machine: Machine) -> bytes:
        return machine.digest() if self._recorder.keeps else b""

    def _rule(self, call: Call, draft: _Draft) -> None:
        self._settle(call, self._gate.judge(call), BY_POLICY, draft)

    def _settle(self, call: Call, judgement: Ruling, by: str, draft: _Draft) -> None:
        decision = Decision(
            call=call.number,
            verdict=judgement.verdict,
            rule=judgement.rule,
            by=by,
            at_ms=self._clock_ms(),
        )
        draft.records.append(decision)
        if judgement.verdict == "allow":
            self._start(call, draft)
        elif judgement.verdict == "deny":
            if by != BY_POLICY and self._history.asks_inside(call.number):
                # It is a tool that was refused, not the call: that goes on, and hears of it.
                self._start(call, draft)
            else:
                draft.feed.append(denial(decision))
        else:
            draft.parked.append(call.number)

    def _start(self, call: Call, draft: _Draft) -> None:
        number = call.number
        effect = self._gate.effect(call)
        key = f"{self._name}-{number}-{self._history.attempts(number) + 1}"
        self._keys[number], self._effects[number] = key, effect
        draft.records.append(Start(call=number, execution=key, effect=effect))
        draft.execute.append(Execution(call, key))

    def _write(self, draft: _Draft) -> Confirm[Disposition]:
        if not draft.records:
            return draft.finish
        confirm = self._recorder.hand_in(draft.records)

        def finish() -> Disposition:
            confirm()
            with self._lock:
                for record in draft.records:
                    self._history.note(record)
            return draft.finish()

        return finish


def _as_call(outer: Call, name: str, arguments: codec.Value) -> Call:
    """
    A tool that a call wants to use, as policy sees one that the agent uses itself.
    """
    request = codec.encode({"arguments": arguments, "name": name})
    return Call(outer.number, "tool.call", request, outer.delivery)

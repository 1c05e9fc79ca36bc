"""
The machine: one instance as a function of its inputs.

    StepResult = machine.step(Deliver(...) | Wake(...))

No I/O, no clock, no threads, no randomness of its own. The same image and the same inputs give the same
memory, byte for byte, on any processor and engine release; only a wall deadline, which the host
reports by moving the epoch, can end a slice differently, and then the slice never happened.

Slices are transactions. Before a delivery, and before a wake that belongs to none, the mind is kept
aside; when a slice fails, the whole delivery is undone and the instance lives on. What is not undone: call
numbers and randomness that have left the instance, so that neither a late answer nor a nonce can meet its
double. What the failed slice itself used never left it, and leaves no trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from runner import codec
from runner.errors import Interrupted, LimitExceeded, ProtocolViolation, RunnerError
from runner.kernel.abi import UPGRADE_EXPORT, UPGRADE_KINDS, Status
from runner.kernel.fit import check_state
from runner.kernel.instance import Instance
from runner.kernel.run import run_guest
from runner.kernel.slice import Slice
from runner.kernel.state import (
    ENTROPY_BYTES,
    MAX_NUMBER,
    Answer,
    Call,
    LastSnapshot,
    MachineState,
    Mind,
    OpenDelivery,
    Restored,
)
from runner.kernel.step import Deliver, Input, StepResult, Wake

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.kernel.image import Image
    from runner.kernel.limits import Limits
    from runner.kernel.program import Program

__all__ = ["Deliver", "Input", "Machine", "StepResult", "Wake", "digest_of"]

_CANCELLED: Final = codec.encode({"kind": "cancelled", "message": "cancelled by the agent"})


@dataclass(slots=True)
class _Undo:
    """
    What a failure puts back.
    """

    delivery: int
    fuel: int
    before: Mind
    calls: dict[int, Call]
    answers: list[Answer] = field(default_factory=list)


class Machine:
    """
    One instance. Not safe to share between threads; many machines may step at once on their own.

    Args:
        program: What runs.
        image: Where it starts.
        limits: What it may use.
        entropy: 32-byte seed of its random stream.
        keeps_snapshots: Whether the host honours `agent.snapshot`.
        keeps_timers: Whether it honours `agent.after` and `agent.every`. What the guest sees of both is part
            of what it learns: they must be the same when its inputs are repeated.

    Raises:
        MemoryExceeded: If the image is larger than `limits` allow.
        HostExhausted: If the process can hold no more instances.
        ValueError: If the seed is not of 32 bytes.
    """

    __slots__ = (
        "_body",
        "_calls",
        "_entropy",
        "_entropy_used",
        "_frozen",
        "_last_delivery",
        "_last_snapshot",
        "_next_call",
        "_restored",
        "_undo",
        "image",
        "keeps_snapshots",
        "keeps_timers",
        "limits",
        "program",
    )

    def __init__(
        self,
        program: Program,
        image: Image,
        limits: Limits,
        *,
        entropy: bytes,
        keeps_snapshots: bool = False,
        keeps_timers: bool = False,
    ) -> None:
        self.program = program
        self.image = image
        self.limits = limits
        self.keeps_snapshots = keeps_snapshots
        self.keeps_timers = keeps_timers
        self._entropy = _sound_seed(entropy)
        self._entropy_used = 0
        self._calls: dict[int, Call] = {}
        self._next_call = 1
        self._last_delivery = 0
        self._restored: Restored | None = None
        self._last_snapshot: LastSnapshot | None = None
        self._undo: _Undo | None = None
        # The live instantiation; after a failure, the mind that the next one starts from.
        self._body: Instance | Mind = Instance.thaw(program, limits, image, None)
        # Its mind, if it was looked at since the last slice.
        self._frozen: Mind | None = None

    @classmethod
    def thaw(
        cls,
        program: Program,
        image: Image,
        limits: Limits,
        state: MachineState,
        *,
        entropy: bytes | None = None,
        restored: Restored | None = None,
        keeps_snapshots: bool = False,
        keeps_timers: bool = False,
    ) -> Machine:
        """
        The instance that `freeze` described.

        Args:
            program: Must be of the module that the state was frozen from.
            image: Must be the image that the state was frozen over, or an overlay of it that holds
                exactly `state.mind`.
            limits: What it may use from now on.
            state: What `freeze` gave.
            entropy: A fresh seed, or `None` to go on with the old stream.
            restored: What the guest may know of this restore; `None` keeps what it knew.
            keeps_snapshots: Whether the host honours `agent.snapshot`.
            keeps_timers: Whether it honours `agent.after` and `agent.every`.

        Raises:
            SnapshotIncompatible: If the state can't be of this program and image, or has a call in flight
                that is not granted.
            LimitExceeded: If it has more calls in flight than `limits` allow.
            MemoryExceeded: If the mind is larger than `limits` allow.
            HostExhausted: If the process can hold no more instances.
            ValueError: If the fresh seed is not of 32 bytes.
        """
        check_state(state, program, limits, at_least_bytes=image.root.memory_bytes)
        machine = cls.__new__(cls)
        machine.program = program
        machine.image = image
        machine.limits = limits
        machine.keeps_snapshots = keeps_snapshots
        machine.keeps_timers = keeps_timers
        machine._entropy = state.entropy if entropy is None else _sound_seed(entropy)
        machine._entropy_used = state.entropy_used if entropy is None else 0
        machine._calls = {call.number: call for call in state.calls}
        machine._next_call = state.next_call
        machine._last_delivery = state.last_delivery
        machine._restored = restored or state.restored
        machine._last_snapshot = state.last_snapshot
        machine._undo = None
        if state.delivery is not None:
            opened = state.delivery
            calls = {call.number: call for call in opened.calls_before}
            fuel = min(opened.fuel, limits.fuel)
            machine._undo = _Undo(opened.number, fuel, opened.before, calls, list(opened.answers))
        at_image = image.root is not image
        machine._body = Instance.thaw(program, limits, image, None if at_image else state.mind)
        machine._frozen = None
        return machine

    # -- looking ------------------------------------------------------------------------------

    @property
    def calls(self) -> tuple[Call, ...]:
        """
        Calls in flight, oldest first.
        """
        return tuple(self._calls.values())

    def is_in_flight(self, call: int) -> bool:
        """
        Whether the guest waits for an answer to a call.
        """
        return call in self._calls

    @property
    def open_delivery(self) -> int:
        """
        Number of the delivery without an answer yet, or 0.
        """
        return self._undo.delivery if self._undo else 0

    @property
    def last_delivery(self) -> int:
        """
        Highest delivery number seen, or 0.
        """
        return self._last_delivery

    @property
    def memory_bytes(self) -> int:
        """
        Size of the linear memory now.
        """
        return self._body.memory_bytes

    def freeze(self) -> MachineState:
        """
        All that `thaw` needs. Valid whenever no slice runs: also while calls are in flight.
        """
        opened = None
        if self._undo is not None:
            undo = self._undo
            opened = OpenDelivery(
                undo.delivery, undo.fuel, undo.before, tuple(undo.calls.values()), tuple(undo.answers)
            )
        return MachineState(
            mind=self._mind(),
            calls=self.calls,
            next_call=self._next_call,
            last_delivery=self._last_delivery,
            entropy=self._entropy,
            entropy_used=self._entropy_used,
            delivery=opened,
            restored=self._restored,
            last_snapshot=self._last_snapshot,
        )

    def digest(self) -> bytes:
        """
        Digest of the mind now: equal for equal memory and globals, however it came about.
        """
        return digest_of(self._mind(), self.image)

    def _mind(self) -> Mind:
        if isinstance(self._body, Mind):
            return self._body
        if self._frozen is None:
            self._frozen = self._body.freeze(self.image)
        return self._frozen

    # -- stepping -----------------------------------------------------------------------------

    def step(
        self, event: Input, *, deadline_ms: int | None = None, failed: RunnerError | None = None
    ) -> StepResult:
        """
        Run one slice.

        Args:
            event: What the instance learns.
            deadline_ms: Wall time for this slice; by default, and at most, `limits.timeout_ms`.
            failed: For a replay: the slice is known to have failed so, by wall time, and does not run again.

        Raises:
            ValueError: If the host broke the protocol: a delivery while one is open or out of order, or of a
                kind that the module has no export for; a wake for a call that is not in flight. Nothing has
                changed.
            LimitExceeded: If the payload is larger than `limits.payload_bytes`, or the delivery's number is
                more than a guest can be told. Nothing has changed.
            HostExhausted: If the process can hold no more instances, and this one has to be made anew after
                a failure. Nothing has changed: the same step may be tried again.
        """
        if self._is_upgrade(event) and not self.program.admitted.upgrades:
            msg = f"the module has no {UPGRADE_EXPORT}"
            raise ValueError(msg)
        payload = event.payload if isinstance(event, Deliver) else event.answer.payload
        if len(payload) > self.limits.payload_bytes:
            raise LimitExceeded("payload_bytes", len(payload), self.limits.payload_bytes)
        instance = self._revive()
        if isinstance(event, Deliver):
            undo = self._open(event)
            entry = instance.upgrade if self._is_upgrade(event) else instance.deliver
            args = (event.number, int(event.kind), len(payload))
        else:
            undo = self._receive(event.answer)
            answer = event.answer
            entry, args = instance.wake, (answer.call, int(answer.status), len(payload))
        current = Slice(
            store=instance.store,
            memory=instance.memory,
            limits=self.limits,
            payload=payload,
            now_ms=event.now_ms,
            delivery=undo.delivery,
            last_delivery=self._last_delivery,
            in_flight=set(self._calls),
            next_call=self._next_call,
            entropy=self._entropy,
            entropy_used=self._entropy_used,
            keeps_snapshots=self.keeps_snapshots,
            keeps_timers=self.keeps_timers,
            restored=self._restored,
            last_snapshot=self._last_snapshot,
        )
        if failed is not None:
            return self._fail(undo, failed)
        self._frozen = None
        try:
            failure, fuel = self._run(current, entry, args, undo.fuel, deadline_ms)
        except BaseException:
            # A bug of ours, or Ctrl-C inside a host function: the guest must not be left half way.
            self._roll_back(undo)
            raise
        if failure is None and current.delivery and (self._is_upgrade(event) or not current.in_flight):
            failure = ProtocolViolation(
                "stalled", "guest returned without a reply and with nothing in flight"
            )
        if failure is not None:
            return self._fail(undo, failure)
        return self._commit(undo, current, fuel)

    def begin_life(self, restored: Restored, entropy: bytes | None) -> None:
        """
        Go on in another life: after a restore, or as a fork.

        Args:
            restored: What the guest may know of it.
            entropy: A fresh 32-byte seed, or `None` to go on with the old stream.
        """
        self._restored = restored
        if entropy is not None:
            self._entropy, self._entropy_used = entropy, 0

    def learn_snapshot(self, known: LastSnapshot) -> None:
        """
        Let the guest know, from its next slice on, how a snapshot of it went.
        """
        self._last_snapshot = known

    def upgraded(
        self, program: Program, image: Image, limits: Limits, *, keeps_timers: bool = False
    ) -> Machine:
        """
        The same instance where another module begins: numbers, randomness and what it knows of itself go on;
        its mind is the image. What shall be kept of the old mind, the old module hands over, as a value.

        Raises:
            ValueError: If a delivery is open or a call in flight: nobody could take its answer.
            MemoryExceeded: If the image is larger than `limits` allow.
            HostExhausted: If the process can hold no more instances.
        """
        if self._undo is not None or self._calls:
            msg = "a delivery is open" if self._undo is not None else "a call is in flight"
            raise ValueError(msg)
        state = replace(self.freeze(), mind=Mind(image.memory_bytes, {}, image.globals))
        return Machine.thaw(
            program, image, limits, state, keeps_snapshots=self.keeps_snapshots, keeps_timers=keeps_timers
        )

    def abandon(self, failure: RunnerError) -> StepResult:
        """
        Fail the open delivery from outside, as if its next slice had failed: for a deadline that covers
        waiting too, a person who gives up, or a recorded failure in a replay.

        Raises:
            ValueError: If no delivery is open.
        """
        if self._undo is None:
            msg = "no delivery is open"
            raise ValueError(msg)
        return self._fail(self._undo, failure)

    @staticmethod
    def _is_upgrade(event: Input) -> bool:
        return isinstance(event, Deliver) and event.kind in UPGRADE_KINDS

    def _revive(self) -> Instance:
        if isinstance(self._body, Mind):
            self._body = Instance.thaw(self.program, self.limits, self.image.root, self._body)
        return self._body

    def _open(self, event: Deliver) -> _Undo:
        if self._undo is not None:
            msg = f"delivery {self._undo.delivery} is still open"
            raise ValueError(msg)
        if event.number <= self._last_delivery:
            msg = f"delivery {event.number} does not follow {self._last_delivery}"
            raise ValueError(msg)
        if event.number > MAX_NUMBER:
            raise LimitExceeded("delivery_number", event.number, MAX_NUMBER)
        self._undo = self._checkpoint(event.number)
        self._last_delivery = event.number
        return self._undo

    def _receive(self, answer: Answer) -> _Undo:
        if answer.call not in self._calls:
            msg = f"call {answer.call} is not in flight"
            raise ValueError(msg)
        undo = self._undo or self._checkpoint(0)
        if answer.call in undo.calls:
            undo.answers.append(answer)
        if answer.status != Status.PART:
            del self._calls[answer.call]
        return undo

    def _checkpoint(self, delivery: int) -> _Undo:
        return _Undo(delivery, self.limits.fuel, self._mind(), dict(self._calls))

    def _run(
        self,
        current: Slice,
        entry: Callable[..., None],
        args: tuple[int, ...],
        fuel: int,
        deadline_ms: int | None,
    ) -> tuple[RunnerError | None, int]:
        """
        Run the slice; why it failed, and the fuel that is left.
        """
        timeout_ms = self.limits.timeout_ms
        deadline_ms = timeout_ms if deadline_ms is None else min(deadline_ms, timeout_ms)
        return run_guest(self.program, current, entry, args, fuel, deadline_ms)

    def _commit(self, undo: _Undo, current: Slice, fuel: int) -> StepResult:
        spent = undo.fuel - fuel
        # Never taken back once they have left the instance, so that neither a late answer nor a nonce can
        # meet its double. What a failed slice used never left, and a slice that wall time has ended must
        # leave no trace that a replay could not repeat.
        self._next_call, self._entropy_used = current.next_call, current.entropy_used
        for number in current.cancelled:
            self._calls.pop(number, None)
        cancelled = set(current.cancelled)
        calls = tuple(call for call in current.calls if call.number not in cancelled)
        self._calls.update((call.number, call) for call in calls)
        undo.fuel = fuel
        # Should the delivery fail later, the guest will again wait for what it cancelled in it.
        undo.answers.extend(
            Answer(number, Status.FAILED, _CANCELLED) for number in current.cancelled if number in undo.calls
        )
        if current.reply is not None:
            self._undo = None
        made_now = {call.number for call in current.calls}
        return StepResult(
            calls=calls,
            cancelled=tuple(number for number in current.cancelled if number not in made_now),
            reply=current.reply,
            logs=tuple(current.logs),
            logs_dropped=current.logs_dropped,
            snapshot_reason=current.snapshot_reason,
            fuel=spent,
        )

    def _fail(self, undo: _Undo, failure: RunnerError) -> StepResult:
        abandoned = tuple(number for number in self._calls if number not in undo.calls)
        self._roll_back(undo)
        undone = tuple(undo.answers)
        # By its wire form: a replay has the failure only as it was recorded.
        if not undo.delivery and failure.to_wire()["kind"] != Interrupted.kind:
            # An answer that failed outside any delivery would fail again: its call is over.
            undone, abandoned = (), tuple(answer.call for answer in undo.answers)
            for number in abandoned:
                del self._calls[number]
        return StepResult(
            fuel=undo.fuel,
            failure=failure,
            failed_delivery=undo.delivery,
            abandoned=abandoned,
            undone=undone,
        )

    def _roll_back(self, undo: _Undo) -> None:
        # Not made anew before it is needed: that may fail, and then nothing must have been half done.
        self._body, self._frozen = undo.before, None
        self._calls = dict(undo.calls)
        self._undo = None


def _sound_seed(entropy: bytes) -> bytes:
    if len(entropy) != ENTROPY_BYTES:
        msg = f"entropy must be {ENTROPY_BYTES} bytes, got {len(entropy)}"
        raise ValueError(msg)
    return entropy


def digest_of(mind: Mind, image: Image) -> bytes:
    """
    Digest of a mind that was frozen over `image` or an overlay of it.
    """
    return image.root.page_digests.mind_digest(mind.memory_bytes, mind.globals, mind.pages)

"""
What the host holds for one instance, and how a snapshot carries it.

Input: a snapshot, which anyone may have written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from runner import codec
from runner.capabilities.usage import UsageMeter
from runner.digest import SIZE_BYTES
from runner.errors import JournalCorrupt, SnapshotCorrupt
from runner.journal import wire
from runner.journal.records import Decision, Receipt, Resolution, Start
from runner.kernel.abi import Status
from runner.kernel.state import Answer
from runner.memory.notes import InMemoryNotes
from runner.package.fields import FieldProblem, Fields, anything, kind_of, list_of
from runner.session.recovery import is_step

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from runner.codec import Value
    from runner.journal.records import Record
    from runner.kernel.state import Call
    from runner.providers.scripted import ScriptedProvider


class HostPart(NamedTuple):
    """
    The host's part of a snapshot, checked for its shape.

    Attributes:
        agent: Digest of the agent's file, to find it by.
        answers: Answers of effects that are over, which the guest has not got yet.
        notes: The instance's notes.
        provider: How far the provider has been followed.
        usage: What the instance has used.
        history: What is known of its calls in flight, when it comes from a journal.
    """

    agent: bytes
    answers: tuple[Answer, ...]
    notes: InMemoryNotes
    provider: Value
    usage: UsageMeter
    history: tuple[Record, ...] = ()


@dataclass(slots=True)
class Held:
    """
    What the host holds for an instance.

    Attributes:
        provider: Answers for models; `None` where nothing will be asked.
        notes: The instance's notes.
        usage: What the instance has used.
        answers: Answers that a snapshot carried, for the session to begin with.
    """

    provider: ScriptedProvider | None
    notes: InMemoryNotes = field(default_factory=InMemoryNotes)
    usage: UsageMeter = field(default_factory=UsageMeter)
    answers: tuple[Answer, ...] = ()

    @property
    def providers(self) -> dict[str, ScriptedProvider]:
        """
        The provider by its name, if there is one.
        """
        return {self.provider.name: self.provider} if self.provider else {}

    def to_wire(
        self, agent: bytes, answers: Iterable[Answer] = (), history: Iterable[Record] = ()
    ) -> dict[str, Value]:
        """
        The host's part of a snapshot.

        Args:
            agent: Digest of the agent's file.
            answers: What the session has not handed over yet.
            history: What a journal says of calls in flight.
        """
        # Without a provider, what was asked so far is what ended.
        followed = self.provider.to_wire() if self.provider else {"again": [], "requests": self.usage.calls}
        return {
            "agent": agent,
            "answers": [
                {"call": answer.call, "payload": answer.payload, "status": int(answer.status)}
                for answer in answers
            ],
            "history": [wire.encode(record) for record in history],
            "notes": self.notes.to_wire(),
            "provider": followed,
            "usage": self.usage.to_state(),
        }

    def take_back(self, part: HostPart, path: Path) -> None:
        """
        Go on with what a snapshot holds.

        Raises:
            SnapshotCorrupt: If the provider can't be where it says.
        """
        try:
            if self.provider is not None:
                self.provider.restore(part.provider)
        except FieldProblem as error:
            raise _unreadable(error, path) from error
        self.notes, self.usage, self.answers = part.notes, part.usage, part.answers

    def copy(self) -> Held:
        """
        The same, to be folded on by itself; without a provider.
        """
        notes = InMemoryNotes.from_wire(self.notes.to_wire())
        return Held(None, notes, self.usage.copy())


def read_host_part(host: Value, calls: Iterable[Call], path: Path) -> HostPart:
    """
    The host's part of a snapshot.

    Args:
        host: As `Held.to_wire` wrote it.
        calls: Calls in flight in that snapshot.
        path: Where it comes from, for errors.

    Raises:
        SnapshotCorrupt: If it is not what `Held.to_wire` writes.
    """
    try:
        with Fields(host) as fields:
            return HostPart(
                agent=fields.required("agent", _digest),
                answers=_answers(fields.required("answers", list_of(_answer)), calls),
                notes=InMemoryNotes.from_wire(fields.required("notes", anything)),
                provider=fields.required("provider", anything),
                usage=UsageMeter.from_state(fields.required("usage", anything)),
                history=_history(fields.required("history", list_of(_bytes)), path),
            )
    except FieldProblem as error:
        raise _unreadable(error, path) from error


def _history(packed: Iterable[bytes], path: Path) -> tuple[Record, ...]:
    try:
        records = tuple(wire.decode(data, name=str(path), seq=seq) for seq, data in enumerate(packed))
    except JournalCorrupt as error:
        raise SnapshotCorrupt(f"its history is not readable: {error.message}", path=str(path)) from error
    for seq, record in enumerate(records):
        if not isinstance(record, Decision | Start | Receipt | Resolution) or _is_bare_part(record):
            raise FieldProblem(f"history[{seq}]", "expected what is known of a call")
    return records


def _is_bare_part(record: Record) -> bool:
    """
    Whether it is a part of an answer, and no step of a call.
    """
    return isinstance(record, Receipt) and record.status == Status.PART and not is_step(record)


def _unreadable(problem: FieldProblem, path: Path) -> SnapshotCorrupt:
    return SnapshotCorrupt(f"what the host held is not readable: {problem}", path=str(path))


def _digest(value: Value, at: str) -> bytes:
    if len(_bytes(value, at)) != SIZE_BYTES:
        raise FieldProblem(at, f"expected {SIZE_BYTES} bytes")
    return bytes(value)


def _bytes(value: Value, at: str) -> bytes:
    if not isinstance(value, bytes):
        raise FieldProblem(at, f"expected bytes, found {kind_of(value)}")
    return value


def _answer(value: Value, at: str) -> Answer:
    with Fields(value, at) as fields:
        return Answer(
            fields.required("call", _number),
            fields.required("status", _status),
            fields.required("payload", _payload),
        )


def _number(value: Value, at: str) -> int:
    if type(value) is not int:
        raise FieldProblem(at, f"expected an integer, found {kind_of(value)}")
    return value


def _status(value: Value, at: str) -> Status:
    try:
        return Status(_number(value, at))
    except ValueError as error:
        raise FieldProblem(at, "expected a status of the ABI") from error


def _payload(value: Value, at: str) -> bytes:
    try:
        codec.decode(_bytes(value, at))
    except codec.CodecError as error:
        raise FieldProblem(at, str(error)) from error
    return bytes(value)


def _answers(answers: tuple[Answer, ...], calls: Iterable[Call]) -> tuple[Answer, ...]:
    """
    The answers, if they are to calls in flight, and each call's last one ends it.
    """
    last = {answer.call: answer.status for answer in answers}
    if Status.PART in last.values() or not last.keys() <= {call.number for call in calls}:
        raise FieldProblem("answers", "expected whole answers to calls in flight")
    return answers

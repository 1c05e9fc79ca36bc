"""
Going on under another module: what the old one knows crosses as a value, and all of it happens or none.

    old machine  -- HAND_OVER -->  a value  -- UPGRADE -->  new machine

Both slices are run before anything is written. So a guest that fails in one of them, of either module, leaves
the instance as it was, and what is on record is an upgrade that went well.

Input: what the old module hands over, and what the new one makes of it, are the guests'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from runner import codec
from runner.digest import digest as file_digest
from runner.digest import show
from runner.errors import (
    GuestReturnedError,
    ProtocolViolation,
    RunnerError,
    SnapshotIncompatible,
    UsageError,
)
from runner.journal.records import Upgraded
from runner.kernel.abi import UPGRADE_EXPORT, DeliveryKind
from runner.kernel.machine import Deliver
from runner.session.recording import input_record, slice_record
from runner.session.session import wall_clock_ms

if TYPE_CHECKING:
    from runner.codec import Value
    from runner.journal.records import Record
    from runner.kernel.machine import Machine
    from runner.wiring.host import Host
    from runner.wiring.options import Options
    from runner.wiring.prepare import Prepared


FINISH: Final = "finish it first, under the agent that it was taken of"
"""
What helps when a snapshot was taken in the middle of something.
"""


class Rules(NamedTuple):
    """
    What the operator allows, as they wrote it.

    Attributes:
        allow: Grants.
        deny: Refusals.
        ask: What a person must approve at each call.
    """

    allow: tuple[str, ...]
    deny: tuple[str, ...]
    ask: tuple[str, ...]

    def and_also(self, other: Rules) -> Rules:
        """
        Both together: a refusal or a question that was there stays.
        """
        return Rules(
            *(tuple(dict.fromkeys((*ours, *theirs))) for ours, theirs in zip(self, other, strict=True))
        )


class Successor(NamedTuple):
    """
    An instance under its new module.

    Attributes:
        machine: As it is after it has taken over.
        records: What is to be written of it, as one.
        fuel: What both slices took.
    """

    machine: Machine
    records: tuple[Record, ...]
    fuel: int


class _Answer(NamedTuple):
    records: tuple[Record, ...]
    value: Value
    fuel: int


def hand_on(
    host: Host,
    machine: Machine,
    old: Prepared,
    new: Prepared,
    rules: Rules,
    *,
    options: Options,
    name: str,
    rest: str,
) -> Successor:
    """
    Let an instance go on under another module.

    Args:
        host: What runs both.
        machine: The instance; of no use afterwards, whatever comes of it.
        old: What it ran as.
        new: What it shall run as, under `rules`.
        rules: What holds for it from then on.
        options: Takes what the guests log, and bounds each of the two slices.
        name: What to call the instance in a refusal.
        rest: What helps when it is in the middle of something.

    Raises:
        UsageError: If it is in the middle of something, or runs as that already.
        SnapshotIncompatible: If the old module can't hand over, or the new one not take over.
        RunnerError: Why one of them failed; the hint says that nothing has changed.
    """
    _need_rest(machine, name, rest)
    if is_same(old, new):
        msg = f"{name} runs this agent already"
        raise UsageError(msg, hint=f"what it runs: runner inspect {name}")
    missing = missing_of(old, new)
    if missing is not None:
        raise SnapshotIncompatible(*_difference(old, new), hint=missing)
    terms = _terms(new, rules)

    def work() -> Successor:
        with host.ticker.guest_runs():
            return _hand_on(machine, old, new, terms, options)

    try:
        return host.apart(work)
    except RunnerError as error:
        unchanged = f"nothing has changed: {name} is of {_show(old)} as before"
        error.hint = f"{error.hint}; {unchanged}" if error.hint else unchanged
        raise


def is_same(old: Prepared, new: Prepared) -> bool:
    """
    Whether the memory of one means the same to the other.
    """
    return _identity(old) == _identity(new)


def missing_of(old: Prepared, new: Prepared) -> str | None:
    """
    What an upgrade between two agents lacks, in words; `None` if nothing.
    """
    for prepared, verb in ((old, "hand over"), (new, "take over")):
        if not prepared.admitted.upgrades:
            return f"{_show(prepared)} can't {verb}: its module does not export {UPGRADE_EXPORT}"
    return None


def bounds_of_successor(old: Prepared, options: Options) -> dict[str, int]:
    """
    The operator's own bounds for the agent that takes over: those that they give now, and those that they
    gave before. What the old agent's manifest asked for goes with it.
    """
    asked = old.package.manifest.limits_under({}).to_wire()
    chosen = {name: value for name, value in old.limits.to_wire().items() if value != asked[name]}
    return {**chosen, **options.limits}


def _need_rest(machine: Machine, name: str, hint: str) -> None:
    if machine.open_delivery:
        msg = f"{name} can't be upgraded while delivery {machine.open_delivery} is open"
        raise UsageError(msg, hint=hint)
    if machine.calls:
        calls = ", ".join(str(call.number) for call in machine.calls)
        msg = f"{name} can't be upgraded with call {calls} in flight: nobody could take the answer"
        raise UsageError(msg, hint=hint)


def _hand_on(machine: Machine, old: Prepared, new: Prepared, terms: Upgraded, options: Options) -> Successor:
    to = _introduce("to", new)
    handed = _deliver(machine, DeliveryKind.HAND_OVER, codec.encode(to), terms.at_ms, options)
    if machine.calls:
        raise ProtocolViolation("hand-over", "guest made a call while it handed over")
    successor = machine.upgraded(new.program, new.image, new.limits, keeps_timers=terms.timers)
    try:
        payload = codec.encode({**_introduce("from", old), "state": handed.value})
    except TypeError as error:
        # A payload by itself, it may be too deep or too many items inside another.
        problem = "guest handed over more than can be passed on"
        raise ProtocolViolation("hand-over", problem) from error
    taken = _deliver(successor, DeliveryKind.UPGRADE, payload, terms.at_ms, options)
    records = (*handed.records, terms, *taken.records)
    return Successor(successor, records, handed.fuel + taken.fuel)


def _deliver(machine: Machine, kind: DeliveryKind, payload: bytes, now_ms: int, options: Options) -> _Answer:
    event = Deliver(machine.last_delivery + 1, kind, payload, now_ms)
    result = machine.step(event, deadline_ms=options.deadline_ms)
    for line in result.logs:
        options.on_log(line)
    if result.failure is not None:
        raise result.failure
    reply = result.reply
    # The kernel lets no such slice end without one.
    assert reply is not None  # noqa: S101
    value: Any = codec.decode(reply.payload)
    if not reply.ok:
        raise GuestReturnedError(value["message"], value.get("data"))
    records = (input_record(event), slice_record(result, machine.digest()))
    return _Answer(records, value, result.fuel)


def _introduce(prefix: str, prepared: Prepared) -> dict[str, Value]:
    return {
        f"{prefix}_agent": prepared.package.name,
        f"{prefix}_version": prepared.package.manifest.version,
        f"{prefix}_code": prepared.admitted.code_digest,
        f"{prefix}_image": prepared.image.digest,
    }


def _terms(new: Prepared, rules: Rules) -> Upgraded:
    return Upgraded(
        agent=new.package.name,
        package=file_digest(new.packed),
        code_digest=new.admitted.code_digest,
        image_digest=new.image.digest,
        limits=new.limits.to_wire(),
        allow=rules.allow,
        deny=rules.deny,
        ask=rules.ask,
        at_ms=wall_clock_ms(),
        timers=False,
    )


def _identity(prepared: Prepared) -> tuple[bytes, bytes]:
    return prepared.admitted.code_digest, prepared.image.digest


def _difference(old: Prepared, new: Prepared) -> tuple[str, str, str]:
    field = "code_digest" if old.admitted.code_digest != new.admitted.code_digest else "image_digest"
    at = 0 if field == "code_digest" else 1
    return field, show(_identity(old)[at]), show(_identity(new)[at])


def _show(prepared: Prepared) -> str:
    return f"{prepared.package.name} {prepared.package.manifest.version}"

"""
What a journal is made of: a closed union of records, each a fact that is never changed again.

Inputs (`Delivery`, `Wake`, `Woken`, `Tried`, `Upgraded`, `Abandoned`) are all that an instance ever learns;
folding them over its image gives its mind, byte for byte. The other records say what came of them and what
the host did. A new kind of record is a new format version; a reader refuses what it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from runner.codec import Value

Verdict = Literal["allow", "deny", "ask"]
Ruling = Literal["rerun", "done", "abandon"]
EffectClass = Literal["pure", "idempotent", "effectful"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Born:
    """
    First record of every journal: who this is.

    Attributes:
        agent: The agent's name.
        code_digest: SHA-256 of its module's code.
        image_digest: Digest of the image that it starts from.
        limits: Bounds it runs under, by field of `Limits`.
        allow: Grants, as the operator wrote them.
        deny: Refusals, as the operator wrote them.
        ask: What a person must approve at each call, as the operator wrote it.
        entropy: 32-byte seed of its random stream.
        at_ms: When, in milliseconds since the Unix epoch.
        parent: Name and sequence number of the journal that it was forked from, or `None`.
        timers: Whether its timers make calls, or are refused when they are armed. Those of a life that
            began under version 1 make calls, whatever became of them.
    """

    agent: str
    code_digest: bytes
    image_digest: bytes
    limits: dict[str, int]
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    entropy: bytes = field(default=bytes(32), repr=False)
    at_ms: int = 0
    parent: tuple[str, int] | None = None
    timers: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """
    Input: one event was handed to the instance.

    Attributes:
        number: Greater than any before it.
        kind: As `abi.DeliveryKind`.
        payload: Deterministic CBOR.
        now_ms: Time of its slice.
    """

    number: int
    kind: int
    payload: bytes
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """
    Input: an answer, or a part of one, was handed to the instance.

    Attributes:
        call: Which call.
        status: As `abi.Status`.
        payload: Deterministic CBOR.
        now_ms: Time of its slice.
    """

    call: int
    status: int
    payload: bytes
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """
    Input: the instance goes on in another life: after a restore, or as a fork.

    Attributes:
        count: Restores in this line.
        generation: Tells two lives of one snapshot apart.
        at_ms: When.
        entropy: Fresh 32-byte seed, or empty to keep the old stream.
    """

    count: int
    generation: int
    at_ms: int
    entropy: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """
    Input: a snapshot was tried; the instance may ask how that went.

    Attributes:
        ok: Whether there is one.
        size_bytes: What it took.
        at_ms: When.
        error: Why there is none, or `None`.
    """

    ok: bool
    size_bytes: int
    at_ms: int
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """
    Input: the instance goes on at the image of another module, to which the delivery before it handed over.

    What it says takes the place of what its birth, or an earlier upgrade, said.

    Attributes:
        agent: The agent's name.
        package: SHA-256 of its package.
        code_digest: SHA-256 of its module's code.
        image_digest: Digest of its image.
        limits: Bounds it runs under, by field of `Limits`.
        allow: Grants.
        deny: Refusals.
        ask: What a person must approve at each call.
        at_ms: When, in milliseconds since the Unix epoch.
        timers: Whether its timers make calls.
    """

    agent: str
    package: bytes
    code_digest: bytes
    image_digest: bytes
    limits: dict[str, int]
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    ask: tuple[str, ...]
    at_ms: int
    timers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """
    Input: the host gave up the open delivery: a deadline, an interrupt, a recorded trap of wall time.

    Attributes:
        delivery: Which one.
        error: The failure's wire form.
    """

    delivery: int
    error: dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """
    One call that a slice made; part of `Slice`.
    """

    number: int
    operation: str
    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """
    What came of the input before it. Its calls are intents: nothing has happened for them yet.

    Attributes:
        calls: Calls made, in order.
        cancelled: Calls given up, by number.
        reply: How the open delivery ended: `(ok, payload)`, or `None`.
        error: Why the slice failed, in wire form, or `None`; then nothing else came of it.
        by_clock: Whether wall time ended it: a replay can't find that again by itself.
        fuel: Fuel charged.
        digest: Digest of the mind afterwards.
    """

    calls: tuple[Intent, ...] = ()
    cancelled: tuple[int, ...] = ()
    reply: tuple[bool, bytes] | None = None
    error: dict[str, Value] | None = None
    by_clock: bool = False
    fuel: int = 0
    digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    Policy, or a person, ruled on a call.

    Attributes:
        call: Which call.
        verdict: `ask` parks it until another decision.
        rule: The rule that decided, or what the person said.
        by: `policy`, or who.
        at_ms: When.
    """

    call: int
    verdict: Verdict
    rule: str
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    The effect of a call is about to happen. Without a receipt after it, nobody knows whether it did.

    Attributes:
        call: Which call.
        execution: Identity of this attempt, given to the outside as its idempotency key.
        effect: What may be done about it when no receipt follows: `pure` and `idempotent` are run again,
            `effectful` is uncertain.
    """

    call: int
    execution: str
    effect: EffectClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """
    The outcome of an effect, whether the guest has taken it in or not.

    Attributes:
        call: Which call.
        execution: Which attempt.
        status: As `abi.Status`.
        payload: Deterministic CBOR.
    """

    call: int
    execution: str
    status: int
    payload: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """
    A person ruled on an uncertain call; final.

    Attributes:
        call: Which call.
        ruling: `rerun` makes it again, `done` answers it with `payload`, `abandon` answers that it failed.
        payload: Deterministic CBOR for `done`, else empty.
        by: Who.
        at_ms: When.
    """

    call: int
    ruling: Ruling
    payload: bytes
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTaken:
    """
    A snapshot of the mind after all records before this one is in the store.

    Attributes:
        digest: Digest of the mind.
        reason: Why: the guest's words, or the host's.
    """

    digest: bytes
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """
    The instance was stopped by its operator; it may be resumed.
    """

    reason: str
    at_ms: int


Record: TypeAlias = (
    Born
    | Delivery
    | Wake
    | Woken
    | Tried
    | Upgraded
    | Abandoned
    | Slice
    | Decision
    | Start
    | Receipt
    | Resolution
    | SnapshotTaken
    | Stopped
)

"""
Records as bytes, version 2: the executable half of `docs/journal-format.md`.

A record is one deterministic CBOR array of two: its kind, and a closed map of its fields. A kind or a key
that is not in the table is damage, because a new one needs a new version. What version 1 wrote is read as
ever.

Input: untrusted. `decode` is total; it returns a record only when every check has passed.
"""

from __future__ import annotations

from typing import Final, get_args

from runner import codec
from runner.digest import SIZE_BYTES
from runner.errors import InternalError, JournalCorrupt
from runner.journal import shapes
from runner.journal.records import (
    Abandoned,
    Born,
    Decision,
    Delivery,
    EffectClass,
    Intent,
    Receipt,
    Record,
    Resolution,
    Ruling,
    Slice,
    SnapshotTaken,
    Start,
    Stopped,
    Tried,
    Upgraded,
    Verdict,
    Wake,
    Woken,
)
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS, Shape, ShapeError
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.state import MAX_ERROR_CHARS, MAX_NUMBER

_COUNT: Final = shapes.integer(0, MAX_COUNT, "count")
_BOUND: Final = shapes.integer(1, MAX_COUNT, "1..MAX_COUNT")
_NUMBER: Final = shapes.integer(1, MAX_NUMBER, "number")
_NAME: Final = shapes.text("name", low=1, high=MAX_NAME_CHARS)
_TEXT: Final = shapes.text()
_DIGEST: Final = shapes.octets((SIZE_BYTES,), "digest")
_MAYBE_DIGEST: Final = shapes.octets((0, SIZE_BYTES), "digest / empty")
_SEED: Final = shapes.octets((32,), "seed")
_MAYBE_SEED: Final = shapes.octets((0, 32), "seed / empty")
_PAYLOAD: Final = shapes.payload()
_ERROR: Final = shapes.packed_map()
_STATUS: Final = shapes.member(Status, "status")
_BOOL: Final = shapes.truth()
_LIMITS: Final = shapes.table(_BOUND, "{ * tstr => 1..MAX_COUNT }")
_RULES: Final = shapes.several(_TEXT)

_INTENT_FIELDS: Final = {"number": _NUMBER, "operation": _NAME, "request": _PAYLOAD}
_INTENT: Final = shapes.structure(Intent, _INTENT_FIELDS, "intent")

RECORDS: Final[dict[str, tuple[type[Record], dict[str, Shape]]]] = {
    "born": (
        Born,
        {
            "agent": _NAME,
            "code_digest": _DIGEST,
            "image_digest": _DIGEST,
            "limits": _LIMITS,
            "allow": _RULES,
            "deny": _RULES,
            "ask": _RULES,
            "entropy": _SEED,
            "at_ms": _COUNT,
            "parent": shapes.nullable(shapes.pair(_NAME, _COUNT, "[name, count]")),
            "timers": shapes.since_version_2(_BOOL, before=True),
        },
    ),
    "delivery": (
        Delivery,
        {
            "number": _NUMBER,
            "kind": shapes.member(DeliveryKind, "kind"),
            "payload": _PAYLOAD,
            "now_ms": _COUNT,
        },
    ),
    "wake": (Wake, {"call": _NUMBER, "status": _STATUS, "payload": _PAYLOAD, "now_ms": _COUNT}),
    "woken": (Woken, {"count": _COUNT, "generation": _COUNT, "at_ms": _COUNT, "entropy": _MAYBE_SEED}),
    "tried": (
        Tried,
        {
            "ok": _BOOL,
            "size_bytes": _COUNT,
            "at_ms": _COUNT,
            "error": shapes.nullable(shapes.text("reason", high=MAX_ERROR_CHARS)),
        },
    ),
    "upgraded": (
        Upgraded,
        {
            "agent": _NAME,
            "package": _DIGEST,
            "code_digest": _DIGEST,
            "image_digest": _DIGEST,
            "limits": _LIMITS,
            "allow": _RULES,
            "deny": _RULES,
            "ask": _RULES,
            "at_ms": _COUNT,
            "timers": _BOOL,
        },
    ),
    "abandoned": (Abandoned, {"delivery": _NUMBER, "error": _ERROR}),
    "slice": (
        Slice,
        {
            "calls": shapes.several(_INTENT),
            "cancelled": shapes.several(_NUMBER),
            "reply": shapes.nullable(shapes.pair(_BOOL, _PAYLOAD, "[bool, payload]")),
            "error": shapes.nullable(_ERROR),
            "by_clock": _BOOL,
            "fuel": _COUNT,
            "digest": _MAYBE_DIGEST,
        },
    ),
    "decision": (
        Decision,
        {
            "call": _NUMBER,
            "verdict": shapes.word(get_args(Verdict)),
            "rule": _TEXT,
            "by": _NAME,
            "at_ms": _COUNT,
        },
    ),
    "start": (
        Start,
        {"call": _NUMBER, "execution": _NAME, "effect": shapes.word(get_args(EffectClass))},
    ),
    "receipt": (Receipt, {"call": _NUMBER, "execution": _NAME, "status": _STATUS, "payload": _PAYLOAD}),
    "resolution": (
        Resolution,
        {
            "call": _NUMBER,
            "ruling": shapes.word(get_args(Ruling)),
            "payload": shapes.payload("payload / empty", may_be_empty=True),
            "by": _NAME,
            "at_ms": _COUNT,
        },
    ),
    "snapshot_taken": (SnapshotTaken, {"digest": _DIGEST, "reason": _TEXT}),
    "stopped": (Stopped, {"reason": _TEXT, "at_ms": _COUNT}),
}
"""
Every kind of record: its class and its fields, in the order of `docs/journal-format.md`.
"""

INTENT: Final = _INTENT_FIELDS
"""
The fields of an intent, which is part of a slice.
"""

_KINDS: Final = {kind: name for name, (kind, _) in RECORDS.items()}
_SHAPES: Final = {name: shapes.structure(kind, fields, name) for name, (kind, fields) in RECORDS.items()}
_PARTS: Final = 2


def kind_of(record: Record) -> str:
    """
    The name of a record's kind, such as `snapshot_taken`.
    """
    return _KINDS[type(record)]


def encode(record: Record) -> bytes:
    """
    The bytes of a record; equal records have equal bytes.

    Raises:
        InternalError: If the record is one that `decode` would refuse.
    """
    kind = _KINDS[type(record)]
    shape = _SHAPES[kind]
    try:
        fields = shape.pack(record)
        shape.unpack(fields)
        return codec.encode_typed([kind, fields])
    except (ShapeError, TypeError) as error:
        msg = f"a record {kind} can't be written: {error}"
        raise InternalError(msg) from error


def decode(data: bytes, *, name: str, seq: int) -> Record:
    """
    The record that `data` holds.

    Args:
        data: Any bytes.
        name: The journal, for the message.
        seq: The record's sequence number, for the message.

    Raises:
        JournalCorrupt: If they are not a record of this version.
    """
    try:
        return _unpack(codec.decode(data))
    except (ShapeError, codec.CodecError) as error:
        raise JournalCorrupt(name, seq, str(error)) from error


def _unpack(value: codec.Value) -> Record:
    if type(value) is not list or len(value) != _PARTS:
        raise ShapeError("not a record")
    kind, fields = value
    shape = _SHAPES.get(kind) if type(kind) is str else None
    if shape is None:
        raise ShapeError(f"kind {kind!r:.64} is unknown")
    try:
        record: Record = shape.unpack(fields)
    except ShapeError as error:
        raise ShapeError(f"{kind}: {error}") from None
    return record

"""
The header: everything of a snapshot but the contents of its pages, as one deterministic CBOR map.

Every map is a closed set: in each version an unknown key is damage, because a new key needs a new version.
Limits are the exception, for the kernel may learn a new bound under the same version: one that is absent
takes its default, one that is unknown makes the snapshot too new for this host.

Input: untrusted. The codec bounds depth and items; here every value is checked for its type before use.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, NoReturn

from runner import codec
from runner.errors import SnapshotIncompatible
from runner.kernel.abi import ABI_VERSION, OPERATIONS
from runner.kernel.limits import Limits
from runner.kernel.state import Answer, Call, LastSnapshot, MachineState, Mind, OpenDelivery, Restored
from runner.snapshot.model import Snapshot
from runner.snapshot.pages import PackedPages, PagePool, PageTable, pack_digests
from runner.snapshot.rules import Problem, bits_of, from_bits

MAPS: Final[dict[str, tuple[str, ...]]] = {
    "header": (
        "abi_version", "agent", "code_digest", "created_at_ms", "host", "image_digest", "imports", "limits",
        "memory_digest", "pages", "position", "state",
    ),
    "state": (
        "calls", "delivery", "entropy", "entropy_used", "last_delivery", "last_snapshot", "mind", "next_call",
        "restored",
    ),
    "mind": ("contents", "globals", "indices", "memory_bytes"),
    "delivery": ("answers", "before", "calls_before", "fuel", "number"),
    "call": ("delivery", "number", "operation", "request"),
    "answer": ("call", "payload", "status"),
    "restored": ("at_ms", "count", "generation"),
    "last_snapshot": ("at_ms", "bytes", "error", "ok"),
}  # fmt: skip
"""
The keys of every map, by the map's name in `docs/snapshot-format.md`.
"""

SINCE_VERSION_2: Final = {"state": frozenset({"last_snapshot"})}
"""
Those of them that version 1 does not have.
"""

_F64_BYTES: Final = 8
_SHOWN: Final = 64
_NEWER: Final = "use the runner that wrote it, or a later one"


def needs_version_2(state: MachineState) -> bool:
    """
    Whether version 1 could not say all of a state.
    """
    return state.last_snapshot is not None


def pack(snapshot: Snapshot, version: int) -> tuple[dict[str, Any], list[bytes]]:
    """
    The header's map, and the contents that its `pages` are the digests of.
    """
    pool = PagePool()
    state = _pack_state(snapshot.state, pool)
    if version == 1:
        del state["last_snapshot"]
    stored = pool.stored()
    header = {
        "abi_version": ABI_VERSION,
        "agent": snapshot.agent,
        "code_digest": snapshot.code_digest,
        "created_at_ms": snapshot.created_at_ms,
        # A payload of its own: however much the host holds, the header's own items stay few.
        "host": codec.encode(snapshot.host),
        "image_digest": snapshot.image_digest,
        "imports": list(snapshot.imports),
        "limits": snapshot.limits.to_wire(),
        "memory_digest": snapshot.memory_digest,
        "pages": pack_digests(stored),
        "position": snapshot.position,
        "state": state,
    }
    return header, stored


def unpack(data: bytes, version: int) -> tuple[Snapshot, PageTable]:
    """
    The snapshot whose header is `data`, with no pages yet, and where its pages are to come from.

    Raises:
        Problem: If it is not what a snapshot of that version has.
        SnapshotIncompatible: If it speaks of what this host doesn't know.
    """
    header = _Map(_payload(data, ""), "header", "", version)
    if header.count("abi_version") != ABI_VERSION:
        raise SnapshotIncompatible("abi_version", str(ABI_VERSION), str(header.count("abi_version")))
    imports = tuple(_known(_text(item, "imports")) for item in header.items("imports"))
    limits = _unpack_limits(header.value("limits", dict))
    host = _payload(header.bytes("host"), "host: ")
    if type(host) is not dict:
        _fail("host is not a map")
    state = header.map("state", "state")
    snapshot = Snapshot(
        agent=header.value("agent", str),
        code_digest=header.bytes("code_digest"),
        image_digest=header.bytes("image_digest"),
        imports=imports,
        limits=limits,
        position=header.count("position"),
        created_at_ms=header.count("created_at_ms"),
        state=_unpack_state(state),
        host=host,
        memory_digest=header.bytes("memory_digest"),
    )
    return snapshot, PageTable(header.bytes("pages"), [_packed(mind) for mind in _mind_maps(state)])


class _Map:
    """
    One map of the header, once its keys are the right ones.
    """

    def __init__(self, value: Any, name: str, where: str, version: int) -> None:
        if type(value) is not dict:
            _fail(f"{where} is not a map" if where else "not a map")
        later = SINCE_VERSION_2.get(name, frozenset()) if version == 1 else frozenset()
        wrong = value.keys() ^ (set(MAPS[name]) - later)
        if wrong:
            key = min(wrong)
            place = f" of {where}" if where else ""
            _fail(f"key {_shown(key)}{place} is {'unknown' if key in value else 'missing'}")
        self._value = value
        self._where = f"{where}." if where else ""
        self._version = version

    def value(self, key: str, kind: type) -> Any:
        value = self._value[key]
        if type(value) is not kind:
            _fail(f"{self._where}{key} is {type(value).__name__}, not {kind.__name__}")
        return value

    def is_null(self, key: str) -> bool:
        return self._value[key] is None

    def count(self, key: str) -> int:
        return int(self.value(key, int))

    def bytes(self, key: str) -> bytes:
        return bytes(self.value(key, bytes))

    def items(self, key: str) -> list[Any]:
        return list(self.value(key, list))

    def map(self, key: str, name: str) -> _Map:
        return _Map(self._value[key], name, f"{self._where}{key}", self._version)

    def maybe(self, key: str, name: str) -> _Map | None:
        return None if self._value.get(key) is None else self.map(key, name)

    def maps(self, key: str, name: str) -> list[_Map]:
        return [_Map(item, name, f"{self._where}{key}", self._version) for item in self.items(key)]


def _pack_state(state: MachineState, pool: PagePool) -> dict[str, Any]:
    # The order of these two calls is the order of the contents.
    mind = _pack_mind(state.mind, pool)
    delivery = _pack_delivery(state.delivery, pool) if state.delivery else None
    restored, tried = state.restored, state.last_snapshot
    return {
        "calls": [_pack_call(call) for call in state.calls],
        "delivery": delivery,
        "entropy": state.entropy,
        "entropy_used": state.entropy_used,
        "last_delivery": state.last_delivery,
        "last_snapshot": None
        if tried is None
        else {"at_ms": tried.at_ms, "bytes": tried.size_bytes, "error": tried.error, "ok": tried.ok},
        "mind": mind,
        "next_call": state.next_call,
        "restored": None
        if restored is None
        else {"at_ms": restored.at_ms, "count": restored.count, "generation": restored.generation},
    }


def _pack_delivery(delivery: OpenDelivery, pool: PagePool) -> dict[str, Any]:
    return {
        "answers": [
            {"call": answer.call, "payload": answer.payload, "status": int(answer.status)}
            for answer in delivery.answers
        ],
        "before": _pack_mind(delivery.before, pool),
        "calls_before": [_pack_call(call) for call in delivery.calls_before],
        "fuel": delivery.fuel,
        "number": delivery.number,
    }


def _pack_call(call: Call) -> dict[str, Any]:
    return {
        "delivery": call.delivery,
        "number": call.number,
        "operation": call.operation,
        "request": call.request,
    }


def _pack_mind(mind: Mind, pool: PagePool) -> dict[str, Any]:
    packed = pool.add(mind)
    return {
        "contents": packed.contents,
        "globals": [bits_of(value) if type(value) is float else value for value in mind.globals],
        "indices": packed.indices,
        "memory_bytes": packed.memory_bytes,
    }


def _unpack_state(state: _Map) -> MachineState:
    delivery = state.maybe("delivery", "delivery")
    return MachineState(
        mind=_unpack_mind(state.map("mind", "mind")),
        calls=_unpack_calls(state.maps("calls", "call")),
        next_call=state.count("next_call"),
        last_delivery=state.count("last_delivery"),
        entropy=state.bytes("entropy"),
        entropy_used=state.count("entropy_used"),
        delivery=None if delivery is None else _unpack_delivery(delivery),
        restored=_unpack_restored(state.maybe("restored", "restored")),
        last_snapshot=_unpack_last_snapshot(state.maybe("last_snapshot", "last_snapshot")),
    )


def _mind_maps(state: _Map) -> list[_Map]:
    """
    In the order in which `_pack_state` gave them to the pool.
    """
    delivery = state.maybe("delivery", "delivery")
    mind = state.map("mind", "mind")
    return [mind] if delivery is None else [mind, delivery.map("before", "mind")]


def _packed(mind: _Map) -> PackedPages:
    return PackedPages(mind.count("memory_bytes"), mind.bytes("indices"), mind.bytes("contents"))


def _unpack_delivery(delivery: _Map) -> OpenDelivery:
    return OpenDelivery(
        number=delivery.count("number"),
        fuel=delivery.count("fuel"),
        before=_unpack_mind(delivery.map("before", "mind")),
        calls_before=_unpack_calls(delivery.maps("calls_before", "call")),
        answers=tuple(
            Answer(answer.count("call"), answer.count("status"), answer.bytes("payload"))
            for answer in delivery.maps("answers", "answer")
        ),
    )


def _unpack_restored(restored: _Map | None) -> Restored | None:
    if restored is None:
        return None
    return Restored(restored.count("count"), restored.count("generation"), restored.count("at_ms"))


def _unpack_last_snapshot(tried: _Map | None) -> LastSnapshot | None:
    if tried is None:
        return None
    error = None if tried.is_null("error") else str(tried.value("error", str))
    return LastSnapshot(bool(tried.value("ok", bool)), tried.count("bytes"), tried.count("at_ms"), error)


def _unpack_calls(calls: list[_Map]) -> tuple[Call, ...]:
    return tuple(
        Call(
            call.count("number"),
            _known(call.value("operation", str)),
            call.bytes("request"),
            call.count("delivery"),
        )
        for call in calls
    )


def _unpack_mind(mind: _Map) -> Mind:
    values: list[int | float] = []
    for item in mind.items("globals"):
        if type(item) is bytes and len(item) == _F64_BYTES:
            values.append(from_bits(item))
        elif type(item) is int:
            values.append(item)
        else:
            _fail("a global is neither an integer nor 8 bytes")
    return Mind(mind.count("memory_bytes"), {}, tuple(values))


def _unpack_limits(wire: dict[str, Any]) -> Limits:
    unknown = wire.keys() - {field.name for field in fields(Limits)}
    if unknown:
        found = _shown(min(unknown))
        raise SnapshotIncompatible("a limit", "one this runner has", found, hint=_NEWER)
    try:
        return Limits.from_wire(wire)
    except ValueError as error:
        raise Problem("header", str(error)) from error


def _known(operation: str) -> str:
    """
    The operation, when this host knows it. The ABI may grow under the same version.
    """
    if operation not in OPERATIONS:
        raise SnapshotIncompatible(
            "an operation", f"one of ABI version {ABI_VERSION}", _shown(operation), hint=_NEWER
        )
    return operation


def _payload(data: bytes, where: str) -> Any:
    try:
        return codec.decode(data)
    except codec.CodecError as error:
        raise Problem("header", f"{where}{error}") from error


def _text(value: Any, name: str) -> str:
    if type(value) is not str:
        _fail(f"{name} is not text")
    return str(value)


def _shown(untrusted: str) -> str:
    """
    Untrusted text for a message: short, and without control characters.
    """
    return repr(untrusted[:_SHOWN])


def _fail(problem: str) -> NoReturn:
    raise Problem("header", problem)

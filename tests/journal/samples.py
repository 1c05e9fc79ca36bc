"""
Records, states and state directories that the tests of journals share.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from pathlib import Path
from typing import Any, Final, get_args

from hypothesis import strategies as st

from runner import codec
from runner.digest import digest
from runner.journal import Journal, StateDirectory, chain
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
from runner.journal.shapes import MAX_COUNT, MAX_NAME_CHARS
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.state import (
    MAX_NUMBER,
    PAGE_BYTES,
    Answer,
    Call,
    LastSnapshot,
    MachineState,
    Mind,
    OpenDelivery,
    Restored,
)

AGENT: Final = b"\0asm and so on" * 50
HELLO: Final = codec.encode({"text": "hello"})
NULL: Final = codec.encode(None)
SIGNALING_NAN: Final[float] = struct.unpack(">d", bytes.fromhex("7ff4deadbeef0001"))[0]


def born(agent: str = "counter", **changes: Any) -> Born:
    """
    A birth.
    """
    fields: dict[str, Any] = {
        "agent": agent,
        "code_digest": b"c" * 32,
        "image_digest": b"i" * 32,
        "limits": {"fuel": 1000},
        "entropy": hashlib.sha256(agent.encode()).digest(),
        "at_ms": 1_800_000_000_000,
    }
    return Born(**{**fields, **changes})


def turn(number: int, payload: bytes = HELLO) -> list[Record]:
    """
    One delivery that is answered at once.
    """
    return [
        Delivery(number=number, kind=DeliveryKind.MESSAGE, payload=payload, now_ms=number),
        Slice(reply=(True, NULL), fuel=number, digest=hashlib.sha256(b"%d" % number).digest()),
    ]


def upgrade(package: bytes) -> Upgraded:
    """
    An upgrade to a package.
    """
    return Upgraded(
        agent="counter",
        package=digest(package),
        code_digest=b"C" * 32,
        image_digest=b"I" * 32,
        limits={"fuel": 1000},
        allow=(),
        deny=(),
        ask=(),
        at_ms=1_800_000_000_000,
        timers=False,
    )


def page(fill: int) -> bytes:
    """
    A page that no compression makes small.
    """
    seed = hashlib.sha256(b"%d" % fill).digest()
    return hashlib.shake_128(seed).digest(PAGE_BYTES)


def machine_state(pages: dict[int, bytes], memory_bytes: int = 2 << 20, **changes: Any) -> MachineState:
    """
    An idle instance with these pages.
    """
    return MachineState(mind=Mind(memory_bytes, pages, (1, -2.5)), **changes)


def asking_state() -> MachineState:
    """
    An instance that has everything: two minds that share pages, calls, answers, a NaN, a restore.
    """
    waiting = Call(1, "agent.after", codec.encode({"delay_ms": 1000}), 1)
    asking = Call(4, "llm.chat", HELLO, 3)
    return MachineState(
        mind=Mind(
            196_608,
            {0: page(1), 3: bytes(PAGE_BYTES), 5: page(2), 47: page(1)},
            (1, -(1 << 63), SIGNALING_NAN),
        ),
        calls=(waiting, asking),
        next_call=5,
        last_delivery=3,
        entropy=bytes(range(32)),
        entropy_used=7,
        delivery=OpenDelivery(
            3,
            1_999_000,
            Mind(131_072, {0: page(9), 3: page(1)}, (0, 0, 0.5)),
            (waiting,),
            (Answer(1, 0, NULL),),
        ),
        restored=Restored(2, 1, 1_700_000_000_000),
        last_snapshot=LastSnapshot(False, 0, 1_700_000_000_001, "limit"),
    )


def edit(root: Path, sql: str, *parameters: Any) -> None:
    """
    Change a state directory's database behind everyone's back.
    """
    connection = sqlite3.connect(root / "state.db")
    with connection:
        assert connection.execute(sql, parameters).rowcount == 1
    connection.close()


def forge(root: Path, payloads: list[bytes], standing: bytes | None = None) -> None:
    """
    Give the one instance other records, with a chain and a seal that are sound.
    """
    rows = chain.extend(chain.START, payloads)
    tail = chain.Tail(len(rows), rows[-1].chain)
    connection = sqlite3.connect(root / "state.db")
    with connection:
        key, name, agent, packed = connection.execute(
            "SELECT id, name, agent, standing FROM instances"
        ).fetchone()
        packed = packed if standing is None else standing
        connection.execute("DELETE FROM records")
        connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", [(key, *row) for row in rows])
        seal = digest(b"runner instance 1\n" + codec.encode([name, agent, tail.position, tail.chain, packed]))
        connection.execute(
            "UPDATE instances SET position = ?, chain = ?, standing = ?, seal = ?", (*tail, packed, seal)
        )
    connection.close()


def filled(state: StateDirectory, name: str, turns: int) -> list[tuple[int, Record]]:
    """
    A new instance with some answered deliveries, one transaction each; all of its records.
    """
    state.create(name, born(name), AGENT)
    with state.open(name, write=True) as journal:
        for number in range(1, turns + 1):
            journal.append(turn(number))
        return list(journal.read())


def records_of(state: StateDirectory, name: str) -> list[Record]:
    """
    What is on record of an instance.
    """
    with state.open(name, write=False) as journal:
        return [record for _, record in journal.read()]


def opened(state: StateDirectory, name: str = "one") -> Journal:
    """
    A new instance, open for writing.
    """
    state.create(name, born(name), AGENT)
    return state.open(name, write=True)


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
payloads: Final = _values.map(codec.encode)
counts: Final = st.integers(0, MAX_COUNT)
numbers: Final = st.integers(1, MAX_NUMBER)
names: Final = st.text(min_size=1, max_size=20) | st.just("n" * MAX_NAME_CHARS)
digests: Final = st.binary(min_size=32, max_size=32)
_texts = st.text(max_size=20)
_statuses = st.sampled_from([int(status) for status in Status])
_errors = st.dictionaries(st.text(max_size=6), _values, max_size=3)
_limits = st.dictionaries(st.text(max_size=8), st.integers(1, MAX_COUNT), max_size=3)
_rules = st.lists(_texts, max_size=3).map(tuple)
_intents = st.builds(Intent, number=numbers, operation=names, request=payloads)

STRATEGIES: Final[dict[type[Record], st.SearchStrategy[Any]]] = {
    Born: st.builds(
        Born,
        agent=names,
        code_digest=digests,
        image_digest=digests,
        limits=_limits,
        allow=_rules,
        deny=_rules,
        ask=_rules,
        entropy=digests,
        at_ms=counts,
        parent=st.none() | st.tuples(names, counts),
        timers=st.booleans(),
    ),
    Delivery: st.builds(
        Delivery,
        number=numbers,
        kind=st.sampled_from([int(kind) for kind in DeliveryKind]),
        payload=payloads,
        now_ms=counts,
    ),
    Wake: st.builds(Wake, call=numbers, status=_statuses, payload=payloads, now_ms=counts),
    Woken: st.builds(Woken, count=counts, generation=counts, at_ms=counts, entropy=st.just(b"") | digests),
    Tried: st.builds(
        Tried, ok=st.booleans(), size_bytes=counts, at_ms=counts, error=st.none() | st.text(max_size=256)
    ),
    Upgraded: st.builds(
        Upgraded,
        agent=names,
        package=st.just(digest(AGENT)),
        code_digest=digests,
        image_digest=digests,
        limits=_limits,
        allow=_rules,
        deny=_rules,
        ask=_rules,
        at_ms=counts,
        timers=st.booleans(),
    ),
    Abandoned: st.builds(Abandoned, delivery=numbers, error=_errors),
    Slice: st.builds(
        Slice,
        calls=st.lists(_intents, max_size=3).map(tuple),
        cancelled=st.lists(numbers, max_size=3).map(tuple),
        reply=st.none() | st.tuples(st.booleans(), payloads),
        error=st.none() | _errors,
        by_clock=st.booleans(),
        fuel=counts,
        digest=st.just(b"") | digests,
    ),
    Decision: st.builds(
        Decision,
        call=numbers,
        verdict=st.sampled_from(get_args(Verdict)),
        rule=_texts,
        by=names,
        at_ms=counts,
    ),
    Start: st.builds(Start, call=numbers, execution=names, effect=st.sampled_from(get_args(EffectClass))),
    Receipt: st.builds(Receipt, call=numbers, execution=names, status=_statuses, payload=payloads),
    Resolution: st.builds(
        Resolution,
        call=numbers,
        ruling=st.sampled_from(get_args(Ruling)),
        payload=st.just(b"") | payloads,
        by=names,
        at_ms=counts,
    ),
    SnapshotTaken: st.builds(SnapshotTaken, digest=digests, reason=_texts),
    Stopped: st.builds(Stopped, reason=_texts, at_ms=counts),
}
"""
How any record of each kind comes about.
"""

any_record: Final = st.one_of(*STRATEGIES.values())

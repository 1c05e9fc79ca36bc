"""
From a module to its image: bounded like any delivery, and a function of the module alone.
"""

from __future__ import annotations

import threading
from typing import Final

import pytest

from runner.errors import DeadlineExceeded, FuelExhausted, GuestTrapped, MemoryExceeded, SnapshotIncompatible
from runner.kernel.admission import admit
from runner.kernel.boot import adopt, boot
from runner.kernel.engine import assemble_wat
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.slice import LogLine
from runner.kernel.state import Mind
from tests.kernel.guests import (
    FREE,
    GRANTED,
    deliver,
    engine,
    guest_text,
    image_of,
    memory_of,
    program,
    reply,
    scripted,
    scripted_image,
    scripted_text,
)

LOG: Final = '(import "agent" "log" (func $log (param i32 i32 i32) (result i32)))'
CHATTY: Final = """(module
  (import "agent" "log" (func $log (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\61a\\61b")
  (global $count (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func $first
    (drop (call $log (i32.const 1) (i32.const 0) (i32.const 2)))
    (global.set $count (i32.add (global.get $count) (i32.const 1))))
  (start $first)
  (func (export "agent_start")
    (drop (call $log (i32.const 1) (i32.const 2) (i32.const 2)))
    (i32.store (i32.const 100) (global.get $count)))
  (func (export "agent_deliver") (param i32 i32 i32))
  (func (export "agent_wake") (param i32 i32 i32)))"""


def booting(body: str, limits: Limits, *, start: bool = False) -> None:
    """
    Boot a guest whose `agent_start`, or start function, is `body`.
    """
    text = guest_text("").replace('"agent_start")', f'"agent_start") {"" if start else body}')
    if start:
        text = text.replace("(memory", f"(func $first {body}) (start $first) (memory")
    boot(program(text), limits)


def test_the_start_function_runs_first_and_under_the_same_bounds() -> None:
    """Both may log; the image is the mind after both."""
    image, logs = boot(program(CHATTY), Limits())
    assert logs == (LogLine(1, "a"), LogLine(1, "b"))  # type: ignore[arg-type]
    assert (image.globals, image.mind.pages[0][100]) == ((1,), 1)


def test_an_image_depends_on_its_module_alone() -> None:
    """Twice the same, mapped or copied."""
    made = scripted()
    images = [image_of(made), image_of(made, copied=True), image_of(program(scripted_text()))]
    assert {image.digest for image in images} == {scripted_image().digest}
    assert images[0].mind == images[1].mind


def test_an_image_does_not_depend_on_what_was_granted() -> None:
    """A guest can't ask in its boot what it may do later: snapshots outlive a policy."""
    text = scripted_text(
        start="(call $push (call $llm.chat (i32.const 0) (i32.const 0)))"
        "(call $push (call $tool.call (i32.const 0) (i32.const 0)))"
    )
    refused = frozenset({"llm.chat", "tool.call"})
    granted = image_of(program(text))
    assert image_of(program(text, granted=GRANTED - refused, denied=refused)).digest == granted.digest


@pytest.mark.parametrize("start", [True, False])
def test_a_boot_that_spins_ends_by_its_fuel(start: bool) -> None:
    """Also in a start function, which would otherwise run before there are limits."""
    with pytest.raises(FuelExhausted, match=r"^limit fuel exceeded: 1000000 of 1000000$"):
        booting("(loop $spin (br $spin))", Limits(fuel=1_000_000), start=start)


def test_start_function_and_boot_share_one_budget() -> None:
    """Neither half is free."""
    body = """(local $n i32) (loop $again
      (local.set $n (i32.add (local.get $n) (i32.const 1)))
      (br_if $again (i32.lt_s (local.get $n) (i32.const 100000))))"""
    text = guest_text("").replace('"agent_start")', f'"agent_start") {body}')
    once = program(text)
    twice = program(text.replace("(memory", f"(func $first {body}) (start $first) (memory"))
    boot(once, Limits(fuel=1_000_000))
    with pytest.raises(FuelExhausted):
        boot(twice, Limits(fuel=1_000_000))


def test_a_boot_that_traps_says_where() -> None:
    """There is no image then."""
    with pytest.raises(GuestTrapped, match=r"^guest trapped: unreachable in function 1$"):
        booting("(unreachable)", Limits())


def test_a_boot_ends_by_its_deadline() -> None:
    """Wall time as the host reports it."""
    over = threading.Event()

    def tick() -> None:
        while not over.is_set():
            engine().tick()

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        with pytest.raises(DeadlineExceeded):
            booting("(loop $spin (br $spin))", Limits(fuel=(1 << 63) - 1, timeout_ms=10))
    finally:
        over.set()
        ticker.join()


def test_a_boot_may_grow_its_memory_up_to_the_limit() -> None:
    """The image is as large as the memory is then."""
    text = guest_text("").replace(
        '"agent_start")',
        '"agent_start") (drop (memory.grow (i32.const 2))) (i32.store (i32.const 131072) (i32.const 5))'
        "(if (i32.ne (memory.grow (i32.const 2)) (i32.const -1)) (then (unreachable)))",
    )
    image = image_of(program(text), Limits(memory_bytes=4 * 65536))
    assert (image.memory_bytes, list(image.mind.pages)) == (3 * 65536, [32])
    instance = Machine(program(text), image, Limits(), entropy=bytes(32))
    assert memory_of(instance, 131072, 4) == b"\x05\0\0\0"
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 196608 of 131072$"):
        Machine(program(text), image, Limits(memory_bytes=2 * 65536), entropy=bytes(32))


def test_an_image_from_an_agent_file_is_adopted_without_a_boot() -> None:
    """It was booted when it was built."""
    made, image = scripted(), scripted_image()
    other = adopt(image.mind, made.admitted)
    assert other.digest == image.digest
    instance = Machine(made, other, Limits(), entropy=bytes(32))
    assert deliver(instance, 1, reply(1)).failure is None
    assert memory_of(instance, FREE + 0x8000, 5) == b"image"


@pytest.mark.parametrize(
    "mind",
    [
        Mind(65536, {}, scripted_image().globals),
        Mind(131072, {32: bytes(4096)}, scripted_image().globals),
        Mind(131072, {}, ()),
        Mind(131072, {}, (1 << 40, 0, 0.0, 0)),
    ],
)
def test_an_image_that_does_not_fit_its_module_is_refused(mind: Mind) -> None:
    """Anyone may have written it."""
    with pytest.raises(SnapshotIncompatible):
        adopt(mind, scripted().admitted)


def test_an_image_may_not_be_larger_than_the_module_allows() -> None:
    """By the maximum that its memory declares, also when that is nothing."""
    admitted = admit(assemble_wat(guest_text("", memory="0 0")), engine().wasmtime)
    assert adopt(Mind(0, {}, ()), admitted).memory_bytes == 0
    with pytest.raises(SnapshotIncompatible, match=r"memory_bytes is 65536, expected 0 to 0$"):
        adopt(Mind(65536, {}, ()), admitted)


def test_logs_of_a_boot_are_bounded() -> None:
    """Like those of any slice."""
    line = "(drop (call $log (i32.const 1) (i32.const 0) (i32.const 2)))"
    text = guest_text("", imports=LOG, extra='(data (i32.const 0) "\\61a")').replace(
        '"agent_start")', f'"agent_start") {line * 5}'
    )
    assert len(boot(program(text), Limits(log_lines_per_slice=3))[1]) == 3

"""
One instantiation: bounded, complete, and gone when it is dropped.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from runner.errors import GuestTrapped, MemoryExceeded
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from runner.kernel.state import Mind
from tests.kernel.guests import (
    Op,
    ask,
    chat,
    command,
    deliver,
    guest_text,
    image_of,
    machine,
    memory_of,
    program,
    reply,
    results,
    scripted_text,
)

ROOT: Final = Path(__file__).resolve().parents[2]
ANSWER: Final = "(drop (call $chat (i32.const 0) (i32.const 1)))"
CHAT: Final = '(import "llm" "chat" (func $chat (param i32 i32) (result i32)))'
EMPTY: Final = '(data (i32.const 0) "\\a0")'

HELLO: Final = '(data (i32.const 100) "hello")'
COMPUTED: Final = {
    "a segment at a computed place": '(data (i32.add (i32.const 90) (i32.const 10)) "hello")',
    "segments far apart": HELLO + '(data (i32.const 60000000) "there")',
    "declared functions": HELLO + "(elem declare func $f) (func $f (drop (ref.func $f)))",
    "passive functions": HELLO + "(table 2 funcref) (elem func $f) (func $f)",
    "functions at a computed place": HELLO
    + "(table 4 funcref) (elem (i32.add (i32.const 1) (i32.const 1)) $f) (func $f)",
    "null functions": HELLO
    + "(table 4 funcref) (elem (i32.const 0) funcref (ref.null func) (ref.func $f)) (func $f)",
    "a computed global": HELLO + "(global i32 (i32.mul (i32.const 3) (i32.const 2)))",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_what_generated_code_lays_is_there_at_every_start(name: str) -> None:
    """The engine lays it with code that counts fuel and time; neither is the guest's own."""
    text = guest_text(ANSWER, imports=CHAT, extra=EMPTY + COMPUTED[name], memory="960")
    instance = machine(text, Limits(memory_bytes=1 << 27))
    assert memory_of(instance, 100, 5) == b"hello"
    instance.program.engine.tick()
    assert deliver(instance, 1).failure is None
    instance.abandon(GuestTrapped("none"))
    assert deliver(instance, 2).failure is None


@pytest.mark.parametrize(
    ("extra", "trap"),
    [
        ('(data (i32.const 65530) "0123456789")', "memory_out_of_bounds"),
        ('(data (i32.const -1) "0")', "memory_out_of_bounds"),
        ("(table 1 funcref) (elem (i32.const 1) $f) (func $f)", "table_out_of_bounds"),
    ],
)
def test_a_segment_outside_is_a_trap_of_the_guest(extra: str, trap: str) -> None:
    """A typed outcome, before there is an image."""
    with pytest.raises(GuestTrapped) as caught:
        machine(guest_text("", extra=extra))
    assert caught.value.trap == trap


def test_memory_and_tables_share_one_limit() -> None:
    """A table of 8,192 functions takes one page of 64 KiB."""
    text = scripted_text(extra="(table 8192 funcref)")
    made = program(text)
    assert made.admitted.table_bytes == 65536
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 196608 of 196607$"):
        image_of(made, Limits(memory_bytes=3 * 65536 - 1))
    instance = Machine(made, image_of(made), Limits(memory_bytes=4 * 65536), entropy=bytes(32))
    deliver(instance, 1, command(Op.GROW, 1) + command(Op.GROW, 1) + reply(1))
    assert results(instance)[:2] == [2, -1]


def test_a_table_alone_may_exceed_the_limit() -> None:
    """Also when the memory asks for nothing."""
    made = program(guest_text("", extra="(table 10000 funcref)", memory="0"))
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 80000 of 79999$"):
        image_of(made, Limits(memory_bytes=79_999))
    assert image_of(made, Limits(memory_bytes=80_000)).memory_bytes == 0


def test_a_mind_that_needs_the_room_of_the_tables_is_refused() -> None:
    """When it is thawed, with both sizes in the message."""
    made = program(scripted_text(extra="(table 8192 funcref)"))
    image = image_of(made)
    grown = image.overlay(Mind(4 * 65536, {}, image.globals))
    instance = Machine(made, image, Limits(), entropy=bytes(32))
    with pytest.raises(MemoryExceeded, match=r"^limit memory_bytes exceeded: 327680 of 262144$"):
        Machine(made, grown, Limits(memory_bytes=4 * 65536), entropy=bytes(32))
    assert instance.memory_bytes == 2 * 65536


def test_a_dropped_instance_is_gone_at_once() -> None:
    """A thousand of them, their memories and descriptors, without the garbage collector."""
    instance = machine()
    state = instance.freeze()
    gc.collect()
    gc.disable()
    try:
        before = len(Path("/proc/self/maps").read_bytes().splitlines())
        alive = [machine(limits=Limits(fuel=100_000)) for _ in range(1000)]
        for each in alive[:100]:
            deliver(each, 1, chat() + ask("agent.now"))
            each.abandon(GuestTrapped("none"))
            for number, op in enumerate((Op.UNREACHABLE, Op.SPIN, Op.RECURSE, Op.THROW), start=2):
                deliver(each, number, command(op))
        alive += [Machine.thaw(instance.program, instance.image, Limits(), state) for _ in range(10)]
        during = len(Path("/proc/self/maps").read_bytes().splitlines())
        assert during > before + 1000
        del alive, each
        after = len(Path("/proc/self/maps").read_bytes().splitlines())
        # Some are of Python's own heap, which does not give back all that it got.
        assert after < before + 50
    finally:
        gc.enable()


def test_a_process_without_address_space_says_so_and_goes_on() -> None:
    """A typed error when no further instance fits; those that live are not disturbed."""
    code = """if True:
        import resource
        from runner.errors import HostExhausted
        from tests.kernel.guests import deliver, machine, reply
        alive = [machine()]
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 30), resource.RLIM_INFINITY))
        try:
            while len(alive) < 100:
                alive.append(machine())
        except HostExhausted as error:
            assert error.kind == "limit", error
            print(1 < len(alive) < 8)
        assert all(deliver(each, 1, reply(1)).failure is None for each in alive)
        alive.pop()
        print(deliver(machine(), 1, reply(1)).failure)
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("True\nNone\n", "")

"""
The engine: the same results on every processor, bounded stacks, and a clock that the host moves.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import pytest
import wasmtime

from runner.errors import AgentInvalid, InternalError, ModuleRejected
from runner.kernel import engine as engine_module
from runner.kernel.engine import (
    MAX_DEADLINE_TICKS,
    CodeUnusable,
    Engine,
    EngineSettings,
    assemble_wat,
    wasmtime_release,
)
from runner.kernel.limits import Limits
from runner.kernel.machine import Machine
from tests.kernel.guests import (
    FREE,
    Op,
    ask,
    chat,
    command,
    deliver,
    engine,
    guest_text,
    image_of,
    program,
    reply,
    scripted,
    scripted_image,
    scripted_text,
    send,
    wake,
)

PULLEY: Final = "pulley64"

SPECIAL: Final = (
    "nan",
    "nan:0x4000000000001",
    "-nan",
    "inf",
    "-inf",
    "0",
    "-0",
    "1.5",
    "-2.75e300",
    "4.9e-324",
    "9007199254740993",
)
"""
Operands of the arithmetic below, as f64 constants of the text format.
"""

UNARY: Final = ("f64.sqrt", "f64.ceil", "f64.floor", "f64.trunc", "f64.nearest", "f64.neg", "f64.abs")
BINARY: Final = ("f64.add", "f64.sub", "f64.mul", "f64.div", "f64.min", "f64.max", "f64.copysign")
VECTOR: Final = (
    "f64x2.add",
    "f64x2.mul",
    "f64x2.div",
    "f64x2.min",
    "f64x2.pmax",
    "i32x4.mul",
    "i8x16.swizzle",
)
NARROW: Final = ("f32.add", "f32.mul", "f32.div", "f32.min")


def arithmetic() -> str:
    """
    A guest that stores the bits of every operation on every operand, those of a NaN included.
    """
    stores: list[str] = []

    def store(kind: str, size: int, value: str) -> None:
        stores.append(f"({kind}.store (i32.const {4096 + 16 * len(stores)}) {value})")
        assert size <= 16

    constants = [f"(f64.const {value})" for value in SPECIAL]
    for left in constants:
        for operation in UNARY:
            store("f64", 8, f"({operation} {left})")
        store("f32", 4, f"(f32.demote_f64 {left})")
        store("i64", 8, f"(i64.trunc_sat_f64_s {left})")
        store("i32", 4, f"(i32.trunc_sat_f64_u {left})")
        for right in constants:
            for operation in BINARY:
                store("f64", 8, f"({operation} {left} {right})")
            for operation in NARROW:
                store("f32", 4, f"({operation} (f32.demote_f64 {left}) (f32.demote_f64 {right}))")
            for operation in VECTOR:
                store("v128", 16, f"({operation} (f64x2.splat {left}) (f64x2.splat {right}))")
    stores.append("(drop (call $chat (i32.const 0) (i32.const 1)))")
    return guest_text(
        "(call $all)",
        imports='(import "llm" "chat" (func $chat (param i32 i32) (result i32)))',
        extra=f'(data (i32.const 0) "\\a0") (func $all {" ".join(stores)})',
        memory="2",
    )


def test_arithmetic_is_the_same_on_another_processor() -> None:
    """Every bit of it, NaNs and vectors included; the portable interpreter stands for the other one."""
    digests = set()
    for target in (None, PULLEY):
        made = program(arithmetic(), on=engine(target))
        instance = Machine(made, image_of(made), Limits(), entropy=bytes(32))
        assert deliver(instance).failure is None
        digests.add(instance.digest())
    assert len(digests) == 1


def test_a_life_is_the_same_on_another_processor() -> None:
    """Steps, failures and digests; and a mind goes from one to the other in the middle of a delivery."""
    here = Machine(scripted(), scripted_image(), Limits(), entropy=bytes(32))
    there = Machine(scripted(PULLEY), scripted_image(PULLEY), Limits(), entropy=bytes(32))
    assert scripted_image().digest == scripted_image(PULLEY).digest
    for number in range(1, 5):
        script = (
            ask("agent.random", FREE + 64, 100)
            + command(Op.GROW, number)
            + command(Op.FILL, 0x8000, number, 50_000)
            + command(Op.NAN, FREE + 512)
            + command(Op.SET_F64, number, 0x7FF40000)
            + send("agent.log", {"message": "line", "n": number}, 1)
            + chat()
        )
        one, other = (deliver(each, number, script) for each in (here, there))
        assert (one.calls, one.logs) == (other.calls, other.logs)
        assert here.digest() == there.digest()
        here, there = (
            Machine.thaw(scripted(), scripted_image(), Limits(), there.freeze()),
            Machine.thaw(scripted(PULLEY), scripted_image(PULLEY), Limits(), here.freeze()),
        )
        if number == 3:
            for each in (here, there):
                assert wake(each, number, command(Op.RECURSE)).failure is not None
        else:
            assert wake(here, number, reply(number)).reply == wake(there, number, reply(number)).reply
        assert here.digest() == there.digest()


def test_a_spinning_guest_uses_the_same_fuel_on_another_processor() -> None:
    """Fuel counts instructions of WebAssembly, not of the machine."""
    spent = {
        deliver(
            Machine(scripted(target), scripted_image(target), Limits(), entropy=bytes(32)),
            1,
            command(Op.BURN, 12345) + chat(),
        ).fuel
        for target in (None, PULLEY)
    }
    assert len(spent) == 1


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        ("threads", "(module (memory 1 1 shared))"),
        ("memory64", "(module (memory i64 1))"),
        ("multi-memory", "(module (memory 1) (memory 1))"),
        ("gc", "(module (type (struct (field i32))))"),
        (
            "relaxed simd",
            "(module (func (param v128 v128) (result v128) local.get 0 local.get 1 i8x16.relaxed_swizzle))",
        ),
        ("tail calls", "(module (func $f (return_call $f)))"),
        ("function references", "(module (type $t (func)) (func (param (ref $t))))"),
        ("stack switching", "(module (type $f (func)) (type $c (cont $f)))"),
        (
            "wide arithmetic",
            "(module (func (result i64 i64) (i64.mul_wide_u (i64.const 1) (i64.const 1))))",
        ),
        ("custom page sizes", "(module (memory 1 (pagesize 1)))"),
        ("components", "(component)"),
    ],
)
def test_what_can_not_be_captured_or_differs_between_processors_is_off(feature: str, text: str) -> None:
    """State in other places, and results of the processor's choice."""
    with pytest.raises(ModuleRejected):
        engine().compile(assemble_wat(text))
    assert feature


def test_compiled_code_is_kept_for_engines_of_its_kind_only(tmp_path: Path) -> None:
    """Release, target and switches make the key; a file of another is made anew."""
    code = assemble_wat(scripted_text())
    native, again, other = Engine(), Engine(), Engine(EngineSettings(PULLEY))
    assert native.fingerprint == again.fingerprint != other.fingerprint
    assert native.code_key(code) == again.code_key(code)
    assert len({native.code_key(code), native.code_key(code + b"."), other.code_key(code)}) == 3
    file = tmp_path / "code"
    file.write_bytes(native.precompile(code))
    assert [item.name for item in again.load(file).exports] == [
        item.name for item in native.compile(code).exports
    ]
    with pytest.raises(CodeUnusable):
        other.load(file)
    with pytest.raises(CodeUnusable):
        native.load(tmp_path / "nothing")


def test_the_release_is_that_of_the_installed_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read off the metadata's folder, or asked for where there is none."""
    from importlib import metadata

    expected = metadata.version("wasmtime")
    assert wasmtime_release() == expected
    wasmtime_release.cache_clear()
    monkeypatch.setattr(wasmtime, "__file__", str(tmp_path / "wasmtime" / "__init__.py"))
    assert wasmtime_release() == expected
    wasmtime_release.cache_clear()


def test_an_engine_without_a_switch_that_we_need_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting what the binding does not know would change nothing, silently."""
    monkeypatch.setitem(engine_module._FEATURES, "wasm_dreams", False)
    with pytest.raises(InternalError, match=r"^this release of wasmtime has no switch for wasm_dreams$"):
        Engine()


def test_text_that_does_not_parse_is_named_with_its_place() -> None:
    """By the assembler's line and column."""
    with pytest.raises(AgentInvalid) as caught:
        assemble_wat("(module\n  (func (i32.bogus)))", path="a.wat")
    assert caught.value.message.splitlines()[0] == "a.wat: not valid WebAssembly text"
    assert "a.wat:2:10" in caught.value.message


@pytest.mark.parametrize(
    ("deadline_ms", "ticks"),
    [(-(1 << 70), 1), (0, 1), (1, 2), (10, 2), (11, 3), (30_000, 3001), (1 << 70, MAX_DEADLINE_TICKS)],
)
def test_a_deadline_is_some_ticks_and_never_none(deadline_ms: int, ticks: int) -> None:
    """One more than it takes, since the present tick has begun; the engine would wrap anything else."""
    assert Engine().deadline_ticks(deadline_ms) == ticks


def test_the_longest_deadline_is_not_lost_between_threads() -> None:
    """An interrupt has to step over it."""
    made = Engine()
    threads = [
        threading.Thread(target=lambda: [made.deadline_ticks(ms) for ms in range(0, 2000, 10)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    made.deadline_ticks(50_000)
    for thread in threads:
        thread.join()
    before = made.ticks
    made.interrupt()
    assert (made.ticks - before, made.interrupts, made.interrupted) == (5002, 1, True)
    made.tick()
    assert made.ticks - before == 5003


def test_a_module_on_which_the_compiler_gives_up_is_refused() -> None:
    """
    Valid, and beyond what the compiler was made for; the refusal is one line and bounded.
    """
    targets = "0 " * 70_000
    wasm = assemble_wat(f"(module (func (param i32) (block (br_table {targets} (local.get 0)))))")
    with pytest.raises(ModuleRejected, match=r"^module refused: module: the compiler gives up: ") as caught:
        engine().compile(wasm)
    assert caught.value.rule == "compile"
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400

"""
Admission: every rule by its refusal, and what is found of a module that is let in.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

import pytest
import wasmtime

from benchmarks.modules import hand_written
from runner import codec
from runner.errors import ModuleRejected
from runner.kernel.abi import IMPORTS
from runner.kernel.admission import (
    MAX_CODE_BYTES,
    MAX_FUNCTION_BYTES,
    MAX_FUNCTION_CALLS,
    MAX_MUTABLE_GLOBALS,
    Admitted,
    GlobalSlot,
    admit,
)
from runner.kernel.engine import assemble_wat
from runner.kernel.wasm.custom import custom_sections, with_custom_section, without_custom_sections
from runner.kernel.wasm.sections import HEADER
from tests.kernel.guests import engine

_MARKER: Final = '(func (export "runner_abi_v1"))'
_MEMORY: Final = '(memory (export "memory") 1)'
_START: Final = '(func (export "agent_start"))'
_DELIVER: Final = '(func (export "agent_deliver") (param i32 i32 i32))'
_WAKE: Final = '(func (export "agent_wake") (param i32 i32 i32))'
_REST: Final = f"{_START} {_DELIVER} {_WAKE}"
_CHAT: Final = "(func (param i32 i32) (result i32))"
_ENTRIES: Final = ["memory", "runner_abi_v1", "agent_start", "agent_deliver", "agent_wake"]


def _agent(extra: str = "", *, first: str = "", memory: str = _MEMORY) -> str:
    """
    The smallest agent and something more; imports must stand `first`.
    """
    return f"(module {first} {memory} {_MARKER} {_REST} {extra})"


def _admit(text: str) -> Admitted:
    return admit(assemble_wat(text), engine().wasmtime)


def _refusal(wasm: bytes) -> tuple[str, str, str | None]:
    """
    Rule, message and fix.
    """
    with pytest.raises(ModuleRejected) as caught:
        admit(wasm, engine().wasmtime)
    return caught.value.rule, str(caught.value), caught.value.hint


# -- what is refused ----------------------------------------------------------------------------

_REBUILD: Final = "build the module again with a toolchain for core WebAssembly"
_FEATURES: Final = (
    "build for WebAssembly 1.0 with sign extension, saturating conversion, bulk memory, "
    "multi-value, reference types, SIMD and exceptions at most"
)
_KEEP: Final = "keep tables and segments as the module declares them"
_AS_THE_ABI: Final = "declare it as the ABI does"

_BYTES = [
    (b"", "not-wasm", "module: it is not WebAssembly", _REBUILD),
    (b"(module)", "not-wasm", "module: it is not WebAssembly", _REBUILD),
    (
        b"\0asm\x0d\0\x01\0",
        "component",
        "module: it is a component, whose memory can't be captured",
        "build a core module, without a component adapter or wit bindings",
    ),
    (b"\0asm\x02\0\0\0", "malformed", "byte 0: no header of a core module of version 1", _REBUILD),
    (HEADER + b"\x01\x09", "malformed", "byte 10: a length reaches past its section", _REBUILD),
    (
        HEADER + b"\x01\x01\x07",
        "invalid",
        "module: it is not valid: unexpected end-of-file (at offset 0xb)",
        _REBUILD,
    ),
    (
        with_custom_section(HEADER, "ballast", bytes(MAX_CODE_BYTES)),
        "module-size",
        "module: its code has 16.0 MiB, and at most 16.0 MiB are admitted",
        "strip debug sections, optimize for size, or load data as notes",
    ),
]

_TEXTS = [
    (
        '(module (import "wasi_snapshot_preview1" "fd_write" (func)))',
        "import-wasi",
        "import wasi_snapshot_preview1.fd_write: WASI does not exist here",
        "build without WASI, or define inside the module what the language's runtime wants of it",
    ),
    (
        '(module (import "wasi:io/poll@0.2.0" "poll" (global i32)))',
        "import-wasi",
        "import wasi:io/poll@0.2.0.poll: WASI does not exist here",
        "build without WASI, or define inside the module what the language's runtime wants of it",
    ),
    (
        '(module (import "env" "system\\n" (func)))',
        "import-unknown",
        "import env.system\\n: the ABI has no such operation",
        "it may be a symbol that the linker did not find: define it in the module",
    ),
    (
        '(module (import "llm" "train" (func)))',
        "import-unknown",
        "import llm.train: the ABI has no such operation",
        "llm offers chat, complete, usage",
    ),
    (
        '(module (import "clock" "now" (func)))',
        "import-unknown",
        "import clock.now: the ABI has no such operation",
        "import only from llm, tool, memory, agent",
    ),
    (
        f'(module (import "llm.chat" "" {_CHAT}) (import "" "llm.chat" {_CHAT}))',
        "import-unknown",
        "import llm.chat.: the ABI has no such operation",
        "import only from llm, tool, memory, agent",
    ),
    (
        f'(module (import "" "llm.chat" {_CHAT}))',
        "import-unknown",
        "import .llm.chat: the ABI has no such operation",
        "import only from llm, tool, memory, agent",
    ),
    *(
        (
            f'(module (import "agent" "x" ({kind})))',
            "import-kind",
            f"import agent.x: it is a {kind.split()[0]}, and only functions can be imported",
            "define it in the module",
        )
        for kind in ("memory 1", "table 1 funcref", "global (mut i32)", "tag")
    ),
    (
        '(module (import "llm" "chat" (func (param i64 i64) (result i64))))',
        "import-signature",
        "import llm.chat: it is declared as (i64, i64) -> (i64), and is (i32, i32) -> (i32)",
        _AS_THE_ABI,
    ),
    (
        f"(module {_MEMORY} {_REST})",
        "export-missing",
        "export runner_abi_v1: it is missing",
        "export a function of that name",
    ),
    (
        f'(module {_MEMORY} (func (export "runner_abi_v2")) (func (export "runner_abi_v3")) {_REST})',
        "abi-version",
        (
            "export runner_abi_v2: the module speaks another version of the ABI, "
            "and this host speaks runner_abi_v1"
        ),
        "use a release of the host that speaks it, or build the agent with this release's SDK",
    ),
    (
        f"(module {_MARKER} {_REST})",
        "memory-missing",
        "memory: the module has none",
        "define one and export it",
    ),
    (
        f"(module (memory 1) {_MARKER} {_REST})",
        "export-missing",
        "export memory: it is missing",
        "export a memory of that name",
    ),
    (
        f'(module (memory 1) (global (export "memory") i32 (i32.const 0)) {_MARKER} {_REST})',
        "export-kind",
        "export memory: it is a global",
        "export a memory of that name",
    ),
    (
        f'(module {_MEMORY} {_MARKER} {_START} {_DELIVER} (func (export "agent_wake") (param i64)))',
        "export-signature",
        "export agent_wake: its type is (i64) -> (), and must be (i32, i32, i32) -> ()",
        _AS_THE_ABI,
    ),
    (
        _agent('(func (export "runner.start"))'),
        "export-reserved",
        "export runner.start: names that begin with runner. are the host's",
        "give it another name",
    ),
    (
        _agent(memory='(memory 1) (memory (export "memory") 1)'),
        "feature",
        "module: it uses what is switched off: multiple memories (at offset 0x1d)",
        _FEATURES,
    ),
    (
        _agent("(table 1 funcref) (table 1 externref)"),
        "table-type",
        "table 1: its elements are externref, and only functions are admitted",
        "keep such values in locals",
    ),
    (
        _agent("(table 9999999 funcref) (table 2 10 funcref)"),
        "table-size",
        "tables: they have 10000001 elements, and at most 10000000 are admitted",
        "declare as many elements as there are functions to call",
    ),
    *(
        (
            _agent(f"(global i32 (i32.const 0)) (global (mut {kind}) {value})"),
            "global-type",
            f"global 1: it is mutable and {kind}, which can't be captured",
            fix,
        )
        for kind, value, fix in (
            (
                "f32",
                "(f32.const 0)",
                "make it f64 or keep it in memory: an f32 that is no number can't be carried exactly",
            ),
            ("v128", "(v128.const i64x2 0 0)", "keep it in memory"),
            ("funcref", "(ref.null func)", "keep an index in its place"),
            ("externref", "(ref.null extern)", "keep an index in its place"),
            ("exnref", "(ref.null exn)", "keep an index in its place"),
        )
    ),
    (
        _agent("(global (mut i32) (i32.const 0))" * (MAX_MUTABLE_GLOBALS + 1)),
        "global-count",
        "globals: 1025 are mutable, and at most 1024 are admitted",
        "keep them in memory",
    ),
    (
        _agent("(global i32 (i32.const 0))" * 10_001),
        "too-many",
        "global section: 10001 items, and at most 10000 are admitted",
        "let the toolchain drop what the agent doesn't use",
    ),
    (
        _agent(f"(func $big {'(nop)' * MAX_FUNCTION_BYTES})"),
        "function-size",
        "function 4 (big): it has 512.0 KiB, and at most 512.0 KiB are admitted",
        "split it",
    ),
    (
        _agent("(table 1 funcref) (func $sneak (table.set (i32.const 0) (ref.null func)))"),
        "state-change",
        "function 4 (sneak): table.set changes what a snapshot doesn't hold",
        _KEEP,
    ),
    (
        _agent('(data "x") (func (data.drop 0))', first=f'(import "llm" "chat" {_CHAT})'),
        "state-change",
        "function 5: data.drop changes what a snapshot doesn't hold",
        _KEEP,
    ),
    (
        _agent(f"(func $row {'(call $row)' * (MAX_FUNCTION_CALLS + 1)})"),
        "function-calls",
        "function 4 (row): it makes 8193 calls, and at most 8192 are admitted",
        "split it, or call in a loop",
    ),
    (
        _agent(f"(func $bomb (local {'i32 ' * 10_000}) {'(loop)' * 1_000})"),
        "function-effort",
        "function 4 (bomb): its compiling effort is 11062000, and at most 8000000 is admitted",
        "split it, or give it fewer locals, blocks and branches",
    ),
    (
        _agent(f"(func (local {'i32 ' * 7_000}) {'(block)' * 1_000})" * 15),
        "module-effort",
        "module: its compiling effort is 105930000, and at most 100000000 is admitted",
        "split the agent",
    ),
]


@pytest.mark.parametrize(("wasm", "rule", "problem", "fix"), _BYTES, ids=[row[1] for row in _BYTES])
def test_bytes_that_are_no_module_are_refused(wasm: bytes, rule: str, problem: str, fix: str) -> None:
    """
    By rule, item, problem and fix.
    """
    assert _refusal(wasm) == (rule, f"module refused: {problem}", fix)


@pytest.mark.parametrize(("text", "rule", "problem", "fix"), _TEXTS, ids=[row[1] for row in _TEXTS])
def test_a_module_that_breaks_a_rule_is_refused(text: str, rule: str, problem: str, fix: str) -> None:
    """
    By rule, item, problem and fix.
    """
    assert _refusal(assemble_wat(text)) == (rule, f"module refused: {problem}", fix)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ("(memory i64 1)", "memory64 must be enabled for 64-bit memories"),
        ("(memory 1 1 shared)", "threads must be enabled for shared memories"),
        ("(table i64 1 funcref)", "memory64 must be enabled for 64-bit tables"),
        ("(func $f return_call $f)", "tail calls support is not enabled"),
        ("(type (struct))", "struct indexed types not supported without the gc feature"),
        ("(rec (type (func)) (type (func)))", "rec group usage requires `gc` proposal to be enabled"),
        ("(func (param (ref func)))", "function references required for non-nullable types"),
        ("(memory 1) (func (drop (i32.atomic.load (i32.const 0))))", "threads support is not enabled"),
        ("(func try nop catch_all end)", "legacy_exceptions feature required for try instruction"),
        (
            "(memory 1 (pagesize 1))",
            "the custom page sizes proposal must be enabled to customize a memory's page size",
        ),
        (
            "(func (i64.add128 (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) drop drop)",
            "wide arithmetic support is not enabled",
        ),
        (
            "(func (drop (i8x16.relaxed_swizzle (v128.const i64x2 0 0) (v128.const i64x2 0 0))))",
            "relaxed SIMD support is not enabled",
        ),
    ],
)
def test_a_feature_that_is_off_is_refused_in_the_engines_own_words(extra: str, problem: str) -> None:
    """
    State that can't be captured, results that differ between processors, or more surface than needed.
    """
    rule, message, fix = _refusal(assemble_wat(f"(module {extra})"))
    assert rule == "feature"
    expected = f"module refused: module: it uses what is switched off: {problem} (at offset 0x"
    assert re.sub("[0-9a-f]+\\)$", "", message) == expected
    assert fix == _FEATURES


def test_the_engines_words_are_one_line_and_short() -> None:
    """
    They may quote the module.
    """
    name = "a\\n\\1b[31m" * 1000
    text = f'(module (func) (export "{name}" (func 0)) (export "{name}" (func 0)))'
    rule, message, _ = _refusal(assemble_wat(text))
    assert rule == "invalid"
    assert message.startswith("module refused: module: it is not valid: duplicate export name `a \\x1b[31ma ")
    assert len(message) < 300


def test_a_module_in_a_form_that_only_the_engine_reads_is_refused() -> None:
    """
    The engine may learn a new form before admission does. Compact imports are such a one.
    """
    wasm = HEADER + bytes([1, 4, 1, 0x60, 0, 0]) + bytes([2, 8, 1, 1, 0x61, 0, 0x7E, 0, 0, 0])
    wasmtime.Module.validate(engine().wasmtime, wasm)
    assert _refusal(wasm) == (
        "malformed",
        "module refused: byte 20: a kind of import or export is unknown to this release",
        _REBUILD,
    )


# -- what is let in -----------------------------------------------------------------------------


def _exports(admitted: Admitted) -> list[str]:
    return [item.name for item in wasmtime.Module(engine().wasmtime, admitted.code).exports]


def test_the_smallest_agent_is_let_in() -> None:
    """
    It asks for nothing and keeps nothing.
    """
    wasm = assemble_wat(_agent())
    assert admit(wasm, engine().wasmtime) == Admitted(
        code=wasm,
        code_digest=hashlib.sha256(wasm).digest(),
        imports=(),
        globals=(),
        memory_min_bytes=65_536,
        memory_max_bytes=None,
        table_bytes=0,
        start=None,
        upgrades=False,
    )


@pytest.mark.parametrize(
    ("extra", "upgrades"),
    [
        ("", False),
        ('(func (export "agent_upgrade") (param i32 i32 i32))', True),
        ('(func (export "agent_upgrades") (param i32))', False),
    ],
)
def test_an_agent_may_export_what_an_upgrade_needs(extra: str, upgrades: bool) -> None:
    """
    It is found by name, and kept in the rewritten module.
    """
    admitted = _admit(_agent(extra))
    assert admitted.upgrades is upgrades
    assert (b"agent_upgrade" in admitted.code) is upgrades
    assert Admitted.from_wire(admitted.to_wire()) == admitted


def test_an_export_for_upgrades_has_its_signature() -> None:
    """
    Optional does not mean any.
    """
    rule, message, _ = _refusal(assemble_wat(_agent('(func (export "agent_upgrade") (param i32))')))
    assert rule == "export-signature"
    assert (
        message
        == "module refused: export agent_upgrade: its type is (i32) -> (), and must be (i32, i32, i32) -> ()"
    )


def test_imports_are_operations_sorted_and_named_once() -> None:
    """
    A linker may import one twice.
    """
    names = ('"tool" "call"', '"llm" "chat"', '"tool" "call"')
    admitted = _admit(_agent(first=" ".join(f"(import {name} {_CHAT})" for name in names)))
    assert admitted.imports == ("llm.chat", "tool.call")


def test_every_operation_of_the_abi_may_be_imported() -> None:
    """
    With the signature of the table.
    """
    admitted = admit(hand_written(), engine().wasmtime)
    assert admitted.imports == tuple(sorted(entry.operation for entry in IMPORTS))


def test_hidden_globals_get_a_name_and_nothing_else_keeps_one() -> None:
    """
    AssemblyScript keeps its state in such globals and sets them up in a start function.
    """
    admitted = _admit(
        _agent("""
          (global $~lib/rt/itcms/total (mut i32) (i32.const 0))
          (global $~lib/rt/itcms/threshold i32 (i32.const 8))
          (global $~lib/rt/itcms/state (mut i64) (i64.const 0))
          (global $shown (export "shown") (mut f64) (f64.const 0))
          (export "again" (global $shown))
          (table (export "table") 3 9 funcref)
          (func $~start (global.set $~lib/rt/itcms/total (i32.const 1)))
          (func (export "__new") (param i32 i32) (result i32) (i32.const 0))
          (start $~start)""")
    )
    assert admitted.globals == (
        GlobalSlot("runner.global.0", "i32"),
        GlobalSlot("runner.global.2", "i64"),
        GlobalSlot("runner.global.3", "f64"),
    )
    assert admitted.start == "runner.start"
    assert admitted.table_bytes == 24
    names = [slot.export for slot in admitted.globals]
    assert _exports(admitted) == [*_ENTRIES, *names, "runner.start"]


def test_nothing_runs_when_the_rewritten_module_is_instantiated() -> None:
    """
    The start function waits to be called.
    """
    admitted = _admit(_agent("(func $boom (unreachable)) (start $boom)"))
    store = wasmtime.Store(engine().wasmtime)
    store.set_fuel(1_000)
    wasmtime.Instance(store, wasmtime.Module(engine().wasmtime, admitted.code), [])


def test_memory_is_told_in_bytes() -> None:
    """
    Four gibibytes at most.
    """
    admitted = _admit(_agent(memory='(memory (export "memory") 2 65536)'))
    assert (admitted.memory_min_bytes, admitted.memory_max_bytes) == (131_072, 1 << 32)


def test_a_newer_marker_beside_ours_does_no_harm() -> None:
    """
    A module may speak both.
    """
    assert _admit(_agent('(func (export "runner_abi_v2"))')).imports == ()


def test_what_an_agent_file_adds_changes_nothing() -> None:
    """
    Neither the digest nor any other finding, so that agents share what is kept for their code.
    """
    wasm = hand_written()
    packed = with_custom_section(with_custom_section(wasm, "runner.manifest", b"\0"), "runner.image", b"\1")
    assert admit(packed, engine().wasmtime) == admit(wasm, engine().wasmtime)


def test_a_large_image_does_not_make_the_code_too_large() -> None:
    """
    The bound is on code.
    """
    packed = with_custom_section(hand_written(), "runner.image", bytes(MAX_CODE_BYTES))
    plain = admit(hand_written(), engine().wasmtime)
    assert admit(packed, engine().wasmtime).code_digest == plain.code_digest


def test_names_are_kept_and_other_custom_sections_are_not() -> None:
    """
    Names tell where a trap happened. The digest is of what the module does, so that a snapshot fits the same
    text assembled by another release, which writes names differently.
    """
    wasm = with_custom_section(hand_written(), "producers", b"\0")
    admitted = admit(wasm, engine().wasmtime)
    assert [section.name for section in custom_sections(admitted.code)] == ["name"]
    bare = without_custom_sections(wasm, {"name", "producers"})
    assert admitted.code_digest == hashlib.sha256(bare).digest()


def test_findings_survive_their_wire_form() -> None:
    """
    They are kept from one process to the next.
    """
    for wasm in (hand_written(), assemble_wat(_agent())):
        admitted = admit(wasm, engine().wasmtime)
        assert Admitted.from_wire(codec.decode(codec.encode(admitted.to_wire()))) == admitted

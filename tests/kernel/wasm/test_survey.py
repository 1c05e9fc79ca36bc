"""
What a function is for the compiler, and what it changes.
"""

from __future__ import annotations

import pytest

from runner.kernel.engine import assemble_wat
from runner.kernel.wasm.module import read_module
from runner.kernel.wasm.reader import TooMany
from runner.kernel.wasm.sections import split
from runner.kernel.wasm.survey import MAX_CASES, Survey, survey


def _survey(code: str, *, locals_: str = "", params: str = "", around: str = "") -> Survey:
    wasm = assemble_wat(f"""(module
      (type $pair (func (param i32 i32) (result i32 i32)))
      (func $callee (type $pair) (local.get 0) (local.get 1))
      (table 2 funcref) (elem $e func $callee) (memory 1) (data $d "x") (tag $oops)
      {around}
      (func $f {params} {locals_} {code}))""")
    module = read_module(wasm, split(wasm))
    return survey(module, module.bodies[1], module.type_of(1))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("(table.set 0 (i32.const 0) (ref.null func))", "table.set"),
        ("(drop (table.grow 0 (ref.null func) (i32.const 1)))", "table.grow"),
        ("(table.fill 0 (i32.const 0) (ref.null func) (i32.const 1))", "table.fill"),
        ("(table.copy 0 0 (i32.const 0) (i32.const 0) (i32.const 0))", "table.copy"),
        ("(table.init 0 $e (i32.const 0) (i32.const 0) (i32.const 0))", "table.init"),
        ("(elem.drop $e)", "elem.drop"),
        ("(data.drop $d)", "data.drop"),
        ("(data.drop $d) (elem.drop $e)", "data.drop"),
    ],
)
def test_what_changes_a_table_or_drops_a_segment_is_found(code: str, name: str) -> None:
    """
    The first of them, wherever it stands.
    """
    assert _survey(f"(if (i32.const 0) (then {code}))").state_change == name


@pytest.mark.parametrize(
    "code",
    [
        "(drop (table.get 0 (i32.const 0)))",
        "(drop (table.size 0))",
        "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))",
        "(memory.fill (i32.const 0) (i32.const 0) (i32.const 1))",
        "(drop (i64.const 0x1109fc26))",
        "(drop (memory.grow (i32.const 1)))",
    ],
)
def test_what_only_reads_or_changes_memory_is_no_such_change(code: str) -> None:
    """
    Nor are the same bytes inside an operand.
    """
    assert _survey(code).state_change is None


@pytest.mark.parametrize(
    ("code", "effort"),
    [
        ("", 0),
        ("(block)", 2),  # 1 meeting x 2 locals
        ("(block (br 0))", 4),  # 2 x 2
        ("(drop (block (result i32) (i32.const 1)))", 3),  # 1 x (2 + 1 carried)
        ("(i32.const 1) (i32.const 1) (block (type $pair)) (drop) (drop)", 6),  # 1 x (2 + 4 carried)
        ("(loop)", 3),  # 1 x (2 + 1 loop)
        ("(drop (table.get 0 (i32.const 0)))", 2),
        ("(drop (memory.grow (i32.const 0)))", 8),  # 4 x 2
        ("(throw $oops)", 0),
        ("(block (try_table (catch $oops 0) (throw $oops)))", 20),  # (2 + 8) x 2
        ("(block (br_table 0 0 0 (i32.const 0)))", 6),  # (1 + 2 cases) x 2
        ("(call $callee (i32.const 1) (i32.const 2)) (drop) (drop)", 200),  # 2 results x 100
        ("(call_indirect (type $pair) (i32.const 1) (i32.const 2) (i32.const 0)) (drop) (drop)", 202),
        # A call under a handler counts 8: (1 block + 1 handler + 8) x 2, and 2 results.
        (
            "(block (try_table (catch $oops 0) (call $callee (i32.const 1) (i32.const 2)) (drop) (drop)))",
            220,
        ),
        ("(block)" * 16, 48),  # 16 x (2 + 16 / 16)
    ],
)
def test_effort_grows_with_meetings_and_values(code: str, effort: int) -> None:
    """
    The formula, term by term.
    """
    assert _survey(code, locals_="(local i32 i32)") == Survey(None, effort, code.count("(call"))
    assert _survey(code, params="(param i32 i32)") == Survey(None, effort, code.count("(call"))


def test_a_branch_into_more_targets_than_the_compiler_can_is_refused() -> None:
    """
    It would be refused there, after the work.
    """
    targets = " 0" * (MAX_CASES + 2)
    with pytest.raises(TooMany) as caught:
        _survey(f"(block (br_table {targets} (i32.const 0)))")
    assert caught.value.what == "br_table"

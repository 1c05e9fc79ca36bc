"""
One walk over a function: what in it can't be captured, and how much work it is for the compiler.

Input: hostile, validated by the engine.

The time and memory of an optimizing compiler grow with the product of the places where control flow meets
and the values that are alive there. Twelve kilobytes of valid code can ask for gigabytes, and the engine
aborts the whole process when it gets none. So that product is estimated first: roughly, rather too high,
and such that real interpreters stay far below a bound under which no function that we found takes long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runner.kernel.wasm.code import STATE_OPCODES, instructions
from runner.kernel.wasm.reader import Reader

if TYPE_CHECKING:
    from runner.kernel.wasm.code import Body
    from runner.kernel.wasm.module import FunctionType, Module

MAX_CASES: Final = 65_000
"""
Targets of one `br_table`; the engine's compiler gives up at 65,520.
"""

_BLOCK: Final = 0x02
_LOOP: Final = 0x03
_IF: Final = 0x04
_THROW: Final = 0x08
_THROW_REF: Final = 0x0A
_BR: Final = 0x0C
_BR_IF: Final = 0x0D
_BR_TABLE: Final = 0x0E
_CALL: Final = 0x10
_CALL_INDIRECT: Final = 0x11
_TRY_TABLE: Final = 0x1F
_TABLE_GET: Final = 0x25
_MEMORY_GROW: Final = 0x40

_BLOCKS: Final = frozenset({_BLOCK, _LOOP, _IF, _TRY_TABLE})

_MEETINGS: Final = {
    **dict.fromkeys((*_BLOCKS, _BR, _BR_IF), 1),
    # The engine makes branches of these, to look into a table whose elements it fills on first use,
    _CALL_INDIRECT: 1,
    _TABLE_GET: 1,
    # and of this, to see whether it failed: the dearest of all where one follows on another.
    _MEMORY_GROW: 4,
}

_EMPTY: Final = 0x40
_LONGER: Final = 0x80

_HANDLER_WEIGHT: Final = 8
"""
A call or a throw under a handler: all that is alive must be kept for it, on a path of its own.
"""

_RESULT_WEIGHT: Final = 100
"""
A call's result, which two bytes of code can ask a thousand times for.
"""

_MEETING_SHARE: Final = 16
"""
Meetings also cost something for each other one, though less than values do.
"""


@dataclass(frozen=True, slots=True)
class Survey:
    """
    What one function does.

    Attributes:
        state_change: The first instruction that changes state which can't be captured, or `None`.
        effort: Estimate of the compiler's work; without a unit.
        calls: Calls that it makes, written out.
    """

    state_change: str | None
    effort: int
    calls: int = 0


def survey(module: Module, body: Body, kind: FunctionType) -> Survey:
    """
    Walk over one function of `module`.

    Args:
        module: Where it stands.
        body: Its body.
        kind: Its type.

    Raises:
        WasmFormatError: If an instruction is unknown to this release.
    """
    meetings = loops = calls = throws = handlers = carried = cases = results = 0
    state_change = None
    for offset, opcode in instructions(module.wasm, body.start, body.end):
        meetings += _MEETINGS.get(opcode, 0)
        if opcode in _BLOCKS:
            loops += opcode == _LOOP
            handlers += opcode == _TRY_TABLE
            carried += _carried(module, offset)
        elif opcode == _CALL:
            calls += 1
            results += len(module.type_of(_operand(module, offset)).results)
        elif opcode == _CALL_INDIRECT:
            calls += 1
            results += len(module.type_at(_operand(module, offset)).results)
        elif opcode in {_THROW, _THROW_REF}:
            throws += 1
        elif opcode == _BR_TABLE:
            cases += Reader(module.wasm, offset + 1, body.end).count("br_table", MAX_CASES)
        elif opcode in STATE_OPCODES and state_change is None:
            state_change = STATE_OPCODES[opcode]
    meetings += (calls + throws) * handlers * _HANDLER_WEIGHT
    values = len(kind.params) + body.locals + carried + loops
    effort = (meetings + cases) * (values + meetings // _MEETING_SHARE) + results * _RESULT_WEIGHT
    return Survey(state_change, effort, calls)


def _operand(module: Module, offset: int) -> int:
    """
    First operand of the instruction of one byte at `offset`.
    """
    return Reader(module.wasm, offset + 1, len(module.wasm)).u32()


def _carried(module: Module, offset: int) -> int:
    """
    How many values the block at `offset` takes and gives.
    """
    first = module.wasm[offset + 1]
    if first == _EMPTY:
        return 0
    if _EMPTY < first < _LONGER:
        return 1
    kind = module.type_at(_operand(module, offset))
    return len(kind.params) + len(kind.results)

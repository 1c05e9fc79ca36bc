"""
Modules that nobody would write: admission and the kernel end each of them in a typed outcome.

The long version is a command: `python -m benchmarks.fuzz_modules --count 10000`.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fuzz_modules import outcome
from benchmarks.modules import generate, hand_written
from runner.errors import ModuleRejected
from runner.kernel.admission import admit
from tests.kernel.guests import engine


def test_generated_modules_are_refused_or_run_and_thaw_to_the_same_mind() -> None:
    """
    Wild ones, ones with the ABI's exports, and damaged ones; new ones each time, told by the seed.
    """
    seed = random.randrange(1 << 32)
    for number, (kind, wasm) in enumerate(generate(random.Random(seed), 60)):
        try:
            outcome(engine(), wasm)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            pytest.fail(f"seed {seed}, module {number}, {kind}: {type(error).__name__}: {error}")


def test_the_hand_written_module_runs_and_thaws_to_the_same_mind() -> None:
    """
    It has one of everything that admission reads.
    """
    assert outcome(engine(), hand_written()).startswith("ran: ")


@given(st.integers(0), st.binary(min_size=1, max_size=12), st.booleans())
def test_any_damage_ends_in_findings_or_a_refusal(place: int, bytes_: bytes, insert: bool) -> None:
    """
    Bytes overwritten or put in anywhere in a valid module.
    """
    whole = hand_written()
    place %= len(whole)
    wasm = whole[:place] + bytes_ + whole[place + (0 if insert else len(bytes_)) :]
    assert _refusal(wasm).isprintable()


@given(st.integers(0), st.integers(0))
def test_any_two_halves_end_in_findings_or_a_refusal(cut: int, join: int) -> None:
    """
    Truncated, and spliced with itself.
    """
    whole = hand_written()
    wasm = whole[: cut % len(whole)] + whole[join % len(whole) :]
    assert _refusal(wasm).isprintable()


def _refusal(wasm: bytes) -> str:
    """
    Its message, or nothing when the module is let in and compiles.
    """
    try:
        engine().compile(admit(wasm, engine().wasmtime).code)
    except ModuleRejected as error:
        return error.message
    return ""

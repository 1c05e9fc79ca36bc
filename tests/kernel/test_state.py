"""
What a mind must be before its numbers come near an address.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.state import MAX_MEMORY_BYTES, PAGE_BYTES, Mind

PAGE = bytes(PAGE_BYTES)


@pytest.mark.parametrize(
    ("memory_bytes", "pages"),
    [(0, {}), (65536, {0: PAGE, 15: PAGE}), (MAX_MEMORY_BYTES, {MAX_MEMORY_BYTES // PAGE_BYTES - 1: PAGE})],
)
def test_a_mind_lies_in_its_memory(memory_bytes: int, pages: dict[int, bytes]) -> None:
    """From nothing to all that 32-bit addresses reach."""
    Mind(memory_bytes, pages, ()).check()


@pytest.mark.parametrize("memory_bytes", [-65536, 1, 4096, 65535, MAX_MEMORY_BYTES + 65536])
def test_a_size_that_no_memory_has_is_refused(memory_bytes: int) -> None:
    """Memories are made of pages of 64 KiB."""
    with pytest.raises(ValueError, match=f"^memory of {memory_bytes} bytes$"):
        Mind(memory_bytes, {}, ()).check()


@pytest.mark.parametrize(
    ("index", "size"), [(-1, 4096), (16, 4096), (1 << 60, 4096), (0, 0), (0, 4095), (0, 4097)]
)
def test_a_page_that_does_not_lie_in_the_memory_is_refused(index: int, size: int) -> None:
    """By place or by size."""
    with pytest.raises(ValueError, match=f"^page {index} of {size} bytes in a memory of 65536$"):
        Mind(65536, {0: PAGE, index: bytes(size)}, ()).check()


@given(st.integers(), st.dictionaries(st.integers(), st.binary(max_size=10) | st.just(PAGE), max_size=4))
def test_any_mind_is_sound_or_refused(memory_bytes: int, pages: dict[int, bytes]) -> None:
    """Total, and nothing that passes points outside."""
    try:
        Mind(memory_bytes, pages, ()).check()
    except ValueError:
        return
    assert 0 <= memory_bytes <= MAX_MEMORY_BYTES
    assert all(0 <= (index + 1) * PAGE_BYTES <= memory_bytes for index in pages)
    assert all(len(page) == PAGE_BYTES for page in pages.values())

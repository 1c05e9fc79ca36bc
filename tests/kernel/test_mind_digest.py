"""
The digest of a mind is that of its documentation, however it was put together.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.mapping import ZERO_PAGE
from runner.kernel.mind_digest import GROUP_PAGES, PageDigests

CONTENTS = st.sampled_from([ZERO_PAGE, b"a" * 4096, b"b" * 4096])
PAGES = st.dictionaries(st.integers(0, 4 * GROUP_PAGES), CONTENTS, max_size=12)
GLOBALS = st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(), max_size=3)


def by_the_book(size: int, pages: Mapping[int, bytes], values: Iterable[int | float]) -> bytes:
    """
    The digest, from the definition alone.
    """
    text = b"runner mind 1\n" + struct.pack("<Q", size)
    kept = {index: page for index, page in sorted(pages.items()) if page != ZERO_PAGE}
    for group in sorted({index // 64 for index in kept}):
        records = [
            struct.pack("<I", index) + hashlib.sha256(page).digest()
            for index, page in kept.items()
            if index // 64 == group
        ]
        text += struct.pack("<I", group) + hashlib.sha256(b"".join(records)).digest()
    for value in values:
        text += (
            b"d" + struct.pack("<d", value) if isinstance(value, float) else b"i" + struct.pack("<q", value)
        )
    return hashlib.sha256(text).digest()


@given(PAGES, PAGES, GLOBALS)
def test_a_changed_mind_is_digested_as_if_it_were_new(
    pages: dict[int, bytes], changed: dict[int, bytes], values: list[int | float]
) -> None:
    """Only groups with a changed page are looked at, and that doesn't show."""
    base = PageDigests(pages)
    expected = by_the_book(1 << 24, pages | changed, values)
    assert base.mind_digest(1 << 24, values, changed) == expected
    assert PageDigests(pages | changed).mind_digest(1 << 24, values, {}) == expected
    assert base.mind_digest(1 << 24, values, {}) == by_the_book(1 << 24, pages, values)


def test_all_of_a_mind_is_in_its_digest() -> None:
    """Size, place and content of pages, and the bits of globals."""
    page, other = b"a" * 4096, b"b" * 4096
    quiet, loud = (struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0x7FF4 << 48))
    minds = [
        PageDigests({index: content}).mind_digest(size, values, {})
        for size in (1 << 20, 1 << 21)
        for index in (0, 1, 64, 65)
        for content in (page, other)
        for values in ((), (0,), (1,), (0.0,), (-0.0,), (quiet,), (loud,), (0, 0))
    ]
    assert len(set(minds)) == len(minds)


def test_the_digest_is_fixed() -> None:
    """Snapshots name it, so it may not change between releases."""
    digests = PageDigests({0: bytes(range(256)) * 16, 70: b"x" * 4096})
    assert digests.mind_digest(1 << 20, (1, 2.5), {1: b"y" * 4096, 70: ZERO_PAGE}).hex() == (
        "32cf9e94a872bb38f4daa240cda4090e896839e857669deb5fdf90ab73f5c950"
    )

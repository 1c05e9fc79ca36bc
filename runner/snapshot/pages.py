"""
Pages: the part of a snapshot that grows with the heap.

Every content is stored once, in order of first appearance, and named by its number; number 0 is the page
of zeros, which is not stored at all. A mind is then two packed lists, the indices of its pages and the
numbers of their contents. Packed, because CBOR items are counted by the codec and a heap of 64 MiB has
16,384 pages.

Input: untrusted. The whole table is checked before one byte is decompressed, and decompression goes page
by page against the digests, so that a bomb ends at its first page that was not promised.
"""

from __future__ import annotations

import sys
from itertools import islice
from operator import lt
from struct import pack, unpack
from typing import Final, NamedTuple, NoReturn

from runner.digest import SIZE_BYTES, digest
from runner.kernel.state import PAGE_BYTES, Mind
from runner.snapshot.rules import Check, Problem, need_memory_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSION_LEVEL: Final = 3
"""
Of the writer; readers don't care. Level 1 saves a quarter of the time and costs a tenth of the size.
"""

MAX_WINDOW_LOG: Final = 23
"""
Decompression holds at most 2**23 bytes besides its output: what RFC 8878 asks every decoder to support.
"""

ZERO_PAGE: Final = bytes(PAGE_BYTES)
_ZERO_DIGEST: Final = digest(ZERO_PAGE)
_NUMBER_BYTES: Final = 4


class PackedPages(NamedTuple):
    """
    One mind's pages: its size, and two lists of big-endian `u32`, as many numbers as indices.
    """

    memory_bytes: int
    indices: bytes
    contents: bytes


class PagePool:
    """
    Contents in order of first appearance, each once.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {ZERO_PAGE: 0}

    def add(self, mind: Mind) -> PackedPages:
        """
        Take in the pages of one mind.
        """
        numbers = self._numbers
        indices = sorted(mind.pages)
        contents = [numbers.setdefault(mind.pages[index], len(numbers)) for index in indices]
        form = f">{len(indices)}I"
        return PackedPages(mind.memory_bytes, pack(form, *indices), pack(form, *contents))

    def stored(self) -> list[bytes]:
        """
        The contents to store, from number 1 on.
        """
        return list(islice(self._numbers, 1, None))


def pack_digests(stored: list[bytes]) -> bytes:
    """
    The digest of each content, one after the other.
    """
    return b"".join([digest(page) for page in stored])


def pack_body(stored: list[bytes]) -> bytes:
    """
    The contents as one zstd frame that names its size; nothing when there are none.
    """
    return zstd.compress(b"".join(stored), COMPRESSION_LEVEL) if stored else b""


class PageTable:
    """
    What a header says of pages, and every check on it that needs no body.

    Args:
        digests: Packed digests of the stored contents.
        minds: The packed pages of each mind, in the order in which they were added to the pool.

    Raises:
        Problem: If it is not a table that `PagePool` makes.
    """

    def __init__(self, digests: bytes, minds: list[PackedPages]) -> None:
        if len(digests) % SIZE_BYTES:
            _fail("digests end early")
        self.digests = [digests[at : at + SIZE_BYTES] for at in range(0, len(digests), SIZE_BYTES)]
        if len(set(self.digests)) != len(self.digests):
            _fail("a content is stored twice")
        if _ZERO_DIGEST in self.digests:
            _fail("the page of zeros is stored")
        self._minds: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        known = 0
        for mind in minds:
            indices, contents = _numbers(mind.indices), _numbers(mind.contents)
            if len(indices) != len(contents):
                _fail("not as many contents as indices")
            if not all(map(lt, indices, islice(indices, 1, None))):
                _fail("indices do not ascend")
            need_memory_bytes(mind.memory_bytes)
            if indices and indices[-1] >= mind.memory_bytes // PAGE_BYTES:
                _fail(f"index {indices[-1]} is outside {mind.memory_bytes} bytes")
            known = _count_first_appearances(contents, known)
            self._minds.append((indices, contents))
        if known != len(self.digests):
            _fail(f"{len(self.digests)} contents are stored, {known} are used")

    def unpack(self, body: bytes | memoryview) -> list[dict[int, bytes]]:
        """
        The pages of each mind; equal contents are one object.

        Raises:
            Problem: If `body` does not hold exactly the contents that the digests promise.
        """
        contents = [ZERO_PAGE, *_inflate(body, self.digests)]
        return [
            dict(zip(indices, map(contents.__getitem__, numbers), strict=True))
            for indices, numbers in self._minds
        ]


def _numbers(packed: bytes) -> tuple[int, ...]:
    if len(packed) % _NUMBER_BYTES:
        _fail("a list of pages ends early")
    return unpack(f">{len(packed) // _NUMBER_BYTES}I", packed)


def _count_first_appearances(contents: tuple[int, ...], known: int) -> int:
    for number in contents:
        if number > known:
            known += 1
            if number != known:
                _fail("contents are not in order of first appearance")
    return known


def _inflate(body: bytes | memoryview, digests: list[bytes]) -> list[bytes]:
    if not digests:
        if body:
            _fail("without pages there is none", "body")
        return []
    size_bytes = len(digests) * PAGE_BYTES
    try:
        named_bytes = zstd.get_frame_info(body).decompressed_size
        if named_bytes != size_bytes:
            _fail(f"the frame names {named_bytes} bytes, the table {size_bytes}", "body")
        return _inflate_frame(body, digests)
    except (zstd.ZstdError, EOFError) as error:
        raise Problem("body", f"not a zstd frame: {error}") from error


def _inflate_frame(body: bytes | memoryview, digests: list[bytes]) -> list[bytes]:
    frame = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG})
    pages = []
    rest: bytes | memoryview = body
    for number, expected in enumerate(digests, 1):
        page = frame.decompress(rest, PAGE_BYTES)
        rest = b""
        if digest(page) != expected:
            _fail(f"content {number} does not have its digest", "body")
        pages.append(page)
    # A frame with a checksum is not over before one more call.
    if not frame.eof and (frame.decompress(b"", 1) or not frame.eof):
        _fail("the frame does not end after its last page", "body")
    if frame.unused_data:
        _fail("bytes follow the frame", "body")
    return pages


def _fail(problem: str, check: Check = "pages") -> NoReturn:
    raise Problem(check, problem)

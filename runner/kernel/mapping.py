"""
Initial pages of a memory, shared by every instance that starts from them.

On Linux the pages live in a sealed memory file that is mapped copy-on-write over an instance's linear
memory: starting from them costs the same whatever their size, and an instance owns only the pages it
has written since, which the kernel's page map names. Elsewhere the pages are copied in.

Rejected: a code-less WebAssembly module that holds the pages as a data segment, imported by the code
module. It is as fast, but a snapshot would have to be compiled before it could be restored, and an
instance could not tell which pages it has written (`docs/decisions/0013-mapping-not-image-module.md`).

Every address used here comes from `wasmtime.Memory.data_ptr` of a live store, and every length from
`Memory.data_len`; no number of a guest's reaches this module.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import sys
from abc import ABC, abstractmethod
from functools import cache
from typing import TYPE_CHECKING, Final

from runner.errors import HostExhausted
from runner.kernel.state import PAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ZERO_PAGE: Final = bytes(PAGE_BYTES)

_PROT_READ_WRITE: Final = 0x3
_MAP_PRIVATE_FIXED: Final = 0x12
_PAGEMAP_ENTRY_BYTES: Final = 8
_HOST_PAGE_BYTES: Final = mmap.PAGESIZE

# Top byte of a page map entry (Linux, Documentation/admin-guide/mm/pagemap.rst): bit 7 present, bit 6
# swapped, bit 5 belongs to a file or is shared. Ours are the pages that are somewhere and not shared.
_OWNED: Final = re.compile(rb"[\x40-\x5f\x80-\x9f\xc0-\xdf]")


class Backing(ABC):
    """
    Immutable pages from which memories start.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes

    @abstractmethod
    def lay(self, address: int) -> None:
        """
        Make the `size_bytes` at `address` hold these pages.

        Raises:
            HostExhausted: If the process can hold no more memory maps.
        """

    @abstractmethod
    def page(self, index: int) -> bytes:
        """
        One page's content; zeros beyond the end.
        """

    @abstractmethod
    def touched(self, address: int, size_bytes: int) -> Iterable[int]:
        """
        Pages of the memory at `address` that may differ from these; a superset, ascending.
        """


class CopiedBacking(Backing):
    """
    The plain way: works everywhere, costs a copy for each instance.
    """

    def __init__(self, size_bytes: int, pages: Mapping[int, bytes]) -> None:
        super().__init__(size_bytes)
        self._pages = dict(pages)

    def lay(self, address: int) -> None:
        ctypes.memset(address, 0, self.size_bytes)
        for index, page in self._pages.items():
            ctypes.memmove(address + index * PAGE_BYTES, page, PAGE_BYTES)

    def page(self, index: int) -> bytes:
        return self._pages.get(index, ZERO_PAGE)

    def touched(self, address: int, size_bytes: int) -> Iterable[int]:
        del address
        return range(size_bytes // PAGE_BYTES)


class MappedBacking(Backing):
    """
    The Linux way: a sealed memory file, mapped copy-on-write.

    Raises:
        HostExhausted: If the process can hold no more memory files.
    """

    _fd = -1

    def __init__(self, size_bytes: int, pages: Mapping[int, bytes]) -> None:
        super().__init__(size_bytes)
        try:
            self._fd = os.memfd_create("runner-image", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(self._fd, size_bytes)
            for index, page in pages.items():
                os.pwrite(self._fd, page, index * PAGE_BYTES)
            # Nobody may change what instances stand on, or take it away under them: that would be a
            # bus error in the middle of a guest.
            _seal(self._fd)
        except OSError as error:
            raise HostExhausted(str(error)) from error

    def __del__(self) -> None:
        """
        Mappings outlive the descriptor, so instances are not disturbed.
        """
        if self._fd >= 0:
            os.close(self._fd)

    def lay(self, address: int) -> None:
        if not self.size_bytes:
            return
        mapped = _libc().mmap(address, self.size_bytes, _PROT_READ_WRITE, _MAP_PRIVATE_FIXED, self._fd, 0)
        if mapped != address:
            problem = os.strerror(ctypes.get_errno())
            raise HostExhausted(f"mapping an image failed: {problem}")

    def page(self, index: int) -> bytes:
        return os.pread(self._fd, PAGE_BYTES, index * PAGE_BYTES) or ZERO_PAGE

    def touched(self, address: int, size_bytes: int) -> Iterable[int]:
        first = address // _HOST_PAGE_BYTES * _PAGEMAP_ENTRY_BYTES
        count = size_bytes // _HOST_PAGE_BYTES * _PAGEMAP_ENTRY_BYTES
        try:
            entries = os.pread(_pagemap(), count, first)
        except OSError:
            # A forked child has to open its own, and may have no descriptor left.
            entries = b""
        if len(entries) != count:
            return range(size_bytes // PAGE_BYTES)
        # Little-endian entries: the flags are in the last byte of each.
        owned = (match.start() for match in _OWNED.finditer(entries[_PAGEMAP_ENTRY_BYTES - 1 :: 8]))
        if _HOST_PAGE_BYTES == PAGE_BYTES:
            return owned
        step = _HOST_PAGE_BYTES // PAGE_BYTES
        return (page for host in owned for page in range(host * step, (host + 1) * step))


def back(size_bytes: int, pages: Mapping[int, bytes], *, copied: bool = False) -> Backing:
    """
    A backing with these pages, zeros elsewhere.

    Args:
        size_bytes: A multiple of 64 KiB.
        pages: Content by page index, each of `PAGE_BYTES`.
        copied: Use the plain way even where mapping works.
    """
    if copied or not can_map():
        return CopiedBacking(size_bytes, pages)
    return MappedBacking(size_bytes, pages)


def can_map() -> bool:
    """
    Whether this system maps images: Linux, with a page map that this process may read, and that is true.
    """
    if sys.platform != "linux" or sys.byteorder != "little":
        return False
    try:
        _pagemap()
    except OSError:
        return False
    return _page_map_is_true()


@cache
def _page_map_is_true() -> bool:
    """
    Whether a page that was written is among those touched. Where a sandbox shows an empty page map, what
    guests write would get lost without a trace.
    """
    size_bytes = 16 * _HOST_PAGE_BYTES
    backing = MappedBacking(size_bytes, {})
    with mmap.mmap(-1, size_bytes) as area:
        view = ctypes.c_char.from_buffer(area)
        address = ctypes.addressof(view)
        del view
        backing.lay(address)
        area[-1] = 1
        return size_bytes // PAGE_BYTES - 1 in set(backing.touched(address, size_bytes))


_state: dict[str, tuple[int, int]] = {}


def _pagemap() -> int:
    """
    This process's page map. A forked child must not read its parent's, so it's kept by process id.
    """
    kept = _state.get("pagemap")
    if kept is None or kept[0] != os.getpid():
        fd = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        kept = _state["pagemap"] = (os.getpid(), fd)
    return kept[1]


def _seal(fd: int) -> None:
    import fcntl  # noqa: PLC0415 - not on every system

    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)


_LIBC: list[ctypes.CDLL] = []


def _libc() -> ctypes.CDLL:
    if not _LIBC:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int64,
        ]
        _LIBC.append(libc)
    return _LIBC[0]

"""
Initial pages of memories: mapped or copied, they are the same, and what a guest wrote is never missed.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import random
import resource
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from runner.errors import HostExhausted
from runner.kernel import mapping
from runner.kernel.mapping import ZERO_PAGE, CopiedBacking, MappedBacking, back, can_map
from runner.kernel.state import PAGE_BYTES

SIZE: Final = 256 * 1024
PAGES: Final = {1: b"a" * PAGE_BYTES, 7: ZERO_PAGE, 63: b"b" * PAGE_BYTES}
ROOT: Final = Path(__file__).resolve().parents[2]

mapped_only = pytest.mark.skipif(not can_map(), reason="this system copies images")


@pytest.fixture
def area() -> Iterator[tuple[mmap.mmap, int]]:
    """Some writable memory and its address."""
    with mmap.mmap(-1, 2 * SIZE) as made:
        view = ctypes.c_char.from_buffer(made)
        address = ctypes.addressof(view)
        del view
        yield made, address


@contextmanager
def no_descriptors() -> Iterator[None]:
    """A process that can open no further file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run(code: str) -> str:
    """
    What another Python process prints.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("copied", [True, False])
def test_a_memory_holds_the_pages_laid_under_it(area: tuple[mmap.mmap, int], copied: bool) -> None:
    """And zeros where there are none, whatever was there before."""
    memory, address = area
    memory[:] = b"x" * len(memory)
    backing = back(SIZE, PAGES, copied=copied)
    backing.lay(address)
    assert memory[:SIZE] == b"".join(PAGES.get(index, ZERO_PAGE) for index in range(SIZE // PAGE_BYTES))
    assert memory[SIZE:] == b"x" * SIZE
    assert [backing.page(index) for index in (0, 1, 63, 64, 1 << 20)] == [
        ZERO_PAGE,
        PAGES[1],
        PAGES[63],
        ZERO_PAGE,
        ZERO_PAGE,
    ]


@pytest.mark.parametrize("copied", [True, False])
def test_what_was_written_is_among_the_touched_pages(area: tuple[mmap.mmap, int], copied: bool) -> None:
    """In the pages' order; reading touches nothing that would be missed."""
    memory, address = area
    backing = back(SIZE, PAGES, copied=copied)
    backing.lay(address)
    assert memory[:SIZE].count(b"a") == PAGE_BYTES
    written = sorted(random.Random(5).sample(range(SIZE // PAGE_BYTES), 20))
    for index in written:
        memory[index * PAGE_BYTES + 17] = 1
    touched = list(backing.touched(address, SIZE))
    assert touched == sorted(set(touched))
    assert set(written) <= set(touched)
    if not copied and can_map():
        assert touched == written


@mapped_only
def test_the_pages_can_not_be_changed_or_taken_away() -> None:
    """A bus error in the middle of a guest would end the process."""
    backing = MappedBacking(SIZE, PAGES)
    with pytest.raises(PermissionError):
        os.pwrite(backing._fd, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(backing._fd, 0)
    with pytest.raises(PermissionError):
        os.ftruncate(backing._fd, 2 * SIZE)


@mapped_only
def test_a_memory_outlives_its_backing(area: tuple[mmap.mmap, int]) -> None:
    """The descriptor goes with the last reference, the mapping stays."""
    memory, address = area
    backing = MappedBacking(SIZE, PAGES)
    backing.lay(address)
    fd = backing._fd
    del backing
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    assert memory[PAGE_BYTES] == ord("a")


@pytest.mark.parametrize("copied", [True, False])
def test_a_memory_of_no_bytes_has_nothing_to_lay(copied: bool) -> None:
    """Also where a map of no bytes is an error."""
    backing = back(0, {}, copied=copied)
    backing.lay(0)
    assert list(backing.touched(0, 0)) == []


@mapped_only
def test_a_map_that_the_system_refuses_is_host_exhausted() -> None:
    """As when there are too many of them; here the address is none."""
    with pytest.raises(HostExhausted) as caught:
        MappedBacking(SIZE, PAGES).lay(PAGE_BYTES + 1)
    assert caught.value.message == (
        "this process can hold no more instances: mapping an image failed: Invalid argument"
    )


@mapped_only
def test_an_image_without_a_descriptor_is_host_exhausted() -> None:
    """A typed error, and nothing half made."""
    with pytest.raises(HostExhausted, match="Too many open files"), no_descriptors():
        MappedBacking(SIZE, PAGES)
    gc.collect()


@mapped_only
def test_without_a_page_map_of_its_own_a_process_looks_at_every_page(
    area: tuple[mmap.mmap, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a forked child that can't open one: slower, and as right."""
    backing = MappedBacking(SIZE, PAGES)
    backing.lay(area[1])
    monkeypatch.setattr(mapping, "_state", {})
    with no_descriptors():
        touched = backing.touched(area[1], SIZE)
    assert list(touched) == list(range(SIZE // PAGE_BYTES))
    assert list(backing.touched(area[1], SIZE)) == []


@mapped_only
@pytest.mark.parametrize("shown", ["/dev/zero", "/dev/null"])
def test_a_page_map_that_shows_nothing_is_not_believed(shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros would lose what guests write; a short one makes every page count as touched."""
    fd = os.open(shown, os.O_RDONLY)
    monkeypatch.setattr(mapping, "_state", {"pagemap": (os.getpid(), fd)})
    mapping._page_map_is_true.cache_clear()
    try:
        assert can_map() is (shown == "/dev/null")
        assert isinstance(back(SIZE, PAGES), CopiedBacking) is (shown == "/dev/zero")
    finally:
        mapping._page_map_is_true.cache_clear()
        os.close(fd)


def test_a_system_without_a_page_map_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """One where it can't be opened, and one that is no Linux."""
    monkeypatch.setattr(mapping, "_state", {})
    with no_descriptors():
        assert not can_map()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not can_map()
    assert isinstance(back(SIZE, PAGES), CopiedBacking)


@mapped_only
@pytest.mark.parametrize("host_page_bytes", [4096, 16384])
def test_the_page_map_is_read_as_the_kernel_documents_it(
    host_page_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Present or swapped, and not shared; on hosts with larger pages each stands for several of ours."""
    present, swapped, shared, soft_dirty, exclusive = (1 << bit for bit in (63, 62, 61, 55, 56))
    entries = [
        0,
        present,
        swapped,
        present | shared,
        swapped | shared,
        present | soft_dirty,
        present | exclusive,
        shared,
        soft_dirty | exclusive,
        swapped | present,
        *[0] * 6,
    ]
    file = tmp_path / "pagemap"
    file.write_bytes(struct.pack("<16Q", *entries))
    fd = os.open(file, os.O_RDONLY)
    monkeypatch.setattr(mapping, "_state", {"pagemap": (os.getpid(), fd)})
    monkeypatch.setattr(mapping, "_HOST_PAGE_BYTES", host_page_bytes)
    try:
        touched = list(MappedBacking(SIZE, {}).touched(0, 16 * host_page_bytes))
    finally:
        os.close(fd)
    step = host_page_bytes // PAGE_BYTES
    assert touched == [page * step + part for page in (1, 2, 5, 6, 9) for part in range(step)]


@mapped_only
def test_a_forked_child_reads_its_own_page_map() -> None:
    """Neither sees what the other has written since."""
    printed = run(
        """
        import os, sys
        from tests.kernel.guests import Op, command, deliver, machine, reply
        instance = machine()
        deliver(instance, 1, command(Op.STORE, 0x8000, 1) + reply(1))
        before = sorted(instance.freeze().mind.pages)
        child = os.fork()
        deliver(instance, 2, command(Op.STORE, 0x9000 if child else 0xa000, 1) + reply(2))
        pages = sorted(set(instance.freeze().mind.pages) - set(before))
        if child:
            os.waitpid(child, 0)
        print("parent" if child else "child", pages, flush=True)
        os._exit(0) if not child else None
        """
    )
    assert printed == "child [10]\nparent [9]\n"


@mapped_only
def test_a_process_that_runs_out_of_maps_goes_on_when_there_are_some_again() -> None:
    """Typed errors only, and a failed instance is made anew later, with nothing lost."""
    printed = run(
        """
        import ctypes, mmap
        from runner.errors import HostExhausted
        from tests.kernel.guests import Op, command, deliver, machine, memory_of, reply
        instance = machine()
        deliver(instance, 1, command(Op.STORE, 0x8000, 77) + reply(1))
        before = instance.digest()
        assert deliver(instance, 2, command(Op.UNREACHABLE)).failure
        limit = int(open("/proc/sys/vm/max_map_count").read())
        with mmap.mmap(-1, 2 * 4096 * limit, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
            view = ctypes.c_char.from_buffer(area)
            address = ctypes.addressof(view)
            del view
            protect = ctypes.CDLL(None).mprotect
            protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
            # Every other page read-only: as many maps as there may be.
            used = 0
            while protect(address + 8192 * used, 4096, 1) == 0:
                used += 1
            said = set()
            for free in range(30):
                try:
                    deliver(instance, 3, reply(3))
                    break
                except HostExhausted as error:
                    said.add(str(error).split(":")[0])
                    assert instance.digest() == before
                    assert instance.last_delivery == 2
                    protect(address + 8192 * (used - 1 - free), 4096, 3)
        print(said, memory_of(instance, 0x8000, 1), instance.last_delivery, free > 1)
        """
    )
    assert printed == "{'this process can hold no more instances'} b'M' 3 True\n"

"""
The cache keeps what is whole, remakes what is not, and trusts no directory that others can write.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from runner.cache import BlobCache, default_cache_root
from runner.errors import UsageError

KEY = bytes(range(32))
OTHER = bytes(reversed(KEY))
ELSEWHERE = "set RUNNER_CACHE to a directory of your own"


def refuse() -> bytes:
    """
    A `make` that must not be called.
    """
    pytest.fail("it was there already")


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    """
    Then found, by this cache and by another one on the same directory.
    """
    root = tmp_path / "cache"
    cache = BlobCache(root)
    assert cache.get("code", KEY) is None
    path = cache.get_or_make("code", KEY, lambda: b"compiled")
    assert path == root / "code" / KEY.hex()
    assert path.read_bytes() == b"compiled"
    assert cache.get_or_make("code", KEY, refuse) == path
    assert BlobCache(root).get_or_make("code", KEY, refuse) == path
    assert BlobCache(root).get("code", KEY) == path


def test_kinds_and_keys_are_apart(tmp_path: Path) -> None:
    """
    The same key in another kind, and another key in the same, are other entries. Empty ones are too.
    """
    cache = BlobCache(tmp_path / "cache")
    made = {(kind, key): kind.encode() + key for kind in ("code", "image-1") for key in (KEY, OTHER, b"\0")}
    for (kind, key), blob in made.items():
        cache.get_or_make(kind, key, partial(bytes, blob))
    for (kind, key), blob in made.items():
        found = cache.get(kind, key)
        assert found is not None
        assert found.read_bytes() == blob
    assert cache.get_or_make("code", b"\1", lambda: b"").read_bytes() == b""
    assert cache.get_or_make("code", b"\1", refuse).stat().st_size == 0


def test_everything_in_it_is_private(tmp_path: Path) -> None:
    """
    Directories 0700, files 0600, whatever the umask is; directories above it follow the umask.
    """
    old = os.umask(0)
    try:
        root = tmp_path / "above" / "cache"
        BlobCache(root).get_or_make("code", KEY, lambda: b"compiled")
    finally:
        os.umask(old)
    modes = {
        path.relative_to(tmp_path).as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    entry = f"above/cache/code/{KEY.hex()}"
    assert modes == {
        "above": 0o777,
        "above/cache": 0o700,
        "above/cache/code": 0o700,
        entry: 0o600,
        f"{entry}.size": 0o600,
        f"{entry}.lock": 0o600,
    }


def test_a_discarded_entry_is_made_anew(tmp_path: Path) -> None:
    """
    Who had it open keeps what it was; to discard what is not there does nothing.
    """
    cache = BlobCache(tmp_path / "cache")
    cache.discard("code", KEY)
    with cache.get_or_make("code", KEY, lambda: b"old").open("rb") as old:
        cache.discard("code", KEY)
        cache.discard("code", KEY)
        assert cache.get("code", KEY) is None
        assert cache.get_or_make("code", KEY, lambda: b"new").read_bytes() == b"new"
        assert old.read() == b"old"


def test_what_make_raises_is_passed_on_and_the_next_tries_again(tmp_path: Path) -> None:
    """
    Also an `OSError`, which is not the cache's own.
    """
    cache = BlobCache(tmp_path / "cache")

    def fail() -> bytes:
        raise FileNotFoundError(2, "no compiler")

    with pytest.raises(FileNotFoundError, match="no compiler"):
        cache.get_or_make("code", KEY, fail)
    assert cache.get("code", KEY) is None
    assert cache.get_or_make("code", KEY, lambda: b"compiled").read_bytes() == b"compiled"


@pytest.mark.parametrize(
    "damage", ["shorter", "empty", "longer", "size lost", "size empty", "size odd", "link"]
)
def test_an_entry_that_is_not_whole_is_made_anew(tmp_path: Path, damage: str) -> None:
    """
    A power cut may shorten a file or lose one; code that was cut off must not be executed.
    """
    cache = BlobCache(tmp_path / "cache")
    path = cache.get_or_make("code", KEY, lambda: b"compiled")
    seal = path.with_name(f"{path.name}.size")
    if damage == "link":
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_bytes(b"compiled")
        path.unlink()
        path.symlink_to(elsewhere)
    elif damage == "size lost":
        seal.unlink()
    elif damage.startswith("size"):
        seal.write_bytes(b"" if damage == "size empty" else b"8 bytes")
    else:
        path.write_bytes({"shorter": b"compile", "empty": b"", "longer": b"compiled\0"}[damage])
    assert cache.get("code", KEY) is None
    assert cache.get_or_make("code", KEY, lambda: b"made anew").read_bytes() == b"made anew"
    assert not path.is_symlink()
    assert cache.get("code", KEY) == path


def test_leftovers_of_a_killed_writer_are_swept(tmp_path: Path) -> None:
    """
    Those of the same entry only: another entry's may still be written to.
    """
    cache = BlobCache(tmp_path / "cache")
    path = cache.get_or_make("code", OTHER, lambda: b"other")
    mine = [path.with_name(f".{KEY.hex()}{ending}.tmp-0123456789abcdef") for ending in ("", ".size")]
    others = path.with_name(f".{OTHER.hex()}.tmp-0123456789abcdef")
    for leftover in (*mine, others):
        leftover.write_bytes(b"half")
    cache.get_or_make("code", KEY, lambda: b"compiled")
    assert [leftover.exists() for leftover in (*mine, others)] == [False, False, True]


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """
    Whoever can point it elsewhere chooses the code.
    """
    (tmp_path / "real").mkdir(mode=0o700)
    root = tmp_path / "cache"
    root.symlink_to("real")
    with pytest.raises(UsageError) as caught:
        BlobCache(root)
    assert caught.value.message == f"cache {root} is a symbolic link"
    assert caught.value.hint == f"name the directory itself: {ELSEWHERE}"
    assert caught.value.details == {"path": str(root)}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
def test_a_root_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    """
    The same for a kind's directory inside it; reading is nobody's harm.
    """
    root = tmp_path / "cache"
    cache = BlobCache(root)
    cache.get_or_make("code", KEY, lambda: b"compiled")
    for directory in (root, root / "code"):
        directory.chmod(mode)
        with pytest.raises(UsageError) as caught:
            BlobCache(root).get("code", KEY)
        assert caught.value.message == f"cache {directory} can be written by other users"
        assert caught.value.hint == (
            f"empty it, since others may have put code there, then: chmod 700 {directory}"
        )
        directory.chmod(0o755)
        assert BlobCache(root).get("code", KEY) is not None


def test_a_root_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The other user could change what is executed here; so could the owner of a single entry.
    """
    root = tmp_path / "cache"
    cache = BlobCache(root)
    path = cache.get_or_make("code", KEY, lambda: b"compiled")
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(UsageError) as caught:
        BlobCache(root)
    assert caught.value.message == f"cache {root} belongs to user {owner}"
    assert caught.value.hint == ELSEWHERE


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """
    As is one below a file.
    """
    root = tmp_path / "cache"
    root.write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        BlobCache(root)
    assert (caught.value.message, caught.value.hint) == (f"cache {root} is not a directory", ELSEWHERE)
    with pytest.raises(UsageError) as caught:
        BlobCache(root / "below")
    assert caught.value.message == f"cache {root / 'below'} can't be used: not a directory"
    assert caught.value.hint == ELSEWHERE


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """
    It would be created where it points.
    """
    cache = BlobCache(tmp_path / "cache")
    path = cache.get_or_make("code", KEY, lambda: b"compiled")
    lock = path.with_name(f"{path.name}.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"can't be used: too many levels of symbolic links$"):
        cache.discard("code", KEY)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["", "Code", "a/b", "..", ".", "a" * 33, "1a", "a\n"])
def test_a_kind_is_a_plain_name(tmp_path: Path, kind: str) -> None:
    """
    Nothing that could name another place.
    """
    with pytest.raises(ValueError, match=r"^not a kind of blob: "):
        BlobCache(tmp_path / "cache").get(kind, KEY)


@pytest.mark.parametrize("size_bytes", [0, 65])
def test_a_key_has_a_sane_length(tmp_path: Path, size_bytes: int) -> None:
    """
    Names of files are bounded.
    """
    message = f"^a key has 1 to 64 bytes, not {size_bytes}$"
    with pytest.raises(ValueError, match=message):
        BlobCache(tmp_path / "cache").get("code", bytes(size_bytes))


def test_the_root_is_named_by_the_environment_or_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    `RUNNER_CACHE` first, made absolute; an empty one counts for none.
    """
    assert default_cache_root({"RUNNER_CACHE": "/var/cache/runner"}) == Path("/var/cache/runner")
    assert default_cache_root({"RUNNER_CACHE": "here"}) == Path.cwd() / "here"
    monkeypatch.setenv("HOME", "/home/someone")
    assert default_cache_root({"RUNNER_CACHE": "~/here"}) == Path("/home/someone/here")
    assert default_cache_root({}).name == "wasm-agent-runner"
    assert default_cache_root({}) == default_cache_root({"RUNNER_CACHE": ""})
    monkeypatch.setenv("RUNNER_CACHE", "/var/cache/runner")
    assert default_cache_root() == Path("/var/cache/runner")


def test_who_names_the_root_does_not_load_platformdirs() -> None:
    """
    Nor does the import of the package.
    """
    program = (
        "import sys\nfrom runner.cache import default_cache_root\n"
        "default_cache_root({'RUNNER_CACHE': '/x'})\nassert 'platformdirs' not in sys.modules\n"
        "default_cache_root({})\nassert 'platformdirs' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

"""
How an engine's sources are fetched, and what is kept of what was made; no network, and no compiler.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runner.build.engines import engine_key, engine_module, fetch, recipe_of
from runner.build.engines.fetch import fetch as fetch_sources
from runner.build.engines.recipe import DebianSource, PyPISource
from runner.build.engines.store import ENGINES_VARIABLE
from runner.cache import BlobCache
from runner.errors import BuildFailed, UsageError

MODULE = b"\0asm\x01\0\0\0"


def archive(name: str = "thing-1.0/thing.c") -> bytes:
    """
    A source archive with one file.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        packed.addfile(entry, io.BytesIO(b"int;"))
    return buffer.getvalue()


class Shop:
    """
    Stands for pip and apt: puts an archive where it was told to.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self.content = content
        self.name = name
        self.asked: list[list[str]] = []

    def run(self, command: Sequence[str]) -> None:
        """
        One program.
        """
        words = list(command)
        self.asked.append(words)
        if "download" in words:
            folder = Path(words[words.index("-d") + 1])
        elif "source" in words:
            folder = Path(words[words.index("-C") + 1])
        else:
            return
        folder.mkdir(exist_ok=True)
        (folder / self.name).write_bytes(self.content)


def pypi(content: bytes) -> PyPISource:
    """
    A source whose digest is that of `content`.
    """
    return PyPISource("thing", "1.0", hashlib.sha256(content).hexdigest())


def test_a_source_is_unpacked_when_its_digest_is_right(tmp_path: Path) -> None:
    """
    The package tool is told the digest, too, and no address.
    """
    shop = Shop(archive(), "thing-1.0.tar.gz")
    folder = fetch_sources(pypi(shop.content), tmp_path, shop.run)
    assert (folder / "thing.c").read_text() == "int;"
    (command,) = shop.asked
    assert "--require-hashes" in command
    assert not any("://" in word for word in command)
    assert hashlib.sha256(shop.content).hexdigest() in (tmp_path / "requirements.txt").read_text()


def test_a_source_with_another_digest_is_not_unpacked(tmp_path: Path) -> None:
    """
    Whoever it came from.
    """
    shop = Shop(archive(), "thing-1.0.tar.gz")
    source = replace(pypi(shop.content), sha256="0" * 64)
    with pytest.raises(BuildFailed, match="its digest is sha256:"):
        fetch_sources(source, tmp_path, shop.run)
    assert not (tmp_path / "sources").exists()


def test_an_archive_that_writes_elsewhere_is_refused(tmp_path: Path) -> None:
    """
    Even with the digest that was asked for.
    """
    shop = Shop(archive("../evil.c"), "thing-1.0.tar.gz")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(BuildFailed, match="outside"):
        fetch_sources(pypi(shop.content), scratch, shop.run)
    assert not (tmp_path / "evil.c").exists()


def test_debian_sources_come_through_apt_with_lists_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    From where this machine gets its packages; nothing of the system's is written.
    """
    sources = tmp_path / "debian.sources"
    sources.write_text("Types: deb\nURIs: mirror://anywhere\nSuites: stable\n", encoding="utf-8")
    monkeypatch.setattr("runner.build.engines.fetch._APT_SOURCES", sources)
    monkeypatch.setattr("runner.build.engines.fetch.shutil.which", lambda name: f"/usr/bin/{name}")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    shop = Shop(archive(), "thing_1.0.orig.tar.gz")
    source = DebianSource("thing", "1.0", "trixie", hashlib.sha256(shop.content).hexdigest())
    assert (fetch_sources(source, scratch, shop.run) / "thing.c").is_file()
    assert "mirror://anywhere trixie main" in (scratch / "apt" / "sources.list").read_text()
    assert [command[-1] for command in shop.asked] == ["update", "thing"]


def test_a_machine_without_the_tools_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Before anything is begun.
    """
    monkeypatch.setattr("runner.build.engines.fetch.shutil.which", lambda name: None)  # noqa: ARG005
    source = DebianSource("thing", "1.0", "trixie", "0" * 64)
    assert fetch.fetch_problem(source) == "thing is fetched with apt, from Debian's sources"
    with pytest.raises(UsageError, match="thing is fetched with apt") as caught:
        fetch_sources(source, tmp_path, lambda _: None)
    assert "RUNNER_ENGINES" in (caught.value.hint or "")


def test_an_engine_that_the_user_names_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No compiler and no cache are looked at; its content is what tells it from another.
    """
    monkeypatch.setenv(ENGINES_VARIABLE, str(tmp_path))
    cache = BlobCache(tmp_path / "cache")
    with pytest.raises(UsageError, match=r"js\.wasm is not there"):
        engine_module("js", cache)
    (tmp_path / "js.wasm").write_bytes(MODULE)
    assert engine_module("js", cache) == MODULE
    key = engine_key("js")
    (tmp_path / "js.wasm").write_bytes(MODULE + b"\0")
    assert engine_key("js") != key


def test_an_engine_is_made_once_for_the_same_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    And told of while it is made.
    """
    monkeypatch.delenv(ENGINES_VARIABLE, raising=False)
    monkeypatch.setattr("runner.build.engines.store._PREBUILT", tmp_path / "none")
    made: list[Path] = []

    def compile_engine(sources: Path, scratch: Path, run: object) -> Path:
        del run
        made.append(sources)
        (scratch / "engine.wasm").write_bytes(MODULE)
        return scratch / "engine.wasm"

    recipe = replace(recipe_of("js"), compile_engine=compile_engine)
    monkeypatch.setattr("runner.build.engines.store.recipe_of", lambda _: recipe)
    monkeypatch.setattr("runner.build.engines.store.fetch", lambda source, scratch, run: scratch)  # noqa: ARG005
    told: list[str] = []
    cache = BlobCache(tmp_path / "cache")
    assert engine_module("js", cache, told.append) == MODULE
    assert engine_module("js", cache, told.append) == MODULE
    assert len(made) == 1
    assert len(told) == 2
    assert recipe.name in told[1]

"""
Agents in interpreted languages: from an author's files to one agent file, kept for the next time.

Reading and loading them takes tens of milliseconds, and a run of an agent that nobody touched must not pay
for it: what was made is found again by the files that it was made of.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner import codec
from runner.build.engines import engine_key, engine_module
from runner.build.js_modules import SCRIPT_SUFFIXES, TYPED_SUFFIXES, collect_js
from runner.build.modules import AgentModule, SourceTree
from runner.build.toolchain import toolchain_digest
from runner.build.typescript import strip_types
from runner.codec import CodecError
from runner.digest import digest
from runner.errors import AgentInvalid, RunnerError
from runner.package.agent import pack
from runner.wiring.interpreter import Interpreter, Loaded
from runner.wiring.prepare import image_section

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runner.build.engines import EngineLanguage
    from runner.kernel.slice import LogLine
    from runner.package.manifest import Manifest
    from runner.wiring.host import Host

_FOUND_KIND: Final = "interpreted"
_RECORD_KIND: Final = "interpreted-from"
_SUFFIXES: Final[dict[str, tuple[str, ...]]] = {
    "js": (*SCRIPT_SUFFIXES, *TYPED_SUFFIXES),
    "python": (".py",),
}


def interpreted_agent(
    host: Host, folder: Path, manifest: Manifest, *, progress: Callable[[str], None] | None = None
) -> bytes:
    """
    The agent file of an agent in an interpreted language: from the cache when its files are as they were.

    Args:
        host: Where it is loaded, and whose cache keeps it.
        folder: The agent's.
        manifest: Its manifest.
        progress: Takes a line for people when its engine has to be made first.

    Raises:
        SourceRejected: If a module is wrong, or the agent fails while it is loaded.
        AgentInvalid: If a file is missing, or leads outside the folder.
        LimitExceeded: If it does not finish loading.
        UsageError: If its engine, or what takes types away, is missing.
    """
    kept = _Kept(host, folder, manifest)
    found = kept.find()
    if found is not None:
        return found
    tree = SourceTree(folder)
    packed = Workshop(host, manifest, tree, progress=progress).pack()
    kept.keep(packed, tree)
    return packed


class Workshop:
    """
    One build of one agent.

    Args:
        host: Where it is loaded.
        manifest: The agent's.
        tree: Its folder.
        progress: Takes a line for people when its engine has to be made first.
        on_log: Takes what the agent logs while it is loaded.
    """

    def __init__(
        self,
        host: Host,
        manifest: Manifest,
        tree: SourceTree,
        *,
        progress: Callable[[str], None] | None = None,
        on_log: Callable[[LogLine], None] = lambda _: None,
    ) -> None:
        self.manifest = manifest
        self._tree = tree
        self._language = _engine_language(manifest)
        self.wasm = engine_module(self._language, host.cache, progress)
        self.interpreter = Interpreter(host, self.wasm, on_log)

    def load(self, suites: Sequence[str] = ()) -> Loaded:
        """
        The agent, loaded; or its tests, when suites are named.
        """
        entry = self.manifest.entry
        if not entry.endswith(_SUFFIXES[self._language]):
            expected = " or ".join(_SUFFIXES[self._language])
            raise AgentInvalid(entry, f"an agent in {self.manifest.language} has an entry in {expected}")
        entries = suites or (entry,)
        modules = [module.to_wire() for module in self._collect(entries)]
        return self.interpreter.load(self.manifest.name, modules, entries[0], suites)

    def pack(self) -> bytes:
        """
        The agent as one file.
        """
        loaded = self.load()
        limits = self.manifest.limits_under({})
        section = image_section(self.manifest.name, self.interpreter.admitted, limits, loaded.image)
        return pack(self.wasm, self.manifest, section)

    def _collect(self, entries: Sequence[str]) -> list[AgentModule]:
        if self._language == "js":
            return collect_js(self._tree, entries, check=self.interpreter.check, strip_types=strip_types)
        from runner.build.python_modules import collect_python  # noqa: PLC0415 - JavaScript needs none of it

        return collect_python(self._tree, entries)


class _Kept:
    """
    What was made of an agent before, with the files that it was made of.
    """

    def __init__(self, host: Host, folder: Path, manifest: Manifest) -> None:
        self._cache = host.cache
        self._folder = folder
        facts: list[Any] = [str(folder.resolve()), manifest.to_wire()]
        total = hashlib.sha256(codec.encode(facts))
        total.update(engine_key(_engine_language(manifest)))
        total.update(toolchain_digest())
        self._key = total.digest()

    def find(self) -> bytes | None:
        """
        The agent file, or `None` when there is none, or a file has changed.
        """
        entry = self._cache.get(_RECORD_KIND, self._key)
        if entry is None:
            return None
        # Only this user writes here, but a record of another release may be of any shape.
        with suppress(CodecError, KeyError, TypeError, AttributeError, RunnerError):
            record: Any = codec.decode(entry.read_bytes())
            if not self._is_as_it_was(record):
                return None
            made = self._cache.get(_FOUND_KIND, record["made"])
            packed = None if made is None else made.read_bytes()
            return packed if packed is not None and digest(packed) == record["made"] else None
        return None

    def keep(self, packed: bytes, tree: SourceTree) -> None:
        """
        Remember what was made, in the place of what was there.
        """
        made = digest(packed)
        record: dict[str, Any] = {"made": made, "read": dict(tree.read), "absent": sorted(tree.absent)}
        self._cache.get_or_make(_FOUND_KIND, made, lambda: packed)
        self._cache.discard(_RECORD_KIND, self._key)
        self._cache.get_or_make(_RECORD_KIND, self._key, partial(codec.encode, record))

    def _is_as_it_was(self, record: dict[str, Any]) -> bool:
        tree = SourceTree(self._folder)
        for name in record["read"]:
            tree.text(name)
        return tree.read == record["read"] and tree.find(record["absent"]) is None


def _engine_language(manifest: Manifest) -> EngineLanguage:
    return "js" if manifest.language == "js" else "python"

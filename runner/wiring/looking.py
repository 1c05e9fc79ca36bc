"""
Looking without running: agents, snapshots, and this machine.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner.build.engines import (
    ENGINE_LANGUAGES,
    EngineLanguage,
    fetch_problem,
    is_made,
    prebuilt_module,
    recipe_of,
)
from runner.cache import BlobCache, default_cache_root
from runner.digest import digest, show
from runner.errors import MemoryExceeded, RunnerError
from runner.kernel.abi import ABI_VERSION
from runner.kernel.mapping import can_map
from runner.package.agent import pack
from runner.policy.grants import Grants
from runner.snapshot import Snapshot
from runner.snapshot import read as read_snapshot
from runner.snapshot.format import MAGIC
from runner.wiring.host import Host
from runner.wiring.prepare import carried_image, used_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runner.codec import Value
    from runner.kernel.state import MachineState
    from runner.package.agent import AgentPackage

_PROBE: Final = "doctor"
_MAPS_FOR_10_000: Final = 25_000

_MOST_MEMORY_BYTES: Final = 1 << 30
"""
Nothing larger is unpacked only to be looked at: a file of some megabytes could else take all there is.
"""


def inspect_path(path: Path, cache: Path | None = None) -> dict[str, Any]:
    """
    What an agent or a snapshot is; nothing of it runs.

    Raises:
        RunnerError: If it is neither, or not acceptable.
    """
    if _is_snapshot(path):
        return describe_snapshot(
            read_snapshot(path, max_memory_bytes=_MOST_MEMORY_BYTES), os.stat(path).st_size
        )
    host = Host(cache)
    return _describe_agent(host, host.load(path), Grants.parse())


def check_agent(
    path: Path, allow: Iterable[str], deny: Iterable[str], cache: Path | None = None
) -> dict[str, Any]:
    """
    Whether an agent would be let in with these grants; admitted, not run.

    Raises:
        ModuleRejected: If admission refuses the module.
        Denied: If it needs more than is granted.
        MemoryExceeded: If it starts with more memory than the limit that holds by default.
    """
    host, grants = Host(cache), Grants.parse(allow, deny)
    package = host.load(path)
    admitted = host.admit(package.wasm)
    grants.resolve(package.name, admitted.imports, used_names(package.manifest, grants))
    needed, bound = admitted.memory_min_bytes + admitted.table_bytes, package.manifest.limits_under({})
    if needed > bound.memory_bytes:
        raise MemoryExceeded(needed, bound.memory_bytes)
    return _describe_agent(host, package, grants)


def doctor(cache: Path | None = None) -> list[dict[str, Any]]:
    """
    What `runner` needs or can use, row by row: `name`, `ok`, `found`, `hint`.
    """
    version = ".".join(map(str, sys.version_info[:3]))
    rows = [
        _row("python", sys.version_info >= (3, 11), version, "use Python 3.11 or newer"),
        _row("wasmtime", True, metadata.version("wasmtime"), ""),
        _row("system", True, f"{platform.system()} {platform.machine()}", ""),
        _row("image mapping", can_map(), "yes" if can_map() else "no", "works everywhere, shares on Linux"),
        _cache_row(cache),
        _maps_row(),
        _package_row("ziglang", "C compiler", "pip install 'wasm-agent-runner[c]'"),
        *(_engine_row(language, cache) for language in ENGINE_LANGUAGES),
        _package_row("quickjs_rs", "TypeScript", "pip install 'wasm-agent-runner[typescript]'"),
        _package_row("jsonschema_rs", "tools from files", "pip install 'wasm-agent-runner[tools]'"),
        _package_row("mcp", "MCP servers", "pip install 'wasm-agent-runner[mcp]'"),
    ]
    return [row for row in rows if row is not None]


def _row(name: str, ok: bool, found: str, hint: str) -> dict[str, Any]:
    return {"name": name, "ok": ok, "found": found, "hint": "" if ok else hint}


def _cache_row(cache: Path | None) -> dict[str, Any]:
    try:
        host = Host(cache)
        # Whether it can be written says only a write.
        host.cache.discard(_PROBE, b"doctor")
        host.cache.get_or_make(_PROBE, b"doctor", lambda: b"?")
    except RunnerError as error:
        return _row("cache", False, error.message, error.hint or "")
    return _row("cache", True, str(host.cache.root), "")


def _maps_row() -> dict[str, Any] | None:
    path = Path("/proc/sys/vm/max_map_count")
    if not path.exists():
        return None
    count = int(path.read_text())
    hint = "for ten thousand instances: sysctl vm.max_map_count=65530"
    return _row("memory maps", count >= _MAPS_FOR_10_000, str(count), hint)


def _package_row(package: str, name: str, hint: str) -> dict[str, Any]:
    if util.find_spec(package) is None:
        return _row(name, False, "not installed", hint)
    return _row(name, True, f"{package} {metadata.version(package)}", "")


def _engine_row(language: EngineLanguage, cache: Path | None) -> dict[str, Any]:
    """
    Whether agents in a language can be built here; a built one needs no engine beside it.
    """
    recipe = recipe_of(language)
    title = f"{recipe.title} engine"
    if prebuilt_module(language) is not None:
        return _row(title, True, f"{recipe.name}, installed", "")
    try:
        if is_made(language, BlobCache(cache or default_cache_root())):
            return _row(title, True, f"{recipe.name}, in the cache", "")
    except RunnerError as error:
        return _row(title, False, error.message, error.hint or "")
    problem = fetch_problem(recipe.source)
    if problem is not None:
        return _row(title, False, problem, "install a wheel that has it inside, or set RUNNER_ENGINES")
    return _row(title, True, f"{recipe.name}, made when it is first needed", "")


def _is_snapshot(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _describe_agent(host: Host, package: AgentPackage, grants: Grants) -> dict[str, Any]:
    manifest, admitted = package.manifest, host.admit(package.wasm)
    used = manifest.used_operations
    limits, image = manifest.limits_under({}), None
    if package.image is not None:
        image = carried_image(package, admitted, max_memory_bytes=_MOST_MEMORY_BYTES)
    return {
        "kind": "agent",
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "language": manifest.language,
        "abi_version": ABI_VERSION,
        "upgrades": admitted.upgrades,
        "digest": show(digest(pack(package.wasm, manifest, package.image))),
        "code_digest": show(admitted.code_digest),
        "image_digest": show(image.digest) if image else None,
        "wasm_bytes": len(package.wasm),
        "image_bytes": len(package.image) if package.image else 0,
        "memory": {
            "minimum_bytes": admitted.memory_min_bytes,
            "maximum_bytes": admitted.memory_max_bytes,
            "tables_bytes": admitted.table_bytes,
            "mutable_globals": len(admitted.globals),
        },
        "imports": [
            _describe_import(operation, grants, used is not None and operation not in used)
            for operation in admitted.imports
        ],
        "limits": limits.to_wire(),
        "unmet_limits": manifest.unmet(limits),
    }


def _describe_import(operation: str, grants: Grants, unused: bool) -> dict[str, Any]:
    decision = grants.decide(operation)
    own = operation.startswith("agent.")
    state = "unused" if unused and not own else "granted" if decision.allowed else "denied"
    return {"operation": operation, "state": state, "rule": decision.rule, "flag": decision.flag or ""}


def describe_snapshot(snapshot: Snapshot, file_bytes: int | None = None) -> dict[str, Any]:
    """
    What a snapshot says, without what it holds.
    """
    state = snapshot.state
    return {
        "kind": "snapshot",
        "agent": snapshot.agent,
        "created_at": _show_time(snapshot.created_at_ms),
        "abi_version": ABI_VERSION,
        "code_digest": show(snapshot.code_digest),
        "image_digest": show(snapshot.image_digest),
        "memory_digest": show(snapshot.memory_digest),
        "position": snapshot.position,
        "file_bytes": file_bytes,
        "memory": {
            "memory_bytes": state.mind.memory_bytes,
            "own_pages": len(state.mind.pages),
            "mutable_globals": len(state.mind.globals),
        },
        "instance": _describe_instance(state),
        "calls_in_flight": [
            {"number": call.number, "operation": call.operation, "request_bytes": len(call.request)}
            for call in state.calls
        ],
        "imports": [{"operation": operation} for operation in snapshot.imports],
        "limits": snapshot.limits.to_wire(),
        "host": _describe_host(snapshot.host),
    }


def _describe_instance(state: MachineState) -> dict[str, Any]:
    restored = state.restored
    return {
        "deliveries": state.last_delivery,
        "open_delivery": state.delivery.number if state.delivery else None,
        "restores": restored.count if restored else 0,
        "generation": restored.generation if restored else 0,
    }


def _show_time(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        # Beyond the calendar: whoever wrote the snapshot chose the number.
        return f"{at_ms} ms"


def _show_digest(value: Value) -> str | None:
    return show(value) if isinstance(value, bytes) else None


def _describe_host(host: dict[str, Value]) -> dict[str, Any]:
    """
    What the host holds besides, counted; its shape is checked when it is restored, not here.
    """
    notes, usage = host.get("notes"), host.get("usage")
    kept = notes.get("notes") if isinstance(notes, dict) else None
    answers = host.get("answers")
    return {
        "agent": _show_digest(host.get("agent")),
        "notes": len(kept) if isinstance(kept, list) else None,
        "model_calls": usage.get("calls") if isinstance(usage, dict) else None,
        "answers_not_handed_over": len(answers) if isinstance(answers, list) else None,
    }

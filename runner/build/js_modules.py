"""
The modules of a JavaScript agent, from its entry on.

Input: the agent's author. Which modules a module imports is the engine's word, since it alone knows what is
an import and what only looks like one; where they lie is decided here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final

from runner.build.modules import AgentModule, SourceTree, join_inside
from runner.errors import SourceRejected

HOST_MODULES: Final = frozenset({"agent", "agent/test", "kaoz/host", "kaoz/test", "kaoz/thread"})
"""
What the engine has inside.
"""

SCRIPT_SUFFIXES: Final = (".js", ".mjs")
TYPED_SUFFIXES: Final = (".ts", ".mts")

_SUFFIXES: Final = (*SCRIPT_SUFFIXES, *TYPED_SUFFIXES)
_MAX_SPECIFIER_CHARACTERS: Final = 512

Check = Callable[[str, str], Sequence[str]]
"""
The specifiers that a module of this name and text imports; raises `SourceRejected` when it does not compile.
"""

StripTypes = Callable[[str, str], str]
"""
JavaScript from TypeScript, by name and text.
"""


def collect_js(
    tree: SourceTree, entries: Sequence[str], *, check: Check, strip_types: StripTypes
) -> list[AgentModule]:
    """
    Every module that the entries lead to, each once.

    Args:
        tree: The agent's folder.
        entries: Names of modules to begin with.
        check: Asks the engine.
        strip_types: For modules in TypeScript.

    Raises:
        SourceRejected: If a module does not compile, or imports what is not there.
        AgentInvalid: If a file can't be read or leads outside the folder.
    """
    found: dict[str, AgentModule] = {}
    ahead = deque(entries)
    while ahead:
        name = ahead.popleft()
        if name in found:
            continue
        text = tree.text(name)
        if name.endswith(TYPED_SUFFIXES):
            text = strip_types(name, text)
        imports = {
            specifier: _resolve(tree, name, text, specifier)
            for specifier in check(name, text)
            if specifier not in HOST_MODULES
        }
        found[name] = AgentModule(name, text, {"imports": imports})
        ahead.extend(imports.values())
    return list(found.values())


def _resolve(tree: SourceTree, importer: str, text: str, specifier: str) -> str:
    line = _line_of(text, specifier)

    def refuse(problem: str, hint: str | None = None) -> SourceRejected:
        return SourceRejected(importer, problem, line=line, hint=hint)

    shown = specifier[:_MAX_SPECIFIER_CHARACTERS]
    if len(specifier) > _MAX_SPECIFIER_CHARACTERS or "\\" in specifier or not specifier.isprintable():
        raise refuse(f"module {shown!r} has a name that no file of an agent has")
    relative = specifier.startswith(("./", "../"))
    if specifier.startswith("/") or ":" in specifier:
        raise refuse(
            f"module {shown!r} is not available to an agent", "import files of the agent by ./ and ../"
        )
    base = PurePosixPath(importer).parent if relative else PurePosixPath()
    path = join_inside(base, specifier)
    if path is None:
        raise refuse(f"module {shown!r} lies outside the agent's folder")
    name = tree.find(_candidates(path))
    if name is None and relative:
        raise refuse(f"module {shown!r} is not there", f"looked for {', '.join(_candidates(path))}")
    if name is None:
        hint = "an agent has its own files and " + ", ".join(sorted(HOST_MODULES))
        raise refuse(f"module {shown!r} is not available to an agent", hint)
    return name


def _candidates(path: str) -> tuple[str, ...]:
    if path.endswith(_SUFFIXES):
        # TypeScript is imported by the name that it would be compiled to.
        typed = path.removesuffix("js") + "ts" if path.endswith(SCRIPT_SUFFIXES) else None
        return (path, typed) if typed else (path,)
    inside = f"{path}/index" if path else "index"
    return tuple(
        f"{stem}{suffix}" for stem in ((path, inside) if path else (inside,)) for suffix in _SUFFIXES
    )


def _line_of(text: str, specifier: str) -> int | None:
    """
    The first line that has the specifier in quotes: the engine names it without its place.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if f'"{specifier}"' in line or f"'{specifier}'" in line:
            return number
    return None

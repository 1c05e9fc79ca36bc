"""
`agent.toml`: what an agent says of itself and asks for; its keys are described in `docs/manifest.md`.

Input: the agent's author. A manifest can only ask. It may lower the bounds that hold by default; to go
above them takes the operator's own word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

from runner.codec import Value
from runner.errors import ConfigError
from runner.kernel.limits import Limits
from runner.package.fields import FieldProblem, Fields, flag, list_of, matching, one_of, positive, text
from runner.package.files import read_file
from runner.package.names import did_you_mean, known_names, operations_of
from runner.units import KIB, parse_bytes, parse_count, parse_duration_ms

MANIFEST_NAME: Final = "agent.toml"
MAX_MANIFEST_BYTES: Final = 16 * KIB

# The parser of the standard library takes a time that grows by the square of a dotted key's parts.
_MAX_DOTS: Final = 100

Language = Literal["wat", "c", "wasm", "js", "python"]
LANGUAGES: Final[tuple[Language, ...]] = ("wat", "c", "wasm", "js", "python")
INTERPRETED: Final[tuple[Language, ...]] = ("js", "python")
"""
Languages whose agents run on an engine that imports every operation.
"""

DEFAULT_VERSION: Final = "0.0.0"
DEFAULT_STACK_BYTES: Final = 64 * KIB

_NAME: Final = matching(
    re.compile(r"(?=.{1,64}\Z)[a-z][a-z0-9]*([-_][a-z0-9]+)*", re.ASCII),
    "1 to 64 lower-case letters and digits in words joined by - or _, such as my-agent",
)
_VERSION: Final = matching(
    re.compile(r"[0-9A-Za-z][0-9A-Za-z.+-]{0,63}", re.ASCII),
    "1 to 64 letters, digits, dots, + and -, such as 1.0.0",
)
_MAX_DESCRIPTION_CHARACTERS: Final = 500
_MAX_PATH_CHARACTERS: Final = 255
_MAX_SOURCES: Final = 256
_LIMIT_END: Final = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """
    How a C agent is compiled.

    Attributes:
        sources: Files to compile beside the entry, as paths inside the folder.
        unwind: Whether the code waits in the middle of a function, by unwinding its stack.
        stack_bytes: Room for the stack of C; with `unwind`, for the unwound stack too.
    """

    sources: tuple[str, ...] = ()
    unwind: bool = False
    stack_bytes: int = DEFAULT_STACK_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """
    A checked manifest.

    Attributes:
        name: Kebab or snake case, 1 to 64 characters.
        version: The author's own; nothing compares it.
        description: For people, 500 characters at most. Untrusted text: scrub before showing it.
        language: What `entry` is written in.
        entry: The agent's main file, as a path inside its folder.
        uses: Capabilities and operations that the agent uses although its module may import more, or
            `None` when it uses what it imports.
        limits: Bounds asked for, by field of `Limits`; absent ones were not mentioned.
        build: How to compile it; its defaults when the language is not compiled.
    """

    name: str
    version: str = DEFAULT_VERSION
    description: str = ""
    language: Language
    entry: str
    uses: tuple[str, ...] | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    build: BuildSettings = BuildSettings()

    @property
    def sources(self) -> tuple[str, ...]:
        """
        Every file to compile, the entry first.
        """
        return tuple(dict.fromkeys((self.entry, *self.build.sources)))

    @property
    def is_interpreted(self) -> bool:
        """
        Whether the agent's module is an engine, which imports more than the agent asks for.
        """
        return self.language in INTERPRETED

    @property
    def used_operations(self) -> frozenset[str] | None:
        """
        `uses` as operations, or `None` when the manifest does not say.
        """
        if self.uses is None:
            return None
        return frozenset(operation for name in self.uses for operation in operations_of(name))

    def limits_under(self, operator: Mapping[str, int]) -> Limits:
        """
        The bounds of an instance: the operator's where given, else the default or what the manifest
        asks for, whichever is less.

        Args:
            operator: The operator's own bounds, by field of `Limits`.
        """
        default = Limits().to_wire()
        asked = {name: min(value, default[name]) for name, value in self.limits.items()}
        return Limits(**{**asked, **operator})

    def unmet(self, limits: Limits) -> dict[str, int]:
        """
        Bounds that the manifest asks for and `limits` does not reach, by field of `Limits`.
        """
        granted = limits.to_wire()
        return {name: value for name, value in self.limits.items() if value > granted[name]}

    def to_wire(self) -> dict[str, Value]:
        """
        The manifest as CBOR-compatible data: the content of the section `runner.manifest`.
        """
        build = self.build
        wire: dict[str, Value] = {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "language": self.language,
            "entry": self.entry,
        }
        if self.uses is not None:
            wire["uses"] = list(self.uses)
        if self.limits:
            wire["limits"] = dict(self.limits)
        if build != BuildSettings():
            wire["build"] = {
                "sources": list(build.sources),
                "unwind": build.unwind,
                "stack_bytes": build.stack_bytes,
            }
        return wire

    @classmethod
    def from_wire(cls, wire: Value) -> Manifest:
        """
        The manifest that `to_wire` wrote.

        Raises:
            FieldProblem: If it is not one; a `ValueError` that says where and why.
        """
        return _read(wire, limits=_wire_limits, build=_wire_build)


LIMIT_KEYS: Final[dict[str, str]] = {
    entry.name.removesuffix("_bytes").removesuffix("_ms"): entry.name for entry in dataclass_fields(Limits)
}
"""
Keys of `[limits]` and the field of `Limits` that each sets: the unit stands in the value, not in the key.
"""


def load_manifest(folder: Path) -> Manifest:
    """
    The manifest of an agent's folder.

    Raises:
        AgentInvalid: If there is no readable `agent.toml` in it.
        ConfigError: If the file does not say what it must; names the key.
    """
    # Imported here: an agent in one file has no TOML, and each import is part of a start.
    import tomllib  # noqa: PLC0415

    path = folder / MANIFEST_NAME
    data = read_file(path, max_bytes=MAX_MANIFEST_BYTES, inside=folder)
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.count(b".") > _MAX_DOTS:
            raise ConfigError(str(path), None, f"line {number} has more than {_MAX_DOTS} dots")
    try:
        table: Any = tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), None, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(path), None, f"not valid TOML: {error}") from error
    try:
        return _read(table, limits=_written_limits, build=_written_build)
    except FieldProblem as error:
        raise ConfigError(str(path), error.key, error.problem) from error


def default_manifest(path: Path, language: Language) -> Manifest:
    """
    The manifest of an agent that is one file and carries none: its name is made from the file's.
    """
    words = re.findall(r"[a-z0-9]+", path.stem.lower(), re.ASCII)
    name = "-".join(words)[:64].rstrip("-")
    if not name or not name[0].isalpha():
        name = f"agent-{name}"[:64].rstrip("-")
    try:
        entry = _path_inside(path.name, "entry")
    except FieldProblem:
        # A file may be called what no manifest can say, and this one is packed like any other.
        entry = f"{name}.{language}"
    return Manifest(name=name, language=language, entry=entry)


def _read(
    value: Value,
    *,
    limits: Callable[[Value, str], dict[str, int]],
    build: Callable[[Value, str], BuildSettings],
) -> Manifest:
    with Fields(value) as fields:
        manifest = Manifest(
            name=fields.required("name", _NAME),
            version=fields.optional("version", _VERSION) or DEFAULT_VERSION,
            description=fields.optional("description", _description) or "",
            language=fields.required("language", one_of(LANGUAGES)),
            entry=fields.required("entry", _path_inside),
            uses=fields.optional("uses", _uses),
            limits=fields.optional("limits", limits) or {},
            build=fields.optional("build", build) or BuildSettings(),
        )
    if manifest.language != "c" and fields.has("build"):
        raise FieldProblem(
            "build", f'only an agent in "c" is built, and this one is in "{manifest.language}"'
        )
    return manifest


def _description(value: Value, at: str) -> str:
    written = text(value, at)
    if len(written) > _MAX_DESCRIPTION_CHARACTERS:
        raise FieldProblem(
            at, f"expected at most {_MAX_DESCRIPTION_CHARACTERS} characters, found {len(written)}"
        )
    return written


def _path_inside(value: Value, at: str) -> str:
    """
    A path below the agent's folder, in its one spelling; whether it leaves through a link is for the reader.

    It never begins with what a compiler would take for a flag, or for a file full of them: `./` before it is
    no help, because compilers take that away.
    """
    written = text(value, at)
    path = PurePosixPath(written)
    plain = written.isprintable() and "\\" not in written and len(written) <= _MAX_PATH_CHARACTERS
    inside = not path.is_absolute() and ".." not in path.parts and str(path) == written != "."
    if not plain or not inside or written.startswith(("-", "@")):
        raise FieldProblem(at, "expected a path inside the agent's folder, such as src/agent.c")
    return written


def _uses(value: Value, at: str) -> tuple[str, ...]:
    names = list_of(_used)(value, at)
    for index, name in enumerate(names):
        if name in names[:index]:
            raise FieldProblem(f"{at}[{index}]", f'"{name}" is named twice')
    return names


def _used(value: Value, at: str) -> str:
    name = text(value, at)
    if not operations_of(name):
        raise FieldProblem(
            at,
            "expected a capability or an operation, such as llm or memory.read"
            + did_you_mean(name, known_names()),
        )
    return name


def _written_limits(value: Value, at: str) -> dict[str, int]:
    with Fields(value, at) as fields:
        written = {name: fields.optional(key, _quantity(_parser(name))) for key, name in LIMIT_KEYS.items()}
    return {name: value for name, value in written.items() if value is not None}


def _wire_limits(value: Value, at: str) -> dict[str, int]:
    with Fields(value, at) as fields:
        written = {name: fields.optional(name, _bound) for name in LIMIT_KEYS.values()}
    return {name: value for name, value in written.items() if value is not None}


def _written_build(value: Value, at: str) -> BuildSettings:
    return _build(value, at, "stack", _quantity(parse_bytes))


def _wire_build(value: Value, at: str) -> BuildSettings:
    return _build(value, at, "stack_bytes", _bound)


def _build(value: Value, at: str, stack_key: str, stack: Callable[[Value, str], int]) -> BuildSettings:
    with Fields(value, at) as fields:
        return BuildSettings(
            sources=fields.optional("sources", list_of(_path_inside, at_most=_MAX_SOURCES)) or (),
            unwind=fields.optional("unwind", flag) or False,
            stack_bytes=fields.optional(stack_key, stack) or DEFAULT_STACK_BYTES,
        )


def _parser(limit: str) -> Callable[[str], int]:
    if limit.endswith("_bytes"):
        return parse_bytes
    return parse_duration_ms if limit.endswith("_ms") else parse_count


def _quantity(parse: Callable[[str], int]) -> Callable[[Value, str], int]:
    def check(value: Value, at: str) -> int:
        if type(value) is not int:
            value = text(value, at)
        try:
            return _bound(parse(str(value)), at)
        except FieldProblem:
            raise
        except ValueError as error:
            raise FieldProblem(at, str(error)) from error

    return check


def _bound(value: Value, at: str) -> int:
    if positive(value, at) >= _LIMIT_END:
        raise FieldProblem(at, "expected less than 2**63")
    return int(value)

"""
`agent.toml`.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import AgentInvalid, ConfigError
from runner.kernel import abi
from runner.kernel.limits import Limits
from runner.package.fields import FieldProblem
from runner.package.manifest import (
    LANGUAGES,
    LIMIT_KEYS,
    BuildSettings,
    Manifest,
    default_manifest,
    load_manifest,
)

SMALLEST = 'name = "hello"\nlanguage = "wat"\nentry = "hello.wat"\n'


def load(folder: Path, written: str) -> Manifest:
    """
    The manifest of a folder that has only this text as its `agent.toml`.
    """
    (folder / "agent.toml").write_text(written, encoding="utf-8")
    return load_manifest(folder)


def test_the_smallest_manifest_has_a_name_a_language_and_an_entry(tmp_path: Path) -> None:
    """
    All else has a default.
    """
    assert load(tmp_path, SMALLEST) == Manifest(name="hello", language="wat", entry="hello.wat")


def test_every_key_is_read(tmp_path: Path) -> None:
    """
    The whole format in one file.
    """
    written = """
        name = "note-keeper"
        version = "1.2.0-rc.1+x"
        description = "Keeps notes."
        language = "c"
        entry = "src/agent.c"
        uses = ["llm", "memory.read"]

        [limits]
        memory = "2MiB"
        fuel = "1.5M"
        timeout = 3
        calls_per_slice = 8

        [build]
        sources = ["src/words.c"]
        unwind = true
        stack = "16KiB"
    """
    manifest = load(tmp_path, written)
    assert manifest == Manifest(
        name="note-keeper",
        version="1.2.0-rc.1+x",
        description="Keeps notes.",
        language="c",
        entry="src/agent.c",
        uses=("llm", "memory.read"),
        limits={"memory_bytes": 2 << 20, "fuel": 1_500_000, "timeout_ms": 3000, "calls_per_slice": 8},
        build=BuildSettings(sources=("src/words.c",), unwind=True, stack_bytes=16 << 10),
    )
    assert manifest.sources == ("src/agent.c", "src/words.c")
    assert manifest.used_operations == frozenset(
        {"llm.chat", "llm.complete", "llm.providers", "llm.usage", "memory.read"}
    )


def test_every_limit_has_a_key() -> None:
    """
    The unit is in the value, so the key has none.
    """
    assert set(LIMIT_KEYS.values()) == set(Limits().to_wire())
    assert list(LIMIT_KEYS) == [
        "memory", "fuel", "timeout", "request", "reply", "payload", "calls_per_slice", "calls_in_flight",
        "log_line", "log_lines_per_slice", "random",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "key", "problem"),
    [
        ('name = "a"\nlanguage = "wat"', "entry", "missing"),
        (SMALLEST + "color = 1", "color", "unknown key"),
        (SMALLEST + 'verison = "1"', "verison", 'unknown key; did you mean "version"?'),
        (SMALLEST + "version = 1", "version", "expected text, found an integer"),
        (
            SMALLEST + 'version = "1 0"',
            "version",
            "expected 1 to 64 letters, digits, dots, + and -, such as 1.0.0",
        ),
        (SMALLEST + "description = 1979-05-27", "description", "expected text, found a date or time"),
        (
            SMALLEST + f'description = "{"x" * 501}"',
            "description",
            "expected at most 500 characters, found 501",
        ),
        (SMALLEST + 'uses = "llm"', "uses", "expected a list, found text"),
        (
            SMALLEST + 'uses = ["llm", "memroy"]',
            "uses[1]",
            'expected a capability or an operation, such as llm or memory.read; did you mean "memory"?',
        ),
        (
            SMALLEST + 'uses = ["wasi"]',
            "uses[0]",
            "expected a capability or an operation, such as llm or memory.read",
        ),
        (SMALLEST + 'uses = ["llm", "llm"]', "uses[1]", '"llm" is named twice'),
        (SMALLEST + "limits = 3", "limits", "expected a map, found an integer"),
        (SMALLEST + "limits.memroy = 3", "limits.memroy", 'unknown key; did you mean "memory"?'),
        (
            SMALLEST + 'limits.memory = "2 MiBs"',
            "limits.memory",
            "'2 MiBs' is not a size such as 65536, 64KiB, 1.5MiB or 2MB",
        ),
        (
            SMALLEST + 'limits.timeout = "3 days"',
            "limits.timeout",
            "'3 days' is not a duration such as 30s, 500ms, 2m or 1h",
        ),
        (SMALLEST + 'limits.fuel = "x"', "limits.fuel", "'x' is not a count such as 200, 50k or 2G"),
        (SMALLEST + "limits.fuel = 0", "limits.fuel", "expected an integer of one or more"),
        (SMALLEST + "limits.fuel = -5", "limits.fuel", "'-5' is not a count such as 200, 50k or 2G"),
        (SMALLEST + "limits.fuel = 1.5", "limits.fuel", "expected text, found a float"),
        (SMALLEST + 'limits.fuel = "99999999999G"', "limits.fuel", "expected an integer of zero or more"),
        (SMALLEST + 'limits.fuel = "9223372036854775808"', "limits.fuel", None),
        (SMALLEST + 'limits.fuel = "9300000000G"', "limits.fuel", "expected less than 2**63"),
        (
            SMALLEST + "build.unwind = true",
            "build",
            'only an agent in "c" is built, and this one is in "wat"',
        ),
        (
            SMALLEST.replace("wat", "c") + "build.sources = ['../x.c']",
            "build.sources[0]",
            "expected a path inside the agent's folder, such as src/agent.c",
        ),
        (SMALLEST.replace("wat", "c") + "build.unwind = 1", "build.unwind", None),
        (SMALLEST.replace('"wat"', '"rust"'), "language", 'expected "wat", "c" or "wasm"'),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(
    tmp_path: Path, written: str, key: str, problem: str | None
) -> None:
    """
    The person who wrote the file is told where and what.
    """
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, written)
    assert caught.value.details == {"path": str(tmp_path / "agent.toml"), "key": key}
    if problem is not None:
        assert str(caught.value) == f"{tmp_path}/agent.toml: {key}: {problem}"


@pytest.mark.parametrize("name", ["", "Hello", "a b", "-a", "a-", "a--b", "1a", "é", "a.b", "a\n", "a" * 65])
def test_a_name_is_kebab_or_snake_case(tmp_path: Path, name: str) -> None:
    """
    It becomes part of file names and commands.
    """
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, SMALLEST.replace('"hello"', f"{name!r}".replace("'", '"')))
    assert str(caught.value) == (
        f"{tmp_path}/agent.toml: name: expected 1 to 64 lower-case letters and digits in words joined by "
        "- or _, such as my-agent"
    )


@pytest.mark.parametrize("name", ["a", "hello", "hostile_spinner", "my-agent-2", "a" * 64])
def test_a_good_name_is_kept(tmp_path: Path, name: str) -> None:
    """
    Up to 64 characters.
    """
    assert load(tmp_path, SMALLEST.replace('"hello"', f'"{name}"')).name == name


@pytest.mark.parametrize(
    "entry",
    [
        "",
        ".",
        "..",
        "../a.wat",
        "a/../b.wat",
        "/etc/passwd",
        "a//b",
        "./a",
        "a/",
        "a\\b",
        "a\nb",
        "a\0b",
        "a" * 256,
    ],
)
def test_an_entry_stays_inside_the_folder(entry: str) -> None:
    """
    And it has one spelling only.
    """
    wire = {"name": "a", "language": "wat", "entry": entry}
    with pytest.raises(FieldProblem) as caught:
        Manifest.from_wire(wire)
    assert str(caught.value) == "entry: expected a path inside the agent's folder, such as src/agent.c"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"name = ", "not valid TOML: Invalid value (at end of document)"),
        (b'name = "\xff"', "not UTF-8 at byte 8"),
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    """
    With the parser's own words.
    """
    (tmp_path / "agent.toml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_manifest(tmp_path)
    assert str(caught.value) == f"{tmp_path}/agent.toml: {problem}"


@pytest.mark.parametrize(
    "content",
    [
        "a = " + "[" * 16_000,
        "a = " + "{a=" * 5_000,
        "a = " + "9" * 16_000,
        'a = "' + "\\n" * 8_000,
        ("a" + ".a" * 99 + " = 1\n") * 70,
    ],
)
def test_a_bomb_of_a_manifest_is_refused_like_any_other(tmp_path: Path, content: str) -> None:
    """
    Depth and digits are the author's to choose, the crash is not.
    """
    with pytest.raises(ConfigError):
        load(tmp_path, content)


def test_a_line_of_dots_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """
    A dotted key of 16 KiB would keep the parser busy for seconds.
    """
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, SMALLEST + "a" + ".a" * 7_000 + " = 1")
    assert str(caught.value) == f"{tmp_path}/agent.toml: line 4 has more than 100 dots"


def test_a_manifest_beyond_16_kib_is_not_read(tmp_path: Path) -> None:
    """
    The size is checked first.
    """
    with pytest.raises(AgentInvalid) as caught:
        load(tmp_path, "#" * 16_385)
    assert str(caught.value) == f"{tmp_path}/agent.toml: larger than 16.0 KiB"


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    """
    The message names the file that is missing.
    """
    with pytest.raises(AgentInvalid) as caught:
        load_manifest(tmp_path)
    assert str(caught.value) == f"{tmp_path}/agent.toml: no such file"


def test_a_manifest_lowers_a_bound_and_never_raises_it() -> None:
    """
    Otherwise each agent would choose its own limits.
    """
    manifest = Manifest(
        name="a",
        language="wat",
        entry="a.wat",
        limits={"memory_bytes": 1 << 40, "fuel": 1000, "timeout_ms": 5},
    )
    assert manifest.limits_under({}) == Limits(fuel=1000, timeout_ms=5)
    assert manifest.unmet(manifest.limits_under({})) == {"memory_bytes": 1 << 40}


def test_the_operator_has_the_last_word_on_a_bound() -> None:
    """
    Upwards and downwards, whatever the manifest asks for.
    """
    manifest = Manifest(
        name="a", language="wat", entry="a.wat", limits={"memory_bytes": 1 << 30, "fuel": 1000}
    )
    limits = manifest.limits_under({"memory_bytes": 1 << 30, "fuel": 50})
    assert limits == Limits(memory_bytes=1 << 30, fuel=50)
    assert manifest.unmet(limits) == {"fuel": 1000}


def test_a_manifest_that_does_not_say_what_it_uses_uses_what_it_imports() -> None:
    """
    `None` is not the empty set.
    """
    assert Manifest(name="a", language="wat", entry="a.wat").used_operations is None
    assert Manifest(name="a", language="wat", entry="a.wat", uses=()).used_operations == frozenset()


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("hello.wasm", "hello"),
        ("My Agent (2).wasm", "my-agent-2"),
        ("snake_case.wasm", "snake-case"),
        ("2nd.wasm", "agent-2nd"),
        ("\N{SNOWMAN}.wasm", "agent"),
        ("x" * 100 + ".wasm", "x" * 64),
    ],
)
def test_an_agent_without_a_manifest_is_named_after_its_file(file: str, name: str) -> None:
    """
    The name is made to follow the rules of names.
    """
    manifest = default_manifest(Path("/somewhere") / file, "wasm")
    assert (manifest.name, manifest.entry) == (name, file)


@pytest.mark.parametrize("file", ["a\\b.wasm", "odd\udcff.wasm", "line\nbreak.wasm"])
def test_a_file_that_no_manifest_could_name_still_makes_an_agent_that_can_be_packed(file: str) -> None:
    """
    Or a snapshot of it could not be restored, and looking at it would be an error of ours.
    """
    manifest = default_manifest(Path("/somewhere") / file, "wasm")
    assert Manifest.from_wire(codec.decode(codec.encode(manifest.to_wire()))) == manifest


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """
    Any manifest that the checks let through.
    """
    paths = st.from_regex(r"\A[a-z]{1,9}(/[a-z]{1,9})?\.[a-z]{1,3}\Z")
    language = draw(st.sampled_from(LANGUAGES))
    names = sorted({*abi.CAPABILITIES, *abi.OPERATIONS})
    build = BuildSettings(
        sources=tuple(draw(st.lists(paths, max_size=3))),
        unwind=draw(st.booleans()),
        stack_bytes=draw(st.integers(1, (1 << 63) - 1)),
    )
    return Manifest(
        name=draw(st.from_regex(r"\A[a-z][a-z0-9]{0,8}([-_][a-z0-9]{1,8})?\Z")),
        version=draw(st.from_regex(r"\A[0-9]\.[0-9]\Z")),
        description=draw(st.text(max_size=20)),
        language=language,
        entry=draw(paths),
        uses=draw(st.none() | st.lists(st.sampled_from(names), unique=True, max_size=4).map(tuple)),
        limits=draw(
            st.dictionaries(st.sampled_from(list(Limits().to_wire())), st.integers(1, (1 << 63) - 1))
        ),
        build=build if language == "c" else BuildSettings(),
    )


@given(manifests())
def test_a_manifest_survives_its_wire_form(manifest: Manifest) -> None:
    """
    Through CBOR and back it is the same.
    """
    assert Manifest.from_wire(codec.decode(codec.encode(manifest.to_wire()))) == manifest


@given(
    st.dictionaries(
        st.sampled_from(["name", "version", "language", "entry", "uses", "limits", "build", "x"]),
        st.none() | st.integers() | st.text(max_size=4) | st.lists(st.text(max_size=4), max_size=2)
        | st.dictionaries(st.sampled_from(["fuel", "stack_bytes", "sources"]), st.integers(), max_size=2),
    )
)  # fmt: skip
def test_a_wire_form_that_is_none_is_refused_and_nothing_worse(wire: Any) -> None:
    """
    It comes from whoever wrote the module.
    """
    with contextlib.suppress(FieldProblem):
        Manifest.from_wire(wire)

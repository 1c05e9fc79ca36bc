"""
Loading an agent, and the one-file form that travels.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import codec
from runner.errors import AgentInvalid, ConfigError
from runner.kernel.wasm.custom import custom_sections, with_custom_section
from runner.package import agent as module
from runner.package.agent import AgentPackage, Build, Unpacked, load_agent, pack, unpack
from runner.package.manifest import Manifest
from runner.package.sources import BUILT_MODULE, record_build

EMPTY = b"\0asm\x01\0\0\0"
MANIFEST = Manifest(name="packed", version="2", language="c", entry="agent.c", limits={"fuel": 7})


def assemble(text: str) -> bytes:
    """
    An assembler that keeps the text in a section, so that a test sees what was assembled.
    """
    return with_custom_section(EMPTY, "text", text.encode())


def interpret(folder: Path, manifest: Manifest) -> bytes:
    """
    An engine that keeps what it was asked to load in a section.
    """
    return with_custom_section(EMPTY, "load", f"{folder.name} {manifest.name} {manifest.entry}".encode())


def load(path: Path, build: Build | None = None) -> AgentPackage:
    """
    The agent at a path.
    """
    return load_agent(path, assemble=assemble, build=build, interpret=interpret)


def refusal(path: Path, build: Build | None = None) -> AgentInvalid:
    """
    The error that loading ends in.
    """
    with pytest.raises(AgentInvalid) as caught:
        load(path, build)
    return caught.value


def write_manifest(folder: Path, language: str, entry: str) -> None:
    """
    The smallest `agent.toml`.
    """
    (folder / "agent.toml").write_text(
        f'name = "hello"\nlanguage = "{language}"\nentry = "{entry}"\n', encoding="utf-8"
    )


def test_a_folder_of_text_is_assembled(tmp_path: Path) -> None:
    """
    The entry's text, and nothing else, goes to the assembler.
    """
    write_manifest(tmp_path, "wat", "a.wat")
    (tmp_path / "a.wat").write_text("(module) ;; é", encoding="utf-8")
    package = load(tmp_path)
    assert package == AgentPackage(
        Manifest(name="hello", language="wat", entry="a.wat"), assemble("(module) ;; é"), tmp_path
    )
    assert package.name == "hello"


def test_a_folder_with_a_module_is_read(tmp_path: Path) -> None:
    """
    Its manifest is the folder's; an image in the module is kept.
    """
    write_manifest(tmp_path, "wasm", "a.wasm")
    (tmp_path / "a.wasm").write_bytes(pack(EMPTY, MANIFEST, b"image"))
    assert load(tmp_path) == AgentPackage(
        Manifest(name="hello", language="wasm", entry="a.wasm"), EMPTY, tmp_path, b"image"
    )


def test_a_module_in_one_file_has_the_manifest_that_it_carries(tmp_path: Path) -> None:
    """
    Or one that is made from its file's name.
    """
    (tmp_path / "packed.wasm").write_bytes(pack(EMPTY, MANIFEST))
    (tmp_path / "bare.wasm").write_bytes(EMPTY)
    assert load(tmp_path / "packed.wasm") == AgentPackage(MANIFEST, EMPTY, tmp_path / "packed.wasm")
    assert load(tmp_path / "bare.wasm") == AgentPackage(
        Manifest(name="bare", language="wasm", entry="bare.wasm"), EMPTY, tmp_path / "bare.wasm"
    )


@pytest.mark.parametrize(
    ("file", "language"),
    [("a.js", "js"), ("a.mjs", "js"), ("a.ts", "js"), ("a.mts", "js"), ("a.py", "python")],
)
def test_a_script_in_one_file_is_an_agent(tmp_path: Path, file: str, language: str) -> None:
    """
    Loaded into its language's engine, with the folder that it lies in.
    """
    (tmp_path / file).write_text("anything", encoding="utf-8")
    package = load(tmp_path / file)
    assert (package.name, package.manifest.language, package.manifest.entry) == ("a", language, file)
    assert package.wasm == with_custom_section(EMPTY, "load", f"{tmp_path.name} a {file}".encode())


@pytest.mark.parametrize(("language", "entry"), [("js", "a.js"), ("python", "a.py")])
def test_a_folder_of_scripts_is_loaded_under_its_manifest(tmp_path: Path, language: str, entry: str) -> None:
    """
    Whatever the entry is called.
    """
    write_manifest(tmp_path, language, entry)
    package = load(tmp_path)
    assert (package.name, package.manifest.language) == ("hello", language)
    assert package.wasm == with_custom_section(EMPTY, "load", f"{tmp_path.name} hello {entry}".encode())


def test_a_text_in_one_file_is_an_agent(tmp_path: Path) -> None:
    """
    Named after the file.
    """
    path = tmp_path / "my_agent.wat"
    path.write_text("(module)", encoding="utf-8")
    assert load(path) == AgentPackage(
        Manifest(name="my-agent", language="wat", entry="my_agent.wat"), assemble("(module)"), path
    )


def test_a_c_agent_is_built_only_when_its_sources_changed(tmp_path: Path) -> None:
    """
    A build that is up to date needs no compiler.
    """
    write_manifest(tmp_path, "c", "agent.c")
    (tmp_path / "agent.c").write_text("x", encoding="utf-8")
    manifest = Manifest(name="hello", language="c", entry="agent.c")
    built: list[Path] = []

    def build(folder: Path) -> Path:
        built.append(folder)
        packed = pack(EMPTY, manifest)
        (folder / "build").mkdir(exist_ok=True)
        (folder / BUILT_MODULE).write_bytes(packed)
        record_build(folder, manifest, packed)
        return folder / BUILT_MODULE

    expected = AgentPackage(manifest, EMPTY, tmp_path)
    error = refusal(tmp_path)
    assert str(error) == f"{tmp_path}: not built from its sources as they are"
    assert error.hint == f"runner build {tmp_path}; that runs a C compiler on its sources"
    assert load(tmp_path, build) == expected
    assert load(tmp_path, build) == load(tmp_path) == expected
    assert built == [tmp_path]
    (tmp_path / "agent.c").write_text("y", encoding="utf-8")
    assert load(tmp_path, build) == expected
    assert built == [tmp_path, tmp_path]


def test_what_is_no_agent_is_refused_with_what_is_one(tmp_path: Path) -> None:
    """
    A folder, a file, or nothing at all.
    """
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.wasm").write_bytes(b"\0as")
    assert str(refusal(tmp_path)) == f"{tmp_path}: has no agent.toml"
    assert str(refusal(tmp_path / "nothing")) == f"{tmp_path}/nothing: no such file or folder"
    assert str(refusal(tmp_path / "nothing.wasm")) == f"{tmp_path}/nothing.wasm: no such file"
    assert str(refusal(tmp_path / "a.txt")) == (
        f"{tmp_path}/a.txt: not an agent: expected a folder with agent.toml, "
        "or a .wasm, .wat, .js, .ts or .py file"
    )
    assert str(refusal(tmp_path / "a.wasm")) == f"{tmp_path}/a.wasm: not a WebAssembly module"


def test_a_manifest_at_fault_is_the_fault_of_its_file(tmp_path: Path) -> None:
    """
    Not of the agent as such.
    """
    write_manifest(tmp_path, "rust", "a.rs")
    with pytest.raises(ConfigError) as caught:
        load(tmp_path)
    assert (
        str(caught.value) == f'{tmp_path}/agent.toml: language: expected "wat", "c", "wasm", "js" or "python"'
    )


@pytest.mark.parametrize(("language", "entry"), [("wat", "a.wat"), ("wasm", "a.wasm")])
def test_an_entry_that_leads_outside_is_refused(tmp_path: Path, language: str, entry: str) -> None:
    """
    Whatever it is linked to.
    """
    folder = tmp_path / "agent"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(EMPTY)
    write_manifest(folder, language, entry)
    (folder / entry).symlink_to(tmp_path / "secret")
    assert str(refusal(folder)) == f"{folder}/{entry}: leads outside the agent's folder"


def test_a_manifest_that_leads_outside_is_refused(tmp_path: Path) -> None:
    """
    Its errors would quote the file.
    """
    (tmp_path / "agent.toml").symlink_to("/etc/passwd")
    assert str(refusal(tmp_path)) == f"{tmp_path}/agent.toml: leads outside the agent's folder"


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    """
    With the place.
    """
    (tmp_path / "a.wat").write_bytes(b"(module \xff)")
    assert str(refusal(tmp_path / "a.wat")) == f"{tmp_path}/a.wat: not UTF-8 at byte 8"


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of text and of modules.
    """
    monkeypatch.setattr(module, "MAX_MODULE_BYTES", 7)
    monkeypatch.setattr(module, "MAX_TEXT_BYTES", 7)
    for name in ("a.wasm", "a.wat"):
        (tmp_path / name).write_bytes(EMPTY)
        assert str(refusal(tmp_path / name)) == f"{tmp_path}/{name}: larger than 7 B"


def test_packing_adds_two_sections_and_unpacking_takes_them_away() -> None:
    """
    Every other section stays where it was.
    """
    code = with_custom_section(EMPTY, "name", b"x")
    packed = pack(code, MANIFEST, b"image")
    assert [section.name for section in custom_sections(packed)] == [
        "name",
        "runner.manifest",
        "runner.image",
    ]
    assert unpack(packed, origin=Path("a.wasm")) == Unpacked(code, MANIFEST, b"image")
    assert unpack(pack(code, MANIFEST), origin=Path("a.wasm")) == Unpacked(code, MANIFEST, None)
    assert unpack(code, origin=Path("a.wasm")) == Unpacked(code, None, None)


def test_packing_again_replaces_what_was_there() -> None:
    """
    And the same parts give the same bytes.
    """
    assert pack(pack(EMPTY, MANIFEST, b"old"), MANIFEST, b"new") == pack(EMPTY, MANIFEST, b"new")
    assert pack(pack(EMPTY, MANIFEST, b"old"), MANIFEST) == pack(EMPTY, MANIFEST)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (b"", "section runner.manifest: payload ends early at byte 0"),
        (codec.encode(1), "section runner.manifest: expected a map, found an integer"),
        (
            codec.encode({**MANIFEST.to_wire(), "limits": {"fuel": 0}}),
            "section runner.manifest: limits.fuel: expected an integer of one or more",
        ),
        (
            codec.encode({**MANIFEST.to_wire(), "entry": "../x"}),
            "section runner.manifest: entry: expected a path inside the agent's folder, such as src/agent.c",
        ),
    ],
)
def test_a_carried_manifest_that_is_none_is_refused(section: bytes, problem: str) -> None:
    """
    It is checked as strictly as a file.
    """
    with pytest.raises(AgentInvalid) as caught:
        unpack(with_custom_section(EMPTY, "runner.manifest", section), origin=Path("a.wasm"))
    assert str(caught.value) == f"a.wasm: {problem}"


@pytest.mark.parametrize("name", ["runner.manifest", "runner.image"])
def test_a_section_that_is_there_twice_is_refused(name: str) -> None:
    """
    Two readers might take different ones.
    """
    twice = with_custom_section(with_custom_section(EMPTY, name, b""), name, b"")
    with pytest.raises(AgentInvalid) as caught:
        unpack(twice, origin=Path("a.wasm"))
    assert str(caught.value) == f"a.wasm: section {name} is there 2 times"


@given(st.binary(max_size=60))
def test_unpacking_is_total(tail: bytes) -> None:
    """
    Any bytes are an agent file or refused as none.
    """
    try:
        code, _, _ = unpack(EMPTY + tail, origin=Path("a.wasm"))
    except AgentInvalid:
        return
    assert code.startswith(EMPTY)

"""
From a folder to a module: what is compiled, what is refused, and in which words.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from runner.build import build_agent, c, tool
from runner.build.sdk import sdk_digest
from runner.errors import AgentInvalid, BuildFailed, UsageError
from runner.kernel.engine import Engine
from runner.package.agent import unpack
from runner.package.manifest import load_manifest
from runner.package.sources import read_built

REPLIES_NULL = """
#include <runner.h>
void on_message(const runner_delivery *delivery) { runner_reply_null(delivery->number); }
"""

CFolder = Callable[..., Path]


def write_manifest(folder: Path, language: str, entry: str) -> None:
    """
    An `agent.toml` with what must be in it.
    """
    (folder / "agent.toml").write_text(f'name = "tried"\nlanguage = "{language}"\nentry = "{entry}"\n')


@pytest.mark.c
def test_the_same_sources_give_the_same_bytes_wherever_they_lie(tmp_path: Path) -> None:
    """
    Nothing of the folder, the time or the process goes in.
    """
    source = "#include <runner.h>\nconst char *where(void) { return __FILE__; }\n"
    built = []
    for name in ("here", "over/there"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "agent.c").write_text(source + "void on_start(void) { runner_log(1, where()); }\n")
        write_manifest(folder, "c", "agent.c")
        built.append(build_agent(folder).read_bytes())
    assert built[0] == built[1]


@pytest.mark.c
def test_unwinding_gives_the_same_bytes_twice(c_folder: CFolder) -> None:
    """
    The pass is as deterministic as the compiler.
    """
    folder = c_folder(REPLIES_NULL, build="unwind = true")
    first = build_agent(folder).read_bytes()
    assert build_agent(folder).read_bytes() == first


@pytest.mark.c
def test_an_agent_imports_only_what_its_source_names(engine: Engine, compiled: Callable[..., bytes]) -> None:
    """
    The SDK costs no capability; unwinding leaves no import behind.
    """
    from runner.kernel.admission import admit

    own = {"agent.take", "agent.reply", "agent.fail"}
    assert set(admit(compiled("codec"), engine.wasmtime).imports) == own
    waiting = compiled("waiting", unwind=True)
    assert set(admit(waiting, engine.wasmtime).imports) == own | {"memory.list"}


@pytest.mark.c
def test_a_small_agent_is_small(c_folder: CFolder) -> None:
    """
    What an agent does not use is not in it.
    """
    assert build_agent(c_folder(REPLIES_NULL)).stat().st_size < 8_000


@pytest.mark.c
def test_a_build_is_remembered_by_its_sources(c_folder: CFolder) -> None:
    """
    The module counts as built until a source changes.
    """
    folder = c_folder(REPLIES_NULL)
    path = build_agent(folder)
    manifest = load_manifest(folder)
    assert path == folder / "build" / "agent.wasm"
    assert read_built(folder, manifest, max_bytes=1 << 20, sdk=sdk_digest()) == path.read_bytes()
    (folder / "agent.c").write_text(REPLIES_NULL + "\n")
    assert read_built(folder, manifest, max_bytes=1 << 20, sdk=sdk_digest()) is None


@pytest.mark.c
def test_a_build_elsewhere_leaves_the_folder_alone(c_folder: CFolder, tmp_path: Path) -> None:
    """
    With `out`, nothing is written but that file.
    """
    folder = c_folder(REPLIES_NULL)
    out = tmp_path / "out.wasm"
    assert build_agent(folder, out) == out
    assert sorted(path.name for path in folder.iterdir()) == ["agent.c", "agent.toml"]
    assert unpack(out.read_bytes(), origin=out).manifest == load_manifest(folder)


@pytest.mark.c
def test_a_compilers_error_is_shown_with_file_and_line(c_folder: CFolder) -> None:
    """
    In its own words, with the name that the author knows the file by.
    """
    folder = c_folder("#include <runner.h>\nvoid on_message(const runner_delivery *d) { d->nothing; }\n")
    with pytest.raises(BuildFailed) as caught:
        build_agent(folder)
    first = str(caught.value).splitlines()
    assert first[0] == f"{folder}: build failed"
    assert first[1].startswith("agent.c:2:")
    assert "error: no member named 'nothing'" in first[1]
    assert not (folder / "build").exists()


@pytest.mark.c
def test_a_function_that_is_nowhere_is_named(c_folder: CFolder) -> None:
    """
    A libc function, say: there is no libc.
    """
    source = "#include <runner.h>\nint printf(const char *, ...);\nvoid on_start(void) { printf(0); }\n"
    with pytest.raises(BuildFailed, match="undefined symbol: printf"):
        build_agent(c_folder(source))


@pytest.mark.c
def test_warnings_are_handed_on(c_folder: CFolder) -> None:
    """
    They stop nothing.
    """
    lines: list[str] = []
    build_agent(c_folder(REPLIES_NULL + "void on_start(void) { int unused = 1; }\n"), progress=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("agent.c:4:27: warning: unused variable 'unused'")


@pytest.mark.c
def test_several_sources_and_headers_make_one_agent(c_folder: CFolder) -> None:
    """
    A header may be listed; it is not compiled by itself.
    """
    folder = c_folder(
        '#include "said.h"\n' + REPLIES_NULL + "void on_start(void) { runner_log(1, said()); }\n",
        build='sources = ["said.h", "sub/said.c"]',
    )
    (folder / "sub").mkdir()
    (folder / "said.h").write_text("const char *said(void);\n")
    (folder / "sub" / "said.c").write_text('#include "../said.h"\nconst char *said(void) { return "hi"; }\n')
    assert build_agent(folder).stat().st_size > 0


@pytest.mark.c
@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_a_source_that_leads_outside_is_refused(c_folder: CFolder, tmp_path: Path) -> None:
    """
    Before a compiler sees it.
    """
    (tmp_path / "secret.c").write_text("int secret;\n")
    folder = c_folder(REPLIES_NULL, build='sources = ["more.c"]')
    (folder / "more.c").symlink_to(tmp_path / "secret.c")
    with pytest.raises(AgentInvalid) as caught:
        build_agent(folder)
    assert str(caught.value) == f"{folder.resolve() / 'more.c'}: leads outside the agent's folder"


def test_a_missing_compiler_is_named_with_the_line_that_installs_it(
    c_folder: CFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Nothing is written.
    """
    monkeypatch.setattr(c, "find_spec", lambda _: None)
    folder = c_folder(REPLIES_NULL)
    with pytest.raises(UsageError) as caught:
        build_agent(folder)
    assert str(caught.value) == "compiling a C agent needs zig, which is not installed"
    assert caught.value.hint == "pip install 'wasm-agent-runner[c]'"
    assert not (folder / "build").exists()


def test_a_missing_unwinding_tool_is_named_with_the_line_that_installs_it(
    c_folder: CFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Only when it is asked for.
    """
    ziglang = find_spec("json")
    monkeypatch.setattr(c, "find_spec", lambda name: ziglang if name == "ziglang" else None)
    with pytest.raises(UsageError) as caught:
        build_agent(c_folder(REPLIES_NULL, build="unwind = true"))
    assert str(caught.value) == "`unwind = true` needs binaryen, which is not installed"
    assert caught.value.hint == (
        "pip install 'wasm-agent-runner[c-unwind]' (Linux on x86-64, macOS), or use callbacks"
    )


@pytest.mark.c
def test_binaryens_own_words_reach_the_author(c_folder: CFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It ends its process on a module that it doesn't like; ours goes on.
    """
    monkeypatch.setattr(c, "_binaryen", lambda: Path("no-such-library"))
    with pytest.raises(BuildFailed, match="binaryen: no-such-library: "):
        build_agent(c_folder(REPLIES_NULL, build="unwind = true"))


def test_a_wat_agent_needs_no_compiler(tmp_path: Path) -> None:
    """
    The engine assembles it.
    """
    (tmp_path / "agent.wat").write_text("(module)")
    write_manifest(tmp_path, "wat", "agent.wat")
    path = build_agent(tmp_path)
    assert unpack(path.read_bytes(), origin=path).wasm == b"\0asm\1\0\0\0"
    assert not (tmp_path / "build" / "agent.digests").exists()


def test_a_fault_in_wat_is_shown_with_its_line(tmp_path: Path) -> None:
    """
    The assembler's words follow the file's name.
    """
    (tmp_path / "agent.wat").write_text("(module\n  (nothing))")
    write_manifest(tmp_path, "wat", "agent.wat")
    with pytest.raises(AgentInvalid) as caught:
        build_agent(tmp_path)
    words = str(caught.value).splitlines()
    assert words[0] == f"{tmp_path / 'agent.wat'}: not valid WebAssembly text"
    assert any(":2:" in line for line in words)


def test_wat_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """
    With the place of the first byte that isn't.
    """
    (tmp_path / "agent.wat").write_bytes(b"(module\xff)")
    write_manifest(tmp_path, "wat", "agent.wat")
    with pytest.raises(AgentInvalid) as caught:
        build_agent(tmp_path)
    assert str(caught.value) == f"{tmp_path / 'agent.wat'}: not UTF-8 at byte 7"


def test_a_module_is_packed_as_it_is(tmp_path: Path) -> None:
    """
    Whatever made it; what is no module is refused.
    """
    write_manifest(tmp_path, "wasm", "agent.wasm")
    (tmp_path / "agent.wasm").write_bytes(b"\0asm\1\0\0\0")
    path = build_agent(tmp_path)
    assert unpack(path.read_bytes(), origin=path).wasm == b"\0asm\1\0\0\0"
    (tmp_path / "agent.wasm").write_bytes(b"\0asm\1\0\0\0\1\xff")
    with pytest.raises(AgentInvalid, match=r"agent\.wasm"):
        build_agent(tmp_path)


def test_a_tool_sees_nothing_of_the_environment_that_it_does_not_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    No key of the user's, and no include path.
    """
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("CPATH", "/elsewhere")
    program = "import os; print(sorted(os.environ))"
    result = tool.run_tool([sys.executable, "-I", "-c", program], folder=tmp_path, scratch=tmp_path)
    assert result.ok
    assert "SOME_API_KEY" not in result.output
    assert "CPATH" not in result.output


def test_a_tools_output_is_cut_to_a_bound(tmp_path: Path) -> None:
    """
    A compiler can be made to talk without end.
    """
    result = _run(tmp_path, "print('x' * 100_000)")
    assert result.output == "x" * tool.MAX_OUTPUT_BYTES + "\n(more was cut off)"


def test_a_tool_that_fails_silently_leaves_its_status(tmp_path: Path) -> None:
    """
    So that there is something to say.
    """
    assert _run(tmp_path, "raise SystemExit(3)") == (False, "exit status 3")


def test_a_tool_that_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A compiler can be made to work without end.
    """
    monkeypatch.setattr(tool, "TOOL_TIMEOUT_S", 0.2)
    assert _run(tmp_path, "while True: pass") == (False, "no end after 0.2 s")


def _run(folder: Path, program: str) -> Any:
    return tool.run_tool([sys.executable, "-I", "-c", program], folder=folder, scratch=folder)

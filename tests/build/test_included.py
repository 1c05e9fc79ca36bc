"""
What a stranger's source may make a compiler read or write: its own folder's files, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.build import build_agent
from runner.build.included import check_included
from runner.errors import AgentInvalid, BuildFailed, ConfigError

CFolder = Callable[..., Path]

REPLIES_NULL = """#include <runner.h>
void on_message(const runner_delivery *delivery) { runner_reply_null(delivery->number); }
"""


def _folder(tmp_path: Path, source: str, build: str = "") -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.toml").write_text(f'name = "a"\nlanguage = "c"\nentry = "agent.c"\n{build}')
    (folder / "agent.c").write_text(source)
    return folder


@pytest.mark.c
@pytest.mark.parametrize("directive", ["include", "embed"])
@pytest.mark.parametrize("way", ["absolute", "relative", "link"])
def test_a_source_can_not_read_what_lies_outside_its_folder(tmp_path: Path, directive: str, way: str):
    """A key of the user's would else be in the module, and the agent could tell it to anyone."""
    secret = tmp_path / "secret"
    secret.write_text("42\n")
    name = {"absolute": str(secret), "relative": "../secret", "link": "inside.h"}[way]
    source = f'{REPLIES_NULL}static const char secret[] = {{\n#{directive} "{name}"\n}};\n'
    folder = _folder(tmp_path, source + "void on_start(void) { runner_log(1, secret); }\n")
    (folder / "inside.h").symlink_to(secret)
    with pytest.raises(AgentInvalid) as caught:
        build_agent(folder)
    expected = f"{folder}: includes {name}, which lies outside the agent's folder"
    assert caught.value.message == expected
    assert not (folder / "build" / "agent.wasm").exists()


@pytest.mark.c
def test_a_source_can_not_read_files_in_assembly(tmp_path: Path):
    """What the assembler reads is in nobody's list."""
    secret = tmp_path / "secret"
    secret.write_text("42\n")
    folder = _folder(tmp_path, f'{REPLIES_NULL}__asm__(".incbin \\"{secret}\\"");\n')
    with pytest.raises(BuildFailed, match="GNU-style inline assembly is disabled"):
        build_agent(folder)


@pytest.mark.parametrize("name", ["@flags", "-oflags"])
def test_a_source_is_never_taken_for_flags(tmp_path: Path, name: str):
    """A file full of flags could have the compiler write wherever the user may."""
    folder = _folder(tmp_path, REPLIES_NULL, f'[build]\nsources = ["{name}"]\n')
    (folder / name).write_text(f"-o\n{tmp_path / 'overwritten'}\n")
    (folder / name[1:]).write_text(f"-o\n{tmp_path / 'overwritten'}\n")
    with pytest.raises(ConfigError) as caught:
        build_agent(folder)
    expected = "build.sources[0]: expected a path inside the agent's folder, such as src/agent.c"
    assert caught.value.message == f"{folder / 'agent.toml'}: {expected}"
    assert not (tmp_path / "overwritten").exists()


@pytest.mark.c
def test_what_is_built_is_not_written_through_a_link(tmp_path: Path):
    """`build` may lead anywhere."""
    victim = tmp_path / "victim"
    victim.mkdir()
    folder = _folder(tmp_path, REPLIES_NULL)
    (folder / "build").symlink_to(victim)
    with pytest.raises(AgentInvalid, match="build: leads outside the agent's folder"):
        build_agent(folder)
    assert list(victim.iterdir()) == []


@pytest.mark.c
def test_a_source_may_include_its_own_files_and_the_sdks(tmp_path: Path):
    """Wherever the folder lies, and whatever its own name."""
    home = tmp_path / "John Doe's #1 $"
    home.mkdir()
    embeds = 'static const char parts[] = {\n#embed "parts/answer.inc"\n};\n'
    keeps = "void on_start(void) { runner_log(parts[0], parts); }\n"
    folder = _folder(home, f'#include "parts/answer.inc"\n{REPLIES_NULL}{embeds}{keeps}')
    (folder / "parts").mkdir()
    (folder / "parts" / "answer.inc").write_text(
        "#include <stdint.h>\nstatic inline int32_t f(void) { return 1; }\n"
    )
    assert build_agent(folder).is_file()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("x.o: agent.c \\\n  /etc/passwd\n", "includes /etc/passwd, which lies outside the agent's folder"),
        (
            "x.o: agent.c ROOT/../../outside\n",
            "includes ../../outside, which lies outside the agent's folder",
        ),
        ("x.o: agent.c absent.h\n", "includes absent.h, which is gone"),
        # A name that ends with a backslash would hide the one after it.
        ("x.o: agent.c x\\ /etc/passwd\n", "includes a file whose name has a space, #, $ or backslash"),
        ("x.o: agent.c a$$b.h\n", "includes a file whose name has a space, #, $ or backslash"),
        ("x.o: agent.c ROOT/a.h ROOT/sub/b.h\n", None),
        ("x.o: ./agent.c ../agent/agent.c\n", None),
    ],
)
def test_the_list_of_what_was_read_is_held_against_the_folders(
    tmp_path: Path, rule: str, problem: str | None
):
    """By where the files really lie; names that could be read in two ways are refused."""
    folder, root = tmp_path / "agent", tmp_path / "the sdk" / "include"
    for path in (folder / "agent.c", root / "a.h", root / "sub" / "b.h", tmp_path / "outside"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    listed = rule.replace("ROOT", str(root).replace(" ", "\\ "))
    if problem is None:
        check_included(listed, folder, [root])
        return
    with pytest.raises(AgentInvalid) as caught:
        check_included(listed, folder, [root])
    assert caught.value.message == f"{folder}: {problem}"

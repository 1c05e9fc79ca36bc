"""
Agents in JavaScript, from their files to an answer; Python's go the same way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.build.engines import EngineLanguage, engine_module
from runner.cache import BlobCache
from runner.errors import AgentInvalid, LimitExceeded, RunnerError, SourceRejected
from runner.kernel.slice import LogLine
from runner.wiring import build_agent, inspect_path, restore_snapshot, run_agent

pytestmark = pytest.mark.js

ECHO = "export async function run(input) { return input; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An agent's folder, empty but for its manifest."""
    path = tmp_path / "agent"
    path.mkdir()
    (path / "agent.toml").write_text('name = "tried"\nlanguage = "js"\nentry = "agent.js"\n')
    return path


def write(folder: Path, **files: str) -> Path:
    """
    Modules of an agent by their stem.
    """
    for stem, text in files.items():
        (folder / f"{stem}.js").write_text(text, encoding="utf-8")
    return folder


def run(folder: Path, options: Any, value: Any = None, **changes: Any) -> Any:
    """
    What the agent answers.
    """
    return run_agent(folder, value, options(**changes)).result


def rejected(folder: Path, options: Any) -> SourceRejected:
    """
    The error that loading the agent ends in.
    """
    with pytest.raises(SourceRejected) as caught:
        run(folder, options)
    return caught.value


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[EngineLanguage]:
    """Grows whenever an engine is asked for because an agent has to be loaded anew."""
    asked: list[EngineLanguage] = []

    def counted(language: EngineLanguage, cache: BlobCache, progress: Any = None) -> bytes:
        asked.append(language)
        return engine_module(language, cache, progress)

    monkeypatch.setattr("runner.wiring.interpreted.engine_module", counted)
    return asked


def test_one_file_is_an_agent(tmp_path: Path, options: Any) -> None:
    """
    Also under another suffix.
    """
    for name in ("echo.js", "echo.mjs"):
        (tmp_path / name).write_text(ECHO)
        assert run(tmp_path / name, options, {"a": [1, "ä"]}) == {"a": [1, "ä"]}


def test_typescript_is_an_agent(tmp_path: Path, options: Any) -> None:
    """
    With types, interfaces and enums; another module is imported by the name that it would be compiled to.
    """
    (tmp_path / "main.ts").write_text(
        'import { twice, type Twice } from "./twice.js";\n'
        "enum Step { One = 1 }\n"
        "interface Asked { n: number }\n"
        "export async function run(input: Asked): Promise<number> {\n"
        "  const by: Twice = twice;\n  return by(input.n as number) + Step.One;\n}\n"
    )
    (tmp_path / "twice.ts").write_text(
        "export type Twice = (n: number) => number;\nexport const twice: Twice = (n) => 2 * n;\n"
    )
    assert run(tmp_path / "main.ts", options, {"n": 4}) == 9


def test_text_that_is_no_typescript_is_refused_with_its_file(tmp_path: Path, options: Any) -> None:
    """
    The library that takes the types away does not say where in it.
    """
    (tmp_path / "main.ts").write_text("let x: = 3;\nexport const run = () => x;\n")
    with pytest.raises(SourceRejected, match=r"main\.ts: .*Unexpected token") as caught:
        run(tmp_path / "main.ts", options)
    assert caught.value.exit_code == 7


def test_modules_import_one_another_in_a_circle(folder: Path, options: Any) -> None:
    """
    As the language has it.
    """
    write(
        folder,
        agent='import { odd } from "./odd.js";\n'
        "export const even = (n) => n === 0 || odd(n - 1);\nexport const run = (n) => even(n);\n",
        odd='import { even } from "./agent.js";\nexport const odd = (n) => n !== 0 && even(n - 1);\n',
    )
    assert run(folder, options, 10) is True


def test_an_agent_is_loaded_once_for_the_same_files(
    folder: Path, options: Any, loads: list[EngineLanguage]
) -> None:
    """
    A file that changes, and one that appears where another was found in vain, make it another agent.
    """
    write(folder, agent='import { word } from "./word";\nexport const run = () => word;\n')
    (folder / "word").mkdir()
    (folder / "word" / "index.js").write_text('export const word = "one";\n')
    assert [run(folder, options), run(folder, options)] == ["one", "one"]
    assert loads == ["js"]
    (folder / "word" / "index.js").write_text('export const word = "two";\n')
    assert [run(folder, options), run(folder, options)] == ["two", "two"]
    assert loads == ["js"] * 2
    write(folder, word='export const word = "three";\n')
    assert [run(folder, options), run(folder, options)] == ["three", "three"]
    assert loads == ["js"] * 3


def test_a_built_agent_needs_nothing_else(folder: Path, options: Any, tmp_path: Path) -> None:
    """
    One file, the same twice, that runs where the sources are not; what it holds can be looked at.
    """
    write(folder, agent=ECHO)
    facts = [build_agent(folder, tmp_path / name, lambda _: None, options().cache) for name in ("a", "b")]
    assert facts[0]["digest"] == facts[1]["digest"]
    built = (tmp_path / "a").rename(tmp_path / "a.wasm")
    for path in folder.iterdir():
        path.unlink()
    assert run(built, options, "moved") == "moved"
    assert (inspect_path(built, options().cache)["name"], facts[0]["image_digest"]) == (
        "tried",
        inspect_path(built, options().cache)["image_digest"],
    )


def test_what_is_not_granted_is_refused_when_it_is_asked_for(folder: Path, options: Any) -> None:
    """
    The engine imports every operation, so an agent that does not say what it uses starts all the same.
    """
    write(
        folder,
        agent='import { memory } from "agent";\n'
        "export const run = async () => (await memory.list()).length;\n",
    )
    with pytest.raises(RunnerError, match=r"memory\.list is not granted") as caught:
        run(folder, options)
    assert caught.value.kind == "guest"
    assert run(folder, options, allow=("memory",)) == 0


def test_what_a_manifest_uses_must_be_granted(folder: Path, options: Any) -> None:
    """
    Before anything of it runs.
    """
    with (folder / "agent.toml").open("a") as file:
        file.write('uses = ["memory"]\n')
    write(folder, agent=ECHO)
    with pytest.raises(RunnerError) as caught:
        run(folder, options)
    assert caught.value.kind == "denied"


def test_a_failure_says_where_in_the_authors_file(folder: Path, options: Any) -> None:
    """
    With the stack as data.
    """
    write(folder, agent="export async function run() {\n  const x = null;\n  return x.y;\n}\n")
    with pytest.raises(RunnerError, match="TypeError: cannot read property 'y' of null") as caught:
        run(folder, options)
    data = caught.value.details["data"]
    assert (data["name"], data["file"], data["line"]) == ("TypeError", "agent.js", 3)
    assert "agent.js:3" in data["stack"]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("export const a = 1;\nexport const = 2;\n", 2, "SyntaxError: "),
        ("const a = 1;\n", None, "agent does not define run(input)"),
        ('\nimport fs from "fs";\n', 2, "module 'fs' is not available to an agent"),
        ('import "../outside.js";\n', 1, "module '../outside.js' lies outside the agent's folder"),
        ('import "./nowhere.js";\n', 1, "module './nowhere.js' is not there"),
        ('export const run = 1;\n\nthrow new Error("at load");\n', 3, "Error: at load"),
        ('import { llm } from "agent";\n\nawait llm.chat([]);\n', 3, "can't ask anything while it loads"),
        ("await new Promise(() => {});\nexport const run = 1;\n", None, "never come"),
    ],
)
def test_a_module_that_is_wrong_is_refused_with_its_place(
    folder: Path, options: Any, text: str, line: int | None, problem: str
) -> None:
    """
    A file that is not acceptable: exit code 7, and nothing is left where the agent lies or where it is kept.
    """
    write(folder, agent=text)
    error = rejected(folder, options)
    assert problem in error.message
    assert (error.details["file"], error.details.get("line"), error.exit_code) == ("agent.js", line, 7)
    assert sorted(path.name for path in folder.iterdir()) == ["agent.js", "agent.toml"]


def test_an_agent_that_never_finishes_loading_is_ended(folder: Path, options: Any) -> None:
    """
    With its file, and the line where it was or the limit that it met.
    """
    write(folder, agent="export const run = 1;\nwhile (true) {}\n")
    with pytest.raises((SourceRejected, LimitExceeded), match=r"agent\.js.*does not finish loading"):
        run(folder, options)


def test_an_entry_of_another_kind_is_refused(folder: Path, options: Any) -> None:
    """
    Before anything is read as what it is not.
    """
    manifest = folder / "agent.toml"
    manifest.write_text(manifest.read_text().replace("agent.js", "agent.txt"))
    (folder / "agent.txt").write_text(ECHO)
    with pytest.raises(AgentInvalid, match="an agent in js has an entry in"):
        run(folder, options)


def test_a_snapshot_goes_on_where_the_agent_was(folder: Path, options: Any, tmp_path: Path) -> None:
    """
    Module state is the agent's memory; the module itself is not evaluated again.
    """
    write(
        folder,
        agent='import { log } from "agent";\nlog.info("evaluated");\nlet count = 0;\n'
        "export const run = () => ++count;\n",
    )
    lines: list[LogLine] = []
    snapshot = tmp_path / "counted.snap"
    assert run(folder, options, snapshot=snapshot, on_log=lines.append) == 1
    for expected in (2, 3):
        chosen = options(snapshot=snapshot, on_log=lines.append)
        assert restore_snapshot(snapshot, None, chosen, None).result is None
        assert restore_snapshot(snapshot, "go", chosen, None).result == expected
    assert lines == []

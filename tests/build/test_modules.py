"""
Which files an agent in an interpreted language is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.build.js_modules import collect_js
from runner.build.modules import MAX_MODULE_TEXT_BYTES, SourceTree
from runner.errors import AgentInvalid, SourceRejected

IMPORTS = "import: "


def check(name: str, text: str) -> Sequence[str]:
    """
    An engine for which a line `import: "x"` is an import.
    """
    del name
    lines = text.split("\n")
    return [line.removeprefix(IMPORTS).strip('"') for line in lines if line.startswith(IMPORTS)]


def write(folder: Path, files: dict[str, str]) -> SourceTree:
    """
    An agent's folder with these files.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return SourceTree(folder)


def collect(tree: SourceTree, *entries: str) -> dict[str, dict[str, str]]:
    """
    Each module found, with what its imports lead to.
    """
    modules = collect_js(tree, entries, check=check, strip_types=lambda _, text: f"stripped {text}")
    return {module.name: dict(module.more["imports"]) for module in modules}


def refusal(folder: Path, files: dict[str, str]) -> SourceRejected:
    """
    The error that collecting from `a.js` ends in.
    """
    with pytest.raises(SourceRejected) as caught:
        collect(write(folder, files), "a.js")
    return caught.value


def test_modules_are_found_from_the_entry_on_each_once(tmp_path: Path) -> None:
    """
    Also in a circle.
    """
    tree = write(
        tmp_path,
        {
            "a.js": 'import: "./lib/b.js"\nimport: "agent"',
            "lib/b.js": 'import: "../c.js"\nimport: "./d"',
            "c.js": 'import: "./a.js"',
            "lib/d.mjs": "",
            "unused.js": 'import: "./nowhere.js"',
        },
    )
    assert collect(tree, "a.js") == {
        "a.js": {"./lib/b.js": "lib/b.js"},
        "lib/b.js": {"../c.js": "c.js", "./d": "lib/d.mjs"},
        "c.js": {"./a.js": "a.js"},
        "lib/d.mjs": {},
    }


@pytest.mark.parametrize(
    ("specifier", "files", "found"),
    [
        ("./b", ["b.js"], "b.js"),
        ("./b", ["b.mjs", "b/index.js"], "b.mjs"),
        ("./b", ["b/index.js"], "b/index.js"),
        ("./b.js", ["b.ts"], "b.ts"),
        ("./b.js", ["b.js", "b.ts"], "b.js"),
        ("vendor", ["vendor/index.mjs"], "vendor/index.mjs"),
        ("vendor/x", ["vendor/x.js"], "vendor/x.js"),
        ("b", ["b.js"], "b.js"),
    ],
)
def test_a_specifier_leads_to_the_first_file_that_it_may_mean(
    tmp_path: Path, specifier: str, files: list[str], found: str
) -> None:
    """
    By suffix, then as a folder; a bare name counts from the agent's own folder.
    """
    tree = write(tmp_path, {"a.js": f'import: "{specifier}"', **dict.fromkeys(files, "")})
    assert collect(tree, "a.js")["a.js"] == {specifier: found}


@pytest.mark.parametrize(
    ("specifier", "problem"),
    [
        ("fs", "module 'fs' is not available to an agent"),
        ("node:fs", "module 'node:fs' is not available to an agent"),
        ("https://example.com/x.js", "module 'https://example.com/x.js' is not available to an agent"),
        ("/etc/passwd", "module '/etc/passwd' is not available to an agent"),
        ("./b.js", "module './b.js' is not there"),
        ("../b.js", "module '../b.js' lies outside the agent's folder"),
        ("./lib/../../b.js", "module './lib/../../b.js' lies outside the agent's folder"),
        ("./b\\c.js", "module './b\\\\c.js' has a name that no file of an agent has"),
    ],
)
def test_what_is_not_the_agents_is_refused_with_file_and_line(
    tmp_path: Path, specifier: str, problem: str
) -> None:
    """
    And is not looked for anywhere.
    """
    error = refusal(tmp_path, {"a.js": f'// first\nimport: "{specifier}"'})
    assert error.message == f"a.js:2: {problem}"
    assert (error.details["file"], error.details["line"]) == ("a.js", 2)


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """
    As a file and as a folder on the way.
    """
    outside = tmp_path / "outside"
    write(outside, {"secret.js": "x"})
    for link, target in (("b.js", outside / "secret.js"), ("lib", outside)):
        folder = tmp_path / f"agent-{link}"
        specifier = "./b.js" if link == "b.js" else "./lib/secret.js"
        tree = write(folder, {"a.js": f'import: "{specifier}"'})
        (folder / link).symlink_to(target)
        with pytest.raises(AgentInvalid, match="leads outside the agent's folder"):
            collect(tree, "a.js")


def test_types_are_taken_away_before_a_module_is_looked_at(tmp_path: Path) -> None:
    """
    And only of TypeScript.
    """
    tree = write(tmp_path, {"a.ts": "x", "b.js": "y"})
    modules = collect_js(tree, ["a.ts", "b.js"], check=check, strip_types=lambda _, text: f"stripped {text}")
    assert [module.text for module in modules] == ["stripped x", "y"]


def test_a_text_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    """
    And a mark of the encoding is none of the text.
    """
    (tmp_path / "a.js").write_bytes(b"one\ntwo\n\xff")
    (tmp_path / "b.js").write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    tree = SourceTree(tmp_path)
    with pytest.raises(SourceRejected) as caught:
        tree.text("a.js")
    assert caught.value.message == "a.js:3: not UTF-8"
    assert tree.text("b.js") == "one\ntwo"


def test_sizes_and_counts_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Before anything is loaded.
    """
    tree = write(tmp_path, {"big.js": "x" * (MAX_MODULE_TEXT_BYTES + 1), "b.js": "", "c.js": ""})
    with pytest.raises(AgentInvalid, match=r"larger than 1\.0 MiB"):
        tree.text("big.js")
    monkeypatch.setattr("runner.build.modules.MAX_MODULES", 1)
    tree.text("b.js")
    with pytest.raises(AgentInvalid, match="more than 1 modules"):
        tree.text("c.js")


def test_a_tree_remembers_what_it_read_and_what_was_not_there(tmp_path: Path) -> None:
    """
    So that it can be told later whether the agent is still the same.
    """
    tree = write(tmp_path, {"a.js": 'import: "./b"', "b/index.js": ""})
    collect(tree, "a.js")
    assert set(tree.read) == {"a.js", "b/index.js"}
    assert {"b.js", "b.mjs", "b.ts"} <= tree.absent

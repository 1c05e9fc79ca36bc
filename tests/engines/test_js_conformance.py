"""
Small programs, and what Node made of them: `node tests/engines/conformance/expect.mjs` writes it down.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engines.driver import Interpreter

pytestmark = pytest.mark.js

_FOLDER = Path(__file__).with_name("conformance")
_FILES = sorted((_FOLDER / "js").glob("*.mjs"))
_ENTRY = """
import {{ programs }} from "./{name}";
import {{ outcome }} from "./harness.mjs";
export const run = (title) => outcome(programs[title]);
"""

# What the interpreter has wrong, by cause. `docs/javascript.md` tells it to authors.
_WRONG = {
    "a string spread into an object literal leaves nothing there": {"spread of objects"},
    "of several labels of one loop, `continue` knows the last": {"continue at the outer of two labels"},
}


def _modules(path: Path) -> dict[str, str]:
    return {
        "entry.mjs": _ENTRY.format(name=path.name),
        path.name: path.read_text(encoding="utf-8"),
        "harness.mjs": (_FOLDER / "harness.mjs").read_text(encoding="utf-8"),
    }


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_programs_give_what_they_give_in_node(js: Interpreter, path: Path) -> None:
    """
    Each in an instance of its own. Those that are known to be wrong are, so that their list stays true.
    """
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    agent = js.load(_modules(path))
    found = {title: agent.instance().message(title) for title in expected}
    differing = {title for title in expected if found[title] != expected[title]}
    wrong = {title for titles in _WRONG.values() for title in titles} & expected.keys()
    assert {title: (found[title], expected[title]) for title in differing - wrong} == {}
    assert differing == wrong


def test_there_are_hundreds_of_programs() -> None:
    """
    As many as the document says.
    """
    count = sum(len(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))) for path in _FILES)
    text = (_FOLDER.parents[2] / "docs" / "javascript.md").read_text(encoding="utf-8")
    assert f"{count} small programs" in text

"""
The documents agree with the tables and files that they speak of.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from runner import codec
from runner.kernel import abi

ROOT: Final = Path(__file__).resolve().parents[1]

_LINK: Final = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING: Final = re.compile(r"^#{1,6} (?P<text>.+)$", re.MULTILINE)
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def load_reference() -> ModuleType:
    """
    `docs/abi_reference.py` as a module.
    """
    spec = importlib.util.spec_from_file_location("abi_reference", ROOT / "docs" / "abi_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documents() -> list[Path]:
    """
    Every tracked Markdown file.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def anchors(document: Path) -> set[str]:
    """
    The fragments that headings of a document can be linked by.
    """
    text = _FENCED.sub("", document.read_text(encoding="utf-8"))
    kept = (re.sub(r"[^\w\- ]", "", match["text"].lower()) for match in _HEADING.finditer(text))
    return {heading.replace(" ", "-") for heading in kept}


def test_the_specification_agrees_with_the_table() -> None:
    """
    The generated parts of `docs/abi.md` are those that the host's own tables give.
    """
    text = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    assert load_reference().generate(text) == text


def test_the_specification_names_every_import_and_export() -> None:
    """
    Nothing that the table has is missing from the text.
    """
    text = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    names = [*abi.OPERATIONS, *(entry.name for entry in abi.EXPORTS)]
    assert [name for name in names if f"#### `{name}`\n" not in text] == []


def test_the_generator_needs_exactly_its_parts() -> None:
    """
    A part that was deleted, or is misspelt, is an error and not silence.
    """
    with pytest.raises(ValueError, match=r"^generated parts are \['limit'\], expected \["):
        load_reference().generate("<!-- generated: limit -->\n<!-- end of generated: limit -->")


def test_every_narrower_condition_belongs_to_a_status_of_its_import() -> None:
    """
    A condition whose import or status left the table is found.
    """
    reference = load_reference()
    of_call = {status for entry in abi.IMPORTS if entry.makes_call for status in entry.statuses}
    known = {("call", status) for status in of_call}
    known |= {(entry.operation, status) for entry in abi.IMPORTS for status in entry.statuses}
    assert set(reference.CONDITIONS) - known == set()
    assert {status for entry in abi.IMPORTS for status in entry.statuses} == set(reference.CHECKED)
    assert {status for entry in abi.IMPORTS for status in entry.wakes if status < 0} == set(
        reference.WAKE_CONDITIONS
    )


def test_every_rule_of_admission_is_in_the_specification() -> None:
    """
    The table has the rules that a refusal can carry, no more and no less.
    """
    source = (ROOT / "runner" / "kernel" / "admission.py").read_text(encoding="utf-8")
    refusals = [
        node.args[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ModuleRejected"
    ]
    rules = {rule.value for rule in refusals if isinstance(rule, ast.Constant)}
    assert len(refusals) == sum(isinstance(rule, ast.Constant) for rule in refusals)
    assert set(load_reference().RULES) == rules


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--check"], 0, ""),
        ([], 2, "usage: python docs/abi_reference.py --check|--write\n"),
    ],
)
def test_the_generator_is_a_command(arguments: list[str], code: int, complaint: str) -> None:
    """
    `--check` is quiet when all is well, and anything unknown says how to call it.
    """
    done = subprocess.run(
        [sys.executable, "docs/abi_reference.py", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", complaint)


def test_the_worked_example_is_what_the_codec_writes() -> None:
    """
    The hexadecimal in `docs/abi.md` encodes the value that stands beside it.
    """
    text = (ROOT / "docs" / "abi.md").read_text(encoding="utf-8")
    pairs = re.findall(r"`((?:[0-9a-f]{2})[0-9a-f ]+)`,\s+`(\{.*\})`", text)
    assert len(pairs) == 1
    for hexadecimal, value in pairs:
        assert codec.encode(json.loads(value)) == bytes.fromhex(hexadecimal)


def test_every_link_between_documents_leads_somewhere() -> None:
    """
    Relative links name files that exist, and headings that these have.
    """
    broken = []
    for document in documents():
        for match in _LINK.finditer(_FENCED.sub("", document.read_text(encoding="utf-8"))):
            path, _, fragment = match["target"].partition("#")
            if "://" in path:
                continue
            target = (document.parent / path).resolve() if path else document
            if not target.exists() or (fragment and fragment not in anchors(target)):
                broken.append(f"{document.relative_to(ROOT)}: {match['target']}")
    assert broken == []


def test_every_decision_is_in_the_index() -> None:
    """
    The index lists the decisions by number, each with its title, and no others.
    """
    folder = ROOT / "docs" / "decisions"
    rows = []
    for path in sorted(folder.glob("[0-9]*.md")):
        heading = path.read_text(encoding="utf-8").split("\n")[0]
        number, _, title = heading.removeprefix("# ").partition(". ")
        assert int(number) == int(path.name[:4])
        rows.append(f"| [{number}]({path.name}) | {title} |")
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[.*$", index, re.MULTILINE) == rows

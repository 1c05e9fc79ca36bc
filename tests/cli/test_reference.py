"""
`docs/cli.md` is what the command says of itself.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """
    `docs/cli_reference.py` as a module.
    """
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "docs" / "cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_agrees_with_the_command(reference: ModuleType) -> None:
    """
    Run `python docs/cli_reference.py --write` when it doesn't.
    """
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert reference.generate(text) == text


def test_the_generator_needs_exactly_its_parts(reference: ModuleType) -> None:
    """
    A part that was deleted, or is misspelt, is an error and not silence.
    """
    with pytest.raises(ValueError, match=r"^generated parts are \['rum'\], expected \['approvals', "):
        reference.generate("<!-- generated: rum -->\n<!-- end of generated: rum -->")


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [(["--check"], 0, ""), ([], 2, "usage: python docs/cli_reference.py --check|--write\n")],
)
def test_the_generator_is_a_command(arguments: list[str], code: int, complaint: str) -> None:
    """
    `--check` is quiet when all is well, and anything unknown says how to call it.
    """
    done = subprocess.run(
        [sys.executable, "docs/cli_reference.py", *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", complaint)

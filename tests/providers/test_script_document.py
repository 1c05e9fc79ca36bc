"""
`docs/scripted-provider.md` says what the reader does.
"""

from __future__ import annotations

import re
from pathlib import Path

from runner.providers.base import STOP_REASONS
from runner.providers.script import FAULT_KINDS, load_script

DOCUMENT = (Path(__file__).parents[2] / "docs" / "scripted-provider.md").read_text(encoding="utf-8")


def test_the_example_is_a_script(tmp_path: Path) -> None:
    """
    With turns of each kind, and rules.
    """
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    path = tmp_path / "script.toml"
    path.write_text(example, encoding="utf-8")
    script = load_script(path)
    assert (len(script.turns), len(script.rules)) == (3, 3)


def test_every_fault_and_every_stop_is_described() -> None:
    """
    The closed sets are closed in the document too.
    """
    faults = DOCUMENT.split("## Faults")[1]
    assert tuple(re.findall(r"^\| `(\w+)` \|", faults, re.MULTILINE))[1:] == FAULT_KINDS
    (stops,) = re.findall(r"^\| `stop` \| (`end`.*) \| `end` \|", DOCUMENT, re.MULTILINE)
    assert tuple(re.findall(r"`(\w+)`", stops)) == STOP_REASONS

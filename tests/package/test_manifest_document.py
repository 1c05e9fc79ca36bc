"""
`docs/manifest.md` says what the reader does.
"""

from __future__ import annotations

import re
from pathlib import Path

from runner.package.manifest import LIMIT_KEYS, MAX_MANIFEST_BYTES, load_manifest
from runner.units import show_bytes

DOCUMENT = (Path(__file__).parents[2] / "docs" / "manifest.md").read_text(encoding="utf-8")


def test_the_example_is_a_manifest(tmp_path: Path) -> None:
    """
    It uses every key of the format.
    """
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    (tmp_path / "agent.toml").write_text(example, encoding="utf-8")
    manifest = load_manifest(tmp_path)
    assert manifest.sources == ("src/agent.c", "src/words.c")
    assert manifest.limits == {"memory_bytes": 4 << 20, "fuel": 100_000_000, "timeout_ms": 5000}


def test_every_limit_is_described() -> None:
    """
    In the order of the table that they are read by.
    """
    section = DOCUMENT.split("## `limits`")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(LIMIT_KEYS)


def test_the_size_is_the_one_that_is_checked() -> None:
    """
    A bound is written once in the code and once for people.
    """
    assert f"of at most {show_bytes(MAX_MANIFEST_BYTES).replace('.0', '')}" in DOCUMENT

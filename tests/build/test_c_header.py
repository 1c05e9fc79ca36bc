"""
The generated C header.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.build import c_header, sdk_root
from runner.kernel import abi


def test_the_committed_header_is_the_generated_one() -> None:
    """
    Drift between the table and the header fails here.
    """
    path = sdk_root() / "c" / "include" / c_header.HEADER_NAME
    assert path.read_text(encoding="utf-8") == c_header.generate()


def test_every_import_is_declared_under_its_own_name() -> None:
    """
    Module and field of each import attribute are an operation, and all operations are there.
    """
    found = re.findall(r"RUNNER_IMPORT\((\w+), (\w+)\)\n(\w+) runner_(\w+)\(", c_header.generate())
    assert {f"{module}.{name}" for module, name, _, _ in found} == set(abi.OPERATIONS)
    assert all(c_name == f"{module}_{name}" for module, name, _, c_name in found)


def test_every_status_has_its_number_and_its_meaning() -> None:
    """
    The enum is the table's.
    """
    text = c_header.generate()
    for status in abi.Status:
        assert f"  RUNNER_STATUS_{status.name} = {int(status)},\n" in text


def test_a_shape_can_not_end_the_comment_around_it() -> None:
    """
    Comments open and close in turn.
    """
    marks = re.findall(r"/\*|\*/", c_header.generate())
    assert marks == ["/*", "*/"] * (len(marks) // 2)


def test_check_says_what_to_do_when_the_header_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Then `--write` puts it right.
    """
    path = tmp_path / "c" / "include" / c_header.HEADER_NAME
    path.parent.mkdir(parents=True)
    path.write_text("stale")
    monkeypatch.setattr(c_header, "sdk_root", lambda: tmp_path)
    assert c_header.main(["--check"]) == 1
    assert capsys.readouterr().err == f"{path} is out of date: run python -m runner.build.c_header --write\n"
    assert c_header.main(["--write"]) == 0
    assert c_header.main(["--check"]) == 0


def test_other_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """
    As every program does: on stderr, with 2.
    """
    assert c_header.main([]) == 2
    assert capsys.readouterr().err == "usage: python -m runner.build.c_header --check|--write\n"

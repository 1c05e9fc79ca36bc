"""
`new_agent` and the SDK's place.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.build import build_agent, new_agent, sdk, sdk_root
from runner.errors import InternalError, UsageError
from runner.package.manifest import load_manifest


def test_a_new_agent_is_named_for_its_folder(tmp_path: Path) -> None:
    """
    In the letters that a name may have.
    """
    folder = tmp_path / "My Agent 2"
    files = new_agent(folder, "wat")
    assert [path.name for path in files] == ["README.md", "agent.toml", "agent.wat"]
    assert load_manifest(folder).name == "my-agent-2"
    assert (folder / "README.md").read_text().startswith("# my-agent-2\n")


def test_a_new_wat_agent_can_be_built(tmp_path: Path) -> None:
    """
    As it is, without a compiler.
    """
    new_agent(tmp_path, "wat")
    assert build_agent(tmp_path).is_file()


@pytest.mark.c
def test_a_new_c_agent_compiles_without_a_warning(tmp_path: Path) -> None:
    """
    As it is.
    """
    new_agent(tmp_path, "c")
    lines: list[str] = []
    assert build_agent(tmp_path, progress=lines.append).is_file()
    assert lines == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    """
    Whatever it holds.
    """
    (tmp_path / "precious").write_text("mine")
    with pytest.raises(UsageError) as caught:
        new_agent(tmp_path, "c")
    assert str(caught.value) == f"{tmp_path}: not empty"
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """
    A folder can't be made there.
    """
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(UsageError, match="can't be written: file exists"):
        new_agent(path, "c")


def test_an_installation_has_the_sdk_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    And a checkout beside it; an installation without one says so.
    """
    module = tmp_path / "runner" / "build" / "sdk.py"
    monkeypatch.setattr(sdk, "__file__", str(module))
    with pytest.raises(InternalError, match="the guest SDK is missing"):
        sdk_root()
    for root in (tmp_path / "guest_sdk", tmp_path / "runner" / "_sdk"):
        header = root / "c" / "include" / "runner_abi.h"
        header.parent.mkdir(parents=True)
        header.touch()
        assert sdk_root() == root


def test_what_an_installer_leaves_beside_a_template_is_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Such as a folder of compiled modules.
    """
    template = tmp_path / "sdk" / "python" / "template"
    (template / "__pycache__").mkdir(parents=True)
    (template / "main.py").write_text("# @NAME@\n")
    monkeypatch.setattr("runner.build.scaffold.sdk_root", lambda: tmp_path / "sdk")
    assert [path.name for path in new_agent(tmp_path / "new", "python")] == ["main.py"]

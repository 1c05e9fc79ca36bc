"""
Tools for files: what they read and write, and that nothing outside a root is reached, however it is tried.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner.errors import UsageError
from runner.tools.base import ToolFailure
from runner.tools.reading import read_tools
from runner.tools.registry import ToolRegistry
from runner.tools.rooted import Roots
from runner.tools.writing import write_tools

Use = Callable[..., Any]

_HERE, _EXCHANGE = -100, 2


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A granted directory, beside one that is not."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("the secret")
    (tmp_path / "root" / "note.txt").write_text("one\ntwo\nthree\n")
    return tmp_path / "root"


def run(name: str, arguments: dict[str, Any], read: list[Path], written: list[Path]) -> Any:
    """One call in a run of its own."""
    reading, writing = Roots(read), Roots(written)
    tools = [*(read_tools(reading) if reading else ()), *(write_tools(writing, reading) if writing else ())]

    async def main() -> Any:
        async with ToolRegistry(tools, (reading.source, writing.source)) as registry:
            return (await registry.call(name, arguments)).value

    return anyio.run(main)


@pytest.fixture
def use(root: Path) -> Use:
    """Calls a tool where the root may be read and written."""
    return lambda name, **arguments: run(name, arguments, [root], [root])


def failure(work: Callable[[], Any]) -> tuple[str, str]:
    """How it failed."""
    with pytest.raises(ToolFailure) as caught:
        work()
    return caught.value.kind, caught.value.message


# -- reading ----------------------------------------------------------------------------------


def test_a_file_is_read_by_relative_and_by_absolute_path(use: Use, root: Path):
    """With its revision."""
    by_name = use("read_file", path="note.txt")
    assert by_name == use("read_file", path=str(root / "note.txt"))
    assert by_name == {
        "path": str(root / "note.txt"),
        "content": "one\ntwo\nthree\n",
        "size_bytes": 14,
        "next_offset": None,
        "revision": by_name["revision"],
        "truncated": False,
    }
    assert len(by_name["revision"]) == 16


def test_a_long_file_is_cut_with_a_mark_and_can_be_read_on(use: Use, root: Path):
    """At fifty thousand bytes, unless more is asked for."""
    (root / "long.txt").write_text("x" * 60_000)
    first = use("read_file", path="long.txt")
    assert first["content"] == "x" * 50_000 + "\n[truncated]"
    assert (first["truncated"], first["next_offset"], first["size_bytes"]) == (True, 50_000, 60_000)
    rest = use("read_file", path="long.txt", offset=first["next_offset"])
    assert (rest["content"], rest["truncated"]) == ("x" * 10_000, False)


def test_a_cut_inside_a_character_loses_no_text(use: Use, root: Path):
    """The character comes with what is read on."""
    (root / "euro.txt").write_text("€€€")
    first = use("read_file", path="euro.txt", max_bytes=4)
    assert (first["content"], first["next_offset"]) == ("€\n[truncated]", 3)
    assert use("read_file", path="euro.txt", offset=3)["content"] == "€€"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", b"\xff\xfe"])
def test_what_is_no_text_is_refused(use: Use, root: Path, data: bytes):
    """By its bytes, not by its name."""
    (root / "x.txt").write_bytes(data)
    kind, message = failure(lambda: use("read_file", path="x.txt"))
    assert (kind, message) == ("invalid", f"{root}/x.txt is not a text in UTF-8")


def test_a_directory_and_a_missing_file_are_told_apart(use: Use, root: Path):
    """Each says what it is."""
    (root / "sub").mkdir()
    assert failure(lambda: use("read_file", path="sub")) == ("invalid", f"{root}/sub is a directory")
    assert failure(lambda: use("read_file", path="x")) == (
        "not_found",
        f"{root}/x: there is no such file or directory",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "read_file: path: Field required"),
        ({"path": 1}, "read_file: path: Input should be a valid string"),
        ({"path": b"note.txt"}, "read_file: path: Input should be a valid string"),
        ({"path": "note.txt", "offset": -1}, "read_file: offset: Input should be greater than or equal to 0"),
        ({"path": "note.txt", "offset": True}, "read_file: offset: Input should be a valid integer"),
        (
            {"path": "note.txt", "max_bytes": 500_001},
            "read_file: max_bytes: Input should be less than or equal to 500000",
        ),
        ({"path": "note.txt", "mode": "w"}, "read_file: mode: Extra inputs are not permitted"),
    ],
)
def test_arguments_are_held_against_the_schema(use: Use, arguments: Any, message: str):
    """Nothing is converted."""
    assert failure(lambda: use("read_file", **arguments)) == ("invalid", message)


def test_a_listing_has_names_types_and_sizes_and_nothing_hidden(use: Use, root: Path):
    """A link is listed as one."""
    (root / "sub").mkdir()
    (root / ".hidden").write_text("x")
    (root / "link").symlink_to("note.txt")
    listed = use("list_directory", path=".")
    assert [(entry["name"], entry["type"]) for entry in listed["entries"]] == [
        ("link", "link"),
        ("note.txt", "file"),
        ("sub", "directory"),
    ]
    assert listed["entries"][1]["bytes"] == 14
    assert (listed["path"], listed["truncated"]) == (str(root), False)


def test_a_listing_without_a_path_is_of_the_roots(use: Use, root: Path):
    """So that a model knows where it is."""
    assert use("list_directory")["entries"] == [{"name": str(root), "type": "directory", "bytes": 0}]


def test_a_long_listing_is_cut_and_says_so(use: Use, root: Path):
    """At a thousand entries, also when it goes deeper."""
    (root / "sub").mkdir()
    for number in range(1100):
        (root / "sub" / f"{number:04}").touch()
    listed = use("list_directory", path="sub")
    assert (len(listed["entries"]), listed["truncated"]) == (1000, True)
    deeper = use("list_directory", path=".", recursive=True)
    assert deeper["entries"][2]["name"] == "sub/0000"


def test_a_search_finds_lines_whatever_their_case(use: Use, root: Path):
    """With their numbers."""
    (root / "sub").mkdir()
    (root / "sub" / "more.txt").write_text("TWO of a kind\n")
    assert use("grep_files", pattern="^t[wx]o")["matches"] == [
        {"path": "note.txt", "line": 2, "text": "two"},
        {"path": "sub/more.txt", "line": 1, "text": "TWO of a kind"},
    ]
    assert use("grep_files", pattern="two", path="note.txt")["matches"][0]["line"] == 2


def test_a_pattern_that_is_none_is_looked_for_as_text(use: Use, root: Path):
    """Models write such patterns."""
    (root / "code.txt").write_text("f(x)\nG(\n")
    assert [match["line"] for match in use("grep_files", pattern="g(")["matches"]] == [2]


def test_a_search_is_bounded_and_says_what_it_left_out(use: Use, root: Path):
    """Lines, and files that are too large."""
    (root / "many.txt").write_text("hit\n" * 600)
    (root / "large.txt").write_bytes(b"hit\n" * 750_000)
    found = use("grep_files", pattern="hit", max_results=500)
    assert (len(found["matches"]), found["truncated"]) == (500, True)
    assert found["skipped"] == ["large.txt: more than 2000000 bytes"]
    assert len(use("grep_files", pattern="hit")["matches"]) == 50


def test_a_pattern_that_others_take_for_ever_over_is_done_at_once(use: Use, root: Path):
    """Matching takes time in proportion to the text."""
    (root / "evil.txt").write_text("a" * 5_000 + "!")
    assert use("grep_files", pattern="^(a+)+$", path="evil.txt")["matches"] == []


# -- writing ----------------------------------------------------------------------------------


def test_a_file_is_written_and_the_way_to_it_is_made(use: Use, root: Path):
    """And replaced, and added to."""
    assert use("write_file", path="a/b/c.txt", content="x")["size_bytes"] == 1
    use("write_file", path="a/b/c.txt", content="y")
    use("write_file", path="a/b/c.txt", content="z", append=True)
    assert (root / "a" / "b" / "c.txt").read_text() == "yz"
    assert os.listdir(root / "a" / "b") == ["c.txt"]


def test_a_replaced_file_keeps_its_mode_and_loses_its_privileges(use: Use, root: Path):
    """Setuid is none of a tool's."""
    os.chmod(root / "note.txt", 0o4750)
    use("write_file", path="note.txt", content="x")
    assert stat.S_IMODE((root / "note.txt").stat().st_mode) == 0o750


def test_a_root_that_may_be_read_may_not_be_written(root: Path):
    """The grants are apart: there is no tool to write with."""
    assert failure(lambda: run("write_file", {"path": "x", "content": ""}, [root], [])) == (
        "not_found",
        "no tool named 'write_file' is granted",
    )


def test_a_root_that_may_be_written_may_not_be_read(root: Path):
    """Nor may its files be edited, which would tell what is in them."""
    run("write_file", {"path": "x", "content": "y"}, [], [root])
    for name in ("read_file", "edit_file", "list_directory", "grep_files"):
        assert failure(lambda name=name: run(name, {}, [], [root]))[0] == "not_found"  # type: ignore[misc]
    other = root.parent / "other"
    other.mkdir()
    edit = {"path": str(root / "note.txt"), "old_text": "one", "new_text": "1"}
    assert failure(lambda: run("edit_file", edit, [other], [root])) == (
        "denied",
        f"{root}/note.txt may be written, but not read",
    )
    write = {"path": str(other / "x"), "content": ""}
    assert failure(lambda: run("write_file", write, [other], [root])) == (
        "denied",
        f"{other}/x is in no directory that is granted",
    )


def test_an_edit_replaces_the_first_or_all(use: Use, root: Path):
    """And says how many."""
    (root / "x.txt").write_text("aa b aa")
    assert use("edit_file", path="x.txt", old_text="aa", new_text="c")["replaced"] == 1
    assert (root / "x.txt").read_text() == "c b aa"
    use("write_file", path="x.txt", content="aa b aa")
    assert use("edit_file", path="x.txt", old_text="aa", new_text="c", replace_all=True)["replaced"] == 2
    assert (root / "x.txt").read_text() == "c b c"


def test_an_edit_of_text_that_is_not_there_changes_nothing(use: Use, root: Path):
    """The file is as it was."""
    before = (root / "note.txt").stat()
    assert failure(lambda: use("edit_file", path="note.txt", old_text="four", new_text="")) == (
        "failed",
        f"{root}/note.txt does not have that text; nothing was changed",
    )
    assert (root / "note.txt").stat() == before


def test_what_others_wrote_meanwhile_survives(use: Use, root: Path):
    """A revision that was read before it is refused."""
    seen = use("read_file", path="note.txt")["revision"]
    with (root / "note.txt").open("a") as file:
        file.write("four\n")
    changed = ("failed", f"{root}/note.txt has changed since it was read; nothing was written")
    write = {"path": "note.txt", "content": "", "revision": seen}
    edit = {"path": "note.txt", "old_text": "one", "new_text": "1", "revision": seen}
    assert failure(lambda: use("write_file", **write)) == changed
    assert failure(lambda: use("edit_file", **edit)) == changed
    assert (root / "note.txt").read_text().endswith("four\n")
    fresh = use("read_file", path="note.txt")["revision"]
    assert use("edit_file", **{**edit, "revision": fresh})["revision"] != fresh


def test_a_file_that_must_be_absent_is_not_written_over(use: Use, root: Path):
    """And is made when it is."""
    use("write_file", path="new.txt", content="x", revision="absent")
    assert failure(lambda: use("write_file", path="new.txt", content="y", revision="absent")) == (
        "failed",
        f"{root}/new.txt is there already; nothing was written",
    )
    assert sorted(os.listdir(root)) == ["new.txt", "note.txt"]


def test_what_a_write_may_repeat_depends_on_its_arguments(root: Path):
    """The same text twice is there once; added twice, it is there twice."""
    roots = Roots([root])
    registry = ToolRegistry(write_tools(roots, roots))
    assert registry.effect_of("write_file", {"path": "x", "content": ""}) == "idempotent"
    assert registry.effect_of("write_file", {"append": True}) == "effectful"
    assert registry.effect_of("write_file", {"revision": "absent"}) == "effectful"
    assert registry.effect_of("edit_file", {}) == "effectful"
    assert registry.effect_of("gone", None) == "effectful"


# -- escapes ----------------------------------------------------------------------------------

UP = ["..", "../outside/secret.txt", "a/../../outside/secret.txt", "./../outside/secret.txt", "sub/.."]
ELSEWHERE = ["/etc/passwd", "/", "//etc/passwd", "/./etc/passwd", "/proc/self/environ", "/dev/zero"]
NO_PATH = ["note.txt\0.png", "\0", "x" * 5000, "/".join("a" * 200)]
NOT_THERE = [
    "..\\outside\\secret.txt", "~/x", "$HOME/x", "%2e%2e/outside/secret.txt", "\uff0e\uff0e/x",
    "file:///etc/passwd", "NOTE.TXT", "note.txt.", "note.txt ", "\u2026/x", "\u2025/x",
]  # fmt: skip
TOOLS = [
    ("read_file", {}),
    ("list_directory", {}),
    ("grep_files", {"pattern": "secret"}),
    ("write_file", {"content": "x"}),
    ("edit_file", {"old_text": "secret", "new_text": "x"}),
]


@pytest.mark.parametrize(("name", "more"), TOOLS)
@pytest.mark.parametrize("path", UP + ELSEWHERE)
def test_a_path_out_of_the_root_is_denied(use: Use, name: str, more: Any, path: str):
    """Whatever the tool, and without a look at what is there."""
    kind, _ = failure(lambda: use(name, path=path, **more))
    assert kind == "denied"


@pytest.mark.parametrize(("name", "more"), TOOLS)
@pytest.mark.parametrize("path", NO_PATH)
def test_what_is_no_path_is_invalid(use: Use, name: str, more: Any, path: str):
    """Before any system call."""
    assert failure(lambda: use(name, path=path, **more))[0] == "invalid"


@pytest.mark.parametrize("path", NOT_THERE)
def test_a_path_means_what_it_says(use: Use, path: str):
    """Nothing is expanded, decoded or folded."""
    assert failure(lambda: use("read_file", path=path))[0] == "not_found"


def test_the_two_forms_of_one_letter_are_two_names(use: Use, root: Path):
    """As they are for the system."""
    (root / unicodedata.normalize("NFC", "é.txt")).write_text("x")
    assert use("read_file", path="\u00e9.txt")["content"] == "x"
    assert failure(lambda: use("read_file", path="e\u0301.txt"))[0] == "not_found"


@pytest.mark.parametrize(("name", "more"), TOOLS)
@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../outside", "link"),
        ("../outside", "link/secret.txt"),
        ("../outside/secret.txt", "link"),
        ("/etc/passwd", "link"),
        ("nowhere", "link"),
        ("link", "link"),
        (".", "link/note.txt"),
        ("/proc/self/fd/0", "link"),
    ],
)
def test_a_link_is_not_followed(use: Use, root: Path, name: str, more: Any, target: str, path: str):
    """Not the last component, nor one on the way, nor one that stays inside."""
    (root / "link").symlink_to(target)
    kind, message = failure(lambda: use(name, path=path, **more))
    assert (kind, message) == ("denied", f"{root}/link is a link; links are not followed")
    assert (root.parent / "outside" / "secret.txt").read_text() == "the secret"
    assert sorted(os.listdir(root.parent / "outside")) == ["secret.txt"]


def test_a_search_does_not_go_through_links(use: Use, root: Path):
    """Nor does a listing of all that is below."""
    (root / "link").symlink_to("../outside")
    (root / "file").symlink_to("../outside/secret.txt")
    assert use("grep_files", pattern="secret")["matches"] == []
    listed = use("list_directory", path=".", recursive=True)["entries"]
    assert [entry["name"] for entry in listed] == ["file", "link", "note.txt"]


@pytest.mark.parametrize(("name", "more"), [tool for tool in TOOLS if tool[0] != "list_directory"])
def test_a_pipe_a_socket_and_a_device_are_no_files(use: Use, root: Path, name: str, more: Any):
    """And nothing waits for their other end."""
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "sock"))
        for path in ("pipe", "sock"):
            if name == "grep_files":
                assert use(name, path=path, **more)["matches"] == []
            else:
                assert failure(lambda path=path: use(name, path=path, **more))[0] == "invalid"  # type: ignore[misc]


def test_writing_does_not_reach_through_a_hard_link(use: Use, root: Path):
    """The file elsewhere keeps its content: a new one takes the name."""
    os.link(root.parent / "outside" / "secret.txt", root / "twin")
    use("write_file", path="twin", content="x")
    use("write_file", path="twin", content="y", append=True)
    use("edit_file", path="twin", old_text="x", new_text="z")
    assert (root / "twin").read_text() == "zy"
    assert (root.parent / "outside" / "secret.txt").read_text() == "the secret"


@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_a_directory_that_is_swapped_for_a_link_all_the_time_leads_nowhere(root: Path, name: str):
    """Whoever wins the race, only what is inside is read or written."""
    exchange = getattr(ctypes.CDLL(None), "renameat2", None)
    if exchange is None:
        pytest.skip("needs an atomic exchange of names")
    inside, link = root / "dir", root / "link"
    inside.mkdir()
    (inside / "secret.txt").write_text("inside")
    link.symlink_to("../outside")
    swapping = threading.Event()

    def swap() -> None:
        while not swapping.is_set():
            exchange(_HERE, bytes(inside), _HERE, bytes(link), _EXCHANGE)

    reading = Roots([root])
    tools = [*read_tools(reading), *write_tools(reading, reading)]
    seen: set[str] = set()

    async def main() -> None:
        async with ToolRegistry(tools, (reading.source,)) as registry:
            for _ in range(300):
                try:
                    arguments: dict[str, Any] = {"path": "dir/secret.txt"}
                    if name == "write_file":
                        arguments["content"] = "inside"
                    answer = (await registry.call(name, arguments)).value
                    seen.add(answer.get("content", "inside"))
                except ToolFailure as failed:
                    seen.add(failed.kind)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        anyio.run(main)
    finally:
        swapping.set()
        thread.join()
    assert seen <= {"inside", "denied", "not_found", "failed", "invalid"}
    assert (root.parent / "outside" / "secret.txt").read_text() == "the secret"


def test_a_root_is_the_directory_that_it_was(root: Path):
    """Whatever takes its name later."""
    roots = Roots([root])

    async def main() -> Any:
        async with ToolRegistry(read_tools(roots), (roots.source,)) as registry:
            os.rename(root, root.parent / "moved")
            os.symlink("outside", root)
            return (await registry.call("list_directory", {"path": "."})).value["entries"]

    assert [entry["name"] for entry in anyio.run(main)] == ["note.txt"]


def test_a_root_may_be_named_through_a_link(root: Path):
    """The operator's links are followed, once; both names of it may be used."""
    (root.parent / "alias").symlink_to("root")
    read = {"path": str(root.parent / "alias" / "note.txt")}
    assert run("read_file", read, [root.parent / "alias"], [])["path"] == str(root / "note.txt")


def test_a_root_with_a_longer_name_is_not_inside_one_with_a_shorter(root: Path):
    """Components are compared, not characters."""
    (root.parent / "rootless").mkdir()
    (root.parent / "rootless" / "x").write_text("x")
    read = {"path": str(root.parent / "rootless" / "x")}
    assert failure(lambda: run("read_file", read, [root], []))[0] == "denied"


def test_what_is_no_directory_is_no_root(root: Path):
    """Said before anything runs."""
    with pytest.raises(UsageError, match=r"note\.txt: not a directory$"):
        Roots([root / "note.txt"])


def test_no_descriptor_is_left_open(use: Use, root: Path):
    """Neither by what works nor by what fails."""
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    (root / "link").symlink_to("../outside")
    for _ in range(3):
        use("list_directory", path=".", recursive=True)
        use("write_file", path="a/b/c", content="x")
        failure(lambda: use("read_file", path="link/secret.txt"))
        failure(lambda: use("read_file", path="a/b/gone"))
    after = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    assert after <= before + 1

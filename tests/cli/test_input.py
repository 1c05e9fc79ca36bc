"""
Where an input comes from, and what its text means.
"""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.cli import input as input_module
from runner.cli.console import Console, Display
from runner.cli.input import Form, Source, read_input
from runner.errors import LimitExceeded, UsageError


class Quiet(Console):
    """
    A console that keeps what it is told.
    """

    def __init__(self) -> None:
        super().__init__(Display(), stdout=io.BytesIO(), stderr=io.StringIO())

    @property
    def said(self) -> str:
        """
        All of stderr so far.
        """
        assert isinstance(self._stderr, io.StringIO)
        return self._stderr.getvalue()


def read(word: str | None = None, form: Form = "auto", **rest: Any) -> Any:
    """
    The value of an input given as a word, unless `rest` says otherwise.
    """
    stdin = rest.pop("stdin", io.TextIOWrapper(io.BytesIO(b"")))
    source = Source(word, rest.pop("option", None), rest.pop("file", None), form)
    return read_input(source, rest.pop("console", None) or Quiet(), stdin)


@pytest.mark.parametrize(
    ("text", "form", "value"),
    [
        ("What is an agent?", "auto", "What is an agent?"),
        ("5", "auto", "5"),
        ("true", "auto", "true"),
        ('"quoted"', "auto", '"quoted"'),
        ("", "auto", ""),
        ("@/etc/passwd", "auto", "@/etc/passwd"),
        ('{"save": {"n": 1}}', "auto", {"save": {"n": 1}}),
        (" [1, 2.0]", "auto", [1, 2.0]),
        ('{"$bytes": "AP8="}', "auto", b"\x00\xff"),
        ("[1]", "text", "[1]"),
        ("5", "json", 5),
        ("null", "json", None),
        ('"quoted"', "json", "quoted"),
    ],
)
def test_an_object_or_array_is_json_and_anything_else_is_text(text: str, form: Form, value: object) -> None:
    """
    So a word stays the word that was typed, unless it was said to be JSON.
    """
    assert read(text, form) == value
    assert type(read(text, form)) is type(value)


def test_broken_json_is_delivered_as_text_and_said_so() -> None:
    """
    A smiley may begin with a bracket; a newcomer's typo is not swallowed.
    """
    console = Quiet()
    assert read("{save: 1}", console=console) == "{save: 1}"
    assert console.said == (
        "runner: the input looks like JSON but is not (Expecting property name enclosed in double quotes "
        "at character 1); delivered as text\n"
    )


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("hello", "json", "input is not JSON: Expecting value at character 0"),
        ('{"a": 1, "a": 2}', "auto", "input is not a payload value: key 'a' comes twice"),
        ("[" * 70 + "]" * 70, "auto", "input is not a payload value: deeper than 64 at byte 64"),
        ("\udcff", "auto", "input is not UTF-8 text"),
        ('["\\ud800"]', "auto", "input is not UTF-8 text"),
    ],
)
def test_text_that_says_no_value_is_a_usage_error(text: str, form: Form, message: str) -> None:
    """
    Before anything is started.
    """
    with pytest.raises(UsageError) as refusal:
        read(text, form)
    assert refusal.value.message == message


def test_only_one_input_is_taken(tmp_path: Path) -> None:
    """
    Two that disagree are not put in an order.
    """
    with pytest.raises(UsageError, match=r"^more than one input$"):
        read("a", option="b")
    with pytest.raises(UsageError, match=r"^more than one input$"):
        read(option="b", file=tmp_path / "c")


def test_a_dash_reads_standard_input_to_its_end() -> None:
    """
    Whatever it is, an empty one too.
    """
    assert read("-", stdin=io.TextIOWrapper(io.BytesIO(b"hi\n"))) == "hi"
    assert read(option="-", stdin=io.TextIOWrapper(io.BytesIO(b'{"a": 1}\r\n'))) == {"a": 1}
    assert read("-", stdin=io.TextIOWrapper(io.BytesIO(b""))) == ""


def test_one_line_end_is_the_shells_unless_text_is_asked_for() -> None:
    """
    `echo` ends its line; `--input-as text` keeps every character.
    """
    assert read("-", stdin=io.TextIOWrapper(io.BytesIO(b"hi\n\n"))) == "hi\n"
    assert read("-", stdin=io.TextIOWrapper(io.BytesIO(b"hi\r\n"))) == "hi"
    assert read("-", form="text", stdin=io.TextIOWrapper(io.BytesIO(b"hi\n"))) == "hi\n"


def test_a_file_is_read_only_where_it_is_called_a_file(tmp_path: Path) -> None:
    """
    `--input-file` reads it.
    """
    file = tmp_path / "input.json"
    file.write_text("[1]\n", encoding="utf-8")
    assert read(file=file) == [1]
    assert read(file=file, form="text") == "[1]\n"
    assert read(str(file)) == str(file)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """
    With the way in which bytes travel.
    """
    file = tmp_path / "input.bin"
    file.write_bytes(b"ok\xff")
    with pytest.raises(UsageError, match=r"^input is not UTF-8 text: byte 2$") as refusal:
        read(file=file)
    assert refusal.value.hint == 'bytes travel as JSON: {"$bytes": "<base64>"}'


def test_an_endless_input_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    At `MAX_INPUT_BYTES`.
    """
    monkeypatch.setattr(input_module, "MAX_INPUT_BYTES", 4)
    assert read("-", stdin=io.TextIOWrapper(io.BytesIO(b"1234"))) == "1234"
    with pytest.raises(LimitExceeded, match=r"^limit input_bytes exceeded: 5 of 4$"):
        read("-", stdin=io.TextIOWrapper(io.BytesIO(b"12345")))


def test_no_standard_input_at_all_is_no_input() -> None:
    """
    Closed, or not a stream of the system's.
    """
    assert read(stdin=io.TextIOWrapper(io.BytesIO(b"unnamed"))) is None
    closed = io.TextIOWrapper(io.BytesIO(b""))
    closed.close()
    assert read(stdin=closed) is None
    with Path(os.devnull).open(encoding="utf-8") as nothing:
        assert read(stdin=nothing) is None


def test_an_unnamed_file_on_standard_input_is_read(tmp_path: Path) -> None:
    """
    `runner run agent < file`; an empty one is no input.
    """
    file = tmp_path / "input"
    file.write_text("from a file\n", encoding="utf-8")
    with file.open(encoding="utf-8") as stream:
        assert read(stdin=stream) == "from a file"
    file.write_bytes(b"")
    with file.open(encoding="utf-8") as stream:
        assert read(stdin=stream) is None


def test_an_unnamed_pipe_is_read_when_something_comes() -> None:
    """
    `echo hi | runner run agent`; one that ends without a byte is no input.
    """
    for sent, value in ((b"hi\n", "hi"), (b"", None)):
        out, into = os.pipe()
        os.write(into, sent)
        os.close(into)
        with open(out, encoding="utf-8") as stream:
            assert read(stdin=stream) == value


def test_an_unnamed_socket_is_read_like_a_pipe() -> None:
    """
    Some programs give their children sockets for pipes.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("r", encoding="utf-8") as stream:
        theirs.sendall(b"hi")
        theirs.shutdown(socket.SHUT_WR)
        assert read(stdin=stream) == "hi"


def test_a_silent_pipe_does_not_hang_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After a while it counts as no input, which is said even to those who want quiet.
    """
    monkeypatch.setattr(input_module, "SILENCE_S", 0.0)
    out, into = os.pipe()
    console = Quiet()
    console.display = Display(verbosity=-1)
    try:
        with open(out, encoding="utf-8") as stream:
            assert read(stdin=stream, console=console) is None
    finally:
        os.close(into)
    assert console.said == (
        "runner warning: standard input is a pipe that said nothing for 0 seconds; going on without input\n"
        "  hint: `-` waits for it, `< /dev/null` skips the wait\n"
    )


def test_reading_input_needs_no_engine() -> None:
    """
    What is wrong with an input is said at once.
    """
    program = "import sys, runner.cli.input; print('wasmtime' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"

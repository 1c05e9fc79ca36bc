"""
Where the input of a delivery comes from, and how its text becomes a value.

An agent's input is what the operator typed or piped. Words on the command line are never file names:
a program that passes someone else's words on must not be made to read a file by them. So there are
three doors: the word itself, `-` for standard input, and `--input-file`.

Standard input is also read when it is not named, if it is a file, or a pipe on which something comes.
A pipe that nobody writes to is what many programs give their children; waiting for it would hang, so
after `SILENCE_S` seconds the command goes on without input and says so. `-` waits for as long as it
takes.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NamedTuple

from runner.cli import jsonform
from runner.errors import LimitExceeded, UsageError
from runner.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from runner.cli.console import Console
    from runner.codec import Value

Form = Literal["auto", "json", "text"]

MAX_INPUT_BYTES: Final = 64 * MIB
"""
Text read from a file or from standard input; what an agent may receive is bounded by its own limits.
"""

SILENCE_S: Final = 3.0
"""
How long a pipe that was not named may say nothing before it counts as no input.
"""

_STDIN: Final = "-"
_BYTES_HINT: Final = 'bytes travel as JSON: {"$bytes": "<base64>"}'
_QUOTE_HINT: Final = "quote it for the shell, or say --input-as text"


class Source(NamedTuple):
    """
    What the command line says about the input; at most one of the first three.

    Attributes:
        word: The argument after the agent.
        option: The value of `--input`.
        file: The value of `--input-file`.
        form: The value of `--input-as`.
    """

    word: str | None
    option: str | None
    file: Path | None
    form: Form


def read_input(source: Source, console: Console, stdin: Any = None) -> Value:
    """
    The value to deliver; `None` when there is no input.

    Raises:
        UsageError: If there are two inputs, or the text does not say one payload value.
        LimitExceeded: If the text is longer than `MAX_INPUT_BYTES`.
    """
    given = [part for part in source[:3] if part is not None]
    if len(given) > 1:
        msg = "more than one input"
        raise UsageError(msg, hint="give INPUT, --input or --input-file, only one of them")
    stream = sys.stdin if stdin is None else stdin
    words = source.word if source.option is None else source.option
    if source.file is not None:
        with source.file.open("rb") as file:
            return _parse_bytes(_read(file), source.form, console)
    if words == _STDIN:
        return _parse_bytes(b"" if stream is None else _read(stream.buffer), source.form, console)
    if words is not None:
        return parse(words, source.form, console)
    piped = _read_unnamed(stream, console)
    return _parse_bytes(piped, source.form, console) if piped else None


def parse(text: str, form: Form, console: Console) -> Value:
    """
    The value that the operator's text means: in form `auto` a JSON object or array, else text.

    Raises:
        UsageError: If the text does not say one payload value.
    """
    if form == "text":
        return _payload(text)
    looks_structured = text.lstrip()[:1] in ("{", "[")
    if form == "auto" and not looks_structured:
        return _payload(text)
    try:
        return _payload(jsonform.loads(text))
    except jsonform.NotJsonError as error:
        if form == "auto":
            console.note(f"the input looks like JSON but is not ({error}); delivered as text")
            return _payload(text)
        msg = f"input is not JSON: {error}"
        raise UsageError(msg, hint=_QUOTE_HINT) from error
    except jsonform.FormError as error:
        msg = f"input is not a payload value: {error}"
        raise UsageError(msg, hint="say --input-as text to deliver it as it stands") from error


def _parse_bytes(data: bytes, form: Form, console: Console) -> Value:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        msg = f"input is not UTF-8 text: byte {error.start}"
        raise UsageError(msg, hint=_BYTES_HINT) from error
    if form == "auto":
        # A shell's `echo` ends its line; `--input-as text` keeps every character.
        text = text.removesuffix("\r\n") if text.endswith("\r\n") else text.removesuffix("\n")
    return parse(text, form, console)


def _payload(value: Value) -> Value:
    """
    `value`, once it is known that it can be encoded.
    """
    from runner.codec import encode  # noqa: PLC0415 - cbor2 costs more than parsing the command line

    try:
        encode(value)
    except TypeError as error:
        if isinstance(error.__cause__, UnicodeError):
            msg = "input is not UTF-8 text"
            raise UsageError(msg, hint=_BYTES_HINT) from error
        msg = f"input is {error}"
        raise UsageError(msg) from error
    return value


def _read(stream: BinaryIO) -> bytes:
    data = stream.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise LimitExceeded("input_bytes", len(data), MAX_INPUT_BYTES)
    return data


def _read_unnamed(stream: Any, console: Console) -> bytes:
    """
    What waits on a standard input that the command line does not name, or nothing.
    """
    try:
        number = stream.fileno()
        kind = os.fstat(number).st_mode
    except (AttributeError, OSError, ValueError):
        return b""
    if stat.S_ISREG(kind):
        return _read(stream.buffer)
    # `select` knows pipes and sockets on POSIX alone; elsewhere input through a pipe must be named.
    if os.name != "posix" or not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return b""
    if select.select([number], [], [], SILENCE_S)[0]:
        return _read(stream.buffer)
    console.warn(
        f"standard input is a pipe that said nothing for {SILENCE_S:.0f} seconds; going on without input",
        hint="`-` waits for it, `< /dev/null` skips the wait",
    )
    return b""

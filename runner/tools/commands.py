"""
`run_command`: a program that the operator granted by name, outside of every sandbox.

A granted program can do whatever the operator's account can; the grant is the whole of the confinement.
What is held here: no shell reads the words, no variable of the host's reaches the program, it begins in a
granted directory, and it ends with all of its group.

Input: words and standard input are guest-controlled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio
from pydantic import BaseModel, ConfigDict, Field

from runner.errors import UsageError
from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.tools.reading import TRUNCATED
from runner.tools.rooted import Roots, directory, show
from runner.tools.schema import check_of, schema_of

if TYPE_CHECKING:
    from anyio.abc import ByteReceiveStream, Process

    from runner.tools.registry import ToolRegistry

OUTPUT_BYTES: Final = 100_000
TIMEOUT_MS: Final = 30_000
MAX_TIMEOUT_MS: Final = 600_000

_GRACE_MS: Final = 10_000
_DRAIN_S: Final = 0.2
_MAX_WORDS: Final = 1_000
_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class RunCommand(BaseModel):
    """
    Arguments of `run_command`.
    """

    model_config = ConfigDict(extra="forbid")

    command: Annotated[
        list[str],
        Field(min_length=1, max_length=_MAX_WORDS, description="Program and its words; no shell reads them."),
    ]
    directory: Annotated[str | None, Field(description="Where to begin; a granted directory.")] = None
    stdin: Annotated[str, Field(description="What the program reads.")] = ""
    timeout_ms: Annotated[
        int, Field(ge=1, le=MAX_TIMEOUT_MS, description="After this time it is killed.")
    ] = TIMEOUT_MS


class Commands:
    """
    Programs that may be run.

    Args:
        programs: As the operator named them: names, looked up once and now, or absolute paths.
        roots: Directories to begin in, the first of them by default; if there are none, an empty one.

    Raises:
        UsageError: If there is no such program.
    """

    def __init__(self, programs: Iterable[str], *roots: Roots) -> None:
        self._programs = {name: _found(name) for name in programs}
        self._roots = [each for each in roots if each]
        self._home = ""

    @asynccontextmanager
    async def source(self, registry: ToolRegistry) -> AsyncIterator[None]:
        """
        Have an empty home directory while a registry is open.
        """
        del registry
        with tempfile.TemporaryDirectory(prefix="runner-", ignore_cleanup_errors=True) as self._home:
            yield

    def tool(self) -> Tool:
        """
        The tool.
        """
        names = ", ".join(sorted(self._programs))
        return Tool(
            name="run_command",
            description=f"Runs a program and answers with its output. Programs: {names}.",
            input_schema=schema_of(RunCommand),
            check=check_of(RunCommand),
            work=self.run,
            # Its own bound ends it and is told; this one is for what does not end even then.
            timeout_ms=MAX_TIMEOUT_MS + _GRACE_MS,
        )

    async def run(self, asked: RunCommand, context: ToolContext) -> dict[str, Any]:
        """
        Run a program to its end, or to the end of its time.
        """
        del context
        name = asked.command[0]
        program = self._programs.get(name)
        if program is None:
            raise ToolFailure("denied", f"program {show(name)} is not granted")
        if any("\0" in word for word in asked.command):
            raise ToolFailure("invalid", "a word of a command has no NUL")
        with self._beginning(asked.directory) as place:
            process = await _start([program, *asked.command[1:]], place, self._environment())
        return await _follow(process, asked)

    def _environment(self) -> dict[str, str]:
        return {"PATH": _PATH, "HOME": self._home, "TMPDIR": self._home, "LANG": "C.UTF-8", "TERM": "dumb"}

    @contextmanager
    def _beginning(self, path: str | None) -> Iterator[str]:
        if not self._roots:
            if path is not None:
                raise ToolFailure("denied", f"{show(path)} is in no directory that is granted")
            yield self._home
            return
        with directory(self._place(path or ".")) as descriptor:
            # On Linux the directory that was opened is where it begins, whatever its name leads to by now.
            yield f"/proc/self/fd/{descriptor}" if sys.platform == "linux" else _path_of(descriptor)

    def _place(self, path: str) -> Any:
        for roots in self._roots[:-1]:
            if not path.startswith("/") or roots.contain(path):
                return roots.find(path)
        return self._roots[-1].find(path)


def _path_of(descriptor: int) -> str:
    import fcntl  # noqa: PLC0415 - not on every system

    get_path = getattr(fcntl, "F_GETPATH", 50)
    return os.fsdecode(fcntl.fcntl(descriptor, get_path, bytes(1024)).rstrip(b"\0"))


def _found(name: str) -> str:
    path = shutil.which(name)
    if path is None or ("/" in name and not name.startswith("/")):
        msg = f"--allow-command {name}: there is no such program"
        raise UsageError(msg, hint="name one that is in PATH, or give its absolute path")
    return os.path.abspath(path)


async def _start(words: list[str], place: str, environment: dict[str, str]) -> Process:
    try:
        return await anyio.open_process(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolFailure("failed", f"{show(words[0])} can't be started: {error}") from None


@dataclass(slots=True)
class _Output:
    """
    What one stream of a program said.
    """

    pieces: list[bytes] = field(default_factory=list)
    left: int = OUTPUT_BYTES
    is_cut: bool = False
    over: anyio.Event = field(default_factory=anyio.Event)

    async def follow(self, stream: ByteReceiveStream) -> None:
        # Read on beyond the bound: a program that can't write does not end.
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async for piece in stream:
                self.pieces.append(piece[: self.left])
                self.is_cut = self.is_cut or len(piece) > self.left
                self.left -= len(self.pieces[-1])
        self.over.set()

    @property
    def text(self) -> str:
        text = b"".join(self.pieces).decode("utf-8", "replace")
        return text + TRUNCATED if self.is_cut else text


async def _follow(process: Process, asked: RunCommand) -> dict[str, Any]:
    out, err = _Output(), _Output()
    in_time = False
    assert process.stdout is not None  # noqa: S101 - asked for above
    assert process.stderr is not None  # noqa: S101
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(out.follow, process.stdout)
            tasks.start_soon(err.follow, process.stderr)
            tasks.start_soon(_feed, process, asked.stdin.encode())
            with anyio.move_on_after(asked.timeout_ms / 1000):
                await process.wait()
                in_time = True
            _kill(process)
            # What left the group may hold the streams for ever; it is not waited for.
            with anyio.move_on_after(_DRAIN_S):
                await out.over.wait()
                await err.over.wait()
            tasks.cancel_scope.cancel()
    finally:
        _kill(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    return {
        "exit": process.returncode if in_time else None,
        "stdout": out.text,
        "stderr": err.text,
        "truncated": out.is_cut or err.is_cut,
        "timed_out": not in_time,
        "may_still_run": not (out.over.is_set() and err.over.is_set()),
    }


async def _feed(process: Process, data: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - asked for above
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        if data:
            await process.stdin.send(data)
        await process.stdin.aclose()


def _kill(process: Process) -> None:
    """
    End the program and all that it started in its group.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)

"""
Running a compiler: arguments as a list, a clean environment, bounded time and output.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

TOOL_TIMEOUT_S: Final = 300
"""
Wall time of one run of a tool; the largest agent we know takes seconds.
"""

MAX_OUTPUT_BYTES: Final = 32 * 1024

_OUTPUT_NAME: Final = "output.txt"
# What programs need to start at all. No key, no token and no flag of the user's reaches a compiler.
_ENVIRONMENT: Final = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "PYTHONHOME", "PYTHONPATH")

# Whom to ask, through what, and whose certificates to believe.
_NETWORK: Final = re.compile(
    r"PIP_\w+|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|XDG_CONFIG_\w+",
    re.ASCII,
)


class ToolResult(NamedTuple):
    """
    How a run ended.

    Attributes:
        ok: Whether the tool was content.
        output: What it printed, cut to a bound. Untrusted text: it quotes the agent's source.
    """

    ok: bool
    output: str


def run_tool(command: Sequence[str], *, folder: Path, scratch: Path, fetches: bool = False) -> ToolResult:
    """
    Run a tool to its end.

    Args:
        command: Program and arguments.
        folder: Where it runs.
        scratch: A private folder for its output, caches and temporary files.
        fetches: Whether it may know how this user reaches a network.
    """
    environment = _kept_environment() | {
        "HOME": str(scratch),
        "LC_ALL": "C.UTF-8",
        "ZIG_GLOBAL_CACHE_DIR": str(scratch / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(scratch / "zig"),
    }
    if fetches:
        environment |= _network_environment()
    path = scratch / _OUTPUT_NAME
    with open(path, "wb") as output:
        try:
            code = subprocess.run(  # noqa: S603 - no shell; the program is one that an extra installed
                list(command),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TOOL_TIMEOUT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return ToolResult(ok=False, output=f"no end after {TOOL_TIMEOUT_S} s")
    return ToolResult(ok=code == 0, output=_read_output(path) or ("" if code == 0 else f"exit status {code}"))


def _kept_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


def _network_environment() -> dict[str, str]:
    found = {name: value for name, value in os.environ.items() if _NETWORK.fullmatch(name)}
    # The user's own settings of pip lie below it.
    return found | {name: os.environ[name] for name in ("HOME",) if name in os.environ}


def _read_output(path: Path) -> str:
    with open(path, "rb") as file:
        data = file.read(MAX_OUTPUT_BYTES + 1)
    text = data[:MAX_OUTPUT_BYTES].decode(errors="replace").strip()
    return text + "\n(more was cut off)" if len(data) > MAX_OUTPUT_BYTES else text

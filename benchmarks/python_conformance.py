"""
MicroPython's own tests on the Python engine, against what CPython prints for them.

    python -m benchmarks.python_conformance SOURCES

`SOURCES` is an unpacked source archive of MicroPython. The programs are run as upstream wrote them, without
the host's rewriting, so that what is measured is the engine; some have their expected output beside them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runner import codec
from runner.build.engines import engine_module
from runner.cache import BlobCache, default_cache_root
from runner.errors import RunnerError
from runner.kernel.abi import DeliveryKind
from runner.kernel.admission import admit
from runner.kernel.boot import boot
from runner.kernel.engine import Engine, EngineSettings
from runner.kernel.limits import Limits
from runner.kernel.machine import Deliver, Machine
from runner.kernel.program import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.kernel.image import Image

_FOLDERS: Final = ("basics", "float", "unicode", "misc", "stress")
_TIMEOUT_S: Final = 20
_LIMITS: Final = Limits(log_lines_per_slice=100_000)
_USAGE: Final = 2

# A program's text is the payload; it runs where upstream's runner would run it, as a module of its own.
_AGENT: Final = """
def run(text):
    exec(text, {"__name__": "__main__"})
"""


class _Engine:
    """
    The engine with an agent that runs programs.
    """

    def __init__(self) -> None:
        engine = Engine(EngineSettings())
        admitted = admit(engine_module("python", BlobCache(default_cache_root())), engine.wasmtime)
        granted = frozenset(admitted.imports)
        self._program = Program(engine, admitted, engine.compile(admitted.code), granted, frozenset())
        self._image: Image = boot(self._program, _LIMITS)[0]

    def run(self, text: str) -> tuple[str, str | None]:
        """
        What a program printed, and the error that ended it.
        """
        machine = Machine(self._program, self._image, _LIMITS, entropy=bytes(32))
        record = {"name": "main.py", "module": "main", "package": False, "text": _AGENT}
        self._deliver(machine, 1, {"load": {"name": "test", "modules": [record], "entry": "main.py"}})
        return self._deliver(machine, 2, text)

    @staticmethod
    def _deliver(machine: Machine, number: int, payload: Any) -> tuple[str, str | None]:
        step = machine.step(Deliver(number, DeliveryKind.MESSAGE, codec.encode(payload), now_ms=0))
        printed = "".join(f"{line.message}\n" for line in step.logs)
        if step.failure is not None:
            return printed, step.failure.message
        if step.reply is None:
            return printed, "no reply"
        value: Any = codec.decode(step.reply.payload)
        return printed, None if step.reply.ok else value["message"]


def _expected(path: Path) -> str | None:
    """
    What the program should print, or `None` when nobody knows.
    """
    beside = path.with_name(f"{path.name}.exp")
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-I", path.name],
            cwd=path.parent,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def _judge(engine: _Engine, path: Path) -> str:
    expected = _expected(path)
    if expected is None:
        return "no expected output"
    try:
        printed, error = engine.run(path.read_text(encoding="utf-8"))
    except (RunnerError, UnicodeDecodeError) as problem:
        return f"fails: {type(problem).__name__}"
    if printed.strip().endswith("SKIP") or expected.strip() == "SKIP":
        return "skipped by itself"
    if printed.split() == expected.split():
        return "same"
    if error is not None:
        return f"fails: {error.partition(':')[0]}"
    return "differs"


def main(arguments: Sequence[str]) -> int:
    """
    Run all of them; returns the exit code.
    """
    names = [word for word in arguments if not word.startswith("-")]
    if len(names) != 1:
        sys.stderr.write("usage: python -m benchmarks.python_conformance SOURCES [--json]\n")
        return _USAGE
    engine = _Engine()
    tests = Path(names[0]) / "tests"
    found = {
        f"{folder}/{path.name}": _judge(engine, path)
        for folder in _FOLDERS
        for path in sorted((tests / folder).glob("*.py"))
    }
    if "--json" in arguments:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
        return 0
    for name, verdict in found.items():
        if verdict not in {"same", "skipped by itself", "no expected output"}:
            sys.stdout.write(f"{name}: {verdict}\n")
    for verdict, count in Counter(found.values()).most_common():
        sys.stdout.write(f"{count:5} {verdict}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

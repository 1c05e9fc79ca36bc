"""
An agent's own tests: each in a fresh instance of its suite's image, under the limits and the grants of a run.
"""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import anyio

from runner.build.modules import SourceTree
from runner.errors import AgentInvalid, ArtifactError, LimitExceeded, ProtocolViolation, RunnerError
from runner.kernel.abi import DeliveryKind
from runner.kernel.machine import Machine
from runner.package.agent import AgentPackage
from runner.package.manifest import MANIFEST_NAME, load_manifest
from runner.policy.grants import Grants
from runner.wiring.held import Held
from runner.wiring.host import Host
from runner.wiring.interpreted import Workshop
from runner.wiring.live import Live
from runner.wiring.models import provider_of
from runner.wiring.prepare import Prepared, used_names
from runner.wiring.stopwatch import Stopwatch
from runner.wiring.thaw import SEED_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.package.manifest import Manifest
    from runner.wiring.interpreter import Loaded
    from runner.wiring.options import Options

_SUITE: Final = {
    "js": re.compile(r"(test[-_.].+|.+[-_.]test)\.m?[jt]s"),
    "python": re.compile(r"(test_.+|.+_test)\.py"),
}
_SKIPPED_FOLDERS: Final = frozenset({"build", "node_modules", "__pycache__"})
MAX_SUITES: Final = 500

_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    How one test ended.

    Attributes:
        suite: Its file, as a path inside the agent's folder.
        test: Its name, or empty when the suite itself could not be loaded.
        passed: Whether it did.
        message: Why not, or empty. Untrusted text.
        stack: Where, or empty. Untrusted text.
    """

    suite: str
    test: str
    passed: bool
    message: str = ""
    stack: str = ""


def run_tests(folder: Path, options: Options, only: str | None = None) -> dict[str, Any]:
    """
    Run the tests of the agent in a folder.

    Args:
        folder: Holds `agent.toml`.
        options: Choices, as for a run of the agent.
        only: Run only tests whose `SUITE:TEST` contains this.

    Returns:
        `passed` and `failed`, counted, and `tests`: the outcome of each that was run, in the order of suites
        and of their text; none at all when there are no tests.

    Raises:
        AgentInvalid: If the agent is in a language whose tests are not run here.
        RunnerError: If its engine can't be had, or this host can hold no instance.
    """
    if not folder.is_dir():
        raise AgentInvalid(str(folder), f"not a folder with {MANIFEST_NAME}")
    manifest = load_manifest(folder)
    if not manifest.is_interpreted:
        raise AgentInvalid(str(folder), "only tests of agents in js and python are run here")
    bench = _Bench(Host(options.cache), folder, manifest, options)
    outcomes = [outcome for suite in _suites(folder, manifest) for outcome in bench.run(suite, only or "")]
    passed = sum(outcome.passed for outcome in outcomes)
    return {
        "passed": passed,
        "failed": len(outcomes) - passed,
        "tests": [asdict(outcome) for outcome in outcomes],
    }


class _Bench:
    """
    Where the suites of one agent are run.
    """

    def __init__(self, host: Host, folder: Path, manifest: Manifest, options: Options) -> None:
        self._host = host
        self._folder = folder
        self._manifest = manifest
        self._options = options
        self._grants = Grants.parse(options.allow, options.deny)
        self._tree = SourceTree(folder)
        self._workshop = Workshop(
            host, manifest, self._tree, progress=options.on_progress, on_log=options.on_log
        )

    def run(self, suite: str, only: str) -> Iterator[Outcome]:
        """
        The outcome of each test of a suite whose `SUITE:TEST` contains `only`.
        """
        try:
            loaded = self._workshop.load([suite])
        except (ArtifactError, LimitExceeded) as error:
            yield Outcome(suite, "", passed=False, message=error.message, stack=_stack_of(error))
            return
        prepared = self._prepare(loaded)
        for named, test in _tests_of(loaded):
            if only in f"{named}:{test}":
                yield self._run_one(prepared, named, test)

    def _prepare(self, loaded: Loaded) -> Prepared:
        admitted, manifest = self._workshop.interpreter.admitted, self._manifest
        binding = self._grants.resolve(manifest.name, admitted.imports, used_names(manifest, self._grants))
        return Prepared(
            package=AgentPackage(manifest, self._workshop.wasm, self._folder),
            admitted=admitted,
            grants=self._grants,
            limits=manifest.limits_under(self._options.limits),
            program=self._host.program(admitted, binding),
            image=loaded.image,
        )

    def _run_one(self, prepared: Prepared, suite: str, test: str) -> Outcome:
        entropy = os.urandom(SEED_BYTES)
        try:
            machine = Machine(prepared.program, prepared.image, prepared.limits, entropy=entropy)
            held = Held(provider_of(self._options))
            live = Live(self._host, prepared, machine, self._options, held, Stopwatch())
            anyio.run(live.serve, [(DeliveryKind.MESSAGE, {"suite": suite, "test": test})])
        except RunnerError as error:
            if error.kind == "interrupted":
                raise
            return Outcome(suite, test, passed=False, message=error.message, stack=_stack_of(error))
        finally:
            # At its end it interrupted what it had left behind.
            self._host.engine.resume()
        return Outcome(suite, test, passed=True)


def _tests_of(loaded: Loaded) -> list[tuple[str, str]]:
    """
    The tests that an engine says a suite has. The suite ran in its memory, so it may be any word.

    Raises:
        ProtocolViolation: If they are no pairs of names.
    """
    told = loaded.reply.get("tests")
    pairs = told if isinstance(told, list) else [None]
    tests = [
        (pair[0], pair[1])
        for pair in pairs
        if isinstance(pair, list) and len(pair) == _PAIR and all(isinstance(name, str) for name in pair)
    ]
    if len(tests) != len(pairs):
        raise ProtocolViolation("load", "the engine names tests that are none")
    return tests


def _suites(folder: Path, manifest: Manifest) -> list[str]:
    """
    Files whose names say that they are tests; links to folders are not followed.
    """
    pattern, found = _SUITE[manifest.language], []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] != "." and name not in _SKIPPED_FOLDERS)
        inside = PurePosixPath(os.path.relpath(where, folder))
        found += [(inside / name).as_posix() for name in sorted(names) if pattern.fullmatch(name)]
    if len(found) > MAX_SUITES:
        raise AgentInvalid(str(folder), f"more than {MAX_SUITES} files of tests")
    return found


def _stack_of(error: RunnerError) -> str:
    data = error.details.get("data")
    stack = data.get("stack") if isinstance(data, dict) else error.details.get("stack")
    return stack if isinstance(stack, str) else ""

"""
What a verb has around it: the wiring, loaded when it is first needed, and word of a termination.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runner.cli.signals import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from runner.codec import Value
    from runner.wiring import options as choices
    from runner.wiring.past import Replay


class Wiring(Protocol):
    """
    What the verbs use of `runner.wiring`; its contracts stand there.
    """

    @property
    def Options(self) -> type[choices.Options]:  # noqa: N802 - a class
        """
        The choices for one run or restore.
        """

    def run_agent(self, path: Path, value: Value, options: choices.Options) -> choices.Report:
        """
        Start an instance and deliver one message.
        """

    def restore_snapshot(
        self, path: Path, value: Value | None, options: choices.Options, agent: Path | None
    ) -> choices.Report:
        """
        Go on with the instance in a snapshot.
        """

    def inspect_path(self, path: Path) -> dict[str, Any]:
        """
        What an agent or a snapshot is.
        """

    def check_agent(self, path: Path, allow: Iterable[str], deny: Iterable[str]) -> dict[str, Any]:
        """
        Whether an agent would be let in.
        """

    def build_agent(self, folder: Path, out: Path | None, progress: Callable[[str], None]) -> dict[str, Any]:
        """
        One file from an agent's folder.
        """

    def run_tests(self, folder: Path, options: choices.Options, only: str | None) -> dict[str, Any]:
        """
        The tests of an agent, run.
        """

    def new_agent(self, folder: Path, lang: str) -> dict[str, Any]:
        """
        A new agent's folder.
        """

    def doctor(self) -> list[dict[str, Any]]:
        """
        What this machine has of what `runner` needs.
        """

    def run_named(
        self, path: Path, name: str, value: Value, options: choices.Options, ask: tuple[str, ...] = ()
    ) -> choices.Report:
        """
        Make a named instance and deliver one message.
        """

    def send(self, name: str, value: Value, options: choices.Options) -> choices.Report:
        """
        Deliver one message to a named instance.
        """

    def resume(self, name: str | None, options: choices.Options, *, last: bool = False) -> choices.Report:
        """
        Go on with what a named instance was doing.
        """

    def restore_named(
        self,
        path: Path,
        name: str,
        value: Value | None,
        options: choices.Options,
        *,
        agent: Path | None = None,
        ask: tuple[str, ...] = (),
    ) -> choices.Report:
        """
        Make a named instance that begins at a snapshot.
        """

    def usage_named(self, name: str, *, state: Path | None = None) -> dict[str, Any]:
        """
        What one has used of models.
        """

    def list_tools(self, options: choices.Options) -> list[dict[str, Any]]:
        """
        The tools that an agent would have.
        """

    def list_instances(self, state: Path | None = None) -> list[dict[str, Any]]:
        """
        Every named instance.
        """

    def is_instance(self, name: str, *, state: Path | None = None) -> bool:
        """
        Whether there is one of that name.
        """

    def inspect_named(self, name: str, *, at: int | None = None, state: Path | None = None) -> dict[str, Any]:
        """
        What one is, or was.
        """

    def snapshot_named(self, name: str, out: Path, *, state: Path | None = None) -> dict[str, Any]:
        """
        One as a snapshot file.
        """

    def fork_named(
        self,
        name: str,
        new_name: str,
        *,
        at: int | None = None,
        deterministic: bool = False,
        state: Path | None = None,
    ) -> dict[str, Any]:
        """
        A second one from the same point.
        """

    def upgrade_named(
        self, name: str, path: Path, options: choices.Options, ask: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """
        Let one go on under another agent.
        """

    def stop_named(self, name: str, *, state: Path | None = None) -> dict[str, Any]:
        """
        Stop one.
        """

    def remove_named(self, names: Iterable[str], *, state: Path | None = None) -> list[str]:
        """
        Remove some.
        """

    def journal_rows(self, name: str, *, state: Path | None = None) -> list[dict[str, Any]]:
        """
        The records of one.
        """

    def export_journal(self, name: str, out: Path, *, state: Path | None = None) -> dict[str, Any]:
        """
        Its records as a file.
        """

    def replay(
        self,
        what: str,
        *,
        to: int | None = None,
        limits: Mapping[str, int] = ...,
        state: Path | None = None,
    ) -> Replay:
        """
        All that one did, done again.
        """

    def verify(
        self, what: str, *, limits: Mapping[str, int] = ..., state: Path | None = None
    ) -> dict[str, Any]:
        """
        The same, held against its record.
        """

    def approvals(self, name: str | None = None, *, state: Path | None = None) -> list[dict[str, Any]]:
        """
        Calls that a person has to rule on.
        """

    def rule_on(
        self,
        name: str,
        call: int,
        verdict: Literal["allow", "deny"],
        *,
        because: str | None = None,
        state: Path | None = None,
    ) -> dict[str, Any]:
        """
        Allow or deny one.
        """

    def resolve_call(
        self,
        name: str,
        call: int,
        ruling: Literal["rerun", "done", "abandon"],
        value: Value = None,
        *,
        state: Path | None = None,
    ) -> dict[str, Any]:
        """
        Say what became of one.
        """

    def list_providers(self) -> list[dict[str, Any]]:
        """
        Whoever answers for models.
        """

    def list_models(self, name: str) -> list[str]:
        """
        Models of one, as it lists them itself.
        """

    def list_keys(self) -> list[dict[str, Any]]:
        """
        Stored keys, without the keys.
        """

    def set_key(self, name: str, value: str) -> dict[str, Any]:
        """
        Store one.
        """

    def remove_key(self, name: str) -> dict[str, Any]:
        """
        Forget one.
        """

    def collect_garbage(self, keep: int, *, state: Path | None = None) -> dict[str, Any]:
        """
        Make room.
        """


def load_wiring() -> Wiring:
    """
    The module that builds and runs everything; the first moment at which the engine is imported.
    """
    from runner import wiring  # noqa: PLC0415 - the whole point

    return wiring


@dataclass(slots=True)
class Shell:
    """
    What a verb has around it.

    Attributes:
        wiring: Loads `runner.wiring`, or what stands for it.
        termination: Whether SIGTERM came.
    """

    wiring: Callable[[], Wiring] = load_wiring
    termination: Termination = field(default_factory=Termination)

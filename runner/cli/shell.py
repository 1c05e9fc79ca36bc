"""
What a verb has around it: the wiring, loaded when it is first needed, and word of a termination.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from runner.cli.signals import Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from runner.codec import Value
    from runner.wiring import options as choices


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

    def new_agent(self, folder: Path, lang: str) -> dict[str, Any]:
        """
        A new agent's folder.
        """

    def doctor(self) -> list[dict[str, Any]]:
        """
        What this machine has of what `runner` needs.
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

"""
What a caller may choose, and what it gets back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from runner.codec import Value
    from runner.kernel.slice import LogLine
    from runner.tools.base import Tool


Checkpoint: TypeAlias = Literal["asked", "always"] | int
"""
When snapshots of a named instance are taken: when its agent asks, after every delivery, or every so many
records.
"""


def _drop(line: LogLine) -> None:
    del line


def _say_nothing(line: str) -> None:
    del line


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """
    Choices for one run or restore.

    Attributes:
        allow: Grants, as `CAP[:SELECTOR]`.
        deny: Refusals, as `CAP[:SELECTOR]`; they win.
        limits: The operator's own bounds, by field of `Limits`.
        deadline_ms: Wall time for each delivery, waiting included; `None` for no bound on waiting.
        script: File for the scripted provider, or `None` for its built-in answer.
        model: `PROVIDER/MODEL`, or `None` for the scripted one.
        snapshot: Where to write a snapshot: whenever the guest asks, and at the end, also of a delivery
            that failed; or `None`.
        budget: What a new instance may spend on models, as `KEY=VALUE,…`.
        persona: File with what stands above all that an agent tells a model, or `None`.
        on_model: Hears what models say and use while they do: `text`, `tool` and `turn`, with a text, or a
            map of `name` and `arguments`, or the turn's usage. Untrusted text.
        sync: Whether a snapshot is on the disk before the call returns.
        deterministic: Restore only: go on with the snapshot's random stream.
        on_log: Takes each line that the guest logs. Untrusted text.
        on_progress: Takes a line for people about what takes long.
        cache: Where compiled code is kept; `None` for the user's cache directory.
        checkpoint: Of a named instance: when its snapshots are taken.
        state: Where named instances live; `None` for the user's state directory.
        max_state_bytes: The most that its database may have, or `None`.
        stopping: Of a named instance: whether an interrupt is to stop it and not to end its delivery.
        root: Directories whose files tools may read.
        allow_write: Directories whose files tools may write.
        http_host: Hosts that tools may ask, as `HOST[:PORT]`.
        allow_command: Programs that tools may run.
        tools: Manifests of tools that are HTTP requests.
        mcp_config: File that names MCP servers, or `None`.
        own_tools: Tools of whoever uses this as a library.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    deadline_ms: int | None = None
    script: Path | None = None
    model: str | None = None
    snapshot: Path | None = None
    budget: tuple[str, ...] = ()
    persona: Path | None = None
    on_model: Callable[[str, Value], None] | None = None
    sync: bool = True
    deterministic: bool = False
    on_log: Callable[[LogLine], None] = _drop
    on_progress: Callable[[str], None] = _say_nothing
    cache: Path | None = None
    checkpoint: Checkpoint = "asked"
    state: Path | None = None
    max_state_bytes: int | None = None
    stopping: Callable[[], bool] = _never
    root: tuple[Path, ...] = ()
    allow_write: tuple[Path, ...] = ()
    http_host: tuple[str, ...] = ()
    allow_command: tuple[str, ...] = ()
    tools: tuple[Path, ...] = ()
    mcp_config: Path | None = None
    own_tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    How a run or restore went.

    Attributes:
        result: What the guest replied.
        instance: Identity of the instance.
        agent: The agent's name.
        snapshot: `path`, `size_bytes`, `pages`, … of the snapshot written last, or `None`.
        usage: Calls and tokens, unknown ones `None`.
        limits: The bounds that held, by field of `Limits`.
        fuel: Fuel charged.
        timing_ms: Wall times by name.
        memory_digest: Digest of memory and globals at the end, as `sha256:…`.
        journal: Of a named instance: `state`, its directory, and `records`, their number.
        waiting: Calls that wait for a person, by number, while nothing else does.
    """

    result: Value
    instance: str
    agent: str
    snapshot: dict[str, Value] | None
    usage: dict[str, Value]
    limits: dict[str, int]
    fuel: int
    timing_ms: dict[str, float]
    memory_digest: str
    journal: dict[str, Value] | None = None
    waiting: tuple[int, ...] = ()

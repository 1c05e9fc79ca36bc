"""
Errors are data: a kind that is stable, an exit code, a message of their own making.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from runner import errors
from runner.errors import (
    AgentInvalid,
    BuildFailed,
    ConfigError,
    DeadlineExceeded,
    Denied,
    DiskFailed,
    FuelExhausted,
    GuestReturnedError,
    GuestTrapped,
    HostExhausted,
    InstanceBusy,
    InstanceExists,
    InstanceUnknown,
    InternalError,
    Interrupted,
    JournalCorrupt,
    JournalPoisoned,
    LimitExceeded,
    MemoryExceeded,
    ModuleRejected,
    ProtocolViolation,
    ProviderError,
    RunnerError,
    SnapshotCorrupt,
    SnapshotIncompatible,
    StaleWriter,
    StateFull,
    StateTooNew,
    StateUnusable,
    UsageError,
)


def classes(base: type[RunnerError] = RunnerError) -> Iterator[type[RunnerError]]:
    """
    The tree, depth first.
    """
    yield base
    for child in base.__subclasses__():
        yield from classes(child)


def test_the_tree_at_the_top_of_the_module_is_the_tree() -> None:
    """Names, parents, and kind and exit code where they are drawn."""
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│├└─ ]*)([A-Z]\w+) ", line)
        if match is None:
            continue
        name = match[2]
        drawn.append((len(match[1]) // 3, name))
        shown = re.search(r"  ([a-z_]+) +(\d+)$", line)
        error = getattr(errors, name)
        if shown is not None:
            assert (error.kind, error.exit_code) == (shown[1], int(shown[2])), name

    def walk(base: type[RunnerError], depth: int) -> Iterator[tuple[int, str]]:
        yield depth, base.__name__
        for child in base.__subclasses__():
            yield from walk(child, depth + 1)

    assert drawn == [item for item in walk(RunnerError, 0) if hasattr(errors, item[1])]


def test_a_kind_has_one_exit_code() -> None:
    """A program may match either."""
    codes: dict[str, set[int]] = {}
    for error in classes():
        codes.setdefault(error.kind, set()).add(error.exit_code)
    assert all(len(found) == 1 for found in codes.values())


EXAMPLES = [
    (UsageError("no"), "no", None),
    (ConfigError("a.toml", "x.y", "is bad"), "a.toml: x.y: is bad", None),
    (ConfigError("a.toml", None, "is bad", hint="mend it"), "a.toml: is bad", "mend it"),
    (
        Denied("bob", "llm.chat", "default deny", flag="--allow llm.chat"),
        "agent bob needs llm.chat, which is not granted",
        "add --allow llm.chat",
    ),
    (
        Denied("bob", "llm.chat", "--deny llm"),
        "agent bob needs llm.chat, which is not granted",
        "remove --deny llm",
    ),
    (LimitExceeded("x_bytes", 3, 2), "limit x_bytes exceeded: 3 of 2", None),
    (FuelExhausted(5), "limit fuel exceeded: 5 of 5", "raise it with --max-fuel"),
    (DeadlineExceeded("timeout_ms", 6, 5), "limit timeout_ms exceeded: 6 of 5", "raise it with --timeout"),
    (DeadlineExceeded("deadline_ms", 6, 5), "limit deadline_ms exceeded: 6 of 5", "raise it with --deadline"),
    (MemoryExceeded(6, 5), "limit memory_bytes exceeded: 6 of 5", "raise it with --max-memory"),
    (
        StateFull("/s", 6, 5),
        "limit state_bytes exceeded: 6 of 5",
        "make room in /s with runner gc, or raise it with --max-state",
    ),
    (
        HostExhausted("no maps"),
        "this process can hold no more instances: no maps",
        "raise vm.max_map_count, or spread instances over more processes",
    ),
    (GuestReturnedError("oh", {"a": 1}), "oh", None),
    (GuestTrapped("unreachable"), "guest trapped: unreachable", None),
    (GuestTrapped("unreachable", ("f", "g")), "guest trapped: unreachable in f", None),
    (ProtocolViolation("stalled", "it stalled"), "it stalled", None),
    (
        ModuleRejected("import-unknown", "import a.b", "there is none", "remove it"),
        "module refused: import a.b: there is none",
        "remove it",
    ),
    (AgentInvalid("dir", "is empty"), "dir: is empty", None),
    (
        SnapshotCorrupt("root differs"),
        "snapshot is damaged: root differs",
        "use another copy; a snapshot can't be repaired",
    ),
    (
        SnapshotCorrupt("root differs", path="a.snap"),
        "a.snap: snapshot is damaged: root differs",
        "use another copy; a snapshot can't be repaired",
    ),
    (SnapshotIncompatible("v", "1", "2"), "snapshot does not fit: v is 2, expected 1", None),
    (BuildFailed("dir", "x.c:1: no\n"), "dir: build failed\nx.c:1: no", None),
    (StateUnusable("/s", "is a file", hint="move it"), "state /s is a file", "move it"),
    (InstanceUnknown("bob"), "there is no instance bob", "list them with runner ps"),
    (
        InstanceExists("bob"),
        "there is an instance bob already",
        "choose another name, or remove it with runner rm bob",
    ),
    (InstanceBusy("bob", 7), "instance bob is in use by process 7", "wait for it, or stop it"),
    (InstanceBusy("bob", None), "instance bob is in use by another process", "wait for it, or stop it"),
    (
        StaleWriter("bob", 3, 4),
        "journal of bob was written by somebody else: 3 records expected, 4 found",
        "open the instance again",
    ),
    (
        JournalCorrupt("bob", 3, "it is gone"),
        "journal of bob is damaged at record 3: it is gone",
        "put back a copy of the whole state directory",
    ),
    (
        JournalCorrupt("bob", None, "it is gone"),
        "journal of bob is damaged: it is gone",
        "put back a copy of the whole state directory",
    ),
    (
        JournalPoisoned("bob", "disk full"),
        "journal of bob takes no more records, because one before was not written: disk full",
        "open the instance again",
    ),
    (
        StateTooNew("/s", 2, 1),
        "state /s has version 2, this runner knows versions up to 1",
        "use the runner that wrote it, or a later one",
    ),
    (DiskFailed("/s", "disk full"), "state /s: disk full", "free some space, or move it to another disk"),
    (ProviderError("acme", "down", status=503, retryable=True), "provider acme: down", None),
    (Interrupted(), "interrupted", None),
    (InternalError("oops"), "oops", None),
]


@pytest.mark.parametrize(("error", "message", "hint"), EXAMPLES, ids=lambda item: type(item).__name__)
def test_an_error_makes_its_own_message_and_hint(error: RunnerError, message: str, hint: str | None) -> None:
    """The same everywhere."""
    assert (str(error), error.message, error.hint) == (message, message, hint)


@pytest.mark.parametrize("error", [error for error, _, _ in EXAMPLES], ids=lambda error: type(error).__name__)
def test_an_error_is_data(error: RunnerError) -> None:
    """Fit for JSON, and without what is not known."""
    wire = error.to_wire()
    assert list(wire) == ["kind", "message", "hint", "exception", "details"]
    assert (wire["kind"], wire["exception"]) == (error.kind, type(error).__name__)
    assert json.loads(json.dumps(wire)) == wire
    assert None not in wire["details"].values()


def test_details_are_the_fields_of_the_error() -> None:
    """For programs that want the numbers."""
    assert LimitExceeded("x_bytes", 3, 2).details == {"limit": "x_bytes", "value": 3, "bound": 2}
    assert GuestTrapped("unreachable", ("f",)).details == {"trap": "unreachable", "frames": ["f"]}
    assert ProviderError("acme", "down", retry_after_ms=5).details == {
        "provider": "acme",
        "retryable": False,
        "retry_after_ms": 5,
    }
    assert GuestReturnedError("oh").details == {}

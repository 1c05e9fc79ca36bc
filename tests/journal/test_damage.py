"""
A state file that was cut or changed anywhere: a clear error or a correct prefix, never a beginning.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from runner import codec
from runner.errors import InstanceExists, InstanceUnknown, InternalError, RunnerError, SnapshotCorrupt
from runner.journal import StateDirectory
from runner.journal.records import Record, Stopped
from tests.journal.samples import AGENT, born, filled, machine_state, page, turn, upgrade

NAMES: Final = ("one", "three", "two")
PLACES: Final = 100
EXPECTED: Final = frozenset(
    {"ok", "JournalCorrupt", "InstanceExists", "StateTooNew", "StateUnusable", "DiskFailed"}
)
# A record whose payload does not fit a page of the database.
LARGE: Final = codec.encode(b"".join(page(fill) for fill in (1, 2, 3)))


class Sample(NamedTuple):
    """
    A state directory that is not open, and what is on record in it.
    """

    root: Path
    records: dict[str, list[tuple[int, Record]]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    """
    One that was closed, so all is in the database; one whose process died, so most is in the log.
    """
    folder = tmp_path_factory.mktemp("damage")
    records = {}
    with StateDirectory(folder / "state") as state:
        for name in NAMES:
            filled(state, name, 10)
            with state.open(name, write=True) as journal:
                journal.put_snapshot(
                    3, machine_state({index: page(index) for index in range(4)}), {}, b"d" * 32
                )
                journal.append(turn(11, LARGE))
                journal.put_snapshot(journal.position, machine_state({0: page(7)}), {}, b"d" * 32)
                journal.append(turn(12))
                journal.append([upgrade(AGENT)], [AGENT])
                records[name] = list(journal.read())
        shutil.copytree(folder / "state", folder / "died")
    assert not (folder / "state" / "state.db-wal").exists()
    assert (folder / "died" / "state.db-wal").stat().st_size > 100_000
    return {name: Sample(folder / name, records) for name in ("state", "died")}


def outcome(act: Callable[[], Any]) -> str:
    """
    `ok`, or the name of the error that says what is wrong. Nothing else may come out.
    """
    try:
        act()
    except (InternalError, InstanceUnknown):
        raise
    except RunnerError as error:
        return type(error).__name__
    return "ok"


def examine(sample: Sample, root: Path) -> Iterator[str]:
    """
    Use a damaged directory in every way; what came of each.
    """
    try:
        state = StateDirectory(root)
    except InternalError:
        raise
    except RunnerError as error:
        yield type(error).__name__
        return
    with state:
        rows: list[str] = []
        listed = outcome(lambda: rows.extend(row.name for row in state.names()))
        assert listed != "ok" or rows == list(NAMES)
        yield listed
        for name in NAMES:
            made = outcome(lambda name=name: state.create(name, born("fresh"), AGENT))  # type: ignore[misc]
            assert made != "ok", "a name that was taken has become free"
            yield made
            yield outcome(lambda name=name: use(state, name, sample.records[name]))  # type: ignore[misc]
        yield outcome(lambda: state.gc(1))


def use(state: StateDirectory, name: str, expected: list[tuple[int, Record]]) -> None:
    """
    Read an instance, and go on writing: what is there is what was written, from the beginning on.
    """
    with state.open(name, write=True) as journal:
        found = list(journal.read())
        assert found
        assert found == expected[: len(found)]
        with contextlib.suppress(SnapshotCorrupt):
            journal.latest_snapshot()
        assert state.agent(name) == AGENT
        journal.append([Stopped(reason="still here", at_ms=0)])
        assert list(journal.read())[:-1] == found


def flip(path: Path, at: int, rng: random.Random) -> None:
    """
    Change one byte.
    """
    content = bytearray(path.read_bytes())
    content[at] ^= rng.randrange(1, 256)
    path.write_bytes(content)


def cut(path: Path, at: int, rng: random.Random) -> None:
    """
    Cut a file short.
    """
    del rng
    with path.open("r+b") as file:
        file.truncate(at)


@pytest.mark.parametrize("damage", [flip, cut])
@pytest.mark.parametrize(
    ("sample", "file"), [("state", "state.db"), ("died", "state.db-wal"), ("died", "state.db")]
)
def test_a_state_file_damaged_at_any_of_200_places_is_never_taken_for_another(
    samples: dict[str, Sample],
    tmp_path: Path,
    sample: str,
    file: str,
    damage: Callable[[Path, int, random.Random], None],
) -> None:
    """
    Half of them changed, half of them cut, spread evenly over the file.
    """
    rng = random.Random(f"{sample} {file}")
    whole = samples[sample]
    size = (whole.root / file).stat().st_size
    seen: Counter[str] = Counter()
    for place in range(PLACES):
        root = tmp_path / f"{place}"
        shutil.copytree(whole.root, root)
        at = (size * place + rng.randrange(size)) // PLACES
        damage(root / file, at, rng)
        seen.update(examine(whole, root))
        shutil.rmtree(root)
    # Where all pages are in the log as well, the log makes good what the database lost.
    assert (seen["JournalCorrupt"] > 0) == ((sample, file) != ("died", "state.db"))
    assert set(seen) <= {
        "ok",
        "JournalCorrupt",
        "InstanceExists",
        "StateTooNew",
        "StateUnusable",
        "DiskFailed",
    }


def test_undamaged_samples_are_whole(samples: dict[str, Sample], tmp_path: Path) -> None:
    """
    The examination itself: without damage, all is as it was.
    """
    for name, sample in samples.items():
        shutil.copytree(sample.root, tmp_path / name)
        taken = InstanceExists.__name__
        assert list(examine(sample, tmp_path / name)) == ["ok", *[taken, "ok"] * 3, "ok"]


@pytest.mark.parametrize("file", ["state.db", "state.db-wal", "state.db-shm", "state.lock"])
def test_a_file_that_is_gone_is_an_error_or_a_prefix(
    samples: dict[str, Sample], tmp_path: Path, file: str
) -> None:
    """
    Whichever it is.
    """
    whole = samples["died"]
    shutil.copytree(whole.root, tmp_path / "state")
    (tmp_path / "state" / file).unlink()
    seen = Counter(examine(whole, tmp_path / "state"))
    is_needed = file in ("state.db", "state.db-wal")
    assert ("JournalCorrupt" in seen) is is_needed

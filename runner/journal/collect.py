"""
Making room: old snapshots go, and whatever no instance uses any more.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final

from runner.journal import pages, snapshots

_SELECT = (
    "SELECT instances.name, snapshots.instance, snapshots.position, header, pages, snapshots.seal"
    " FROM snapshots JOIN instances ON instances.id = snapshots.instance ORDER BY snapshots.position DESC"
)

ORIGIN_POSITION: Final = 1
"""
Where the snapshot stands that a life begins with when it does not begin at its image.
"""


@dataclass(frozen=True, slots=True)
class GcReport:
    """
    What was removed.

    Attributes:
        snapshots: Snapshots, damaged ones included.
        pages: Contents of pages that no snapshot has any more.
        agents: Packages that no instance has, or had, any more.
        freed_bytes: What the database became smaller by.
    """

    snapshots: int
    pages: int
    agents: int
    freed_bytes: int = 0


def collect(connection: sqlite3.Connection, keep: int, name: str | None) -> GcReport:
    """
    Remove all but the newest `keep` sound snapshots of each instance, or of one, inside a transaction.

    A snapshot whose row is damaged is of no use to anyone and counts for nothing. One that stands right after
    a birth is no memo: it is where that life began, and stays, even if it is damaged; without it the life
    would seem to begin at its image.
    """
    removed: list[tuple[Any, Any]] = []
    kept: dict[str, int] = defaultdict(int)
    used: set[int] = set()
    for owner, instance, position, header, ids, seal in connection.execute(_SELECT):
        its_pages = snapshots.used_pages(owner, (position, header, ids, seal))
        is_surplus = kept[owner] >= keep and name in (None, owner)
        if position != ORIGIN_POSITION and (its_pages is None or is_surplus):
            removed.append((instance, position))
        elif its_pages is not None:
            kept[owner] += 1
            used.update(its_pages)
    connection.executemany("DELETE FROM snapshots WHERE instance = ? AND position = ?", removed)
    agents = connection.execute(
        "DELETE FROM agents"
        " WHERE digest NOT IN (SELECT agent FROM instances UNION SELECT agent FROM upgrades)"
    )
    return GcReport(len(removed), pages.drop_unused(connection, used), agents.rowcount)

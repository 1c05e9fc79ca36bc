"""
Journals: what instances are made of, kept so that no crash, and no damage, is mistaken for a beginning.
"""

from runner.journal.collect import GcReport
from runner.journal.journal import Journal
from runner.journal.snapshots import SnapshotRow, StoredSnapshot
from runner.journal.state import InstanceRow, StateDirectory, default_state_root

__all__ = [
    "GcReport",
    "InstanceRow",
    "Journal",
    "SnapshotRow",
    "StateDirectory",
    "StoredSnapshot",
    "default_state_root",
]

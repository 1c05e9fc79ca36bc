"""
Journals: what instances are made of, kept so that no crash, and no damage, is mistaken for a beginning.

`records` says what can be on record, `wire` how it looks in bytes, `journal` is one instance's records and
`state` the directory of all. `database`, `committer` and `schema` are what they stand on, `snapshots` and
`pages` the memos that save folding. The bytes are specified in `docs/journal-format.md`, and a state of every
released version is kept in `tests/journal/golden` for ever.

What was weighed, and why it is not here:

- **One file of lines for each instance.** Simple, and readable by eye. A hundred instances are then a hundred
  syncs, a torn last line has to be told from damage by hand, and listing reads every file.
- **A thread that commits.** It costs two switches for each record of a lone writer. Whoever finds nobody at
  work commits for all that wait instead.
- **Ordering by time, or ids that hold one.** Clocks are set back. A record has a number, and no two have one.
- **A lease in the database, with a time to live.** It outlives its holder, or is lost by one that only slept.
  The system's own lock dies with the process and not before.
- **One digest over the whole journal, or none.** SQLite notices when its own structure is damaged, not when a
  payload is. A link for each record names the one at fault, and a reader may start in the middle.
- **Counting what refers to a page.** A count can be wrong after a crash; what the snapshots say can't.
- **A chain of snapshots, each a difference to the one before.** None could be removed without those after it.
- **Snapshot files beside the database.** File and record would be two truths; here they are one transaction.
- **Making a database anew when the old one can't be read.** That is how an agent forgets that it has paid.
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

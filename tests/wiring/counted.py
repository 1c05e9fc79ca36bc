"""
Named instances whose effects go to a ledger, so that one that happened twice shows.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio

from runner.capabilities.asking import Purse
from runner.capabilities.standard import standard_handlers
from runner.codec import Value
from runner.crashtest.ledger import Ledger, LedgerHandlers
from runner.journal import StateDirectory
from runner.journal.records import Record
from runner.kernel.abi import DeliveryKind
from runner.providers.scripted import SCRIPTED_MODEL, ScriptedProvider
from runner.wiring.host import Host
from runner.wiring.named import give_birth, open_life, session_of
from runner.wiring.options import Options

GUESTS = Path(__file__).parents[2] / "guests"


def _pass(where: str) -> None:
    del where


@dataclass(frozen=True, slots=True)
class Ended:
    """
    How an instance stood when it was left.
    """

    result: Value
    memory_digest: bytes
    notes: Value


class World:
    """
    A state directory, what runs its instances, and the ledger of their effects.
    """

    def __init__(self, root: Path, cache: Path) -> None:
        self.state = StateDirectory(root / "state", sync=False)
        self.host = Host(cache)
        self.ledger = Ledger(root / "ledger")

    @property
    def effects(self) -> int:
        """
        How many there were.
        """
        return len(self.ledger.read())

    def bear(self, agent: Path, name: str, options: Options) -> None:
        """
        Make an instance.
        """
        give_birth(self.state, self.host, self.host.load(agent), name, options, ())

    def serve(self, name: str, *messages: Value, options: Options) -> Ended:
        """
        Open an instance, finish what is open, deliver, and leave it.
        """
        return anyio.run(partial(self._serve, name, *messages, options=options))

    async def _serve(self, name: str, *messages: Value, options: Options) -> Ended:
        provider = ScriptedProvider()
        life = await open_life(self.state, self.host, name, provider, write=True)
        try:
            handlers = standard_handlers(
                providers={provider.name: provider},
                default_model=SCRIPTED_MODEL,
                grants=life.prepared.grants,
                notes=life.held.notes,
                purse=Purse(usage=life.held.usage),
            )
            async with session_of(
                life, self.host, options, LedgerHandlers(handlers, self.ledger, _pass)
            ) as session:
                outcome = await session.finish_open()
                for message in messages:
                    outcome = await session.deliver(DeliveryKind.MESSAGE, message)
            result = outcome.result if outcome else None
            return Ended(result, life.machine.digest(), life.held.notes.to_wire())
        finally:
            life.journal.close()

    def records(self, name: str) -> list[Record]:
        """
        All records of an instance.
        """
        with self.state.open(name, write=False) as journal:
            return [record for _, record in journal.read()]

    def snapshots(self, name: str) -> list[int]:
        """
        Positions of the stored snapshots, oldest first.
        """
        with self.state.open(name, write=False) as journal:
            return journal.snapshots()

    def cut(self, name: str, new: str, count: int, at_most: int) -> None:
        """
        Plant another instance: the first records of one, as after a kill, and its snapshot at or before a
        position.
        """
        with self.state.open(name, write=False) as journal:
            born, *past = [record for _, record in journal.read(0, count)]
            stored = journal.latest_snapshot(at_most=at_most)
        assert stored is not None
        self.state.create(new, born, self.state.agent(name), past)  # type: ignore[arg-type]
        with self.state.open(new, write=True) as journal:
            journal.put_snapshot(stored.position, stored.state, stored.host, stored.digest)

    def forget_snapshots(self, after: int) -> None:
        """
        Delete every snapshot later than a position, as if the disk had lost them.
        """
        connection = sqlite3.connect(self.state.root / "state.db")
        with connection:
            connection.execute("DELETE FROM snapshots WHERE position > ?", (after,))
        connection.close()

"""
A process that lives one life with a tool loop, until it is killed at a boundary.

Words: the agent, the state directory, the cache, the ledger, the script, and the number of the boundary.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runner.errors import EffectUncertain
from runner.journal.records import EffectClass, Record
from runner.tools.base import Tool
from runner.wiring import Options, is_instance, resolve_call, resume, run_named
from runner.wiring.named import Writer

ASK = {"messages": [{"role": "user", "content": "go"}], "tools": ["look", "send"]}


class World:
    """
    What happens outside, a line for each, and the end of the process.
    """

    def __init__(self, ledger: Path, dies_at: int) -> None:
        self._ledger = ledger
        self._dies_at = dies_at
        self._boundaries = 0

    def boundary(self) -> None:
        """
        One of the points at which the process may end.
        """
        self._boundaries += 1
        if self._boundaries == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def tool(self, name: str, effect: EffectClass) -> Tool:
        """
        One that leaves a line.
        """

        async def work(arguments: Any, context: object) -> Any:
            del context
            self.boundary()
            with self._ledger.open("a") as file:
                file.write(f"{name} {arguments['n']}\n")
                file.flush()
                os.fsync(file.fileno())
            self.boundary()
            return f"{name} done"

        schema = {"type": "object"}
        return Tool(
            name=name,
            description=name,
            input_schema=schema,
            check=lambda value: value,
            work=work,
            effect=effect,
        )


def main(agent: str, state: str, cache: str, ledger: str, script: str, dies_at: str) -> None:
    """
    Begin the life, or go on with it; a person says of what nobody knows that it was done.
    """
    world = World(Path(ledger), int(dies_at))
    hand_in = Writer.hand_in

    def mortal(self: Writer, records: Sequence[Record]) -> Callable[[], object]:
        world.boundary()
        written = hand_in(self, records)

        def confirm() -> None:
            written()
            world.boundary()

        return confirm

    Writer.hand_in = mortal  # type: ignore[method-assign]
    options = Options(
        allow=("llm", "tool"),
        state=Path(state),
        cache=Path(cache),
        script=Path(script),
        own_tools=(world.tool("look", "idempotent"), world.tool("send", "effectful")),
    )
    if not is_instance("rex", state=options.state):
        report = run_named(Path(agent), "rex", ASK, options)
    else:
        try:
            report = resume("rex", options)
        except EffectUncertain as error:
            resolve_call("rex", error.calls[0], "done", "sent", state=options.state, cache=options.cache)
            report = resume("rex", options)
        if report.result is None:
            # It died before it had been handed anything.
            from runner.wiring import send

            report = send("rex", ASK, options)
    sys.stdout.write(json.dumps({"result": report.result, "usage": report.usage}))


if __name__ == "__main__":
    main(*sys.argv[1:])

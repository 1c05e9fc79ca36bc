"""
One thread works for all, and nobody waits for whoever keeps it.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import pytest

from runner.session import crew as crews
from runner.session.crew import Confirm, Crew
from tests.session.doubles import until

T = TypeVar("T")

FOREVER_S = 1000.0


def run(main: Callable[[], Awaitable[T]]) -> T:
    """What comes of it, or an error if it hangs."""

    async def bounded() -> T:
        with anyio.fail_after(20):
            return await main()

    return anyio.run(bounded)


def told(value: T, log: list[str], name: str) -> Callable[[], Confirm[T]]:
    """Work that says when its halves are done."""

    def begin() -> Confirm[T]:
        log.append(f"begin {name}")

        def confirm() -> T:
            log.append(f"confirm {name}")
            return value

        return confirm

    return begin


def kept(entered: threading.Event, go_on: threading.Event) -> Callable[[], Confirm[str]]:
    """Work that is inside its first half until it may go on."""

    def begin() -> Confirm[str]:
        entered.set()
        assert go_on.wait(20)
        return lambda: "kept"

    return begin


def test_what_waits_together_is_begun_before_any_of_it_is_confirmed(monkeypatch):
    """So one transaction does for all."""
    crew = Crew()
    log: list[str] = []
    entered, go_on = threading.Event(), threading.Event()

    async def main() -> None:
        with crew.staffed():
            async with anyio.create_task_group() as group:
                group.start_soon(crew.do, kept(entered, go_on))
                await until(entered.is_set)
                for name in ("a", "b"):
                    group.start_soon(crew.do, told(None, log, name))
                await until(lambda: len(crew._waiting) == 2)
                go_on.set()

    monkeypatch.setattr(crews, "PATIENCE_S", FOREVER_S)
    run(main)
    assert log == ["begin a", "begin b", "confirm a", "confirm b"]


def test_others_do_not_wait_for_work_that_does_not_end():
    """Also what had begun before it is confirmed; and its own end is told when it comes."""
    crew = Crew()
    log: list[str] = []
    ends: list[str] = []
    entered, go_on = threading.Event(), threading.Event()
    first_entered, first_go_on = threading.Event(), threading.Event()

    async def main() -> None:
        async def keep() -> None:
            ends.append(await crew.do(kept(entered, go_on)))

        with crew.staffed():
            async with anyio.create_task_group() as group:
                group.start_soon(crew.do, kept(first_entered, first_go_on))
                await until(first_entered.is_set)
                group.start_soon(crew.do, told(None, log, "before"))
                await until(lambda: len(crew._waiting) == 1)
                group.start_soon(keep)
                await until(lambda: len(crew._waiting) == 2)
                first_go_on.set()
                await until(entered.is_set)
                assert await crew.do(told(7, log, "after")) == 7
                assert (ends, sorted(log)) == (
                    [],
                    ["begin after", "begin before", "confirm after", "confirm before"],
                )
                go_on.set()

    run(main)
    assert ends == ["kept"]


def test_work_that_is_expected_to_be_long_gives_the_lead_away(monkeypatch):
    """Nobody has to find out first, where there is another core for it."""
    monkeypatch.setattr(crews, "PATIENCE_S", FOREVER_S)
    monkeypatch.setattr(crews, "_CORES", 2)
    crew = Crew()
    entered, go_on = threading.Event(), threading.Event()
    first_entered, first_go_on = threading.Event(), threading.Event()

    async def main() -> None:
        async def long() -> None:
            assert await crew.do(kept(entered, go_on), expected_s=crews.LONG_S) == "kept"

        with crew.staffed():
            async with anyio.create_task_group() as group:
                group.start_soon(crew.do, kept(first_entered, first_go_on))
                await until(first_entered.is_set)
                group.start_soon(long)
                await until(lambda: len(crew._waiting) == 1)
                group.start_soon(crew.do, told(None, [], "other"))
                await until(lambda: len(crew._waiting) == 2)
                first_go_on.set()
                await until(entered.is_set)
                assert await crew.do(told(7, [], "other")) == 7
                go_on.set()

    run(main)


@pytest.mark.parametrize("half", ["first", "second"])
def test_what_a_half_raises_is_raised_for_whoever_waits(half):
    """And the thread goes on."""
    crew = Crew()

    def fail() -> Confirm[None]:
        raise ValueError(half)

    async def main() -> None:
        with crew.staffed():
            with pytest.raises(ValueError, match=half):
                await crew.do(fail if half == "first" else lambda: fail)
            assert await crew.do(told(7, [], "other")) == 7

    run(main)


def test_work_that_was_handed_over_is_waited_for_also_by_who_is_cancelled():
    """What it did is done; nobody may go on as if it were not."""
    crew = Crew()
    entered, go_on = threading.Event(), threading.Event()
    ends: list[str] = []

    async def main() -> None:
        async def keep() -> None:
            ends.append(await crew.do(kept(entered, go_on)))

        with crew.staffed():
            async with anyio.create_task_group() as group:
                group.start_soon(keep)
                await until(entered.is_set)
                group.cancel_scope.cancel()
                go_on.set()
            with anyio.CancelScope() as scope:
                scope.cancel()
                await crew.do(told(None, ends, "never"))

    run(main)
    assert ends == ["kept"]


def test_its_threads_end_with_the_last_of_its_users():
    """A process that serves nobody has none."""
    crew = Crew()

    async def main() -> None:
        with crew.staffed():
            with crew.staffed():
                await crew.do(told(None, [], "a"))
            assert crew._members
            await crew.do(told(None, [], "b"))

    run(main)
    crew.close()
    assert not crew._members

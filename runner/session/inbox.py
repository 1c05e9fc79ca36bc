"""
Answers on their way from effects to the guest.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import anyio

from runner.kernel.abi import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner.kernel.state import Answer

MAX_WAITING: Final = 64
"""
Answers that may wait before parts of further ones are held back, and with them the provider that streams.
"""


class Inbox:
    """
    Answers in the order in which they came up, for one guest.

    Args:
        waits_for: Whether the guest still waits for an answer to a call; others are dropped.
        on_news: Called when there is an answer to take.
        answers: Those that were there before.
    """

    def __init__(
        self, waits_for: Callable[[int], bool], on_news: Callable[[], None], answers: Iterable[Answer] = ()
    ) -> None:
        self._waits_for = waits_for
        self._on_news = on_news
        self._answers = deque(answers)
        self._room = anyio.Event()

    async def put(self, answer: Answer) -> None:
        """
        Add an answer; a part waits for room.

        What is no part never waits: the effect has happened, and its answer must not get lost.
        """
        while answer.status == Status.PART and len(self._answers) >= MAX_WAITING:
            # One event for all who wait, or only the last of them would hear of it.
            if self._room.is_set():
                self._room = anyio.Event()
            await self._room.wait()
        self._answers.append(answer)
        self._on_news()

    def add(self, answers: Iterable[Answer]) -> None:
        """
        Add answers that were known before anything was done for them.
        """
        self._answers.extend(answers)

    def put_back(self, answers: Iterable[Answer]) -> None:
        """
        Add answers that were taken out, before all others.
        """
        self._answers.extendleft(reversed(tuple(answers)))

    def take(self) -> Answer | None:
        """
        The next answer that the guest waits for, or `None`.
        """
        while self._answers:
            answer = self._answers.popleft()
            self._room.set()
            if self._waits_for(answer.call):
                return answer
        return None

    @property
    def whole(self) -> tuple[Answer, ...]:
        """
        The answers that wait, without the parts of those that are not complete.
        """
        complete = {answer.call for answer in self._answers if answer.status != Status.PART}
        return tuple(
            answer for answer in self._answers if answer.call in complete and self._waits_for(answer.call)
        )

    def __bool__(self) -> bool:
        return bool(self._answers)

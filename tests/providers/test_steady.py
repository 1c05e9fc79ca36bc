"""
Attempts, waits, deadlines and fallbacks. Nothing here sleeps: clocks and chance are the test's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from runner.errors import ContextOverflow, ProviderError
from runner.providers.base import (
    NOTHING_USED,
    Message,
    ModelRequest,
    Retry,
    Stop,
    StreamEvent,
    TextDelta,
    ToolCall,
)
from runner.providers.steady import Clockwork, Fallback, Patience, SteadyProvider
from tests.providers.dialects import WIRES, Wire
from tests.providers.servers import Answer, Cut, Stall, serving

ASK = ModelRequest(model="m", messages=(Message("user", "hi"),))
END = Stop("end")

every_dialect = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.kind)


@dataclass
class Time:
    """
    A clock that stands still unless somebody sleeps, and scopes that end when the test says so.
    """

    now: float = 0.0
    slept: list[float] = field(default_factory=list)
    scopes: list[tuple[float, anyio.CancelScope]] = field(default_factory=list)

    async def sleep(self, delay_s: float) -> None:
        """
        Note it, and let that much time go by.
        """
        self.slept.append(delay_s)
        self.now += delay_s

    def scope(self, limit_s: float) -> anyio.CancelScope:
        """
        One that only the test cancels.
        """
        made = anyio.CancelScope()
        self.scopes.append((limit_s, made))
        return made

    def work(self) -> Clockwork:
        """
        For the provider.
        """
        return Clockwork(now_s=lambda: self.now, sleep=self.sleep, chance=lambda: 0.5, scope=self.scope)


class Scripted:
    """
    An adapter that yields what it was given, attempt by attempt.
    """

    def __init__(self, *attempts: tuple[Any, ...], name: str = "acme") -> None:
        self.name = name
        self.attempts = list(attempts)
        self.asked: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """
        The next attempt.
        """
        self.asked.append(request)
        for event in self.attempts.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event


def failed(status: int | None = 503, **facts: Any) -> ProviderError:
    """
    A failure that may be tried again.
    """
    return ProviderError("acme", f"HTTP status {status}", status=status, retryable=True, **facts)


def follow(provider: SteadyProvider) -> tuple[list[StreamEvent], ProviderError | None]:
    """
    What came, and how it failed.
    """
    events: list[StreamEvent] = []

    async def ask() -> ProviderError | None:
        try:
            async for event in provider.stream(ASK):
                events.append(event)  # noqa: PERF401 - what came before a failure is kept
        except ProviderError as error:
            return error
        return None

    return events, anyio.run(ask)


def steady(inner: Scripted, time: Time, **facts: Any) -> SteadyProvider:
    """
    The adapter with patience around it.
    """
    return SteadyProvider(inner, clockwork=time.work(), **facts)


def test_an_attempt_that_failed_is_made_again() -> None:
    """
    With a longer wait each time, half of it by chance; each attempt is to be seen.
    """
    time, inner = Time(), Scripted((failed(500),), (failed(529),), (TextDelta("hi"), END))
    events, error = follow(steady(inner, time))
    assert error is None
    assert events == [
        Retry(attempt=1, provider="acme", problem="provider acme: HTTP status 500", status=500, wait_ms=375),
        Retry(attempt=2, provider="acme", problem="provider acme: HTTP status 529", status=529, wait_ms=750),
        TextDelta("hi"),
        END,
    ]
    assert time.slept == [0.375, 0.75]


def test_after_three_attempts_it_is_over() -> None:
    """
    The last failure is what is told.
    """
    time, inner = Time(), Scripted((failed(500),), (failed(502),), (failed(503),))
    events, error = follow(steady(inner, time))
    assert [type(event) for event in events] == [Retry, Retry]
    assert error is not None
    assert (error.status, len(inner.asked)) == (503, 3)


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("acme", "HTTP status 400", status=400),
        ProviderError("acme", "HTTP status 401", status=401),
        ContextOverflow("acme", status=400),
        ProviderError("acme", "sent what is not JSON"),
    ],
)
def test_a_fault_of_the_request_is_not_tried_again(error: ProviderError) -> None:
    """
    It would fail again, and cost again.
    """
    time, inner = Time(), Scripted((error,))
    assert follow(steady(inner, time)) == ([], error)
    assert (len(inner.asked), time.slept) == (1, [])


@pytest.mark.parametrize("event", [TextDelta("so"), ToolCall("1", "t", {}), NOTHING_USED])
def test_after_the_first_word_nothing_is_tried_again(event: StreamEvent) -> None:
    """
    What was handed on can't be taken back.
    """
    time, inner = Time(), Scripted((event, failed()))
    events, error = follow(steady(inner, time))
    assert events == [event]
    assert error is not None
    assert len(inner.asked) == 1


def test_a_provider_is_left_alone_as_long_as_it_asks() -> None:
    """
    To the millisecond, and without chance.
    """
    time, inner = Time(), Scripted((failed(429, retry_after_ms=2500),), (END,))
    events, _ = follow(steady(inner, time))
    assert time.slept == [2.5]
    assert isinstance(events[0], Retry)
    assert events[0].wait_ms == 2500


def test_who_asks_for_too_long_is_not_asked_again() -> None:
    """
    The caller would rather know now.
    """
    time, inner = Time(), Scripted((failed(429, retry_after_ms=60_001),))
    events, error = follow(steady(inner, time))
    assert (events, time.slept) == ([], [])
    assert error is not None
    assert error.retry_after_ms == 60_001


def test_waits_of_our_own_have_a_bound() -> None:
    """
    However many attempts there are.
    """
    time, inner = Time(), Scripted(*((failed(),) for _ in range(8)), (END,))
    follow(steady(inner, time, patience=Patience(retries=8)))
    assert time.slept == [0.375, 0.75, 1.5, 3.0, 6.0, 6.0, 6.0, 6.0]


def test_no_wait_goes_beyond_the_end() -> None:
    """
    When all the time is used up, the failure is told at once.
    """
    time, inner = Time(), Scripted((failed(429, retry_after_ms=20_000),), (END,))
    _, error = follow(steady(inner, time, patience=Patience(total_s=20.0)))
    assert error is not None
    assert time.slept == []


def test_another_provider_answers_when_all_else_failed() -> None:
    """
    With its own model; that is to be seen too.
    """
    time = Time()
    inner, other = Scripted(*((failed(),) for _ in range(3))), Scripted((TextDelta("hi"), END), name="other")
    asked: list[str] = []

    def fallback(model: str) -> Fallback:
        asked.append(model)
        return Fallback(other, "small")

    events, error = follow(steady(inner, time, fallback=fallback))
    assert error is None
    assert events[2:] == [
        Retry(attempt=3, provider="acme", problem="provider acme: HTTP status 503", status=503, wait_ms=0),
        TextDelta("hi"),
        END,
    ]
    assert asked == ["m"]
    assert [request.model for request in other.asked] == ["small"]


@pytest.mark.parametrize(
    "attempt", [(ProviderError("acme", "HTTP status 400", status=400),), (TextDelta("so"), failed())]
)
def test_nobody_answers_for_a_fault_of_the_request_or_goes_on_with_half_an_answer(
    attempt: tuple[Any, ...],
) -> None:
    """
    A fallback is for a provider that is down.
    """
    other = Scripted(name="other")
    _, error = follow(steady(Scripted(attempt), Time(), fallback=lambda model: Fallback(other, model)))
    assert error is not None
    assert other.asked == []


def test_a_fallback_may_be_refused() -> None:
    """
    Then the failure is what it was.
    """
    _, error = follow(steady(Scripted(*((failed(),) for _ in range(3))), Time(), fallback=lambda _: None))
    assert error is not None
    assert error.status == 503


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((END, TextDelta("more")), None),
        ((TextDelta("so"),), "the answer broke off"),
        ((NOTHING_USED, NOTHING_USED, END), "counted twice"),
        (
            (ToolCall("1", "t", {}), ToolCall("1", "t", {}), END),
            "called a tool without an identity of its own",
        ),
        ((ToolCall("", "t", {}), END), "called a tool without an identity of its own"),
        ((ToolCall("1", "", {}), END), "called a tool without a name"),
        ((Stop("because"), END), "ended for no reason"),  # type: ignore[arg-type]
        (({"text": "so"}, END), "sent what is no event"),
        ((Retry(attempt=1, provider="x", problem="", status=None, wait_ms=0), END), "tried again by itself"),
        (tuple(ToolCall(str(n), "t", {}) for n in range(257)), "called more tools than any turn has"),
    ],
)
def test_an_adapter_is_held_to_the_port(events: tuple[Any, ...], problem: str | None) -> None:
    """
    It is trusted no more than whom it asks.
    """
    _, error = follow(steady(Scripted(events), Time(), patience=Patience(retries=0)))
    assert (error and error.message) == (problem and f"provider acme: {problem}")


@every_dialect
def test_a_silent_stream_is_given_up(wire: Wire) -> None:
    """
    After some text or before the first byte; its connection is closed.
    """

    async def scenario(*before: bytes) -> str:
        time = Time()
        async with serving(wire.answer(*before, Stall())) as server:
            inner = wire.provider(server.origin)
            provider = SteadyProvider(inner, Patience(retries=0), clockwork=time.work())

            async def give_up() -> None:
                await server.stalled.wait()
                limit_s, scope = time.scopes[-1]
                assert limit_s == 120.0
                scope.cancel()

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(give_up)
                    with pytest.raises(ProviderError) as caught:
                        async for _ in provider.stream(ASK):
                            pass
                await server.gone.wait()
        assert caught.value.retryable
        return caught.value.message

    for before in ((), (wire.write(*wire.begin, wire.text("so")),)):
        assert anyio.run(scenario, *before) == f"provider {wire.kind}: sent nothing for 120 s"


@every_dialect
def test_an_answer_without_end_is_given_up(wire: Wire) -> None:
    """
    The total time holds however lively it is.
    """

    async def scenario() -> None:
        time = Time()
        async with serving(wire.answer(wire.write(*wire.begin, wire.text("so")), Stall())) as server:
            inner = wire.provider(server.origin)
            provider = SteadyProvider(inner, Patience(retries=0, total_s=90.0), clockwork=time.work())

            async def give_up() -> None:
                await server.stalled.wait()
                limit_s, scope = time.scopes[-1]
                assert limit_s == 90.0
                scope.cancel()

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(give_up)
                    with pytest.raises(ProviderError) as caught:
                        async for _ in provider.stream(ASK):
                            pass
        assert caught.value.message == f"provider {wire.kind}: the answer took longer than 90 s"
        assert not caught.value.retryable

    anyio.run(scenario)


@every_dialect
@pytest.mark.parametrize(("bad", "requests"), [("429", 3), ("503", 3), ("reset", 3), ("400", 1), ("cut", 1)])
def test_a_server_is_asked_as_often_as_it_should(wire: Wire, bad: str, requests: int) -> None:
    """
    Counted by the server: the SDK below makes no attempts of its own.
    """
    answers: dict[str, Answer] = {
        "reset": wire.answer(Cut()),
        "cut": wire.answer(wire.write(*wire.begin, wire.text("so")), Cut()),
    }
    refusal = answers.get(bad) or wire.refuses(int(bad), retry_after="1")

    async def scenario() -> int:
        time = Time()
        async with serving(refusal, refusal, wire.says("hi")) as server:
            provider = SteadyProvider(wire.provider(server.origin), clockwork=time.work())
            with anyio.move_on_after(20):
                try:
                    events = [event async for event in provider.stream(ASK)]
                    assert TextDelta("hi") in events
                except ProviderError:
                    assert requests == 1
            return len(server.received)

    assert anyio.run(scenario) == requests

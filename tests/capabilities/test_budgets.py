"""
What a request may cost, what it did cost, and what happens when nobody says.
"""

from __future__ import annotations

from typing import Any

import pytest

from runner.capabilities.asking import estimate_tokens
from runner.errors import ProviderError
from runner.kernel.abi import Status
from runner.policy.budgets import Budget, Charge
from runner.policy.prices import PINNED, PriceTable, per_million
from runner.providers.base import (
    ImagePart,
    Message,
    ModelRequest,
    Retry,
    Stop,
    TextDelta,
    ToolCall,
    ToolSpec,
    Usage,
)
from tests.capabilities.doubles import Agent, Model, Shed, calls, says

PRICES = PriceTable("test", "1", {"default": per_million(1, 5, 0.1, 1.25), "dear": per_million(1000, 1000)})


def kind_and_message(result: Any) -> tuple[Status, str, str]:
    """How a call was refused."""
    return result.status, result.payload["kind"], result.payload["message"]


def test_a_loop_is_stopped_before_the_request_that_its_budget_does_not_cover():
    """Inside one chat, not only between chats."""
    model = Model(calls("look", usage=Usage(50, 10)))
    agent = Agent(model=model, tools=[Shed().tool("look")], budget=Budget(tokens=400))
    status, kind, message = kind_and_message(agent.call(tools=["look"]))
    assert (status, kind) == (Status.LIMIT, "budget")
    assert message.startswith("budget tokens is used up: ")
    assert agent.usage.total.calls == len(model.asked)
    assert agent.usage.charged.tokens == 60 * len(model.asked) <= 400
    assert all(request.max_tokens for request in model.asked)


def test_a_loop_may_be_bounded_by_the_operator_too():
    """The smaller of both bounds holds."""
    agent = Agent(model=Model(calls("look")), tools=[Shed().tool("look")], budget=Budget(turns=2))
    assert agent.call(tools=["look"], max_turns=7).payload["stop"] == "max_turns"
    assert agent.usage.calls == 2


def test_a_request_of_which_nobody_says_what_it_cost_has_cost_what_was_reserved():
    """A refusal by status has cost nothing."""
    broken = Model([TextDelta("a"), ProviderError("p", "connection reset")])
    agent = Agent(model=broken, budget=Budget(tokens=1000))
    agent.call(max_tokens=100)
    [reserved] = [step["reserved"]["tokens"] for step in agent.steps if step["step"] == "request"]
    assert agent.usage.charged == Charge(1, reserved, 0, agent.usage.charged.wall_ms)
    refused = Agent(
        model=Model([ProviderError("p", "HTTP status 529", status=529)]), budget=Budget(tokens=1000)
    )
    refused.call()
    assert refused.usage.charged.tokens == 0
    silent = Agent(model=Model([TextDelta("a"), Stop("end")]), budget=Budget(tokens=1000))
    assert silent.call(max_tokens=100).payload["usage"]["input_tokens"] is None
    assert silent.usage.charged.tokens == reserved


def test_every_attempt_is_on_record_and_one_that_broke_has_used_up_what_was_reserved():
    """One that was refused with a status has not."""
    broke = Retry(attempt=1, provider="scripted", problem="connection reset", status=None, wait_ms=0)
    busy = Retry(attempt=2, provider="scripted", problem="HTTP status 529", status=529, wait_ms=0)
    agent = Agent(model=Model([broke, busy, *says("hi")]), budget=Budget(tokens=5000))
    assert agent.call(max_tokens=100).payload["text"] == "hi"
    assert [step["step"] for step in agent.steps] == [
        "request", "failed", "request", "retry", "retry", "turn",
    ]  # fmt: skip
    reserved = agent.steps[0]["reserved"]["tokens"]
    assert agent.usage.charged.tokens == reserved + 4


def test_a_model_that_takes_longer_than_what_is_left_of_the_time_is_given_up():
    """And none is asked when nothing is left."""
    model = Model(says("x"), hangs=True)
    agent = Agent(model=model, budget=Budget(wall_ms=1))
    for _ in range(2):
        status, kind, message = kind_and_message(agent.call())
        assert (status, kind) == (Status.LIMIT, "budget")
        assert message.startswith("budget wall_ms is used up: ")
    assert len(model.asked) == 1


def test_money_bounds_an_answer_by_what_its_tokens_cost():
    """At the price of the model that is asked; one without a price is not asked."""
    model = Model(says("x", Usage(1000, 10)), name="vendor")
    budget = Budget(usd_pico=10**9)
    agent = Agent(model=model, budget=budget, prices=PRICES)
    assert agent.call(model="vendor/default").payload["usage"]["cost_usd"] == 1050 / 10**6
    [request] = model.asked
    spent_on_input = estimate_tokens(request) * 1.25
    assert request.max_tokens == int((1000 - spent_on_input) / 5)
    assert kind_and_message(agent.call(model="vendor/default")) == (
        Status.LIMIT,
        "budget",
        "budget usd is used up: $0.0011 of $0.0010",
    )
    unpriced = Agent(model=model, budget=budget, prices=PRICES).call(model="vendor/unheard-of")
    assert kind_and_message(unpriced)[2].startswith("no price is known for vendor/unheard-of")
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("model", "cost"),
    [("p/default", 1000 * 1 + 10 * 5), ("p/default-20260101", 1000 * 1 + 10 * 5), ("p/other", None)],
)
def test_a_price_is_found_by_the_longest_name_that_a_models_begins_with(model: str, cost: int | None):
    """In 10^-6 dollars here."""
    price = PRICES.price(model)
    assert (price and price.cost(1000, 10) // 10**6) == cost


def test_a_cache_has_prices_of_its_own():
    """What is read from it is part of the input."""
    price = per_million(1, 5, 0.1, 1.25)
    assert price.cost(1000, 0, 600, 100) == (300 * 100 + 600 * 10 + 100 * 125) * 10**4
    assert price.at_most(100, 10) == (100 * 125 + 10 * 500) * 10**4
    assert PINNED.price("anthropic/claude-haiku-4-5-20251001") == price


def test_pictures_tools_and_what_was_said_count_towards_a_request():
    """With some for each message."""
    plain = ModelRequest(messages=(Message("user", "x" * 100),), model="m")
    assert estimate_tokens(plain) == 50 + 32
    rich = ModelRequest(
        messages=(
            Message("user", (ImagePart("image/png", bytes(10**6)),)),
            Message("assistant", (ToolCall("c", "look", {"n": 1}),)),
        ),
        model="m",
        tools=(ToolSpec("look", "Looks.", {}),),
    )
    assert 4000 < estimate_tokens(rich) < 4200


def test_a_budget_comes_back_from_the_limits_of_a_birth():
    """The rest of them is the kernel's."""
    budget = Budget.parse(["tokens=10k,usd=0.5", "wall=2m,turns=3"])
    assert budget == Budget(tokens=10_000, usd_pico=5 * 10**11, wall_ms=120_000, turns=3)
    assert Budget.from_limits({"fuel": 5, **budget.to_limits()}) == (budget, {"fuel": 5})

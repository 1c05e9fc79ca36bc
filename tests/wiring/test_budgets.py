"""
What a named instance may spend on models: with its forks, its restores and its retries.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runner.errors import BudgetExceeded, ConfigError, RunnerError, UsageError
from runner.policy.budgets import Budget, Charge
from runner.wiring import (
    Options,
    fork_named,
    remove_named,
    restore_named,
    restore_snapshot,
    run_agent,
    run_named,
    send,
    snapshot_named,
    usage_named,
)
from runner.wiring.ledger import SharedAccount, read_spent

OptionsFor = Callable[..., Options]

# Asks the model what it was handed, as a request, and replies with the answer; fails when it got none.
PROXY = r"""(module
  (import "llm" "chat" (func $chat (param i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (import "agent" "fail" (func $fail (param i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\a1\67message\67no luck")
  (data (i32.const 100) "\f6")
  (global $delivery (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (if (i32.eq (local.get $kind) (i32.const 4))
      (then (drop (call $reply (local.get $n) (i32.const 100) (i32.const 1))) (return)))
    (drop (call $chat (i32.const 1000) (call $take (i32.const 1000) (i32.const 50000)))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    (if (i32.eq (local.get $status) (i32.const 1)) (then (return)))
    (if (i32.lt_s (local.get $status) (i32.const 0))
      (then (drop (call $fail (global.get $delivery) (i32.const 0) (i32.const 17))) (return)))
    (drop (call $reply (global.get $delivery) (i32.const 1000)
      (call $take (i32.const 1000) (i32.const 50000))))))"""

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "how are you today?"}], "max_tokens": 300}


@pytest.fixture
def proxy(tmp_path: Path) -> Path:
    """An agent that asks what it is told to."""
    path = tmp_path / "proxy.wat"
    path.write_text(PROXY)
    return path


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Path]:
    """A script of these answers for any request."""

    def write(**answer: Any) -> Path:
        path = tmp_path / "script.json"
        path.write_text(json.dumps({"rules": [answer]}))
        return path

    return write


def spent(names: list[str], state: Path) -> int:
    """Tokens that instances read and wrote, past that they share counted once for each."""
    total = 0
    for name in names:
        for row in usage_named(name, state=state)["models"]:
            total += row["input_tokens"] + row["output_tokens"]
    return total


def until_refused(deliver: Callable[[], Any]) -> tuple[int, RunnerError]:
    """How often it went well, and how it ended."""
    for count in range(1000):
        try:
            deliver()
        except BudgetExceeded as error:
            return count, error
    raise AssertionError


def test_a_budget_of_tokens_holds_over_storms_forks_restores_and_removals(
    proxy: Path, script: Callable[..., Path], options: OptionsFor, state: Path, tmp_path: Path
):
    """Whoever asks, in whatever life: together they read and write no more than it."""
    answer = {"reply": "word " * 250}
    ask = options(allow=("llm",), budget=("tokens=10000",), script=script(**answer))
    run_named(proxy, "a", ASK, ask)
    one = spent(["a"], state)
    assert one == 4 + 250
    # A broken stream costs what was reserved for it, for nobody knows better.
    broken = options(script=script(events=[{"text": "x"}, {"fault": "reset"}]))
    for _ in range(3):
        with pytest.raises(RunnerError, match=r"^no luck$"):
            send("a", ASK, broken)
    # One that was refused with a status costs nothing.
    storm = options(script=script(fault="http", status=529))
    for _ in range(5):
        with pytest.raises(RunnerError, match=r"^no luck$"):
            send("a", ASK, storm)
    plain = options(script=script(**answer))
    names = ["b", "c", "d", "e"]
    for name in names:
        fork_named("a", name, state=state)
    snapshot_named("a", tmp_path / "a.snap", state=state)
    asked = 1
    for name in ("a", *names):
        for _ in range(4):
            send(name, ASK, plain)
            asked += 1
    restored = options(allow=("llm",), budget=("tokens=10000",), script=script(**answer))
    restore_named(tmp_path / "a.snap", "f", ASK, restored, agent=proxy)
    asked += 1
    remove_named(["b"], state=state)
    for name in ("c", "f", "a"):
        count, error = until_refused(lambda name=name: send(name, ASK, plain))  # type: ignore[misc]
        asked += count
        assert error.kind == "budget"
        assert error.exit_code == 4
    reserved = -(-len("how are you today?") // 2) + 32 + 300
    charged = asked * one + 3 * reserved
    assert charged <= 10_000
    # And what was left was not enough for one more.
    assert charged + one > 10_000 - reserved


@pytest.mark.parametrize(
    ("budget", "answered", "message"),
    [
        ("calls=3", 3, "budget calls is used up: 4 of 3"),
        ("tokens=700", 2, "budget tokens is used up: "),
    ],
)
def test_a_request_beyond_a_budget_is_not_made(
    proxy: Path, script: Callable[..., Path], options: OptionsFor, budget: str, answered: int, message: str
):
    """The agent hears of it, and what it says then comes out as the end of the budget."""
    ask = {**ASK, "max_tokens": 100}
    choices = options(allow=("llm",), budget=(budget,), script=script(reply="word " * 250))
    run_named(proxy, "a", ask, choices)
    plain = options(script=script(reply="word " * 250))
    count, error = until_refused(lambda: send("a", ask, plain))
    assert error.message.startswith(message)
    assert error.details["said"] == "no luck"
    assert 1 + count >= answered


def test_an_answer_that_a_budget_cut_is_no_answer(
    proxy: Path, script: Callable[..., Path], options: OptionsFor
):
    """It would look like one."""
    choices = options(allow=("llm",), budget=("tokens=200",), script=script(reply="word " * 250))
    with pytest.raises(BudgetExceeded, match=r"^budget tokens is used up: "):
        run_agent(proxy, ASK, choices)


def test_a_budget_in_usd_needs_a_price(proxy: Path, script: Callable[..., Path], options: OptionsFor):
    """The scripted model is free."""
    choices = options(allow=("llm",), budget=("usd=0.01",), script=script(reply="hi"))
    assert run_agent(proxy, ASK, choices).result["text"] == "hi"


def test_a_snapshot_takes_along_what_was_spent(
    proxy: Path, script: Callable[..., Path], options: OptionsFor, tmp_path: Path
):
    """So that restoring it without a name refunds nothing either."""
    path = tmp_path / "one.snap"
    ask = options(allow=("llm",), budget=("calls=2",), script=script(reply="hi"), snapshot=path)
    run_agent(proxy, ASK, ask)
    again = options(allow=("llm",), budget=("calls=2",), script=script(reply="hi"), snapshot=path)
    restore_snapshot(path, ASK, again, agent=proxy)
    with pytest.raises(BudgetExceeded, match=r"^budget calls is used up: 3 of 2$"):
        restore_snapshot(path, ASK, again, agent=proxy)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tokens",), "--budget 'tokens' is not KEY=VALUE"),
        (("coins=3",), "--budget 'coins=3' is not KEY=VALUE"),
        (("tokens=0",), "--budget tokens=0 is no amount of tokens above zero"),
        (("usd=nan",), "--budget usd=nan is no amount of usd above zero"),
        (("tokens=1,tokens=2",), "--budget says tokens twice"),
    ],
)
def test_a_budget_that_is_none_is_refused(
    proxy: Path, options: OptionsFor, words: tuple[str, ...], message: str
):
    """Before anything is made."""
    with pytest.raises(UsageError) as raised:
        run_named(proxy, "a", ASK, options(allow=("llm",), budget=words))
    assert raised.value.message == message


def test_a_persona_that_cannot_be_read_starts_nothing(proxy: Path, options: OptionsFor, tmp_path: Path):
    """No instance is left behind."""
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"persona\.md: can't be read: No such file or directory$"):
            run_named(proxy, "a", ASK, options(allow=("llm",), persona=tmp_path / "persona.md"))


def test_of_two_that_spend_at_once_only_one_gets_what_is_left(tmp_path: Path):
    """Each with a row of its own, as two processes have it."""
    budget, one, many = Budget(tokens=1000), Charge(1, 7), Charge(1, 5)
    accounts = [SharedAccount(tmp_path, b"l" * 32, Charge()) for _ in range(3)]

    def spend(account: SharedAccount) -> int:
        count = 0
        while account.reserve(budget, one, Charge()) is None:
            account.settle(one, many)
            count += 1
        return count

    with ThreadPoolExecutor() as pool:
        counts = list(pool.map(spend, accounts))
    assert 994 - 2 * 7 < 5 * sum(counts) <= 1000
    assert read_spent(tmp_path, b"l" * 32).tokens == 5 * sum(counts)
    assert SharedAccount(tmp_path, b"l" * 32, Charge(tokens=1200)).spent().tokens == 1200

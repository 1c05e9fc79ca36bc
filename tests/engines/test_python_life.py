"""Python agents: what they do in a delivery, across freezing, and from build to build."""

# ruff: noqa: E501 - an agent of some lines is one text

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import codec
from runner.kernel.abi import DeliveryKind, Status
from runner.kernel.state import Restored
from tests.engines.driver import Failed, Interpreter, Living, Refusal, Request, same_state

pytestmark = pytest.mark.python

ANSWER = {
    "text": "fine",
    "stop": "end",
    "model": "m",
    "usage": {"calls": 1, "input_tokens": 2, "output_tokens": 3},
}

THREE_CALLS = """
from agent import llm, gather

seen = {}

def numbers():
    for i in range(100):
        yield i

async def inner(question, take):
    text = await llm.chat(question)
    seen[question] = next(take)
    return text

async def outer(question, take):
    return await inner(question, take)

async def run(input):
    take = numbers()
    next(take)
    texts = await gather(*[outer(q, take) for q in ("a", "b", "c")])
    return {"texts": texts, "seen": seen, "next": next(take), "order": list(seen)}
"""


def module(text: str, name: str = "main.py") -> dict[str, Any]:
    """One module of an agent's."""
    dotted = name.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    return {"name": name, "module": dotted, "package": name.endswith("__init__.py"), "text": text}


@pytest.fixture(scope="module")
def python(engine_python: bytes) -> Interpreter:
    """The engine, compiled once."""
    return Interpreter(engine_python)


def started(python: Interpreter, text: str) -> Living:
    """An instance of an agent that is one module."""
    return python.load([module(text)]).instance()


def chat(request: Request) -> dict[str, Any]:
    """What the model says."""
    return {**ANSWER, "text": request.request["messages"][-1]["content"] * 2}


def test_an_agent_replies_what_its_run_returns(python: Interpreter) -> None:
    """Values come back as they were."""
    value = {"a": [1, -1, 2**64 - 1, -(2**64), 1.5, 0.1, "é😀", b"\0\xff", None, True, {}, []]}
    assert started(python, "def run(input):\n    return input\n").message(value) == value


def test_dicts_keep_their_order_and_tuples_are_lists(python: Interpreter) -> None:
    """As every author expects."""
    text = "def run(n):\n    d = {}\n    for w in 'zebra apple mango kiwi'.split(): d[w] = (1, 2)\n    return [list(d), d['kiwi']]\n"
    assert started(python, text).message(None) == [["zebra", "apple", "mango", "kiwi"], [1, 2]]


def test_subclasses_leave_as_what_they_are_by_birth(python: Interpreter) -> None:
    """Named tuples are lists, and so on."""
    text = (
        "from collections import namedtuple, OrderedDict\nN = namedtuple('N', 'a b')\nclass P(N): pass\nclass D(dict): pass\n"
        "class I(int): pass\nclass S(str): pass\n"
        "def run(x):\n    return [N(1, 2), P(3, 4), (1,) + P(5, 6), D(k=1), I(7), S('s'), OrderedDict(z=1)]\n"
    )
    replied = started(python, text).message(None)
    assert replied == [[1, 2], [3, 4], [1, 5, 6], {"k": 1}, 7, "s", {"z": 1}]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("{1, 2}", "TypeError: set can't leave the agent"),
        ("{1: 2}", "TypeError: a dict that leaves the agent has str keys only, not int"),
        ("2 ** 64", "OverflowError: an int beyond 64 bits and a sign can't leave the agent"),
        ("[0] * 65536", "ValueError: more than 65536 items can't leave the agent at once"),
    ],
)
def test_what_can_not_leave_the_agent_is_an_error_that_says_so(
    python: Interpreter, expression: str, message: str
) -> None:
    """And the instance lives on."""
    instance = started(python, f"def run(n):\n    return n or ({expression})\n")
    with pytest.raises(Failed, match=r".") as failed:
        instance.message(None)
    assert failed.value.message == message
    assert instance.message(1) == 1


def test_state_lives_on_from_message_to_message(python: Interpreter) -> None:
    """Module variables are memory."""
    instance = started(python, "n = 0\ndef run(x):\n    global n\n    n += x\n    return n\n")
    assert [instance.message(2) for _ in range(3)] == [2, 4, 6]


def test_handlers_are_told_and_called_by_kind(python: Interpreter) -> None:
    """Each kind has its function."""
    text = "".join(
        f"def {name}(x):\n    return ['{name}', x]\n" for name in ("run", "on_event", "on_tick", "on_restore")
    )
    agent = python.load([module(text)])
    assert agent.answer == {"handlers": ["run", "event", "tick", "restore"]}
    kinds = (DeliveryKind.MESSAGE, DeliveryKind.EVENT, DeliveryKind.TICK, DeliveryKind.RESTORE)
    instance = agent.instance()
    assert [instance.message(1, kind=kind)[0] for kind in kinds] == [
        "run",
        "on_event",
        "on_tick",
        "on_restore",
    ]


def test_an_object_may_have_the_handlers(python: Interpreter) -> None:
    """Instead of functions: a class named `agent`."""
    text = "class agent:\n    def __init__(self):\n        self.n = 0\n    async def run(self, x):\n        self.n += x\n        return self.n\n"
    instance = started(python, text)
    assert [instance.message(1), instance.message(1)] == [1, 2]


def test_a_kind_without_a_handler_fails_and_a_restore_is_answered_with_null(python: Interpreter) -> None:
    """No agent has to care for every kind."""
    instance = started(python, "def run(x):\n    return x\n")
    with pytest.raises(Failed, match=r"^no handler for 'event'$"):
        instance.message(None, kind=DeliveryKind.EVENT)
    assert instance.message(None, kind=DeliveryKind.RESTORE) is None


def test_an_uncaught_error_names_file_line_and_stack(python: Interpreter) -> None:
    """In the words of the language."""
    instance = started(
        python, "def inner():\n    raise ValueError('bad')\n\nasync def run(x):\n    inner()\n"
    )
    with pytest.raises(Failed) as failed:
        instance.message(None)
    assert failed.value.message == "ValueError: bad"
    data = failed.value.data
    assert (data["name"], data["message"], data["file"], data["line"]) == ("ValueError", "bad", "main.py", 2)
    assert data["stack"] == (
        'Traceback (most recent call last):\n  File "main.py", line 5, in run\n'
        '  File "main.py", line 2, in inner\nValueError: bad'
    )


def test_lines_are_the_author_s(python: Interpreter) -> None:
    """What was compiled is not what was written; the table maps."""
    record = module("def run(x):\n    y = 1\n    raise KeyError('k')\n")
    record["lines"] = b"".join(line.to_bytes(2, "little") for line in (10, 11, 300))
    with pytest.raises(Failed) as failed:
        python.load([record]).instance().message(None)
    assert (failed.value.message, failed.value.data["line"]) == ("KeyError: 'k'", 300)


@pytest.mark.parametrize(
    ("text", "kind", "message", "line"),
    [
        ("def run(x)\n    pass\n", "syntax", "SyntaxError: invalid syntax", 1),
        (
            "import os\ndef run(x): pass\n",
            "import",
            "ImportError: module 'os' is not available to an agent",
            1,
        ),
        ("x = 1\nx.y\n", "load", "AttributeError: 'int' object has no attribute 'y'", 2),
        ("x = 1\nwhile True: pass\n", "load", "RuntimeError: does not finish loading", 2),
        (
            "from agent import llm\nllm.chat('x')\n",
            "load",
            "HostError: llm.chat: an agent can't ask anything while it loads",
            2,
        ),
    ],
)
def test_an_agent_that_can_not_be_loaded_says_why_and_where(
    python: Interpreter, text: str, kind: str, message: str, line: int
) -> None:
    """Each failure has a kind."""
    with pytest.raises(Failed) as failed:
        python.load([module(text)])
    data = failed.value.data
    assert (failed.value.message, data["kind"], data["file"], data["line"]) == (
        message,
        kind,
        "main.py",
        line,
    )


def test_an_agent_without_an_entry_point_is_refused(python: Interpreter) -> None:
    """Of kind `entry`."""
    with pytest.raises(Failed) as failed:
        python.load([module("x = 1\n")])
    assert failed.value.data["kind"] == "entry"


def test_modules_and_packages_import_each_other(python: Interpreter) -> None:
    """Absolutely, relatively, and in a circle."""
    modules = [
        module(
            "from lib.util import twice\nimport lib.deep.far as far\ndef run(x):\n    return [twice(x), far.NAME, lib_name()]\nfrom lib import lib_name\n"
        ),
        module("from .util import twice\ndef lib_name():\n    return __name__\n", "lib/__init__.py"),
        module("from . import deep\nfrom .deep import far\ndef twice(x):\n    return 2 * x\n", "lib/util.py"),
        module("", "lib/deep/__init__.py"),
        module("from ...lib import util\nNAME = __name__\n".replace("...lib", ".."), "lib/deep/far.py"),
    ]
    assert python.load(modules, "main.py").instance().message(4) == [8, "lib.deep.far", "lib"]


def test_three_calls_in_flight_survive_a_freeze_and_any_order_of_answers(python: Interpreter) -> None:
    """Nested coroutines, a generator half-way, a dict in a closure: all of it is memory."""
    agent = python.load([module(THREE_CALLS)])
    plain, frozen = agent.instance(), agent.instance()
    for one in (plain, frozen):
        one.deliver("go")
        assert [call.operation for call in one.calls] == ["llm.chat"] * 3
    numbers = [call.number for call in plain.calls]
    for number in (numbers[2], numbers[0], numbers[1]):
        frozen = agent.thaw(frozen.freeze())
        for one in (plain, frozen):
            one.answer(number, {**ANSWER, "text": str(number - numbers[0])})
    assert same_state(plain.freeze(), frozen.freeze())
    assert plain.steps[-1].reply is not None
    reply = codec.decode(plain.steps[-1].reply.payload)
    assert reply == {
        "texts": ["0", "1", "2"],
        "seen": {"c": 1, "a": 2, "b": 3},
        "next": 4,
        "order": ["c", "a", "b"],
    }


def test_hundreds_of_freezes_change_nothing(python: Interpreter) -> None:
    """An instance that was frozen after every slice has the memory of one that never was."""
    text = "from agent import llm\nkept = []\nasync def run(x):\n    kept.append((x, await llm.chat(str(x))))\n    del kept[:-5]\n    return len(kept)\n"
    agent = python.load([module(text)])
    plain, frozen = agent.instance(), agent.instance()
    for n in range(250):
        for one in (plain, frozen):
            one.steps.clear()
            one.deliver(n)
        frozen = agent.thaw(frozen.freeze())
        for one in (plain, frozen):
            one.answer(one.calls[0].number, ANSWER)
        frozen = agent.thaw(frozen.freeze())
    assert same_state(plain.freeze(), frozen.freeze())


def test_loading_twice_gives_the_same_image_also_in_another_process(
    python: Interpreter, engine_python: bytes, tmp_path: Path
) -> None:
    """Nothing of a process gets into it."""
    first, second = (python.load([module(THREE_CALLS)]).image.mind for _ in range(2))
    assert first == second
    (tmp_path / "engine").write_bytes(engine_python)
    script = (
        "import hashlib, pathlib, sys; sys.path.insert(0, sys.argv[2]); from tests.engines.driver import Interpreter\n"
        "mind = Interpreter(pathlib.Path(sys.argv[1]).read_bytes()).load([eval(sys.argv[3])]).image.mind\n"
        "print(hashlib.sha256(repr(sorted(mind.pages.items())).encode()).hexdigest())"
    )
    command = [
        sys.executable,
        "-c",
        script,
        str(tmp_path / "engine"),
        str(Path(__file__).parents[2]),
        repr(module(THREE_CALLS)),
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert told == hashlib.sha256(repr(sorted(first.pages.items())).encode()).hexdigest()


def test_errors_of_calls_are_raised_where_they_are_awaited(python: Interpreter) -> None:
    """With their kind."""
    text = (
        "from agent import tool, HostError\nasync def run(x):\n    try:\n        await tool.call('t', {})\n"
        "    except HostError as e:\n        return [e.kind, str(e)]\n"
    )
    refusal = Refusal(Status.DENIED, "denied", "not today")
    assert started(python, text).message(None, lambda _: refusal) == ["denied", "not today"]


def test_an_operation_that_is_not_granted_is_an_error_of_the_call(engine_python: bytes) -> None:
    """The message names it."""
    python = Interpreter(engine_python, denied=frozenset({"llm.chat"}))
    text = "from agent import llm\nasync def run(x):\n    return await llm.chat('x')\n"
    with pytest.raises(Failed, match=r"^HostError: llm\.chat is not granted$"):
        started(python, text).message(None)


def test_streamed_parts_reach_a_callback_and_a_loop(python: Interpreter) -> None:
    """The whole text comes as well."""
    text = (
        "from agent import llm\nasync def run(x):\n    got = []\n    whole = await llm.chat('q', on_token=got.append)\n"
        "    stream = llm.stream('q')\n    async for part in stream:\n        got.append(part)\n    return [got, whole, await stream]\n"
    )
    instance = started(python, text)
    result = instance.deliver(None)
    for _ in range(2):
        number = instance.calls[0].number
        instance.part(number, {"text": "fi"})
        instance.part(number, {"text": "ne"})
        result = instance.answer(number, ANSWER)
    assert result.reply is not None
    assert codec.decode(result.reply.payload) == [["fi", "ne", "fi", "ne"], "fine", "fine"]


def test_work_goes_on_after_the_reply_and_its_errors_are_logged(python: Interpreter) -> None:
    """Nobody awaits it, so the log is told."""
    text = (
        "from agent import llm, create_task\nasync def later():\n    print(await llm.chat('x'))\n    raise ValueError('late')\n"
        "async def run(x):\n    create_task(later())\n    return 'now'\n"
    )
    instance = started(python, text)
    assert instance.message(None) == "now"
    instance.drain(chat)
    assert instance.log_texts[0] == "xx"
    assert "ValueError: late" in instance.log_texts[1]


def test_a_wait_for_nothing_is_a_clear_failure(python: Interpreter) -> None:
    """Instead of silence."""
    text = "from agent import Future\nasync def run(x):\n    await Future()\n"
    with pytest.raises(Failed, match=r"^RuntimeError: the agent waits for something that will never come$"):
        started(python, text).message(None)


def test_a_timer_needs_a_resident_host(python: Interpreter) -> None:
    """And the error says so at once."""
    text = "from agent import after\ndef run(x):\n    after(10, print)\n"
    instance = python.load([module(text)]).instance(keeps_timers=False)
    with pytest.raises(Failed, match=r"timers need a resident host \(resident mode\)$"):
        instance.message(None)


def test_timers_call_functions_and_hand_payloads_to_on_tick(python: Interpreter) -> None:
    """On a host that keeps them."""
    text = (
        "from agent import after, every, wait_for, Future\ngot = []\ndef on_tick(p):\n    got.append(p)\n"
        "async def run(x):\n    if x:\n        return got\n    after(5, lambda: got.append('f'))\n    every(5, 'p')\n"
    )
    instance = started(python, text)
    instance.message(None)
    first, second = instance.calls
    instance.part(second.number, "p")
    instance.answer(first.number)
    assert instance.message(1) == ["p", "f"]


def test_a_wait_that_takes_too_long_ends(python: Interpreter) -> None:
    """And what it waited for is given up."""
    text = (
        "import asyncio\nfrom agent import llm\nasync def run(x):\n    try:\n        await asyncio.wait_for(llm.chat('x'), 2)\n"
        "    except asyncio.TimeoutError as e:\n        return str(e)\n"
    )
    instance = started(python, text)
    instance.deliver()
    timer = next(call for call in instance.calls if call.operation == "agent.after")
    assert timer.request == {"delay_ms": 2000}
    result = instance.answer(timer.number)
    assert result.reply is not None
    assert codec.decode(result.reply.payload) == "it took longer than 2 s"
    assert instance.calls == ()


def test_asyncio_has_what_agents_use_of_it(python: Interpreter) -> None:
    """Queues, groups, cancellation."""
    text = """
import asyncio

async def worker(queue, out):
    while True:
        item = await queue.get()
        out.append(item * 2)
        queue.task_done()

async def fails():
    raise ValueError('f')

async def run(x):
    queue, out = asyncio.Queue(), []
    task = asyncio.create_task(worker(queue, out))
    for i in range(3):
        await queue.put(i)
    await queue.join()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        out.append('cancelled')
    out += await asyncio.gather(asyncio.sleep(0, 'a'), fails(), return_exceptions=True)
    async with asyncio.TaskGroup() as group:
        one = group.create_task(asyncio.sleep(0, 'g'))
    out.append(one.result())
    async with asyncio.Lock():
        out.append('locked')
    return [str(one) for one in out]
"""
    assert started(python, text).message(None) == ["0", "2", "4", "cancelled", "a", "f", "g", "locked"]


def test_chance_is_the_instance_s_own_and_new_after_a_restore(python: Interpreter) -> None:
    """Two restores of one snapshot draw different numbers; the same seed gives the same."""
    agent = python.load(
        [module("import random\ndef run(x):\n    return [random.random() for _ in range(3)]\n")]
    )
    one, same, other = (agent.instance(entropy=bytes([n] * 32)) for n in (1, 1, 2))
    drawn = one.message(None)
    assert drawn == same.message(None)
    assert drawn != other.message(None)
    state = one.freeze()
    again = [
        agent.thaw(state, entropy=bytes([n] * 32), restored=Restored(1, n, 0)).message(None) for n in (3, 4)
    ]
    assert again[0] != again[1]


def test_the_clock_is_the_slice_s(python: Interpreter) -> None:
    """And stands still in it; while loading it is at 0."""
    instance = started(
        python, "import time\nat = time.time()\ndef run(x):\n    return [at, time.time(), time.time()]\n"
    )
    instance.now_ms = 1_500
    assert instance.message(None) == [0, 1.5, 1.5]


def test_tests_of_an_agent_are_listed_and_run(python: Interpreter) -> None:
    """One delivery each."""
    suite = "from main import run\nfrom agent.test import equal\nasync def test_good():\n    equal(await run(1), 1)\ndef test_bad():\n    equal(1, 2)\ndef helper(): pass\n"
    modules = [module("async def run(x):\n    return x\n"), module(suite, "test_main.py")]
    agent = python.load(modules, "main.py", suites=["test_main.py"])
    assert agent.answer == {"tests": [["test_main.py", "test_good"], ["test_main.py", "test_bad"]]}
    instance = agent.instance()
    assert instance.message({"suite": "test_main.py", "test": "test_good"}) is None
    with pytest.raises(Failed, match=r"^AssertionError: expected 2, got 1$"):
        instance.message({"suite": "test_main.py", "test": "test_bad"})


def test_what_is_printed_is_logged_line_by_line(python: Interpreter) -> None:
    """Without its line ends."""
    instance = started(
        python,
        "from agent import log\ndef run(x):\n    print('a', 1)\n    print('b\\nc', end='')\n    log.warning('w', n=1)\n",
    )
    instance.message(None)
    assert instance.log_texts == ["a 1", "b", "c", "w"]


def test_an_agent_hands_over_to_its_successor(python: Interpreter) -> None:
    """State crosses as a value."""
    old = python.load(
        [
            module(
                "n = 3\ndef run(x):\n    return n\nasync def on_hand_over(info):\n    return {'n': n, 'to': info['to_version']}\n"
            )
        ]
    )
    new = python.load(
        [
            module(
                "n = 0\ndef run(x):\n    return n\ndef on_take_over(info):\n    global n\n    n = info['state']['n'] + 1\n"
            )
        ]
    )
    assert old.answer == {"handlers": ["run", "hand_over"]}
    before = old.instance()
    state = before.message({"to_version": "2"}, kind=DeliveryKind.HAND_OVER)
    assert state == {"n": 3, "to": "2"}
    after = Living(before.machine.upgraded(new.program, new.image, new.limits))
    after.message({"state": state}, kind=DeliveryKind.UPGRADE)
    assert after.message(None) == 4


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", DeliveryKind.HAND_OVER, "the agent has no on_hand_over, so it can't be upgraded"),
        ("", DeliveryKind.UPGRADE, "the agent has no on_take_over, so it can't take over"),
        (
            "from agent import Future\nasync def on_hand_over(info):\n    await Future()\n",
            DeliveryKind.HAND_OVER,
            "RuntimeError: an agent is upgraded at once: it can't wait for anything meanwhile",
        ),
    ],
)
def test_an_upgrade_that_can_not_be_says_why(
    python: Interpreter, text: str, kind: DeliveryKind, message: str
) -> None:
    """And the agent goes on as it was."""
    instance = started(python, text + "def run(x):\n    return x\n")
    with pytest.raises(Failed) as failed:
        instance.message({}, kind=kind)
    assert failed.value.message == message
    assert instance.message(1) == 1

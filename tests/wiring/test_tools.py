"""
An agent's own calls of tools: what is granted, what is recorded, and what is left for a person to say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner import codec
from runner.errors import ApprovalPending, EffectUncertain, UsageError
from runner.journal import StateDirectory
from runner.journal.records import Receipt, Start
from runner.kernel.abi import Status
from runner.tools.base import Tool, ToolContext, ToolFailure
from runner.wiring import (
    Options,
    list_instances,
    list_tools,
    resolve_call,
    resume,
    rule_on,
    run_agent,
    run_named,
    verify,
)

OptionsFor = Callable[..., Options]

GUESTS = Path(__file__).parents[2] / "guests"
SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"

# Passes its message on as the request of an operation, and replies with the answer: status, then payload.
RELAY = r"""(module
  (import "tool" "OPERATION" (func $ask (param i32 i32) (result i32)))
  (import "agent" "take" (func $take (param i32 i32) (result i32)))
  (import "agent" "reply" (func $reply (param i32 i32 i32) (result i32)))
  (memory (export "memory") 32)
  (global $delivery (mut i32) (i32.const 0))
  (func (export "runner_abi_v1"))
  (func (export "agent_start"))
  (func (export "agent_deliver") (param $n i32) (param $kind i32) (param $size i32)
    (global.set $delivery (local.get $n))
    (drop (call $ask (i32.const 16) (call $take (i32.const 16) (i32.const 1000000)))))
  (func (export "agent_wake") (param $call i32) (param $status i32) (param $size i32)
    ;; [status as one byte of CBOR, payload]
    (i32.store8 (i32.const 16) (i32.const 0x82))
    (i32.store8 (i32.const 17)
      (select (local.get $status) (i32.sub (i32.const 0x1f) (local.get $status))
        (i32.ge_s (local.get $status) (i32.const 0))))
    (drop (call $reply (global.get $delivery) (i32.const 16)
      (i32.add (i32.const 2) (call $take (i32.const 18) (i32.const 1000000)))))))"""


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    """An agent that calls the tool that it is told to."""
    path = tmp_path / "relay.wat"
    path.write_text(RELAY.replace("OPERATION", "call"))
    return path


@pytest.fixture
def lister(tmp_path: Path) -> Path:
    """An agent that lists its tools."""
    path = tmp_path / "lister.wat"
    path.write_text(RELAY.replace("OPERATION", "list"))
    return path


def own_tool(work: Any, name: str = "probe", **fields: Any) -> Tool:
    """A tool of a library's user."""
    given: dict[str, Any] = {
        "name": name,
        "description": "Probes.",
        "input_schema": {"type": "object"},
        "check": lambda value: value,
        "work": work,
        "source": "test",
    }
    return Tool(**given | fields)


async def sleeps(arguments: Any, context: ToolContext) -> Any:
    """Never answers."""
    del arguments, context
    await anyio.sleep_forever()


async def tells_its_key(arguments: Any, context: ToolContext) -> Any:
    """What a tool is told beside its arguments."""
    del arguments
    return [context.execution, context.idempotency_key]


def records_of(state: Path, name: str, kind: type[Any]) -> list[Any]:
    """The records of one kind."""
    with StateDirectory(state) as directory, directory.open(name, write=False) as journal:
        return [record for _, record in journal.read() if isinstance(record, kind)]


def test_an_agent_calls_a_tool_that_is_there_and_granted(relay: Path, options: OptionsFor, tmp_path: Path):
    """The answer is the tool's own value."""
    (tmp_path / "note.txt").write_text("hello")
    chosen = options(allow=("tool:read_file",), root=(tmp_path,))
    status, answer = run_agent(relay, {"name": "read_file", "arguments": {"path": "note.txt"}}, chosen).result
    assert (status, answer["content"]) == (Status.OK, "hello")


def test_a_tool_that_is_there_and_not_granted_is_denied(relay: Path, options: OptionsFor, tmp_path: Path):
    """The message names the flag."""
    request = {"name": "read_file", "arguments": {"path": "note.txt"}}
    denied = {"kind": "denied", "message": "tool 'read_file' is not granted; add --allow tool:read_file"}
    chosen = options(allow=("tool:current_*",), root=(tmp_path,))
    assert run_agent(relay, request, chosen).result == [Status.DENIED, denied]
    chosen = options(allow=("tool",), deny=("tool:read_*",), root=(tmp_path,))
    assert run_agent(relay, request, chosen).result == [
        Status.DENIED,
        {"kind": "denied", "message": "tool 'read_file' is not granted; remove --deny tool:read_*"},
    ]


def test_a_tool_that_is_granted_and_not_there_is_not_found(relay: Path, options: OptionsFor):
    """Without its flag there is no such tool."""
    assert run_agent(relay, {"name": "read_file"}, options(allow=("tool",))).result == [
        Status.NOT_FOUND,
        {"kind": "not_found", "message": "no tool named 'read_file' is granted"},
    ]


@pytest.mark.parametrize("kind", ["invalid", "denied", "not_found", "timeout", "failed"])
def test_a_failure_of_a_tool_has_a_status_and_its_kind(relay: Path, options: OptionsFor, kind: Any):
    """What was not found by a tool is a failure; the status says whether there is such a tool."""

    async def fails(arguments: Any, context: ToolContext) -> Any:
        del arguments, context
        raise ToolFailure(kind, "so it is")

    statuses = {"invalid": Status.INVALID, "denied": Status.DENIED}
    chosen = options(allow=("tool",), own_tools=(own_tool(fails),))
    assert run_agent(relay, {"name": "probe"}, chosen).result == [
        statuses.get(kind, Status.FAILED),
        {"kind": kind, "message": "so it is"},
    ]


def test_an_agent_sees_the_tools_that_are_there_and_granted(
    lister: Path, options: OptionsFor, tmp_path: Path
):
    """With what a model needs to call them, and nothing of where they come from."""
    chosen = options(allow=("tool:read_*", "tool:current_datetime"), root=(tmp_path,))
    status, listed = run_agent(lister, {}, chosen).result
    assert status == Status.OK
    assert [tool["name"] for tool in listed] == ["current_datetime", "read_file"]
    assert [set(tool) for tool in listed] == [{"name", "description", "input_schema"}] * 2
    assert run_agent(lister, {}, options(allow=("tool:x",), root=(tmp_path,))).result == [Status.OK, []]


def test_a_tool_of_the_time_needs_nothing_but_a_grant(relay: Path, options: OptionsFor):
    """In a time zone, if one is asked for."""
    request: dict[str, Any] = {"name": "current_datetime"}
    status, answer = run_agent(relay, request, options(allow=("tool",))).result
    assert (status, answer["datetime"][-6:]) == (Status.OK, "+00:00")
    request["arguments"] = {"timezone": "Mars/Olympus"}
    assert run_agent(relay, request, options(allow=("tool",))).result == [
        Status.INVALID,
        {"kind": "invalid", "message": "there is no time zone 'Mars/Olympus'"},
    ]


def test_an_effectful_tool_that_overruns_leaves_a_named_instance_uncertain(
    relay: Path, options: OptionsFor, state: Path
):
    """Its start has no receipt; a person says what became of it, and then the delivery ends."""
    chosen = options(allow=("tool",), own_tools=(own_tool(sleeps, timeout_ms=30),))
    with pytest.raises(EffectUncertain, match=r"^rex has a call whose effect is uncertain: 1$") as caught:
        run_named(relay, "rex", {"name": "probe"}, chosen)
    assert caught.value.exit_code == 6
    assert [record.effect for record in records_of(state, "rex", Start)] == ["effectful"]
    assert records_of(state, "rex", Receipt) == []
    assert [row["status"] for row in list_instances(state)] == ["uncertain"]
    with pytest.raises(EffectUncertain):
        resume("rex", chosen)
    resolve_call("rex", 1, "done", "it was there", state=state, cache=chosen.cache)
    assert resume("rex", chosen).result == [Status.OK, "it was there"]
    verify("rex", state=state, cache=chosen.cache)


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_a_repeatable_tool_that_overruns_has_failed(
    relay: Path, options: OptionsFor, state: Path, effect: Any
):
    """The agent is told, and may ask again."""
    chosen = options(allow=("tool",), own_tools=(own_tool(sleeps, timeout_ms=30, effect=effect),))
    assert run_named(relay, "rex", {"name": "probe"}, chosen).result == [
        Status.FAILED,
        {"kind": "timeout", "message": "probe took more than 30 ms and was given up"},
    ]
    assert [record.effect for record in records_of(state, "rex", Start)] == [effect]


def test_where_nobody_could_say_what_became_of_it_the_agent_is_told(relay: Path, options: OptionsFor):
    """An instance without a name has no journal to be resolved in."""
    chosen = options(allow=("tool",), own_tools=(own_tool(sleeps, timeout_ms=30),))
    assert run_agent(relay, {"name": "probe"}, chosen).result == [
        Status.FAILED,
        {"kind": "timeout", "message": "probe was given up after 30 ms; nobody knows whether it happened"},
    ]


def test_a_rerun_has_the_same_idempotency_key(relay: Path, options: OptionsFor, state: Path):
    """And another execution: the outside can tell that it is the same call."""
    told: list[Any] = []

    async def first_hangs(arguments: Any, context: ToolContext) -> Any:
        told.append(await tells_its_key(arguments, context))
        if len(told) == 1:
            await anyio.sleep_forever()
        return len(told)

    chosen = options(allow=("tool",), own_tools=(own_tool(first_hangs, timeout_ms=500),))
    with pytest.raises(EffectUncertain):
        run_named(relay, "rex", {"name": "probe"}, chosen)
    resolve_call("rex", 1, "rerun", state=state, cache=chosen.cache)
    assert resume("rex", chosen).result == [Status.OK, 2]
    assert [execution for execution, _ in told] == ["rex-1-1", "rex-1-2"]
    assert told[0][1] == told[1][1]


def test_instances_of_one_name_have_keys_of_their_own(relay: Path, options: OptionsFor, tmp_path: Path):
    """A key must not make the outside take one call for another."""
    keys = set()
    for place in ("a", "b"):
        chosen = options(allow=("tool",), own_tools=(own_tool(tells_its_key),), state=tmp_path / place)
        keys.add(run_named(relay, "rex", {"name": "probe"}, chosen).result[1][1])
    assert len(keys) == 2


def test_the_answer_of_a_tool_is_recorded_and_not_asked_for_again(
    relay: Path, options: OptionsFor, state: Path
):
    """Doing the journal again gives the time that it was."""
    chosen = options(allow=("tool",))
    report = run_named(relay, "rex", {"name": "current_datetime"}, chosen)
    [receipt] = records_of(state, "rex", Receipt)
    assert codec.decode(receipt.payload) == report.result[1]
    assert verify("rex", state=state, cache=chosen.cache)["memory_digest"] == report.memory_digest


def test_a_call_that_was_approved_is_not_lost_when_its_flag_is_not_given_again(
    relay: Path, options: OptionsFor, state: Path, tmp_path: Path
):
    """Without the flag nothing happens; with it, what the person allowed."""
    (tmp_path / "note.txt").write_text("hello")
    request = {"name": "read_file", "arguments": {"path": "note.txt"}}
    with pytest.raises(ApprovalPending):
        run_named(relay, "rex", request, options(allow=("tool",), root=(tmp_path,)), ("tool:read_file",))
    rule_on("rex", 1, "allow", state=state, cache=options().cache)
    with pytest.raises(UsageError) as caught:
        resume("rex", options())
    assert caught.value.message == "call 1 of rex needs the tool read_file, which is not there"
    assert caught.value.hint == "give its flag again: --root"
    status, answer = resume("rex", options(root=(tmp_path,))).result
    assert (status, answer["content"]) == (Status.OK, "hello")


def test_an_agent_calls_a_tool_of_a_server_and_one_of_a_file(
    relay: Path, options: OptionsFor, tmp_path: Path
):
    """By the flags that name them; of a server that is not there the operator hears."""
    servers = {"tester": {"command": sys.executable, "args": [str(SERVER)]}, "gone": {"command": "/no/such"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    heard: list[str] = []
    chosen = options(
        allow=("tool:mcp__tester__*",),
        mcp_config=tmp_path / "mcp.json",
        on_log=lambda line: heard.append(line.message),
    )
    request = {"name": "mcp__tester__add", "arguments": {"a": 40, "b": 2}}
    assert run_agent(relay, request, chosen).result == [Status.OK, {"result": 42}]
    assert [line.partition(": ")[0] for line in heard] == ["mcp server gone"]

    manifest = {
        "name": "ask",
        "description": "",
        "input_schema": {"type": "object"},
        "url": "http://127.0.0.1:9/",
    }
    (tmp_path / "tools.json").write_text(json.dumps({"name": "t", "tools": [manifest]}))
    chosen = options(allow=("tool",), tools=(tmp_path / "tools.json",))
    status, answer = run_agent(relay, {"name": "ask"}, chosen).result
    # The operator wrote the address, so it may be asked; nobody is there.
    assert (status, answer["kind"]) == (Status.FAILED, "failed")
    assert answer["message"].startswith("127.0.0.1 can't be reached: ")


def test_a_run_without_flags_of_tools_loads_none_of_their_libraries(options: OptionsFor):
    """What an agent does not use is not paid for."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from runner.wiring import Options, run_agent\n"
        f"options = Options(cache=Path({str(options().cache)!r}), allow=('tool',))\n"
        f"assert run_agent(Path({str(GUESTS / 'hello')!r}), 'hi', options).result\n"
        "print(sorted({'pydantic', 'httpx', 'mcp', 'jsonschema_rs'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=GUESTS.parent, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_what_a_flag_names_must_be_there(relay: Path, options: OptionsFor, tmp_path: Path):
    """Said before anything runs."""
    for wrong in (
        {"root": (tmp_path / "gone",)},
        {"allow_command": ("no-such-program",)},
        {"http_host": ("http://x",)},
    ):
        with pytest.raises(UsageError):
            run_agent(relay, None, options(allow=("tool",), **wrong))


def test_the_list_says_what_an_agent_would_have(options: OptionsFor, tmp_path: Path):
    """Name, effect, source, and whether it is granted."""
    rows = list_tools(
        options(
            allow=("tool:*_file",),
            root=(tmp_path,),
            allow_write=(tmp_path,),
            http_host=("example.com",),
            allow_command=("true",),
            own_tools=(own_tool(sleeps),),
        )
    )
    assert [(row["name"], row["effect"], row["source"], row["granted"]) for row in rows] == [
        ("current_datetime", "pure", "built-in", False),
        ("edit_file", "effectful", "built-in", True),
        ("fetch_url", "idempotent", "built-in", False),
        ("grep_files", "pure", "built-in", False),
        ("http_request", "effectful", "built-in", False),
        ("list_directory", "pure", "built-in", False),
        ("probe", "effectful", "test", False),
        ("read_file", "pure", "built-in", True),
        ("run_command", "effectful", "built-in", False),
        ("write_file", "effectful", "built-in", True),
    ]

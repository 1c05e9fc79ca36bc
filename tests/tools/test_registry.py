"""
The contract of tools, through the registry that calls them.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from runner.errors import UsageError
from runner.package.fields import FieldProblem
from runner.tools.base import Tool, ToolContext, ToolFailure, ToolOverran
from runner.tools.registry import ToolRegistry
from runner.tools.schema import check_against


def tool(name: str = "probe", work: Any = None, **fields: Any) -> Tool:
    """A tool that answers with its arguments."""

    async def echo(arguments: Any, context: ToolContext) -> Any:
        del context
        return arguments

    schema = fields.pop("schema", {"type": "object"})
    given: dict[str, Any] = {
        "name": name,
        "description": "",
        "input_schema": schema,
        "check": check_against(schema),
        "work": work or echo,
    }
    return Tool(**given | fields)


def use(tools: Any, name: str = "probe", arguments: Any = None, execution: str = "rex-1-1") -> Any:
    """The answer of a tool in a run of its own."""

    async def main() -> Any:
        async with ToolRegistry(tools, identity=b"run") as registry:
            return (await registry.call(name, arguments or {}, execution=execution)).value

    return anyio.run(main)


def failure(tools: Any, name: str = "probe", arguments: Any = None) -> tuple[str, str]:
    """How a call failed."""
    with pytest.raises(ToolFailure) as caught:
        use(tools, name, arguments)
    return caught.value.kind, caught.value.message


async def sleeps(arguments: Any, context: ToolContext) -> Any:
    """Never answers."""
    del arguments, context
    await anyio.sleep_forever()


def test_arguments_that_the_schema_allows_reach_the_tool():
    """As they are."""
    assert use([tool()], arguments={"a": [1, "x", None]}) == {"a": [1, "x", None]}


def test_arguments_that_the_schema_forbids_do_not():
    """The message says where and what."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert failure([tool(schema=schema)], arguments={"n": [True]}) == (
        "invalid",
        'probe: n: [true] is not of type "integer"',
    )
    assert failure([tool(schema=schema)]) == ("invalid", 'probe: arguments: "n" is a required property')


@pytest.mark.parametrize("value", [b"x", float("nan"), [{"a": float("inf")}]])
def test_what_json_can_not_say_is_no_argument(value: Any):
    """Whatever the schema says."""
    kind, message = failure([tool()], arguments={"a": value})
    assert (kind, message.startswith("probe: arguments: ")) == ("invalid", True)


def test_a_tool_that_is_not_there_is_not_found():
    """Its name is cut, because the guest chose it."""
    assert failure([], "x" * 100) == ("not_found", f"no tool named '{'x' * 64}' is granted")


def test_two_tools_of_one_name_are_refused_at_load():
    """The message names both owners."""
    with pytest.raises(UsageError, match=r"^two tools have the name probe: of built-in and of a file$"):
        ToolRegistry([tool(), tool(source="a file")])


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 129, "a\n"])
def test_a_name_that_no_grant_could_say_is_refused(name: str):
    """At load."""
    with pytest.raises(UsageError, match=r"is no name for a tool$"):
        ToolRegistry([tool(name)])


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_a_repeatable_tool_that_overruns_has_failed(effect: Any):
    """It could be done again."""
    assert failure([tool(work=sleeps, effect=effect, timeout_ms=20)]) == (
        "timeout",
        "probe took more than 20 ms and was given up",
    )


def test_a_tool_that_does_not_heed_its_end_is_not_waited_for():
    """It is left behind, still at work, when the call has been given up."""

    async def main() -> None:
        may_end = anyio.Event()
        ended: list[bool] = []

        async def ignores_its_end(arguments: Any, context: ToolContext) -> Any:
            del arguments, context
            with anyio.CancelScope(shield=True):
                await may_end.wait()
            ended.append(True)

        async with ToolRegistry([tool(work=ignores_its_end, effect="pure", timeout_ms=20)]) as registry:
            with pytest.raises(ToolFailure):
                await registry.call("probe", {})
            assert ended == []
            may_end.set()
        assert ended == [True]

    anyio.run(main)


def test_a_call_that_is_cancelled_takes_its_tool_along():
    """As when an agent gives its call up."""

    async def main() -> None:
        begun, cancelled = anyio.Event(), anyio.Event()

        async def work(arguments: Any, context: ToolContext) -> Any:
            del arguments, context
            begun.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

        async with ToolRegistry([tool(work=work)]) as registry:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(registry.call, "probe", {})
                await begun.wait()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(20):
                await cancelled.wait()

    anyio.run(main)


def test_a_bug_of_a_tool_is_not_an_answer():
    """It must be seen, not told to a guest."""

    async def bug(arguments: Any, context: ToolContext) -> Any:
        del arguments, context
        raise KeyError("secret")

    with pytest.raises(KeyError):
        use([tool(work=bug)])


def test_many_calls_take_turns():
    """An agent may have hundreds in flight."""
    running = most = 0

    async def counted(arguments: Any, context: ToolContext) -> Any:
        del arguments, context
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1

    async def main() -> None:
        async with (
            ToolRegistry([tool(work=counted)]) as registry,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(200):
                tasks.start_soon(registry.call, "probe", {})

    anyio.run(main)
    assert (running, most) == (0, 32)


def test_an_effectful_tool_that_overruns_is_uncertain():
    """Nobody knows whether it happened."""
    with pytest.raises(
        ToolOverran, match=r"^probe was given up after 20 ms; nobody knows whether it happened$"
    ):
        use([tool(work=sleeps, timeout_ms=20)])


def test_twenty_slow_tools_run_together():
    """All wait at the same time: each for all others to have begun."""
    begun = 0

    async def together(arguments: Any, context: ToolContext) -> Any:
        nonlocal begun
        begun += 1
        while begun < 20:
            await anyio.lowlevel.checkpoint()
        return context.execution or arguments

    async def main() -> None:
        async with (
            ToolRegistry([tool(work=together)]) as registry,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(20):
                tasks.start_soon(registry.call, "probe", {})

    anyio.run(main)


def test_an_answer_that_is_too_large_or_can_not_be_told_is_a_failure():
    """The guest is told so, and the host does not fail."""

    async def odd(arguments: Any, context: ToolContext) -> Any:
        del context
        return object() if arguments else "x" * 100

    assert failure([tool(work=odd, max_output_bytes=50)]) == (
        "failed",
        "probe answered with 102 bytes, more than 50",
    )
    assert failure([tool(work=odd)], arguments={"a": 1}) == (
        "failed",
        "probe answered with what can't be told",
    )


def test_an_answer_is_held_against_what_the_tool_promised():
    """Schemas are validated both ways."""
    promise = check_against({"type": "object", "properties": {"n": {"type": "string"}}})
    assert failure([tool(check_result=promise)], arguments={"n": 1}) == (
        "failed",
        'probe answered otherwise than it promised: n: 1 is not of type "string"',
    )


def test_the_idempotency_key_is_the_same_for_every_attempt_and_for_no_other_call():
    """Nor for the same call of another run; and nothing of the instance can be read from it."""

    async def key(arguments: Any, context: ToolContext) -> Any:
        del arguments
        return context.idempotency_key

    tools = [tool(work=key)]
    first = use(tools)
    assert use(tools, execution="rex-1-2") == first
    assert use(tools, execution="rex-2-1") != first
    assert len(first) == 32
    assert "rex" not in first

    async def elsewhere() -> Any:
        async with ToolRegistry(tools, identity=b"other") as registry:
            return (await registry.call("probe", {}, execution="rex-1-1")).value

    assert anyio.run(elsewhere) != first


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "wrong"}, "not a JSON Schema: "),
        ({"$ref": "http://127.0.0.1:9/x"}, "not a JSON Schema: "),
        ({"$ref": "file:///etc/passwd"}, "not a JSON Schema: "),
        ({"pattern": "("}, "not a JSON Schema: "),
        ({"description": "x" * 70_000}, "the JSON Schema is too large or too deep"),
    ],
)
def test_what_is_no_schema_is_refused_and_nothing_is_fetched(schema: Any, problem: str):
    """Strangers write schemas."""
    with pytest.raises(FieldProblem) as caught:
        check_against(schema)
    assert caught.value.problem.startswith(problem)


def test_a_deep_schema_is_refused():
    """Before anything recurses into it."""
    schema: Any = {}
    for _ in range(5000):
        schema = {"not": schema}
    with pytest.raises(FieldProblem, match="too large or too deep"):
        check_against(schema)


def test_a_pattern_of_a_stranger_takes_linear_time():
    """What takes other matchers for ever is over at once, or refused."""
    check = check_against({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})
    with pytest.raises(FieldProblem):
        check({"a": "a" * 5000 + "!"})


def test_a_source_changes_its_own_tools_only():
    """What it brings under a name that is taken is left out, with a word why."""
    registry = ToolRegistry([tool("own")])
    assert registry.replace("server", [tool("a", source="server"), tool("b", source="server")]) == ()
    assert registry.replace("server", [tool("own", source="server"), tool("c", source="server")]) == (
        "two tools have the name own: of built-in and of server",
    )
    assert [each.name for each in registry.tools] == ["c", "own"]
    assert registry.get("own").source == "built-in"  # type: ignore[union-attr]

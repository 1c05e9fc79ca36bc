"""
Every example and every hostile guest ends as its own `expect.toml` says, and the host is none the worse.

What the folders hold is in `guests/README.md`; a case is data, this file is what it means.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from runner import codec
from runner.capabilities.asking import Purse
from runner.capabilities.standard import standard_handlers
from runner.capabilities.usage import UsageMeter
from runner.errors import RunnerError
from runner.kernel.abi import DeliveryKind
from runner.kernel.engine import assemble_wat
from runner.kernel.machine import Deliver, Machine
from runner.kernel.slice import Reply
from runner.memory.notes import InMemoryNotes
from runner.package.agent import AgentPackage
from runner.package.manifest import LIMIT_KEYS
from runner.policy.grants import Grants
from runner.providers.script import Reply as ScriptedReply
from runner.providers.script import Script
from runner.providers.scripted import BUILT_IN_SCRIPT, SCRIPTED_MODEL, ScriptedProvider
from runner.session.session import Session
from runner.units import parse_bytes, parse_count, parse_duration_ms
from runner.wiring.host import Host
from runner.wiring.prepare import Prepared, prepare

GUESTS = Path(__file__).parents[2] / "guests"
NEEDS_COMPILER = frozenset({"notes", "sequential"})
_KEYS = {"name", "file", "allow", "deny", "limits", "answers", "error", "delivery"}


@dataclass(frozen=True)
class Case:
    """
    One expectation.
    """

    folder: Path
    content: dict[str, Any]

    @property
    def package_name(self) -> str:
        """For the test's id."""
        return f"{self.folder.name}: {self.content['name']}"


def _marks(folder: Path) -> list[pytest.MarkDecorator]:
    """
    What a guest needs before it can be loaded.
    """
    language = tomllib.loads((folder / "agent.toml").read_text())["language"]
    if language in {"js", "python"}:
        return [getattr(pytest.mark, language)]
    return [pytest.mark.c] if folder.name in NEEDS_COMPILER else []


def _cases() -> list[Any]:
    found = []
    for path in sorted(GUESTS.glob("*/expect.toml")):
        for content in tomllib.loads(path.read_text())["case"]:
            case = Case(path.parent, content)
            marks = _marks(path.parent)
            found.append(pytest.param(case, id=case.package_name, marks=marks))
    return found


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """One engine and one cache for all guests, as in one process."""
    return Host(tmp_path_factory.mktemp("guests") / "cache")


def test_every_guest_says_what_to_expect_of_it():
    """A guest without expectations would be an example that nobody runs."""
    folders = {path.parent.name for path in GUESTS.glob("*/agent.toml")}
    assert folders == {path.parent.name for path in GUESTS.glob("*/expect.toml")}
    assert len([name for name in folders if name.startswith("hostile_")]) >= 7


def test_expectations_use_no_word_that_means_nothing():
    """A mistyped key would be an expectation that nobody checks."""
    for param in _cases():
        case = param.values[0]
        assert case.content.keys() <= _KEYS, case.package_name
        assert ("error" in case.content) != ("delivery" in case.content), case.package_name


@pytest.mark.parametrize("case", _cases())
def test_a_guest_ends_as_expected_and_the_same_process_then_runs_hello(host: Host, case: Case):
    """Its own outcome, typed; then another agent, as if nothing had been."""
    if "error" in case.content:
        with pytest.raises(RunnerError) as caught:
            _prepare(host, case)
        _assert_error(caught.value, case.content["error"])
    else:
        anyio.run(_deliver_all, host, case)
    hello = {"name": "after", "answers": ["well"], "delivery": [{"input": '"hi"', "reply": '"well"'}]}
    anyio.run(_deliver_all, host, Case(GUESTS / "hello", hello))


def _prepare(host: Host, case: Case) -> Prepared:
    package = host.load(case.folder, may_compile=True)
    if "file" in case.content:
        path = case.folder / case.content["file"]
        package = AgentPackage(package.manifest, assemble_wat(path.read_text(), path=str(path)), path)
    grants = Grants.parse(case.content.get("allow", ()), case.content.get("deny", ()))
    limits = {LIMIT_KEYS[key]: _quantity(key, text) for key, text in case.content.get("limits", {}).items()}
    return prepare(host, package, grants=grants, limits=limits, on_log=_ignore)


def _ignore(line: object) -> None:
    del line


def _quantity(key: str, text: str) -> int:
    name = LIMIT_KEYS[key]
    if name.endswith("_bytes"):
        return parse_bytes(text)
    return parse_duration_ms(text) if name.endswith("_ms") else parse_count(text)


async def _deliver_all(host: Host, case: Case) -> None:
    prepared = _prepare(host, case)
    answers = case.content.get("answers")
    turns = tuple(ScriptedReply(template=text) for text in answers or ())
    script = Script(turns=turns) if turns else BUILT_IN_SCRIPT
    provider = ScriptedProvider(script)
    handlers = standard_handlers(
        providers={provider.name: provider},
        default_model=SCRIPTED_MODEL,
        grants=prepared.grants,
        notes=InMemoryNotes(),
        purse=Purse(usage=UsageMeter()),
    )
    machine = Machine(prepared.program, prepared.image, prepared.limits, entropy=bytes(32))
    async with Session(machine, handlers, host.ticker, on_log=_ignore) as session:
        for delivery in case.content["delivery"]:
            before = machine.digest()
            outcome = await session.deliver(DeliveryKind.MESSAGE, json.loads(delivery["input"]))
            if "error" in delivery:
                assert outcome.failure is not None, outcome
                _assert_error(outcome.failure, delivery["error"])
                if outcome.failure.kind != "guest":
                    assert machine.digest() == before, "a failed delivery left something behind"
            else:
                assert outcome.failure is None, outcome.failure
                if "reply" in delivery:
                    assert outcome.result == json.loads(delivery["reply"])


def _assert_error(error: RunnerError, expected: dict[str, Any]) -> None:
    wire = error.to_wire()
    found = {name: wire.get(name, wire["details"].get(name)) for name in expected}
    assert found == expected, wire


_EXAMPLES = [path.parent for path in sorted(GUESTS.glob("*/agent.toml")) if "hostile" not in path.parent.name]


@pytest.mark.parametrize(
    "folder",
    [pytest.param(path, id=path.name, marks=_marks(path)) for path in _EXAMPLES],
)
def test_an_example_has_nothing_to_say_to_being_told_of_its_restore(host: Host, folder: Path):
    """A failure then would fail the restore."""
    prepared = _prepare(host, Case(folder, {"name": "other", "allow": ["llm", "memory", "tool"]}))
    machine = Machine(prepared.program, prepared.image, prepared.limits, entropy=bytes(32))
    payload = codec.encode({"count": 1, "generation": 1, "at_ms": 0})
    result = machine.step(Deliver(1, DeliveryKind.RESTORE, payload, 0))
    assert result.failure is None
    assert result.reply == Reply(1, ok=True, payload=codec.encode(None))

"""
Models of real providers, from files and flags to a server on loopback; and that a key shows nowhere.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.from_thread
import pytest

from runner import wiring
from runner.errors import KeyRefused, RunnerError, UsageError
from runner.snapshot import read as read_snapshot
from runner.wiring import Options
from runner.wiring.models import providers_of
from tests.providers.dialects import CANARY, WIRES, Wire
from tests.providers.servers import Answer, Server, serving

ROOT = Path(__file__).resolve().parents[2]
HELLO = ROOT / "guests" / "hello"

every_dialect = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.kind)


@contextmanager
def beside(*answers: Answer) -> Iterator[Server]:
    """
    A server beside a command that has an event loop of its own.
    """
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(portal.call(_opened, answers)) as server,
    ):
        yield server


async def _opened(answers: tuple[Answer, ...]) -> Any:
    return serving(*answers)


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """
    Makes the user's files, with a provider `lab` at some address and its key in a variable; returns the file.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("RUNNER_CONFIG", str(folder / "config.toml"))
    monkeypatch.setenv("RUNNER_CACHE", str(tmp_path / "cache"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "LAB_KEY"):
        monkeypatch.delenv(name, raising=False)

    def write(wire: Wire, origin: str, *more: str) -> Path:
        monkeypatch.setenv("LAB_KEY", CANARY)
        lines = [
            "[providers.lab]",
            f'kind = "{wire.kind}"',
            f'base_url = "{origin}{wire.base}"',
            'api_key_env = "LAB_KEY"',
            *more,
        ]
        path = folder / "config.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        path.chmod(0o600)
        return path

    return write


def options(tmp_path: Path, **facts: Any) -> Options:
    """
    Choices that grant the provider `lab`.
    """
    allow = facts.pop("allow", ("llm:lab/*",))
    model = facts.pop("model", "lab/some-model")
    return Options(model=model, allow=allow, state=tmp_path / "state", **facts)


@every_dialect
def test_a_configured_model_answers_an_agent(
    wire: Wire, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """
    Granted by name, with its tokens counted.
    """
    with beside(wire.says("Hé", "llo")) as server:
        configure(wire, server.origin)
        report = wiring.run_agent(HELLO, "hi", options(tmp_path))
        assert report.result == "Héllo"
        assert report.usage["output_tokens"] == 7
        assert server.received[0].headers["authorization"] == f"Bearer {CANARY}"


def test_a_provider_that_is_not_granted_hears_nothing(configure: Callable[..., Path], tmp_path: Path) -> None:
    """
    By default only the scripted one is.
    """
    wire = WIRES[0]
    with beside(wire.says("a")) as server:
        configure(wire, server.origin)
        with pytest.raises(RunnerError, match="model lab/some-model is not granted"):
            wiring.run_agent(HELLO, "hi", options(tmp_path, allow=()))
        assert server.received == []


def test_the_user_s_model_is_the_default_and_the_flag_wins(
    configure: Callable[..., Path], tmp_path: Path
) -> None:
    """
    Flag, then project, then user.
    """
    wire = WIRES[2]
    with beside(wire.says("a")) as server:
        path = configure(wire, server.origin)
        path.write_text('model = "lab/of-the-user"\n' + path.read_text())
        wiring.run_agent(HELLO, "hi", options(tmp_path, model=None))
        (tmp_path / "runner.toml").write_text('model = "lab/of-the-project"')
        wiring.run_agent(HELLO, "hi", options(tmp_path, model=None))
        wiring.run_agent(HELLO, "hi", options(tmp_path, model="lab/of-the-flag"))
        assert [received.json["model"] for received in server.received] == [
            "of-the-user", "of-the-project", "of-the-flag",
        ]  # fmt: skip


def test_default_is_the_profile_s_own_model(configure: Callable[..., Path], tmp_path: Path) -> None:
    """
    Who has none says so.
    """
    wire = WIRES[2]
    with beside(wire.says("a")) as server:
        configure(wire, server.origin, 'model = "mine"')
        wiring.run_agent(HELLO, "hi", options(tmp_path, model="lab/default"))
        assert server.received[0].json["model"] == "mine"
        configure(wire, server.origin)
        with pytest.raises(RunnerError, match="provider lab: has no model of its own; name one"):
            wiring.run_agent(HELLO, "hi", options(tmp_path, model="lab/default"))


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("nobody/x", "no provider 'nobody'"),
        ("lab", "'lab' is no model"),
        ("anthropic/x", "provider anthropic has no key for https://api.anthropic.com"),
    ],
)
def test_a_model_that_can_t_be_asked_is_told_at_once(
    configure: Callable[..., Path], tmp_path: Path, model: str, problem: str
) -> None:
    """
    Before anything begins.
    """
    configure(WIRES[0], "http://127.0.0.1:1")
    with pytest.raises(UsageError) as caught:
        wiring.run_agent(HELLO, "hi", options(tmp_path, model=model))
    assert caught.value.message == problem


def test_a_fallback_answers_only_if_it_is_granted(configure: Callable[..., Path], tmp_path: Path) -> None:
    """
    A conversation goes to nobody whom the agent may not ask.
    """
    wire = WIRES[2]
    with beside(wire.says("other")) as other, beside(wire.refuses(503, retry_after="0")) as server:
        more = ["[providers.other]", 'kind = "compatible"', f'base_url = "{other.origin}/v1"']
        configure(wire, server.origin, 'fallback = "other/small"', *more)
        with pytest.raises(RunnerError, match="provider lab: HTTP status 503"):
            wiring.run_agent(HELLO, "hi", options(tmp_path))
        assert (len(server.received), other.received) == (3, [])
        both = options(tmp_path, allow=("llm:lab/*", "llm:other/*"))
        assert wiring.run_agent(HELLO, "hi", both).result == "other"
        assert other.received[0].json["model"] == "small"
        # It has no key of its own, and gets nobody else's.
        assert "authorization" not in other.received[0].headers


def test_an_agent_learns_nothing_of_a_key_that_can_t_be_used(
    configure: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The operator is told where it is bound; whom the agent names by itself is only said to be of no use.
    """
    configure(WIRES[0], "http://127.0.0.1:1")
    monkeypatch.delenv("LAB_KEY")
    with pytest.raises(KeyRefused):
        wiring.run_agent(HELLO, "hi", options(tmp_path))
    from runner.policy.grants import Grants
    from runner.providers.base import Message, ModelRequest

    provider = providers_of({}, Grants.parse(["llm"]))["lab"]

    async def ask() -> None:
        async for _ in provider.stream(ModelRequest(model="x", messages=(Message("user", "hi"),))):
            pass

    with pytest.raises(RunnerError) as caught:
        anyio.run(ask)
    assert caught.value.message == "provider lab: can't be used on this host: its key is missing or bound"


def _whole(state: Path, snapshot: Path, tmp_path: Path) -> str:
    """
    All that was kept, unpacked.
    """
    kept = [path.read_bytes() for path in state.rglob("*") if path.is_file()]
    names = [row["name"] for row in wiring.list_instances(state)]
    files = [snapshot]
    for name in names:
        files.append(tmp_path / f"{name}.snap")
        wiring.snapshot_named(name, files[-1], state=state)
        kept.append(repr(wiring.journal_rows(name, state=state)).encode())
    for file in files:
        read = read_snapshot(file)
        kept += [file.read_bytes(), repr(read.host).encode(), repr(read.state).encode()]
        kept += [bytes(page) for page in read.state.mind.pages.values()]
    return b"\n".join(kept).decode("latin-1")


@every_dialect
def test_a_key_shows_nowhere(
    wire: Wire,
    configure: Callable[..., Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    Neither in what is kept nor in what is said, whatever command goes on with an agent, and also when the
    provider quotes it; and no other origin ever hears it.
    """
    caplog.set_level(logging.DEBUG)
    state, snapshot = tmp_path / "state", tmp_path / "hello.snap"
    said: list[str] = []

    def attempt(work: Callable[[], Any]) -> None:
        try:
            said.append(repr(work()))
        except RunnerError as error:
            said.append(f"{error!r} {error.to_wire()} {error.report!r}")

    with beside(wire.says("caught")) as elsewhere:
        target = f"{elsewhere.origin}{wire.path}"
        quoting = f"bad key {CANARY}: see {target}"
        answers = [
            wire.says("fine"),
            wire.refuses(400, quoting),
            wire.refuses(401, quoting),
            wire.refuses(307, quoting, location=target),
            wire.answer(wire.write(*wire.begin, wire.error("overloaded_error", quoting))),
            wire.answer(wire.write(*wire.begin, "{")),
            wire.says("fine"),
        ]
        with beside(*answers) as server:
            configure(wire, server.origin)
            chosen = options(tmp_path, snapshot=snapshot)
            named = options(tmp_path)
            attempt(lambda: wiring.run_agent(HELLO, "hi", chosen))
            attempt(lambda: wiring.restore_snapshot(snapshot, "again", chosen, HELLO))
            attempt(lambda: wiring.run_named(HELLO, "one", "hi", named))
            attempt(lambda: wiring.send("one", "again", named))
            attempt(lambda: wiring.fork_named("one", "two", state=state))
            attempt(lambda: wiring.send("two", "again", named))
            attempt(lambda: wiring.resume("two", named))
            attempt(lambda: wiring.restore_named(snapshot, "three", "again", named, agent=HELLO))
            attempt(lambda: wiring.send("one", "more", named))
            assert len(server.received) >= len(answers)
            assert elsewhere.received == []
            assert all(got.headers["authorization"] == f"Bearer {CANARY}" for got in server.received)
            # Its address has moved: the stored key stays with the old one.
            wiring.set_key("lab", CANARY)
            configure(wire, elsewhere.origin)
            attempt(lambda: wiring.send("one", "again", named))
            attempt(lambda: wiring.list_models("lab"))
            assert [line.partition("(")[0] for line in said[-2:]] == ["KeyRefused", "KeyRefused"]
            assert elsewhere.received == []
    said += [repr(wiring.list_providers()), repr(wiring.list_keys())]
    out, err = capfd.readouterr()
    for what in (*said, out, err, caplog.text, _whole(state, snapshot, tmp_path)):
        assert CANARY not in what


def test_keys_and_providers_are_listed_without_keys(configure: Callable[..., Path]) -> None:
    """
    Where each is, and where its key is from.
    """
    path = configure(WIRES[2], "http://127.0.0.1:8000")
    rows = {row["name"]: row for row in wiring.list_providers()}
    assert rows["lab"] == {
        "name": "lab",
        "kind": "compatible",
        "origin": "http://127.0.0.1:8000",
        "model": None,
        "key": "LAB_KEY",
    }
    assert [rows[name]["key"] for name in ("scripted", "ollama", "openai")] == [
        "not needed", "not needed", "missing",
    ]  # fmt: skip
    stored = wiring.set_key("lab", CANARY)
    assert stored == {
        "provider": "lab",
        "origin": "http://127.0.0.1:8000",
        "path": str(path.parent / "keys.json"),
    }
    assert wiring.list_keys() == [{"provider": "lab", "origin": "http://127.0.0.1:8000"}]
    assert {row["name"]: row["key"] for row in wiring.list_providers()}["lab"] == "stored"
    configure(WIRES[2], "http://127.0.0.1:9000")
    assert {row["name"]: row["key"] for row in wiring.list_providers()}["lab"] == (
        "bound to http://127.0.0.1:8000"
    )
    assert wiring.remove_key("lab") == {"provider": "lab"}
    with pytest.raises(UsageError, match="no provider 'nobody'"):
        wiring.set_key("nobody", CANARY)


def test_models_are_listed_by_who_has_them(configure: Callable[..., Path]) -> None:
    """
    Sorted; the scripted provider has one.
    """
    body = json.dumps({"data": [{"id": "b"}, {"id": "a"}]}).encode()
    with beside(Answer(headers={"content-type": "application/json"}, steps=(body,))) as server:
        configure(WIRES[2], server.origin)
        assert wiring.list_models("lab") == ["a", "b"]
    assert wiring.list_models("scripted") == ["default"]


def test_a_run_on_the_scripted_provider_loads_no_sdk(tmp_path: Path) -> None:
    """
    Nor any of what they stand on.
    """
    program = (
        "import json, sys\n"
        "from runner.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "run", str(HELLO), "hi"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "RUNNER_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)},
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert done.stdout == "(scripted) You said: hi\n"
    assert loaded.isdisjoint({"anthropic", "openai", "httpx", "httpx2", "pydantic"})

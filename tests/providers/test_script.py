"""
The file that the scripted provider follows.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from runner.errors import ConfigError
from runner.providers.base import Stop, TextDelta, Usage
from runner.providers.script import Events, Fault, Reply, Rule, Script, Step, load_script


def load(folder: Path, value: Any) -> Script:
    """
    The script that a value states as JSON.
    """
    path = folder / "script.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return load_script(path)


def test_a_toml_script_has_turns_and_rules(tmp_path: Path) -> None:
    """
    Every key of the format once.
    """
    path = tmp_path / "script.toml"
    path.write_text(
        """
        [[turns]]
        reply = "Hello, {input}"
        stop = "refusal"
        usage = { input_tokens = 3 }
        delay_ms = 5

        [[turns]]
        events = [
          { text = "Hel", delay_ms = 20 },
          { text = "lo" },
          { usage = { input_tokens = 9, output_tokens = 2 } },
          { stop = "max_tokens" },
        ]

        [[turns]]
        fault = "http"
        status = 429
        retry_after_ms = 1000
        delay_ms = 7

        [[turns]]
        events = [{ text = "Hel" }, { fault = "reset" }]

        [[rules]]
        when.contains = "weather"
        reply = "Rain."

        [[rules]]
        when.matches = "^[0-9]+$"
        fault = "hang"

        [[rules]]
        reply = "What?"
        """,
        encoding="utf-8",
    )
    assert load_script(path) == Script(
        turns=(
            Reply(template="Hello, {input}", stop="refusal", usage=Usage(3, None), delay_ms=5),
            Events(
                steps=(
                    Step(TextDelta("Hel"), 20),
                    Step(TextDelta("lo")),
                    Step(Usage(9, 2)),
                    Step(Stop("max_tokens")),
                )
            ),
            Events(steps=(Step(Fault(kind="http", status=429, retry_after_ms=1000), 7),)),
            Events(steps=(Step(TextDelta("Hel")), Step(Fault(kind="reset")))),
        ),
        rules=(
            Rule(answer=Reply(template="Rain."), contains="weather"),
            Rule(answer=Events(steps=(Step(Fault(kind="hang")),)), matches=re.compile("^[0-9]+$")),
            Rule(answer=Reply(template="What?")),
        ),
    )


def test_a_json_script_can_say_null_for_unknown(tmp_path: Path) -> None:
    """
    TOML has no null; there the key is left out.
    """
    script = load(tmp_path, {"turns": [{"reply": "x", "usage": {"input_tokens": None, "output_tokens": 0}}]})
    assert script.turns == (Reply(template="x", usage=Usage(None, 0)),)


TURN = {"reply": "x"}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "expected a map, found a list"),
        ({}, "says nothing: expected turns or rules"),
        ({"turns": []}, "says nothing: expected turns or rules"),
        ({"turns": [TURN], "tunrs": []}, 'tunrs: unknown key; did you mean "turns"?'),
        ({"turns": TURN}, "turns: expected a list, found a map"),
        ({"turns": [TURN, {}]}, 'turns[1]: expected one of "reply", "events" or "fault"'),
        (
            {"turns": [{"reply": "x", "fault": "hang"}]},
            'turns[0]: expected one of "reply", "events" or "fault"',
        ),
        ({"turns": [{"reply": 1}]}, "turns[0].reply: expected text, found an integer"),
        ({"turns": [{"reply": "x", "status": 500}]}, "turns[0].status: unknown key"),
        (
            {"turns": [{"reply": "x", "delay_ms": -1}]},
            "turns[0].delay_ms: expected an integer of zero or more",
        ),
        (
            {"turns": [{"reply": "x", "delay_ms": 1.5}]},
            "turns[0].delay_ms: expected an integer, found a float",
        ),
        (
            {"turns": [{"reply": "x", "stop": "done"}]},
            'turns[0].stop: expected "end", "max_tokens", "stop_sequence", "tool_calls" or "refusal"',
        ),
        (
            {"turns": [{"reply": "x", "usage": {"tokens": 1}}]},
            'turns[0].usage.tokens: unknown key; did you mean "input_tokens"?',
        ),
        ({"turns": [{"events": []}]}, "turns[0].events: expected at least 1, found 0"),
        (
            {"turns": [{"events": [{"txt": "x"}]}]},
            'turns[0].events[0]: expected one of "text", "tool_call", "usage", "stop" or "fault"',
        ),
        (
            {"turns": [{"events": [{"text": "x", "stop": "end"}]}]},
            'turns[0].events[0]: expected one of "text", "tool_call", "usage", "stop" or "fault"',
        ),
        (
            {"turns": [{"events": [{"stop": "end"}, {"text": "x"}]}]},
            "turns[0].events[1]: nothing may follow a stop or a fault",
        ),
        (
            {"turns": [{"events": [{"fault": "hang"}, {"stop": "end"}]}]},
            "turns[0].events[1]: nothing may follow a stop or a fault",
        ),
        (
            {"turns": [{"events": [{"usage": {}}, {"usage": {}}]}]},
            "turns[0].events[1]: usage is reported once",
        ),
        (
            {"turns": [{"events": [{"text": "x"}, {"fault": "http", "status": 500}]}]},
            "turns[0].events[1]: an http fault comes before anything else",
        ),
        ({"turns": [{"fault": "http"}]}, "turns[0].status: missing"),
        ({"turns": [{"fault": "http", "status": 200}]}, "turns[0].status: expected 400 to 599"),
        (
            {"turns": [{"fault": "http", "status": 429, "retry_after_ms": 0}]},
            "turns[0].retry_after_ms: expected an integer of one or more",
        ),
        (
            {"turns": [{"fault": "reset", "status": 500}]},
            "turns[0].status: only a fault of kind http has one",
        ),
        ({"turns": [{"fault": "boom"}]}, 'turns[0].fault: expected "http", "reset", "hang" or "malformed"'),
        ({"rules": [{"when": {}, **TURN}]}, "rules[0].when: expected either contains or matches"),
        (
            {"rules": [{"when": {"contains": "a", "matches": "b"}, **TURN}]},
            "rules[0].when: expected either contains or matches",
        ),
        (
            {"rules": [{"when": {"matches": "(?x"}, **TURN}]},
            "rules[0].when.matches: not a regular expression: missing -, : or ) at position 3",
        ),
        ({"rules": [{"when": {"contains": "a"}}]}, 'rules[0]: expected one of "reply", "events" or "fault"'),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, value: Any, problem: str) -> None:
    """
    The person who wrote the script is told where and what.
    """
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, value)
    assert str(caught.value) == f"{tmp_path}/script.json: {problem}"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("s.yaml", b"", "a script is a .toml or a .json file"),
        (
            "s.json",
            b"{",
            "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("s.toml", b"x", "not valid TOML: Expected '=' after a key in a key/value pair (at end of document)"),
        ("s.toml", b"#" * ((1 << 20) + 1), "larger than 1.0 MiB"),
    ],
)
def test_what_is_no_script_file_is_refused(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    """
    By its name, its size or its syntax.
    """
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert str(caught.value) == f"{path}: {problem}"


@pytest.mark.parametrize("content", ['{"turns": [{"reply": "\\ud800"}]}', "[" * 100_000])
def test_json_that_no_payload_can_carry_is_refused(tmp_path: Path, content: str) -> None:
    """
    Half a character, or a depth that nothing can read.
    """
    path = tmp_path / "s.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match="not valid JSON: "):
        load_script(path)


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    """
    With the system's own words.
    """
    with pytest.raises(ConfigError) as caught:
        load_script(tmp_path / "s.json")
    assert str(caught.value) == f"{tmp_path}/s.json: can't be read: No such file or directory"

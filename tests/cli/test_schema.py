"""
What `runner schema` promises, held against what the verbs print.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from runner import errors

TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], where: str = "$") -> list[str]:
    """
    Where a value is not what a schema says, for the words of JSON Schema that ours use.
    """
    known = {
        "$schema", "title", "description", "type", "enum", "pattern", "properties", "required",
        "additionalProperties", "items",
    }  # fmt: skip
    assert schema.keys() - known == set()
    kinds = schema.get("type", list(TYPES))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, TYPES[kind]) for kind in kinds):
        return [f"{where} is no {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where} is none of {schema['enum']}"]
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        return [f"{where} does not match"]
    if isinstance(value, list):
        items = schema.get("items", {})
        return [fault for item in value for fault in faults(item, items, f"{where}[]")]
    if not isinstance(value, dict):
        return []
    found = [f"{where} lacks {name}" for name in schema.get("required", []) if name not in value]
    for name, item in value.items():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
        if inner is False:
            found.append(f"{where} has {name}")
        elif isinstance(inner, dict):
            found += faults(item, inner, f"{where}.{name}")
    return found


def schema_of(command: Any, subject: str) -> Any:
    """
    What the verb prints.
    """
    code, stdout, stderr = command("schema", subject)
    assert (code, stderr) == (0, "")
    return json.loads(stdout)


@pytest.mark.parametrize("snapshot", [None, {"path": "x", "size_bytes": 1, "pages": 0}])
def test_a_report_is_what_its_schema_says(command: Any, wiring: Any, snapshot: Any) -> None:
    """
    On success.
    """
    wiring.reports(result=[b"\x00"], snapshot=snapshot)
    document = json.loads(command("run", "agent", "x", "--json").stdout)
    assert faults(document, schema_of(command, "report")) == []


@pytest.mark.parametrize(
    "cause",
    [errors.GuestReturnedError("no", {"a": 1}), errors.FuelExhausted(5), KeyError("x"), KeyboardInterrupt()],
)
def test_a_failure_is_what_its_schemas_say(command: Any, wiring: Any, cause: BaseException) -> None:
    """
    The whole document, and the error in it.
    """
    wiring.raises(cause)
    document = json.loads(command("run", "agent", "x", "--json").stdout)
    assert faults(document, schema_of(command, "report")) == []
    assert faults(document["error"], schema_of(command, "error")) == []


def test_what_is_not_promised_is_found(command: Any) -> None:
    """
    The checker itself.
    """
    report = {"ok": 1, "memory_digest": "x", "limits": {"a": "b"}, "more": 0, "waiting": ["x"]}
    assert faults(report, schema_of(command, "report")) == [
        "$ lacks result", "$ lacks instance", "$ lacks agent", "$ lacks journal", "$ lacks snapshot",
        "$ lacks usage", "$ lacks fuel", "$ lacks timing_ms",
        "$.ok is no ['boolean']", "$.memory_digest does not match", "$.limits.a is no ['integer']",
        "$ has more", "$.waiting[] is no ['integer']",
    ]  # fmt: skip


def test_every_exit_code_is_listed_with_its_kinds(command: Any) -> None:
    """
    The whole table, for scripts.
    """
    rows = schema_of(command, "exit-codes")
    assert {row["code"]: row["kinds"] for row in rows} == {
        0: [],
        1: ["guest"],
        2: ["usage"],
        3: ["denied"],
        4: ["budget", "limit"],
        5: ["protocol", "trap"],
        6: ["needs_decision"],
        7: ["artifact"],
        8: ["upstream"],
        9: ["nondeterminism"],
        70: ["internal"],
        130: ["interrupted"],
        143: ["interrupted"],
    }
    assert all(row["meaning"] for row in rows)

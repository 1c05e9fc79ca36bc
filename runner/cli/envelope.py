"""
The JSON documents of `--json`, and their schemas.

One document per command, on success and on failure alike, with the same outer keys: `ok`, what the
verb answers, and `error` when `ok` is false.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from runner.cli.failures import EXIT_CODES
from runner.errors import RunnerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.cli.failures import Failure
    from runner.wiring.options import Report

REPORT_KEYS: Final = (
    "result",
    "instance",
    "agent",
    "journal",
    "snapshot",
    "usage",
    "limits",
    "fuel",
    "timing_ms",
    "memory_digest",
    "waiting",
)
"""
What `run`, `restore`, `send` and `resume` answer.
"""

RESULT_KEYS: Final = ("result",)
"""
What every other verb answers.
"""

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def report_document(report: Report) -> dict[str, Any]:
    """
    The document of a delivery that ended well.
    """
    facts = asdict(report)
    return {"ok": True} | {key: facts[key] for key in REPORT_KEYS}


def result_document(result: Any) -> dict[str, Any]:
    """
    The document of a verb that answers one thing.
    """
    return {"ok": True, "result": result}


def listing(rows: list[dict[str, Any]], counts: dict[str, int]) -> dict[str, Any]:
    """
    What a verb answers that lists things.
    """
    return {
        "as_of": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "counts": counts,
        "rows": rows,
        "truncated": False,
    }


def failure_document(failure: Failure, keys: tuple[str, ...]) -> dict[str, Any]:
    """
    The document of a command that failed; `keys` are what it would have answered.
    """
    reached = failure.error.report
    known = {name: value for name, value in asdict(reached).items() if name in keys} if reached else {}
    return {"ok": False} | dict.fromkeys(keys) | known | {"error": failure.to_wire()}


def exit_codes() -> list[dict[str, Any]]:
    """
    Every exit code with the `error.kind`s that lead to it.
    """
    kinds: dict[int, set[str]] = {code: set() for code in EXIT_CODES}
    for error in _error_classes(RunnerError):
        kinds[error.exit_code].add(error.kind)
    kinds[143].add("interrupted")
    return [
        {"code": code, "kinds": sorted(kinds[code]), "meaning": meaning}
        for code, meaning in EXIT_CODES.items()
    ]


def error_schema() -> dict[str, Any]:
    """
    JSON Schema of the `error` in a document.
    """
    kinds = sorted({error.kind for error in _error_classes(RunnerError)})
    return {
        "$schema": _DRAFT,
        "title": "error",
        "type": "object",
        "required": ["kind", "message", "hint", "exception", "details"],
        "additionalProperties": False,
        "properties": {
            "kind": {"enum": kinds, "description": "stable; decides the exit code"},
            "message": {"type": "string", "description": "for people; may change"},
            "hint": {"type": ["string", "null"], "description": "what to do next"},
            "exception": {"type": "string", "description": "class in runner.errors"},
            "details": {"type": "object", "description": "typed facts; keys depend on the exception"},
        },
    }


def report_schema() -> dict[str, Any]:
    """
    JSON Schema of the document that `run`, `restore`, `send` and `resume` print with `--json`.
    """
    return {
        "$schema": _DRAFT,
        "title": "report",
        "type": "object",
        "required": ["ok", *REPORT_KEYS],
        "additionalProperties": False,
        "properties": {
            "ok": {"type": "boolean"},
            "result": {"description": "what the agent returned; null on failure"},
            "instance": {"type": ["string", "null"]},
            "agent": {"type": ["string", "null"], "description": "the agent's name"},
            "journal": {
                "type": ["object", "null"],
                "description": "of a named instance: its state directory and number of records",
            },
            "snapshot": {"type": ["object", "null"], "description": "the snapshot that was written"},
            "usage": {"type": ["object", "null"], "description": "calls of models and their tokens"},
            "limits": {
                "type": ["object", "null"],
                "additionalProperties": {"type": "integer"},
                "description": "bounds in force, in the unit that the key ends with",
            },
            "fuel": {"type": ["integer", "null"], "description": "fuel used by the delivery"},
            "timing_ms": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
            "memory_digest": {"type": ["string", "null"], "pattern": "^sha256:[0-9a-f]{64}$"},
            "waiting": {
                "type": ["array", "null"],
                "items": {"type": "integer"},
                "description": "calls that wait for a person's approval",
            },
            "error": {key: value for key, value in error_schema().items() if key != "$schema"},
        },
    }


def _error_classes(root: type[RunnerError]) -> Iterator[type[RunnerError]]:
    yield root
    for child in root.__subclasses__():
        yield from _error_classes(child)

"""
Shows how a delivery ended: what `run` and `restore` have in common.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from runner.cli.describe import describe
from runner.cli.envelope import report_document, result_document
from runner.units import show_bytes

if TYPE_CHECKING:
    from runner.cli.console import Console
    from runner.wiring.options import Report


def show_report(report: Report, console: Console) -> int:
    """
    Print the result, and on stderr where it can go on.
    """
    if console.display.as_json:
        console.document(report_document(report))
    else:
        console.result(report.result)
    _say_rest(report, console)
    _say_waiting(report, console)
    return 0


def _say_waiting(report: Report, console: Console) -> None:
    if report.waiting and not console.display.as_json:
        calls = ", ".join(map(str, report.waiting))
        hint = f"see them: runner approvals {report.instance}"
        console.note(f"{report.instance} waits for approval of call {calls}", hint=hint)


def show_what_was_reached(report: Report, console: Console) -> None:
    """
    Before a failure is told: an answer that there was all the same, and the snapshot of what is left.
    """
    if console.display.as_json:
        return
    if report.result is not None:
        console.result(report.result)
    _say_rest(report, console)


def show_restored(report: Report, console: Console) -> int:
    """
    Print what an instance that got no input answered all the same, or else its state.

    It answers when the snapshot was taken in the middle of a delivery, which is then finished.
    """
    if report.result is not None or console.display.as_json:
        return show_report(report, console)
    facts = {
        "instance": report.instance,
        "agent": report.agent,
        "memory_digest": report.memory_digest,
        "fuel": report.fuel,
        "limits": report.limits,
    }
    console.text(describe(facts))
    _say_rest(report, console)
    _say_waiting(report, console)
    return 0


def show_done(console: Console, facts: dict[str, Any], text: str, hint: str | None) -> int:
    """
    Say what was done: to a program as a document, to a person in one line, with the next command.
    """
    if console.display.as_json:
        console.document(result_document(facts))
    else:
        console.note(text, hint=hint)
    return 0


def _say_rest(report: Report, console: Console) -> None:
    if report.snapshot is not None and not console.display.as_json:
        path, size = str(report.snapshot["path"]), show_bytes(report.snapshot["size_bytes"])
        pages = report.snapshot["pages"]
        console.note(
            f"snapshot {path}: {pages} page{'' if pages == 1 else 's'}, {size}",
            hint=f"go on with: runner restore {shlex.quote(path)}",
        )
    if console.display.verbosity > 0:
        timing = ", ".join(f"{name} {value:.1f} ms" for name, value in report.timing_ms.items())
        console.note(f"instance {report.instance}: fuel {report.fuel}, {timing}")

"""
Writes the generated parts of `docs/abi.md` from the tables that the host itself runs on.

    python docs/abi_reference.py --write
    python docs/abi_reference.py --check

A generated part lies between `<!-- generated: NAME -->` and `<!-- end of generated: NAME -->`; everything
else in the file is written by hand and stays as it is.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Final

from runner import codec
from runner.build import c_header
from runner.kernel import abi, admission
from runner.kernel import slice as kernel_slice
from runner.kernel.engine import MAX_STACK_BYTES
from runner.kernel.limits import Limits
from runner.kernel.wasm import module as wasm_module
from runner.kernel.wasm.code import STATE_OPCODES
from runner.units import show_bytes

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = ROOT / "docs" / "abi.md"

_PART: Final = re.compile(
    r"(?P<open><!-- generated: (?P<name>[a-z-]+) -->\n)"
    r"(?P<body>.*?)"
    r"(?P<close><!-- end of generated: (?P=name) -->)",
    re.DOTALL,
)
_CODE_WIDTH: Final = 96

_ANY_CALL: Final = "call"
"""
Stands for every operation that makes a call in `CONDITIONS`.
"""

CHECKED: Final = (
    abi.Status.OK,
    abi.Status.DENIED,
    abi.Status.UNSUPPORTED,
    abi.Status.NOT_FOUND,
    abi.Status.SETTLED,
    abi.Status.LIMIT,
    abi.Status.TOO_SMALL,
    abi.Status.FAULT,
    abi.Status.INVALID,
)
"""
The order in which an import checks for its statuses.
"""


def _size(size_bytes: int) -> str:
    return show_bytes(size_bytes).replace(".0 ", " ")


CONDITIONS: Final[dict[tuple[str, abi.Status], str]] = {
    (_ANY_CALL, abi.Status.INVALID): "the bytes are not deterministic CBOR, or are not a map",
    (_ANY_CALL, abi.Status.DENIED): "the manifest does not declare the operation as used",
    (_ANY_CALL, abi.Status.LIMIT): "`len` is above `request_bytes`, or this slice has made `calls_per_slice` "
    "calls, or `calls_in_flight` calls are unanswered, or the call numbers are used up",
    (_ANY_CALL, abi.Status.UNSUPPORTED): "inside `agent_start`",
    ("agent.after", abi.Status.UNSUPPORTED): "the host is not resident, or this is inside `agent_start`",
    ("agent.every", abi.Status.UNSUPPORTED): "the host is not resident, or this is inside `agent_start`",
    (
        "agent.take",
        abi.Status.FAULT,
    ): "the bytes to be copied would not lie inside the memory; they still wait",
    ("agent.reply", abi.Status.OK): "accepted; it takes effect when the slice returns",
    ("agent.reply", abi.Status.INVALID): "the bytes are not deterministic CBOR",
    ("agent.reply", abi.Status.LIMIT): "`len` is above `reply_bytes`; the delivery is still open",
    (
        "agent.reply",
        abi.Status.NOT_FOUND,
    ): "no delivery of that number was handed over yet",
    ("agent.reply", abi.Status.SETTLED): "`delivery` has ended: it was answered, or it failed",
    ("agent.fail", abi.Status.OK): "accepted; it takes effect when the slice returns",
    ("agent.fail", abi.Status.INVALID): "the bytes are not deterministic CBOR of the request's shape",
    ("agent.fail", abi.Status.LIMIT): "`len` is above `reply_bytes`; the delivery is still open",
    (
        "agent.fail",
        abi.Status.NOT_FOUND,
    ): "no delivery of that number was handed over yet",
    ("agent.fail", abi.Status.SETTLED): "`delivery` has ended: it was answered, or it failed",
    ("agent.cancel", abi.Status.OK): "accepted; it takes effect when the slice returns",
    ("agent.cancel", abi.Status.NOT_FOUND): "no call of that number is in flight",
    ("agent.log", abi.Status.INVALID): "the bytes are not deterministic CBOR of the request's shape",
    ("agent.log", abi.Status.LIMIT): "`len` is above `log_line_bytes`, or this slice has written "
    "`log_lines_per_slice` lines; the line is dropped and counted",
    ("agent.random", abi.Status.LIMIT): "`len` is above `random_bytes`",
    ("agent.random", abi.Status.UNSUPPORTED): "inside `agent_start`",
    (
        "agent.snapshot",
        abi.Status.INVALID,
    ): "the reason is not the deterministic CBOR of a text, or is longer than `log_line_bytes`",
    ("agent.restored", abi.Status.FAULT): "the answer would not lie inside the memory",
    ("agent.restored", abi.Status.TOO_SMALL): "`len` is less than the answer's length; nothing was written",
    ("agent.last_snapshot", abi.Status.FAULT): "the answer would not lie inside the memory",
    (
        "agent.last_snapshot",
        abi.Status.TOO_SMALL,
    ): "`len` is less than the answer's length; nothing was written",
}
"""
Conditions that are narrower for one import than `abi.STATUS_MEANING` says of the status.
"""

WAKE_CONDITIONS: Final[dict[abi.Status, str]] = {
    abi.Status.INVALID: "the request was not of the shape above",
    abi.Status.DENIED: "a rule of the operator's refused this request",
    abi.Status.LIMIT: "a budget is used up, or the answer is above `payload_bytes`",
    abi.Status.UNSUPPORTED: "this host has no such service",
    abi.Status.NOT_FOUND: "nothing of that name is granted",
    abi.Status.FAILED: "the effect failed outside",
}
"""
Conditions of the negative statuses of a wake.
"""

RULES: Final[dict[str, str]] = {
    "not-wasm": "It is a WebAssembly module in binary form.",
    "component": "It is a core module, not a component.",
    "malformed": "The host can read it to its end.",
    "invalid": "It is valid WebAssembly.",
    "feature": "It needs no more than WebAssembly 1.0 with sign extension, saturating conversion, bulk "
    "memory, multi-value, reference types, SIMD and exceptions. Threads, 64-bit and multiple memories, "
    "garbage collection, typed function references, stack switching, tail calls and relaxed SIMD are off.",
    "module-size": f"It has at most {_size(admission.MAX_CODE_BYTES)}, custom sections named `runner.*` "
    "left aside.",
    "too-many": "Its sections have a bounded number of items: "
    + ", ".join(
        f"{getattr(wasm_module, f'MAX_{name.upper()}'):,} {name}"
        for name in ("types", "imports", "functions", "tables", "globals", "exports")
    )
    + ".",
    "import-wasi": "It imports nothing of WASI.",
    "import-kind": "It imports functions only: no memory, table, global or tag.",
    "import-unknown": "Each import is an operation of this ABI.",
    "import-signature": "Each import has the signature given below.",
    "abi-version": "It does not speak another version of the ABI only.",
    "export-missing": "It exports `memory` and the functions of [Exports](#exports) that are not optional.",
    "export-kind": "`memory` is a memory, the others are functions.",
    "export-signature": "Each of these functions has the signature given below.",
    "export-reserved": "No export's name begins with `runner.`; the marker has an underscore there.",
    "memory-missing": "It has a memory, one, which is neither imported nor shared.",
    "table-type": "Its tables hold functions, not other references.",
    "table-size": f"Its tables have at most {admission.MAX_TABLE_ELEMENTS:,} elements together; each counts "
    f"{admission.TABLE_ELEMENT_BYTES} bytes towards `memory_bytes`.",
    "global-type": "Its mutable globals are `i32`, `i64` or `f64`. They need not be exported: the host "
    "captures them.",
    "global-count": f"At most {admission.MAX_MUTABLE_GLOBALS:,} of its globals are mutable.",
    "state-change": "No instruction changes what a snapshot does not hold: "
    + ", ".join(f"`{name}`" for name in STATE_OPCODES.values())
    + " do not occur. `memory.init` may.",
    "function-size": f"No function has more than {_size(admission.MAX_FUNCTION_BYTES)} of code.",
    "function-calls": f"No function makes more than {admission.MAX_FUNCTION_CALLS:,} calls, each counted "
    "where it is written: in a straight row of calls the engine looks neither at fuel nor at the clock.",
    "function-effort": "No function asks too much of an optimizing compiler: roughly, the number of places "
    f"where control flow meets times the number of values is at most {admission.MAX_FUNCTION_EFFORT:,}.",
    "module-effort": f"All functions together ask at most {admission.MAX_MODULE_EFFORT:,} of it.",
}
"""
What a module must be, by the name of the rule that a refusal carries.
"""


def rules() -> Iterator[str]:
    """
    The table of what a module must be.
    """
    yield from _table(("rule", "what must hold"), ((f"`{rule}`", text) for rule, text in RULES.items()))


def statuses() -> Iterator[str]:
    """
    The table of statuses.
    """
    yield from _table(
        ("status", "value", "meaning"),
        ((f"`{status.name}`", str(status.value), abi.STATUS_MEANING[status]) for status in abi.Status),
    )


def kinds() -> Iterator[str]:
    """
    The table of delivery kinds.
    """
    yield from _values("kind", abi.DeliveryKind)


def levels() -> Iterator[str]:
    """
    The table of log levels.
    """
    yield from _values("level", abi.LogLevel)


def shapes() -> Iterator[str]:
    """
    The CDDL names that requests and answers use.
    """
    yield "```cddl"
    for name, shape in abi.SHAPES.items():
        yield from _code(f"{name} = {shape}")
    yield "```"


def limits() -> Iterator[str]:
    """
    The bounds of an instance with their defaults.
    """
    texts = _attributes(Limits)
    yield from _table(
        ("limit", "default", "bounds"),
        ((f"`{name}`", _quantity(name, value), texts[name]) for name, value in Limits().to_wire().items()),
    )
    yield ""
    yield f"Besides, the frames of a slice have {_size(MAX_STACK_BYTES)} of stack; deeper recursion traps."


def codec_bounds() -> Iterator[str]:
    """
    The numbers of the payload rules.
    """
    yield from _table(
        ("bound", "value"),
        (
            ("containers inside containers", str(codec.MAX_DEPTH)),
            ("items in one payload, keys included", f"{codec.MAX_ITEMS:,}"),
        ),
    )


def fuel() -> Iterator[str]:
    """
    What host work costs.
    """
    yield from _table(
        ("work", "fuel"),
        (
            ("a call of any import", f"{kernel_slice.HOST_CALL_FUEL:,}"),
            ("each byte that the host checks or copies for it", f"{kernel_slice.HOST_BYTE_FUEL:,}"),
        ),
    )


def exports() -> Iterator[str]:
    """
    One section for each export that the host calls.
    """
    for entry in abi.EXPORTS:
        yield from _heading(entry, entry.name)
        yield from _signature(f'(func (export "{entry.name}"){_wasm(entry)})', entry.name)
        if entry.request:
            yield from _cddl("Payload", entry.request)


def imports() -> Iterator[str]:
    """
    One section for each import.
    """
    capability = ""
    for entry in abi.IMPORTS:
        if entry.capability != capability:
            capability = entry.capability
            yield f"### `{capability}`"
            yield ""
        yield from _heading(entry, entry.operation)
        text = f'(import "{entry.capability}" "{entry.name}" (func{_wasm(entry)}))'
        yield from _signature(text, f"runner_{entry.capability}_{entry.name}")
        if entry.request:
            yield from _cddl("Request", entry.request)
        yield from _returns(entry)
        if entry.makes_call:
            yield from _wakes(entry)
        elif entry.answer:
            yield from _cddl("Written", entry.answer)


def example(path: str, language: str) -> Callable[[], Iterator[str]]:
    """
    A part that shows a file of the repository as it is.
    """

    def lines() -> Iterator[str]:
        yield f"`{path}`:"
        yield ""
        yield f"```{language}"
        yield from (ROOT / path).read_text(encoding="utf-8").rstrip("\n").split("\n")
        yield "```"

    return lines


PARTS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "rules": rules,
    "statuses": statuses,
    "kinds": kinds,
    "levels": levels,
    "shapes": shapes,
    "limits": limits,
    "codec-bounds": codec_bounds,
    "fuel": fuel,
    "exports": exports,
    "imports": imports,
    "example-wat": example("guest_sdk/wat/minimal.wat", "wat"),
    "example-c": example("guest_sdk/c/template/agent.c", "c"),
}
"""
Every generated part by name.
"""


def generate(text: str) -> str:
    """
    `text` with its generated parts made anew.

    Raises:
        ValueError: If a part is missing, unknown, or there twice.
    """
    found = [match["name"] for match in _PART.finditer(text)]
    if sorted(found) != sorted(PARTS):
        msg = f"generated parts are {sorted(found)}, expected {sorted(PARTS)}"
        raise ValueError(msg)
    return _PART.sub(lambda match: match["open"] + _body(PARTS[match["name"]]()) + match["close"], text)


def _body(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in ("", *lines, "")).replace("\n\n\n", "\n\n")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _values(label: str, values: type[IntEnum]) -> Iterator[str]:
    yield from _table((label, "value"), ((f"`{value.name}`", str(value.value)) for value in values))


def _quantity(name: str, value: int) -> str:
    return _size(value) if name.endswith("_bytes") else f"{value:,}"


def _attributes(documented: type) -> dict[str, str]:
    """
    Text of each name below `Attributes:` in a class docstring.
    """
    section = textwrap.dedent((documented.__doc__ or "").partition("Attributes:\n")[2])
    entries = re.findall(r"^(\w+): (.*(?:\n[ ]+.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def _heading(entry: abi.Entry, name: str) -> Iterator[str]:
    yield f"#### `{name}`"
    yield ""
    yield entry.summary
    yield ""


def _wasm(entry: abi.Entry) -> str:
    params = "".join(f" (param ${param.name} {param.wasm})" for param in entry.params)
    return params + (f" (result {entry.result})" if entry.result else "")


def _signature(wasm: str, c_name: str) -> Iterator[str]:
    declaration = re.search(rf"^\w+ {c_name}\(.*\);$", c_header.generate(), re.MULTILINE)
    if declaration is None:
        msg = f"the C header declares no {c_name}"
        raise LookupError(msg)
    yield "```wat"
    yield wasm
    yield "```"
    yield ""
    yield "```c"
    yield declaration[0]
    yield "```"
    yield ""


def _code(text: str) -> list[str]:
    # An occurrence mark stays with what it marks: textwrap does not break at a no-break space.
    glued = re.sub(r"([?*+]) ", "\\1\u00a0", text)
    lines = textwrap.wrap(
        glued, _CODE_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\u00a0", " ") for line in lines]


def _cddl(label: str, text: str) -> Iterator[str]:
    yield f"{label}:"
    yield ""
    yield "```cddl"
    yield from _code(text)
    yield "```"
    yield ""


def _returns(entry: abi.Entry) -> Iterator[str]:
    if entry.returns and not entry.statuses:
        yield f"Returns: {entry.returns}."
        yield ""
        return
    yield f"Returns: {entry.returns}; or" if entry.returns else "Returns:"
    yield ""
    key = _ANY_CALL if entry.makes_call else entry.operation
    for status in sorted(entry.statuses, key=CHECKED.index):
        condition = CONDITIONS.get((entry.operation, status)) or CONDITIONS.get(
            (key, status), abi.STATUS_MEANING[status]
        )
        yield f"- `{status.name}` ({status.value}): {condition}"
    yield ""


def _wakes(entry: abi.Entry) -> Iterator[str]:
    yield "Wakes with:"
    yield ""
    for status in sorted(entry.wakes, reverse=True):
        if status is abi.Status.PART:
            yield f"- `PART` ({status.value}), any number of times before the last wake: `{entry.part}`"
        elif status is abi.Status.OK:
            yield f"- `OK` ({status.value}): `{entry.answer}`"
        else:
            yield f"- `{status.name}` ({status.value}): {WAKE_CONDITIONS[status]}; payload `error`"
    yield ""


def main(arguments: Sequence[str]) -> int:
    """
    `--write` the generated parts, or `--check` that they are up to date; 1 when they aren't.
    """
    if list(arguments) not in (["--write"], ["--check"]):
        sys.stderr.write("usage: python docs/abi_reference.py --check|--write\n")
        return 2
    text = DOCUMENT.read_text(encoding="utf-8")
    fresh = generate(text)
    if arguments[0] == "--write":
        DOCUMENT.write_text(fresh, encoding="utf-8")
    elif text != fresh:
        sys.stderr.write(f"{DOCUMENT} is out of date: run python docs/abi_reference.py --write\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

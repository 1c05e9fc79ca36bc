"""
Writes `guest_sdk/c/include/runner_abi.h` from the ABI table, so that the two can't disagree.

    python -m runner.build.c_header --write
    python -m runner.build.c_header --check
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from runner.build.sdk import sdk_root
from runner.kernel import abi

HEADER_NAME = "runner_abi.h"

_WIDTH = 100
_C_RESULT = {None: "void", "i32": "int32_t", "i64": "int64_t"}
_OPENING = f"""\
/* The guest ABI, version {abi.ABI_VERSION}. Generated from runner/kernel/abi.py by
   `python -m runner.build.c_header --write`; docs/abi.md is the text for people.

   Every import is one capability: a module that calls `runner_llm_chat` asks its operator for `llm.chat`.
   All payloads are deterministic CBOR. */

#ifndef RUNNER_ABI_H
#define RUNNER_ABI_H

#include <stdint.h>

#define RUNNER_ABI_VERSION {abi.ABI_VERSION}

#define RUNNER_IMPORT(module, name) __attribute__((import_module(#module), import_name(#name)))
#define RUNNER_EXPORT(name) __attribute__((export_name(#name)))
"""


def generate() -> str:
    """
    The header's whole text.
    """
    blocks = [
        _OPENING.rstrip("\n"),
        "\n".join(_enum("status", abi.Status, abi.STATUS_MEANING)),
        "\n".join(_enum("kind", abi.DeliveryKind, {})),
        "\n".join(_enum("log", abi.LogLevel, {})),
        "/* Shapes that the requests and answers below name (CDDL):\n\n"
        + "\n".join(_wrapped(f"{name} = {shape}", "     ") for name, shape in abi.SHAPES.items())
        + " */",
        "/* Exports: the SDK defines them. */",
        *("\n".join(_function(entry, f"RUNNER_EXPORT({entry.name})", entry.name)) for entry in abi.EXPORTS),
        "/* Imports. */",
        *("\n".join(_import(entry)) for entry in abi.IMPORTS),
        "#endif",
    ]
    return "\n\n".join(blocks) + "\n"


def _enum(prefix: str, values: type[IntEnum], meanings: dict[abi.Status, str]) -> Iterator[str]:
    yield f"enum runner_{prefix} {{"
    for value in values:
        if isinstance(value, abi.Status):
            yield _wrapped(f"/* {meanings[value]}", "  ", hang="   ") + " */"
        yield f"  RUNNER_{prefix}_{value.name}".upper() + f" = {value.value},"
    yield "};"


def _import(entry: abi.Entry) -> Iterable[str]:
    attribute = f"RUNNER_IMPORT({entry.capability}, {entry.name})"
    return _function(entry, attribute, f"runner_{entry.capability}_{entry.name}")


def _function(entry: abi.Entry, attribute: str, name: str) -> Iterator[str]:
    facts = [_wrapped(entry.summary, "   ", hang="").lstrip()]
    for label, text in (
        ("request", entry.request),
        ("answer", entry.answer),
        ("part", entry.part),
        ("returns", entry.returns),
    ):
        if text is not None:
            facts.append(_wrapped(f"{label}: {text}", "     "))
    if entry.statuses:
        facts.append(_wrapped("status: " + ", ".join(s.name for s in entry.statuses), "     "))
    if entry.wakes:
        facts.append(_wrapped("wakes: " + ", ".join(s.name for s in entry.wakes), "     "))
    yield "/* " + "\n".join(facts) + " */"
    yield attribute
    yield f"{_C_RESULT[entry.result]} {name}({_parameters(entry.params)});"


def _parameters(params: Sequence[abi.Param]) -> str:
    if not params:
        return "void"
    return ", ".join(p.c + ("" if p.c.endswith("*") else " ") + p.name for p in params)


def _wrapped(text: str, indent: str, *, hang: str = "  ") -> str:
    return textwrap.fill(
        # A shape must not end the comment that shows it.
        text.replace("*/", "* /"),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def main(arguments: Sequence[str]) -> int:
    """
    `--write` the header, or `--check` that the committed one is the generated one; 1 when it isn't.
    """
    path = sdk_root() / "c" / "include" / HEADER_NAME
    if list(arguments) == ["--write"]:
        path.write_text(generate(), encoding="utf-8")
        return 0
    if list(arguments) == ["--check"]:
        if path.read_text(encoding="utf-8") == generate():
            return 0
        sys.stderr.write(f"{path} is out of date: run python -m runner.build.c_header --write\n")
        return 1
    sys.stderr.write("usage: python -m runner.build.c_header --check|--write\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""
The rules of the repository that a program can check. Each reads the tree as it is.
"""

from __future__ import annotations

import ast
import io
import json
import re
import socket
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import pytest

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

ROOT: Final = Path(__file__).resolve().parents[1]
KERNEL: Final = ROOT / "runner" / "kernel"

KERNEL_CODE_LINES: Final = 3_000
MODULE_CODE_LINES: Final = 600
FUNCTION_CODE_LINES: Final = 80

KERNEL_DEPENDENCIES: Final = frozenset({"wasmtime", "cbor2"})
KERNEL_FORBIDDEN_STDLIB: Final = frozenset(
    {
        "asyncio", "concurrent", "datetime", "http", "logging", "pickle", "random", "secrets", "selectors",
        "shelve", "socket", "sqlite3", "ssl", "subprocess", "time", "urllib", "uuid",
    }
)  # fmt: skip

HEAVY: Final = ("anthropic", "anyio", "httpx", "httpx2", "openai", "pydantic", "wasmtime")

BINARY_MAGIC: Final = {
    b"\0asm": "WebAssembly",
    b"\x7fELF": "ELF",
    b"!<arch>\n": "archive",
    b"MZ": "PE",
    b"\xcf\xfa\xed\xfe": "Mach-O",
    b"PK\x03\x04": "zip",
    b"\x1f\x8b": "gzip",
}

_LAYOUT_TOKENS: Final = frozenset(
    {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENCODING, tokenize.ENDMARKER,
    }
)  # fmt: skip


def python_files(*folders: str) -> list[Path]:
    """
    Every Python file below the folders.
    """
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """
    The path from the root of the repository.
    """
    return path.relative_to(ROOT).as_posix()


def prose_lines(tree: ast.AST) -> set[int]:
    """
    Lines of bare strings: docstrings, and the texts under constants.
    """
    lines: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def code_lines(source: str) -> set[int]:
    """
    Numbers of the lines that hold code, not only comment, docstring or nothing.
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _LAYOUT_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines - prose_lines(ast.parse(source))


def functions(tree: ast.AST) -> Iterator[Function]:
    """
    Every function below `tree`, nested ones and methods included.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def imported_modules(tree: ast.AST) -> set[str]:
    """
    Top-level names of every absolute import, wherever it stands.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def public_members(node: ast.ClassDef | ast.Module) -> Iterator[ast.ClassDef | Function]:
    """
    Classes and functions right below `node` that have no underscore.
    """
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and child.name[0] != "_":
            yield child


def documented_members(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """
    For each class by name, the members that it or a base of it documents.
    """
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    own = {node.name: {m.name for m in public_members(node) if ast.get_docstring(m)} for node in classes}
    bases = {node.name: {base.id for base in node.bases if isinstance(base, ast.Name)} for node in classes}

    def inherited(name: str) -> set[str]:
        return own.get(name, set()).union(*(inherited(base) for base in bases.get(name, ())))

    return {name: inherited(name) for name in own}


def undocumented(node: ast.ClassDef | ast.Module, name: str, known: dict[str, set[str]]) -> Iterator[str]:
    """
    Public names below `node`, members included, that have no docstring and inherit none.
    """
    for child in public_members(node):
        inherits = isinstance(node, ast.ClassDef) and child.name in known[node.name]
        if ast.get_docstring(child) is None and not inherits:
            yield f"{name}.{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from undocumented(child, f"{name}.{child.name}", known)


def readme_command(name: str) -> str:
    """
    The fenced block after `<!-- command: NAME -->`, as `.ci/run` reads it.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(
        rf"^<!-- command: {re.escape(name)} -->\n```\w*\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 1, f"README.md must have one block {name!r}, has {len(blocks)}"
    return str(blocks[0])


def test_code_lines_count_neither_comments_nor_docstrings() -> None:
    """
    The counter itself: code, and nothing else.
    """
    source = (
        '"""\nModule.\n"""\n\n# why\nx = 1  # one\n"""\nText of x.\n"""\n\n\n'
        'def f() -> str:\n    """\n    Doc.\n    """\n    return """a\n\nb"""\n'
    )
    assert code_lines(source) == {6, 12, 16, 17, 18}


def test_the_kernel_can_be_read_in_an_hour() -> None:
    """
    The trusted core stays within its budget of code lines.
    """
    counts = {
        name_of(path): len(code_lines(path.read_text(encoding="utf-8"))) for path in KERNEL.rglob("*.py")
    }
    assert counts
    assert sum(counts.values()) <= KERNEL_CODE_LINES, counts


def test_the_kernel_imports_only_the_engine_and_the_codec() -> None:
    """
    Third-party code inside the trust boundary is wasmtime and cbor2.
    """
    known = KERNEL_DEPENDENCIES | sys.stdlib_module_names | {"runner"}
    strangers = {
        name_of(path): sorted(found)
        for path in KERNEL.rglob("*.py")
        if (found := imported_modules(ast.parse(path.read_text(encoding="utf-8"))) - known)
    }
    assert strangers == {}


def test_the_kernel_has_no_clock_no_chance_and_no_network() -> None:
    """
    Everything that could make two runs differ comes in as an input.
    """
    reached = {
        name_of(path): sorted(found)
        for path in KERNEL.rglob("*.py")
        if (found := imported_modules(ast.parse(path.read_text(encoding="utf-8"))) & KERNEL_FORBIDDEN_STDLIB)
    }
    assert reached == {}


def test_no_module_is_too_long() -> None:
    """
    A module that outgrows the budget is two modules.
    """
    counts = {
        name_of(path): len(code_lines(path.read_text(encoding="utf-8")))
        for path in python_files("runner", "guest_sdk", "benchmarks", "docs", "tests")
    }
    assert {name: count for name, count in counts.items() if count > MODULE_CODE_LINES} == {}


def test_no_function_is_too_long() -> None:
    """
    A function fits on a screen, its docstring aside.
    """
    too_long = {}
    for path in python_files("runner", "guest_sdk", "benchmarks", "docs", "tests"):
        source = path.read_text(encoding="utf-8")
        lines = code_lines(source)
        for function in functions(ast.parse(source)):
            count = len(lines.intersection(range(function.lineno, (function.end_lineno or 0) + 1)))
            if count > FUNCTION_CODE_LINES:
                too_long[f"{name_of(path)}:{function.name}"] = count
    assert too_long == {}


def test_every_public_name_is_documented() -> None:
    """
    Modules, classes, functions and methods without an underscore have a docstring, or inherit one.
    """
    trees = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in python_files("runner")}
    known = documented_members(trees.values())
    missing = [name for name, tree in trees.items() if ast.get_docstring(tree) is None]
    for name, tree in trees.items():
        missing.extend(undocumented(tree, name, known))
    assert missing == []


def test_an_override_may_leave_its_contract_to_its_port() -> None:
    """
    The finder itself: a name without a text is found, one whose base has a text is not.
    """
    tree = ast.parse(
        "class Port:\n    def lay(self):\n        'Doc.'\n"
        "class Adapter(Port):\n    def lay(self): ...\n    def other(self): ...\n"
    )
    assert list(undocumented(tree, "m", documented_members([tree]))) == [
        "m.Port", "m.Adapter", "m.Adapter.other",
    ]  # fmt: skip


def test_every_test_says_what_it_shows() -> None:
    """
    A test's docstring is its sentence in the report.
    """
    missing = [
        f"{name_of(path)}:{function.name}"
        for path in python_files("tests")
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
        if function.name.startswith("test_") and ast.get_docstring(function) is None
    ]
    assert missing == []


def test_no_binary_is_tracked() -> None:
    """
    Modules and libraries are built from source, never committed.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    tracked = [ROOT / name for name in listed.decode().split("\0") if name]
    assert tracked
    binaries = {}
    for path in tracked:
        head = path.read_bytes()[:8] if path.is_file() else b""
        kind = next((kind for magic, kind in BINARY_MAGIC.items() if head.startswith(magic)), None)
        if kind:
            binaries[name_of(path)] = kind
    assert binaries == {}


def test_help_loads_neither_engine_nor_sdk() -> None:
    """
    `runner --help` answers before anything heavy is imported.
    """
    program = (
        "import json, sys\n"
        "from runner.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code in (0, None), end.code\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert "click" in loaded
    assert "Usage:" in done.stdout
    assert sorted(loaded.intersection(HEAVY)) == []


def test_the_readme_has_the_two_commands_that_ci_runs() -> None:
    """
    What a newcomer is told to type is what the gate types.
    """
    first, second = readme_command("first-run"), readme_command("test")
    assert first.endswith('.venv/bin/runner run guests/hello "What are you?"')
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -q . && ")
    assert second.startswith(".venv/bin/pip install -q -e '.[all,test]' && .venv/bin/pytest")
    gate = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"\$\(readme_command (\S+)\)", gate) == ["first-run", "test"]


def test_a_test_that_reaches_for_the_network_is_stopped() -> None:
    """
    Names and addresses of other machines are refused before anything is sent.
    """
    with pytest.raises(RuntimeError, match=r"^tests have no network: socket.getaddrinfo 'example.invalid'$"):
        socket.getaddrinfo("example.invalid", 443)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unconnected,
        pytest.raises(RuntimeError, match=r"^tests have no network: socket.connect '192\.0\.2\.1'$"),
    ):
        unconnected.connect(("192.0.2.1", 9))

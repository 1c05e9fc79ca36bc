"""
Lowering on the host: refusals with their place, bounds on hostile text, and the map of lines.
"""

from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.build.python import Import, Lowered, available_modules, lower_module
from runner.errors import SourceRejected

FILE = "lib/thing.py"


def lowered(text: str) -> Lowered:
    """
    The module, lowered.
    """
    return lower_module(text, name=FILE)


def refusal(text: str) -> SourceRejected:
    """
    Why the module is refused.
    """
    with pytest.raises(SourceRejected) as caught:
        lowered(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("x = 1\nif x\n    y = 2\n", (2, 5), "SyntaxError: expected ':'"),
        ("def f():\n  return (1\n", (2, 10), "SyntaxError: '(' was never closed"),
        (
            "class M(type): pass\nclass A(\n  metaclass=M): pass",
            (3, 13),
            "metaclasses are not available to an agent",
        ),
    ],
)
def test_a_refusal_names_file_line_and_column(text, place, problem):
    """What is wrong stands where the author wrote it."""
    error = refusal(text)
    assert error.message == f"{FILE}:{place[0]}:{place[1]}: {problem}"


def test_a_metaclass_has_a_way_round():
    """The refusal says what to do instead."""
    assert refusal("class A(metaclass=M): pass").hint == "use __init_subclass__ or a class decorator"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 150 + ")" * 150,
        "x = " + "[" * 5_000 + "]" * 5_000,
        "x = " + "-" * 20_000 + "1",
        "x = " + "a." * 20_000 + "b",
        "x = " + "+".join(["1"] * 20_000),
        "".join(f"{' ' * depth}if x:\n" for depth in range(99)) + " " * 99 + "pass",
        "x" * 1_100_000,
        "\n" * 70_000,
        "x = '" + "\0" + "'",
        "lambda " * 3_000 + ": 0",
        "x = " + "f(" * 90 + ")" * 90,
    ],
    ids=range(11),
)
def test_text_without_measure_ends_in_a_refusal_or_a_module(text):
    """Depth and size are bounded; neither the parser's stack nor this program's ends the process."""
    try:
        module = lowered(text)
    except SourceRejected:
        return
    assert len(module.lines) == module.text.count("\n")


@given(st.text(alphabet=st.sampled_from(list("abx01 \n\t()[]{}:=,.*@'\"\\#+-<>|&")), max_size=60))
def test_random_text_is_lowered_or_refused(text):
    """No text raises anything else."""
    try:
        module = lowered(text)
    except SourceRejected:
        return
    ast.parse(module.text)


_NAMES = st.sampled_from(["a", "b", "zip", "_l0", "self", "title"])
_ATOMS = st.one_of(_NAMES, st.integers(0, 99).map(str), st.just("'t'"), st.just("None"), st.just("1.5"))
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "**", "|", "and", "in", "<", "is not", "@"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]}\n {parts[2]})"
        ),
        st.tuples(inner, inner).map(lambda parts: f"a.format({parts[0]},\n *{parts[1]})"),
        inner.map(lambda part: f"(-{part}).title()[{part}:\n2]"),
        inner.map(lambda part: f"[x for x in [*{part}]\n if x]"),
        inner.map(lambda part: f"{{**{part}, 'k': {part}}}"),
        inner.map(lambda part: f"(lambda q, /: {part} if q\n else {part})"),
        _NAMES.map(lambda name: f"f'{{{name}!r:>5}} {{{name}:{{{name}}}}} {{{name}=}}'"),
    ),
    max_leaves=8,
)


@given(st.lists(_EXPRESSIONS, min_size=1, max_size=4))
def test_whatever_is_lowered_is_plain_python_with_a_line_for_each_line(expressions):
    """The result parses, has no syntax that the engine lacks, and maps to lines of the author's."""
    text = "\n".join(f"v{number} = {expression}" for number, expression in enumerate(expressions))
    module = lowered(text)
    tree = ast.parse(module.text)
    assert len(module.lines) == module.text.count("\n")
    assert set(module.lines) <= set(range(1, text.count("\n") + 2))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Match)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.arguments) and node.posonlyargs]
    assert lowered(text) == module


def test_a_long_chain_of_conditions_is_no_nesting():
    """Two hundred cases are one `if`; so are two hundred words that are joined."""
    chain = "".join(f"elif x == {number}:\n    pass\n" for number in range(200))
    joined = " + ".join(f"'{number}'" for number in range(200))
    module = lowered(f"if x:\n    pass\n{chain}else:\n    y = {joined}\n")
    assert module.text.count("elif") == 200


def test_imports_are_told_with_their_line_and_their_guard():
    """The resolver finds the agent's own modules by them."""
    text = """
import json, a.b as c
from . import d
from ..e import f as g, h
try:
    import i
except ImportError:
    i = None
def later():
    from j import *
"""
    assert lowered(text).imports == (
        Import("json", 0, (), 2, guarded=False),
        Import("a.b", 0, (), 2, guarded=False),
        Import("", 1, ("d",), 3, guarded=False),
        Import("e", 2, ("f", "h"), 4, guarded=False),
        Import("i", 0, (), 6, guarded=True),
        Import("j", 0, ("*",), 10, guarded=False),
    )


def test_what_only_annotations_need_is_not_imported():
    """Every module that is loaded becomes part of an agent's image."""
    text = """
from __future__ import annotations
from typing import TYPE_CHECKING, Any, NamedTuple
from collections.abc import Callable
if TYPE_CHECKING:
    from nowhere import Thing
def f(x: Any, y: Callable) -> Thing: ...
class P(NamedTuple):
    x: Any
"""
    assert [(found.module, found.names) for found in lowered(text).imports] == [("typing", ("NamedTuple",))]


def test_a_name_of_the_authors_is_his():
    """What he has given a meaning of his own is not taken for the built-in one."""
    module = lowered("def zip(*a, strict=0): return 7\nx = zip(1, strict=True)")
    assert "zip(1, strict=True)" in module.text
    assert "_rt_" not in module.text


def test_plain_python_stays_as_it_is():
    """A module that the engine can read needs no help and no map."""
    text = "def f(a, b=1):\n return a + b\nfor x in range(3):\n print(f(x))\n"
    module = lowered(text)
    assert module.text == text
    assert module.lines == (1, 2, 3, 4)


def test_an_assertion_without_words_says_what_it_asserted():
    """With the two sides of a comparison."""
    module = lowered("def test_it():\n    assert f(1) == 2\n    assert ready\n")
    assert "asserted('f(1) == 2'," in module.text
    assert "assert ready, 'ready'" in module.text


def test_every_module_that_is_available_has_a_name_of_its_own():
    """Helpers of the library are not for authors."""
    modules = available_modules()
    assert {"json", "re", "dataclasses", "collections.abc", "urllib.parse", "sys"} <= modules
    assert not [name for name in modules if name.startswith("_") or keyword.iskeyword(name)]
    assert not {"os", "socket", "ctypes", "subprocess"} & modules

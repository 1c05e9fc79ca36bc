"""
Text of strangers on a terminal.
"""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli.scrub import scrub, scrub_json, scrub_line

ANY_TEXT = st.text(st.characters(exclude_categories=()))
TROUBLE = ANY_TEXT | st.text("\x00\x07\x1b[31m\r\n\t\x7f\x9b\u202e\u2066\u2028\ud800é😀 ab\\")


def is_obeyed(char: str) -> bool:
    """
    Whether a terminal or a reader's eye could do something else with it than show it.
    """
    is_bidi = unicodedata.bidirectional(char) in {
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
    }  # fmt: skip
    return unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or is_bidi


@given(TROUBLE)
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    """
    After `scrub` only tabs and newlines move the cursor.
    """
    assert [char for char in scrub(text) if is_obeyed(char) and char not in "\t\n"] == []


@given(TROUBLE)
def test_a_line_stays_one_line(text: str) -> None:
    """
    After `scrub_line` nothing moves the cursor, and no reader of lines sees two.
    """
    line = scrub_line(text)
    assert [char for char in line if is_obeyed(char)] == []
    assert len(line.splitlines()) <= 1


@given(TROUBLE)
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    """
    What is safe stays as it is.
    """
    assert scrub(scrub(text)) == scrub(text)
    assert scrub_line(scrub_line(text)) == scrub_line(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_words_of_any_script_are_untouched(text: str) -> None:
    """
    Letters, digits, marks of punctuation and pictures are nobody's commands.
    """
    assert scrub(text) == text
    assert scrub_line(text) == text


@given(st.recursive(TROUBLE, lambda inner: st.lists(inner) | st.dictionaries(TROUBLE, inner), max_leaves=8))
def test_a_scrubbed_document_means_the_same(value: object) -> None:
    """
    JSON has escapes of its own, so nothing is lost.
    """
    document = scrub_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(document) == value
    assert [char for char in document if is_obeyed(char)] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb", "a\\rb"),
        ("\x9b2J", "\\x9b2J"),
        ("file\u202egpj.exe", "file\\u202egpj.exe"),
        ("one\ntwo\tthree", "one\ntwo\tthree"),
    ],
)
def test_controls_are_shown_as_escapes(text: str, shown: str) -> None:
    """
    A reader sees what was there.
    """
    assert scrub(text) == shown


def test_a_long_line_says_how_much_is_left_out() -> None:
    """
    A megabyte of an agent's complaint does not fill the screen.
    """
    assert scrub_line("a\n" * 10, 3) == "a\\na… (17 more characters)"

"""
Reading maps strictly.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.package.fields import (
    FieldProblem,
    Fields,
    any_map,
    anything,
    count,
    flag,
    list_of,
    matching,
    one_of,
    or_null,
    positive,
    text,
)

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def test_a_map_gives_its_values_and_none_for_what_was_left_out() -> None:
    """
    Required and optional keys are read with their kinds.
    """
    with Fields({"name": "a", "size": 3, "on": True, "any": [None]}) as fields:
        assert fields.required("name", text) == "a"
        assert fields.required("size", count) == 3
        assert fields.optional("on", flag) is True
        assert fields.optional("off", flag) is None
        assert fields.required("any", anything) == [None]
        assert fields.has("name")
        assert not fields.has("off")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "expected a map, found null"),
        (True, "expected a map, found a boolean"),
        (1, "expected a map, found an integer"),
        (1.5, "expected a map, found a float"),
        ("x", "expected a map, found text"),
        (b"x", "expected a map, found bytes"),
        ([], "expected a map, found a list"),
        (object(), "expected a map, found a date or time"),
    ],
)
def test_what_is_no_map_is_named(value: Any, message: str) -> None:
    """
    The refusal says what was found instead.
    """
    with pytest.raises(FieldProblem) as caught:
        Fields(value)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (text, 1, "a.key: expected text, found an integer"),
        (text, {}, "a.key: expected text, found a map"),
        (count, "1", "a.key: expected an integer, found text"),
        (count, True, "a.key: expected an integer, found a boolean"),
        (count, -1, "a.key: expected an integer of zero or more"),
        (count, 1 << 64, "a.key: expected an integer of zero or more"),
        (positive, 0, "a.key: expected an integer of one or more"),
        (flag, 1, "a.key: expected true or false, found an integer"),
        (any_map, [], "a.key: expected a map, found a list"),
        (or_null(text), 1, "a.key: expected text, found an integer"),
        (one_of(("x",)), "y", 'a.key: expected "x"'),
        (one_of(("x", "y", "z")), 3, 'a.key: expected "x", "y" or "z"'),
        (matching(re.compile("a+"), "a row of a"), "ab", "a.key: expected a row of a"),
        (list_of(text), "x", "a.key: expected a list, found text"),
        (list_of(text), ["x", 1], "a.key[1]: expected text, found an integer"),
        (list_of(text, at_least=1), [], "a.key: expected at least 1, found 0"),
        (list_of(text, at_most=1), ["x", "y"], "a.key: expected at most 1, found 2"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_its_place(kind: Any, value: Any, message: str) -> None:
    """
    Each kind has its own words.
    """
    with pytest.raises(FieldProblem) as caught:
        Fields({"key": value}, "a").required("key", kind)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (or_null(text), None, None),
        (or_null(text), "x", "x"),
        (one_of(("x", "y")), "y", "y"),
        (list_of(count), [1, 2], (1, 2)),
        (any_map, {"x": 1}, {"x": 1}),
        (positive, 1, 1),
        (matching(re.compile("a+"), "a row of a"), "aa", "aa"),
    ],
)
def test_a_value_of_its_kind_is_read(kind: Any, value: Any, read: Any) -> None:
    """
    What fits is returned.
    """
    assert Fields({"key": value}).required("key", kind) == read


def test_a_missing_key_is_named() -> None:
    """
    With the place of the map that lacks it.
    """
    with pytest.raises(FieldProblem) as caught:
        Fields({}, "a[2]").required("key", text)
    assert str(caught.value) == "a[2].key: missing"
    assert (caught.value.key, caught.value.problem) == ("a[2].key", "missing")


def test_an_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    """
    A typing error must not be a setting that is silently not set.
    """
    with pytest.raises(FieldProblem) as caught, Fields({"memroy": 1}) as fields:
        fields.optional("memory", count)
    assert str(caught.value) == 'memroy: unknown key; did you mean "memory"?'


def test_an_unknown_key_can_not_write_what_it_likes_into_the_message() -> None:
    """
    A guest chooses its keys; what is not plain is quoted and cut.
    """
    with pytest.raises(FieldProblem) as caught, Fields({"\x1b[2J" + "é" * 100: 1}):
        pass
    assert str(caught.value) == "'\\x1b[2J" + "\\xe9" * 36 + "': unknown key"


def test_an_error_of_the_block_is_not_hidden_by_an_unknown_key() -> None:
    """
    The first fault is the one that is told.
    """
    with pytest.raises(FieldProblem) as caught, Fields({"other": 1}) as fields:
        fields.required("key", text)
    assert str(caught.value) == "key: missing"


@given(_VALUES)
def test_reading_is_total(value: Any) -> None:
    """
    Whatever comes in, it is read or refused with a `FieldProblem`.
    """
    kinds: list[Any] = [
        text,
        count,
        positive,
        flag,
        any_map,
        or_null(text),
        one_of(("x",)),
        list_of(list_of(text)),
    ]
    for kind in kinds:
        with contextlib.suppress(FieldProblem):
            kind(value, "at")
    with contextlib.suppress(FieldProblem), Fields(value) as fields:
        fields.optional("x", text)

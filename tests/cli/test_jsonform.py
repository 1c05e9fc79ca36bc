"""
Payload values as JSON and back.
"""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli import jsonform
from runner.codec import encode

KEYS = st.text() | st.sampled_from(["$bytes", "$float", "$map", "$other"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=12,
)


@given(VALUES)
def test_every_value_comes_back_from_its_json(value: object) -> None:
    """
    An output can be the next input, whatever is in it; compared by the bytes that would be delivered.
    """
    assert encode(jsonform.loads(jsonform.dumps(value))) == encode(value)


@given(VALUES)
def test_the_json_is_one_that_every_parser_reads(value: object) -> None:
    """
    No `NaN`, no `Infinity`, one line.
    """

    def refuse(name: str) -> None:
        raise AssertionError(name)

    document = jsonform.dumps(value)
    json.loads(document, parse_constant=refuse)
    assert len(document.splitlines()) == 1


@given(st.text() | st.text('{}[]":,$bytesfloatmap0129.eE-\\u"'))
def test_any_text_is_a_value_or_a_typed_refusal(text: str) -> None:
    """
    Nothing else comes out of `loads`.
    """
    try:
        jsonform.loads(text)
    except (jsonform.NotJsonError, jsonform.FormError):
        return


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (b"\x00\xff", '{"$bytes": "AP8="}'),
        (math.nan, '{"$float": "NaN"}'),
        (-math.inf, '{"$float": "-Infinity"}'),
        ({"$bytes": "AP8="}, '{"$map": {"$bytes": "AP8="}}'),
        ({"a": "\x9b\u202eé"}, '{"a": "\\u009b\\u202eé"}'),
        ((1, 2.0), "[1, 2.0]"),
    ],
)
def test_what_json_can_not_say_has_a_form(value: object, document: str) -> None:
    """
    The forms are part of the contract, in both directions.
    """
    assert jsonform.dumps(value) == document
    assert encode(jsonform.loads(document)) == encode(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "key 'a' comes twice"),
        ("[NaN]", 'NaN is not JSON; write {"$float": "NaN"}'),
        ('{"$bytes": 5}', "$bytes does not stand before a value it can mean"),
        ('{"$bytes": "?"}', "$bytes is not base64"),
        ('{"$float": "1.5"}', "$float does not stand before a value it can mean"),
        ('{"$map": []}', "$map does not stand before a value it can mean"),
        ("18446744073709551616", "integer 18446744073709551616 does not fit 64 bits"),
        ("9" * 5000, "a number has too many digits"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_json_that_says_no_value_is_refused(text: str, problem: str) -> None:
    """
    The refusal names what is wrong.
    """
    with pytest.raises(jsonform.FormError) as refusal:
        jsonform.loads(text)
    assert str(refusal.value) == problem


def test_what_is_no_json_is_told_apart() -> None:
    """
    The caller may take such text as text.
    """
    with pytest.raises(jsonform.NotJsonError) as refusal:
        jsonform.loads("{save: 1}")
    assert str(refusal.value) == "Expecting property name enclosed in double quotes at character 1"
    assert refusal.value.offset == 1

"""
The one digest of the project, and how it is written.
"""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import digest

EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.binary())
def test_a_digest_is_sha_256(data: bytes) -> None:
    """Of anything that holds bytes."""
    assert digest.digest(data) == hashlib.sha256(data).digest()
    assert digest.digest(bytearray(data)) == digest.digest(memoryview(data)) == digest.digest(data)


def test_a_digest_is_shown_with_the_name_of_its_function() -> None:
    """So that a reader knows what to check it with."""
    assert digest.show(digest.digest(b"")) == EMPTY
    assert digest.parse(EMPTY) == digest.digest(b"")


@given(st.binary(min_size=32, max_size=32))
def test_what_is_shown_parses_to_itself(value: bytes) -> None:
    """Both ways."""
    assert digest.parse(digest.show(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        EMPTY.upper(),
        EMPTY[:-1],
        EMPTY[:-2],
        EMPTY + "00",
        EMPTY.removeprefix("sha256:"),
        EMPTY.replace("sha256:", "sha512:"),
        EMPTY.replace("b8", "b 8", 1),
        EMPTY.replace("e3", "g3"),
        " " + EMPTY,
    ],
)
def test_anything_else_is_no_digest(text: str) -> None:
    """One value has one form."""
    with pytest.raises(ValueError, match=r"^not a digest: ") as caught:
        digest.parse(text)
    assert str(caught.value) == f"not a digest: {text!r}"

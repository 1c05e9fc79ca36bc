"""
Quantities as people write them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.units import KIB, MIB, parse_bytes, parse_count, parse_duration_ms, show_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("65536", 65536),
        ("7B", 7),
        ("64KiB", 64 * KIB),
        ("64 KiB", 64 * KIB),
        (" 1.5MiB\n", 3 * MIB // 2),
        ("2GiB", 2 << 30),
        ("2KB", 2000),
        ("2MB", 2_000_000),
        ("2GB", 2_000_000_000),
        ("0.000000001GB", 1),
    ],
)
def test_a_size_has_a_unit_of_bytes(text: str, size_bytes: int) -> None:
    """A bare number is bytes."""
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("30", 30_000), ("30s", 30_000), ("0.5", 500), ("500ms", 500), ("2m", 120_000), ("1.5h", 5_400_000)],
)
def test_a_duration_has_a_unit_of_time(text: str, duration_ms: int) -> None:
    """A bare number is seconds."""
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize(
    ("text", "count"), [("200", 200), ("50k", 50_000), ("2M", 2_000_000), ("2G", 2 * 10**9)]
)
def test_a_count_may_have_a_prefix(text: str, count: int) -> None:
    """Powers of a thousand."""
    assert parse_count(text) == count


@pytest.mark.parametrize(
    "text",
    ["", "KiB", "-1", "+1", "1e3", "1,5", ".5", "1.", "1 2", "1kib", "1K", "0x10", "१", "1_000", "1" * 19],
)
@pytest.mark.parametrize(
    ("parse", "forms"),
    [
        (parse_bytes, "a size such as 65536, 64KiB, 1.5MiB or 2MB"),
        (parse_duration_ms, "a duration such as 30s, 500ms, 2m or 1h"),
        (parse_count, "a count such as 200, 50k or 2G"),
    ],
)
def test_anything_else_is_refused_with_the_forms_that_are_right(
    parse: Callable[[str], int], forms: str, text: str
) -> None:
    """What a person reads after a typing error."""
    with pytest.raises(ValueError, match="is not") as caught:
        parse(text)
    assert str(caught.value) == f"{text!r} is not {forms}"


@pytest.mark.parametrize(
    ("parse", "text"), [(parse_bytes, "1.5"), (parse_bytes, "0.0001KiB"), (parse_duration_ms, "0.5ms")]
)
def test_a_part_of_the_smallest_unit_is_refused(parse: Callable[[str], int], text: str) -> None:
    """Rather than rounded."""
    with pytest.raises(ValueError, match="whole") as caught:
        parse(text)
    assert str(caught.value) == f"{text!r} is not a whole number of the smallest unit"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (MIB, "1.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 42, "4096.0 GiB"),
    ],
)
def test_a_size_is_shown_in_the_largest_unit_that_fits(size_bytes: int, text: str) -> None:
    """For people; one digit after the point."""
    assert show_bytes(size_bytes) == text


@given(st.integers(0, 10**17))
def test_a_bare_number_of_bytes_is_itself(size_bytes: int) -> None:
    """No rounding on the way."""
    assert parse_bytes(str(size_bytes)) == size_bytes


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    """Total."""
    for parse in (parse_bytes, parse_duration_ms, parse_count):
        value: int | str
        try:
            value = parse(text)
        except ValueError as error:
            value = str(error)
        assert value.startswith(f"{text!r} is not ") if isinstance(value, str) else value >= 0

"""Amounts with units: how they are read, which are refused, and that they stay exact."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.amounts import LARGEST, AmountError, parse_amount, parse_bytes, parse_bytes_per_sec, parse_seconds
from planner.model.formats import duration

SI = {"": 1, "k": 1000, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4, "P": 1000**5}
BINARY = {"Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4, "Pi": 1024**5}


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        (0, 0),
        (12345, 12345),
        ("12345", 12345),
        ("4TiB", 4 * 1024**4),
        ("12GiB", 12 * 1024**3),
        ("500 GB", 500 * 1000**3),
        ("1.5TiB", 3 * 1024**4 // 2),
        ("64KiB", 65536),
        ("3KB", 3000),
        ("3kB", 3000),
        ("8Mbit", 1_000_000),
        ("2 megabytes", 2_000_000),
        ("7B", 7),
        ("0.1GiB", 107374182),
        (" 5MB ", 5_000_000),
    ],
)
def test_a_size_in_bytes(text: int | str, size_bytes: int) -> None:
    """Sizes with SI and binary prefixes, in bytes and bits, with or without a space, become whole bytes."""
    assert size_bytes == parse_bytes(text)


@pytest.mark.parametrize(
    ("text", "bytes_per_sec"),
    [(7, 7), ("3MB/s", 3_000_000), ("1Gbit/s", 125_000_000), ("50MiB/s", 50 * 1024**2), ("6MB/min", 100_000)],
)
def test_a_rate_in_bytes_per_second(text: int | str, bytes_per_sec: int) -> None:
    """Rates in bytes or bits, per second or per minute, become whole bytes per second."""
    assert bytes_per_sec == parse_bytes_per_sec(text)


@pytest.mark.parametrize(
    "text",
    [
        "5mb",
        "5Mb",
        "5kiB",
        "MB",
        "",
        "1,000MB",
        "1e3MB",
        "-5MB",
        "5MB/s",
        "5s",
        "5%",
        "1.5",
        "5 MB GB",
        "٣MB",
        "5MB**2",
    ],
)
def test_what_is_not_a_size(text: str) -> None:
    """Millibits, rates, times, signs, separators and exponents are refused with examples of what is allowed."""
    with pytest.raises(AmountError, match="allowed: a size such as 4TiB, 12GiB, 500 GB, 64KiB"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["5MB", "5mb/s", "1Gb/s", "5MB/s/s", "5MB/B", "5MB/nan", "5/s", "fast"])
def test_what_is_not_a_rate(text: str) -> None:
    """Sizes and unknown units are refused with examples of what is allowed."""
    with pytest.raises(AmountError, match="allowed: a rate such as 50MB/s, 12MiB/s, 1Gbit/s"):
        parse_bytes_per_sec(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(90, 90), ("90", 90), ("6h", 21_600), ("90min", 5_400), ("1.5 hours", 5_400), ("2d", 172_800), ("45 s", 45)],
)
def test_a_duration_in_seconds(text: int | str, seconds: int) -> None:
    """Seconds, minutes, hours and days become whole seconds."""
    assert seconds == parse_seconds(text)


@given(st.integers(0, 10**9))
def test_a_duration_is_read_as_it_is_printed(seconds: int) -> None:
    """In its two largest units: `raise limits.eta to 3 h 17 min` can be written."""
    text = duration(seconds)
    assert text == duration(parse_seconds(text))


@pytest.mark.parametrize(
    "text", ["6MB", "6MB/s", "6:30", "6h 30", "6h 5MB", "6H", "6ms", "6nan", "PT6H", "-1h", "soon"]
)
def test_what_is_not_a_duration(text: str) -> None:
    """Sizes, rates, clock times, ISO durations and signs are refused with examples of what is allowed."""
    with pytest.raises(AmountError, match="allowed: a duration such as 6h, 90min, 1 h 30 min, 2d"):
        parse_seconds(text)


@pytest.mark.parametrize(("text", "part"), [("0.001s", "less than one second"), (2**63, "more than 2^63 - 1 seconds")])
def test_durations_out_of_range(text: int | str, part: str) -> None:
    """Durations that are too short or too long are refused with a message about seconds."""
    with pytest.raises(AmountError) as caught:
        parse_seconds(text)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("value", "least", "part"),
    [(-1, 0, "-1 is below 0"), ("0B", 1, "'0B' is below 1"), ("1bit", 0, "less than one byte"), (2**63, 0, "2^63 - 1")],
)
def test_amounts_out_of_range(value: int | str, least: int, part: str) -> None:
    """Amounts below the minimum, below one byte, or above 2^63 − 1 are refused."""
    with pytest.raises(AmountError) as caught:
        parse_amount(value, "bytes", least)
    assert part in str(caught.value)


@given(st.integers(0, 10**6), st.sampled_from(sorted({**SI, **BINARY})))
def test_a_whole_number_of_units_is_exact(number: int, prefix: str) -> None:
    """No digit is lost on the way through any unit."""
    factor = {**SI, **BINARY}[prefix]
    expected = number * factor
    if expected <= LARGEST:
        assert expected == parse_bytes(f"{number}{prefix}B")


@given(st.integers(0, LARGEST))
def test_a_number_of_bytes_survives_being_written_out(size_bytes: int) -> None:
    """Written as a number, as text, in bytes or as a rate, an amount is read back as it was."""
    texts = (size_bytes, str(size_bytes), f"{size_bytes}B", f"{size_bytes} bytes")
    assert [size_bytes] * 4 == [parse_bytes(text) for text in texts]
    assert size_bytes == parse_bytes_per_sec(f"{size_bytes}B/s")


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(sorted(BINARY)))
def test_a_decimal_fraction_is_rounded_to_the_nearest_byte(whole: int, thousandths: int, prefix: str) -> None:
    """The result is never further than half a byte from the exact amount."""
    exact = (whole + Fraction(thousandths, 1000)) * BINARY[prefix]
    assert abs(parse_bytes(f"{whole}.{thousandths:03d}{prefix}B") - exact) <= Fraction(1, 2)


@given(st.text(max_size=12))
def test_any_text_is_an_amount_or_refused(text: str) -> None:
    """Garbage never raises anything else, and never becomes negative."""
    try:
        size_bytes = parse_bytes(text)
    except AmountError:
        size_bytes = 0
    assert 0 <= size_bytes <= LARGEST

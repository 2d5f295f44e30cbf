"""The texts of tolerances: they are read back as the same tolerance."""

from __future__ import annotations

import json

import pytest
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.balance import Tolerance, exact

SCHEMA = json.loads((ROOT / "schemas" / "spec.schema.json").read_text())
PATTERNS = [SCHEMA["$defs"][name]["pattern"] for name in ("tolerance", "percentage")]
WRITTEN = st.one_of(*(st.from_regex(each, fullmatch=True) for each in PATTERNS), st.integers(0, 2**31 - 1))


@examples(300)
@given(WRITTEN)
def test_texts_lose_nothing(written: str | int) -> None:
    """Whatever the YAML may say is the same tolerance when its text is read, and that text has no exponent."""
    asked = Tolerance.parse(written)
    assert asked == Tolerance.parse(str(asked))
    assert str(asked) == "none" or set(str(asked)) <= set("0123456789.%")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        *((each, each) for each in ("none", "1", "0%", "5%", "0.5%", "2.5%", "33.33333%", "999999.999999%")),
        ("5.0%", "5%"),
        ("5.50%", "5.5%"),
        ("100000%", "100000%"),
        ("010.10%", "10.1%"),
        ("0.000001%", "0.000001%"),
    ],
)
def test_texts_are_as_short_as_can_be(written: str, text: str) -> None:
    """The text is that of the YAML, without superfluous zeros."""
    assert text == str(Tolerance.parse(written))


def test_steps_of_a_ladder_read_as_the_yamls() -> None:
    """A percentage from the code has the same text as one from the YAML."""
    assert ["5%", "5%"] == [str(Tolerance("percent", each)) for each in (5, 5.0)]
    assert "10000000000000000000000" == exact(1e22)

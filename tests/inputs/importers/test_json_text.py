"""JSON in the output of Kafka's tools: hostile documents are refused, and each item has its place."""

from __future__ import annotations

from itertools import islice

import pytest

from planner.inputs.importers.state_parts import item_places, read_alone, read_object
from planner.inputs.state.state_files import read_part
from planner.model.errors import ImportStateError


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"topic":' + "[" * 100_000,
        '{"brokers":' + '{"logDirs":' * 50_000,
        '{"partitions":[{"topic":"a","partition":0,"replicas":[' + "9" * 5000 + "]}]}",
    ],
)
def test_hostile_json_is_refused_without_a_traceback(text: str) -> None:
    """JSON nested 100,000 levels deep, or with a number of 5,000 digits, is refused without a traceback."""
    for expected in ("assignment", "sizes", "state"):
        with pytest.raises(ImportStateError):
            read_part(text, "f", expected=expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "b": 2, "a": 3}', r"f:1:1: not usable JSON: the key 'a' is here twice among a, b"),
        ('\n {"a": NaN}', r"f:2:2: not usable JSON: NaN isn't a number"),
        ("[1]", "f:1:1: a JSON object is needed here"),
        ('{"a": \n 1,', "f:2:4: not JSON"),
        ('{}\n {"b": 2}', r"f:2:2: something follows the JSON; allowed: one JSON object, alone"),
    ],
)
def test_what_json_would_let_pass_is_refused_at_its_place(text: str, message: str) -> None:
    """Duplicate keys, NaN and text after the JSON are refused with their place; Python's reader takes the first two."""
    with pytest.raises(ImportStateError, match=message):
        read_alone(text, "f")


def test_items_of_a_list_have_their_places() -> None:
    """Each item of a list has its line and column, despite brackets inside items and a log line above."""
    text = '[main] WARN\n{"v": [9], "partitions" : [ {"x": [1, 2]},\n {"x": "]"} , 3]} rest'
    start = text.index("{")
    found = [(each.line, each.column) for each in islice(item_places(text, "partitions", start, "f"), 4)]
    assert found == [(2, 29), (3, 2), (3, 15), (2, 1)], "three items, then the object"
    assert text.index(" rest") == read_object(text, start, "f")[1]

"""JSON inside what Kafka's tools print: the document, and where it and the items of a list in it begin."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NoReturn

from planner.model.errors import Finding, ImportStateError, Place


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different; json would silently take the last."""
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = Counter(key for key, _ in pairs)
        twice = next(key for key, times in keys.items() if times > 1)
        raise ValueError(f"the key {twice[:60]!r} is here twice among {', '.join(value)[:200]}")
    return value


def _no_number(name: str) -> NoReturn:
    """NaN and infinity, which Python reads though JSON has none."""
    raise ValueError(f"{name} isn't a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)
_BETWEEN = re.compile(r"[\s,]*")


def place_of(text: str, position: int, file: str) -> Place:
    """Line and column of a position in a text."""
    starts = _line_starts(text)
    line = bisect_right(starts, position)
    return Place(file, line, position - starts[line - 1] + 1)


@lru_cache(maxsize=2)
def _line_starts(text: str) -> list[int]:
    """Where each line begins: found once for a file, however many places are asked for."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def read_object(text: str, start: int, file: str) -> tuple[dict[str, Any], int]:
    """The JSON object at `start`, and where it ends. ImportStateError where there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg}; allowed: the complete JSON as Kafka's tool prints it"
        raise ImportStateError([Finding(place_of(text, error.pos, file), "", message)]) from None
    except (RecursionError, ValueError) as error:
        reason = _reason(error)
        message = f"not usable JSON: {reason}; allowed: the complete JSON as Kafka's tool prints it"
        raise ImportStateError([Finding(place_of(text, start, file), "", message)]) from None
    if not isinstance(value, dict):
        raise ImportStateError([Finding(place_of(text, start, file), "", "a JSON object is needed here")])
    return value, end


def _reason(error: Exception) -> str:
    """Our own words, or for Python's two limits what they mean: its own are advice to programmers."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number has thousands of digits" if str(error).startswith("Exceeds the limit") else str(error)


def read_alone(text: str, file: str) -> tuple[dict[str, Any], Place]:
    """The JSON object that is all of a text, and where it begins. ImportStateError for anything else."""
    start = len(text) - len(text.lstrip())
    value, end = read_object(text, start, file)
    rest = text[end:].lstrip()
    if rest:
        message = "something follows the JSON; allowed: one JSON object, alone"
        raise ImportStateError([Finding(place_of(text, len(text) - len(rest), file), "", message)])
    return value, place_of(text, start, file)


def item_positions(text: str, key: str, start: int) -> Iterator[int]:
    """Where each item of the list under `key` begins, in valid JSON whose first use of `key` is that list."""
    head = re.compile(rf'"{re.escape(key)}"\s*:\s*\[').search(text, start)
    position = _past_separators(text, head.end()) if head else len(text)
    while position < len(text) and text[position] != "]":
        yield position
        position = _past_separators(text, _DECODER.raw_decode(text, position)[1])


def _past_separators(text: str, position: int) -> int:
    found = _BETWEEN.match(text, position)
    return found.end() if found else position


def shown(value: Any) -> str:
    """A value for a message: short, whatever it is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_id(value: Any) -> bool:
    """True for a whole number that Kafka could use as an id."""
    return type(value) is int and 0 <= value < 2**31


def is_ids(value: Any) -> bool:
    """True for a list of brokers' ids."""
    return isinstance(value, list) and all(is_id(each) for each in value)

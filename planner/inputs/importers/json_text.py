"""JSON inside what Kafka's tools print: the document, and where it and the items of a list in it begin."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NoReturn, TypeGuard, TypeVar

from planner.model.errors import Finding, ImportStateError, Place


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different; ValueError otherwise, where json would take the last value."""
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = Counter(key for key, _ in pairs)
        twice = next(key for key, times in keys.items() if times > 1)
        raise ValueError(f"the key {twice[:60]!r} is here twice among {', '.join(value)[:200]}")
    return value


def _no_number(name: str) -> NoReturn:
    """ValueError for NaN and infinity: Python's reader accepts them, JSON doesn't have them."""
    raise ValueError(f"{name} isn't a number")


_T = TypeVar("_T")

_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)
_BETWEEN = re.compile(r"[\s,]*")
_ALLOWED = "allowed: the complete JSON as Kafka's tool prints it"


def place_of(text: str, position: int, file: str) -> Place:
    """Line and column of a position in a text."""
    starts = _line_starts(text)
    line = bisect_right(starts, position)
    return Place(file, line, position - starts[line - 1] + 1)


@lru_cache(maxsize=2)
def _line_starts(text: str) -> list[int]:
    """Where each line begins: found once for a file, however many places are asked for."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def begins_object(text: str) -> bool:
    """True where a JSON object may begin the text."""
    return re.match(r"\s*\{", text) is not None


def read_object(text: str, start: int, file: str) -> tuple[dict[str, Any], int]:
    """The JSON object at `start`, and where it ends. ImportStateError where there is none."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise ImportStateError(
            [Finding(place_of(text, error.pos, file), "", f"not JSON: {error.msg}; {_ALLOWED}")]
        ) from None
    except (RecursionError, ValueError) as error:
        reason = str(error)
        # What Python itself says of its two limits is advice to programmers.
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        elif reason.startswith("Exceeds the limit"):
            reason = "a number has thousands of digits"
        raise ImportStateError(
            [Finding(place_of(text, start, file), "", f"not usable JSON: {reason}; {_ALLOWED}")]
        ) from None
    if not isinstance(value, dict):
        raise ImportStateError([Finding(place_of(text, start, file), "", "a JSON object is needed here")])
    return value, end


def refuse_rest(text: str, end: int, file: str, allowed: str) -> None:
    """ImportStateError where anything but blanks follows the JSON that ends at `end`."""
    if rest := text[end:].lstrip():
        message = f"something follows the JSON; {allowed}"
        raise ImportStateError([Finding(place_of(text, len(text) - len(rest), file), "", message)])


def read_alone(text: str, file: str) -> tuple[dict[str, Any], Place]:
    """The JSON object that is all of a text, and where it begins. ImportStateError for anything else."""
    start = len(text) - len(text.lstrip())
    value, end = read_object(text, start, file)
    refuse_rest(text, end, file, "allowed: one JSON object, alone")
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


def items(value: Any, key: str) -> list[Any]:
    """The list under a key of an object; empty where either isn't what it should be."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def sound(read: Iterable[_T | Finding]) -> list[_T]:
    """The values that were read. ImportStateError with the findings, if there are any."""
    values: list[_T] = []
    findings: list[Finding] = []
    for each in read:
        if isinstance(each, Finding):
            findings.append(each)
        else:
            values.append(each)
    if findings:
        raise ImportStateError(findings)
    return values


def shown(value: Any) -> str:
    """A value for a message, cut after 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_id(value: Any) -> TypeGuard[int]:
    """True for a whole number that Kafka could use as an id."""
    return type(value) is int and 0 <= value < 2**31


def is_ids(value: Any) -> bool:
    """True for a list of brokers' ids."""
    return isinstance(value, list) and all(is_id(each) for each in value)

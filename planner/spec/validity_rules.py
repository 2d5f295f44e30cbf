"""`valid_for` and `cluster.captured_at`: the moment is one, and a plan that expires says from when on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.amounts import parse_seconds
from planner.errors import Finding
from planner.validity import ALLOWED, parse_moment
from planner.yaml_source import Document

_CAPTURED_AT, _VALID_FOR = "cluster.captured_at", "valid_for"
_LONGEST_DAYS = 3650


def captured_at(document: Document) -> str | None:
    """`cluster.captured_at` as written."""
    found: str | None = document.get("cluster", "captured_at")
    return found


def valid_for_seconds(document: Document) -> int | None:
    """`valid_for` in seconds."""
    value = document.get("valid_for")
    return None if value is None else parse_seconds(value)


def _moment_is_one(document: Document) -> Iterator[Finding]:
    text = captured_at(document)
    if text is None:
        return
    try:
        parse_moment(text)
    except (ValueError, OverflowError):
        yield document.finding(("cluster", "captured_at"), f"{text!r} isn't a moment; allowed: {ALLOWED}")


def _valid_from_when(document: Document) -> Iterator[Finding]:
    seconds = valid_for_seconds(document)
    if seconds is None:
        return
    if captured_at(document) is None:
        message = f"{document.get('valid_for')!r} from when on? allowed: with cluster.captured_at, {ALLOWED}"
        yield document.finding(("valid_for",), message)
    if seconds > _LONGEST_DAYS * 86_400:
        message = f"{document.get('valid_for')!r} is too long; allowed: at most {_LONGEST_DAYS}d"
        yield document.finding(("valid_for",), message)


VALIDITY_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    ((_CAPTURED_AT,), _moment_is_one),
    ((_VALID_FOR, _CAPTURED_AT), _valid_from_when),
)

"""The history that a load profile is made of: its hours, its flaws, and what it is too short for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HOURS_OF_WEEK = 168


@dataclass(frozen=True)
class Span:
    """The hours of a history since 1970, UTC: from `first` to before `end`."""

    first: int
    end: int

    @property
    def hours(self) -> int:
        """How many hours it has."""
        return self.end - self.first


@dataclass(frozen=True)
class Findings:
    """What a history has of flaws, each with how often it was found; and topics not to be trusted, each with why."""

    counts: Mapping[str, int] = field(default_factory=dict)
    untrusted: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class About:
    """What a profile says of its history: its hours since 1970, UTC, from `first` to before `end`; the findings.

    `time_zone` is the cluster's, by name, for people; hours of the week are UTC whatever it is.
    """

    span: Span
    time_zone: str = "UTC"
    findings: Findings = field(default_factory=Findings)


def doubts(span: Span) -> tuple[str, ...]:
    """What a history is too short for."""
    days = span.hours / 24
    if span.hours < 7 * 24:
        return (
            f"the history has {days:.3g} days: hours of the week that it doesn't have are unknown, and so is growth",
        )
    if span.hours < 14 * 24 + 12:
        return (f"the history has {days:.3g} days: growth needs more than two weeks, and is unknown",)
    return ()

"""Every pattern of topics in a spec matches a topic: one that matches nothing is a slip of the pen.

A mistyped `topics.exclude` would let a topic move that was meant to stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from fnmatch import fnmatchcase

from planner.errors import Finding
from planner.importers.entries import Assignment
from planner.spec.balance import growth
from planner.spec.build import created_topics, replication_factor_changes, topic_rates, variants
from planner.spec.consumers import patterns as consumers_patterns
from planner.suggestions import did_you_mean
from planner.yaml_source import Document, Path

PatternRule = Callable[[Document, Assignment], Iterator[Finding]]
_Pattern = tuple[Path, str]

_SHOWN = 10


def _factors(document: Document) -> Iterator[_Pattern]:
    for at, change in enumerate(replication_factor_changes(document)):
        yield ("changes", "set_replication_factor", at, "topics"), change.topics


def _filter(document: Document) -> Iterator[_Pattern]:
    for key in ("include", "exclude"):
        for at, pattern in enumerate(document.get("topics", key) or ()):
            yield ("topics", key, at), pattern


def _rates(document: Document) -> Iterator[_Pattern]:
    for at, (pattern, _) in enumerate(topic_rates(document)):
        yield ("cluster", "rates", at, "topics"), pattern


def _scenarios(document: Document) -> Iterator[_Pattern]:
    for at, scenario in enumerate(growth(document)):
        yield ("sweep", "scenarios", "growth", at, "topics"), scenario.topics


def _monthly(document: Document) -> Iterator[_Pattern]:
    for at, item in enumerate(document.get("growth") or ()):
        yield ("growth", at, "topics"), item["topics"]


def _rule(
    patterns: Callable[[Document], Iterator[_Pattern]], *, with_created: bool = False, first_counts: bool = False
) -> PatternRule:
    """A finding for each of the patterns that matches no topic; `with_created`: those of create_topics count too.

    `first_counts`: where the first pattern that matches a topic counts, also for one that comes too late for any.
    """

    def rule(document: Document, assignment: Assignment) -> Iterator[Finding]:
        names = [topic.name for topic in assignment.topics]
        names += _created(document) if with_created else []
        known, left = set(names), set(names)
        for path, pattern in patterns(document):
            if not _matching(pattern, known):
                yield document.finding(path, _message(pattern, names))
            elif first_counts and not (taken := _matching(pattern, left)):
                yield document.finding(path, _too_late(pattern))
            elif first_counts:
                left -= taken

    return rule


def _matching(pattern: str, names: Set[str]) -> set[str]:
    """Most patterns of long lists are names."""
    if not any(sign in pattern for sign in "*?["):
        return {pattern} & names
    return {name for name in names if fnmatchcase(name, pattern)}


def _too_late(pattern: str) -> str:
    return (
        f"{pattern!r} matches only topics that entries above it match, and the first one counts; "
        "allowed: this entry above those, or none"
    )


def _created(document: Document) -> list[str]:
    """The topics that the changes make, or those of any variant."""
    views = (document, *(view for _, view in variants(document)))
    return [new.topic for view in views for new in created_topics(view)]


def _message(pattern: str, names: Sequence[str]) -> str:
    some = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")
    guess = did_you_mean(pattern, names)
    return f"{pattern!r} matches no topic; {guess}allowed: a pattern that matches some of {some}"


_CREATED = ("changes.create_topics", "sweep.variants")

PATTERN_RULES: tuple[tuple[tuple[str, ...], PatternRule], ...] = (
    (("changes.set_replication_factor",), _rule(_factors)),
    (("topics",), _rule(_filter)),
    (("cluster.rates",), _rule(_rates, first_counts=True)),
    (("sweep.scenarios", *_CREATED), _rule(_scenarios, with_created=True)),
    (("growth", *_CREATED), _rule(_monthly, with_created=True, first_counts=True)),
    (("consumers",), _rule(consumers_patterns)),
)

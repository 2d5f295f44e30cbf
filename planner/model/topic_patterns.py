"""Shell-style patterns of topic names: `orders-*`; `?` for one character, `[ab]` for one of these.

If several rules of a list match a topic, the first counts.
"""

from collections.abc import Iterable, Set
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar


class _OfTopics(Protocol):
    @property
    def topics(self) -> str:
        """The pattern."""


_Rule = TypeVar("_Rule", bound=_OfTopics)


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """True if one of the patterns matches the topic."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def matching(names: Set[str], pattern: str) -> set[str]:
    """The topics that the pattern matches."""
    # In long lists, most patterns are plain names.
    if not any(sign in pattern for sign in "*?["):
        return {pattern} & names
    return {name for name in names if fnmatchcase(name, pattern)}


def first_rule(name: str, rules: Iterable[_Rule]) -> _Rule | None:
    """The first rule whose pattern matches the topic; None if there is none."""
    return next((rule for rule in rules if fnmatchcase(name, rule.topics)), None)

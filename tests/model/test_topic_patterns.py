"""Patterns of topic names, and which of several rules counts for a topic."""

from __future__ import annotations

import pytest

from planner.model.document_fields import ReplicationFactorRow
from planner.model.topic_patterns import first_rule, matches_any, matching

RULES = [ReplicationFactorRow(topics=pattern, replication_factor=at) for at, pattern in enumerate(("a-*", "?-1", "b"))]


@pytest.mark.parametrize(("name", "first"), [("a-1", 0), ("a-2", 0), ("b-1", 1), ("b", 2), ("c", None)])
def test_the_first_rule_that_matches(name: str, first: int | None) -> None:
    """Rules may overlap; without a rule that matches there is None."""
    found = first_rule(name, RULES)
    assert first == (None if found is None else found.replication_factor)


@pytest.mark.parametrize(
    ("pattern", "found"), [("a", {"a"}), ("x", set()), ("a*", {"a", "a-1"}), ("a-?", {"a-1"}), ("[ab]", {"a", "b"})]
)
def test_a_pattern_matches_whole_names(pattern: str, found: set[str]) -> None:
    """A plain name matches only itself; a topic matches patterns if it matches one of them."""
    names = {"a", "a-1", "b"}
    assert found == matching(names, pattern) == {name for name in names if matches_any(name, ["?-0", pattern])}

"""Values that a spec derives from others; patterns of topic names, and which of several rules counts for a topic."""

from __future__ import annotations

import pytest

from planner.model.document_fields import ReplicationFactorRow
from planner.model.spec import LIMITS, UNSTATED, BatchRules, TopicFilter, first_rule, matches_any, matching

RULES = [ReplicationFactorRow(topics=pattern, replication_factor=at) for at, pattern in enumerate(("a-*", "?-1", "b"))]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (BatchRules(seconds=60, bytes_per_sec=50), 3_000),
        (BatchRules(seconds=60), None),
        (BatchRules(bytes_per_sec=50, bytes=7), None),
    ],
)
def test_bytes_per_broker_are_time_at_a_rate(rules: BatchRules, expected: int | None) -> None:
    """A broker's bytes in a batch are seconds × rate; without both there is no limit."""
    assert expected == rules.bytes_per_broker


def test_an_execution_of_defaults_leaves_everything_out_that_has_one() -> None:
    """UNSTATED lists every key that has a default: the throttle and each limit of a batch."""
    assert {"throttle", *(f"batches.{limit}" for limit in LIMITS)} == set(UNSTATED.unset)
    assert BatchRules() == UNSTATED.batches


@pytest.mark.parametrize(
    ("name", "include", "exclude", "expected"),
    [
        ("orders", ("*",), (), True),
        ("orders", ("orders-*",), (), False),
        ("orders-eu", ("orders-*",), ("*-eu",), False),
        ("__consumer_offsets", ("*",), ("__*",), False),
        ("Orders", ("orders",), (), False),
    ],
)
def test_which_topics_may_move(name: str, include: tuple[str, ...], exclude: tuple[str, ...], expected: bool) -> None:
    """A topic may move if it matches an included pattern and no excluded one; the case matters."""
    assert expected == TopicFilter(include, exclude).moves(name)


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

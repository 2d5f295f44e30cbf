"""Values that a spec derives from others."""

from __future__ import annotations

import pytest

from planner.model.spec import LIMITS, UNSTATED, BatchRules, TopicFilter


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

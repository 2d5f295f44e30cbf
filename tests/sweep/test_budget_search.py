"""The budget's ladder of balances, and which rows keep within it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.spec import Budget
from planner.sweep.budget_steps import LEVELS, LEVELS_OF_COST, asked, ladder, within

SPENT = {"bytes_moved": 100, "replicas_moved": 3, "leaders_changed": 2}


def test_a_budget_is_asked_for_by_any_of_its_terms() -> None:
    """No term, no budget; zero is one."""
    assert (False, True) == (asked(Budget()), asked(Budget(replicas_moved=0)))


def test_within_is_up_to_and_with_the_limit() -> None:
    """Every term that is limited counts, to the last byte."""
    assert within(Budget(bytes_moved=100, leaders_changed=2), SPENT)
    assert not within(Budget(bytes_moved=99), SPENT)
    assert not within(Budget(bytes_moved=100, replicas_moved=2), SPENT)


def test_ladder_begins_with_what_is_asked_for_and_ends_with_nothing() -> None:
    """First the balance of the YAML, last no window at all."""
    steps = ladder(Balance(disk=Tolerance("percent", 10)), Budget(bytes_moved=1))
    open_ended = Balance(*[NO_TOLERANCE] * 7)
    assert (Balance(disk=Tolerance("percent", 10)), open_ended) == (steps[0], steps[-1])
    assert len(steps) == len(set(steps))


def test_ladder_never_tightens_and_asks_for_nothing_new() -> None:
    """A percentage only grows; what wasn't asked for stays so."""
    steps = ladder(Balance(disk=Tolerance("percent", 10)), Budget(bytes_moved=1))
    levels = {10, *LEVELS, *LEVELS_OF_COST}
    assert {"none", *(f"{level}%" for level in levels if level >= 10)} == {str(step.disk) for step in steps}
    assert {NO_TOLERANCE} == {step.network_in for step in steps}


def test_ladder_lets_go_of_topics_first() -> None:
    """The windows of single topics cost most for what they even out: only what is asked for has them."""
    asked_for, *steps = ladder(Balance(), Budget(bytes_moved=1))
    assert Balance() == asked_for
    assert {NO_TOLERANCE} == {step.topic_replicas for step in steps}


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (Budget(bytes_moved=1), {"replicas", "leaders"}),
        (Budget(replicas_moved=1), {"leaders"}),
        (Budget(leaders_changed=1), {"replicas", "disk"}),
        (Budget(bytes_moved=1, leaders_changed=1), {"replicas"}),
    ],
)
def test_ladder_loosens_first_what_costs(budget, kept) -> None:
    """Bytes buy even bytes, replicas even counts: what the budget doesn't limit stays as even as asked."""
    wanted = Balance(disk=Tolerance("percent", 10))
    first = ladder(wanted, budget)[2 : 2 + len(LEVELS_OF_COST)]
    loosened = [step for step in first if step != replace(wanted, topic_replicas=NO_TOLERANCE)]
    assert loosened
    for knob in ("replicas", "leaders", "disk"):
        assert (knob in kept) == all(getattr(wanted, knob) == getattr(step, knob) for step in loosened), knob


def test_ladder_is_no_longer_than_a_small_clusters_sweep() -> None:
    """Twenty plans are solved there: every step is looked at."""
    assert len(ladder(Balance(disk=Tolerance("percent", 10)), Budget(bytes_moved=1))) <= 20

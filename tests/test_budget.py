"""The budget's ladder of balances, and which rows keep within it."""

from __future__ import annotations

from dataclasses import replace

from planner.balance import NO_TOLERANCE, Balance, Tolerance
from planner.budget import LEVELS, asked, ladder, within
from planner.model import Budget

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
    steps = ladder(Balance(disk=Tolerance("percent", 10)))
    open_ended = Balance(*[NO_TOLERANCE] * 7)
    assert (Balance(disk=Tolerance("percent", 10)), open_ended) == (steps[0], steps[-1])
    assert len(steps) == len(set(steps))


def test_ladder_never_tightens_and_asks_for_nothing_new() -> None:
    """A percentage only grows; what wasn't asked for stays so."""
    steps = ladder(Balance(disk=Tolerance("percent", 10)))[:-1]
    assert {Tolerance("percent", level) for level in (10, *LEVELS) if level >= 10} == {step.disk for step in steps}
    assert {NO_TOLERANCE} == {step.network_in for step in steps}


def test_ladder_lets_go_of_topics_before_it_loosens_brokers() -> None:
    """Each level comes with the windows of single topics, without them, and without those of leaders."""
    first = Balance()
    no_topics = replace(first, topic_replicas=NO_TOLERANCE)
    assert (first, no_topics, replace(no_topics, leaders=NO_TOLERANCE)) == ladder(first)[:3]

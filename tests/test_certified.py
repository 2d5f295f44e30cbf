"""The bound in its own file, and its check: arithmetic alone, and any change to it shows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from clusters import spec_of

from planner import bounds, certified, plan, sweep
from planner import problem as problems
from planner.balance import Balance, Tolerance
from planner.candidates import candidates
from planner.errors import StalePlanError
from planner.model import Sweep
from planner.plan import Planned
from planner.variants import BASE, Swept


def planned(balance: Balance) -> Planned:
    """A plan that spreads a topic from two brokers to three."""
    racks = {1: None, 2: None, 3: None}
    spec = spec_of(racks, {"t": [[1], [1], [1], [2], [2], [2]]})
    topics = tuple(
        replace(topic, partitions=tuple(replace(each, size_bytes=10 + each.id) for each in topic.partitions))
        for topic in spec.cluster.topics
    )
    cluster = replace(spec.cluster, topics=topics, sizes_known=True)
    spec = replace(spec, cluster=cluster, balance=balance, sweep=Sweep(candidates=20))
    problem = problems.build(spec)
    return plan.planned([Swept(BASE, spec, problem, sweep.run(problem, candidates(problem, spec.sweep)))])


@pytest.mark.parametrize(
    ("balance", "method"),
    [(Balance(), "flow"), (Balance(disk=Tolerance("percent", 30)), "flow")],
    ids=["counts", "disk"],
)
def test_checked_by_arithmetic(balance: Balance, method: str) -> None:
    """The file comes to the bound that the plan states, and the plan's own list to the bytes that it moves."""
    made = planned(balance)
    assert made.bound is not None
    checked = certified.check(made.document, made.bound, "bound.json")
    stated = made.document["bound"]
    assert (stated["least_bytes_moved"], stated["bytes_moved"], method) == (
        checked.least,
        checked.moved,
        stated["method"],
    )
    assert stated["gap_percent"] == checked.gap_percent


def test_any_change_of_the_file_shows() -> None:
    """One digit more is another file."""
    made = planned(Balance())
    assert made.bound is not None
    with pytest.raises(StalePlanError, match="SHA-256"):
        certified.check(made.document, made.bound.replace(b"0", b"1", 1), "bound.json")


def test_a_bound_that_the_prices_do_not_bear_is_refused() -> None:
    """A plan that claims more than its prices prove is told so, though all digests fit."""
    made = planned(Balance())
    assert made.bound is not None
    claim = {**made.document["bound"], "least_bytes_moved": made.document["bound"]["least_bytes_moved"] + 1}
    with pytest.raises(StalePlanError, match="come to a bound of"):
        certified.check({**made.document, "bound": claim}, made.bound, "bound.json")


def test_the_file_is_json_by_lines() -> None:
    """One key a line, read back as the same certificate."""
    made = planned(Balance())
    assert made.bound is not None
    document = json.loads(made.bound)
    assert len(document) == len(made.bound.splitlines())
    assert bounds.least(bounds.from_document(document)) == made.document["bound"]["least_bytes_moved"]


@pytest.mark.parametrize(("moved", "least", "gap"), [(0, 0, 0.0), (100, 100, 0.0), (100, 99, 1.0), (3, 2, 33.333)])
def test_gap_in_per_cent(moved: int, least: int, gap: float) -> None:
    """By how much of itself the plan is above the bound."""
    assert gap == certified.gap_percent(moved, least)

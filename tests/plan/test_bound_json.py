"""A bound's file: what is read back is what was written, and what proves nothing is refused."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import pytest
from clusters import balance_of, no_racks, problem_of

from planner.model.spec import TopicFilter
from planner.plan import bound_json
from planner.strategies import lagrangian_bound
from planner.strategies.lagrangian_bound import Certificate
from planner.strategies.optimum import solve


@cache
def relaxed() -> Certificate:
    """The certificate of a plan whose windows of replicas and of bytes can't hold, and may begin in two places."""
    problem = problem_of(
        no_racks(1, 2, 3, 4),
        {"a": [(1, 2), (1, 3), (2, 1), (1, 4)], "b": [(1,), (2,), (1,)], "fixed": [(1,), (1,), (1,), (2,), (1,)]},
        sizes={"a": [50_000, 21_000, 7_000, 900], "b": [80_000, 3_000, 12_000], "fixed": [2_000] * 5},
        topics=TopicFilter(exclude=("fixed",)),
        balance=balance_of(1, 1, 1, "none", "10%"),
    )
    certificate = solve(problem, problem.balance, certify=True).certificate
    assert certificate is not None
    assert certificate.outside is not None
    assert certificate.outside.allowed.replicas > 0 < certificate.outside.allowed.loads
    return certificate


def document() -> dict[str, Any]:
    """Its plain data, to be changed."""
    return copy.deepcopy(bound_json.to_document(relaxed()))


@pytest.mark.slow
def test_what_is_outside_is_read_back() -> None:
    """The same bound, the same least outside."""
    made, again = relaxed(), bound_json.from_document(document())
    assert lagrangian_bound.least(made) == lagrangian_bound.least(again)
    assert made.outside is not None
    assert again.outside is not None
    least = [lagrangian_bound.least_outside(each.facts, each.outside) for each in (made, again)]
    assert least[0] == least[1]
    assert bound_json.to_document(again) == document()


@pytest.mark.slow
def test_less_may_be_outside_only_with_a_higher_bound() -> None:
    """The bound is for plans with so much outside: with less it isn't lower."""
    made = document()
    before = lagrangian_bound.least(bound_json.from_document(made))
    made["outside"]["loads"] //= 2
    assert lagrangian_bound.least(bound_json.from_document(made)) >= before


def tables(made: dict[str, Any]) -> list[list[list[int]]]:
    """All tables of prices of topics and of loads."""
    return [made["prices"]["topic_replicas"], made["prices"]["replicas"], *(load["prices"] for load in made["loads"])]


@pytest.mark.slow
def test_edges_that_are_not_those_of_the_windows_are_refused() -> None:
    """An edge further in than its window's proves more than is so."""
    assert any(tables(document()))
    for at, table in enumerate(tables(document())):
        for row in range(len(table)):
            made = document()
            price = tables(made)[at][row][-2]
            tables(made)[at][row][-1] += 1 if price > 0 else -1
            with pytest.raises(ValueError, match="an edge that isn't that of its window"):
                bound_json.from_document(made)


@pytest.mark.slow
def test_starts_that_nothing_is_proven_for_are_refused() -> None:
    """A bound for some starts of a window only."""
    made = document()
    made["lows"] = made["outside"]["broker_windows"]["first"] * 2
    made["others"] = []
    with pytest.raises(ValueError, match="starts of a window that nothing is proven for"):
        bound_json.from_document(made)


@pytest.mark.parametrize("what", ["replicas", "loads"])
def test_what_is_outside_has_the_price_of_one(what: str) -> None:
    """A proof of how much is outside at another price would say more than there is."""
    made = document()
    case = made["outside"]["least"][what][0]
    while "off" in case:
        case = case["off"]
    case[f"of_{what}"] //= 2
    with pytest.raises(ValueError, match="has another price than 1"):
        bound_json.from_document(made)


def test_no_price_is_negative() -> None:
    """Being paid for what is outside proves nothing."""
    made = document()
    made["prices"]["of_loads"] = -1
    with pytest.raises(ValueError, match="of what is outside"):
        bound_json.from_document(made)

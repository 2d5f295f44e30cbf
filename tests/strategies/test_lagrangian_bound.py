"""The bound is never above what any plan moves, at any prices, and it stays the same when read from its file."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.plan import bound_json
from planner.strategies.lagrangian_bound import (
    GRAIN,
    BoundFacts,
    Branch,
    Case,
    Certificate,
    Part,
    Prices,
    TopicStart,
    lower_bound,
    none_priced,
    price_at_edges,
)

TWO_RACKS = BoundFacts(
    measure="bytes",
    broker_ids=np.array([1, 2, 3, 4]),
    racks=np.array([0, 0, 1, 1]),
    least=np.array([[0, 0], [0, 0], [1, 1]]),
    most=np.array([[0, 0], [1, 1], [1, 1]]),
    topics=np.array([0, 0, 1]),
    factors=np.array([2, 2, 1]),
    costs=np.array([10, 7, 5]),
    home=np.array([[0, 2], [0, -1], [3, -1]]),
    home_costs=np.array([[0, 0], [0, 0], [0, 0]]),
    loads=np.array([[10, 7, 5]]),
    load_names=("disk",),
    kinds=np.array([2, 2, 1]),
)


def choices(facts: BoundFacts, row: int) -> list[tuple[int, ...]]:
    """Every set of brokers that the racks allow for a row."""
    factor = int(facts.factors[row])
    found = []
    for brokers in combinations(range(len(facts.racks)), factor):
        counts = np.bincount(facts.racks[list(brokers)], minlength=facts.least.shape[1])
        if (counts >= facts.least[factor]).all() and (counts <= facts.most[factor]).all():
            found.append(brokers)
    return found


def cost(facts: BoundFacts, plan: tuple[tuple[int, ...], ...]) -> int:
    """The cost of a plan: what it moves."""
    homes = [set(row[row >= 0].tolist()) for row in facts.home]
    return sum(
        int(facts.costs[row]) for row, brokers in enumerate(plan) for broker in brokers if broker not in homes[row]
    )


def cheapest(facts: BoundFacts, fits: dict[str, np.ndarray]) -> int | None:
    """The lowest cost of all plans within the windows, by trying all of them; None if no plan is within them."""
    best = None
    for plan in product(*(choices(facts, row) for row in range(len(facts.factors)))):
        cells = np.zeros((2, len(facts.racks)), dtype=np.int64)
        held = np.zeros(len(facts.racks), dtype=np.int64)
        for row, brokers in enumerate(plan):
            cells[facts.topics[row], list(brokers)] += 1
            held[list(brokers)] += facts.loads[0, row]
        within = [(cells, "cells"), (cells.sum(axis=0), "brokers"), (held, "disk")]
        if facts.together is not None and not all(
            set.intersection(*(set(plan[row]) for row in np.flatnonzero(facts.together == slot)))
            for slot in set(facts.together.tolist()) - {-1}
        ):
            continue
        if all(((counts >= fits[name][0]) & (counts <= fits[name][1])).all() for counts, name in within):
            moved = cost(facts, plan)
            best = moved if best is None else min(best, moved)
    return best


def prices(shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Any prices, in parts of GRAIN."""
    count = int(np.prod(shape))
    values = st.lists(st.integers(-20 * GRAIN, 20 * GRAIN), min_size=count, max_size=count)
    return values.map(lambda flat: np.array(flat, dtype=np.int64).reshape(shape))


def windows(shape: tuple[int, ...], most: int) -> st.SearchStrategy[np.ndarray]:
    """Any windows."""
    ends = st.tuples(st.integers(0, most), st.integers(0, most)).map(sorted)
    count = int(np.prod(shape))
    return st.lists(ends, min_size=count, max_size=count).map(lambda pairs: np.array(pairs).T.reshape(2, *shape))


def certificate(facts: BoundFacts, priced: list[np.ndarray], fits: dict[str, np.ndarray]) -> Certificate:
    """A certificate with prices of cells, brokers and bytes for those windows."""
    tables = [price_at_edges(each, fits[name]) for each, name in zip(priced, ("cells", "brokers", "disk"), strict=True)]
    return Certificate(facts, Prices(tables[0], tables[1], (tables[2],)))


@examples(300)
@given(prices((2, 4)), prices((4,)), prices((4,)), windows((2, 4), 3), windows((4,), 4), windows((4,), 25))
def test_never_above_any_plan(
    cells: np.ndarray,
    brokers: np.ndarray,
    disk: np.ndarray,
    of_cells: np.ndarray,
    of_all: np.ndarray,
    of_bytes: np.ndarray,
) -> None:
    """Whatever the prices and the windows, no plan within them moves less than the bound."""
    fits = {"cells": of_cells, "brokers": of_all, "disk": of_bytes}
    best = cheapest(TWO_RACKS, fits)
    if best is not None:
        assert lower_bound(certificate(TWO_RACKS, [cells, brokers, disk], fits)) <= best


def test_without_prices_it_is_what_is_forced() -> None:
    """Without prices the bound is what is forced: the second partition's 7 bytes, because it lacks the other rack."""
    assert 7 == lower_bound(Certificate(TWO_RACKS, none_priced(TWO_RACKS)))


def test_a_replacement_costs_its_copy() -> None:
    """A replica that a replacement takes over stays at home, but its copy costs."""
    facts = replace(TWO_RACKS, home_costs=np.array([[10, 0], [0, 0], [0, 0]]))
    assert 17 == lower_bound(Certificate(facts, none_priced(facts)))


def test_a_price_on_a_window_raises_the_bound() -> None:
    """Broker 4 must hold 12 bytes: at a byte a byte, the bound is 12 minus the 5 bytes that it holds already."""
    fits = {"cells": np.full((2, 2, 4), 9), "brokers": np.full((2, 4), 9), "disk": np.array([[0, 0, 0, 12], [99] * 4])}
    nothing = np.zeros((2, 4), dtype=np.int64), np.zeros(4, dtype=np.int64)
    priced = certificate(TWO_RACKS, [*nothing, np.array([0, 0, 0, GRAIN])], fits)
    assert (
        7
        <= lower_bound(priced)
        <= (
            cheapest(
                TWO_RACKS,
                fits
                | {
                    "cells": np.stack([np.zeros((2, 4)), np.full((2, 4), 9)]),
                    "brokers": np.stack([np.zeros(4), np.full(4, 9)]),
                },
            )
            or 0
        )
    )


def test_the_least_of_a_topics_starts() -> None:
    """A topic's part of the bound is the least of its starts'; topics without other starts keep theirs."""
    fits = {
        "cells": np.array([[[1] * 4] * 2, [[2] * 4] * 2]),
        "brokers": np.array([[0] * 4, [9] * 4]),
        "disk": np.array([[0] * 4, [99] * 4]),
    }
    made = certificate(TWO_RACKS, [np.full((2, 4), 9 * GRAIN), np.zeros(4, dtype=int), np.zeros(4, dtype=int)], fits)
    free = np.zeros((4, 0), dtype=np.int64)
    unpriced = lower_bound(replace(made, prices=replace(made.prices, topic_replicas=free)))

    def at(*topics: int) -> int:
        starts = (TopicStart(np.array(topics, dtype=np.int64), free),)
        return lower_bound(replace(made, prices=replace(made.prices, starts=starts)))

    assert at() == lower_bound(made)
    assert at(0) + at(1) == at() + at(0, 1)
    assert at(0, 1) == min(unpriced, at(0), at(1), at())


def test_one_broker_for_all_rows_of_a_slot() -> None:
    """The second and the third partition share no broker: one of them enters the other's for 7, or for 5 more.

    If brokers are forbidden to a topic, another is common; if no broker is left, the rule counts for nothing.
    """
    slots = replace(TWO_RACKS, together=np.array([-1, 0, 0]))
    assert 7 == lower_bound(Certificate(slots, none_priced(slots)))
    first = replace(slots, home=np.array([[0, 2], [0, 2], [3, -1]]))
    assert 5 == lower_bound(Certificate(first, none_priced(first)))
    assert 0 == lower_bound(Certificate(replace(first, together=None), none_priced(first)))
    never = np.array([[False, False, False, False], [True, False, True, False]])
    only = replace(first, forbidden=never)
    assert 7 == lower_bound(Certificate(only, none_priced(only)))
    nowhere = replace(first, forbidden=np.array([[False, True, False, True], [True, False, True, False]]))
    assert 0 == lower_bound(Certificate(nowhere, none_priced(nowhere)))
    again = bound_json.from_document(bound_json.to_document(Certificate(only, none_priced(only))))
    assert 7 == lower_bound(again)


def test_the_common_broker_has_the_lowest_rank() -> None:
    """Broker 4 has both, but the second partition must also be on broker 1 or 2, and broker 1 is of lower rank."""
    ranks = np.array([[0, 1, 1, 1], [0, 0, 0, 0]])
    facts = replace(TWO_RACKS, home=np.array([[0, 2], [0, 3], [3, -1]]), together=np.array([-1, 0, 0]))
    assert 0 == lower_bound(Certificate(facts, none_priced(facts)))
    ranked = replace(facts, leader_ranks=ranks)
    assert 5 == lower_bound(Certificate(ranked, none_priced(ranked)))
    first = replace(ranked, leader_ranks=np.array([[0, 0, 1, 1], [0, 0, 0, 0]]))
    # Now either broker of the first rack is of lower rank than broker 4.
    assert 5 == lower_bound(bound_json.from_document(bound_json.to_document(Certificate(first, none_priced(first)))))


@examples(200)
@given(st.data(), prices((2, 4)), prices((4,)), windows((2, 4), 3), windows((4,), 4))
def test_never_above_any_plan_with_common_brokers(
    data: st.DataObject, cells: np.ndarray, brokers: np.ndarray, of_cells: np.ndarray, of_all: np.ndarray
) -> None:
    """Whatever the prices and the slots, no plan with a broker for all rows of each slot moves less than the bound."""
    slots = np.array(data.draw(st.sampled_from([[0, 0, -1], [0, -1, 0], [-1, 3, 3], [1, 1, 1]])))
    fits = {"cells": of_cells, "brokers": of_all, "disk": np.array([[0] * 4, [99] * 4])}
    facts = replace(TWO_RACKS, together=slots)
    best = cheapest(facts, fits)
    if best is not None:
        assert lower_bound(certificate(facts, [cells, brokers, np.zeros(4, dtype=np.int64)], fits)) <= best


def test_the_same_from_its_document() -> None:
    """A certificate has the same bound after it is written as plain data and read again."""
    fits = {
        "cells": np.array([[[0] * 4] * 2, [[1] * 4] * 2]),
        "brokers": np.array([[1] * 4, [2] * 4]),
        "disk": np.array([[5] * 4, [15] * 4]),
    }
    made = certificate(TWO_RACKS, [np.full((2, 4), 3), np.arange(4) * 5, np.full(4, -2)], fits)
    assert lower_bound(made) == lower_bound(bound_json.from_document(bound_json.to_document(made)))


def any_case(draw: st.DrawFn, fits: dict[str, np.ndarray], racks: tuple[int, ...], deep: int) -> Case:
    """Branches on brokers of these racks, with any prices at their ends."""
    if deep and draw(st.booleans()):
        brokers = np.flatnonzero(np.isin(TWO_RACKS.racks, racks)).tolist()
        row, broker = draw(st.integers(0, 2)), draw(st.sampled_from(brokers))
        return Branch(row, broker, *(any_case(draw, fits, racks, deep - 1) for _ in range(2)))
    drawn = [draw(prices(shape)) for shape in ((2, 4), (4,), (4,))]
    return certificate(TWO_RACKS, drawn, fits).prices


def any_parts(draw: st.DrawFn, fits: dict[str, np.ndarray]) -> tuple[Part, ...]:
    """Parts for both racks at once, for each rack by itself, or for one of them."""
    apart = draw(st.sampled_from([((0, 1),), ((0,), (1,)), ((1,),)]))
    return tuple(Part(racks, any_case(draw, fits, racks, 3)) for racks in apart)


@examples(300)
@given(st.data(), windows((2, 4), 3), windows((4,), 4), windows((4,), 25))
def test_never_above_any_plan_by_cases(
    data: st.DataObject, of_cells: np.ndarray, of_all: np.ndarray, of_bytes: np.ndarray
) -> None:
    """Whatever is decided in which order, and whatever the prices of the cases are."""
    fits = {"cells": of_cells, "brokers": of_all, "disk": of_bytes}
    best = cheapest(TWO_RACKS, fits)
    made = Certificate(TWO_RACKS, none_priced(TWO_RACKS), any_parts(data.draw, fits))
    if best is not None:
        assert lower_bound(made) <= best
    assert lower_bound(made) == lower_bound(bound_json.from_document(bound_json.to_document(made)))


def full(broker: int) -> Prices:
    """The price of a byte on a broker that may hold nothing."""
    fits = {"cells": np.zeros((2, 2, 4)), "brokers": np.zeros((2, 4)), "disk": np.zeros((2, 4), dtype=np.int64)}
    nothing = np.zeros((2, 4), dtype=np.int64), np.zeros(4, dtype=np.int64)
    return certificate(TWO_RACKS, [*nothing, -GRAIN * (np.arange(4) == broker)], fits).prices


def by_cases(off: Prices, on: Prices) -> Certificate:
    """Branches on the second partition, which must enter the second rack: with and without that rack's first broker."""
    none = none_priced(TWO_RACKS)
    return Certificate(TWO_RACKS, none, (Part((1,), Branch(1, 2, off, on)),))


def test_the_least_of_the_cases() -> None:
    """Entering costs 7; a full broker costs 7 more, and 10 for the first partition, which can't stay or can't enter."""
    none = none_priced(TWO_RACKS)
    made = [by_cases(off, on) for off, on in ((none, none), (full(3), none), (none, full(2)), (full(3), full(2)))]
    assert [7, 7, 7, 14] == [lower_bound(each) for each in made]


def test_cases_that_nothing_fits_do_not_count() -> None:
    """A partition with one replica in a rack can't be on both of its brokers: such cases don't lower the bound."""
    none = none_priced(TWO_RACKS)
    both = Branch(0, 3, none, Branch(0, 2, none, none))
    made = Certificate(TWO_RACKS, none, (Part((1,), both),))
    assert 7 == lower_bound(made)
    forced = Branch(0, 2, Branch(0, 3, none, none), Branch(0, 3, none, none))
    assert 7 == lower_bound(replace(made, parts=(Part((1,), forced),)))


@pytest.mark.parametrize(
    ("key", "value"),
    [("racks", [0]), ("racks", [1, 1]), ("racks", [2]), ("row", 3), ("broker", 0), ("broker", 4), ("broker", -1)],
)
def test_cases_about_something_else_are_refused(key: str, value: object) -> None:
    """A document is refused if it has unknown or repeated racks, or rows or brokers outside the part."""
    document = bound_json.to_document(by_cases(full(3), full(2)))
    (document["parts"][0] if key == "racks" else document["parts"][0]["case"])[key] = value
    with pytest.raises(ValueError, match=r"racks|row"):
        bound_json.from_document(document)


@pytest.mark.parametrize("missing", ["off", "on"])
def test_every_case_has_to_be_there(missing: str) -> None:
    """A document is refused if a branch lacks one of its two cases."""
    document = bound_json.to_document(by_cases(full(3), full(2)))
    del document["parts"][0]["case"][missing]
    with pytest.raises(KeyError, match=missing):
        bound_json.from_document(document)

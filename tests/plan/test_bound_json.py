"""The file of a bound: it is read back as it was written, its check finds the plan's bound, and others are refused."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from clusters import balance_of, no_racks, problem_of, spec_of, specs
from hypothesis import given
from plan_documents import typed
from properties import examples

from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.errors import StalePlanError
from planner.model.spec import Spec, Sweep, TopicFilter
from planner.plan import bound_json, bound_section, build
from planner.plan.build import Planned
from planner.plan.document.codec import as_json
from planner.strategies import lagrangian_bound
from planner.strategies.lagrangian_bound import Certificate
from planner.strategies.optimum import solve
from planner.sweep import evaluate
from planner.sweep.candidates import candidates
from planner.sweep.choice import BASE, Swept


@cache
def relaxed() -> Certificate:
    """The certificate of a plan whose windows of replicas and bytes can't hold, and may begin at two places."""
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
    assert certificate.outside.slack.replicas > 0 < certificate.outside.slack.loads
    return certificate


def document() -> dict[str, Any]:
    """The certificate as plain data, to be changed."""
    return copy.deepcopy(bound_json.to_document(relaxed()))


@pytest.mark.slow
def test_what_is_outside_is_read_back() -> None:
    """A certificate that is read back has the same bound and the same least excess."""
    made, again = relaxed(), bound_json.from_document(document())
    assert lagrangian_bound.lower_bound(made) == lagrangian_bound.lower_bound(again)
    assert made.outside is not None
    assert again.outside is not None
    least = [lagrangian_bound.least_outside(each.facts, each.outside) for each in (made, again)]
    assert least[0] == least[1]
    assert bound_json.to_document(again) == document()


@pytest.mark.slow
def test_less_may_be_outside_only_with_a_higher_bound() -> None:
    """If less may be outside the windows, the bound isn't lower."""
    made = document()
    before = lagrangian_bound.lower_bound(bound_json.from_document(made))
    made["outside"]["loads"] //= 2
    assert lagrangian_bound.lower_bound(bound_json.from_document(made)) >= before


def tables(made: dict[str, Any]) -> list[list[list[int]]]:
    """All tables of prices of topics and of loads."""
    return [made["prices"]["topic_replicas"], made["prices"]["replicas"], *(load["prices"] for load in made["loads"])]


@pytest.mark.slow
def test_edges_that_are_not_those_of_the_windows_are_refused() -> None:
    """An edge further inside than its window's is refused, because it would prove too much."""
    assert any(tables(document()))
    for at, table in enumerate(tables(document())):
        for row in range(len(table)):
            made = document()
            price = tables(made)[at][row][-2]
            tables(made)[at][row][-1] += 1 if price > 0 else -1
            with pytest.raises(ValueError, match="an edge that isn't that of its window"):
                bound_json.from_document(made)


@pytest.mark.slow
def test_two_prices_of_one_window_are_refused() -> None:
    """Of two only one would count, but the edges of both."""
    for at, table in enumerate(tables(document())):
        if table:
            made = document()
            tables(made)[at].append(table[0])
            with pytest.raises(ValueError, match="two prices of one window"):
                bound_json.from_document(made)


@pytest.mark.slow
def test_starts_that_nothing_is_proven_for_are_refused() -> None:
    """A file whose bound lacks some starts of a window is refused."""
    made = document()
    made["lows"] = made["outside"]["broker_windows"]["first"] * 2
    made["others"] = []
    with pytest.raises(ValueError, match="starts of a window that nothing is proven for"):
        bound_json.from_document(made)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["replicas", "loads"])
def test_what_is_outside_has_the_price_of_one(what: str) -> None:
    """A proof of how much is outside is refused if its price isn't 1, because it would prove too much."""
    made = document()
    case = made["outside"]["least"][what][0]
    while "off" in case:
        case = case["off"]
    case[f"of_{what}"] //= 2
    with pytest.raises(ValueError, match="has another price than 1"):
        bound_json.from_document(made)


@pytest.mark.slow
def test_no_price_is_negative() -> None:
    """A negative price on excess is refused, because it would prove nothing."""
    made = document()
    made["prices"]["of_loads"] = -1
    with pytest.raises(ValueError, match="of what is outside"):
        bound_json.from_document(made)


@pytest.mark.slow
def test_starts_of_topics_windows_are_for_plans_within_them() -> None:
    """Elsewhere their edges would be checked against no window."""
    start = {"topics": [0], "topic_replicas": []}
    made = document()
    made["prices"]["starts"] = [start]
    with pytest.raises(ValueError, match="starts of topics' windows, for plans outside of them"):
        bound_json.from_document(made)
    made = document()
    case = made["outside"]["least"]["loads"][0]
    while "off" in case:
        case = case["off"]
    case["starts"] = [start]
    with pytest.raises(ValueError, match="starts of topics' windows in a case"):
        bound_json.from_document(made)


@cache
def within_targets() -> bytes:
    """The file of a plan within its windows."""
    made = planned(Balance(disk=Tolerance("percent", 30)))
    assert made.bound is not None
    return made.bound


def with_odd(made: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The document with another value at a path."""
    *way, last = path
    at: Any = made
    for key in way:
        at = at[key]
    at[last] = value
    return made


ODD_VALUES: list[tuple[tuple[str | int, ...], object]] = [
    (("topics", 0), -1),
    (("topics", 0), 0.5),
    (("racks", 0), -1),
    (("kinds",), [-1] * 6),
    (("kinds",), [True] * 6),
    (("broker_ids", 0), 1.0),
    (("factors", 0), True),
    (("factors", 0), 1.5),
    (("costs", 0), True),
    (("costs", 0), "10"),
    (("least", 0, 0), False),
    (("most", 0, 0), 1.5),
    (("home", 0, 0), 0.5),
    (("home_costs", 0, 0), False),
    (("forbidden",), [[2, 0, 0]]),
    (("forbidden",), [[False, False, False]]),
    (("together",), [0.5] * 6),
    (("together",), [True] * 6),
    (("loads", 0, "of", 0), 10.5),
    (("loads", 0, "window"), 1),
    (("loads", 0, "prices"), [[-1, 1, 0]]),
    (("loads", 0, "prices"), [[True, 1, 0]]),
    (("prices", "topic_replicas"), [[-1, 0, 1, 0]]),
    (("prices", "topic_replicas"), [[0, -1, 1, 0]]),
    (("prices", "topic_replicas"), [[0, 0, 1.5, 0]]),
    (("prices", "replicas"), [[-1, 1, 0]]),
    (("prices", "replicas"), [[0, True, 0]]),
    (("prices", "starts"), [{"topics": [-1], "topic_replicas": []}]),
    (("prices", "starts"), [{"topics": [0], "topic_replicas": [[-1, 0, 1, 0]]}]),
    (("prices", "of_replicas"), 0.5),
    (("prices", "of_loads"), True),
    (("grain",), True),
    (("grain",), 256.0),
    (("lows",), [0.5, 1]),
    (("lows",), None),
    (("parts",), [{"racks": [False], "case": {}}]),
]


@pytest.mark.parametrize(("path", "value"), ODD_VALUES, ids=str)
def test_numbers_that_are_not_whole_or_name_nothing_are_refused(path: tuple[str | int, ...], value: object) -> None:
    """Fractions and booleans aren't rounded, and negative numbers don't count from the end, as in NumPy."""
    document = json.loads(within_targets())
    bound_json.from_document(document)
    with pytest.raises(ValueError, match=r"^Expected `\w+|^Invalid enum value|negative number"):
        bound_json.from_document(with_odd(document, path, value))


@pytest.mark.parametrize(("key", "value"), [("row", 1.5), ("row", True), ("broker", 1.0), ("broker", False)])
def test_rows_and_brokers_of_cases_are_whole_numbers(key: str, value: object) -> None:
    """A case is of a partition and a broker by their numbers."""
    document = json.loads(within_targets())
    leaf = {**document["prices"], "grain": document["grain"], "loads": [load["prices"] for load in document["loads"]]}
    case = {"row": 0, "broker": 0, "off": leaf, "on": leaf}
    bound_json.from_document(with_odd(document, ("parts",), [{"racks": [0], "case": case}]))
    with pytest.raises(ValueError, match=r"^Expected `int`"):
        bound_json.from_document(with_odd(document, ("parts", 0, "case", key), value))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("replicas",), True),
        (("loads",), 0.5),
        (("furthest", 0), 0.5),
        (("scales", 0), True),
        (("partitions", 0), 0.5),
        (("topic_names", 0), 1),
        (("load_windows", 0, 0, 0), 0.5),
        (("broker_windows", "spread"), 0.5),
        (("broker_windows", "open", 0), 1),
        (("broker_windows", "first", 0), False),
        (("broker_windows", "last", 0), 0.5),
        (("topic_windows", "bounds", 0, 0, 0), 0.5),
        (("topic_windows", "fixed", 0, 0), True),
        (("topic_windows", "movable", 0), 0.5),
    ],
    ids=str,
)
def test_windows_are_whole_numbers(path: tuple[str | int, ...], value: object) -> None:
    """Neither fractions nor booleans are taken for them, nor numbers for booleans."""
    with pytest.raises(ValueError, match=r"^Expected `\w+"):
        bound_json.from_document(with_odd(document(), ("outside", *path), value))


def planned(balance: Balance) -> Planned:
    """A plan that spreads a topic from two brokers to three."""
    racks = {1: None, 2: None, 3: None}
    spec = spec_of(racks, {"t": [[1], [1], [1], [2], [2], [2]]})
    topics = tuple(
        replace(topic, partitions=tuple(replace(each, size_bytes=10 + each.id) for each in topic.partitions))
        for topic in spec.cluster.topics
    )
    cluster = replace(spec.cluster, topics=topics, sizes_known=True)
    return swept(replace(spec, cluster=cluster, balance=balance, sweep=Sweep(candidates=20)))


def swept(spec: Spec) -> Planned:
    """The plan of a spec, swept in this process."""
    problem = build_problem.build(spec)
    return build.planned([Swept(BASE, spec, problem, evaluate.run(problem, candidates(problem, spec.sweep)))])


@pytest.mark.parametrize(
    ("balance", "method"),
    [(Balance(), "flow"), (Balance(disk=Tolerance("percent", 30)), "flow")],
    ids=["counts", "disk"],
)
def test_checked_by_arithmetic(balance: Balance, method: str) -> None:
    """The file gives the bound that the plan states, and the plan's partitions give the bytes that it moves."""
    made = planned(balance)
    assert made.bound is not None
    checked = bound_json.check(made.plan, made.bound, "bound.json")
    stated = as_json(made.plan)["bound"]
    assert (stated["least_bytes_moved"], stated["bytes_moved"], method) == (
        checked.least,
        checked.moved,
        stated["method"],
    )
    assert stated["gap_percent"] == bound_section.gap_percent(checked.moved, checked.least)


@examples(30)
@given(specs(rebalance=("all", "none")))
def test_without_sizes_replicas_are_counted_those_of_replacements_too(spec: Spec) -> None:
    """The file comes to the number of replicas that the plan states, whatever a broker takes over."""
    topics = tuple(
        replace(topic, partitions=tuple(replace(each, size_bytes=0) for each in topic.partitions))
        for topic in spec.cluster.topics
    )
    cluster = replace(spec.cluster, topics=topics, sizes_known=False)
    made = swept(replace(spec, cluster=cluster, sweep=Sweep(candidates=3)))
    if made.bound is not None:
        checked, stated = bound_json.check(made.plan, made.bound, "bound.json"), made.plan.bound
        assert ("replicas", checked.least) == (checked.measure, stated.least_replicas_moved)
        assert stated.gap_percent == bound_section.gap_percent(checked.moved, checked.least)


def test_any_change_of_the_file_shows() -> None:
    """A file with one changed digit is refused, because its SHA-256 differs."""
    made = planned(Balance())
    assert made.bound is not None
    with pytest.raises(StalePlanError, match="SHA-256"):
        bound_json.check(made.plan, made.bound.replace(b"0", b"1", 1), "bound.json")


def test_a_bound_that_the_prices_do_not_bear_is_refused() -> None:
    """A plan that claims more than the file's prices prove is refused, even if all digests match."""
    made = planned(Balance())
    assert made.bound is not None
    claim = {**as_json(made.plan)["bound"], "least_bytes_moved": made.plan.bound.least_bytes_moved + 1}
    with pytest.raises(StalePlanError, match="come to a bound of"):
        bound_json.check(typed({**as_json(made.plan), "bound": claim}), made.bound, "bound.json")


def test_the_file_is_json_by_lines() -> None:
    """The file has one key a line, and its bound is the plan's."""
    made = planned(Balance())
    assert made.bound is not None
    document = json.loads(made.bound)
    assert len(document) == len(made.bound.splitlines())
    assert lagrangian_bound.lower_bound(bound_json.from_document(document)) == made.plan.bound.least_bytes_moved


def relaxed_plan() -> Planned:
    """A plan whose partitions are larger than the windows of bytes."""
    spec = spec_of({1: None, 2: None, 3: None}, {"t": [[1], [1], [2], [2]]})
    sizes = 70_000, 20_000, 31_000, 9_000
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(each, size_bytes=size) for each, size in zip(topic.partitions, sizes, strict=True)
            ),
        )
        for topic in spec.cluster.topics
    )
    cluster = replace(spec.cluster, topics=topics, sizes_known=True)
    spec = replace(spec, cluster=cluster, balance=Balance(disk=Tolerance("percent", 10)), sweep=Sweep(candidates=20))
    problem = build_problem.build(spec)
    return build.planned([Swept(BASE, spec, problem, evaluate.run(problem, candidates(problem, spec.sweep)))])


@pytest.mark.slow
def test_the_excess_is_worked_out_again() -> None:
    """The plan states how much may be outside windows, with proof, and the check accepts the plan."""
    made = relaxed_plan()
    assert made.bound is not None
    stated = made.plan.bound.excess
    assert stated is not None
    assert 0 < stated.least_loads <= stated.loads
    assert [each.window for each in stated.furthest] == ["disk"]
    assert "whichever brokers carry it" in made.plan.bound.proof
    assert bound_json.check(made.plan, made.bound, "bound.json").least == made.plan.bound.least_bytes_moved


@pytest.mark.slow
def test_another_excess_than_that_of_the_bound_is_refused() -> None:
    """A plan that claims less excess than the bound's file, or none, is refused."""
    made = relaxed_plan()
    assert made.bound is not None
    stated = as_json(made.plan)["bound"]
    without = {key: value for key, value in stated.items() if key != "excess"}
    for bound in (without, {**stated, "excess": {**stated["excess"], "loads": stated["excess"]["loads"] - 1}}):
        with pytest.raises(StalePlanError, match="the prices are for plans with another excess"):
            bound_json.check(typed({**as_json(made.plan), "bound": bound}), made.bound, "bound.json")


@pytest.mark.slow
def test_a_plan_that_the_bound_is_not_for_is_refused() -> None:
    """A plan further outside its windows than the bound allows is refused, because it may move fewer bytes."""
    made = relaxed_plan()
    assert made.bound is not None
    rows = [{**row, "replicas": row["replicas_before"]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="further outside of its windows"):
        bound_json.check(typed({**as_json(made.plan), "partitions": rows}), made.bound, "bound.json")
    doubled = [{**row, "replicas": [1, 2]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="topic t has 2 replicas"):
        bound_json.check(typed({**as_json(made.plan), "partitions": doubled}), made.bound, "bound.json")


def test_a_plan_below_its_bound_is_refused() -> None:
    """A plan that moves fewer bytes than its bound is refused."""
    made = planned(Balance())
    assert made.bound is not None
    rows = [{**row, "replicas": row["replicas_before"]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="this one moves 0"):
        bound_json.check(typed({**as_json(made.plan), "partitions": rows}), made.bound, "bound.json")

"""The bound in its own file and its check, by arithmetic alone; and what it is about: the balance and the rules."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from clusters import spec_of, specs
from hypothesis import given
from plan_documents import Document, typed
from properties import examples
from report_documents import small
from test_headline import LEFT

from planner.model import build_problem
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Apart, ApartBy
from planner.model.errors import StalePlanError
from planner.model.spec import Spec, Sweep
from planner.plan import bound_and_proof, bound_json, build, headline
from planner.plan.build import Planned
from planner.plan.document.codec import as_json
from planner.strategies import lagrangian_bound
from planner.sweep import evaluate
from planner.sweep.candidates import candidates
from planner.sweep.choice import BASE, Swept


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
    """The file comes to the bound that the plan states, and the plan's own list to the bytes that it moves."""
    made = planned(balance)
    assert made.bound is not None
    checked = bound_and_proof.check(made.plan, made.bound, "bound.json")
    stated = as_json(made.plan)["bound"]
    assert (stated["least_bytes_moved"], stated["bytes_moved"], method) == (
        checked.least,
        checked.moved,
        stated["method"],
    )
    assert stated["gap_percent"] == bound_and_proof.gap_percent(checked.moved, checked.least)


@pytest.mark.parametrize(("by", "of_split"), [("broker", True), ("rack_leaders", False)])
def test_a_split_of_who_leads_is_no_part_of_the_proof(by: ApartBy, of_split: bool) -> None:
    """It doesn't say where replicas may be: no split of it copies less."""
    made = planned(Balance())
    assert made.bound is not None
    certificate = bound_json.from_document(json.loads(made.bound))
    said = bound_and_proof.proof(certificate, False, [Apart(("x", "y"), ((1,), (2,)), False, by)])
    assert of_split == ("for this split of the brokers among topics that are apart" in said)


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
        checked, stated = bound_and_proof.check(made.plan, made.bound, "bound.json"), made.plan.bound
        assert ("replicas", checked.least) == (checked.measure, stated.least_replicas_moved)
        assert stated.gap_percent == bound_and_proof.gap_percent(checked.moved, checked.least)


def test_any_change_of_the_file_shows() -> None:
    """One digit more is another file."""
    made = planned(Balance())
    assert made.bound is not None
    with pytest.raises(StalePlanError, match="SHA-256"):
        bound_and_proof.check(made.plan, made.bound.replace(b"0", b"1", 1), "bound.json")


def test_a_bound_that_the_prices_do_not_bear_is_refused() -> None:
    """A plan that claims more than its prices prove is told so, though all digests fit."""
    made = planned(Balance())
    assert made.bound is not None
    claim = {**as_json(made.plan)["bound"], "least_bytes_moved": made.plan.bound.least_bytes_moved + 1}
    with pytest.raises(StalePlanError, match="come to a bound of"):
        bound_and_proof.check(typed({**as_json(made.plan), "bound": claim}), made.bound, "bound.json")


def test_the_file_is_json_by_lines() -> None:
    """One key a line, read back as the same certificate."""
    made = planned(Balance())
    assert made.bound is not None
    document = json.loads(made.bound)
    assert len(document) == len(made.bound.splitlines())
    assert lagrangian_bound.least(bound_json.from_document(document)) == made.plan.bound.least_bytes_moved


@pytest.mark.parametrize(("moved", "least", "gap"), [(0, 0, 0.0), (100, 100, 0.0), (100, 99, 1.0), (3, 2, 33.334)])
def test_gap_in_per_cent(moved: int, least: int, gap: float) -> None:
    """By how much of itself the plan is above the bound."""
    assert gap == bound_and_proof.gap_percent(moved, least)


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


def test_the_excess_is_worked_out_again() -> None:
    """What plans may be outside of windows stands in the plan, is proven, and the plan is outside by no more."""
    made = relaxed_plan()
    assert made.bound is not None
    stated = made.plan.bound.excess
    assert stated is not None
    assert 0 < stated.least_loads <= stated.loads
    assert [each.window for each in stated.furthest] == ["disk"]
    assert "whichever brokers carry it" in made.plan.bound.proof
    assert bound_and_proof.check(made.plan, made.bound, "bound.json").least == made.plan.bound.least_bytes_moved


@pytest.mark.slow
def test_another_excess_than_that_of_the_bound_is_refused() -> None:
    """A plan can't claim that less is outside, nor leave it out."""
    made = relaxed_plan()
    assert made.bound is not None
    stated = as_json(made.plan)["bound"]
    without = {key: value for key, value in stated.items() if key != "excess"}
    for bound in (without, {**stated, "excess": {**stated["excess"], "loads": stated["excess"]["loads"] - 1}}):
        with pytest.raises(StalePlanError, match="the prices are for plans with another excess"):
            bound_and_proof.check(typed({**as_json(made.plan), "bound": bound}), made.bound, "bound.json")


@pytest.mark.slow
def test_a_plan_that_the_bound_is_not_for_is_refused() -> None:
    """A plan further outside of its windows than the bound's may move fewer bytes: nothing is proven of it."""
    made = relaxed_plan()
    assert made.bound is not None
    rows = [{**row, "replicas": row["replicas_before"]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="further outside of its windows"):
        bound_and_proof.check(typed({**as_json(made.plan), "partitions": rows}), made.bound, "bound.json")
    doubled = [{**row, "replicas": [1, 2]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="topic t has 2 replicas"):
        bound_and_proof.check(typed({**as_json(made.plan), "partitions": doubled}), made.bound, "bound.json")


def test_a_plan_below_its_bound_is_refused() -> None:
    """Nothing that moves fewer bytes than any plan does can be what the bound is about."""
    made = planned(Balance())
    assert made.bound is not None
    rows = [{**row, "replicas": row["replicas_before"]} for row in as_json(made.plan)["partitions"]]
    with pytest.raises(StalePlanError, match="this one moves 0"):
        bound_and_proof.check(typed({**as_json(made.plan), "partitions": rows}), made.bound, "bound.json")


EXCESS = {"replicas": 3, "least_replicas": 3, "loads": 0, "least_loads": 0, "furthest": []}
RACKS = " and spreads replicas over the racks"


def made_for(disk: str, missed: tuple[str, ...] = (), **bound: Any) -> Document:
    """The small plan as one that `sweep.balance` made for another disk target than the one asked for."""
    plan = small()
    windows = plan["balance"]["wanted"]
    balance = {"wanted": windows | {"disk": disk}, "asked": windows, "missed": missed, "relaxed": []}
    return plan | {"balance": balance, "bound": plan["bound"] | bound}


def met(**top: Any) -> Document:
    """The small plan with all targets met."""
    plan = small(**top)
    plan["balance"] |= {"missed": [], "relaxed": []}
    return plan


@pytest.mark.parametrize(("least", "share"), [(10, " (1,000 %)"), (9, ""), (0, ""), (110, "")])
def test_a_gap_has_a_percentage_where_that_tells_something(least: int, share: str) -> None:
    """Not where a few bytes are asked for and a whole partition is copied."""
    bound = typed(met(bound=small()["bound"] | {"bytes_moved": 110, "least_bytes_moved": least})).bound
    above = f"at most {110 - least} B{share} above the proven minimum" if least < 110 else "the proven minimum"
    assert (above if least else "the minimum is unknown") == bound_and_proof.gap_to_least(bound)


def test_a_plan_of_another_balance_is_not_of_the_one_asked_for() -> None:
    """A plan of the front keeps the windows that it was made for, and its bound is for these, whatever it misses."""
    plan = typed(made_for("50%", ("disk",)))
    assert bound_and_proof.looser(plan)
    assert "the balance is looser than asked: bytes" == headline.balance_missed(plan)
    assert "the proven minimum at the targets with disk 50%; " in headline.headline(plan)
    assert f"meets the targets with disk 50%{RACKS}" == bound_and_proof.bounded(plan)
    assert not bound_and_proof.looser(typed(small()))


def test_a_narrower_target_than_asked_is_said_too() -> None:
    """No target that was asked for is missed, and other plans that meet them copy less."""
    plan = typed(made_for("5%"))
    assert "the proven minimum at the targets with disk 5%; " in headline.headline(plan)
    assert f"meets the targets with disk 5%{RACKS}" == bound_and_proof.bounded(plan)


def test_what_is_missed_at_another_balance_is_missed_there() -> None:
    """The excess of the bound is beyond the windows that the plan was made for, not those asked for."""
    document = made_for("5%", ("topic_replicas",), excess=EXCESS)
    document["balance"]["relaxed"] = small()["balance"]["relaxed"]
    plan = typed(document)
    assert "the proven minimum for a balance this close to the targets with disk 5%; " in headline.headline(plan)
    assert f"comes as close to the targets with disk 5%{RACKS}" == bound_and_proof.bounded(plan)


def test_an_adopted_plan_is_as_even_as_it_is() -> None:
    """Its windows are what it reaches: nobody asked for those."""
    adopted = {"file": "a", "sha256": "ab" * 32, "format": "JSON", "partitions": 2, "partitions_there": 0}
    plan = typed(made_for("50%", ("disk",)) | {"adopted": adopted})
    assert "the proven minimum at this looser balance; " in headline.headline(plan)
    assert f"ends as even as this one{RACKS}" == bound_and_proof.bounded(plan)


def test_a_bound_about_unmet_targets_says_so() -> None:
    """Plans as close to the targets; where only disk limits are exceeded, those."""
    plan = small()
    outside = plan | {"bound": plan["bound"] | {"excess": EXCESS}}
    assert f"comes as close to the targets{RACKS}" == bound_and_proof.bounded(typed(outside))
    outside["balance"]["relaxed"] = []
    assert f"exceeds the disk limits by no more{RACKS}" == bound_and_proof.bounded(typed(outside))


@pytest.mark.parametrize(
    ("by", "kept", "split"),
    [
        ("broker", "and keeps placement, apart and the caps", " for this split of the brokers"),
        ("rack", "and keeps placement, apart and the caps", " for this split of the racks"),
        ("rack_leaders", "and keeps placement and the caps", ""),
    ],
)
def test_rules_are_part_of_what_is_proven(by: str, kept: str, split: str) -> None:
    """Without them another plan copies less; who leads changes no bound on what is copied."""
    plan = met()
    plan["spec"] |= {
        "placement": [{"topics": "a", "broker_set": "fast", "brokers": [1], "exclusive": False}],
        "apart": [{"topics": ["a", "b"], "by": by, "sides": [[1, 2], [3, 4]], "proven": False}],
    }
    plan["brokers"][0] |= {"max_replicas": 40}
    assert f"meets the targets, spreads replicas over the racks {kept}" == bound_and_proof.bounded(typed(plan))
    assert split == bound_and_proof.of_split(typed(plan))
    assert f"{split} that {bound_and_proof.bounded(typed(plan))}" == bound_and_proof.covered(typed(plan))


@pytest.mark.parametrize(("shut", "named"), [((1,), "broker 1"), ((1, 2), "brokers 1–2")])
def test_cordoned_brokers_are_part_of_what_is_proven(shut: tuple[int, ...], named: str) -> None:
    """A plan that copied to them might copy less."""
    plan = met()
    for broker in plan["brokers"]:
        broker |= {"cordoned": True} if broker["id"] in shut else {}
    expected = f"meets the targets, spreads replicas over the racks and copies nothing to the cordoned {named}"
    assert expected == bound_and_proof.bounded(typed(plan))


def test_racks_as_today_are_part_of_what_is_proven() -> None:
    """Plans that spread replicas worse aren't among those that the bound is about."""
    plan = met()
    plan["spec"] |= {"racks_as_today": True}
    assert f"meets the targets{RACKS} at least as evenly as today" == bound_and_proof.bounded(typed(plan))


def test_topics_that_may_not_move_are_part_of_what_is_proven() -> None:
    """Excluded ones stay in all plans that the bound is about; racks count only where the rule is on."""
    plan = met(rack_aware=False)
    plan["spec"]["topics"] |= {"exclude": ["a"]}
    assert "meets the targets and leaves excluded topics where they are" == bound_and_proof.bounded(typed(plan))


def test_partitions_that_stay_are_part_of_what_is_proven() -> None:
    """A plan that may change more, or that leaves others for later, might spread more over the racks and copy less."""
    plan = met()
    plan["spec"]["topics"] |= {"on_brokers": [2, 4]}
    only = "changes only partitions on broker 2 and broker 4"
    assert f"meets the targets, spreads replicas over the racks and {only}" == bound_and_proof.bounded(typed(plan))
    step = typed(met(complete=False, unfinished=LEFT))
    does = "ends as even as this one, spreads replicas over the racks and leaves the same 20 partitions for later"
    assert f" of this step that {does}" == bound_and_proof.covered(step)


def test_that_nothing_meets_all_targets_is_said_where_it_is_proven() -> None:
    """Else no plan that was tried does, which proves nothing."""
    plan = small()
    said = "1 balance target is not met: "
    assert f"{said}no plan tried meets all targets" == headline.balance_missed(typed(plan))
    plan["bound"] |= {"excess": EXCESS | {"least_replicas": 0}}
    assert f"{said}no plan tried meets all targets" == headline.balance_missed(typed(plan))
    plan["bound"] |= {"excess": EXCESS}
    assert f"{said}no plan meets all targets (proven)" == headline.balance_missed(typed(plan))

"""The terms have one definition in all columns: today for the cluster as it is, the others for what is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import plan_documents
import pytest
from clusters import balance_of, no_racks, spec_of

from planner.model.build_problem import build, today
from planner.model.cluster import Broker
from planner.model.document_fields import SpecLimits
from planner.model.spec import Changes, Rebalance, Spec, TopicFilter
from planner.plan.build import RefusedPlanError
from planner.plan.score_terms import left_to_change, terms
from planner.report import verdict
from planner.scoring.broker_loads import leaders_after
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

RACKS = {1: "a", 2: "b", 3: "c"}
ROWS = {"x": [(1, 2), (2, 3), (3, 1)], "y": [(1, 2), (2, 3), (3, 1)]}


def columns(spec: Spec, assignment: Any = None, *, applied: bool = True) -> dict[str, tuple[Any, Any, Any]]:
    """Each term's values today, if nothing moves, and with a plan; by default, the plan moves nothing."""
    asked = build(spec)
    plan = today(asked) if assignment is None else assignment
    return {
        row.name: (row.today, row.if_nothing_moves, row.plan)
        for row in terms(spec, asked, plan, leaders_after(asked, plan), applied=applied)
    }


def in_sync(spec: Spec, *isrs: tuple[int, ...]) -> Spec:
    """The spec with the replicas in sync of each partition of its only topic."""
    (topic,) = spec.cluster.topics
    parts = tuple(replace(part, isr=isr) for part, isr in zip(topic.partitions, isrs, strict=True))
    return replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=parts),)))


def test_brokers_that_are_not_there_yet_do_not_count_today() -> None:
    """Three even brokers are even today, but not if the two brokers that join count."""
    found = columns(spec_of(no_racks(1, 2, 3), ROWS, changes=Changes(add_brokers=(Broker(4), Broker(5)))))
    assert (0, 4, 4) == found["replica_spread"]
    assert 0 == found["replicas_above_share"][0]
    assert pytest.approx(66.67) == found["replicas_above_share"][1]


def test_shares_say_by_how_many_brokers() -> None:
    """A share's meaning states the numbers of brokers only if they differ."""
    for changes, said in ((Changes(add_brokers=(Broker(4),)), True), (Changes(), False)):
        spec = spec_of(no_racks(1, 2, 3), ROWS, changes=changes)
        asked = build(spec)
        rows = terms(spec, asked, today(asked), asked.leaders)
        row = next(each for each in rows if each.name == "leaders_above_share")
        assert said == row.meaning.endswith("; shares are by 3 brokers today, else by the 4 afterwards")


def test_a_removal_that_has_not_happened_breaks_no_rule() -> None:
    """Partitions on a broker that should be removed are left to change, but break no rule."""
    found = columns(spec_of(RACKS, {"x": [(1, 2), (2, 3), (3, 1)]}, changes=Changes(remove_brokers=(3,))))
    assert (2, 2, 2) == found["left_to_change"]
    assert (0, 0, 0) == found["rack_spread_broken"]


@pytest.mark.parametrize("rebalance", ["all", "leaders", "racks", "none"])
def test_the_rack_rule_is_judged_alike_in_every_mode(rebalance: Rebalance) -> None:
    """x-1 is in one rack, and so is excluded y-0: the rack rule counts both, today and later, whatever may move."""
    racks = {1: "a", 2: "a", 3: "b"}
    rows = {"x": [(1, 3), (1, 2)], "y": [(2, 1)]}
    changes = Changes(rebalance=rebalance)
    found = columns(spec_of(racks, rows, changes=changes, topics=TopicFilter(exclude=("y",))))
    assert (2, 2, 2) == found["rack_spread_broken"]
    assert ((1, 1, 1) if rebalance in ("all", "racks") else (0, 0, 0)) == found["left_to_change"]


@pytest.mark.parametrize("rebalance", ["all", "leaders", "racks", "none"])
def test_a_new_rack_breaks_the_rule_only_once_it_is_there(rebalance: Rebalance) -> None:
    """Three replicas in two racks are right today; once a third rack is there, they break the rule."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    changes = Changes(add_brokers=(Broker(5, "c"),), rebalance=rebalance)
    found = columns(spec_of(racks, {"x": [(1, 2, 3), (3, 4, 1)]}, changes=changes))
    assert (0, 2, 2) == found["rack_spread_broken"]


def test_racks_of_today_are_those_of_today() -> None:
    """`set_racks` separates two brokers: today one rack's failure takes all of x-0, afterwards none does."""
    changes = Changes(set_racks=((2, "b"),))
    found = columns(spec_of({1: "a", 2: "a"}, {"x": [(1, 2)]}, changes=changes))
    assert (1, 0, 0) == found["on_one_rack"] == found["rack_offline"]


def test_what_is_unknown_is_not_zero() -> None:
    """Bytes are unknown without sizes, and terms of racks are unknown without racks; they aren't 0."""
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)]}, sizes=0)
    found = columns(replace(spec, cluster=replace(spec.cluster, sizes_known=False)))
    unknown = ("bytes_moved", "cross_rack_bytes", "busiest_broker", "on_one_rack", "rack_offline", "rack_spread_broken")
    assert {(None, None, None)} == {found[name] for name in unknown}
    assert not {"peak_disk", "bytes_above_share"} & found.keys()
    assert (0, 0, 0) == found["replicas_moved"]


def test_shares_are_of_everything_whoever_holds_it() -> None:
    """Shares count all replicas: if a leaving broker 2 keeps some, the others aren't further above their shares."""
    spec = spec_of(no_racks(1, 2, 3), {"x": [(1,), (2,), (2,), (3,)]}, changes=Changes(remove_brokers=(2,)))
    found = columns(spec)
    assert (50, 0, 0) == found["replicas_above_share"] == found["leaders_above_share"]


def test_partitions_that_wait_are_counted_once_each() -> None:
    """A partition that breaks several rules counts once; partitions that wait from an earlier plan are added."""
    changes = Changes(remove_brokers=(3,), add_brokers=(Broker(4),))
    spec = spec_of(no_racks(1, 2, 3), {"x": [(1, 3), (2, 1)]}, changes=changes, balance=balance_of(1, 1, 1))
    asked = build(spec)
    assert 1 == left_to_change(asked, today(asked))
    rows = {row.name: row for row in terms(spec, asked, today(asked), asked.leaders, waiting=5)}
    left = rows["left_to_change"]
    assert (6, 6, 6) == (left.today, left.if_nothing_moves, left.plan)


def test_replicas_out_of_sync_take_nothing_over_today() -> None:
    """Broker 2 isn't in sync with x-0, so broker 1's failure takes x-0 offline today, but not once all are in sync."""
    spec = spec_of(RACKS, {"x": [(1, 2), (2, 3)]}, changes=Changes(), config={"x": (("min.insync.replicas", "2"),)})
    found = columns(in_sync(spec, (1,), (2, 3)))
    assert [(1, 0, 0)] * 2 == [found["broker_offline"], found["rack_offline"]]
    # x-0 refuses writes already today.
    assert [(1, 2, 2)] * 2 == [found["broker_refused"], found["rack_refused"]]


def test_replicas_out_of_sync_take_nothing_over_later_if_nothing_is_applied() -> None:
    """If the plan changes nothing, apply.yml waits for no replica, so each column has today's failures."""
    spec = in_sync(spec_of(RACKS, {"x": [(1, 2), (2, 3)]}, changes=Changes()), (1,), (2, 3))
    found = columns(spec, applied=False)
    assert [(1, 1, 1)] * 4 == [found[f"{of}_{what}"] for of in ("broker", "rack") for what in ("offline", "refused")]


def test_replicas_out_of_sync_on_brokers_that_leave_take_nothing_over_later() -> None:
    """apply.yml doesn't wait for replicas on brokers that leave, and a first step may leave some there."""
    spec = in_sync(spec_of(RACKS, {"x": [(1, 2), (2, 3)]}, changes=Changes(remove_brokers=(2,))), (1,), (3,))
    assert (1, 1, 1) == columns(spec)["broker_offline"]


def test_a_limit_on_failures_is_not_kept_by_replicas_out_of_sync() -> None:
    """A plan that changes nothing is refused if today's failures cross a limit, and it says so about today."""
    changes, limits = Changes(rebalance="none"), SpecLimits(broker_offline=0)
    spec = in_sync(spec_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3)]}, changes=changes, limits=limits), (1,), (2, 3))
    with pytest.raises(RefusedPlanError) as refused:
        plan_documents.planned(
            spec, build(spec), run(build(spec), candidates(build(spec), replace(spec.sweep, candidates=20)))
        )
    plan = refused.value.plan
    assert ("limits.broker_offline", 0, 1) == (plan.limits[0].key, plan.limits[0].limit, plan.limits[0].value)
    told = "Today, if the worst broker fails: 1 partition offline, 1 refusing acks=all writes."
    assert [told] == list(verdict.failures(plan))


def test_racks_that_the_change_sets_are_racks() -> None:
    """If no broker has a rack today, a limit on racks is judged by the racks that `set_racks` gives."""
    changes, limits = Changes(set_racks=((1, "a"), (2, "b"), (3, "c"))), SpecLimits(rack_offline=0)
    spec = spec_of(no_racks(1, 2, 3), {"t": [(1, 2), (2, 3)]}, changes=changes, limits=limits)
    problem = build(spec)
    result = run(problem, candidates(problem, replace(spec.sweep, candidates=20)))
    (row,) = plan_documents.planned(spec, problem, result)["limits"]
    assert ("limits.rack_offline", 0, 0) == (row["key"], row["limit"], row["value"])

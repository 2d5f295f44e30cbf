"""A budget: its ladder of balances, the check of its limits, and the steps of a change that exceeds it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from budget_plans import carried_out, planned
from clusters import balance_of, no_racks, spec_of, specs
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from plan_documents import typed
from properties import examples

from planner.model.balance import NO_TOLERANCE, Balance, Tolerance
from planner.model.build_problem import build, today
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow, SpecLimits
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.file_reading import resource
from planner.model.spec import Budget, Changes, Spec, Sweep
from planner.scoring import independent_check
from planner.scoring.missed_targets import relaxed
from planner.scoring.score import ScoringBasis, score
from planner.scoring.windows import windows
from planner.sweep import candidates
from planner.sweep.budget_steps import LEVELS, TERMS, TRIED, first_step, ladder, within
from planner.sweep.candidates import STRATEGIES, Candidate
from planner.sweep.choice import rule_of

VALIDATOR = Draft202012Validator(json.loads(resource("schemas", "plan.schema.json").read_text(encoding="utf-8")))
DRAIN = Changes(remove_brokers=(1, 2))
# Broker 1 has 90 bytes, broker 2 has 30.
ROWS = {"a": [(1,), (1,), (1,), (2,), (2,), (3,), (4,)]}
SIZES = {"a": [20, 50, 20, 10, 20, 9, 9]}
SPENT = {"bytes_moved": 100, "replicas_moved": 3, "leaders_changed": 2}


def test_a_budget_is_asked_for_by_any_of_its_terms() -> None:
    """A budget without terms is none; a term of zero is one."""
    none, zero = (rule_of(spec(budget)) for budget in (Budget(), Budget(replicas_moved=0)))
    assert ("asked", "within_budget") == (none.rule, zero.rule)


def test_within_is_up_to_and_with_the_limit() -> None:
    """Every limited term counts, and a plan exactly at the limit is within the budget."""
    assert within(Budget(bytes_moved=100, leaders_changed=2), SPENT)
    assert not within(Budget(bytes_moved=99), SPENT)
    assert not within(Budget(bytes_moved=100, replicas_moved=2), SPENT)


def rungs(budget: Budget) -> tuple[Balance, ...]:
    """The ladder of a cluster with an empty broker that needs 42 bytes."""
    return ladder(build(replace(crowding(budget), balance=Balance(disk=Tolerance("percent", 10)))))


def test_ladder_begins_with_what_is_asked_for_and_with_nothing() -> None:
    """First come the YAML's balance and the one without windows, which fits if anything does; few are tried, once."""
    steps = rungs(Budget(bytes_moved=8))
    assert (Balance(disk=Tolerance("percent", 10)), Balance(*[NO_TOLERANCE] * 7)) == steps[:2]
    assert len(set(steps)) == len(steps) <= 2 + 4 * (TRIED + 1)


def test_ladder_never_tightens_and_asks_for_nothing_new() -> None:
    """Percentages only become larger, and no target is added; leaders stay even unless there are no windows at all."""
    steps = rungs(Budget(bytes_moved=8))
    assert [steps[1]] == [step for step in steps if step.leaders != Balance().leaders]
    assert {step.disk for step in steps if step.disk.kind != "part"} <= {
        NO_TOLERANCE,
        *(Tolerance("percent", level) for level in (10, *LEVELS) if level >= 10),
    }
    assert {Tolerance("percent", 10)} == {step.disk.goal for step in steps if step.disk.kind == "part"}
    assert {NO_TOLERANCE} == {step.network_in for step in steps}


def test_ladder_has_nothing_that_the_budget_cannot_pay_for() -> None:
    """With 8 of the 42 bytes that the empty broker lacks, it goes at most 18.4 %, the next part below 8/42."""
    asked_for, _, *steps = rungs(Budget(bytes_moved=8))
    assert {NO_TOLERANCE} == {step.topic_replicas for step in steps}
    assert Tolerance("percent", 10) == asked_for.disk
    assert 18.4 == max(step.disk.value for step in steps if step.disk.kind == "part")
    assert 83.7 == min(step.disk.value for step in steps if step.disk.kind == "percent")


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (Budget(bytes_moved=8), {"replicas", "leaders"}),
        (Budget(replicas_moved=1), {"leaders"}),
        (Budget(leaders_changed=1), {"replicas", "disk"}),
        (Budget(bytes_moved=8, leaders_changed=1), {"replicas"}),
    ],
)
def test_ladder_loosens_first_what_costs(budget, kept) -> None:
    """The ladder first loosens what the budget's terms pay for; other targets stay as asked for."""
    wanted, _, first, *_ = rungs(budget)
    for window in ("replicas", "leaders", "disk"):
        assert (window in kept) == (getattr(wanted, window) == getattr(first, window)), window


def crowding(budget: Budget) -> Spec:
    """Broker 4 is new and empty; three others have six partitions of 10 bytes and a small one each."""
    rows = {"a": [(1,)] * 6 + [(2,)] * 6 + [(3,)] * 6, "b": [(1,), (2,), (3,)]}
    sizes = {"a": [10] * 18, "b": [1, 2, 3]}
    balance = Balance(disk=Tolerance("percent", 10))
    return spec_of(no_racks(1, 2, 3, 4), rows, sizes=sizes, balance=balance, budget=budget, sweep=Sweep(130))


def test_a_part_of_the_way_lets_each_broker_stay_outside_by_the_rest() -> None:
    """An empty broker needs 41.85 of its share of 46.5: a quarter of the way is 10.5; others may keep the rest."""
    problem = build(crowding(Budget(bytes_moved=8)))
    goal = windows(problem, problem.balance)
    part = windows(problem, replace(problem.balance, disk=Tolerance("part", 25, problem.balance.disk)))
    assert [[42, 42, 42, 11], [58, 59, 60, 51]] == np.asarray(part.disk).tolist()
    assert goal.replicas.tolist() == part.replicas.tolist()
    assert Tolerance.parse("25% of the way to 10%") == Tolerance("part", 25, problem.balance.disk)


@pytest.mark.parametrize(("most", "copied"), [(8, 6), pytest.param(16, 16, marks=pytest.mark.slow), (30, 30)])
def test_a_small_budget_is_used_where_a_broker_is_empty(most: int, copied: int) -> None:
    """The ladder's parts of the way use small budgets: windows around the shares alone would use 0, 12 and 26 bytes."""
    asked = replace(crowding(Budget(bytes_moved=most)), limits=SpecLimits(gap_ppm=1_000_000))
    assert copied == planned(asked)["budget"]["spent"]["bytes_moved"]


def spec(budget: Budget, changes: Changes = DRAIN, rows: Any = None, **rest: Any) -> Spec:
    """A spec in which, by default, two of four brokers leave."""
    fields = {"sizes": SIZES, "balance": balance_of("none", "none", "none"), "sweep": Sweep(30), **rest}
    return spec_of(no_racks(1, 2, 3, 4), rows or ROWS, changes=changes, budget=budget, **fields)


def waiting(budget: Budget, **rest: Any) -> list[int]:
    """The numbers of the partitions that wait."""
    step = first_step(build(spec(budget, **rest)))
    return [] if step.deferred is None else np.flatnonzero(step.deferred).tolist()


def test_enough_is_enough() -> None:
    """If there is no budget, or it pays for everything, or for nothing at all, the problem stays unchanged."""
    for budget in (Budget(), Budget(bytes_moved=120), Budget(replicas_moved=5), Budget(bytes_moved=9)):
        problem = build(spec(budget))
        assert problem is first_step(problem)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(bytes_moved=119), [2]),  # broker 2, then 50 and 20 of broker 1
        (Budget(bytes_moved=30), [0, 1, 2]),  # broker 2 alone
        (Budget(bytes_moved=29), [0, 1, 2, 3]),  # neither broker: the largest of broker 2
        (Budget(bytes_moved=79), [1]),  # 49 are left for broker 1: its 50 don't fit, both of its 20 do
        (Budget(replicas_moved=3), [0, 2]),  # broker 2, and the largest of broker 1
        (Budget(bytes_moved=100, replicas_moved=2), [0, 1, 2]),
        (Budget(bytes_moved=10), [0, 1, 2, 4]),
        (Budget(leaders_changed=2), [0, 1, 2]),
    ],
)
def test_brokers_are_emptied_one_by_one(budget: Budget, expected: list[int]) -> None:
    """Brokers are emptied one after the other, the cheapest first; then the largest partitions that fit are moved."""
    assert expected == waiting(budget)


def test_a_broker_that_is_too_full_may_stay_so_until_a_later_step() -> None:
    """Broker 1 holds 40 bytes of at most 39; emptying broker 3 takes a copy more for that, which isn't paid for yet."""
    changes, budget = Changes(add_brokers=(Broker(4),), remove_brokers=(3,)), Budget(replicas_moved=3)
    spec = spec_of(no_racks(1, 2, 3), {"t": [(1, 3)] * 4}, sizes=10, changes=changes, budget=budget, sweep=Sweep(30))
    capped = tuple(replace(each, max_disk_bytes=39 if each.id == 1 else None) for each in spec.cluster.brokers)
    plan = planned(replace(spec, cluster=replace(spec.cluster, brokers=capped)))

    assert not plan["complete"]
    assert 3 == sum(len(set(row["replicas"]) - set(row["replicas_before"])) for row in plan["partitions"])


def test_a_slot_of_which_a_partition_waits_is_led_together_later() -> None:
    """Two slots of partitions have no common broker: the budget pays for one, and the other isn't led together yet."""
    lists = {"a": [(1, 2), (1, 2)], "b": [(3, 4), (3, 4)]}
    spec = spec_of(no_racks(1, 2, 3, 4), lists, sizes=10, together=(("a", "b"),), budget=Budget(bytes_moved=10))
    spec = replace(spec, changes=Changes(rebalance="none"))
    whole, step = build(spec), first_step(build(spec))
    assert whole.together is not None
    assert step.together is not None
    assert len(set(whole.together.tolist())) == 2
    assert len(set(step.together.tolist())) == 2
    assert 1 == len(set(step.together.tolist()) - {-1})


# Each broker is the preferred leader of one partition.
LED = {"t": [(1, 2), (2, 3), (3, 1)]}


def led_by(budget: Budget, *leaders: int) -> Spec:
    """Three brokers, and partitions with these leaders, not all of them preferred."""
    return spec_of(no_racks(1, 2, 3), LED, leaders={"t": leaders}, sizes=10, budget=budget, sweep=Sweep(30))


@pytest.mark.parametrize(
    ("most", "leaders", "frozen"),
    [(0, (2, 2, 3), [0]), (0, (2, 3, 3), [0, 1]), (1, (2, 3, 3), [1]), (2, (2, 3, 3), [])],
)
def test_a_leader_that_the_budget_does_not_pay_for_stays(
    most: int, leaders: tuple[int, ...], frozen: list[int]
) -> None:
    """Leaders that the budget doesn't pay for stay; nothing has to change, so nothing waits."""
    asked = led_by(Budget(leaders_changed=most), *leaders)
    step, document = first_step(build(asked)), planned(asked)

    assert frozen == np.flatnonzero(~step.movable).tolist()
    assert step.deferred is None or not step.deferred.any()
    assert most >= document["budget"]["spent"]["leaders_changed"]
    assert 0 == document["budget"]["undone"]["partitions"]
    assert not any("first step" in warning for warning in document["warnings"])


def test_what_must_change_is_paid_for_before_other_leaders() -> None:
    """The only election goes to the topic with a new factor, although the other one is cheaper, and doesn't wait."""
    rows, leaders = {"a": [(1, 2)], "b": [(2, 3)]}, {"a": [2], "b": [3]}
    raised = Changes(set_replication_factor=(ReplicationFactorRow("b", 3),))
    rest = {"leaders": leaders, "sizes": 10, "changes": raised}
    step = first_step(build(spec_of(no_racks(1, 2, 3), rows, budget=Budget(leaders_changed=1), **rest)))

    assert ([False, True], [False, False]) == (step.movable.tolist(), np.asarray(step.deferred).tolist())
    unpaid = build(spec_of(no_racks(1, 2, 3), rows, budget=Budget(bytes_moved=9, leaders_changed=1), **rest))
    assert unpaid is first_step(unpaid)


def test_what_the_rack_rule_moves_must_change_too() -> None:
    """With `rebalance: all`, partitions that break the rack rule must change too: one of two waits for the budget."""
    racks, rows = {1: "a", 2: "a", 3: "b"}, {"t": [(1, 2), (1, 2)]}
    step = first_step(build(spec_of(racks, rows, sizes=10, budget=Budget(bytes_moved=10))))

    assert 1 == np.count_nonzero(step.deferred)


def test_what_waits_stays_as_it_is() -> None:
    """A partition that waits keeps replicas, leader and factor; the check lets it stay on a leaving broker."""
    raised = Changes(remove_brokers=(1,), set_replication_factor=(ReplicationFactorRow("a", 2),))
    problem = first_step(build(spec(Budget(bytes_moved=25), raised)))
    assert problem.deferred is not None
    assert [1] * 7 == np.where(problem.deferred, problem.replication_factors, 1).tolist()
    assert not (problem.movable | problem.forced)[problem.deferred].any()
    placed = STRATEGIES["optimum"](problem, Candidate("optimum", balance=problem.balance)).assignment
    assert () == independent_check.check(problem, placed)
    moved = placed.copy()
    moved[problem.deferred, 0] = 1
    assert {"partition that stays"} == {each.rule for each in independent_check.check(problem, moved)}


def test_windows_that_a_step_leaves_open_are_named() -> None:
    """Windows that a step misses are named, with the budget as the reason, not a filter."""
    step = first_step(build(spec(Budget(bytes_moved=30), balance=balance_of("1%", "none", "none"))))
    placed = STRATEGIES["optimum"](step, Candidate("optimum", balance=step.balance)).assignment
    assert [("replicas", "partitions that the budget leaves for a later step keep their replicas")] == [
        (each.window, each.why) for each in relaxed(ScoringBasis.of(step), placed)
    ]
    assert not any("topic filter" in warning for warning in planned(spec(Budget(bytes_moved=79)))["warnings"])


def test_a_topic_of_unlike_factors_has_none() -> None:
    """A topic with different factors, today or after a first step, has null in the plan, and no Terraform variable."""
    rows = {"stays": [(1,), (1, 2)], "steps": [(1,), (2,), (3,), (1,)], "whole": [(2,), (3,)]}
    raised = Changes(set_replication_factor=tuple(ReplicationFactorRow(name, 2) for name in ("steps", "whole")))
    budget = Budget(replicas_moved=4)
    document = planned(spec_of(no_racks(1, 2, 3), rows, changes=raised, budget=budget, sweep=Sweep(30)))

    factors = {
        each["name"]: (each["replication_factor_before"], each["replication_factor"]) for each in document["topics"]
    }
    assert {"stays": ([1, 2], None), "steps": ([1], None), "whole": ([1], 2)} == factors
    assert ["whole"] == list(typed(document).declared_topics)
    assert [] == [error.message for error in VALIDATOR.iter_errors(document)]


def test_topics_follow_brokers() -> None:
    """If no broker leaves, topics are done one by one, the cheapest first; then the largest partitions that fit."""
    rows = {"a": [(1,), (2,)], "b": [(3,), (4,), (1,)]}
    sizes = {"a": [30, 40], "b": [20, 10, 15]}
    raised = Changes(set_replication_factor=(ReplicationFactorRow("*", 2),))
    found = [
        waiting(Budget(bytes_moved=most), changes=raised, rows=rows, sizes=sizes) for most in (115, 114, 85, 60, 44, 9)
    ]
    assert [[], [0], [0], [0, 1], [0, 1, 3], []] == found


def test_the_plan_says_what_waits_and_what_it_costs() -> None:
    """49 bytes are left after broker 2: both small partitions of broker 1 move; the large one waits and is named."""
    document = planned(spec(Budget(bytes_moved=79)))
    undone = {"windows": [], "partitions": 1, "brokers": [1], "bytes_moved": 50, "replicas_moved": 1}
    assert {**undone, "leaders_changed": 1} == document["budget"]["undone"]
    assert [] == [error.message for error in VALIDATOR.iter_errors(document)]
    assert 70 <= document["budget"]["spent"]["bytes_moved"] <= 79
    assert (
        "FIRST STEP ONLY (budget: at most 79 B copied). Broker 1 is NOT empty afterwards (1 replica, 50 B); "
        "left: 1 partition to change, 50 B to copy (1 replica); at least 1 more step."
    ) == document["headline"]
    assert document["complete"] is False
    assert [0, 1] == [broker["after"]["replicas"] for broker in document["brokers"] if broker["id"] in (2, 1)][::-1]


def test_a_budget_that_pays_for_no_partition_is_refused() -> None:
    """A budget too small for any partition is refused with exit code 3 and the bytes that the changes take."""
    with pytest.raises(UnsafePlanError, match="the changes take at least 120 B; the budget allows 9 B"):
        planned(spec(Budget(bytes_moved=9)))


def test_steps_reach_the_end() -> None:
    """Planning again after each step finishes the change in 2 or 3 steps, each within the budget."""
    asked, spent = spec(Budget(bytes_moved=60)), list[int]()
    while True:
        document = planned(asked)
        if not document["partitions"]:
            break
        spent.append(document["budget"]["spent"]["bytes_moved"])
        asked = carried_out(asked, document)
    assert {0} == {part.replicas[0] in (1, 2) for topic in asked.cluster.topics for part in topic.partitions}
    assert all(0 < each <= 60 for each in spent)
    assert 2 <= len(spent) <= 3


def test_on_the_largest_clusters_too_something_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a cluster is worth no solved plans, the ladder's last balance is tried, and its plan fits the budget."""
    monkeypatch.setattr(candidates, "_SOLVED_PLACEMENTS", 0)
    asked = replace(spec(Budget(bytes_moved=30)), balance=balance_of(1, 1, 1))
    assert 30 >= planned(asked)["budget"]["spent"]["bytes_moved"] > 0


def budgets() -> st.SearchStrategy[Budget]:
    """Budgets of one or two terms, in sizes that tiny clusters move."""
    amount = st.sampled_from((None, None, 1, 3, 7, 12))
    return st.builds(Budget, amount, amount, st.none())


@examples(30)
@given(specs(rebalance=("all", "all", "leaders", "none")), budgets())
def test_a_step_fits_its_budget(whole: Spec, budget: Budget) -> None:
    """As uneven as may be, what doesn't wait is done within the budget; what waits stays, whatever the strategy."""
    asked = build(replace(whole, budget=budget))
    step = first_step(asked)
    assume(step.deferred is not None)
    placed = STRATEGIES["optimum"](step, Candidate("optimum", balance=balance_of(*["none"] * 7))).assignment
    assert () == independent_check.check(step, placed)
    scores = score(ScoringBasis.of(step), placed)
    assert within(budget, {term: int(getattr(scores, term)[0]) for term in TERMS})
    for name in STRATEGIES:
        with suppress(InfeasibleError):
            kept = STRATEGIES[name](step, Candidate(name, 1, balance=step.balance)).assignment
            assert today(step)[step.deferred].tolist() == kept[step.deferred].tolist(), name


@examples(12)
@given(specs(rebalance=("all", "leaders", "none")), budgets())
def test_every_step_does_something(whole: Spec, budget: Budget) -> None:
    """What waits is less than what must change, and everything that costs nothing is done."""
    asked = build(replace(whole, budget=budget))
    step = first_step(asked)
    assume(step.deferred is not None)
    nobody = np.zeros(asked.rows, dtype=bool)
    waits = nobody if step.deferred is None else step.deferred
    placed = STRATEGIES["optimum"](step, Candidate("optimum", balance=balance_of(*["none"] * 7))).assignment
    assert (placed != today(step)).any()
    assert not (waits & ~asked.movable).any()


def test_one_broker_may_take_part_in_two_groups() -> None:
    """A partition on two brokers that leave is paid for once, with the first of them."""
    rows, sizes = {"a": [(1, 2), (1, 3), (2, 3), (2, 3)]}, {"a": [10, 5, 7, 8]}
    changes = Changes(remove_brokers=(1, 2), add_brokers=(Broker(5),))
    # Broker 1 needs 10 twice and 5; then broker 2 needs only 7 and 8.
    assert [2] == waiting(Budget(bytes_moved=39), changes=changes, rows=rows, sizes=sizes)
    assert [2, 3] == waiting(Budget(bytes_moved=25), changes=changes, rows=rows, sizes=sizes)

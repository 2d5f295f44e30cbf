"""The independent check: every rule by hand, and faults that it must find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import assignment_of, problem_of, problems, scrambled
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import today
from planner.model.document_fields import ReplicationFactorRow
from planner.model.problem import UNCAPPED, IntArray, Problem
from planner.model.spec import Changes, Rebalance, TopicFilter
from planner.scoring.independent_check import Violation, broken_rules, check
from planner.strategies.optimum import solve

RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
TODAY = {"orders": [(1, 3), (3, 5)], "other": [(2, 4)]}
REMOVE = Changes(remove_brokers=(2,))
STAYING = "[1, 3, 4, 5]"
STAY = Changes(rebalance="none")
FEWER = Changes(set_replication_factor=(ReplicationFactorRow("orders", 1),))
RACK_RULE = "allowed: spread over racks as evenly as the brokers let it"


@pytest.mark.parametrize(
    ("changes", "rows", "expected"),
    [
        (Changes(), [(1, 1), (3, 5), (2, 4)], ["orders-0: no broker twice: replicas [1, 1]; allowed: each broker once",
                                               f"orders-0: rack spread: replicas [1, 1]; {RACK_RULE}"]),
        (Changes(), [(1, 3), (3,), (2, 4)], ["orders-1: replication factor: replicas [3]; allowed: exactly 2 replicas",
                                            "orders-1: min.insync.replicas: replicas [3]; allowed: at least "
                                            "min.insync.replicas = 2 replicas"]),
        (REMOVE, [(1, 3), (3, 5), (2, 4)],
         [f"other-0: live brokers: replicas [2, 4]; allowed: brokers that stay, {STAYING}"]),
        (Changes(), [(1, 2), (3, 5), (2, 4)], [f"orders-0: rack spread: replicas [1, 2]; {RACK_RULE}"]),
        (STAY, [(1, 3), (5, 3), (2, 4)],
         ["orders-1: unforced move: replicas [5, 3]; allowed: today's [3, 5] (changes.rebalance: none)"]),
        (Changes(rebalance="leaders"), [(3, 1), (3, 1), (2, 4)],
         ["orders-1: unforced move: replicas [3, 1]; allowed: today's [3, 5] (changes.rebalance: leaders)"]),
        (FEWER, [(1,), (3,), (2, 4)],
         ["orders-0: min.insync.replicas: replicas [1]; allowed: at least min.insync.replicas = 2 replicas",
          "orders-1: min.insync.replicas: replicas [3]; allowed: at least min.insync.replicas = 2 replicas"]),
    ],
)  # fmt: skip
def test_message_of_each_rule(changes: Changes, rows: list[tuple[int, ...]], expected: list[str]) -> None:
    """A message says what is broken, where, the value found and what is allowed; there are no other messages."""
    problem = problem_of(RACKS, TODAY, changes=changes, config={"orders": (("min.insync.replicas", "2"),)})
    assert expected == [str(violation) for violation in check(problem, assignment_of(problem, rows))]


def test_the_message_of_topics_that_are_apart() -> None:
    """It names the topic, the partition and its replicas."""
    problem = problem_of(RACKS, {"orders": [(1, 3)], "other": [(2, 4), (5, 3)]})
    problem = replace(problem, apart=np.array([[0, 1]]), apart_by=("broker",))
    kept = "allowed: no broker with topics that apart parts"
    found = [str(each) for each in check(problem, today(problem))]
    assert [f"orders-0: apart: replicas [1, 3]; {kept}", f"other-1: apart: replicas [5, 3]; {kept}"] == found


def test_excluded_topics_stay() -> None:
    """A topic that the filter keeps may not even change its order."""
    problem = problem_of(RACKS, TODAY, topics=TopicFilter(exclude=("oth*",)))
    found = check(problem, assignment_of(problem, [(1, 3), (3, 5), (4, 2)]))
    expected = "replicas [4, 2]; allowed: today's [2, 4] (topics.include, topics.exclude, topics.on_brokers)"
    assert (Violation("partition that stays", "other", 0, expected),) == found


def test_a_partition_without_a_leader_stays() -> None:
    """No filter keeps it where it is: there is nothing to copy from."""
    problem = problem_of(RACKS, TODAY, leaders={"other": [None]})
    (found,) = check(problem, assignment_of(problem, [(1, 3), (3, 5), (1, 4)]))
    assert "other-0: partition that stays: replicas [1, 4]; allowed: today's [2, 4] (no leader)" == str(found)


def test_excluded_topics_are_not_blamed_for_todays_racks() -> None:
    """A topic that may not move is no violation on one rack, because no plan could change that."""
    problem = problem_of(RACKS, {"kept": [(1, 2)], "t": [(1, 3)]}, topics=TopicFilter(exclude=("kept",)))
    assert () == check(problem, today(problem))


@pytest.mark.parametrize("rebalance", ["leaders", "none"])
def test_uneven_racks_of_today_are_left_alone(rebalance: Rebalance) -> None:
    """If only forced moves are allowed, a bad spread of today is no violation; with `all` it is one."""
    lone = {"t": [(1, 2)]}
    kept = problem_of(RACKS, lone, changes=Changes(rebalance=rebalance))
    assert () == check(kept, today(kept))
    free = problem_of(RACKS, lone)
    assert ["rack spread"] == [violation.rule for violation in check(free, today(free))]


def test_racks_are_repaired_where_that_is_asked_for() -> None:
    """With `rebalance: racks` a bad spread of today is a violation, even if nothing was marked as forced."""
    problem = problem_of(RACKS, {"t": [(1, 2), (1, 3)]}, changes=Changes(rebalance="racks"))
    misled = replace(problem, forced=np.zeros(2, dtype=bool))
    assert ["rack spread"] == [violation.rule for violation in check(misled, today(misled))]
    assert ["unforced move"] == [each.rule for each in check(problem, np.array([[0, 2], [1, 2]], dtype=np.int32))]


def test_brokers_that_do_not_exist() -> None:
    """An unknown broker is named as it is, and not taken for another broker."""
    problem = problem_of(RACKS, TODAY)
    assignment = today(problem)
    assignment[0, 0] = 77
    found = check(problem, assignment)
    assert [("live brokers", "replicas [77, 3]; allowed: brokers that stay, [1, 2, 3, 4, 5]")] == [
        (violation.rule, violation.message) for violation in found if violation.rule == "live brokers"
    ]


def test_gaps_and_lost_rows() -> None:
    """A gap in a list breaks the replication factor; an assignment with a row missing is an error."""
    problem = problem_of(RACKS, TODAY)
    gap = today(problem)
    gap[0] = [-1, 0]
    assert "replication factor" in {violation.rule for violation in check(problem, gap)}
    with pytest.raises(AssertionError, match=r"shape \(2, 2\) for 3 partitions x 2"):
        check(problem, today(problem)[:2])


def test_the_first_few_of_each_rule() -> None:
    """Thousands of broken partitions give only as many lines as asked for."""
    problem = problem_of(RACKS, {"t": [(1, 2)] * 50})
    assert [5, 20, 50] == [len(check(problem, today(problem), at_most=most)) for most in (5, 20, 500)]


FAULTS = ("twice", "dropped", "extra", "leaving", "rack", "excluded")


def planted(problem: Problem, valid: IntArray, fault: str, row: int, rng: np.random.Generator) -> str | None:
    """Plants a fault in a row; returns the rule that it breaks, or None if this row can't have that fault."""
    factor = int(problem.replication_factors[row])
    slot = int(rng.integers(factor))
    free = np.setdiff1d(np.flatnonzero(problem.targets), valid[row])
    match fault:
        case "twice" if factor > 1:
            valid[row, slot] = valid[row, (slot + 1) % factor]
            return "no broker twice"
        case "dropped":
            valid[row, factor - 1] = -1
            return "replication factor"
        case "extra" if factor < problem.width and len(free):
            valid[row, factor] = free[0]
            return "replication factor"
        case "leaving" if not problem.targets.all():
            valid[row, slot] = np.flatnonzero(~problem.targets)[0]
            return "live brokers"
        case "excluded" if not problem.movable[row] and len(free):
            valid[row, slot] = free[0]
            return "partition that stays"
        case "rack" if problem.racks_matter and problem.movable[row]:
            racks = problem.broker_racks[valid[row, :factor]].tolist()
            fuller = [b for b in free.tolist() if b not in valid[row] and racks.count(problem.broker_racks[b]) > 0]
            lone = [at for at in range(factor) if racks.count(racks[at]) == 1]
            other = [(b, at) for b in fuller for at in lone if problem.broker_racks[b] != racks[at]]
            if other:
                valid[row, other[0][1]] = other[0][0]
                return "rack spread"
    return None


@examples(60)
@given(problems(), st.sampled_from(FAULTS), st.integers(0, 2**16), st.data())
def test_planted_faults_are_found(problem: Problem, fault: str, seed: int, data: st.DataObject) -> None:
    """A valid plan with one fault planted in one row is refused, for that rule, in that row."""
    assignment = solve(problem, problem.balance).assignment
    row = data.draw(st.integers(0, problem.rows - 1))
    rule = planted(problem, assignment, fault, row, np.random.default_rng(seed))
    assume(rule is not None)
    assert broken_rules(problem, assignment)[str(rule)][row]
    assert rule in {violation.rule for violation in check(problem, assignment)}


@examples(60)
@given(problems(rebalance=("leaders", "racks", "none")), st.integers(0, 2**16))
def test_scrambled_plans_are_refused_row_by_row(problem: Problem, seed: int) -> None:
    """Where only what must move may, each row that differs from today's for no reason is named."""
    assignment = scrambled(problem, seed)
    before = today(problem)
    stays = ~problem.forced
    sides = (
        (before, assignment)
        if problem.rebalance != "leaders"
        else (np.sort(before, axis=1), np.sort(assignment, axis=1))
    )
    expected = stays & (sides[0] != sides[1]).any(axis=1)
    assert expected.tolist() == broken_rules(problem, assignment)["unforced move"].tolist()


@pytest.mark.parametrize(("removed", "told"), [((), []), ((3,), ["broker 1 would have 2; allowed: at most 1"])])
def test_a_broker_in_no_isr_lifts_caps_on_leaders_only_if_it_stays(removed: tuple[int, ...], told: list[str]) -> None:
    """Broker 3 is in no ISR: if it stays, broker 1 may lead in its place; if it leaves, the cap on broker 1 holds."""
    problem = problem_of(RACKS, {"orders": [(1, 4), (3, 1)]}, changes=Changes(remove_brokers=removed))
    caps = np.full((2, 5), UNCAPPED)
    caps[1, 0] = 1
    problem = replace(problem, caps=caps, out_of_sync=problem.broker_ids == 3)
    found = check(problem, assignment_of(problem, [(1, 4), (1, 5)]))
    assert [each.message for each in found if each.rule == "max_leaders"] == told


def test_lists_shorter_than_asked_for_break_the_replication_factor() -> None:
    """Lists that are shorter than the factor asked for break it."""
    higher = Changes(set_replication_factor=(ReplicationFactorRow("other", 3),))
    problem = problem_of(RACKS, TODAY, changes=higher)

    assert [False, False, True] == broken_rules(problem, problem.replicas)["replication factor"].tolist()

"""The cost of single failures, as terms of every candidate's score, and plans that survive failures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clusters import balance_of, no_racks, problem_of, problems, scrambled, spec_of
from hypothesis import given
from hypothesis import strategies as st

from planner.execution import batch_costs_and_risks
from planner.execution.batch_cutting import Batch, split
from planner.execution.partition_changes import Step, replica_lists
from planner.inputs.spec.reading import load
from planner.model.cluster import PartitionChange, Reason, Topic
from planner.model.errors import SpecError
from planner.model.problem import Problem
from planner.model.spec import AIMS, BatchRules, Budget, Changes
from planner.scoring import failure_costs, score
from planner.scoring.score import ScoringBasis
from planner.strategies.kafka_classic import draws
from planner.sweep import kafka_classic_scores
from planner.sweep.budget_steps import first_step
from planner.sweep.candidates import STRATEGIES, Candidate
from planner.sweep.choice import rule_text
from planner.sweep.sweep_result import ranking

NAMES = ("broker_offline", "broker_refused", "rack_offline", "rack_refused")


def looked_at(problem: Problem, assignment) -> tuple[int, ...]:
    """The same terms, computed by looking at every partition for every failure."""
    brokers = range(len(problem.broker_ids))
    racks = [np.flatnonzero(problem.broker_racks == rack) for rack in range(len(problem.rack_names))]
    found = []
    for failures in ([[broker] for broker in brokers], racks):
        offline, refused = [0], [0]
        for failed in failures:
            rows = [[each for each in row if each >= 0] for row in assignment.tolist()]
            left = [len([each for each in row if each not in failed]) for row in rows]
            offline.append(sum(count == 0 for count in left))
            least = [min(m, len(row)) for m, row in zip(problem.min_insync.tolist(), rows, strict=True)]
            refused.append(sum(n < m for n, m in zip(left, least, strict=True)))
        found += [max(offline), max(refused)]
    return tuple(found)


@given(problems(), st.integers(0, 5), st.integers(1, 3))
def test_terms_are_those_of_looking_at_every_partition(problem, seed, least):
    """The worst broker's and rack's counts, for any assignment, be it to brokers that leave."""
    problem = replace(problem, min_insync=np.full(problem.rows, least))
    assignment = scrambled(problem, seed)
    scores = score.score(ScoringBasis.of(problem), assignment)

    assert looked_at(problem, assignment) == tuple(int(getattr(scores, name)[0]) for name in NAMES)


def test_more_in_sync_than_there_are_replicas_are_not_required() -> None:
    """With min.insync.replicas of 3, both replicas of t and the only one of u are enough; with one fewer, none is."""
    config = dict.fromkeys("tu", (("min.insync.replicas", "3"),))
    problem = problem_of({1: "a", 2: "b", 3: "c"}, {"t": [[1, 2], [2, 1]], "u": [[3]]}, config=config)
    scores = score.score(ScoringBasis.of(problem), problem.replicas)

    assert (1, 2, 1, 2) == tuple(int(getattr(scores, name)[0]) for name in NAMES)


def test_brokers_that_leave_fail_too() -> None:
    """Today broker 3 has six partitions alone; the step moves one of them, so its failure then takes five."""
    lists, sizes = {"t": [[1], [2], *[[3]] * 6]}, {"t": [1, 1, *[10] * 6]}
    requested = {"changes": Changes(remove_brokers=(3,)), "balance": balance_of("none", "none", "none")}
    problem = problem_of(no_racks(1, 2, 3), lists, sizes=sizes, budget=Budget(bytes_moved=12), **requested)
    step = first_step(problem)
    after = STRATEGIES["optimum"](step, Candidate("optimum", balance=step.balance)).assignment
    today, then = (score.score(ScoringBasis.of(step), each) for each in (problem.replicas, after))

    assert [(6, 6), (5, 5)] == [(each.broker_offline[0], each.broker_refused[0]) for each in (today, then)]


@st.composite
def moves(draw, count=1):
    """Racks of brokers, and changes of partitions between any lists of one to four replicas."""
    racks = dict(enumerate(draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=8))))
    lists = st.lists(st.sampled_from(sorted(racks)), min_size=1, max_size=4, unique=True).map(tuple)
    pairs = draw(st.lists(st.tuples(lists, lists), min_size=count, max_size=count))
    return racks, [
        PartitionChange(
            "t", at, before, after, leader_before=before[0], size_bytes=at + 1, reason=Reason.BALANCE_REPLICAS
        )
        for at, (before, after) in enumerate(pairs)
    ]


def alone(replicas, racks):
    """True if one rack has all the replicas."""
    return len({racks[broker] for broker in replicas}) == 1


@given(moves(), st.integers(1, 3))
def test_no_list_in_between_is_on_one_rack_where_neither_end_is(move, at_most):
    """Why the choice needs no look at batches: what survives a rack at both ends survives it on the way."""
    racks, (change,) = move
    between = [after for _, after in replica_lists(change, at_most, racks)]

    if not alone(change.before, racks) and not alone(change.after, racks):
        assert [] == [replicas for replicas in between if alone(replicas, racks)]


@given(moves(6), st.sampled_from([BatchRules(), BatchRules(moves_per_broker=1), BatchRules(bytes=4)]))
def test_no_batch_loses_more_than_today_and_the_end(move, rules):
    """At each batch only partitions of today's or the end's lists are lost, and in the first one all of today's."""
    racks, changes = move
    today = {each.partition for each in changes if alone(each.before, racks)}
    end = {each.partition for each in changes if alone(each.after, racks)}
    spec = spec_of(racks, {"t": [list(each.before) for each in changes]}, resilience="rack")
    _, during, after = batch_costs_and_risks._counts(spec, split(changes, rules, racks))

    assert len(end) == after
    assert all(len(today) <= lost for lost in during[:1])
    assert [] == [lost for lost in during if lost > len(today | end)]


def test_leaders_of_the_worst_rack():
    """The rack that leads the most partitions counts, whatever its number of brokers."""
    problem = problem_of({1: "a", 2: "a", 3: "b"}, {"t": [[1, 3], [2, 3], [3, 1]]})

    assert 2 == score.score(ScoringBasis.of(problem), problem.replicas).rack_leaders[0]
    assert (
        0
        == score.score(ScoringBasis.of(problem_of(no_racks(1, 2), {"t": [[1, 2]]})), np.array([[0, 1]])).rack_leaders[0]
    )


def test_tables_have_the_same_terms():
    """Candidates scored with tables have the same terms as candidates that are placed."""
    config = {"t": (("min.insync.replicas", "2"),)}
    lists = {"t": [[1, 2], [2, 3], [3, 4]], "u": [[1], [2]]}
    problem = problem_of({1: "a", 2: "b", 3: "a", 4: "b"}, lists, config=config)
    basis = ScoringBasis.of(problem)
    starts, shifts = draws(np.array([5, 6]), 2, 4)
    scores = kafka_classic_scores.by_tables(basis, starts, shifts)

    for at, seed in enumerate((5, 6)):
        assignment = STRATEGIES["kafka_classic"](problem, Candidate("kafka_classic", seed)).assignment
        assert looked_at(problem, assignment) == tuple(int(getattr(scores, name)[at]) for name in NAMES)


def test_what_is_to_be_survived_comes_before_the_balance():
    """With resilience.survive, the ranking and its words have the survivors before the balance."""
    assert ("violations", "unproven", "rack_offline", "rack_refused", "excess") == ranking(AIMS, "rack")[:5]
    assert ("violations", "unproven", "excess") == ranking(AIMS)[:3]
    assert "fewest partitions lost to one rack; least outside it, today" in rule_text(AIMS, "rack")
    assert failure_costs.Fragile.of(problem_of(no_racks(1, 2, 3), {"t": [[1, 2, 3]]})).width == 0


def test_a_batch_that_does_not_survive_is_warned_of():
    """The warning counts partitions in one rack: today, in each batch by old or new replicas, and after the plan."""
    spec = spec_of({1: "a", 2: "a", 3: "b", 4: "b"}, {"t": [[1, 2], [1, 3], [3, 4]]}, resilience="rack")
    steps = [Step("t", 0, (1, 2), (1, 3), 1, 1), Step("t", 1, (1, 3), (1, 2), 1, 1)]
    batches = [Batch(number, (step,), ()) for number, step in enumerate(steps, 1)]
    expected = (
        "resilience.survive: rack: partitions on one rack only, offline if it fails: 2 today, 2 in batch 1, "
        "2 after the plan"
    )

    assert [expected] == batch_costs_and_risks.warnings(spec, batches)
    assert [] == batch_costs_and_risks.warnings(replace(spec, resilience="none"), batches)
    assert [] == batch_costs_and_risks.warnings(replace(spec, resilience="broker"), batches)


def test_only_partitions_that_do_not_survive_are_warned_of():
    """If all partitions survive there is no warning; a plan without batches has one for a partition that doesn't."""
    spec = spec_of({1: "a", 2: "b"}, {"t": [[1, 2]]}, resilience="rack")

    assert [] == batch_costs_and_risks.warnings(spec, [])
    alone = replace(spec.cluster.topics[0].partitions[0], replicas=(1,))
    spec = replace(spec, cluster=replace(spec.cluster, topics=(Topic("t", (alone,)),)))
    assert "offline if it fails: 1 today, 1 after the plan" in batch_costs_and_risks.warnings(spec, [])[0]


YAML = """\
version: 1
cluster:
  name: small
  brokers: [{id: 1}, {id: 2}]
  topics: [{name: t, partitions: [{replicas: [1, 2]}]}]
resilience: {survive: %s}
"""


@pytest.mark.parametrize(
    ("survive", "message"),
    [
        ("rack", "resilience.survive: 'rack' can't be judged, no broker has a rack; allowed: racks, broker, or none"),
        ("zone", "resilience.survive: 'zone' isn't possible here; allowed: none, broker, rack"),
    ],
)
def test_what_cannot_be_survived(tmp_path, survive, message):
    """An error has the file's position, the key and what is allowed."""
    path = tmp_path / "spec.yaml"
    path.write_text(YAML % survive)

    with pytest.raises(SpecError) as error:
        load(path)
    assert f"{path}:6:14: {message}" == str(error.value)
    path.write_text(YAML % "broker")
    assert "broker" == load(path).resilience

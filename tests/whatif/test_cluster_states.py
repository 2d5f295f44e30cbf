"""Every partition at each stage of a plan if brokers fail: its leader, refused writes, and lost data."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from clusters import no_racks, spec_of, specs
from failure_studies import planned, rows_of
from hypothesis import given
from hypothesis import strategies as st
from plan_documents import row

from planner.model.build_problem import build
from planner.model.cluster import Partition, Topic
from planner.model.errors import StalePlanError
from planner.model.spec import BatchRules, Changes
from planner.plan.document.partition_types import BatchRow
from planner.whatif.cluster_states import FACTS, outcome, stages
from planner.whatif.failure_sets import BROKERS, RACKS, failed_slots, scenarios

MONOTONE = ("offline", "writes_refused", "lost", "lost_bytes")


@given(specs(rebalance=("all",)), st.data())
def test_more_failures_never_help(spec, data):
    """What is offline, refused or lost with some brokers is so with more of them."""
    problem, steps = planned(spec)
    brokers = data.draw(st.permutations(range(len(problem.broker_ids))))
    domains = scenarios(problem, BROKERS, 10, 0).domains
    for stage in stages(spec, problem, steps):
        before = None
        for count in range(len(brokers) + 1):
            facts = outcome(stage.first, failed_slots(stage.first.replicas, domains, brokers[:count])).facts
            here = facts[:, [FACTS.index(name) for name in MONOTONE]]
            assert before is None or (here >= before).all()
            before = here


@given(specs(rebalance=("all",)))
def test_brokers_that_hold_nothing_change_nothing(spec):
    """An empty broker's failure leaves everything as it is when nobody fails."""
    problem, steps = planned(spec)
    domains = scenarios(problem, BROKERS, 10, 0).domains
    for stage in stages(spec, problem, steps):
        nobody = outcome(stage.first, failed_slots(stage.first.replicas, domains, []))
        for broker in set(range(len(problem.broker_ids))) - set(stage.first.replicas.ravel().tolist()):
            alone = outcome(stage.first, failed_slots(stage.first.replicas, domains, [broker]))
            assert nobody.facts.tolist() == alone.facts.tolist()
            assert nobody.leaders.tolist() == alone.leaders.tolist()


@pytest.mark.slow
@given(specs(rebalance=("all",)))
def test_each_batch_lies_between_today_and_the_plan(spec):
    """A partition changed in one step is, while batches run, at worst as bad as before or after, at best as good."""
    problem, steps = planned(spec, BatchRules(moves_per_broker=2))
    first, *between, last = states if len(states := list(stages(spec, problem, steps))) > 1 else (*states, states[0])
    once = [True] * problem.rows
    seen: dict[tuple[str, int], int] = {}
    names = [problem.topic_names[topic] for topic in problem.topic_of.tolist()]
    for batch in steps:
        for step in batch.partitions:
            seen[step.key] = seen.get(step.key, 0) + 1
    once = [seen.get(key, 0) < 2 for key in zip(names, problem.partition_ids.tolist(), strict=True)]
    domains = scenarios(problem, BROKERS, 10, 0).domains
    columns = [FACTS.index("offline"), FACTS.index("lost")]
    for size in (1, 2):
        for failed in combinations(range(len(problem.broker_ids)), size):
            ends = [
                outcome(each.first, failed_slots(each.first.replicas, domains, failed)).facts for each in (first, last)
            ]
            least, most = np.minimum(*ends)[once][:, columns], np.maximum(*ends)[once][:, columns]
            for stage in between:
                for rows in (stage.first, stage.second):
                    facts = outcome(rows, failed_slots(rows.replicas, domains, failed)).facts[once][:, columns]
                    assert (least <= facts).all()
                    assert (facts <= most).all()


@given(specs(rebalance=("all",)), st.integers(1, 3))
def test_n_plus_1_replicas_survive_n_failures(spec, failing):
    """The seeds' statement: with N + 1 replicas in sync, any N brokers may fail and every partition has a leader."""
    whole = tuple(
        replace(t, partitions=tuple(replace(p, leader=p.replicas[0]) for p in t.partitions))
        for t in spec.cluster.topics
    )
    spec = replace(spec, cluster=replace(spec.cluster, topics=whole))
    problem, steps = planned(spec)
    domains = scenarios(problem, BROKERS, 10, 0).domains
    for stage in stages(spec, problem, steps):
        enough = stage.first.in_sync.sum(axis=1) > failing
        for failed in combinations(range(len(problem.broker_ids)), min(failing, len(problem.broker_ids))):
            facts = outcome(stage.first, failed_slots(stage.first.replicas, domains, failed)).facts
            assert 0 == facts[enough][:, [FACTS.index("offline"), FACTS.index("lost")]].sum()


def test_kafka_elects_the_first_live_in_sync_replica():
    """The next leader is the first live replica of the list that is in sync."""
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": [[1, 2, 3], [1, 2, 3], [2, 3, 4]]})
    topic = spec.cluster.topics[0]
    parts = (topic.partitions[0], replace(topic.partitions[1], isr=(1, 3)), topic.partitions[2])
    spec = replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=parts),)))
    row = rows_of(spec, build(spec), [], [BROKERS])[BROKERS, "broker 1", "today"]

    assert ([2, 3], [1, 1], 2) == (row["moved_to"], row["moved_leaders"], row["leaders_moved"])
    assert (2, 2) == (row["leaders_most"], row["leaders_most_broker"])


def test_a_plan_begins_with_replicas_in_sync():
    """A plan begins with all replicas in sync, because apply.yml waits for that, except those on brokers that leave."""
    parts = (Partition(0, (1, 2), 1, (1,)), Partition(1, (1, 3), 1, (1,)), Partition(2, (1, 2), None, ()))
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": []}, changes=Changes(remove_brokers=(3,)))
    spec = replace(spec, cluster=replace(spec.cluster, topics=(Topic("t", parts),)))
    step = {"topic": "t", "partition": 1, "replicas_before": [1, 3], "replicas": [1, 4]}
    today, batch, after = stages(spec, build(spec), [row(BatchRow, {"number": 1, "partitions": [step]})])

    wide = [each.first.in_sync.sum(axis=1).tolist() for each in (today, batch, after)]
    assert [[1, 1, 0], [2, 1, 0], [2, 2, 0]] == wide
    assert [[0, 1], [1]] == [each.rows.tolist() for each in (batch, after)]


@pytest.mark.parametrize(("unclean", "expected"), [("true", (0, 1, 1, 1)), ("false", (1, 0, 1, 0))])
def test_an_unclean_election_keeps_a_partition_online(unclean, expected):
    """If all replicas in sync fail, another replica leads only if the topic allows unclean elections."""
    config = {"t": (("min.insync.replicas", "2"), ("unclean.leader.election.enable", unclean))}
    spec = spec_of(no_racks(1, 2), {"t": [[1, 2]]}, config=config)
    topic = spec.cluster.topics[0]
    topic = replace(topic, partitions=(replace(topic.partitions[0], isr=(1,)),))
    spec = replace(spec, cluster=replace(spec.cluster, topics=(topic,)))
    row = rows_of(spec, build(spec), [], [BROKERS])[BROKERS, "broker 1", "today"]

    assert expected == tuple(row[name] for name in ("offline", "unclean", "writes_refused", "leaders_moved"))
    assert 0 == row["lost"]


def test_min_insync_and_last_replicas():
    """Below min.insync.replicas writes are refused; one live replica is at risk; without any, data is lost."""
    config = {"t": (("min.insync.replicas", "2"),)}
    spec = spec_of({1: "a", 2: "a", 3: "b"}, {"t": [[1, 2], [2, 3], [1, 2, 3]]}, sizes=7, config=config)
    rows = rows_of(spec, build(spec), [], [BROKERS, RACKS])
    names = ("offline", "writes_refused", "at_risk", "lost", "lost_bytes")

    assert (0, 2, 2, 0, 0) == tuple(rows[BROKERS, "broker 2", "today"][name] for name in names)
    assert (1, 3, 2, 1, 7) == tuple(rows[RACKS, "rack a", "today"][name] for name in names)


def test_more_in_sync_than_there_are_replicas_are_not_required():
    """With a larger min.insync.replicas, all replicas must be in sync: also new ones, while a batch copies them."""
    config = {"t": (("min.insync.replicas", "3"),)}
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": [[1], [2, 3]]}, config=config, changes=Changes(rebalance="none"))
    step = {"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [4]}
    steps = [row(BatchRow, {"number": 1, "partitions": [step]})]
    rows = rows_of(spec, build(spec), steps, [BROKERS])
    refused = {
        broker: [
            rows[BROKERS, f"broker {broker}", state]["writes_refused"] for state in ("today", "batch 1", "planned")
        ]
        for broker in (1, 2, 4)
    }

    assert {1: [1, 1, 0], 2: [1, 2, 1], 4: [0, 1, 1]} == refused


def test_a_copy_in_progress_saves_nothing():
    """During a batch, new replicas don't count until it is complete; the old ones do."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1]]}, changes=Changes(rebalance="none"))
    step = {"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [2, 3]}
    steps = [row(BatchRow, {"number": 1, "partitions": [step]})]
    rows = rows_of(spec, build(spec), steps, [BROKERS])
    offline = {
        broker: [rows[BROKERS, f"broker {broker}", state]["offline"] for state in ("today", "batch 1", "planned")]
        for broker in (1, 2, 3)
    }

    assert {1: [1, 1, 0], 2: [0, 0, 0], 3: [0, 0, 0]} == offline


def test_a_plan_of_another_state_is_refused():
    """A plan with a step that begins from other replicas than the partition has is refused."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1]]})
    step = {"topic": "t", "partition": 0, "replicas_before": [2], "replicas": [3]}
    steps = [row(BatchRow, {"number": 1, "partitions": [step]})]

    with pytest.raises(StalePlanError, match=r"t-0: the plan takes it from replicas \[2\]"):
        list(stages(spec, build(spec), steps))

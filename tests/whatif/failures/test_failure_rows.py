"""What breaks when brokers fail: tables against looking at every partition, and what must hold of any cluster."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from clusters import no_racks, spec_of, specs
from hypothesis import given
from hypothesis import strategies as st

from planner.execution import batch_costs
from planner.execution import batch_cutting as batches
from planner.execution.change_reasons import changes
from planner.model.build_problem import brokers_after, build
from planner.model.errors import StalePlanError
from planner.model.spec import BatchRules, Changes
from planner.strategies.candidate import Candidate
from planner.strategies.catalog import STRATEGIES
from planner.whatif.failures import failure_rows as failures
from planner.whatif.failures.cluster_states import FACTS, outcome, stages, worse
from planner.whatif.failures.failing_brokers import BROKERS, RACKS, Scenarios, scenarios
from planner.whatif.failures.offline_sums import failed_slots

NO_LIMITS = BatchRules()
MONOTONE = ("offline", "writes_refused", "lost", "lost_bytes")


def planned(spec, rules=NO_LIMITS):
    """A spec's problem and the batches of its optimum, as in plan.json."""
    problem = build(spec)
    assignment = STRATEGIES["optimum"](problem, Candidate("optimum", balance=problem.balance)).assignment
    racks = {broker.id: broker.rack for broker in brokers_after(spec) if broker.rack is not None}
    split = batches.split(changes(problem, assignment), rules, racks)
    held = dict.fromkeys(problem.broker_ids.tolist(), 0)
    return problem, batch_costs.to_document(batch_costs.costs(split, None, held, {}, False))


def rows_of(spec, problem, steps, kinds, most=1000):
    """The rows of a study by (kind, failed, state)."""
    wanted = failures.all_scenarios(problem, kinds, most, 0)
    table = failures.run(failures.study(spec, problem, steps, wanted), wanted)
    return {(row["of"], row["failed"], row["state"]): row for row in table.to_pylist()}


def counted(stage, found: Scenarios, failed):
    """The facts of a stage summed over all partitions, each looked at."""
    facts = outcome(stage.first, failed_slots(stage.first.replicas, found.domains, failed))
    other = outcome(stage.second, failed_slots(stage.second.replicas, found.domains, failed))
    return worse(facts.facts, other.facts).sum(axis=0), facts


@given(specs(rebalance=("all", "none")), st.sampled_from(("brokers", "racks", "pairs", "3")))
def test_tables_say_what_every_partition_says(spec, kind):
    """Counts and loads of every scenario and stage are those of looking at each partition."""
    problem, steps = planned(spec, BatchRules(moves_per_broker=1))
    if kind == "3" and len(problem.broker_ids) < 3:
        return
    found = scenarios(problem, kind, 1000, 0)
    study = failures.study(spec, problem, steps, [found])
    states = list(stages(spec, problem, steps))
    by_state = {name: number for number, name in enumerate(study.names)}
    assert len(states) == len(study.names)
    if not len(found.sets):
        return
    raw = list(failures._states(study, found, found.sets))
    for stage in states:
        state = raw[by_state[stage.name]]
        for number, failed in enumerate(found.sets):
            expected, facts = counted(stage, found, failed)
            assert expected.tolist() == state.facts[number].tolist()
            led = np.bincount(facts.leaders[facts.leaders >= 0], minlength=len(problem.broker_ids))
            assert led.max(initial=0) == max(int(state.most[number, 0]), 0)


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


@given(specs(rebalance=("all",)))
def test_each_batch_lies_between_today_and_the_plan(spec):
    """A partition changed in one step is, while batches run, at worst as bad as before or after, at best as good."""
    problem, steps = planned(spec, BatchRules(moves_per_broker=2))
    first, *between, last = states if len(states := list(stages(spec, problem, steps))) > 1 else (*states, states[0])
    once = [True] * problem.rows
    seen: dict[tuple[str, int], int] = {}
    names = [problem.topic_names[topic] for topic in problem.topic_of.tolist()]
    for batch in steps:
        for step in batch["partitions"]:
            seen[step["topic"], step["partition"]] = seen.get((step["topic"], step["partition"]), 0) + 1
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
    """Who leads next follows the replica list, past replicas that are out of sync."""
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": [[1, 2, 3], [1, 2, 3], [2, 3, 4]]})
    topic = spec.cluster.topics[0]
    parts = (topic.partitions[0], replace(topic.partitions[1], isr=(1, 3)), topic.partitions[2])
    spec = replace(spec, cluster=replace(spec.cluster, topics=(replace(topic, partitions=parts),)))
    row = rows_of(spec, build(spec), [], [BROKERS])[BROKERS, "broker 1", "today"]

    assert ([2, 3], [1, 1], 2) == (row["moved_to"], row["moved_leaders"], row["leaders_moved"])
    assert (2, 2) == (row["leaders_most"], row["leaders_most_broker"])


@pytest.mark.parametrize(("unclean", "expected"), [("true", (0, 1, 1, 1)), ("false", (1, 0, 1, 0))])
def test_an_unclean_election_keeps_a_partition_online(unclean, expected):
    """Where the in-sync replicas fail, one that is behind leads if the topic's configuration lets it."""
    config = {"t": (("min.insync.replicas", "2"), ("unclean.leader.election.enable", unclean))}
    spec = spec_of(no_racks(1, 2), {"t": [[1, 2]]}, config=config)
    topic = spec.cluster.topics[0]
    topic = replace(topic, partitions=(replace(topic.partitions[0], isr=(1,)),))
    spec = replace(spec, cluster=replace(spec.cluster, topics=(topic,)))
    row = rows_of(spec, build(spec), [], [BROKERS])[BROKERS, "broker 1", "today"]

    assert expected == tuple(row[name] for name in ("offline", "unclean", "writes_refused", "leaders_moved"))
    assert 0 == row["lost"]


def test_min_insync_and_last_replicas():
    """Writes are refused below min.insync.replicas; one live replica is at risk; all of them gone is lost data."""
    config = {"t": (("min.insync.replicas", "2"),)}
    spec = spec_of({1: "a", 2: "a", 3: "b"}, {"t": [[1, 2], [2, 3], [1, 2, 3]]}, sizes=7, config=config)
    rows = rows_of(spec, build(spec), [], [BROKERS, RACKS])
    names = ("offline", "writes_refused", "at_risk", "lost", "lost_bytes")

    assert (0, 2, 2, 0, 0) == tuple(rows[BROKERS, "broker 2", "today"][name] for name in names)
    assert (1, 3, 2, 1, 7) == tuple(rows[RACKS, "rack a", "today"][name] for name in names)


def test_a_copy_in_progress_saves_nothing():
    """Until the batch is complete the replicas that it adds don't count; the old ones do, in the new list's order."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1]]}, changes=Changes(rebalance="none"))
    step = {"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [2, 3]}
    steps = [{"number": 1, "partitions": [step], "elect": []}]
    rows = rows_of(spec, build(spec), steps, [BROKERS])
    offline = {
        broker: [rows[BROKERS, f"broker {broker}", state]["offline"] for state in ("today", "batch 1", "planned")]
        for broker in (1, 2, 3)
    }

    assert {1: [1, 1, 0], 2: [0, 0, 0], 3: [0, 0, 0]} == offline


def test_traffic_of_the_survivors():
    """Followers that lead send to those that live; what is offline is written by nobody."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1, 2, 3]], "u": [[1]]})
    rated = tuple(
        replace(t, partitions=tuple(replace(p, bytes_in_per_sec=10, bytes_out_per_sec=5) for p in t.partitions))
        for t in spec.cluster.topics
    )
    brokers = tuple(replace(each, network_bytes_per_sec=14) for each in spec.cluster.brokers)
    spec = replace(spec, cluster=replace(spec.cluster, topics=rated, brokers=brokers))
    rows = rows_of(spec, build(spec), [], [BROKERS])
    names = ("network_in_most", "network_out_most", "over_capacity")

    assert (10, 15, 1) == tuple(rows[BROKERS, "broker 1", "today"][name] for name in names)
    assert (20, 20, 1) == tuple(rows[BROKERS, "broker 3", "today"][name] for name in names)


def test_draws_are_seeded_sets_with_a_stated_confidence():
    """Beyond the budget sets are drawn, the same each time; about 3 / n bounds the share of worse ones."""
    spec = spec_of(no_racks(*range(40)), {"t": [[1, 2, 3]]})
    problem = build(spec)
    found, again, other = (scenarios(problem, "4", 3000, seed) for seed in (0, 0, 1))

    assert found.drawn
    assert (3000, 4) == found.sets.shape
    assert (np.diff(found.sets, axis=1) > 0).all()
    assert found.sets.tolist() == again.sets.tolist() != other.sets.tolist()
    assert pytest.approx(1 - 0.05 ** (1 / 3000)) == found.worse_at_most
    counts = np.bincount(found.sets.ravel(), minlength=40)
    assert counts.min() > 200
    assert counts.max() < 400
    assert 0.0 == scenarios(problem, "2", 1000, 0).worse_at_most


def test_batches_fold_into_the_worst_for_many_brokers():
    """Of any three brokers there is one row for all batches, with the worst of each figure."""
    spec = spec_of(no_racks(1, 2, 3, 4), {"t": [[1], [2]]}, changes=Changes(rebalance="none"))
    moves = [("t", 0, [1], [3]), ("t", 1, [2], [4])]
    steps = [
        {
            "number": at,
            "partitions": [dict(zip(("topic", "partition", "replicas_before", "replicas"), move, strict=True))],
            "elect": [],
        }
        for at, move in enumerate(moves, 1)
    ]
    rows = rows_of(spec, build(spec), steps, ["3"])

    assert [2, 2, 1] == [rows["3", "brokers 1, 2, 3", state]["offline"] for state in ("today", "batches", "planned")]


def test_a_plan_of_another_state_is_refused():
    """A step that begins with other replicas than the partition has is named."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [[1]]})
    steps = [
        {
            "number": 1,
            "partitions": [{"topic": "t", "partition": 0, "replicas_before": [2], "replicas": [3]}],
            "elect": [],
        }
    ]

    with pytest.raises(StalePlanError, match=r"t-0: the plan takes it from replicas \[2\]"):
        list(stages(spec, build(spec), steps))

"""The plan's sections on the cluster: how changed partitions are noticed, and the rows of batches."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from clusters import balance_of, no_racks, spec_of
from plan_documents import planned

from planner.execution.batch_costs_and_risks import costs
from planner.execution.batch_cutting import Batch
from planner.execution.partition_changes import Step
from planner.model.build_problem import build
from planner.model.cluster import Partition, PartitionChange, Reason, Topic
from planner.model.spec import BatchRules, Changes, Execution, Sweep
from planner.plan.cluster_sections import batch_rows, of_leader, partition_rows, state, state_digest, unlike_state
from planner.plan.document.cluster_types import StateRow
from planner.plan.document.codec import as_json
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run


def topic(*lists: tuple[int, ...], name: str = "a", leaders: dict[int, int | None] | None = None) -> Topic:
    """A topic with 10 bytes in each partition; the first replica leads unless `leaders` says otherwise."""
    led = leaders or {}
    return Topic(name, tuple(Partition(at, each, led.get(at, each[0]), None, 10) for at, each in enumerate(lists)))


def row(made: Topic) -> StateRow:
    """The plan's row for a topic."""
    return state([made], sizes_known=True).topics[0]


def test_a_topic_takes_three_characters_a_partition() -> None:
    """A topic takes three characters a partition, and one number for its size, if that is known."""
    made = row(topic((1, 2), (2, 3), (3, 1), leaders={1: 3, 2: None}))

    assert (6, "AB-", 30) == (len(made.replicas), made.leaders, made.size_bytes)
    assert state([topic((1,))], sizes_known=False).topics[0].size_bytes is None


def test_changed_lists_and_leaders_are_named() -> None:
    """Changed lists are named, and changed leaders of unchanged lists; added and missing partitions aren't named."""
    before = row(topic((1, 2), (2, 3), (3, 1)))

    assert ([], []) == unlike_state(before, topic((1, 2), (2, 3), (3, 1)))
    assert ([0, 2], [1]) == unlike_state(before, topic((2, 1), (2, 3), (3, 4), (5, 6), leaders={1: 3}))
    assert ([], []) == unlike_state(before, topic((1, 2), (2, 3)))


def test_few_of_many_lists_are_taken_for_each_other() -> None:
    """A list has twelve bits, so about one in 4,096 changed lists isn't noticed."""
    lists = list(permutations(range(1, 13), 3))
    before = row(topic(*lists))
    shifted = topic(*(lists[1:] + lists[:1]))
    changed, _ = unlike_state(before, shifted)

    assert len(lists) - 5 <= len(changed) <= len(lists)


def test_the_digest_is_over_names_lists_and_leaders() -> None:
    """The digest covers names, lists and leaders, but not sizes, because those always change."""
    made = topic((1, 2), (2, 3))
    sized = replace(made, partitions=tuple(replace(each, size_bytes=99) for each in made.partitions))

    assert state_digest([made]) == state_digest([sized])
    others = [topic((1, 2), (3, 2)), topic((1, 2), (2, 3), leaders={1: 3}), topic((1, 2), (2, 3), name="b")]
    assert 4 == len({state_digest([made]), *(state_digest([each]) for each in others)})


def test_a_leader_outside_its_replicas_is_nobody() -> None:
    """A leader that isn't among the replicas is shown like a missing one."""
    assert "-" == of_leader(Partition(0, (1, 2), 9)) == of_leader(Partition(0, (1, 2), None))


def test_a_batch_has_its_steps_its_elections_and_its_costs() -> None:
    """A batch has its steps, elections and costs, and the broker that is fullest while it runs."""
    one = Batch(1, (Step("t", 0, (1,), (2,), 10, 1),), (("t", 0),))
    (row,) = batch_rows(costs([one], 2, {1: 10, 2: 0}, {2: 20}, True))

    assert {
        "number": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas_before": [1], "replicas": [2]}],
        "elect": [{"topic": "t", "partition": 0}],
        "bytes_moved": 10,
        "replicas_moved": 1,
        "seconds_at_throttle": 5,
        "fullest_broker": {"id": 2, "peak_size_bytes": 10, "disk_bytes": 20},
        "leaderless": False,
    } == as_json(row)


def test_a_partition_has_its_reason_and_what_is_known_of_it() -> None:
    """A partition has a reason; a rate and log dirs are there only if they are known."""
    plain = PartitionChange("t", 3, (1,), (2,), None, 10, Reason.BROKER_LEAVES)
    dirs = {"log_dirs_before": ("/a",), "log_dirs": ("/b",)}
    full = PartitionChange("t", 4, (1,), (1,), 1, 10, Reason.BALANCE_LOG_DIRS, 7, **dirs)
    first, second = map(as_json, partition_rows([plain, full]))

    lists = {"replicas_before": [1], "replicas": [2], "leader_before": None}
    assert {"topic": "t", "partition": 3, **lists, "size_bytes": 10, "reason": "broker_leaves"} == first
    known = {"bytes_in_per_sec": 7, "log_dirs_before": ["/a"], "log_dirs": ["/b"], "reason": "balance_log_dirs"}
    assert known.items() <= second.items()


@pytest.mark.slow
def test_bytes_that_brokers_send_and_changes_of_topics() -> None:
    """If today's leader leaves in an early batch, another broker sends the rest. Elections are changes of a topic."""
    spec = spec_of(
        no_racks(1, 2, 3, 4, 5),
        {"y": [(1, 2, 3), (4, 5, 3)], "z": [(3, 4)]},
        sizes={"y": [80, 40], "z": [0]},
        leaders={"y": [2, 4], "z": [4]},
        balance=balance_of("none", 1, "none", "none"),
        changes=Changes(remove_brokers=(1, 2)),
        execution=Execution(batches=BatchRules(replicas_per_partition=1)),
    )
    problem = build(spec)
    plan = planned(spec, problem, run(problem, candidates(problem, Sweep(8))))

    steps = [step for batch in plan["batches"] for step in batch["partitions"] if step["topic"] == "y"]
    before = [step["replicas_before"] for step in steps]
    assert [True, False] == [2 in each for each in before]
    sent = {2: 80, before[1][0]: 80}
    assert sent == {row["id"]: row["bytes_out"] for row in plan["brokers"] if row["bytes_out"]}
    assert {"y": 1, "z": 1} == {row["name"]: row["partitions_changed"] for row in plan["topics"]}

"""The steps of a rolling restart, compared with a check that looks at each partition."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from clusters import no_racks, spec_of, specs
from hypothesis import given
from hypothesis import strategies as st
from small_specs import SMALL
from small_specs import spec_of as spec_of_text

from planner.model.cluster import Partition
from planner.report import markdown
from planner.whatif import restart_steps

TWO, THREE = ((("min.insync.replicas", each),) for each in ("2", "3"))
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
SPREAD = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1], [6, 1, 2]]


def names(partitions):
    """Partitions named as in Kafka's tools."""
    return {name for each in partitions for name in each.names}


def suffering(least, today, down):
    """What a partition with these replicas in sync suffers while brokers are down, but not before."""
    left = today - set(down)
    refused = {"writes_refused"} if left != today and len(left) < least <= len(today) else set()
    return refused | ({"offline"} if left != today and not left else set())


def judged(spec, down):
    """Partitions that suffer while brokers are down, today or if all are in sync, and those one failure from it."""
    found = {key: set() for key in ("writes_refused", "offline", "one_from_refused", "one_from_offline")}
    for topic in spec.cluster.topics:
        stated = max(int(dict(topic.config).get("min.insync.replicas", "1")), 1)
        for part in topic.partitions:
            least, seen = min(stated, len(part.replicas)), set(part.replicas)
            today = set(part.replicas if part.isr is None else part.isr) if part.leader is not None else set()
            name = f"{topic.name}-{part.id}"
            suffers = suffering(least, today, down) | suffering(least, seen, down)
            for key in suffers:
                found[key].add(name)
            left = [len(each - set(down)) for each in (today, seen) if each & set(down)]
            if least in left and "writes_refused" not in suffers:
                found["one_from_refused"].add(name)
            if 1 in left and "offline" not in suffers:
                found["one_from_offline"].add(name)
    return found


@st.composite
def clusters(draw):
    """A cluster with topics of different min.insync.replicas, and some replicas out of sync."""
    spec = draw(specs(rebalance=("all",)))
    topics = []
    for topic in spec.cluster.topics:
        parts = []
        for part in topic.partitions:
            behind = draw(st.sets(st.sampled_from(part.replicas), max_size=1))
            isr = tuple(each for each in part.replicas if each not in behind) or part.replicas
            leader = part.leader if part.leader in isr else isr[0]
            parts.append(replace(part, isr=isr, leader=leader))
        least = draw(st.integers(1, 3))
        topics.append(replace(topic, partitions=tuple(parts), config=(("min.insync.replicas", str(least)),)))
    return replace(spec, cluster=replace(spec.cluster, topics=tuple(topics)))


@given(clusters(), st.none() | st.integers(1, 3))
def test_each_step_does_what_it_is_said_to_do(spec, at_most):
    """Every broker once; brokers together harm nothing; and each list is what a look at each partition finds."""
    document = restart_steps.document(spec, at_most)
    brokers = [broker for step in document.steps for broker in step.brokers]
    assert sorted(each.id for each in spec.cluster.brokers) == sorted(brokers)
    racks = {each.id: each.rack for each in spec.cluster.brokers}
    for step in document.steps:
        assert {step.rack} == {racks[broker] for broker in step.brokers}
        assert at_most is None or len(step.brokers) <= at_most
        expected = judged(spec, step.brokers)
        assert expected == {key: names(getattr(step, key)) for key in expected}
        assert len(step.brokers) == 1 or not names(step.writes_refused) | names(step.offline)
    assert document == restart_steps.document(spec, at_most)


@given(clusters())
def test_no_two_steps_of_a_rack_could_be_one_where_two_brokers_have_it(spec):
    """First fit: of two brokers alone in their steps, both harmless by themselves, a partition would be harmed."""
    alone = [step for step in restart_steps.document(spec).steps if len(step.brokers) == 1]
    for one, other in combinations(alone, 2):
        if one.rack == other.rack is not None and not (names(one.writes_refused) | names(other.writes_refused)):
            together = judged(spec, (*one.brokers, *other.brokers))
            assert together["writes_refused"] | together["offline"]


def test_a_rack_a_step_where_partitions_are_spread():
    """Three racks take three steps and nothing is refused, but with one more failure all partitions refuse writes."""
    document = restart_steps.document(spec_of(RACKS, {"orders": SPREAD}, config={"orders": TWO}))

    assert [(1, 4), (2, 5), (3, 6)] == [step.brokers for step in document.steps]
    assert () == document.refusing
    assert [6, 6, 6] == [len(names(step.one_from_refused)) for step in document.steps]
    assert [set(), set(), set()] == [names(step.one_from_offline) for step in document.steps]
    assert {"orders-0", "orders-3"} == names(document.steps[0].elect)


def test_a_rack_in_steps_where_its_brokers_share_a_partition():
    """Brokers 1 and 4 have two of three replicas, so they restart one after the other, and the reason is stated."""
    document = restart_steps.document(spec_of(RACKS, {"orders": [*SPREAD, [1, 4, 2]]}, config={"orders": TWO}))

    assert [(1,), (4,), (2, 5), (3, 6)] == [step.brokers for step in document.steps]
    assert [None, "not with 1: orders-6 would refuse writes", None, None] == [step.apart for step in document.steps]
    assert () == document.refusing


def test_what_no_order_can_avoid_is_foretold():
    """Partitions without a spare replica suffer in any order: their brokers restart alone, with those partitions."""
    lists = {"orders": SPREAD, "strict": [[2, 3]], "single": [[6]]}
    document = restart_steps.document(spec_of(RACKS, lists, config={"orders": TWO, "strict": TWO}))

    assert [(1, 4), (2,), (5,), (3,), (6,)] == [step.brokers for step in document.steps]
    assert [set(), {"strict-0"}, set(), {"strict-0"}, {"single-0"}] == [
        names(step.writes_refused) for step in document.steps
    ]
    assert {"single-0"} == names(document.steps[4].offline)
    assert "alone: strict-0 would refuse writes" == document.steps[1].apart
    page, single = (
        markdown.render(restart_steps.view(each))
        for each in (document, restart_steps.document(spec_of(RACKS, {"single": [[6]]})))
    )
    assert (
        "more replicas in sync would avoid it; where only writes are refused, so would a lower min.insync.replicas"
        in page
    )
    assert "more replicas in sync would avoid it\n" in single


def test_steps_that_refuse_writes_are_told_as_ranges():
    """On 60 brokers, nearly each of which refuses something, the verdict would be a list of 60 numbers."""
    lists = {"single": [[broker] for broker in range(60) if broker != 39], "spread": [[0, 39]]}
    document = restart_steps.document(spec_of(no_racks(*range(60)), lists))

    assert "in steps 1–39, 41–60; more" in markdown.render(restart_steps.view(document))


def test_partitions_without_a_leader_are_named():
    """The playbook doesn't require these partitions to have a leader before it starts."""
    spec = spec_of(RACKS, {"orders": SPREAD})
    [topic] = spec.cluster.topics
    parts = [replace(part, leader=None, isr=()) if part.id in (1, 4) else part for part in topic.partitions]
    cluster = replace(spec.cluster, topics=(replace(topic, partitions=tuple(parts)),))

    assert {"orders-1", "orders-4"} == names(restart_steps.document(replace(spec, cluster=cluster)).leaderless)
    assert () == restart_steps.document(spec).leaderless


def test_brokers_without_racks_restart_one_by_one():
    """Brokers without racks restart one by one, because it is unknown what else they share."""
    document = restart_steps.document(spec_of(no_racks(3, 1, 2), {"orders": [[1, 2], [3, 1]]}))

    assert [(1,), (2,), (3,)] == [step.brokers for step in document.steps]
    assert {"a broker without a rack restarts alone"} == {step.apart for step in document.steps}


def test_at_most_so_many_together():
    """With a maximum, no more brokers restart together."""
    spec = spec_of({1: "a", 2: "a", 3: "a", 4: "b"}, {"orders": [[1, 4], [2, 4], [3, 4]]})

    assert [(1, 2, 3), (4,)] == [step.brokers for step in restart_steps.document(spec).steps]
    steps = restart_steps.document(spec, 2).steps
    assert [((1, 2), None), ((3,), "--at-most 2 keeps it apart from 1–2"), ((4,), None)] == [
        (each.brokers, each.apart) for each in steps
    ]


def test_what_is_refused_today_is_not_refused_again_by_two_brokers_at_once():
    """Brokers 1 and 2 are out of sync today and in sync before their step, so both together would refuse writes."""
    spec = spec_of({1: "a", 2: "a", 3: "b"}, {"orders": [[1, 2, 3]]}, config={"orders": TWO})
    behind = replace(spec.cluster.topics[0], partitions=(Partition(0, (1, 2, 3), 3, (3,)),))
    document = restart_steps.document(replace(spec, cluster=replace(spec.cluster, topics=(behind,))))

    assert [(1,), (2,), (3,)] == [step.brokers for step in document.steps]
    assert "not with 1: orders-0 would refuse writes" == document.steps[1].apart


def test_replicas_out_of_sync_take_nothing_away():
    """A broker with a replica out of sync restarts without harm; the other broker has the last one in sync."""
    spec = spec_of({1: "a", 2: "a"}, {"orders": [[1, 2]]})
    behind = replace(spec.cluster.topics[0], partitions=(Partition(0, (1, 2), 1, (1,)),))
    first, second = restart_steps.document(replace(spec, cluster=replace(spec.cluster, topics=(behind,)))).steps

    assert ((1,), {"orders-0"}) == (first.brokers, names(first.offline))
    assert ((2,), set(), {"orders-0"}) == (second.brokers, names(second.offline), names(second.one_from_offline))


def test_one_failure_from_refusing_is_also_judged_with_all_in_sync():
    """Broker 3 is out of sync today; in sync before its step, it leaves two replicas of the two required."""
    spec = spec_of({1: "a", 2: "b", 3: "c"}, {"orders": [[1, 2, 3]]}, config={"orders": TWO})
    behind = replace(spec.cluster.topics[0], partitions=(Partition(0, (1, 2, 3), 1, (1, 2)),))
    steps = restart_steps.document(replace(spec, cluster=replace(spec.cluster, topics=(behind,)))).steps

    assert [{"orders-0"}, {"orders-0"}, set()] == [names(step.writes_refused) for step in steps]
    assert [set(), set(), {"orders-0"}] == [names(step.one_from_refused) for step in steps]


def test_more_in_sync_than_there_are_replicas_are_not_required():
    """With min.insync.replicas of 3, two replicas are enough until one of them restarts; nothing is refused today."""
    document = restart_steps.document(spec_of({1: "a", 2: "b"}, {"orders": [[1, 2]]}, config={"orders": THREE}))

    assert [{"orders-0"}, {"orders-0"}] == [names(step.writes_refused) for step in document.steps]
    assert not [note for note in document.notes if "can't be written" in note]


def test_a_leader_that_is_not_the_preferred_one_does_not_come_back():
    """A leader that isn't the preferred one is counted, and no election is planned for it."""
    document = restart_steps.document(spec_of({1: "a", 2: "b"}, {"orders": [[1, 2]]}, leaders={"orders": [2]}))

    assert [(0, set()), (1, set())] == [(each.left_with_others, names(each.elect)) for each in document.steps]


def test_an_unknown_min_insync_replicas_is_said_to_be_unknown(tmp_path):
    """If min.insync.replicas is unknown, brokers with a common partition restart separately, and a note says why."""
    text = SMALL.replace("rack: b", "rack: a")
    document = restart_steps.document(spec_of_text(tmp_path, text))

    assert ("orders",) == document.min_insync_unknown
    assert [(1,), (2,), (3,)] == [step.brokers for step in document.steps]
    assert "not with 1: orders-0 would have no leader" == document.steps[1].apart
    assert document.notes[0].startswith(
        "min.insync.replicas of 1 topic is unknown: Kafka's default, 1, is assumed, and"
    )
    other = text.replace("  topics:", "  config_defaults: {retention.ms: 1}\n  topics:")
    assert ("orders",) == restart_steps.document(spec_of_text(tmp_path, other)).min_insync_unknown
    stated = text.replace("  topics:", "  config_defaults: {min.insync.replicas: 1}\n  topics:")
    assert () == restart_steps.document(spec_of_text(tmp_path, stated)).min_insync_unknown


@pytest.mark.parametrize(
    ("least", "brokers", "apart"),
    [("1", [(1, 2), (3,)], None), (None, [(1,), (2,), (3,)], "not with 1: orders-0 may refuse writes")],
)
def test_two_of_three_replicas_restart_together_only_where_it_is_known_to_be_harmless(tmp_path, least, brokers, apart):
    """Two of three replicas restart together if min.insync.replicas is 1, but not if it is unknown."""
    text = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, rack: a}, {id: 2, rack: a}, {id: 3, rack: b}]
  topics: [{name: orders, partitions: [{replicas: [1, 2, 3]}]}]
"""
    defaults = f"  config_defaults: {{min.insync.replicas: {least}}}\n" if least else ""
    steps = restart_steps.document(spec_of_text(tmp_path, text + defaults)).steps

    assert brokers == [step.brokers for step in steps]
    assert apart == steps[1].apart


def test_brokers_of_a_partition_out_of_sync_restart_apart_if_min_insync_replicas_is_unknown(tmp_path):
    """Before each step all replicas are in sync, so brokers 1 and 2 don't restart together, though only 3 is today."""
    text = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, rack: a}, {id: 2, rack: a}, {id: 3, rack: b}]
  topics: [{name: orders, partitions: [{replicas: [3, 1, 2], isr: [3], leader: 3}]}]
"""
    steps = restart_steps.document(spec_of_text(tmp_path, text)).steps

    assert [(1,), (2,), (3,)] == [step.brokers for step in steps]
    assert "not with 1: orders-0 may refuse writes" == steps[1].apart

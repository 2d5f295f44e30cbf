"""Clusters to buy: the combinations, what is planned for each, and when each reaches its limits."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from clusters import spec_of
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import PlacementRuleRow
from planner.model.errors import SetupError
from planner.model.spec import BrokerClass, Changes, Monthly, NewPartitions, Rate, Sizing, Spec, TopicFilter
from planner.whatif import sizing
from planner.whatif.sizing import Combination, combinations
from planner.whatif.sizing import spec_of as sized_spec

SMALL, LARGE = BrokerClass("small", 100, 1000), BrokerClass("large", 300, 3000)
RACKS = {1: "a", 2: "b", 3: "c"}
THREE = {"t": [(1, 2), (2, 3), (3, 1), (1, 3)]}


def to_size(spec: Spec | None = None, *, growth: int = 0, of: BrokerClass = SMALL, **options) -> Spec:
    """Three small brokers, each in another rack, four partitions of 20 bytes, and the classes to buy."""
    made = spec or spec_of(RACKS, THREE, sizes=20)
    brokers = tuple(
        replace(each, disk_bytes=of.disk_bytes, network_bytes_per_sec=of.network_bytes_per_sec)
        for each in made.cluster.brokers
    )
    asked = Sizing(**{"classes": (SMALL, LARGE), "per_rack": (1, 2), "months": 10, **options})
    cluster = replace(made.cluster, brokers=brokers, sizes_known=True)
    return replace(made, cluster=cluster, growth=Monthly((Rate("*", growth),), (SMALL, LARGE)), sizing=asked)


def test_every_class_and_number_is_a_combination_once() -> None:
    """Each class and number is there once; today's brokers of the class count, those of other classes stay or leave."""
    found = [
        (c.number, c.broker_class, c.per_rack, c.keeps, [b.id for b in c.added], c.removed)
        for c in combinations(to_size())
    ]

    assert [
        (1, "small", 1, False, [], ()),
        (2, "small", 2, False, [4, 5, 6], ()),
        (3, "large", 1, True, [4, 5, 6], ()),
        (4, "large", 1, False, [4, 5, 6], (1, 2, 3)),
        (5, "large", 2, True, [4, 5, 6, 7, 8, 9], ()),
        (6, "large", 2, False, [4, 5, 6, 7, 8, 9], (1, 2, 3)),
    ] == found


def test_fewer_brokers_and_other_racks_are_combinations_too() -> None:
    """Fewer brokers of a class, and other racks, are combinations too: the last brokers leave, and those elsewhere."""
    spec = to_size(spec_of({**RACKS, 4: "a", 5: "b", 6: "c"}, THREE, sizes=20), per_rack=(1, 1), classes=(SMALL,))
    assert [((), (4, 5, 6))] == [(each.added, each.removed) for each in combinations(spec)]
    spec = to_size(per_rack=(1, 1), classes=(SMALL,), racks=("a", "d"))
    (found,) = combinations(spec)
    assert ((2, 3), [(4, "d")]) == (found.removed, [(each.id, each.rack) for each in found.added])


def test_changes_of_partitions_stay_and_those_of_brokers_do_not() -> None:
    """The combination decides which brokers there are, whatever `changes` says about brokers."""
    spec = replace(to_size(), changes=Changes(add_brokers=(Broker(9, "a"),), rebalance="none"))
    changed = sized_spec(spec, combinations(spec)[3]).changes
    assert ([4, 5, 6], (1, 2, 3), "all") == (
        [b.id for b in changed.add_brokers],
        changed.remove_brokers,
        changed.rebalance,
    )


def test_what_cannot_be_sized_is_refused() -> None:
    """Without `sizing`, or with rules on brokers that can't include bought ones, there is an error."""
    with pytest.raises(SetupError, match="the key sizing is missing; allowed: sizing, with at least brokers_per_rack"):
        combinations(replace(to_size(), sizing=None))
    with pytest.raises(SetupError, match="can't be sized with placement, leader_racks, apart or together"):
        combinations(replace(to_size(), placement=(PlacementRuleRow("t", "hot", (1, 2), False),)))


def row(spec: Spec, number: int):
    """The row of the combination with this number."""
    return sizing.evaluate(sizing.SizingStudy.of(spec), combinations(spec)[number - 1])


def test_a_cluster_that_holds_has_no_limit() -> None:
    """160 bytes in all are 54 on each of three brokers, 27 on each of six: the cluster lasts."""
    held = row(to_size(), 2)
    assert (True, None, None, None) == (held["holds"], held["month"], held["broker"], held["limit"])
    assert 0 < held["least_bytes"] <= held["bytes_moved"]
    assert 40 == held["used_percent"]  # two replicas of 20 bytes on a disk of 100


def test_the_first_limit_is_that_of_the_growth() -> None:
    """60 bytes on a broker grow by half each month: 90, then 135, which exceeds the disk."""
    spec = to_size(growth=500_000, per_rack=(1, 1), classes=(SMALL,))
    assert (False, 2, "disk") == tuple(row(spec, 1)[name] for name in ("holds", "month", "limit"))
    assert (2, "disk") == tuple(sizing.today_row(spec)[name] for name in ("month", "limit"))


def test_disks_may_be_filled_in_part() -> None:
    """With 50 % of 100 bytes, 60 bytes are too much today and all disks together too small: there is no plan."""
    found = row(to_size(disk_used_ppm=500_000, per_rack=(1, 1), classes=(SMALL,)), 1)
    assert (False, 0, None, "disk", None) == tuple(
        found[name] for name in ("holds", "month", "broker", "limit", "bytes_moved")
    )


def test_replicas_are_limited() -> None:
    """Eight replicas on three brokers need three on one of them: a limit of two doesn't hold."""
    assert "replicas" == row(to_size(replicas_per_broker=2, per_rack=(1, 1), classes=(SMALL,)), 1)["limit"]
    assert row(to_size(replicas_per_broker=3, per_rack=(1, 1), classes=(SMALL,)), 1)["holds"]


def test_plans_keep_the_limit_of_replicas() -> None:
    """By their disks, large brokers would have six of 24 replicas each; with four on each broker, all fit."""
    spec = to_size(spec_of(RACKS, {"t": THREE["t"] * 3}, sizes=20), per_rack=(1, 1), classes=(LARGE,))
    assert row(spec, 1)["holds"]
    limited = replace(spec, sizing=replace(spec.sizing, replicas_per_broker=4))
    assert row(limited, 1)["holds"]
    assert "replicas" == row(replace(spec, sizing=replace(spec.sizing, replicas_per_broker=3)), 1)["limit"]


def test_a_cluster_above_its_caps_today_is_sized() -> None:
    """Today's brokers have more replicas than `max_replicas` allows: they are above a limit, and more would help."""
    capped = replace(SMALL, max_replicas=2)
    spec = to_size(of=capped, classes=(capped,))
    brokers = tuple(replace(each, max_replicas=2) for each in spec.cluster.brokers)
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers))
    assert (0, 1, "replicas") == tuple(sizing.today_row(spec)[key] for key in ("month", "broker", "limit"))
    assert [(1, False), (2, True)] == [(row(spec, number)["number"], row(spec, number)["holds"]) for number in (1, 2)]


def test_others_stay_only_where_there_are_others() -> None:
    """A cluster of one class has no brokers of other classes that stay."""
    assert {False} == {each.keeps for each in combinations(to_size(classes=(SMALL,)))}
    assert {True, False} == {each.keeps for each in combinations(to_size(classes=(LARGE,)))}


def test_the_caps_of_a_class_hold_for_the_brokers_that_are_bought() -> None:
    """Three brokers can't have eight replicas with caps of two each, nor four leaders with caps of one."""
    capped = BrokerClass("capped", 300, 3000, max_replicas=2, max_leaders=1, max_disk_bytes=60)
    spec = to_size(classes=(capped,))
    few, many = combinations(spec)[1], combinations(spec)[3]

    assert {(2, 1, 60)} == {(b.max_replicas, b.max_leaders, b.max_disk_bytes) for b in many.added}
    assert (False, 0, "replicas") == tuple(row(spec, few.number)[key] for key in ("holds", "month", "limit"))
    assert row(spec, many.number)["holds"]
    led = to_size(classes=(replace(capped, max_replicas=None),), per_rack=(1, 1))
    assert "too few brokers or racks for the replication factors and caps" == row(led, 2)["limit"]
    assert [(4, 5, 6)] * 2 == [tuple(b.id for b in each.added) for each in combinations(led)]


def test_too_few_brokers_have_no_plan() -> None:
    """Two replicas need two brokers, so one broker has no plan."""
    spec = to_size(spec_of({1: "a"}, {"t": [(1,)]}, sizes=1), per_rack=(1, 1), classes=(SMALL,), racks=("a",))
    from planner.model.document_fields import ReplicationFactorRow

    changes = Changes(set_replication_factor=(ReplicationFactorRow("*", 2),))
    found = row(replace(spec, changes=changes), 1)
    assert (False, "too few brokers or racks for the replication factors") == (found["holds"], found["limit"])


def test_a_rack_that_fails_leaves_the_others_its_traffic() -> None:
    """Each partition has 240 bytes/s of writes and of reads: a leader sends 480, or 240 if its follower is down."""
    base = spec_of(RACKS, {"t": [(1, 2), (2, 3), (3, 1)]}, sizes=20)
    topics = tuple(
        replace(
            topic, partitions=tuple(replace(p, bytes_in_per_sec=240, bytes_out_per_sec=240) for p in topic.partitions)
        )
        for topic in base.cluster.topics
    )
    config = (("cleanup.policy", "compact"),)
    base = replace(base, cluster=replace(base.cluster, topics=tuple(replace(each, config=config) for each in topics)))
    one = {"per_rack": (1, 1), "classes": (BrokerClass("small", 100, 700),)}
    alike = BrokerClass("small", 100, 700)

    assert row(to_size(base, of=alike, **one), 1)["holds"]
    found = row(to_size(base, of=alike, survive="rack", **one), 1)
    assert (False, 0) == (found["holds"], found["month"])
    assert "network without rack" in found["limit"]
    assert "network without broker" in row(to_size(base, of=alike, survive="broker", **one), 1)["limit"]


@pytest.mark.parametrize("kept", [{"exclude": ("t",)}, {"on_brokers": (1,)}, {}])
def test_brokers_with_partitions_that_may_not_move_stay(kept: dict[str, tuple[str | int, ...]]) -> None:
    """Today's brokers can't leave if the filter, or a deletion, keeps partitions on them."""
    spec = to_size()
    topics = tuple(replace(each, deleting=not kept) for each in spec.cluster.topics)
    stay = replace(spec, topics=TopicFilter(**kept), cluster=replace(spec.cluster, topics=topics))
    with_others, without = (row(stay, number) for number in (3, 4))

    assert with_others["holds"]
    assert "partitions that may not move are on brokers that leave" == without["limit"]
    assert row(spec, 4)["holds"]


def test_a_rack_with_all_replicas_takes_partitions_down() -> None:
    """A rack with both replicas takes a partition offline today; a plan repairs that, buying brokers alone doesn't."""
    base = spec_of({1: "a", 2: "a", 3: "b"}, {"t": [(1, 2)]}, sizes=1)
    assert "partitions offline without rack a" == sizing.today_row(to_size(base, survive="rack"))["limit"]
    assert row(to_size(base, survive="rack", per_rack=(2, 2)), 1)["holds"]


def test_partitions_to_be_made_are_not_offline_today() -> None:
    """New partitions don't count as offline today, because they aren't there yet."""
    spec = to_size(survive="broker")
    made = replace(spec, changes=Changes(new_partitions=(NewPartitions("new", 0, 3, 2),)))
    assert [True, True] == [sizing.today_row(each)["holds"] for each in (spec, made)]


@examples(60)
@given(
    rows=st.lists(st.permutations([1, 2, 3, 4]).map(lambda ids: tuple(ids[:2])), min_size=1, max_size=5),
    loads=st.lists(st.tuples(*[st.integers(0, 90)] * 3), min_size=5, max_size=5),
    growth=st.sampled_from([0, 100_000, 400_000, -200_000]),
    survive=st.sampled_from(["none", "broker", "rack"]),
)
def test_limits_are_those_of_a_count_by_hand(rows, loads, growth, survive) -> None:
    """Month by month and failure by failure, partition by partition."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    base = spec_of(
        racks,
        {"t": rows},
        sizes={"t": [each[0] for each in loads[: len(rows)]]},
        config={"t": (("cleanup.policy", "compact"),)},
    )
    (topic,) = base.cluster.topics
    parts = tuple(
        replace(part, bytes_in_per_sec=load[1], bytes_out_per_sec=load[2])
        for part, load in zip(topic.partitions, loads, strict=False)
    )
    base = replace(base, cluster=replace(base.cluster, topics=(replace(topic, partitions=parts),)))
    spec = to_size(base, growth=growth, survive=survive, months=4, of=BrokerClass("small", 100, 250))
    found = sizing.today_row(spec)

    failures = {"none": [()], "broker": [(), (1,), (2,), (3,), (4,)], "rack": [(), (1, 3), (2, 4)]}[survive]
    reached = []
    for month in range(5):
        # As the forecast has it: whole numbers of a factor that is multiplied up.
        factor = prod([1 + growth / 1e6] * month)
        size, into, out = ([int(np.rint(load[at] * factor)) for load in loads] for at in range(3))
        for down in failures:
            held = {broker: [0, 0, 0] for broker in racks}
            for at, row_of in enumerate(rows):
                living = [broker for broker in row_of if broker not in down]
                if not living:
                    reached.append(month)
                    continue
                for broker in living:
                    held[broker][1] += into[at]
                held[living[0]][2] += into[at] * (len(living) - 1) + out[at]
                for broker in row_of if not down else ():
                    held[broker][0] += size[at]
            if any(each[0] > 100 or max(each[1:]) > 250 for each in held.values()):
                reached.append(month)
    assert (min(reached) if reached else None) == found["month"]
    assert (not reached) == found["holds"]


def test_the_hours_of_the_week_count() -> None:
    """A cluster that is large enough on average can be too small for its busiest hour."""
    from benchmarks import hours

    base = hours.spec(1, 60)
    worst = max(hours.worst(build(base), base.week, build(base).replicas))
    spread = replace(base, changes=Changes())
    each = BrokerClass("one", None, int(worst * 0.9))
    mean = to_size(replace(spread, week=None), of=each, classes=(each,), per_rack=(4, 4), months=1)
    busiest = to_size(spread, of=each, classes=(each,), per_rack=(4, 4), months=1)
    assert sizing.today_row(mean)["used_percent"] < sizing.today_row(busiest)["used_percent"]
    # At the end of the history all topics have twice the writes, in the hours of the week too.
    twice = {topic.name: 2_000_000 for topic in base.cluster.topics}
    for each_spec in (mean, busiest):
        ended = replace(each_spec, growth=replace(each_spec.growth, at_end=twice))
        used = [sizing.today_row(known)["used_percent"] for known in (each_spec, ended)]
        assert used[1] == pytest.approx(2 * used[0], rel=1e-3)


def test_rows_are_the_same_in_any_order() -> None:
    """A combination's row doesn't depend on other rows or on their order."""
    spec = to_size(growth=100_000)
    wanted: list[Combination] = list(combinations(spec))
    rows, reversed_rows = ([each() for each in sizing.questions(spec, order)] for order in (wanted, wanted[::-1]))
    assert rows == reversed_rows[::-1]


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 4])
def test_spark_gives_the_same_rows(spark, partitions) -> None:
    """Spark gives the same rows with any number of tasks."""
    from spark_jobs import worker_tasks

    spec = to_size(growth=100_000, survive="rack")
    wanted = combinations(spec)
    asked = sizing.questions(spec, wanted)
    assert [each() for each in asked] == worker_tasks.answers(spark, asked, partitions)

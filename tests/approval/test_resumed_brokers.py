"""The rest of a plan when its brokers were cordoned, died, or moved to another rack meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from clusters import no_racks, spec_of, with_cordons
from interrupted import ROWS, after_batches, expansion, found, plan_of, resumed

from planner.model.cluster import Broker
from planner.model.errors import StalePlanError, UnsafePlanError
from planner.model.spec import BatchRules, Changes, Execution


@pytest.mark.parametrize("done", [0, 1])
def test_what_somebody_has_cordoned_since_gets_nothing(done: int) -> None:
    """If somebody cordoned a broker of the target, the rest is refused, whether it holds replicas or not (KIP-1066)."""
    spec = expansion()
    plan = plan_of(spec)
    now = after_batches(plan, found(spec), done)
    place = "changes.add_brokers" if not done else "cluster.brokers"
    copied = {broker for batch in plan["batches"][:done] for row in batch["partitions"] for broker in row["replicas"]}
    broker = next(each for each in (4, 5) if not done or each in copied)

    with pytest.raises(UnsafePlanError) as refused:
        resumed(plan, replace(now, cordoned={broker: ("*",)}))

    heading, *lines = str(refused.value).splitlines()
    assert "nothing was written, because the plan can't be applied safely:" == heading
    assert [place] == [line.partition(f": broker {broker} is cordoned (cordoned.log.dirs=*), and")[0] for line in lines]


def test_a_cordon_of_the_broker_that_is_emptied_changes_nothing() -> None:
    """The broker to be emptied may be cordoned: the rest is the same, because it copies nothing to it."""
    spec = spec_of(no_racks(1, 2, 3, 4), ROWS, changes=Changes(remove_brokers=(3,)))
    spec = replace(spec, execution=Execution(batches=BatchRules(moves_per_broker=1)))
    plan = plan_of(spec)
    now = after_batches(plan, found(spec), 1)

    assert [] != (rest := resumed(plan, now))["partitions"]
    assert rest == resumed(plan, replace(now, cordoned={3: ("*",)}))


def test_what_was_cordoned_when_the_plan_was_made_still_counts_as_cordoned() -> None:
    """Racks and shares are those of the approved plan, also if the state doesn't show the cordon: nothing new comes to
    rack c.
    """
    racks = {1: "c", 2: "b", 3: "a", 4: "b"}
    spec = spec_of(racks, {"t": [(1, 2), (2, 3), (3, 4), (2, 3), (3, 4)], "u": [(2, 3, 4)] * 3}, sizes=10)
    spec = replace(with_cordons(spec, 1), execution=Execution(batches=BatchRules(moves_per_broker=1)))
    spec = replace(spec, changes=Changes(add_brokers=(Broker(5, "b"),)))
    plan = plan_of(spec)
    assert len(plan["batches"]) > 1
    assert [] == plan["balance"]["missed"]

    rest = resumed(plan, after_batches(plan, found(spec), 1))

    assert [] == rest["balance"]["missed"]
    assert [True] == [broker.get("cordoned") for broker in rest["brokers"] if broker["id"] == 1]


def test_brokers_of_the_target_have_to_be_live() -> None:
    """The rest is refused if a target broker isn't live."""
    spec = expansion()

    with pytest.raises(StalePlanError, match="not live: broker 5"):
        resumed(plan_of(spec), found(spec, racks=dict.fromkeys((1, 2, 3, 4))))


def test_brokers_have_to_be_in_the_racks_of_the_plan() -> None:
    """The rest is refused if a broker is in another rack, because the playbook would refuse to start."""
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    spec = spec_of(racks, {"t": [(1, 2)] * 4})

    with pytest.raises(StalePlanError, match="broker 4: is in rack a; the plan counts on rack b; plan again"):
        resumed(plan_of(spec), found(spec, racks=racks | {4: "a"}))


def test_a_demoted_leader_stays_where_the_others_were_down() -> None:
    """Broker 3 was in no ISR, so demoted broker 1 keeps leading; the plan runs, and is resumed, once 3 is back."""
    changes = Changes(remove_brokers=(4,), demote_brokers=(1,))
    spec = spec_of(no_racks(1, 3, 4), {"t": [(1, 4), (1, 3)]}, changes=changes)
    topic = spec.cluster.topics[0]
    down = replace(topic, partitions=tuple(replace(each, isr=(1, 4)[: 2 - each.id]) for each in topic.partitions))
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, topics=(down,))))

    assert [[1, 3]] == [row["replicas"] for row in plan["partitions"]]
    assert [[1, 3]] == [row["replicas"] for row in resumed(plan, found(spec))["partitions"]]

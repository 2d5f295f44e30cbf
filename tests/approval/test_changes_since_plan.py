"""What changed outside a plan since it was made, and the sentences about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from plan_documents import change, document, new_partitions, typed

from planner.approval.changes_since_plan import (
    CONFIG_MEANING,
    MEANING,
    ChangedConfig,
    ChangesSincePlan,
    ClusterNow,
    changed_configs,
    compare_states,
)
from planner.model.cluster import Config, Partition, Topic
from planner.plan import cluster_sections
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan

LISTS = {"own": [[1, 9], [2, 1]], "kept": [[1, 2], [2, 3], [3, 1]], "gone": [[1, 2]]}


def topics(leaders: dict[str, int], lists: dict[str, list[list[int]] | None]) -> dict[str, Topic]:
    """Topics with 100 bytes in each partition; the first replica leads unless `leaders` says otherwise."""
    return {
        name: Topic(
            name,
            tuple(
                Partition(at, tuple(row), leaders.get(f"{name}-{at}", row[0]), None, 100) for at, row in enumerate(rows)
            ),
        )
        for name, rows in lists.items()
        if rows is not None
    }


def plan(**top: Any) -> dict[str, Any]:
    """A plan that moves own-0 and records the state of LISTS."""
    state = cluster_sections.state(topics({}, LISTS).values(), sizes_known=True)  # type: ignore[arg-type]
    return document([change("own", 0, [1, 9], [3, 4])], state=codec.as_json(state), **top)


def now(leaders: dict[str, int] | None = None, sizes: int | None = None, **lists: list[list[int]] | None) -> ClusterNow:
    """The cluster of LISTS, with these topics' lists instead."""
    found = topics(leaders or {}, {**LISTS, **lists})
    keys = ((name, each.id) for name, topic in found.items() for each in topic.partitions)
    return ClusterNow(found, sizes=None if sizes is None else dict.fromkeys(keys, sizes))


def said(found: ChangesSincePlan | None) -> list[str]:
    """The sentences about the changes."""
    assert found is not None
    return list(found.sentences())


def test_where_nothing_changed_one_line_says_so() -> None:
    """If nothing changed, one sentence says so; the plan's own moves don't count."""
    nothing = ["outside the plan: no partition changed since it was made"]

    assert nothing == said(compare_states(typed(plan()), now()))
    assert nothing == said(compare_states(typed(plan()), now(own=[[3, 4], [2, 1]])))
    assert nothing == said(compare_states(typed(plan()), now(sizes=100)))


def test_changed_partitions_are_counted_by_what_changed() -> None:
    """Changed partitions are counted by kind, with the first names, and a sentence says what they mean."""
    found = compare_states(
        typed(plan()), now({"own-1": 1}, kept=[[1, 2], [3, 2], [3, 4], [4, 5]], gone=None, new=[[1], [2]])
    )

    assert found is not None
    assert found.changed
    assert (7, ("new",), ("gone",)) == (found.partitions, found.topics_new, found.topics_gone)
    assert [
        "outside the plan: 7 partitions changed since it was made: 2 with other replicas (kept-1, kept-2); "
        "1 with a different leader (own-1); 3 new; 1 gone",
        MEANING,
    ] == said(found)


def test_partitions_of_the_plan_that_are_gone_are_not_outside_of_it() -> None:
    """Of a deleted topic, only partitions that the plan doesn't change count; without any, nothing changed outside."""
    changes = [change("own", 0, [1, 9], [3, 4]), change("own", 1, [2, 1], [3, 4])]
    whole = document(changes, state=plan()["state"])
    some, none = (compare_states(typed(made), now(own=None)) for made in (plan(), whole))

    assert (1, ("own",), True) == (some.removed, some.topics_gone, some.changed)
    assert (0, (), False) == (none.removed, none.topics_gone, none.changed)


def test_sizes_are_compared_in_all() -> None:
    """Sizes change all the time: their total is reported, but isn't counted as a change."""
    found = compare_states(typed(plan()), now(sizes=150))

    assert found is not None
    assert not found.changed
    assert [
        "outside the plan: no partition changed since it was made",
        "one replica of every partition was 600 B when the plan was made, now 900 B (+50.0 %)",
        MEANING,
    ] == said(found)


def test_partitions_that_the_plan_makes_are_its_own() -> None:
    """Partitions that the plan makes aren't changes, whether they are there yet or not; an additional one is."""
    topic = {"topic": "n", "partitions_before": 0, "partitions": 2, "replication_factor": 1, "config": {},
             "replicas": [[1], [2]], "replica_assignment": "1,2"}  # fmt: skip
    made = plan(new_partitions=new_partitions(topic))

    assert ["outside the plan: no partition changed since it was made"] == said(
        compare_states(typed(made), now(n=[[1], [2]]))
    )
    assert (0, 1) == tuple(compare_states(typed(made), now(n=rows)).partitions for rows in ([[1]], [[1], [2], [3]]))


def test_whether_any_topic_has_configuration_is_found_once() -> None:
    """All topics are asked for their configuration once for a cluster, not for each topic: that is quadratic."""
    asked = []

    class Asked(dict[str, Topic]):
        """Topics by name, which count how often all of them are asked."""

        def values(self) -> Any:
            """All topics."""
            asked.append(1)
            return super().values()

    many = {f"t{at}": [[1]] for at in range(20)}
    state = cluster_sections.state(topics({}, many).values(), sizes_known=True)  # type: ignore[arg-type]
    rows = [{"name": name} for name in many]
    seen = ClusterNow(Asked(topics({}, many)))  # type: ignore[arg-type]

    assert [] == list(changed_configs(typed(document([], state=codec.as_json(state), topics=rows)), seen))
    assert 1 == len(asked)


def test_what_checksums_miss_the_digest_tells() -> None:
    """One replica list in 4,096 has the checksum of another; the digest of all lists still shows that they changed."""
    lists = [[at, at + 1, at + 2] for at in range(1, 9000)]
    seen: dict[str, list[int]] = {}
    twin = next(
        (each, seen[found])
        for each in lists
        if (found := cluster_sections.of_replicas(Partition(0, tuple(each)))) in seen or seen.update({found: each})
    )
    state = cluster_sections.state(topics({}, {"kept": [twin[0]]}).values(), sizes_known=True)
    found = compare_states(typed(document([], state=codec.as_json(state))), ClusterNow(topics({}, {"kept": [twin[1]]})))

    assert found is not None
    assert found.unnamed
    assert "something that the plan's checksums can't name" in said(found)[0]


ONE, TWO = (("min.insync.replicas", "1"),), (("min.insync.replicas", "2"),)
KEPT = (("retention.ms", "5"),)


def found(*, own: Config = (), effective: Config = (), defaults: Config = ()) -> ClusterNow:
    """The cluster as the plan found it, with these configurations of topic `kept` and of the brokers."""
    state = now()
    kept = replace(state.topics["kept"], config=own, effective_config=effective)
    return replace(state, topics={**state.topics, "kept": kept}, config_defaults=defaults)


def configured(*, own: Config = (), effective: Config = (), defaults: Config = ()) -> Plan:
    """The plan that recorded these configurations."""
    made = plan()
    row = {**made["topics"][0], "name": "kept", "config": dict(own), "effective_config": dict(effective)}
    cluster = {**made["cluster"], "config_defaults": dict(defaults)}
    return typed({**made, "topics": [row], "cluster": cluster})


@pytest.mark.parametrize(
    ("then", "today", "expected"),
    [
        ({"effective": ONE}, {"effective": TWO}, [("min.insync.replicas", "1", "2")]),
        ({"own": ONE}, {"effective": TWO}, [("min.insync.replicas", "1", "2")]),
        ({"own": ONE + KEPT}, {"own": KEPT}, [("min.insync.replicas", "1", None)]),
        ({"own": KEPT}, {"own": KEPT + TWO}, [("min.insync.replicas", None, "2")]),
        ({"own": KEPT}, {"own": KEPT, "defaults": TWO}, [("min.insync.replicas", None, "2")]),
        ({"defaults": ONE}, {"defaults": TWO}, [("min.insync.replicas", "1", "2")]),
        ({"own": ONE, "defaults": TWO}, {"own": ONE, "defaults": ONE}, []),
        ({"own": ONE}, {}, []),
        ({}, {"own": KEPT, "effective": TWO}, []),
        ({"own": KEPT}, {"own": (*KEPT, ("leader.replication.throttled.replicas", "*"))}, []),
    ],
)
def test_what_both_sides_tell_is_compared(
    then: dict[str, Config], today: dict[str, Config], expected: list[tuple[str, str | None, str | None]]
) -> None:
    """Values in force, own and inherited, are compared if both sides know them; throttles are left out."""
    assert tuple(ChangedConfig("kept", *each) for each in expected) == tuple(
        changed_configs(configured(**then), found(**today))
    )


def test_a_topic_without_configuration_is_known_to_have_none_beside_others() -> None:
    """A topic's first or last own key counts as changed, because other topics show that both states have such keys."""
    kept, other = configured(), configured(own=KEPT).topics[0]
    then = structs.replace(kept, topics=(*kept.topics, structs.replace(other, name="other")))
    state = found(own=KEPT + TWO)
    beside = {**state.topics, "other": Topic("other", (Partition(0, (1,), 1),))}

    assert [
        ChangedConfig("kept", "min.insync.replicas", None, "2"),
        ChangedConfig("kept", "retention.ms", None, "5"),
        ChangedConfig("other", "retention.ms", "5", None),
    ] == list(changed_configs(then, replace(state, topics=beside)))


def test_what_a_topic_that_the_plan_creates_inherits_is_no_change() -> None:
    """A plan can't know what its own new topics inherit; what it sets on them itself is compared."""
    topic = {"topic": "kept", "partitions_before": 0, "partitions": 1, "replication_factor": 1, "config": {},
             "replicas": [[1]], "replica_assignment": "1"}  # fmt: skip
    made = typed(plan(new_partitions=new_partitions(topic)))
    silent, knows = configured(own=KEPT), configured(own=ONE)

    assert [(), (ChangedConfig("kept", "min.insync.replicas", "1", "2"),)] == [
        tuple(changed_configs(structs.replace(then, new_partitions=made.new_partitions), found(effective=KEPT + TWO)))
        for then in (silent, knows)
    ]


def test_changed_configuration_is_a_change_outside_the_plan() -> None:
    """A changed configuration is reported after the partitions, and counts as a change for --strict-state."""
    seen = compare_states(configured(effective=ONE), found(effective=TWO))

    assert seen is not None
    assert seen.changed
    assert [
        "outside the plan: no partition changed since it was made",
        "the configuration of 1 topic changed since it was made: kept min.insync.replicas 1 → 2",
        CONFIG_MEANING,
    ] == said(seen)


def test_many_keys_are_counted() -> None:
    """If many keys changed, the first are named and the others counted, in one line without control characters."""
    keys = [f"k.{at}\x1b" for at in range(9)]
    first, second = (tuple((key, value) for key in keys) for value in "ab")
    seen = compare_states(configured(effective=first), found(effective=second))

    assert said(seen)[1].endswith("kept k.0� a → b, kept k.1� a → b, kept k.2� a → b, and 6 more keys")

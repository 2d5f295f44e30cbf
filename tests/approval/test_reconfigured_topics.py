"""Configuration of topics that isn't as a plan found it: told as far as both sides tell it, whoever's it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_changed_since import now, plan, said

from planner.approval.changed_since import CONFIG_MEANING, Reconfigured, reconfigured, since
from planner.approval.cluster_now import Now
from planner.model.cluster import Config

ONE, TWO = (("min.insync.replicas", "1"),), (("min.insync.replicas", "2"),)
KEPT = (("retention.ms", "5"),)


def found(*, own: Config = (), effective: Config = (), defaults: Config = ()) -> Now:
    """The cluster as the plan found it, `kept` with this configuration, or brokers with that."""
    state = now()
    kept = replace(state.topics["kept"], config=own, effective_config=effective)
    return replace(state, topics={**state.topics, "kept": kept}, config_defaults=defaults)


def made(*, own: Config = (), effective: Config = (), defaults: Config = ()) -> dict[str, Any]:
    """The plan that found `kept` so."""
    document = plan()
    row = {**document["topics"][0], "name": "kept", "config": dict(own), "effective_config": dict(effective)}
    cluster = {**document["cluster"], "config_defaults": dict(defaults)}
    return {**document, "topics": [row], "cluster": cluster}


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
    """In force, a topic's own, or inherited; a throttle passes; where one side tells nothing, nothing is said."""
    assert tuple(Reconfigured("kept", *each) for each in expected) == reconfigured(made(**then), found(**today))


def test_changed_configuration_is_a_change_outside_the_plan() -> None:
    """Said behind what became of partitions, and enough for --strict-state to refuse."""
    seen = since(made(effective=ONE), found(effective=TWO))

    assert seen is not None
    assert seen.changed
    assert [
        "outside the plan no partition changed since it was made",
        "the configuration of 1 topic changed since it was made: kept min.insync.replicas 1 → 2",
        CONFIG_MEANING,
    ] == said(seen)


def test_many_keys_are_counted() -> None:
    """The first are named, in one line without control characters."""
    keys = [f"k.{at}\x1b" for at in range(9)]
    first, second = (tuple((key, value) for key in keys) for value in "ab")
    seen = since(made(effective=first), found(effective=second))

    assert said(seen)[1].endswith("kept k.0� a → b, kept k.1� a → b, kept k.2� a → b, and 6 more keys")

"""Caps of replicas and leaders: from the broker, its class or the profile, and refused if they can't be kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import findings

from planner.inputs.spec.reading import load
from planner.inputs.spec.spec_document import PROFILES, REFUSED

SPEC = """\
version: 1
cluster:
  name: small
  {profile}
  broker_classes: {{low: {{max_replicas: 3}}}}
  brokers:
    - {{id: 1, rack: a, {one}}}
    - {{id: 2, rack: a, {two}}}
    - {{id: 3, rack: b, {three}}}
  topics:
    - {{name: clicks, partitions: [{{replicas: [1, 3]}}, {{replicas: [2, 3]}}]}}
    - {{name: kept, partitions: [{{replicas: [1, 3]}}, {{replicas: [1, 3]}}]}}
{rest}
"""


def spec(rest: str = "", *, profile: str = "profile: strimzi", **brokers: str) -> str:
    """Three brokers in two racks that hold 3, 1 and 4 of eight replicas; by default all have the class `low`."""
    capacities = {name: brokers.get(name, "class: low") for name in ("one", "two", "three")}
    return SPEC.format(rest=rest, profile=profile, **capacities)


def capped(replicas: int) -> str:
    """A capacity with a cap on replicas."""
    return f"capacity: {{max_replicas: {replicas}}}"


FOUR = {"one": capped(4), "two": capped(4), "three": capped(4)}
CASES = [
    ("unknown", spec(profile="profile: msk.m7g.larg", **FOUR), "4:3 cluster.profile", "did you mean 'msk.m7g.large'"),
    (
        "express",
        spec(profile="profile: msk.express.m7g.large", **FOUR),
        "4:3 cluster.profile",
        "Express brokers itself",
    ),
    (
        "no_matter",
        spec(one="capacity: {max_replicas: 4, max_leaders: 4}", two=capped(4), three=capped(4)),
        "7:52 cluster.brokers[0].capacity.max_leaders",
        "4 has no effect beside cluster.brokers[0].capacity.max_replicas (7:35) of 4; allowed: less than that",
    ),
    (
        "too_little_in_all",
        spec("rack_aware: disabled", one=capped(2), two=capped(1), three=capped(4)),
        "7:35 cluster.brokers[0].capacity.max_replicas",
        "the brokers that stay or join have room for 7 replicas, and there are 8; allowed: higher caps",
    ),
    (
        "too_few_leaders",
        spec(**dict.fromkeys(("one", "two", "three"), "capacity: {max_leaders: 1}")),
        "7:35 cluster.brokers[0].capacity.max_leaders",
        "the brokers that stay or join have room for 3 leaders, and there are 4",
    ),
    (
        "too_little_in_a_rack",
        spec(one=capped(4), two=capped(4)),
        "5:26 cluster.broker_classes.low.max_replicas",
        "the brokers of rack 'b' have room for 3 replicas, and the rack rule puts 4 there",
    ),
    (
        "what_may_not_move",
        spec("topics: {exclude: [kept]}", one=capped(1), two=capped(4), three=capped(4)),
        "7:35 cluster.brokers[0].capacity.max_replicas",
        "broker 1 holds 2 replicas that may not move by topics.exclude (13:10), above 1; allowed: a higher cap",
    ),
    (
        "what_is_far",
        spec("topics: {on_brokers: [2]}", one=capped(1), two=capped(4), three=capped(4)),
        "7:35 cluster.brokers[0].capacity.max_replicas",
        "broker 1 holds 3 replicas that may not move by topics.on_brokers (13:10), above 1; allowed: a higher cap",
    ),
    (
        "what_is_not_moved",
        spec("changes: {rebalance: leaders}", one=capped(2), two=capped(4), three=capped(4)),
        "7:35 cluster.brokers[0].capacity.max_replicas",
        "broker 1 holds 3 replicas, above 2, and changes.rebalance (13:11) lets none leave; allowed: a higher cap",
    ),
]


def test_brokers_may_be_sized_that_have_no_room(tmp_path: Path) -> None:
    """A spec with `sizing` asks how many brokers it takes, so today's need no room for all replicas."""
    full = spec("rates: [{topics: '*', bytes_in: 1MB/s}]\nsizing: {brokers_per_rack: 1..3}", two=capped(1))
    assert not any("have room for" in each.message for each in findings(tmp_path, full))


@pytest.mark.parametrize(("text", "place", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_fault_is_found_before_planning(text: str, place: str, said: str, tmp_path: Path) -> None:
    """One fault gives one finding, at the cap, with the other place involved."""
    (found,) = findings(tmp_path, text)
    assert place == f"{found.place.line}:{found.place.column} {found.key}"
    assert said in found.message


def test_a_broker_has_its_own_cap_or_its_class_or_the_profile_s(tmp_path: Path) -> None:
    """A broker's own cap counts first, then its class's, then the profile's; a replacement has the old broker's."""
    path = tmp_path / "s.yaml"
    path.write_text(
        spec(
            "changes: {replace_brokers: {2: 9}}",
            one="capacity: {max_replicas: 9, max_leaders: 5}",
            three="log_dirs: [/a]",
        )
    )
    read = load(path)
    caps = {each.id: (each.max_replicas, each.max_leaders) for each in read.cluster.brokers + read.changes.add_brokers}
    assert {1: (9, 5), 2: (3, None), 3: (10_000, None), 9: (3, None)} == caps


def test_no_platform_is_both_known_and_refused() -> None:
    """No profile is also a refused platform, and the smallest published figure is 300."""
    assert not [name for name in PROFILES for begins in REFUSED if name.startswith(begins)]
    assert 300 == min(PROFILES.values())

"""The benchmark's cases are the same bytes everywhere, and valid input."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pytest

from benchmarks.cases import CASES, BenchCase, make, to_spec
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow

DIGESTS = [
    ("expand-small", "public", "083f3e4d2446d094620b622bf9c61ae9d19f7f06348cf7286a6f3b5ffa7f87e1"),
    ("expand-mid", "public", "1058819356d354d210e3ead8651b856291f61d64004a2b36a48102d3d89771de"),
    ("raise-rf", "public", "b45388cf13c2f7d6eddd80cd6f942e505aea2b1d892afde32605919bb16432e7"),
    ("add-rack", "public", "e640d35a06301dceb6f846e17c8f88c5f9337f307c9abd060c8d57d2de4bd094"),
    ("decommission", "public", "a495cf4cd52e2497a48bdbce262da73c8f23186b5eaa08d3916fa53737e8f2d2"),
    ("skewed-sizes", "public", "7cbd71a6c9f7d2ae26fac7b559acfdcafc892a8e067b2a5d257c4fe8a4ce0c7a"),
    ("no-racks", "public", "884eeea538309fc979b1388160a9a3bc29b5081a0c114a7532f44d3aa1caced3"),
    ("add-rack", "another", "6ab9546aefde0403b2e154484e1c52452d4cac7a12e36d65e0056d4257f82aa1"),
    ("expand-big", "public", "c45c22a6ac0eb2ec351a15423a493a6f631917de1a4c8cd6b8fd836411db8d5a"),
]


def dump(case: BenchCase) -> dict[str, Any]:
    """A case as plain JSON values, with one object for each partition."""
    names = case.topic_names
    rows = zip(
        case.topic_of.tolist(),
        case.partition_ids.tolist(),
        case.replicas.tolist(),
        case.size_bytes.tolist(),
        strict=True,
    )
    return {
        "name": case.name,
        "brokers_before": [{"id": broker.id, "rack": broker.rack} for broker in case.brokers_before],
        "brokers_after": [{"id": broker.id, "rack": broker.rack} for broker in case.brokers_after],
        "target_rf": case.target_rf,
        "partitions": [{"topic": names[t], "partition": i, "replicas": r, "size": size} for t, i, r, size in rows],
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed", "digest"), DIGESTS)
def test_a_case_is_the_same_everywhere(name: str, seed: str, digest: str) -> None:
    """Brokers, replicas and sizes never change, so that figures of different versions can be compared."""
    canonical = json.dumps(dump(make(name, seed)), sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_names() -> None:
    """There are nine cases. Any other name raises KeyError."""
    assert 9 == len(set(CASES))
    with pytest.raises(KeyError):
        make("expand-tiny")


def test_seeds_give_other_clusters() -> None:
    """Another seed gives another cluster by the same recipe."""
    public, other = make("no-racks"), make("no-racks", "other")
    assert public.brokers_before == other.brokers_before
    assert public.size_bytes.tolist() != other.size_bytes.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "huge"])
def test_spec_is_the_case(name: str) -> None:
    """The problem built from a case's spec has its brokers, replicas, sizes and replication factors."""
    case = make(name)
    problem = build(to_spec(case))
    assert [broker.id for broker in case.brokers_after] == problem.broker_ids[problem.targets].tolist()
    assert case.replicas.tolist() == problem.broker_ids[problem.replicas].tolist()
    assert problem.replicas[:, 0].tolist() == problem.leaders.tolist()
    assert case.size_bytes.tolist() == problem.size_bytes.tolist()
    assert case.topic_of.tolist() == problem.topic_of.tolist()
    factor = case.target_rf or case.replicas.shape[1]
    assert {factor} == set(np.unique(problem.replication_factors).tolist())


def test_spec_of_added_and_removed_brokers() -> None:
    """Added brokers have racks, here a new one. Removed brokers are named by id."""
    add, remove = to_spec(make("add-rack")).changes, to_spec(make("decommission")).changes
    assert tuple(Broker(broker, "r2") for broker in (108, 109, 110, 111)) == add.add_brokers
    assert () == add.remove_brokers
    assert ((), (108, 109)) == (remove.add_brokers, remove.remove_brokers)


def test_spec_of_a_raised_replication_factor() -> None:
    """Every topic's factor is raised, but only if the case says so."""
    assert (ReplicationFactorRow("*", 3),) == to_spec(make("raise-rf")).changes.set_replication_factor
    assert () == to_spec(make("expand-small")).changes.set_replication_factor

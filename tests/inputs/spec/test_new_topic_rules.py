"""`create_topics` and `add_partitions` as a spec states them, and what may move beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import SOUND

from planner.inputs.spec.reading import load
from planner.model.spec import NewPartitions, Spec


def loaded(folder: Path, changes: str, more: str = "") -> Spec:
    """The sound spec with these changes."""
    path = folder / "s.yaml"
    path.write_text(f"{SOUND}changes: {{{changes}}}\n{more}", encoding="utf-8")
    return load(path)


CREATE = "create_topics: [{name: r, partitions: 2, replication_factor: 1}]"
ADD = "add_partitions: [{topic: orders, partitions: 6}]"


def test_topics_to_create(tmp_path: Path) -> None:
    """Configuration is text as Kafka writes it, amounts are integers."""
    stated = "config: {retention.ms: 86400000, preallocate: true}, size: 2GiB"
    spec = loaded(tmp_path, f"create_topics: [{{name: r.v2, partitions: 12, replication_factor: 3, {stated}}}]")

    config = (("preallocate", "true"), ("retention.ms", "86400000"))
    assert (NewPartitions("r.v2", 0, 12, 3, config, 2 << 30),) == spec.changes.new_partitions


def test_partitions_to_add(tmp_path: Path) -> None:
    """They go on from today's partitions, with the replication factor of the first one."""
    spec = loaded(tmp_path, ADD)

    assert (NewPartitions("orders", 2, 6, 3),) == spec.changes.new_partitions


def test_variants_have_their_own(tmp_path: Path) -> None:
    """A variant's new partitions are those of its own changes."""
    spec = loaded(tmp_path, CREATE, f"sweep: {{variants: [{{name: b, changes: {{{ADD}}}}}]}}\n")

    assert (NewPartitions("orders", 2, 6, 3),) == spec.sweep.variants[0].changes.new_partitions
    assert "none" == spec.sweep.variants[0].changes.rebalance


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (CREATE, "none"),
        (f"{CREATE}, {ADD}", "none"),
        ("replace_brokers: {3: 9}", "none"),
        ("replace_brokers: {3: 9}, add_brokers: [{id: 9, rack: c}]", "none"),
        ("replace_brokers: {3: 9}, add_brokers: [{id: 8, rack: c}]", "all"),
        (f"{CREATE}, add_brokers: [{{id: 9, rack: c}}]", "all"),
        (f"{CREATE}, rebalance: all", "all"),
        (f"{ADD}, rebalance: leaders", "leaders"),
        ("create_topics: []", "all"),
        ("set_racks: {3: d}", "all"),
        ("", "all"),
    ],
)
def test_what_may_move_where_nothing_is_said(tmp_path: Path, changes: str, expected: str) -> None:
    """Who asks for new partitions or for replacements alone doesn't ask for moves."""
    assert expected == loaded(tmp_path, changes).changes.rebalance


def test_a_factor_that_stays_is_no_conflict(tmp_path: Path) -> None:
    """Partitions are added with today's factor: a change to just that one may stand beside."""
    factors = 'set_replication_factor: [{topics: "*", replication_factor: 3}]'

    assert 6 == loaded(tmp_path, f"{ADD}, {factors}").changes.new_partitions[0].count

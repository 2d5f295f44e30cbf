"""Sections of a spec as values: `execution`, what is stated, what `none` rules out, and which limits have defaults."""

from __future__ import annotations

import pytest

from planner.inputs.spec.sections import execution
from planner.inputs.yaml_source import read_yaml
from planner.model.spec import UNSTATED, BatchRules, Execution

THROTTLE, DURATION, MOVES, REPLICAS, ELECTIONS = UNSTATED.unset


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", UNSTATED),
        ("execution: {}", UNSTATED),
        ("execution: {throttle: none, batches: none}", Execution()),
        ("execution: {throttle: 5MB/s, batches: none}", Execution(5_000_000)),
        ("execution: {throttle: none}", Execution(unset=(DURATION, MOVES, REPLICAS, ELECTIONS))),
        ("execution: {batches: none, kafka_bin_dir: /k}", Execution(kafka_bin_dir="/k", unset=(THROTTLE,))),
    ],
)
def test_only_none_rules_out_a_throttle_and_batches(text: str, wanted: Execution) -> None:
    """Whatever else is left out has its default."""
    assert wanted == stated(text)


@pytest.mark.parametrize(
    ("batches", "rules", "unset"),
    [
        ("bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: 4", BatchRules(moves_per_broker=4), (REPLICAS, ELECTIONS)),
        ("duration: 2h", BatchRules(seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: 2h, bytes: 1GB", BatchRules(bytes=10**9, seconds=7_200), (MOVES, REPLICAS, ELECTIONS)),
        ("duration: none", BatchRules(), (REPLICAS, ELECTIONS)),
        ("duration: none, bytes: 1GB", BatchRules(bytes=10**9), (MOVES, REPLICAS, ELECTIONS)),
        ("bytes: none", BatchRules(), (DURATION, MOVES, REPLICAS, ELECTIONS)),
        ("moves_per_broker: none", BatchRules(), (DURATION, REPLICAS, ELECTIONS)),
        ("replicas_per_partition: none", BatchRules(), (DURATION, MOVES, ELECTIONS)),
        ("replicas_per_partition: 2", BatchRules(replicas_per_partition=2), (DURATION, MOVES, ELECTIONS)),
        ("elections: none", BatchRules(), (DURATION, MOVES, REPLICAS)),
        ("elections: 50", BatchRules(elections=50), (DURATION, MOVES, REPLICAS)),
    ],
)
def test_each_limit_has_a_default_of_its_own(batches: str, rules: BatchRules, unset: tuple[str, ...]) -> None:
    """But a batch whose size is stated in bytes or replicas isn't limited in time, too."""
    found = stated(f"execution: {{throttle: none, batches: {{{batches}}}}}")
    assert (rules, unset) == (found.batches, found.unset)


def stated(text: str) -> Execution:
    """What a text says of `execution`."""
    return execution(read_yaml(f"version: 1\n{text}\n", "spec.yaml"))

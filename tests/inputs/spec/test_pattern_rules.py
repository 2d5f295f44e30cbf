"""Patterns of topics: one that matches nothing is an error wherever it stands, and so is one that can't matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.inputs.spec.reading import load
from planner.model.errors import SpecError

SPEC = """\
version: 1
cluster:
  name: n
  brokers: [{{id: 1}}, {{id: 2}}, {{id: 3}}]
  topics:
    - {{name: orders, partitions: [{{replicas: [1, 2], size: 5}}]}}
    - {{name: order-items, partitions: [{{replicas: [2, 1], size: 5}}]}}
    - {{name: logs, partitions: [{{replicas: [1], size: 7}}]}}
{rates}changes:
  add_brokers: [{{id: 4}}]
{rest}"""


def refused(folder: Path, rest: str, rates: str = "") -> str:
    """What is said of a spec with these lines; nothing where it is taken."""
    (folder / "s.yaml").write_text(SPEC.format(rest=rest, rates=rates), encoding="utf-8")
    try:
        load(folder / "s.yaml")
    except SpecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("rest", "path"),
    [
        ("topics: {{include: [{0}]}}\n", "topics.include[0]"),
        ('topics: {{include: ["*", {0}]}}\n', "topics.include[1]"),
        ("topics: {{exclude: [{0}]}}\n", "topics.exclude[0]"),
        ("growth: [{{topics: {0}, per_month: 4%}}]\n", "growth[0].topics"),
        (
            "sweep: {{scenarios: {{growth: [{{topics: {0}, factor: 2.0}}]}}}}\n",
            "sweep.scenarios.growth[0].topics",
        ),
        ("consumers: [{{group: g, assignor: range, members: 2, topics: [{0}]}}]\n", "consumers[0].topics[0]"),
        (
            "consumers: [{{group: g, assignor: range, topics: [logs], members: [{{id: c, topics: [{0}]}}]}}]\n",
            "consumers[0].members[0].topics[0]",
        ),
        (
            "  set_replication_factor: [{{topics: {0}, replication_factor: 2}}]\n",
            "changes.set_replication_factor[0].topics",
        ),
        (
            "sweep: {{variants: [{{name: v, changes: {{set_replication_factor: "
            "[{{topics: {0}, replication_factor: 2}}]}}}}]}}\n",
            "sweep.variants[0].changes.set_replication_factor[0].topics",
        ),
    ],
)
def test_a_pattern_that_matches_nothing(rest: str, path: str, tmp_path: Path) -> None:
    """The place, the pattern, the name that it may have meant, and what there is."""
    said = refused(tmp_path, rest.format("ordrs"))
    assert f"{path}: 'ordrs' matches no topic; did you mean 'orders' or 'order-items'? allowed: " in said
    assert f"{path}: 'x?*' matches no topic; allowed: " in refused(tmp_path, rest.format('"x?*"'))
    assert "" == refused(tmp_path, rest.format("orders"))


def test_rates_that_match_nothing(tmp_path: Path) -> None:
    """They stand in the cluster."""
    rates = "  rates: [{{topics: {0}, bytes_in: 1MB/s}}]\n"
    said = refused(tmp_path, "", rates.format("ordrs"))
    assert "cluster.rates[0].topics: 'ordrs' matches no topic; did you mean 'orders' or 'order-items'?" in said
    assert "" == refused(tmp_path, "", rates.format("orders"))


@pytest.mark.parametrize(
    ("patterns", "late"),
    [
        (("order*", "orders", "*"), 1),
        (("orders", "order-items", "order*"), 2),
        (("orders", "orders"), 1),
        (("*", "logs"), 1),
        (("orders", "order*", "*"), None),
    ],
)
def test_an_entry_that_comes_too_late(patterns: tuple[str, ...], late: int | None, tmp_path: Path) -> None:
    """Of growth and rates the first that matches counts: one whose topics are all taken would never count."""
    growth = ", ".join(f'{{topics: "{each}", per_month: 4%}}' for each in patterns)
    rates = ", ".join(f'{{topics: "{each}", bytes_in: 1MB/s}}' for each in patterns)
    found = [refused(tmp_path, f"growth: [{growth}]\n"), refused(tmp_path, "", f"  rates: [{rates}]\n")]
    for said, path in zip(found, ("growth", "cluster.rates"), strict=True):
        if late is None:
            assert "" == said
        else:
            assert f"{path}[{late}].topics: '{patterns[late]}' matches only topics that entries above it match" in said
            assert said.count("\n") == 0

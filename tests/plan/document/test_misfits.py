"""Why a JSON value isn't a plan: place, value, and what is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from golden_plans import GOLDEN, changed, golden

from planner.plan.document.misfits import misfits

EXPAND = golden(next(path for path in GOLDEN if path.parent.name == "expand"))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("partitions", 0, "replicas", 1), "4", '$.partitions[0].replicas[1] is "4"; allowed: integer'),
        (("partitions", 0, "replicas", 1), True, "$.partitions[0].replicas[1] is true; allowed: integer"),
        (("partitions", 0, "replicas", 1), 1.0, "$.partitions[0].replicas[1] is 1.0; allowed: integer"),
        (("partitions", 0, "replicas"), [], "$.partitions[0].replicas is []; allowed: at least 1 items"),
        (("partitions", 0, "partition"), -1, "$.partitions[0].partition is -1; allowed: at least 0"),
        (("partitions", 0, "topic"), "", '$.partitions[0].topic is ""; allowed: at least 1 characters'),
        (("brokers", 0, "id"), 2**31, "$.brokers[0].id is 2147483648; allowed: at most 2147483647"),
        (
            ("partitions", 0, "size_bytes"),
            2**63,
            "$.partitions[0].size_bytes is 9223372036854775808; allowed: numbers of at most 64 bits",
        ),
        (("terms", 0, "plan"), "1", '$.terms[0].plan is "1"; allowed: integer or number or null'),
        (("terms", 0, "plan"), 1e300, "$.terms[0].plan is 1e+300; allowed: numbers of at most 64 bits"),
        (("partitions", 0, "size_bytes"), ..., "$.partitions[0].size_bytes is missing; allowed: bytes of one replica"),
        (("rack_aware",), "yes", '$.rack_aware is "yes"; allowed: boolean'),
        (("changes", "rebalance"), "some", '$.changes.rebalance is "some"; allowed: all, leaders, none'),
        (("bound", "sha256"), "ab", '$.bound.sha256 is "ab"; allowed: text that matches ^[0-9a-f]{64}$'),
        (("changes", "set_racks"), {"x": "a"}, '$.changes.set_racks.x is "x"; allowed: text that matches ^[0-9]+$'),
        (("topics", 0, "config"), {"retention.ms": 1}, "$.topics[0].config.retention.ms is 1; allowed: string"),
        (("limits",), {"a": 1}, '$.limits is {"a": 1}; allowed: array'),
        (("resumes",), None, "$.resumes is null; allowed: the interrupted plan that this one finishes; only in such a"),
        (("cluster", "x\n\u202e"), 1, r"$.cluster.x\n\u202e is unknown; allowed: name, bootstrap_servers, sizes_known"),
    ],
)
def test_a_misfit_says_where_what_and_what_may_be(path: tuple[Any, ...], value: Any, said: str) -> None:
    """The value as JSON has it, and what a person can do about it."""
    (found,) = misfits(changed(EXPAND, path, value))

    assert str(found).startswith(said)


def test_long_values_and_names_are_cut() -> None:
    """A message is read by a person."""
    found = [*misfits(EXPAND | {"headline": ["x" * 1_000], "y" * 1_000: 1})]

    assert 2 == len(found)
    assert all(len(each.path) < 80 and len(each.seen) < 80 for each in found)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_nothing_is_found_against_a_plan(path: Any) -> None:
    """The golden ones."""
    assert [] == [*misfits(golden(path))]

"""A plan document against its schema: where it doesn't fit, what is there, and what may be."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from plan_documents import change, document

from planner.model.errors import StalePlanError
from planner.plan.build import FORMAT_VERSION, check_document, plan_id
from planner.plan.schema_misfits import misfits

MANY = 1_000


def plan(**top: Any) -> dict[str, Any]:
    """A small plan with its own id."""
    made = document([change("a", 0, [1, 9], [1, 4])], **{"format_version": FORMAT_VERSION, **top})
    return json.loads(json.dumps(made | {"plan_id": plan_id(made)}))


def long() -> dict[str, Any]:
    """A plan with so many partitions that not each is held against the schema."""
    return document([change("a", at, [1, 9], [1, 4]) for at in range(MANY)], format_version=FORMAT_VERSION)


def changed(made: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    """A document with another value at a path; `...` takes the key away."""
    copy = deepcopy(made)
    at = copy
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


def test_a_plan_of_ours_fits() -> None:
    """Short and long ones."""
    assert [] == list(misfits(plan()))
    assert [] == list(misfits(long()))
    check_document(plan(), "plan.json")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("partitions", 0, "replicas", 1), "4", '$.partitions[0].replicas[1] is "4"; allowed: integer'),
        (("partitions", 0, "replicas"), [1, 1], "$.partitions[0].replicas is [1, 1]; allowed: each once"),
        (("partitions", 0, "partition"), -1, "$.partitions[0].partition is -1; allowed: at least 0"),
        (("partitions", 0, "size_bytes"), ..., "$.partitions[0].size_bytes is missing; allowed: bytes of one replica"),
        (("rack_aware",), "yes", '$.rack_aware is "yes"; allowed: boolean'),
        (("changes", "rebalance"), "some", '$.changes.rebalance is "some"; allowed: all, leaders, none'),
        (("bound", "sha256"), "ab", '$.bound.sha256 is "ab"; allowed: text that matches ^[0-9a-f]{64}$'),
        (("batches", 0, "extra"), 1, "$.batches[0].extra is unknown; allowed: number, partitions, elect"),
        (("limits",), {"a": 1}, '$.limits is {"a": 1}; allowed: array'),
    ],
)
def test_what_does_not_fit_is_told_with_its_json_path(path: tuple[Any, ...], value: Any, said: str) -> None:
    """The value seen and what is allowed, before anything is said of the id."""
    with pytest.raises(StalePlanError) as refused:
        check_document(changed(plan(), *path, value=value), "p/plan.json")

    assert str(refused.value).startswith(f"p/plan.json: {said}")


def test_a_row_of_another_shape_is_found_in_a_long_list() -> None:
    """Its own number is told, not that of its shape."""
    found = changed(long(), "partitions", 777, "replicas", value=[1, None])

    assert ["$.partitions[777].replicas[1] is null; allowed: integer"] == list(map(str, misfits(found)))


def test_minor_versions_may_have_fewer_or_more_keys() -> None:
    """Older ones lack what came later, newer ones have what we don't know: both are read."""
    ours = int(FORMAT_VERSION.split(".")[1])
    older = changed(plan(format_version=f"1.{ours - 1}"), "budget", value=...)
    newer = plan(format_version=f"1.{ours + 1}", from_the_future=1)

    check_document(older | {"plan_id": plan_id(older)}, "plan.json")
    check_document(newer, "plan.json")
    with pytest.raises(StalePlanError, match=r"\$\.from_the_future is unknown"):
        check_document(plan(from_the_future=1), "plan.json")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.0", "format_version is '2.0' of a newer planner, allowed: 1.x; install the release that made the plan"),
        ("0.9", "format_version is '0.9', allowed: 1.x"),
        ("1", "format_version is '1', allowed: 1.x"),
        (1.4, "format_version is 1.4, allowed: 1.x"),
        (None, "format_version is None, allowed: 1.x"),
    ],
)
def test_other_major_versions_are_refused_in_a_sentence(version: Any, said: str) -> None:
    """A newer one says what to do."""
    with pytest.raises(StalePlanError) as refused:
        check_document(plan(format_version=version), "plan.json")

    assert f"plan.json: {said}" == str(refused.value)


@pytest.mark.parametrize("value", [[], "plan", None, 3])
def test_what_is_no_document_is_refused(value: Any) -> None:
    """JSON of another kind."""
    with pytest.raises(StalePlanError, match="isn't a plan"):
        check_document(value, "plan.json")

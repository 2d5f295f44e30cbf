"""What `diff` says of settings that have no line of their own. Nothing that two plans have otherwise is hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from folders import TESTS
from plan_documents import change, document
from test_plan_diff import A0, A1, diff, lines, plan, valid

from planner.approval import plan_diff
from planner.approval.plan_diff import figure_rows, sections
from planner.approval.plan_settings import WORKED_OUT
from planner.plan.document.plan_types import Plan

CASES = (
    "adopt-generate",
    "apart",
    "broker-sets",
    "busiest-hours",
    "caps",
    "log-dirs",
    "new-topics",
    "what-if",
    "who-leads",
)
# One of these is another valid value of any text.
TEXTS = ("more", "none", "1", "2%", "all", "racks", "leaders", "rack", "stays", "added", "leader", "makespan", "flow")


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Each value of a document that isn't a list or a mapping, with the keys that lead to it."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from leaves(each, (*path, key))
    if not isinstance(value, dict | list):
        yield path, value


def others(value: Any) -> Iterator[Any]:
    """Values that may be valid instead of this one."""
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 10**6, value + 1, value - 1)
        case str():
            yield from (f"{value}x", "ff" * 32, value[::-1], "2026-11-20T10:00:07Z", *TEXTS)
        case None:
            yield from (7, True, "more", ["more"])


def changed(whole: dict[str, Any], path: tuple[str | int, ...], value: Any) -> Plan | None:
    """The plan with another value in this place; None if no other one is valid there."""
    inner: Any = deepcopy(whole)
    top = inner
    for key in path[:-1]:
        inner = inner[key]
    for each in others(value):
        inner[path[-1]] = each
        try:
            return msgspec.convert(top, Plan)
        except msgspec.ValidationError:
            continue
    return None


def test_nothing_that_differs_is_hidden() -> None:
    """If one value of a plan is another one, `diff` says something, unless the value is worked out from the rest."""
    seen, hidden = set[str](), set[str]()
    for case in CASES:
        whole = json.loads((TESTS / "cases" / case / "plan.json").read_text(encoding="utf-8"))
        old = msgspec.convert(whole, Plan)
        for path, value in leaves(whole):
            name = ".".join(key for key in path if isinstance(key, str))
            # In the first entry of a list and in a later one, where there is one.
            place = f"{name} {[min(key, 1) for key in path if isinstance(key, int)][:1]}"
            if place in seen or any(f"{name}.".startswith(f"{each}.") for each in WORKED_OUT):
                continue
            seen.add(place)
            if (new := changed(whole, path, value)) is not None and new != old:
                found = plan_diff.diff(old, new)
                said = [title for title, _, _ in sections(found)] + [row[0] for row in figure_rows(found)]
                hidden |= set() if said else {name}
    assert {"plan_id"} == hidden
    assert 150 < len(seen)


@pytest.mark.parametrize(
    ("section", "values", "line"),
    [
        ("cluster", {"bootstrap_servers": ["h:1"]}, '["kafka-1:9092", "kafka-2:9092"] → ["h:1"]'),
        ("cluster", {"config_defaults": {"min.insync.replicas": "1"}}, 'min.insync.replicas: none → "1"'),
        ("execution", {"kafka_bin_dir": "/opt/other/bin"}, '"/opt/kafka/bin" → "/opt/other/bin"'),
    ],
)
def test_where_and_how_the_plan_runs(section: str, values: dict[str, Any], line: str) -> None:
    """Addresses, inherited configs and the folder of Kafka's tools are told with both values."""
    new = plan([A0], number=1)
    new[section] = {**new[section], **values}
    assert {"Other settings": [f"{section}.{next(iter(values))}: {line}"]} == lines(valid(diff(plan([A0]), new)))


def test_caps_of_brokers_and_rules_of_batches() -> None:
    """Caps are told by broker, and rules of batches by their key."""
    old, new = plan([A0]), plan([A0], number=1)
    new["brokers"] = [{**broker, "max_replicas": 9} if broker["id"] < 3 else broker for broker in new["brokers"]]
    new["execution"] = {**new["execution"], "batches": {**new["execution"]["batches"], "elections": 7}}
    before = json.dumps(old["execution"]["batches"]["elections"]).replace("null", "none")
    assert {
        "Other settings": [
            "brokers.max_replicas: 1: none → 9; 2: none → 9",
            f"execution.batches.elections: {before} → 7",
        ]
    } == lines(valid(diff(old, new)))


def test_other_steps_to_the_same_end() -> None:
    """Steps of a partition are told if it goes another way between the same lists, in the same batches."""
    whole = change("a", 0, [1, 2], [3, 4])
    ways = [[[change("a", 0, [1, 2], by)], [change("a", 0, by, [3, 4])]] for by in ([1, 3], [2, 4])]
    old, new = (document([whole], way, plan_id=f"{number:064x}") for number, way in enumerate(ways))
    steps = (f'[{{"replicas": {by}}}, {{}}]' for by in ([1, 3], [2, 4]))
    assert {"Other settings": [f"batches.partitions: a-0: {' → '.join(steps)}"]} == lines(valid(diff(old, new)))


def test_long_values_are_cut_to_where_they_differ() -> None:
    """Of long lists of addresses the first difference is shown, and of many partitions the rest is counted."""
    old, new = plan([A0]), plan([A0], number=1)
    for made, last in ((old, "x:1"), (new, "y:1")):
        made["cluster"] = {**made["cluster"], "bootstrap_servers": [*(f"h{at}:9092" for at in range(50)), last]}
    [line] = lines(diff(old, new))["Other settings"]
    assert ('"x:1"] → …' in line, line.endswith('"y:1"]'), len(line) < 120) == (True, True, True)
    parts = [[change("a", at, [1], [2], size=size) for at in range(12)] for size in (100, 101)]
    [line] = lines(valid(diff(plan(parts[0]), plan(parts[1], number=1))))["Other settings"]
    assert line.startswith("partitions.size_bytes: a-0: 100 → 101; ")
    assert line.endswith("a-9: 100 → 101; and 2 more")


def test_a_throttle_that_is_switched_off_is_none() -> None:
    """A plan without a throttle has none, and no time at it; both are known."""
    new = plan([A1], number=1)
    new["execution"] = {**new["execution"], "throttle_bytes_per_sec": None, "seconds_at_throttle": None}
    rows = {name: after for name, _, after, _ in figure_rows(valid(diff(plan([A1]), new)))}
    assert {"time at throttle": "none", "throttle": "none"} == rows

"""Alternatives: which there are, and the plan that is chosen from all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from clusters import balance_of, no_racks, spec_of
from jsonschema import Draft202012Validator

from planner.cli.main import main
from planner.model.cluster import Broker
from planner.model.document_fields import ReplicationFactorRow
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.file_reading import resource
from planner.model.spec import AIMS, Changes, Choice, Spec, Sweep, Variant
from planner.plan import build
from planner.plan.document.codec import as_json
from planner.sweep import choice
from planner.sweep.evaluate import run

ROWS = {"x": [(1, 2), (2, 3), (3, 1), (1, 2)], "y": [(1, 2), (1, 3)]}
SIZES = {"x": [10, 20, 30, 40], "y": [5, 6]}
ADD_4 = Changes(add_brokers=(Broker(4),))
ADD_5 = Changes(add_brokers=(Broker(4), Broker(5)))
DRAIN = Changes(remove_brokers=(3,))


def spec(changes: Changes, *others: Changes, rule: Choice | None = None, count: int = 60) -> Spec:
    """Three brokers; variants are named a, b, and so on."""
    named = tuple(Variant(name, each) for name, each in zip("abc", others, strict=False))
    sweep = Sweep(count, choice=rule or Choice(), variants=named)
    return spec_of(no_racks(1, 2, 3), ROWS, sizes=SIZES, changes=changes, sweep=sweep)


def swept(asked: Spec) -> tuple[choice.Swept, ...]:
    """All alternatives of a spec, swept in this process."""
    tried = choice.alternatives(asked)
    return choice.swept(tried, [run(each.problem, each.candidates) for each in tried])


def planned(asked: Spec) -> dict[str, Any]:
    """The plan chosen of all alternatives."""
    return as_json(build.planned(swept(asked)).plan)


def test_changes_is_one_of_the_alternatives() -> None:
    """`changes` is the first alternative, unless it is empty and there are variants; each has its own problem."""
    names = [each.name for each in choice.alternatives(spec(ADD_4, ADD_5, DRAIN))]
    assert ["changes", "a", "b"] == names
    assert ["a"] == [each.name for each in choice.alternatives(spec(Changes(), ADD_4))]
    assert ["changes"] == [each.name for each in choice.alternatives(spec(Changes()))]
    assert [4, 5] == [int(each.problem.targets.sum()) for each in choice.alternatives(spec(ADD_4, ADD_5))]


@pytest.mark.slow
def test_the_table_names_the_alternatives() -> None:
    """The table has every candidate of every alternative in order, together no more than asked for."""
    table = choice.scores(swept(spec(ADD_4, ADD_5)))
    assert "variant" == table.column_names[0]
    assert ["changes"] * 30 + ["a"] * 30 == table["variant"].to_pylist()
    assert [*range(30), *range(30)] == table["candidate"].to_pylist()


@pytest.mark.slow
def test_asked_takes_changes_and_compares() -> None:
    """`asked` gives the same plan as changes alone; variants are compared with it."""
    beside, alone = planned(spec(ADD_4, ADD_5)), planned(spec(ADD_4, count=30))
    assert alone["partitions"] == beside["partitions"]
    assert [] == alone["variants"]
    assert [("changes", 4, True, None), ("a", 5, False, None)] == [
        (each["name"], each["brokers"], each["chosen"], each["why_not"]) for each in beside["variants"]
    ]
    assert beside["bound"]["bytes_moved"] == beside["variants"][0]["bytes_moved"]
    assert planned(spec(ADD_5, count=30))["bound"]["bytes_moved"] == beside["variants"][1]["bytes_moved"]
    assert {"rule": "asked", "value": None, "variant": "changes"}.items() <= beside["choice"].items()


@pytest.mark.slow
def test_without_changes_the_cheapest_variant_is_taken() -> None:
    """Without changes, the ranking over all variants decides; the plan is that variant's."""
    found = [planned(spec(Changes(), *order)) for order in ((ADD_5, ADD_4), (ADD_4, ADD_5))]
    cheapest = min((5, ADD_5), (4, ADD_4), key=lambda each: planned(spec(each[1], count=30))["bound"]["bytes_moved"])
    assert {cheapest[0]} == {max(broker["id"] for broker in each["changes"]["add_brokers"]) for each in found}


def rows_of(asked: Spec) -> list[dict[str, Any]]:
    """Every valid plan with a proof, from all alternatives."""
    table = choice.scores(swept(asked)).to_pylist()
    return [
        row for row in table if not row["violations"] and (row["least_bytes"] >= 0 or row["strategy"] == "unchanged")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("most", [0, 20, 60, 1000])
def test_the_most_even_within_bytes(most: int) -> None:
    """Of all proven plans within the bytes, none is more even; the reason has the numbers."""
    asked = spec(ADD_4, ADD_5, rule=Choice("most_even_within_bytes", most))
    chosen = choice.choose(swept(asked))
    fitting = [row["imbalance_ppm"] for row in rows_of(asked) if row["bytes_moved"] <= most]
    assert chosen.row["bytes_moved"] <= most
    assert chosen.row["imbalance_ppm"] <= min(fitting)
    assert f"copies at most {most}".replace("1000", "1 kB") in chosen.reason


@pytest.mark.slow
@pytest.mark.parametrize("percent", [40, 80])
def test_the_fewest_bytes_within_an_imbalance(percent: int) -> None:
    """Of all proven plans that are even enough, none moves fewer bytes."""
    asked = spec(ADD_4, ADD_5, rule=Choice("fewest_bytes_within_imbalance", percent * 10_000))
    chosen = choice.choose(swept(asked))
    fitting = [row["bytes_moved"] for row in rows_of(asked) if row["imbalance_ppm"] <= percent * 10_000]
    assert chosen.row["imbalance_ppm"] <= percent * 10_000
    assert chosen.row["bytes_moved"] <= min(fitting)


@pytest.mark.slow
def test_a_chosen_plan_is_held_against_its_own_windows() -> None:
    """A plan chosen from the front states the windows that it was made for, not those asked for."""
    document = planned(spec(ADD_4, rule=Choice("most_even_within_bytes", 15)))
    assert document["balance"]["wanted"]["replicas"] == document["candidates"]["winner"]["replicas"]
    assert document["bound"]["bytes_moved"] <= 15
    assert 1 == sum(point["chosen"] for point in document["pareto"])


@pytest.mark.slow
def test_what_no_plan_keeps_is_refused() -> None:
    """If no plan keeps the rule, the error has the key, the value and the minimum: exit code 3."""
    asked = spec(DRAIN, rule=Choice("most_even_within_bytes", 1))
    least = min(row["bytes_moved"] for row in rows_of(asked))
    with pytest.raises(UnsafePlanError, match=f"most_even_within_bytes: 1 B is below .* allowed: at least {least} B"):
        planned(asked)


@pytest.mark.slow
def test_a_variant_without_a_plan_says_so() -> None:
    """A variant without a plan is compared with its reason; if changes has none, the error names variants with one."""
    broken = Changes(set_replication_factor=(ReplicationFactorRow("x", 1),))
    asked = spec(ADD_4, broken)
    topics = tuple(replace(each, config=(("min.insync.replicas", "2"),)) for each in asked.cluster.topics)
    asked = replace(asked, cluster=replace(asked.cluster, topics=topics))
    assert [None, "no candidate keeps every rule"] == [each["why_not"] for each in planned(asked)["variants"]]
    turned = replace(asked, changes=broken, sweep=replace(asked.sweep, variants=(Variant("a", ADD_4),)))
    with pytest.raises(InfeasibleError, match="variants that have a valid plan: a;"):
        planned(turned)


@pytest.mark.slow
def test_the_rule_says_the_aims_in_use() -> None:
    """The rule's words have the aims in the order of the ranking, with the named ones first."""
    text = choice.rule_text(("peak_disk",))
    assert (
        "bytes copied, peak disk, leaders changed, partitions touched, unevenness of copying, cross-rack bytes" in text
    )
    assert choice.rule_text(AIMS) == planned(spec(ADD_4))["candidates"]["rule"]


@pytest.mark.slow
def test_the_front_is_of_all_alternatives() -> None:
    """No point but the chosen one is beaten by another; each has its alternative, and a gap if it has a bound."""
    asked = replace(spec(ADD_4, ADD_5), balance=balance_of(1, 1, 1, "none", "50%"))
    points = planned(asked)["pareto"]
    kept = [point for point in points if not point["chosen"]]
    assert sorted(kept, key=lambda point: -point["imbalance_percent"]) == sorted(kept, key=lambda p: p["bytes_moved"])
    assert {point["variant"] for point in points} <= {"changes", "a"}
    for point in points:
        least = point["least_bytes_moved"]
        assert least is None or least <= point["bytes_moved"]
        assert (least is None) == (point["gap_percent"] is None)


@pytest.mark.slow
def test_one_command_plans_all_alternatives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`planner whatif` sweeps all alternatives together: the table, the plan and the screen have them."""
    file = tmp_path / "s.yaml"
    file.write_text(SPEC, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(file), "--out", str(tmp_path / "out"), "--engine", "local"])
    document = json.loads((tmp_path / "out" / "plan.json").read_text(encoding="utf-8"))

    assert 0 == ended.value.code
    table = pq.read_table(tmp_path / "out" / "candidates.parquet")
    assert ["four", "five"] == table["variant"].unique().to_pylist()
    assert ["four", "five"] == [each["name"] for each in document["variants"]]
    assert [] == [error.message for error in VALIDATOR.iter_errors(document)]
    # Twelve replicas of 100 bytes are 300 on each of four brokers, and 600 after doubling: more than the disk.
    assert [("all × 2", False)] == [(each["name"], each["feasible"]) for each in document["scenarios"]]
    assert {"disk_used"} == {each["window"] for each in document["scenarios"][0]["outside"]}
    assert "scenario: all × 2: disk used" in " ".join(capsys.readouterr().out.split())


VALIDATOR = Draft202012Validator(json.loads(resource("schemas", "plan.schema.json").read_text(encoding="utf-8")))
SPEC = """\
version: 1
cluster:
  name: small
  brokers: [{id: 1, capacity: {disk: 500B}}, {id: 2, capacity: {disk: 500B}}, {id: 3, capacity: {disk: 500B}}]
  topics:
    - name: x
      partitions:
        - {replicas: [1, 2], size: 100B}
        - {replicas: [2, 3], size: 100B}
        - {replicas: [3, 1], size: 100B}
        - {replicas: [1, 2], size: 100B}
        - {replicas: [2, 3], size: 100B}
        - {replicas: [3, 1], size: 100B}
sweep:
  candidates: 80
  variants:
    - {name: four, changes: {add_brokers: [{id: 4, capacity: {disk: 500B}}]}}
    - {name: five, changes: {add_brokers: [{id: 4, capacity: {disk: 500B}}, {id: 5, capacity: {disk: 500B}}]}}
  scenarios: {growth: [{topics: "*", factor: 2, name: "all × 2"}]}
"""

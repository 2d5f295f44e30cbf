"""Figures add up in every table of every output: racks are the sums of their brokers, brokers of their partitions.

The clusters have brokers that leave (empty or not), join, or have no rack, excluded topics, unknown sizes, budgets,
and every mode.
"""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import Any

import plan_documents
import pytest
from clusters import specs
from hypothesis import assume, given
from hypothesis import strategies as st
from plan_documents import typed
from properties import examples
from rich.console import Console

from planner.cli import one_spec
from planner.model.build_problem import build
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.spec import Budget, Monthly, Rate, ReportSections, Spec
from planner.plan.document.codec import as_json
from planner.report import markdown, terminal
from planner.sweep.budget_steps import first_step
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run
from planner.whatif.cluster_states import TODAY

MEASURES = ("replicas", "leaders", "size_bytes")


def added(spec: Spec, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with the sections that its spec's `report` asks for."""
    return as_json(one_spec.with_sections(spec, typed(plan)))


def plan_of(spec: Spec) -> dict[str, Any]:
    """The plan of a spec, or its first step; hypothesis rejects a spec without a plan."""
    problem = first_step(build(spec))
    try:
        return plan_documents.planned(
            spec, problem, run(problem, candidates(problem, replace(spec.sweep, candidates=12)))
        )
    except (InfeasibleError, UnsafePlanError):
        assume(False)
        raise


@st.composite
def wishes(draw: st.DrawFn) -> Spec:
    """A spec, sometimes with a budget, with brokers without a rack, or without sizes."""
    spec = draw(specs(rebalance=("all", "leaders", "racks", "none")))
    if draw(st.booleans()):
        spec = replace(spec, budget=Budget(replicas_moved=draw(st.integers(1, 6))))
    if draw(st.booleans()):
        bare = tuple(replace(each, rack=None if at == 0 else each.rack) for at, each in enumerate(spec.cluster.brokers))
        spec = replace(spec, cluster=replace(spec.cluster, brokers=bare))
    return replace(spec, cluster=replace(spec.cluster, sizes_known=draw(st.booleans())))


def lists_of(spec: Spec, plan: dict[str, Any]) -> dict[str, list[tuple[list[int], int]]]:
    """The replicas of every partition with its size, before and after."""
    changed = {(row["topic"], row["partition"]): row["replicas"] for row in plan["partitions"]}
    found: dict[str, list[tuple[list[int], int]]] = {"before": [], "after": []}
    for topic in spec.cluster.topics:
        for part in topic.partitions:
            found["before"].append((list(part.replicas), part.size_bytes))
            found["after"].append((changed.get((topic.name, part.id), list(part.replicas)), part.size_bytes))
    return found


@examples(40)
@given(wishes())
def test_brokers_are_the_sum_of_partitions_and_racks_of_brokers(spec: Spec) -> None:
    """Replicas and bytes of each broker, leaders in all; racks, and the brokers that are counted in them."""
    plan = plan_of(spec)
    for when, lists in lists_of(spec, plan).items():
        held = {row["id"]: row[when] for row in plan["brokers"]}
        for broker, load in held.items():
            sizes = [size for replicas, size in lists if broker in replicas]
            assert (len(sizes), sum(sizes)) == (load["replicas"], load["size_bytes"])
        if plan["racks"]:
            for measure in MEASURES:
                assert sum(load[measure] for load in held.values()) == sum(row[when][measure] for row in plan["racks"])
    left = {row["id"] for row in plan["brokers"] if row["role"] == "removed" and row["after"]["replicas"]}
    assert left == {row["id"] for row in (plan["unfinished"] or {"brokers": ()})["brokers"]}
    if plan["racks"]:
        stay = sum(row["role"] != "removed" for row in plan["brokers"]) + len(left)
        counted = [sum(row[key] for row in plan["racks"]) for key in ("brokers_before", "brokers_after")]
        assert [len(spec.cluster.brokers), stay] == counted


@examples(40)
@given(wishes())
def test_every_section_tells_the_same_figures(spec: Spec) -> None:
    """Terms, comparison, front, budget, batches: this plan, doing nothing, what is left."""
    plan = plan_of(spec)
    terms = {row["name"]: row for row in plan["terms"]}
    rows = {row["label"]: row for row in plan["compared"]}
    nothing, mine = rows["do nothing"], rows["this plan"]
    assert [mine | {"strategy": ""}] == [
        {key: row[key] for key in mine} | {"strategy": ""} for row in plan["pareto"] if row["chosen"]
    ]
    for name in ("replica_spread", "leader_spread", "topic_replica_spread", "replicas_moved", "leaders_changed"):
        assert (nothing[name], mine[name]) == (terms[name]["if_nothing_moves"], terms[name]["plan"])
    assert nothing["left_to_change"] == terms["left_to_change"]["if_nothing_moves"]
    waiting = plan["unfinished"]["partitions"] if plan["unfinished"] else 0
    assert waiting == mine["left_to_change"] == terms["left_to_change"]["plan"]
    assert plan["complete"] == (plan["unfinished"] is None) == (not plan["headline"].startswith("FIRST STEP ONLY"))
    assert sum(row["replicas_moved"] for row in plan["batches"]) == mine["replicas_moved"]
    sized = plan["cluster"]["sizes_known"]
    assert (plan["bound"]["bytes_moved"] if sized else None) == terms["bytes_moved"]["plan"]
    above = [row["plan"] for name, row in terms.items() if name.endswith("_above_share")]
    assert not sized or max(above) == mine["imbalance_percent"]


@examples(30)
@given(wishes())
def test_failures_tell_of_the_leaders_that_brokers_have(spec: Spec) -> None:
    """Whom a broker leads, another one leads when it fails, or nobody: as many as the brokers' table says, each time.

    Brokers that lead more then are as many more as there are leaders that moved.
    """
    plan = added(asked := replace(spec, report=ReportSections(failures=("brokers",))), plan_of(spec))
    leads = {row["id"]: {when: row[when]["leaders"] for when in ("before", "after")} for row in plan["brokers"]}
    # Whom nobody leads today, and a change moves all the same, nobody leads until a replica in sync is back.
    for row in plan["partitions"]:
        leads[row["replicas"][0]]["after"] -= row["leader_before"] is None
    partitions = sum(len(topic.partitions) for topic in asked.cluster.topics)
    for scenario in plan["failures"]["scenarios"]:
        for state in scenario["states"]:
            when = "before" if state["state"] == TODAY else "after"
            leaderless = partitions - sum(row[when] for row in leads.values())
            (failed,) = scenario["brokers"]
            assert state["leaders_moved"] + state["offline"] - leaderless == leads[failed][when]
            assert state["leaders_moved"] == sum(row["leaders"] for row in state["moved_to"])


@pytest.mark.slow
@examples(30)
@given(wishes(), st.integers(0, 500_000))
def test_growth_begins_with_what_brokers_hold_and_adds_up(spec: Spec, ppm: int) -> None:
    """Where nothing grows, each broker holds what the brokers' table says; all hold all replicas of all topics then."""
    assume(spec.cluster.sizes_known)
    for rate in (0, ppm):
        grows = replace(spec, report=ReportSections(growth_months=2), growth=Monthly(rates=(Rate("*", rate),)))
        plan = added(grows, plan_of(spec))
        held = {row["id"]: row for row in plan["brokers"]}
        for side, when in (("today", "before"), ("planned", "after")):
            then = {row["id"]: row[side]["size_bytes"] for row in plan["growth"]["brokers"]}
            if not rate:
                assert then == {broker: row[when]["size_bytes"] for broker, row in held.items()}
            elif all([topic["replication_factor"]] == topic["replication_factor_before"] for topic in plan["topics"]):
                copies = {topic["name"]: topic["replication_factor"] for topic in plan["topics"]}
                of_topics = (row["size_bytes_then"] * copies[row["topic"]] for row in plan["growth"]["topics"])
                assert sum(then.values()) == sum(of_topics)


@pytest.mark.slow
@examples(30)
@given(wishes())
def test_tables_for_people_add_up(spec: Spec) -> None:
    """The rack and broker tables of report.md, whose values are those of report.html, too."""
    plan = plan_of(spec)
    assume(plan["racks"])
    text = markdown.report(typed(plan))
    racks, brokers = (
        [[cells[column] for cells in rows(text, heading)] for column in ("Replicas", "Leaders")]
        for heading in ("**Racks, today → plan**", "**Brokers, today → plan**")
    )
    assert [totals(column) for column in racks] == [totals(column) for column in brokers]


@examples(30)
@given(wishes())
def test_the_screens_brokers_are_those_of_the_report(spec: Spec) -> None:
    """Replicas and leaders before and after, broker by broker; a screen shows few, but these have no more."""
    plan = plan_of(spec)
    assume(plan["partitions"])
    out = StringIO()
    terminal.show_plan(typed(plan), Console(file=out, width=200), detail="everything")
    shown = re.split(r"\n *Broker ", out.getvalue())[1].splitlines()[1:]
    count = r"(\d+(?: → \d+)?)"
    found = [re.match(rf" *(\d+) +\S+ +(?:(?:added|removed) +)?{count} +{count} ", line) for line in shown]
    told = rows(markdown.report(typed(plan)), "**Brokers, today → plan**")
    wanted = sorted((row["Broker"], row["Replicas"], row["Leaders"]) for row in told)
    assert wanted == sorted(match.groups() for match in found[: len(wanted)] if match)


def rows(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the table below a heading, each cell by its column's heading."""
    head, _, *lines = text.split(heading)[1].strip().split("\n\n")[0].splitlines()
    headings = [cell.strip() for cell in head.strip("|").split("|")]
    return [dict(zip(headings, (cell.strip() for cell in line.strip("|").split("|")), strict=True)) for line in lines]


def totals(column: list[str]) -> tuple[int, int]:
    """The sums before and after of cells, for example `74 → 54`, or `74` for both."""
    pairs = [[int(each) for each in cell.split(" → ")] for cell in column]
    return sum(pair[0] for pair in pairs), sum(pair[-1] for pair in pairs)

"""If sizes are unknown, no output states bytes: neither moved bytes nor bytes that a failure loses."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from io import StringIO
from typing import Any

import pytest
from clusters import no_racks, spec_of
from hypothesis import assume, given
from msgspec import structs
from plan_documents import typed
from properties import examples
from rich.console import Console
from test_totals import plan_of, wishes

from planner.approval import plan_diff
from planner.cli import one_spec, review, whatif_fleet
from planner.cli.one_spec import SpecJob, rendered_files
from planner.cli.whatif_fleet import FleetPlan
from planner.export.terraform_data_source import described
from planner.model.spec import ReportSections, Spec
from planner.plan.document.codec import as_json
from planner.report import choice_tables, markdown, terminal

# Rates are bytes too, but not stored bytes: a throttle is known even if sizes aren't.
BYTES = re.compile(r"(?<![\w.,])\d[\d.,]* ?(?:[kMGTPE]i?)?B(?![\w/])")


def added(spec: Spec, plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with the sections that its spec's `report` asks for."""
    return as_json(one_spec.with_sections(spec, typed(plan)))


def unsized(spec: Spec) -> Spec:
    """The spec without sizes; brokers' disks and networks are stated, and failures are asked for."""
    brokers = tuple(replace(each, disk_bytes=10**9, network_bytes_per_sec=10**6) for each in spec.cluster.brokers)
    cluster = replace(spec.cluster, sizes_known=False, brokers=brokers)
    topics = tuple(
        replace(topic, partitions=tuple(replace(part, size_bytes=0) for part in topic.partitions))
        for topic in cluster.topics
    )
    asked = ReportSections(failures=("brokers", "pairs"))
    return replace(spec, cluster=replace(cluster, topics=topics), report=asked)


def outputs(plan: dict[str, Any]) -> dict[str, str]:
    """Everything that is printed or written for people, by name."""
    console = Console(file=StringIO(), width=200)
    terminal.show_plan(typed(plan), console, detail="everything")
    row = whatif_fleet.summary(FleetPlan(SpecJob(spec=None, folder=None), typed(plan), ()))  # type: ignore[arg-type]
    terminal.show(whatif_fleet.view([row]), console)
    nothing = {**plan, "plan_id": "0" * 64, "partitions": [], "batches": []}
    difference = plan_diff.diff(typed(nothing), typed(plan))
    terminal.show(review.diff_view(difference), console)
    files_made = rendered_files(typed(plan)).items()
    files = {name: content.decode() for name, content in files_made if name.endswith((".yml", ".svg", ".md", ".html"))}
    return files | {
        "screen": console.file.getvalue(),  # type: ignore[attr-defined]
        "report.html": unescape(re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", files["report.html"], flags=re.S)),
        "fleet.md": markdown.render(whatif_fleet.view([row])),
        "diff.md": markdown.render(review.diff_view(difference)),
        "external": described(typed(plan))["headline"],
    }


@pytest.mark.slow
@examples(6)  # Each draws all plots.
@given(wishes())
def test_no_output_tells_bytes_of_what_nobody_knows(spec: Spec) -> None:
    """On a screen, in reports, plots, differences and playbooks."""
    asked = unsized(spec)
    plan = added(asked, plan_of(asked))
    assume(plan["partitions"])
    for name, text in outputs(plan).items():
        assert [] == BYTES.findall(text), name


def test_what_a_failure_costs_in_bytes_is_unknown() -> None:
    """What lost partitions and the brokers' room are in bytes is unknown, not 0."""
    spec = unsized(spec_of(no_racks(1, 2), {"t": [(1,), (2,)]}))
    (kind, _) = added(spec, plan_of(spec))["failures"]["kinds"]
    assert [(1, None, None)] == [
        (state["worst"]["lost"], state["worst"]["lost_bytes"], state["worst"]["over_capacity"])
        for state in kind["states"]
    ]


def test_nobody_knows_how_near_a_plan_is_to_the_fewest_bytes() -> None:
    """Without bytes, no output claims that a plan is the minimum."""
    plan = plan_of(unsized(spec_of(no_racks(1, 2), {"t": [(1,), (1,)]})))
    front = choice_tables.front(structs.replace(typed(plan), pareto=typed(plan).pareto * 2))
    gap = next(column for column in front.columns if column.heading == "Above minimum")
    assert [0.0] == [row["gap_percent"] for row in plan["pareto"] if row["chosen"]]
    assert {None} == {gap.value(row).value for row in typed(plan).pareto}
    assert "0 %" not in outputs(plan)["fleet.md"]

"""`planner check`: may this plan still be carried out?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from planner.approval import plan_check as approval
from planner.approval.cluster_now import Sources
from planner.approval.plan_check import CheckedPlan, Wanted
from planner.cli import sources as cli_sources
from planner.cli import workflow
from planner.cli.shown import echo_json, echo_line, reads_plan
from planner.model.formats import gap_shown
from planner.plan import headline


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@cli_sources.options
@click.option("--plan-id", metavar="ID", help="The plan_id that was approved; any other plan is refused.")
@click.option("--strict", is_flag=True, help="Refuse your own files in the folder, which are only listed otherwise.")
@click.option("--strict-state", is_flag=True, help="Refuse a cluster that changed outside the plan as well.")
@click.option("--now", metavar="MOMENT", help="The time to judge valid_for by. [default: the clock's]")
@click.option("--bound", is_flag=True, help="Work the bound out again from bound.json: arithmetic, no solver.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="What stdout shows.")
@reads_plan
def check(
    plan: Path,
    sources: Sources,
    plan_id: str | None,
    strict: bool,
    strict_state: bool,
    now: str | None,
    bound: bool,
    form: Literal["text", "json"],
) -> int:
    """Check that PLAN is unchanged and fits the cluster.

    Makes every file of the plan's folder again and compares; with --state or --bootstrap-servers, the cluster too.

    The files of a folder are made again from plan.json and compared byte for byte, whatever SHA256SUMS says; no other
    file may be there. Your own (inventory, variables, what Terraform keeps) can't be judged: each is listed with what
    it could do. With --state or --bootstrap-servers the plan is held against the cluster as it is now: every partition
    has to be where the plan found it, or on the plan's own way. What isn't is listed, and the exit code is 1.

    \b
    planner check expand.plan
    planner check expand.plan --state state/topics-describe.txt --state state/brokers.txt
    """
    wanted = Wanted(approval.parse_plan_id(plan_id), strict, strict_state, approval.parse_now(now))
    checked = approval.check(plan, sources, workflow.rendered_files, wanted)
    if form == "json":
        echo_json(approval.document(checked))
    checked.require_approved()
    if form == "text":
        for line in _lines(plan, checked):
            echo_line(line)
    if bound:
        echo_line(_bound(plan, headline.bounded(checked.plan)), err=form == "json")
    return 0


def _lines(path: Path, checked: CheckedPlan) -> Iterator[str]:
    plan, held = checked.plan, checked.held
    of_files = f", with all of its {held.files} files" if held else ""
    step = headline.first_step(plan)
    yield from [step] if step else []
    yield f"{path}: plan {plan.plan_id[:12]} is unchanged{of_files}"
    if held and held.own:
        yield f"not checked: {len(held.own)} of the folder's files are your own; each could change what runs:"
        yield from (f"  {line}" for line in approval.listed(tuple(map(str, held.own))))
    yield from [f"valid until {plan.valid_until}"] if plan.valid_until else []
    if checked.fit is not None:
        yield f"fits the cluster now: {checked.fit.progress()}"
        if not checked.fit.brokers_known:
            yield "not checked: which brokers are live and in which racks; no source says"
        yield from (f"note: {line}" for line in approval.listed(tuple(map(str, checked.fit.told))))
    yield from checked.since.sentences() if checked.since is not None else ()


def _bound(path: Path, plans: str) -> str:
    checked = workflow.check_bound(path)
    return (
        f"{path}: no plan{plans} copies fewer than {checked.least:,} {checked.measure}, "
        f"verified from {checked.prices:,} prices and {checked.partitions:,} partitions; "
        f"this one copies {checked.moved:,}: within {gap_shown(checked.gap_percent)}"
    )

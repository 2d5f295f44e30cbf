"""`planner check`: may this plan still be carried out?"""

from __future__ import annotations

from pathlib import Path

import click

from planner import approval, validity, workflow
from planner.approval import Approved
from planner.cli import sources as cli_sources
from planner.figures import printable
from planner.state.sources import Sources


@click.command()
@click.argument("plan", type=click.Path(path_type=Path))
@cli_sources.options
@click.option("--now", metavar="MOMENT", help="The time to judge valid_for by. [default: the clock's]")
@click.option("--bound", is_flag=True, help="Work the bound out again from bound.json: arithmetic, no solver.")
def check(plan: Path, sources: Sources, now: str | None, bound: bool) -> int:
    """Check PLAN, a plan.json or its folder: no file was changed, it isn't expired, and it fits the cluster.

    Every file of a folder is held against SHA256SUMS, and those that Kafka's tools take against plan.json. With --state
    or --bootstrap-servers the plan is held against the cluster as it is now: every partition has to be where the plan
    found it, or on the plan's own way. What isn't is listed, and the exit code is 1.

    \b
    planner check expand.plan
    planner check expand.plan --state state/topics-describe.txt --state state/brokers.txt
    """
    approved = approval.check(plan, sources, approval.parse_now(now))
    for line in _lines(plan, approved):
        click.echo(line)
    if bound:
        click.echo(_bound(plan))
    return 0


def _lines(path: Path, approved: Approved) -> list[str]:
    plan, fit = approved.plan, approved.fit
    of_files = f", and so are its {approved.files} files" if approved.files else ""
    lines = [f"{path}: plan {plan['plan_id'][:12]} is as it was made{of_files}"]
    lines += [f"{name} is yours: not judged" for name in approval.listed(approved.own)]
    until = validity.valid_until(plan)
    lines += [f"valid until {until}"] if until else []
    if fit is None:
        return lines
    lines.append(f"fits the cluster as it is now: {fit.progress()}")
    lines += [] if fit.brokers_known else ["no source says which brokers are live and in which racks: not judged"]
    return lines + [f"note: {printable(line)}" for line in approval.listed(tuple(map(str, fit.told)))]


def _bound(path: Path) -> str:
    checked = workflow.check_bound(path)
    return (
        f"{path}: no plan moves fewer than {checked.least:,} {checked.measure}, worked out from {checked.prices:,} "
        f"prices and {checked.partitions:,} partitions; this one moves {checked.moved:,}: "
        f"within {checked.gap_percent:.3f} %"
    )

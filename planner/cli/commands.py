"""The commands. Only this package prints, and knows exit codes.

Exit codes are Terraform's: 0 done; 1 anything wrong with the input or the usage; with `--detailed-exitcode` 2 where
there is something to do; 3 where a gate in `limits` was crossed or the throttle can't work. stdout is the result,
stderr progress and messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from planner import __version__
from planner.cli import check, consumers, diff, external, failures, fleet, growth, importing, place, resume, workflow
from planner.cli import seeds as cli_seeds
from planner.cli.help_examples import with_examples
from planner.cli.shown import Format, echo_json, echo_line, echo_page, format_option, reads_plan, say, screen
from planner.cli.shown import show as show_plan

_SPEC = click.Path(path_type=Path, dir_okay=False)
_PLAN = click.Path(path_type=Path)
_specs = click.argument("specs", metavar="SPEC...", type=_SPEC, nargs=-1, required=True)


class _Commands(click.Group):
    """Commands whose summaries are wrapped, not cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, each.get_short_help_str(_LONGEST_SUMMARY)) for name, each in found if each and not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


_LONGEST_SUMMARY = 1_000


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="planner")
def commands() -> None:
    """Plan changes of an Apache Kafka cluster: the fewest bytes for a stated balance, proven."""


@commands.command()
@_specs
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write; for several specs a folder each in it. [default: SPEC without its ending, with .plan]",
)
@click.option(
    "--candidates", type=click.IntRange(min=2), help="Candidates to evaluate. [default: by the cluster's size]"
)
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), help="Seed of everything that is drawn.")
@click.option("--engine", type=click.Choice(["spark", "local"]), default="spark", show_default=True)
@click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]")
@click.option("--remote", help="Spark Connect server, such as sc://host:15002.")
@click.option("--partitions", type=click.IntRange(min=1), help="Spark partitions; the plan doesn't depend on it.")
@format_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit 2 where the plan has something to do.")
def whatif(specs: tuple[Path, ...], form: Format, detailed_exitcode: bool, **options: Any) -> int:
    """Sweep candidates for SPEC, choose a plan, and write every file to carry it out.

    Several SPECs, or a quoted pattern of them, are a fleet: one sweep for all, a folder each, and a summary.
    """
    planned = workflow.whatif_fleet(specs, workflow.WhatifOptions(**options), Console(stderr=True))
    if fleet.is_fleet(specs):
        _summarise(planned, form)
    else:
        show_plan(planned[0].plan, form, planned[0].files)
    return 2 if detailed_exitcode and any(map(workflow.has_something_to_do, planned)) else 0


@commands.command()
@_specs
def validate(specs: tuple[Path, ...]) -> int:
    """Check each SPEC and the files it names; report every fault at once, and write nothing."""
    for spec in workflow.validate(specs):
        echo_line(f"{spec}: nothing wrong")
    return 0


@commands.command()
@click.argument("plan", type=_PLAN)
@format_option
@reads_plan
def show(plan: Path, form: Format) -> int:
    """Show PLAN, a plan.json or its folder."""
    show_plan(workflow.read_plan(plan), form, ())
    return 0


@commands.command()
@click.argument("plan", type=_PLAN)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to write.")
@reads_plan
def render(plan: Path, out: Path) -> int:
    """Write PLAN's files again: the same bytes as `whatif` wrote."""
    for name in workflow.render(plan, out, say):
        echo_line(name)
    return 0


@commands.group()
def spark() -> None:
    """Spark itself."""


@spark.command()
def warm() -> int:
    """Make the class data archive that halves the start of local Spark sessions; once a machine."""
    echo_line(str(workflow.warm_spark(Console(stderr=True))))
    return 0


commands.add_command(check.check)
commands.add_command(diff.diff)
commands.add_command(resume.resume)
commands.add_command(external.external)
commands.add_command(failures.failures)
commands.add_command(growth.growth)
commands.add_command(consumers.consumers)
commands.add_command(place.place)
commands.add_command(cli_seeds.seeds)
commands.add_command(importing.import_)
with_examples(commands)


def _summarise(planned: Sequence[fleet.FleetPlan], form: Format) -> None:
    match form:
        case "json":
            echo_json({"clusters": fleet.summary(planned)})
        case "markdown":
            echo_page(fleet.markdown(planned))
        case _:
            # Paths may be of any length, and programs read them.
            fleet.show(planned, screen(1000))

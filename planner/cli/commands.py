"""The commands. Only this package prints, and knows exit codes.

Exit codes are Terraform's: 0 done; 1 anything wrong with the input or the usage; with `--detailed-exitcode` 2 where
there is something to do; 3 where a gate in `limits` was crossed or the throttle can't work. stdout is the result,
stderr progress and messages.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click

from planner import __version__
from planner.cli.help_examples import EXAMPLES


class Listed(NamedTuple):
    """A command in the list: its summary, and where it is, `module:function` in this package."""

    summary: str
    place: str


class Commands(click.Group):
    """Commands that are imported when they run: together they take a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, group by group."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, with its examples; None where there is none."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups of `planner --help`, for which nothing is imported."""
        for group, listed in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, each.summary) for name, each in listed.items()])


def command(name: str) -> click.Command:
    """The command of a name, imported; its help ends with its examples. KeyError where there is none."""
    module, _, function = COMMANDS[name].place.partition(":")
    found: click.Command = getattr(import_module(f"planner.cli.{module}"), function)
    if name in EXAMPLES:
        found.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[name])
    return found


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="planner")
def commands() -> None:
    """Plan changes of an Apache Kafka cluster: the fewest bytes for a stated balance, proven."""


# Each summary fits on a line of 80 columns.
GROUPS = {
    "Plan": {
        "import": Listed("Write the cluster part of a SPEC from what a cluster prints.", "importing:import_"),
        "validate": Listed("Check each SPEC and the files it names; write nothing.", "planning:validate"),
        "whatif": Listed("Choose the best plan for each SPEC, and write its folder.", "planning:whatif"),
    },
    "Review": {
        "show": Listed("Show PLAN, a plan.json or its folder.", "planning:show"),
        "diff": Listed("Show what changed from the plan BEFORE to the plan AFTER.", "diff:diff"),
        "check": Listed("Check that PLAN is unchanged and fits the cluster.", "check:check"),
        "resume": Listed("Plan what is left of PLAN after a run that stopped.", "resume:resume"),
    },
    "What if": {
        "failures": Listed("Show what breaks when brokers or racks of SPEC fail.", "failures:failures"),
        "growth": Listed("Show when which broker of SPEC reaches a limit.", "growth:growth"),
        "consumers": Listed("Show who reads what in SPEC's consumer groups.", "consumers:consumers"),
    },
    "Kafka's own placement": {
        "place": Listed("Show where Kafka places new partitions.", "place:place"),
        "seeds": Listed("Find the seeds that explain each topic's assignment.", "seeds:seeds"),
    },
    "Housekeeping": {
        "render": Listed("Write PLAN's files again, the same bytes.", "planning:render"),
        "external": Listed("Answer Terraform's `external` data source.", "external:external"),
        "spark": Listed("Prepare this machine for Spark.", "planning:spark"),
    },
}
COMMANDS = {name: listed for group in GROUPS.values() for name, listed in group.items()}

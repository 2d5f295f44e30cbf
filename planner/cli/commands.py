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
    """Commands that are imported when they run: together they take a second. Summaries are wrapped, not cut."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, by alphabet."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, with its examples; None where there is none."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of `planner --help`, for which nothing is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])


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


COMMANDS = {
    "check": Listed(
        "Check PLAN, a plan.json or its folder: no file was changed, it isn't expired, and it fits the cluster.",
        "check:check",
    ),
    "consumers": Listed(
        "Show who reads what in SPEC's consumer groups, how even that is, and what moves when something happens.",
        "consumers:consumers",
    ),
    "diff": Listed(
        "Show what changed from the plan BEFORE to the plan AFTER, each a plan.json or its folder.",
        "diff:diff",
    ),
    "external": Listed(
        "Answer Terraform's `external` data source: a query on stdin, a flat JSON object of strings on stdout.",
        "external:external",
    ),
    "failures": Listed(
        "Show what breaks when brokers of SPEC fail: today, at each batch of its plan, and afterwards.",
        "failures:failures",
    ),
    "growth": Listed(
        "Show when which broker of SPEC reaches a limit, today and as planned, and how many more brokers help.",
        "growth:growth",
    ),
    "import": Listed(
        "Write the cluster part of a spec from what a cluster prints: FILEs and folders, of any known format.",
        "importing:import_",
    ),
    "place": Listed("Show where Kafka places the partitions of a new topic, or those added to one.", "place:place"),
    "render": Listed("Write PLAN's files again: the same bytes as `whatif` wrote.", "planning:render"),
    "resume": Listed(
        "Write what is left of PLAN, from the cluster as it is now: the same target, in batches anew.",
        "resume:resume",
    ),
    "seeds": Listed(
        "Find the start index and the next replica shift that explain each topic's assignment.",
        "seeds:seeds",
    ),
    "show": Listed("Show PLAN, a plan.json or its folder.", "planning:show"),
    "spark": Listed("Spark itself.", "planning:spark"),
    "validate": Listed(
        "Check each SPEC and the files it names; report every fault at once, and write nothing.",
        "planning:validate",
    ),
    "whatif": Listed(
        "Sweep candidates for SPEC, choose a plan, and write every file to carry it out.",
        "planning:whatif",
    ),
}

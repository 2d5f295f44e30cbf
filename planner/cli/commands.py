"""The list of commands, with the summaries and examples of `--help`. Only this package prints and sets exit codes.

Exit codes are like Terraform's: 0 done; 1 an error in the input or usage, or something that is refused; 2, with
`--detailed-exitcode`, if there is something to do; 3 if a plan exceeds a limit, or can't be carried out as asked.
stdout has the result, stderr progress and messages.
"""

import os
from importlib import import_module
from keyword import iskeyword
from typing import NamedTuple

import click

from planner import __version__
from planner.model.errors import DEBUG, did_you_mean


class Listed(NamedTuple):
    """A command in the list: its summary, and the module of this package that has the function of its name."""

    summary: str
    module: str


class Commands(click.Group):
    """Imports each command only when it runs, because importing all takes a second."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, group by group."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, with its examples; None if there is none."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or an error that suggests similar names."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"no command {name!r}; {did_you_mean(name, COMMANDS)}allowed: {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the groups of `planner --help`, without importing any command."""
        for group, listed in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, each.summary) for name, each in listed.items()])


def command(name: str) -> click.Command:
    """The command with this name, imported; its help ends with its examples. KeyError if there is none."""
    # No function can have the name `import`.
    function = f"{name}_" if iskeyword(name) else name
    imported: click.Command = getattr(import_module(f"planner.cli.{COMMANDS[name].module}"), function)
    if name in EXAMPLES:
        imported.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES[name])
    return imported


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="planner")
@click.option("--debug", is_flag=True, help="Show where in the code an error comes from, of Python and Java.")
def commands(*, debug: bool) -> None:
    """Plan changes to an Apache Kafka cluster that copy the fewest bytes for the balance that you ask for.

    SPEC is a YAML file with the cluster and the changes. PLAN is a plan's folder, or its plan.json.
    """
    if debug:
        # In the environment, so that Spark's JVM and workers see it too.
        os.environ[DEBUG] = "1"


# Each summary fits on a line of 80 columns.
GROUPS = {
    "Plan": {
        "import": Listed("Write the cluster part of a SPEC from the output of Kafka's tools.", "importing"),
        "validate": Listed("Check each SPEC and the files it names; write nothing.", "planning"),
        "adopt": Listed("Make a plan of a REASSIGNMENT that another tool made.", "planning"),
        "whatif": Listed("Choose the best plan for each SPEC, and write its folder.", "planning"),
    },
    "Review": {
        "show": Listed("Show PLAN, a plan.json or its folder.", "review"),
        "diff": Listed("Show what changed from the plan BEFORE to the plan AFTER.", "review"),
        "check": Listed("Check that PLAN is unchanged and fits the cluster.", "review"),
        "resume": Listed("Plan the rest of a partly applied PLAN.", "review"),
    },
    "What if": {
        "failures": Listed("Show what breaks when brokers or racks of SPEC fail.", "failures_restart_consumers"),
        "growth": Listed("Show when brokers of SPEC reach a limit.", "load_growth_size_drain"),
        "size": Listed("Show which brokers to buy for SPEC, and how many.", "load_growth_size_drain"),
        "load": Listed("Write a profile of each partition's load from FILEs of metrics.", "load_growth_size_drain"),
        "consumers": Listed("Show what each member of SPEC's groups reads.", "failures_restart_consumers"),
    },
    "Maintenance": {
        "restart": Listed("Show in which order to restart the brokers of SPEC.", "failures_restart_consumers"),
        "drain": Listed("Plan to free disk space on a broker of SPEC with the fewest bytes.", "load_growth_size_drain"),
    },
    "Kafka's own placement": {
        "place": Listed("Show where Kafka places new partitions.", "place_and_seeds"),
        "seeds": Listed("Find the seeds that explain each topic's assignment.", "place_and_seeds"),
    },
    "Housekeeping": {
        "render": Listed("Write all files of PLAN again, byte for byte.", "planning"),
        "external": Listed("Answer Terraform's `external` data source.", "planning"),
        "spark": Listed("Prepare this machine for Spark.", "planning"),
    },
}
COMMANDS = {name: listed for group in GROUPS.values() for name, listed in group.items()}

# The examples at the end of each command's `--help`, the most common one first.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "adopt": (
        "planner adopt reassignment.json expand.yaml --out adopted.plan",
        "planner adopt generated.txt expand.yaml --format markdown",
        "planner adopt proposals.json expand.yaml --quiet",
    ),
    "whatif": (
        "planner whatif expand.yaml",
        "planner whatif expand.yaml --engine local --candidates 300",
        "planner whatif clusters/a.yaml clusters/b.yaml --out plans --master spark://host:7077",
        "planner whatif expand.yaml --detailed-exitcode --format markdown",
    ),
    "validate": ("planner validate expand.yaml", "planner validate clusters/a.yaml clusters/b.yaml"),
    "show": (
        "planner show expand.plan",
        "planner show expand.plan/plan.json --format json",
        "planner show --journal run.jsonl",
    ),
    "render": ("planner render expand.plan --out again",),
    "check": (
        "planner check expand.plan",
        "planner check expand.plan --state topics-describe.txt",
        "planner check expand.plan --bound",
    ),
    "resume": ("planner resume expand.plan --state topics-describe.txt --state log-dirs.txt --out rest.plan",),
    "diff": ("planner diff main/expand.plan expand.plan", "planner diff a.plan b.plan --format markdown"),
    "external": ("planner external",),
    "import": (
        "planner import topics-describe.txt log-dirs.txt -o cluster.yaml",
        "planner import znodes/",
        "planner import --bootstrap-servers kafka-1:9092 --command-config client.properties -o cluster.yaml",
    ),
    "failures": (
        "planner failures expand.yaml",
        "planner failures expand.plan --of racks --of pairs --format json",
        "planner failures expand.yaml --of 3 --rows failures.parquet",
    ),
    "restart": (
        "planner restart orders.yaml",
        "planner restart orders.yaml -o orders.restart",
        "planner restart orders.yaml --at-most 1 --format json",
    ),
    "drain": (
        "planner drain orders.yaml --broker 4 --for disk=200GB",
        "planner drain orders.yaml --broker 4 --for disk=200GB -o relieve-4.yaml --verbose",
    ),
    "growth": ("planner growth orders.yaml", "planner growth orders.yaml --months 24 --format markdown"),
    "size": (
        "planner size orders.yaml",
        "planner size orders.yaml --html sizes.html --master spark://host:7077",
        "planner size orders.yaml --row 8 -o orders-8.yaml",
    ),
    "load": (
        "planner load history/ -o load.parquet --time-zone Europe/Berlin",
        "planner load s3a://metrics/kafka/ -o load.parquet --column time=ts --column size_bytes=size",
        "planner load --show load.parquet",
    ),
    "consumers": (
        "planner consumers orders.yaml --group billing",
        "planner consumers orders.yaml --add-partitions orders=48 --key customer-42",
        "planner consumers orders.yaml --sweep --consumers 2-12",
    ),
    "place": (
        "planner place --brokers 0,1,2 --partitions 6 --replication-factor 3 --start-index 2 --next-replica-shift 0",
        "planner place --algorithm round-robin --brokers 0,1,2 --partitions 6 --replication-factor 2",
        "planner place orders.yaml --algorithm striped --partitions 12 --replication-factor 3 --java-random-seed 42 "
        "--format replica-assignment",
    ),
    "seeds": ("planner seeds orders.yaml", "planner seeds topics-describe.txt --topic orders"),
}

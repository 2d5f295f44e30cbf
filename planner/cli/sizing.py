"""`planner size`: which brokers to buy, and how many, for a cluster that lasts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from planner.cli.shown import Format, echo_json, echo_line, format_option, show_view
from planner.cli.workflow import EngineOptions, engine_options, on_spark
from planner.export.output_folder import replace_file
from planner.inputs.spec import reading
from planner.inputs.state.cluster_yaml import with_brokers
from planner.model.balance import exact
from planner.model.errors import SetupError
from planner.plan.document import codec
from planner.plan.document.whatif_types import SizesDocument
from planner.whatif import sizing, sizing_report

# From so many clusters on, a second worker saves more than starting Spark takes.
MANY = 100
_WHOLE = 1_000_000


@dataclass(frozen=True)
class SizeOptions(EngineOptions):
    """The options of `size`, as given on the command line."""


def run(path: Path, options: SizeOptions) -> SizesDocument:
    """The document of a spec with `sizing`."""
    wish = reading.load(path)
    wanted = sizing.combinations(wish)
    if on_spark(options, otherwise=len(wanted) >= MANY):
        from spark_jobs import session, whatif  # planner never imports pyspark; this is its only door

        with session.open_session(master=options.master, remote=options.remote) as spark:
            rows = whatif.sizes(spark, wish, wanted, partitions=options.partitions)
    else:
        rows = sizing.run(wish, wanted)
    return sizing_report.document(wish, wanted, sizing.as_it_is(wish), rows)


def write_row(path: Path, number: int, out: Path) -> None:
    """Write a copy of a spec that asks for one cluster of the table. SetupError where there is no such number."""
    wish = reading.load(path)
    wanted = sizing.combinations(wish)
    if number > len(wanted):
        raise SetupError(f"--row {number}: there is no such cluster; allowed: 1 to {len(wanted)}")
    if out.parent.resolve() != path.parent.resolve():
        raise SetupError(
            f"--output {out}: isn't beside {path}, whose paths are relative; allowed: {path.parent / out.name}"
        )
    of, used = wanted[number - 1], sizing.asked(wish).disk_used_ppm
    share = None if used == _WHOLE else f"{exact(used / 10_000)}%"
    try:
        text = with_brokers(path.read_text(encoding="utf-8-sig"), of.added, of.removed, of.broker_class, share)
    except ValueError as error:
        raise SetupError(f"{path}: can't be rewritten: {error}; allowed: each key on a line of its own") from None
    replace_file(out, text.encode())


@click.command()
@click.argument("spec", metavar="SPEC", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--row", type=click.IntRange(min=1), help="Write a SPEC for the cluster with this number to --output.")
@click.option("-o", "--output", "out", type=click.Path(path_type=Path, dir_okay=False), help="SPEC to write.")
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Page with a plot to write, too.")
@engine_options(f"spark for {MANY} clusters or more, else local")
@format_option
def size(spec: Path, row: int | None, out: Path | None, page: Path | None, form: Format, **options: Any) -> int:
    """Show which brokers to buy for SPEC, and how many.

    Plans every class and number of brokers that sizing allows, and holds each against growth and failures.
    """
    if (row is None) != (out is None):
        raise click.UsageError("--row and --output go together")
    if row is not None and out is not None:
        write_row(spec, row, out)
        echo_line(f"{out}: next: planner whatif {out}", err=True)
        return 0
    found = run(spec, SizeOptions(**options))
    if page:
        replace_file(page, sizing_report.page(found))
    if form == "json":
        echo_json(codec.as_json(found))
    else:
        show_view(sizing_report.view(found), form)
    if found.chosen is not None:
        name = f"{spec.stem}-{found.chosen}.yaml"
        echo_line(f"next: planner size {spec} --row {found.chosen} -o {spec.parent / name}", err=True)
    return 0

"""`planner growth`: how long a cluster lasts, and what helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from planner.cli.shown import Format, echo_json, echo_page, format_option, screen
from planner.growth import job as growth_job
from planner.growth import report as growth_report


@click.command()
@click.argument("spec", metavar="SPEC", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--months", type=click.IntRange(min=1, max=120), default=12, show_default=True, help="How far to look.")
@click.option("--engine", type=click.Choice(["spark", "local"]), default="spark", show_default=True)
@click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]")
@click.option("--remote", help="Spark Connect server, such as sc://host:15002.")
@click.option("--partitions", type=click.IntRange(min=1), help="Spark partitions; the result doesn't depend on it.")
@format_option
def growth(spec: Path, form: Format, **options: Any) -> int:
    """Show when which broker of SPEC reaches a limit, today and as planned, and how many more brokers help."""
    document = growth_job.run(spec, growth_job.Options(**options))
    match form:
        case "json":
            echo_json(document)
        case "markdown":
            echo_page(growth_report.markdown(document))
        case _:
            growth_report.show(document, screen(120))
    return 0

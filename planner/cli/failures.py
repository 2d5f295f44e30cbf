"""`planner failures`: what breaks when brokers fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from planner.cli.shown import Format, echo_json, echo_page, format_option, screen
from planner.failures import job as failures_job
from planner.failures import report as failures_report
from planner.failures.scenarios import KINDS, MOST


class _Kind(click.ParamType[str]):
    """`brokers`, `racks`, `pairs`, or a number of brokers."""

    name = "KIND"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text in KINDS or (text.isdecimal() and text.isascii() and 1 <= int(text) <= 1000):
            return text if text in KINDS else str(int(text))
        return self.fail(
            f"{text!r} isn't possible here; allowed: {', '.join(KINDS)}, or a number of brokers", param, ctx
        )


@click.command()
@click.argument("subject", metavar="SPEC|PLAN", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="SPEC's plan. [default: SPEC's folder, with .plan]")
@click.option("--of", multiple=True, type=_Kind(), help="brokers, racks, pairs, or any number of them; all three.")
@click.option("--engine", type=click.Choice(["spark", "local"]), help="[default: spark for a number, else local]")
@click.option(
    "--scenarios",
    type=click.IntRange(min=1, max=50_000_000),
    default=MOST,
    show_default=True,
    help="Of a number of brokers: all sets up to so many, beyond that so many drawn.",
)
@click.option("--seed", type=click.IntRange(min=0, max=2**31 - 1), default=0, help="Seed of what is drawn.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Parquet file for every row.")
@click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]")
@click.option("--remote", help="Spark Connect server, such as sc://host:15002.")
@click.option("--partitions", type=click.IntRange(min=1), help="Spark partitions; the result doesn't depend on it.")
@format_option
def failures(subject: Path, form: Format, **options: Any) -> int:
    """Show what breaks when brokers of SPEC fail: today, at each batch of its plan, and afterwards."""
    document = failures_job.run(subject, failures_job.Options(**options), Console(stderr=True))
    match form:
        case "json":
            echo_json(document)
        case "markdown":
            echo_page(failures_report.markdown(document))
        case _:
            failures_report.show(document, screen(120))
    return 0

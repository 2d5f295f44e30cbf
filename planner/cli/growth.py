"""`planner growth`: when a growing cluster reaches its limits, and how many more brokers would help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from planner.cli.shown import Format, echo_json, format_option, show_view
from planner.cli.workflow import IN_PROCESS, EngineOptions, engine_options, on_spark
from planner.inputs.spec import reading
from planner.model.errors import PlannerError
from planner.plan.document import codec
from planner.whatif import growth_forecast, growth_report
from planner.whatif.growth_report import GrowthDocument, document


@dataclass(frozen=True)
class GrowthOptions(EngineOptions):
    """The options of `growth`, as given on the command line."""

    months: int = 12


def run(path: Path, options: GrowthOptions) -> GrowthDocument:
    """The document of a spec. PlannerError if the spec has neither sizes nor rates to judge growth by."""
    spark_wanted = on_spark(options, otherwise=False)
    wish = reading.load(path)
    rated = any(part.bytes_in_per_sec for topic in wish.cluster.topics for part in topic.partitions)
    if not wish.cluster.sizes_known and not rated:
        raise PlannerError(
            f"{path}: growth can't be judged without sizes or rates; allowed: cluster.state.sizes or cluster.rates"
        )
    cases = growth_forecast.cases(wish, options.months)
    if spark_wanted:
        from spark_jobs import session, whatif  # planner never imports pyspark; this is its only door

        with session.open_session(master=options.master, remote=options.remote) as spark:
            rows = whatif.growth(spark, cases, partitions=options.partitions)
    else:
        rows = growth_forecast.run(cases)
    return document(wish, cases, growth_forecast.as_it_is(cases[0]), rows)


@click.command()
@click.argument("spec", metavar="SPEC", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--months", type=click.IntRange(min=1, max=120), default=12, show_default=True, help="Months to look ahead."
)
@engine_options(IN_PROCESS)
@format_option
def growth(spec: Path, form: Format, **options: Any) -> int:
    """Show when brokers of SPEC reach a limit.

    Today and as planned, and how many more brokers would help.
    """
    document = run(spec, GrowthOptions(**options))
    match form:
        case "json":
            echo_json(codec.as_json(document))
        case _:
            show_view(growth_report.view(document), form)
    return 0

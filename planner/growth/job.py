"""What `planner growth` does, step by step: read the spec, plan every case, on Spark or here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from planner.errors import PlannerError, SetupError
from planner.growth import lifetime as growth
from planner.growth.summary import document
from planner.spec import reading as spec


@dataclass(frozen=True)
class Options:
    """The options of `growth`, as given on the command line."""

    months: int = 12
    engine: Literal["spark", "local"] = "spark"
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def run(path: Path, options: Options) -> dict[str, Any]:
    """The document of a spec. PlannerError where there is nothing to judge growth by."""
    if options.engine == "local" and (options.master or options.remote or options.partitions):
        raise SetupError("--master, --remote and --partitions are Spark's; allowed: --engine spark")
    wish = spec.load(path)
    rated = any(part.bytes_in_per_sec for topic in wish.cluster.topics for part in topic.partitions)
    if not wish.cluster.sizes_known and not rated:
        raise PlannerError(
            f"{path}: growth can't be judged without sizes or rates; allowed: cluster.state.sizes or cluster.rates"
        )
    cases = growth.cases(wish, options.months)
    return document(wish, cases, growth.as_it_is(cases[0]), _rows(cases, options))


def _rows(cases: Sequence[growth.Case], options: Options) -> list[dict[str, Any]]:
    if options.engine == "local":
        return growth.run(cases)
    from spark_jobs import growth as job
    from spark_jobs import session  # planner never imports pyspark; this is its only door

    with session.open_session(master=options.master, remote=options.remote) as spark:
        return job.run(spark, cases, partitions=options.partitions)

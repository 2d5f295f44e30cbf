"""`planner load` on Spark: files of any size in, a load profile out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from planner.inputs.load.findings import findings
from planner.inputs.load.profile_file import About
from planner.model.errors import PlannerError
from spark_jobs import load_counters, load_profile, load_sources
from spark_jobs.sweep import python_faults_named, settings, tasks_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Rows that a worker gets at once; and pieces of files, so that a block's rows fit in 300 MB.
_SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True)
class LoadRequest:
    """What `planner load` was asked for: files, what tables call their columns, the cluster's time zone."""

    files: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"


def profile(
    spark: SparkSession, request: LoadRequest, partitions: int | None, phase: Callable[[str], None]
) -> tuple[pa.Table, About]:
    """The rows (JUDGED_SCHEMA) of a profile and what it says of the history. PlannerError where there is no sample."""
    with settings(spark, _SETTINGS), python_faults_named():
        phase(f"opening {len(request.files)} files")
        sources = load_sources.read(spark, request.files, request.names)
        others: dict[str, int] = {}
        samples = sources.tables
        if sources.measures is not None:
            phase("turning counters into rates")
            measures = sources.measures.cache()
            others = load_counters.flaws(measures)
            counted = load_counters.samples(measures)
            samples = counted if samples is None else samples.unionByName(counted)
        phase("finding the hours of the history")
        found = None if samples is None else load_profile.span(samples)
        if samples is None or found is None:
            raise PlannerError(
                f"{', '.join(request.files[:3])}: no sample of a partition; allowed: rates, sizes or offsets of topics"
            )
        span, misdated = found
        phase(f"profiling {span.hours:,} hours")
        judged = load_profile.profiled(samples, span, partitions or tasks_for(spark)).toArrow()
    return judged, About(span, request.time_zone, findings(judged, span, {**others, "misdated_samples": misdated}))

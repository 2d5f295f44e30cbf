"""The files that `planner load` reads, as samples on Spark: tables, metrics, and captures of Kafka's tools.

Paths are whatever Spark can read, `s3a://` included. What a file is, its name and its beginning say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from planner.inputs.load import metric_values
from planner.inputs.load.hourly_sums import SOURCES
from planner.inputs.load.metric_values import MEASURE_SCHEMA, FileKind
from planner.model.errors import PlannerError, SetupError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REQUIRED = ("time", "topic", "partition")
MEASURED = ("bytes_in_per_sec", "bytes_out_per_sec", "size_bytes")
COLUMNS = (*REQUIRED, *MEASURED)
# An epoch of milliseconds is above this from 1973 on, one of seconds not before the year 5138.
_MILLISECONDS_FROM = 100_000_000_000
_HEAD_CHARACTERS, _LINES_READ, _NAMES_READ = 4096, 20, 1000
_BATCH_MEASURES = 100_000


class Sources(NamedTuple):
    """What was read: tables' samples and metrics' measures; None where there are none."""

    tables: DataFrame | None
    measures: DataFrame | None


def read(spark: SparkSession, files: Sequence[str], names: Mapping[str, str]) -> Sources:
    """Open every file; `names` says what a table calls one of COLUMNS. PlannerError names what can't be used."""
    tables: list[DataFrame] = []
    texts: dict[FileKind, list[str]] = {}
    for file in files:
        found = _opened(spark, file)
        if isinstance(found, str):
            texts.setdefault(found, []).append(file)
        else:
            tables.append(_table(found, file, names))
    measures = [_measures(spark, kind, paths) for kind, paths in texts.items()]
    return Sources(_union(tables), _union(measures))


def _union(frames: Sequence[DataFrame]) -> DataFrame | None:
    if not frames:
        return None
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _opened(spark: SparkSession, file: str) -> DataFrame | FileKind:
    """The table in a file or folder, or what kind of text it is."""
    try:
        # Nothing but names is read here: of a folder, those of the files in it.
        inside = spark.read.format("binaryFile").load(file).select("path").limit(_NAMES_READ).toArrow()["path"]
        name = min((_bare(path) for path in inside.to_pylist()), default="")
        if name.endswith(".csv"):
            return spark.read.csv(file, header=True)
        if name.endswith((".parquet", ".pq")):
            return spark.read.parquet(file)
        head = spark.read.text(file).limit(_LINES_READ).toArrow()["value"].to_pylist()
        if kind := metric_values.file_kind("\n".join(head)[:_HEAD_CHARACTERS]):
            return kind
        if head and head[0].lstrip().startswith("{"):
            return spark.read.json(file, primitivesAsString=True)
    except Exception as error:  # of many kinds: the path, the file system, the format
        raise SetupError(f"{file}: can't be read: {_reason(error)}; {_ALLOWED}") from error
    raise SetupError(f"{file}: isn't known by its name or how it begins; {_ALLOWED}")


def _bare(path: str) -> str:
    return path.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")


_ALLOWED = (
    "allowed: a Parquet, CSV or JSON-lines table, Prometheus' query_range or export JSON, metrics as text, "
    "or what kafka-get-offsets.sh and kafka-log-dirs.sh print"
)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _table(frame: DataFrame, file: str, names: Mapping[str, str]) -> DataFrame:
    """A table as samples: a value that is negative or no number counts as unusable and becomes -1."""
    from pyspark.sql import functions as fn

    called = {column: names.get(column, column) for column in COLUMNS}
    missing = [each for each in COLUMNS if called[each] not in frame.columns and (each in REQUIRED or each in names)]
    if missing:
        lacks = ", ".join(f"no column {called[each]!r} for {each}" for each in missing)
        raise PlannerError(
            f"{file}: {lacks}; {did_you_mean(called[missing[0]], frame.columns)}it has "
            f"{', '.join(map(repr, frame.columns[:20]))}; allowed: --column NAME=COLUMN says what a table calls it"
        )
    there = [column for column in MEASURED if called[column] in frame.columns]
    if not there:
        raise PlannerError(f"{file}: none of {', '.join(MEASURED)} is there; allowed: at least one of them")

    def column(name: str) -> Column:
        return fn.col(f"`{called[name]}`")

    def measured(name: str) -> Column:
        if name not in there:
            return fn.lit(None).cast("bigint").alias(name)
        value = column(name).try_cast("double")
        bad = column(name).isNotNull() & (value.isNull() | fn.isnan(value) | (value < 0) | (value > 2.0**62))
        return fn.when(bad, -1).otherwise(fn.round(value).cast("bigint")).alias(name)

    return frame.select(
        column("topic").cast("string").alias("topic"),
        column("partition").try_cast("int").alias("partition"),
        _seconds(frame, called["time"]).alias("at"),
        *map(measured, MEASURED),
        fn.lit(SOURCES.index("measured")).cast("tinyint").alias("source"),
    ).where("topic IS NOT NULL AND partition >= 0 AND at IS NOT NULL")


def _seconds(frame: DataFrame, name: str) -> Column:
    """Seconds since 1970 of a timestamp, of ISO 8601 text, or of epoch milliseconds or seconds."""
    from pyspark.sql import functions as fn

    column, kind = fn.col(f"`{name}`"), dict(frame.dtypes)[name]
    if kind.startswith("timestamp") or kind == "date":
        return fn.unix_seconds(column.cast("timestamp"))
    number = column.try_cast("double")
    epoch = fn.when(number >= _MILLISECONDS_FROM, number / 1000).otherwise(number).cast("bigint")
    return fn.coalesce(epoch, fn.unix_seconds(column.cast("string").try_cast("timestamp")))


def _measures(spark: SparkSession, kind: FileKind, files: Sequence[str]) -> DataFrame:
    """The measures of texts of one kind; an export is read line by line, every other file as a whole."""
    from pyspark.sql import functions as fn
    from pyspark.sql.pandas.types import from_arrow_schema

    whole = kind != "export"
    text = spark.read.text(list(files), wholetext=whole).select(fn.input_file_name().alias("file"), "value")
    return text.mapInArrow(partial(_parsed, kind), from_arrow_schema(MEASURE_SCHEMA))


def _parsed(kind: FileKind, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    rows: list[metric_values.Measure] = []
    for batch in batches:
        for text in batch.to_pylist():
            for measure in metric_values.measures(kind, text["value"], text["file"]) if text["value"].strip() else ():
                rows.append(measure)
                if len(rows) >= _BATCH_MEASURES:
                    yield _batch(rows)
                    rows = []
    if rows:
        yield _batch(rows)


def _batch(rows: Sequence[metric_values.Measure]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(values, field.type) for values, field in zip(columns, MEASURE_SCHEMA, strict=True)], MEASURE_SCHEMA
    )

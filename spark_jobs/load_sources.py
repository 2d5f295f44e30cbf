"""The files that `planner load` reads, as samples on Spark: tables, metrics, and captures of Kafka's tools.

Paths are all that Spark can read, including `s3a://`. A file's name and its beginning determine its kind.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from planner.inputs import load_profile_statistics, metric_files
from planner.inputs.importers.state_parts import TOPIC_NAME
from planner.inputs.load_profile_statistics import END_OF_TIME, MEASURED, REQUIRED, SOURCES, TABLE_COLUMNS
from planner.inputs.metric_files import MEASURE_SCHEMA, MetricsFormat
from planner.model.errors import PlannerError, SetupError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

# In Java's syntax: \z is the end of the text, not of a line.
VALID_TOPIC = rf"\A(?:{TOPIC_NAME.pattern})\z".replace(r"\Z", r"\z")
# A number from this one on is in milliseconds: milliseconds reach it in 1973, seconds in 5138. The same holds for each
# factor of 1000 up to nanoseconds.
_EPOCHS = ((END_OF_TIME * 1_000_000, 10**9), (END_OF_TIME * 1000, 10**6), (END_OF_TIME, 1000))
# Hadoop's local file system looks for a checksum file, which fails if a name has a colon, such as a time.
_WITHOUT_CHECKSUMS = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}
_TIME_TYPES = ("timestamp", "timestamp_ntz", "date", "string", "bigint", "int", "double", "float", "decimal")
_NUMBER_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
# Enough of a file to recognize its kind, and of a folder to find files of several kinds.
_HEAD_CHARACTERS, _LINES_READ, _NAMES_READ = 4096, 20, 1000
# Rows that a worker collects before it passes them to Spark: as many as Spark passes to a worker.
_BATCH_MEASURES = 100_000
_ALLOWED = (
    "allowed: a Parquet, CSV or JSON-lines table, Prometheus' query_range or export JSON, metrics as text, "
    "or what kafka-get-offsets.sh and kafka-log-dirs.sh print"
)
# In Spark's errors: our own error from a worker; a file that couldn't be read; causes; a file with another type.
_REFUSED = re.compile(r"planner\.model\.errors\.\w+: (.+)")
_UNREAD = re.compile(r"Encountered error while reading file (\S+?)\.\s")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_MALFORMED = re.compile(r"Malformed CSV record: (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
_OTHER_HEADER = re.compile(r"^Expected: (.*) but found: (.*)$", re.MULTILINE)
_MISMATCH = re.compile(r"column: \[([^\]]*)\], physicalType: (\w+), logicalType: (\w+)")


class LoadSources(NamedTuple):
    """The inputs read: samples of tables and measures of metrics; None if there are none. `notes` are of the tables."""

    tables: DataFrame | None
    measures: DataFrame | None
    notes: Sequence[str]


def read_sources(spark: SparkSession, files: Sequence[str], names: Mapping[str, str]) -> LoadSources:
    """Opens every file; `names` maps TABLE_COLUMNS to a table's own names. PlannerError names what can't be used."""
    tables: list[DataFrame] = []
    texts: dict[MetricsFormat, list[str]] = {}
    notes: list[str] = []
    opened: Counter[str] = Counter(files)
    for file in dict.fromkeys(files):
        if inner := next(folders_not_read(file), None):
            raise PlannerError(
                f"{file}: the files in its folder {inner!r} wouldn't be read; allowed: files beside each other, "
                "and in folders named COLUMN=VALUE, as Spark writes them; or give each folder"
            )
        source = _opened(spark, file)
        if isinstance(source, str):
            # An export is parsed by lines. Every other file is parsed as a whole, and its kind is determined again.
            texts.setdefault(source if source == "export" else "query_range", []).append(file)
        else:
            opened.update(set(source.inputFiles()) - {file})
            tables.append(_table(source, file, names))
            notes += _unread(source.columns, file, {each: names.get(each, each) for each in TABLE_COLUMNS})
    if twice := [file for file, count in opened.items() if count > 1]:
        raise PlannerError(f"{_local(twice[0])}: is given twice; allowed: each file once")
    measures = [_measures(spark, kind, paths) for kind, paths in texts.items()]
    return LoadSources(_together(tables), _together(measures), notes)


def folders_not_read(folder: str) -> Iterator[str]:
    """The folders inside a local folder whose files Spark leaves out without a word, relative to it."""
    for inner, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "_")))
        relative = os.path.relpath(inner, folder)
        is_read = relative == "." or all("=" in name for name in Path(relative).parts)
        if not is_read and any(not each.startswith((".", "_")) for each in files):
            yield relative


def _together(frames: Sequence[DataFrame]) -> DataFrame | None:
    return reduce(lambda first, second: first.unionByName(second), frames) if frames else None


def _unread(columns: Sequence[str], file: str, column_of: Mapping[str, str]) -> Iterator[str]:
    """A note on the columns that aren't read, if one of them may be a measured one under another name."""
    lacking = [name for name in MEASURED if column_of[name] not in columns]
    # Spark puts broken lines of JSON into a column of its own.
    read_columns = {*column_of.values(), "_corrupt_record"}
    if lacking and (ignored := [each for each in columns if each not in read_columns]):
        yield (
            f"{file}: no column {' or '.join(lacking)}; not read: {', '.join(map(repr, ignored[:20]))}; "
            f"if one of these is meant: --column {lacking[0]}=COLUMN"
        )


def _literal(file: str) -> str:
    """The path, escaped if there is a file or folder of this name, because Spark reads all files that match a path."""
    return re.sub(r"([][{}*?\\])", r"\\\1", file) if os.path.lexists(file) else file


def _reader(spark: SparkSession) -> DataFrameReader:
    return spark.read.options(**_WITHOUT_CHECKSUMS)


def _opened(spark: SparkSession, file: str) -> DataFrame | MetricsFormat:
    """The table in a file or folder, or the kind of its text."""
    try:
        # This reads only names: for a folder, the names of its files.
        paths = (
            _reader(spark).format("binaryFile").load(_literal(file)).select("path").limit(_NAMES_READ).toArrow()["path"]
        )
        names = sorted(paths.to_pylist())
        kinds = {_table_kind(name): name for name in names}
        if len(kinds) > 1:
            examples = " and ".join(sorted(name.rpartition("/")[2] for name in kinds.values()))
            raise PlannerError(
                f"{file}: has files of several kinds, {examples}; allowed: a folder with files of one kind"
            )
        if "parquet" in kinds:
            return _reader(spark).parquet(_literal(file))
        head = _head(spark, file)
        if "csv" in kinds:
            return _csv(spark, file, next(iter(head), ""), single=len(names) == 1)
        if kind := metric_files.file_kind("\n".join(head)[:_HEAD_CHARACTERS]):
            return kind
        if head and head[0].lstrip().startswith("{"):
            return _reader(spark).json(_literal(file), primitivesAsString=True)
    except PlannerError:
        raise
    except Exception as error:  # the path, the file system and the format raise many kinds of errors
        raise SetupError(f"{file}: can't be read: {_reason(error)}; {_ALLOWED}") from error
    if not names:
        # Spark lists a folder's files and a single file in the same way.
        raise SetupError(
            f"{file}: nothing to read: empty files, and names that begin with . or _, don't count; {_ALLOWED}"
        )
    raise SetupError(f"{file}: isn't known by its name or how it begins; {_ALLOWED}")


def _head(spark: SparkSession, file: str) -> list[str]:
    """The first lines of a file, or of a file in the folder, without empty lines."""
    lines = _reader(spark).text(_literal(file)).limit(_LINES_READ).toArrow()["value"]
    head = [line for line in map(_text, lines.cast("binary").to_pylist()) if line.strip()]
    if any("\0" in line for line in head):
        raise PlannerError(f"{file}: isn't text in UTF-8: it has zero bytes, as UTF-16 does; allowed: UTF-8")
    return head


def _csv(spark: SparkSession, file: str, header: str, *, single: bool) -> DataFrame:
    """The table in a CSV file or a folder of them. Each file's columns are matched by name, each row's fields counted.

    PlannerError if a file's header has separators other than commas, or names a column twice.
    """
    names = _fields(header)
    if len(names) == 1 and (sign := next((each for each in ";\t|" if each in header), None)):
        raise PlannerError(f"{file}: the header's columns are separated by {sign!r}; allowed: commas")
    for name, count in Counter(each.lower() for each in names if each).items():
        if count > 1:
            raise PlannerError(f"{file}: the header names column {name!r} {count} times; allowed: each column once")
    # Spark invents a name for a column without one (such as pandas' index) and wouldn't find this name in the header.
    unnamed = "" in names
    rows = _reader(spark).options(mode="FAILFAST", columnPruning=unnamed and not single)
    return rows.csv(_literal(file), header=True, enforceSchema=unnamed and single)


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _table_kind(path: str) -> str:
    bare = path.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".bz2")
    return "parquet" if bare.endswith((".parquet", ".pq")) else "csv" if bare.endswith(".csv") else "text"


def _text(value: bytes) -> str:
    return value.decode(errors="replace")


@contextmanager
def read_faults_named(spark: SparkSession) -> Iterator[None]:
    """Raises a PlannerError with the file's name if Spark fails while a task reads it; keeps our own errors."""
    try:
        yield
    except PlannerError:
        raise
    except Exception as error:  # Spark's errors are of many kinds: Python's, py4j's, grpc's
        text = str(error)
        if refused := _REFUSED.search(text):
            raise PlannerError(_local(refused[1])) from error
        if unread := _UNREAD.search(text):
            if row := _MALFORMED.search(text):
                header, fields = (len(_fields(line)) for line in (_head(spark, _local(unread[1]))[0], row[1]))
                raise PlannerError(
                    f"{_local(unread[1])}: a row has {fields} fields, and the header {header}: {row[1][:200]!r}; "
                    "allowed: as many fields in each row as in the header, decimal points, and commas only in quotes"
                ) from error
            raise PlannerError(f"{_local(unread[1])}: can't be read: {_reason(error)}; {_ALLOWED}") from error
        raise


def _local(text: str) -> str:
    """A text that begins with a local file's path, without Spark's scheme and escapes."""
    match = re.match(r"file:/+(\S+?)(?=:|\s|$)", text)
    return f"/{unquote(match[1])}{text[match.end() :]}" if match else text


def _reason(error: Exception) -> str:
    """The innermost cause in a Java stack trace, else the first line; on one line."""
    text = str(error)
    if mismatch := _MISMATCH.search(text):
        return f"column {mismatch[1]} is {mismatch[2]} in this file, and {mismatch[3]} in others"
    if other := _OTHER_HEADER.search(text):
        return f"its header has {other[2]!r} where another file's has {other[1]!r}"
    lines = [*_CAUSE.findall(text)[-1:], *(line.strip() for line in text.splitlines() if line.strip())]
    if not lines:
        return type(error).__name__
    # Remove Spark's error codes.
    return re.sub(r"^\[[A-Z_.]+\] |\.? *SQLSTATE: \w+$", "", re.sub(r"\bfile:/+", "/", lines[0])[:300])


def _quoted(column: str) -> str:
    """A column's name as Spark's SQL takes it."""
    return f"`{column.replace('`', '``')}`"


def _table(frame: DataFrame, file: str, names: Mapping[str, str]) -> DataFrame:
    """A table as samples. A value that is negative or not a number becomes -1; a row that is no sample has no time."""
    from pyspark.sql import functions as fn

    column_of = {column: names.get(column, column) for column in TABLE_COLUMNS}
    measured_columns = _checked(frame, file, column_of, names)

    def column(name: str) -> Column:
        return fn.col(_quoted(column_of[name]))

    def measured(name: str) -> Column:
        if name not in measured_columns:
            return fn.lit(None).cast("bigint").alias(name)
        of_size, value = name == "size_bytes", column(name).try_cast("double")
        most = load_profile_statistics.MOST_SIZE if of_size else load_profile_statistics.MOST_RATE
        bad = column(name).isNotNull() & (value.isNull() | fn.isnan(value) | (value < 0) | (value > float(most)))
        return fn.when(bad, -1).otherwise(fn.round(value).cast("bigint")).alias(name)

    topic, partition = column("topic").cast("string"), column("partition").try_cast("int")
    valid = topic.rlike(VALID_TOPIC) & (partition >= 0)
    return frame.select(
        topic.alias("topic"),
        partition.alias("partition"),
        fn.when(valid, _seconds(frame, column_of["time"])).alias("at"),
        *map(measured, MEASURED),
        fn.lit(SOURCES.index("measured")).cast("tinyint").alias("source"),
    )


_SAMPLE_ALLOWS = {
    "time": "ISO 8601 such as 2026-11-20T10:00:00Z, or seconds to nanoseconds since 1970, from 2001 on",
    "topic": "a name that Kafka allows",
    "partition": "a whole number from 0",
}


def fault_of_first_row(spark: SparkSession, files: Sequence[str], names: Mapping[str, str]) -> str:
    """Why the first row of the first table isn't a sample, and what is allowed; empty if there is no table."""
    from pyspark.sql import functions as fn

    tables = (table for table in (_opened(spark, file) for file in files) if not isinstance(table, str))
    if (table := next(tables, None)) is None:
        return ""
    column_of = {name: names.get(name, name) for name in REQUIRED}
    as_text = (fn.col(_quoted(column)).cast("string").alias(name) for name, column in column_of.items())
    row: Any = table.select(*as_text).first()
    partition = re.fullmatch(r"\d+", row["partition"] or "", re.ASCII)
    bad = "topic" if not TOPIC_NAME.fullmatch(row["topic"] or "") else "time" if partition else "partition"
    value_text = "nothing" if row[bad] is None else repr(row[bad][:80])
    return f": the first row's {column_of[bad]} is {value_text}; allowed: {_SAMPLE_ALLOWS[bad]}"


def _checked(frame: DataFrame, file: str, column_of: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """The columns of MEASURED that a table has. PlannerError if a column is missing or has an unusable type."""
    if frame.columns == ["_corrupt_record"]:
        raise PlannerError(f"{file}: none of its lines is a JSON object; allowed: one object on each line")
    needed = [each for each in TABLE_COLUMNS if each in REQUIRED or each in names]
    missing = [each for each in needed if column_of[each] not in frame.columns]
    if missing:
        lacks = ", ".join(f"no column {column_of[each]!r} for {each}" for each in missing)
        raise PlannerError(
            f"{file}: {lacks}; {did_you_mean(column_of[missing[0]], frame.columns)}it has "
            f"{', '.join(map(repr, frame.columns[:20]))}; allowed: --column NAME=COLUMN says what a table calls it"
        )
    measured_columns = [column for column in MEASURED if column_of[column] in frame.columns]
    if not measured_columns:
        raise PlannerError(f"{file}: none of {', '.join(MEASURED)} is there; allowed: at least one of them")
    types = dict(frame.dtypes)
    for each in (*REQUIRED, *measured_columns):
        kind = types[column_of[each]].partition("(")[0]
        usable = _TIME_TYPES if each == "time" else (*_NUMBER_TYPES, "binary") if each == "topic" else _NUMBER_TYPES
        if kind not in usable:
            expected = {"time": "a time, text or a number", "topic": "text"}.get(each, "a number, or text with one")
            raise PlannerError(f"{file}: column {column_of[each]!r} is {kind[:80]}; allowed: {expected}")
    return measured_columns


def _seconds(frame: DataFrame, name: str) -> Column:
    """Seconds since 1970 of a timestamp, ISO 8601 text, or an epoch in seconds to nanoseconds; null if neither."""
    from pyspark.sql import functions as fn

    column, kind = fn.col(_quoted(name)), dict(frame.dtypes)[name]
    if kind.startswith("timestamp") or kind == "date":
        return fn.unix_seconds(column.cast("timestamp"))
    number = column.try_cast("double")
    epoch = number
    for least, per_second in reversed(_EPOCHS):
        epoch = fn.when(number >= least, number / per_second).otherwise(epoch)
    epoch = fn.when((epoch >= 0) & (epoch < END_OF_TIME), fn.floor(epoch)).cast("bigint")
    text = column.cast("string")
    # Spark reads a time of day as one of today.
    dated = fn.when(text.rlike(r"^\s*[+-]?\d{4,}(-|\s*$)"), text)
    return fn.coalesce(epoch, fn.unix_seconds(dated.try_cast("timestamp")))


def _measures(spark: SparkSession, kind: MetricsFormat, files: Sequence[str]) -> DataFrame:
    """The measures of texts of one kind; reads an export line by line, every other file as a whole."""
    from pyspark.sql import functions as fn
    from pyspark.sql.pandas.types import from_arrow_schema

    is_whole = kind != "export"
    text = (
        _reader(spark)
        .text([*map(_literal, files)], wholetext=is_whole)
        .select(fn.input_file_name().alias("file"), "value")
    )
    return text.mapInArrow(partial(_parsed, kind), from_arrow_schema(MEASURE_SCHEMA))


def _parsed(kind: MetricsFormat, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    def measures_of(batch: pa.RecordBatch) -> Iterator[metric_files.Measurement]:
        # Without this, a file that isn't UTF-8 would cause an error without the file's name.
        texts = map(_text, batch["value"].cast("binary").to_pylist())
        for file, text in zip(batch["file"].to_pylist(), texts, strict=True):
            if not text.strip():
                continue
            # The files of a folder may be of several kinds.
            file_kind = metric_files.file_kind(text[:_HEAD_CHARACTERS]) or ("export" if kind == "export" else None)
            if file_kind is None:
                raise PlannerError(f"{file}: isn't known by how it begins; {_ALLOWED}")
            if (file_kind == "export") != (kind == "export"):
                word = "an" if file_kind == "export" else "no"
                raise PlannerError(
                    f"{file}: is {word} export, unlike other files of its folder; allowed: an export in its own folder"
                )
            yield from metric_files.measures(file_kind, text, file)

    measures = chain.from_iterable(map(measures_of, batches))
    while rows := list(islice(measures, _BATCH_MEASURES)):
        columns = zip(zip(*rows, strict=True), MEASURE_SCHEMA, strict=True)
        yield pa.record_batch([pa.array(values, field.type) for values, field in columns], MEASURE_SCHEMA)

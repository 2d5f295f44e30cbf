"""The profile's file: the same bytes for the same history, hours within 1 %, and other files refused."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from load_samples import MONDAY, Sample, rows_of, sample_batch

from planner.inputs import load_profile_file, load_profile_statistics
from planner.inputs.load_profile_statistics import BLOCK_FIELDS
from planner.model.errors import PlannerError
from planner.model.load_history import Findings, HistoryFacts, Span

SPAN = Span(MONDAY, MONDAY + 21 * 24)
ABOUT = HistoryFacts(SPAN, "Europe/Berlin", Findings({"samples": 3}, {"a": "why"}))


def judged() -> pa.RecordBatch:
    """Two partitions: one is measured every hour, of the other only a size is known."""
    samples = [("a", 0, MONDAY * 3600 + hour * 3600, 1000 + hour % 24, 2000, 77) for hour in range(SPAN.hours)]
    samples.append(("a", 1, MONDAY * 3600, None, None, 5))
    return rows_of(list(load_profile_statistics.blocks([sample_batch(*samples)], SPAN)), SPAN)


def test_what_is_written_is_read_again() -> None:
    """A profile that is written is read back with its settings and rows."""
    rows = pa.Table.from_batches([judged()])

    table, about = load_profile_file.decoded(load_profile_file.encoded(rows, ABOUT), "load.parquet")

    assert ABOUT == about
    assert (
        rows.select(["topic", "partition", "bytes_in_per_sec_mean"]).to_pylist()
        == table.select(["topic", "partition", "bytes_in_per_sec_mean"]).to_pylist()
    )


def test_the_order_of_the_rows_does_not_show() -> None:
    """The rows' order doesn't change the file's bytes."""
    rows = pa.Table.from_batches([judged()])

    assert load_profile_file.encoded(rows, ABOUT) == load_profile_file.encoded(rows.take([1, 0]), ABOUT)


def test_a_partition_says_what_was_measured() -> None:
    """A row has size, percentiles, mean, coverage, source and growth; unmeasured values are None."""
    first, second = judged().to_pylist()

    assert (77, 1012, 2000, 1023) == tuple(
        first[name] for name in ("size_bytes", "bytes_in_per_sec_p50", "bytes_out_per_sec_mean", "bytes_in_per_sec_max")
    )
    assert (1.0, "measured", 0.0) == (first["coverage"], first["source"], first["growth_per_month"])
    assert (5, None, None, 0.002) == tuple(
        second[name] for name in ("size_bytes", "bytes_in_per_sec_mean", "growth_per_month", "coverage")
    )


def test_a_gap_at_an_end_of_the_history_is_a_gap() -> None:
    """One missing hour is a gap, also at an end; ten missing hours mean that c appeared later and b vanished."""
    hours = {"a": [*range(1, 20), *range(21, 39)], "b": range(30), "c": range(10, 40), "d": [0, 1, *range(3, 40)]}
    rows = [(name, 0, (MONDAY + hour) * 3600, 5, 5, 5) for name, held in hours.items() for hour in held]
    span = Span(MONDAY, MONDAY + 40)

    judged = rows_of(list(load_profile_statistics.blocks([sample_batch(*rows)], span)), span)
    found = load_profile_file.findings(pa.Table.from_batches([judged]), span, {}, {}).counts

    assert (1, 1) == (found["appeared_partitions"], found["vanished_partitions"])
    assert 4 == found["hours_without_samples"]


def test_the_last_hour_may_have_just_begun() -> None:
    """Without any gap, a partition whose last sample is in the hour before the last one has not vanished."""
    rows = [("a", 0, (MONDAY + hour) * 3600, 5, 5, 5) for hour in range(40)]
    rows += [("b", 0, (MONDAY + hour) * 3600, 5, 5, 5) for hour in range(39)]
    span = Span(MONDAY, MONDAY + 40)

    judged = rows_of(list(load_profile_statistics.blocks([sample_batch(*rows)], span)), span)
    assert 0 == load_profile_file.findings(pa.Table.from_batches([judged]), span, {}, {}).counts["vanished_partitions"]


def findings(rows: list[Sample], span: Span, others: dict[str, int], bad_metrics: dict[str, float]) -> Findings:
    """The findings of these samples."""
    table = pa.Table.from_batches([rows_of(list(load_profile_statistics.blocks([sample_batch(*rows)], span)), span)])
    return load_profile_file.findings(table, span, others, bad_metrics)


@pytest.mark.parametrize("size", [None, 5])
@pytest.mark.parametrize(("flawed", "why"), [(5, {}), (6, {"a": "6 % of its values make no sense"})])
def test_the_share_of_impossible_values_is_of_one_kind_of_value(
    size: int | None, flawed: int, why: dict[str, str]
) -> None:
    """Both rates are impossible in 5 of 100 hours: 5 % are, with and without sizes, and 10 values are counted."""
    span = Span(MONDAY, MONDAY + 100)
    rows: list[Sample] = [
        ("a", 0, (MONDAY + hour) * 3600, *((-1, -1) if hour < flawed else (5, 5)), size) for hour in range(100)
    ]

    found = findings(rows, span, {}, {})

    assert (why, 2 * flawed) == (found.untrusted, found.counts["unusable_values"])


def test_impossible_sizes_and_metrics_are_counted() -> None:
    """Impossible sizes count, and so do the values that metrics had. No share is above 100 %."""
    span = Span(MONDAY, MONDAY + 2)
    rows: list[Sample] = [(topic, 0, MONDAY * 3600 + at, 5, 5, -1) for topic in ("a", "b") for at in (0, 3600)]

    found = findings([*rows, ("c", 0, MONDAY * 3600, 5, 5, 5)], span, {"unusable_values": 3}, {"c": 0.25})

    assert 4 + 3 == found.counts["unusable_values"]
    assert {"a": "100 %", "b": "100 %", "c": "25 %"} == {
        topic: why.removesuffix(" of its values make no sense") for topic, why in found.untrusted.items()
    }


def test_hours_are_less_than_one_percent_off() -> None:
    """Stored hours differ from the true values by less than 1 %."""
    hours = np.array(judged().to_pylist()[0]["hours_in"])

    assert np.abs(hours / (1000 + np.arange(168) % 24) - 1).max() < 0.008


def test_another_file_is_refused() -> None:
    """Another Parquet file, and a file that isn't Parquet, are refused."""
    sink = BytesIO()
    pq.write_table(pa.table({"topic": ["a"]}), sink)

    with pytest.raises(PlannerError, match=r"x.parquet: is a Parquet file, but no load profile of version 1"):
        load_profile_file.decoded(sink.getvalue(), "x.parquet")
    with pytest.raises(PlannerError, match=r"x.parquet: isn't a Parquet file; allowed"):
        load_profile_file.decoded(b"no Parquet", "x.parquet")


def test_a_block_field_is_in_the_schema() -> None:
    """BLOCK_FIELDS are the columns of BLOCK_SCHEMA after topic and partition."""
    assert [field.name for field in BLOCK_FIELDS] == load_profile_statistics.BLOCK_SCHEMA.names[2:]


def changed(name: str, values: list[object]) -> bytes:
    """The file of two partitions with one column replaced."""
    table = pq.read_table(BytesIO(load_profile_file.encoded(pa.Table.from_batches([judged()]), ABOUT)))
    at, sink = table.schema.get_field_index(name), BytesIO()
    pq.write_table(table.set_column(at, name, pa.array(values)), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("topic", ["<b>", "a"], "has the topic '<b>', which is no name of a topic in Kafka; allowed: what planner"),
        ("topic", [None, "a"], "has a row without a topic, a partition or hours"),
        ("partition", [0, 0], "has a partition twice"),
        ("partition", [-1, 0], "has a value of partition that is negative"),
        ("size_bytes", [-1, 0], "has a value of size_bytes that is negative"),
        ("bytes_in_per_sec_mean", [2**62, 0], "has a value of bytes_in_per_sec_mean that is negative, endless"),
        ("hours_in", [[1.0], [1.0]], "has hours_in of 1 hours instead of 168"),
        ("hours_in", [[float("nan")] * 168] * 2, "has a value of hours_in that is negative, endless or no number"),
        ("hours_out", [[1.0] * 169, [1.0] * 168], "has more than 2,000,000 partitions or more hours than theirs"),
        ("growth_per_month", [float("inf"), 0.0], "has a value of growth_per_month that is negative, endless"),
        ("coverage", ["x", "y"], "has a column of another type"),
    ],
)
def test_a_profile_that_was_changed_is_refused(name: str, values: list[object], why: str) -> None:
    """A profile with values that `planner load` never writes is refused."""
    with pytest.raises(PlannerError) as caught:
        load_profile_file.decoded(changed(name, values), "x.parquet")
    assert f"x.parquet: {why}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "5",
        '{"version":1}',
        '{"findings":{"counts":[],"untrusted":{}},"span":{"first":0,"end":1},"time_zone":"UTC","version":1}',
        '{"findings":{"counts":{"a":"x"},"untrusted":{}},"span":{"first":0,"end":1},"time_zone":"UTC","version":1}',
        '{"findings":{"counts":{},"untrusted":{}},"span":{"first":0,"end":1e99},"time_zone":"UTC","version":1}',
        '{"findings":{"counts":{},"untrusted":{}},"span":{"first":5,"end":5},"time_zone":"UTC","version":1}',
        '{"findings":{"counts":{},"untrusted":{}},"span":{"first":0,"end":1},"time_zone":"../../etc/passwd","version":1}',
        '{"findings":{"counts":{},"untrusted":{}},"span":{"first":0,"end":1},"time_zone":"UTC","version":2}',
    ],
)
def test_hostile_metadata_is_no_profile(text: str) -> None:
    """Hostile metadata isn't accepted as a profile's."""
    assert load_profile_file.about_of({b"kafka-planner.load": text.encode()}) is None

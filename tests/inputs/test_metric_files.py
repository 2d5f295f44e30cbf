"""Reads metrics in all supported formats: which series count, for which broker, and what is refused."""

from __future__ import annotations

import json

import pytest

from planner.inputs import metric_files
from planner.inputs.metric_files import Measurement
from planner.model.errors import PlannerError

# 20 November 2026, 10:00 UTC.
AT = 1_795_168_800


def query_range(*series: dict[str, object]) -> str:
    """Prometheus' answer with these series."""
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


@pytest.mark.parametrize(
    "labels",
    [
        {"__name__": "kafka_server_brokertopicmetrics_bytesin_total", "topic": "a"},
        {"__name__": "kafka_server_brokertopicmetrics_bytesinpersec_total", "topic": "a"},
        {"__name__": "kafka_server_brokertopicmetrics_bytesinpersec_count", "topic": "a"},
        {"__name__": "kafka_server_BrokerTopicMetrics_Count", "name": "BytesInPerSec", "topic": "a"},
        {"__name__": "kafka_server_brokertopicmetrics_bytesin", "topic": "a"},
    ],
)
def test_usual_names_of_the_exporter_are_known(labels: dict[str, str]) -> None:
    """Bytes in of a topic are recognized by each name that common exporter configurations use."""
    text = query_range({"metric": {**labels, "instance": "kafka-1:7071"}, "values": [[AT, "12.5"]]})

    assert [Measurement("bytes_in", "a", -1, "kafka-1:7071", AT, 12.5)] == list(
        metric_files.measures("query_range", text, "f.json")
    )


@pytest.mark.parametrize(
    "labels",
    [
        {"__name__": "kafka_server_brokertopicmetrics_bytesin_total"},
        {"__name__": "kafka_server_brokertopicmetrics_bytesin_oneminuterate", "topic": "a"},
        {"__name__": "kafka_server_brokertopicmetrics_bytesrejected_total", "topic": "a"},
        {"__name__": "kafka_server_brokertopicmetrics_messagesin_total", "topic": "a"},
        {"__name__": "kafka_log_log_logstartoffset", "topic": "a", "partition": "0"},
        {"__name__": "kafka_log_log_size", "topic": "a"},
        {"__name__": "up", "topic": "a"},
    ],
)
def test_other_series_are_passed_over(labels: dict[str, str]) -> None:
    """Totals of all topics, rates averaged by Kafka, and other metrics are ignored."""
    text = query_range({"metric": labels, "values": [[AT, "1"]]})

    assert [] == list(metric_files.measures("query_range", text, "f.json"))


def test_an_export_is_read_line_by_line() -> None:
    """An export has times in milliseconds; a null value is skipped."""
    metric = {"__name__": "kafka_log_log_logendoffset", "topic": "a", "partition": "3", "pod": "kafka-0"}
    line = json.dumps({"metric": metric, "values": [5, None, 9], "timestamps": [AT * 1000, 0, (AT + 60) * 1000]})

    assert [
        Measurement("offset", "a", 3, "kafka-0", AT, 5),
        Measurement("offset", "a", 3, "kafka-0", AT + 60, 9),
    ] == list(metric_files.measures("export", line, "f.jsonl"))


def test_text_of_an_exporter_is_of_the_time_in_its_name() -> None:
    """Exporter text has the time of its file name, unless a line has its own; a label may hold any character."""
    text = (
        "# HELP kafka_log_log_size bytes\n# TYPE kafka_log_log_size gauge\n"
        'kafka_log_log_size{partition="0",topic="a",path="c:\\\\x,}\\"=",} 42.0\n'
        "jvm_threads 3\n"
        f'kafka_log_log_size{{topic="b",partition="1"}} 1e3 {(AT + 5) * 1000}\n'
    )

    assert [
        Measurement("size", "a", 0, 'kafka-1/.prom path=c:\\x,}"=', AT, 42),
        Measurement("size", "b", 1, "kafka-1/.prom", AT + 5, 1000),
    ] == list(metric_files.measures("exposition", text, "kafka-1/20261120T100000Z.prom"))


def test_brokers_are_told_apart_by_the_files_of_their_metrics() -> None:
    """A label names the broker, or else the file's name without its time."""
    text = 'kafka_log_log_size{topic="a",partition="0"} 1\nkafka_log_log_size{topic="a",partition="0",pod="p"} 2\n'
    files = (
        "kafka-1-2026-11-20T10:00:00Z.prom",
        "kafka-1-2026-11-20T11:00:00Z.prom",
        "kafka-2-2026-11-20T10:00:00Z.prom",
    )
    found = [[each.broker for each in metric_files.measures("exposition", text, file)] for file in files]
    assert [["kafka-1-.prom", "p"], ["kafka-1-.prom", "p"], ["kafka-2-.prom", "p"]] == found


IN_TOTAL = {"__name__": "kafka_server_brokertopicmetrics_bytesin_total", "topic": "a"}


@pytest.mark.parametrize(
    ("labels", "broker"),
    [
        ({"host": "b1", "job": "kafka"}, "host=b1 job=kafka"),
        ({"kubernetes_pod_name": "kafka-0", "prometheus_replica": "p-1"}, "kubernetes_pod_name=kafka-0"),
        ({"host": "b1", "instance": "b1:7071", "prometheus": "p-1"}, "b1:7071"),
        ({"instance": "", "node": "n1", "replica": "1"}, "node=n1"),
        ({}, ""),
    ],
)
def test_brokers_are_told_apart_by_any_label(labels: dict[str, str], broker: str) -> None:
    """Without a usual label, all labels count except those of the Prometheus server, of which two may read a broker."""
    text = query_range({"metric": {**IN_TOTAL, **labels}, "values": [[AT, "1"]]})
    assert [broker] == [each.broker for each in metric_files.measures("query_range", text, "f.json")]


def test_brokers_of_one_text_are_told_apart_by_any_label() -> None:
    """A text with several brokers, as a federation has it, names them by labels."""
    text = "".join(f'{IN_TOTAL["__name__"]}{{topic="a",host="{host}"}} 1\n' for host in ("b1", "b2"))

    found = [each.broker for each in metric_files.measures("exposition", text, "m-20261120T100000Z.prom")]

    assert ["m-.prom host=b1", "m-.prom host=b2"] == found


@pytest.mark.parametrize(
    ("name", "hours", "rest"),
    [
        ("offsets-2026-11-20T10:00:00.txt", 0, "offsets-.txt"),
        ("offsets-2026-11-20T10:00:00Z-1001.txt", 0, "offsets--1001.txt"),
        ("offsets-2026-11-20T12:00:00+0200.txt", 0, "offsets-.txt"),
        ("offsets-2026-11-20T15:30:00+05:30.txt", 0, "offsets-.txt"),
        ("offsets-2026-11-20T05:00:00-0500.txt", 0, "offsets-.txt"),
        ("offsets-2026-11-20T05:00:00.123-05:00.txt", 0, "offsets-.txt"),
        ("20261120T110000UTC.txt", 1, ".txt"),
        ("kafka-2-20261120-100000.1.prom", 0, "kafka-2-.1.prom"),
        ("2026-11-20T00:00:00+0200/offsets-20261120T100000-7.txt", 0, "+0200/offsets--7.txt"),
    ],
)
def test_the_zone_in_a_name_counts(name: str, hours: int, rest: str) -> None:
    """An offset after the time counts, and isn't part of the broker; without one, the time is in UTC."""
    assert (AT + hours * 3600, rest) == metric_files.captured(name)


@pytest.mark.parametrize("zone", ["CEST", "+2", "+02", "-02", "-1001", "+02:17", "+1500", "+"])
def test_a_zone_that_is_not_clear_is_refused(zone: str) -> None:
    """A time that may have a zone isn't read as UTC."""
    with pytest.raises(PlannerError) as caught:
        metric_files.captured(f"d/offsets-2026-11-20T10:00:00{zone}.txt")
    assert (
        f"d/offsets-2026-11-20T10:00:00{zone}.txt: '{zone}' after the time in its name may be a time zone, but isn't "
        "clear; allowed: Z for UTC, or an offset such as +02:00 or -0500"
    ) == str(caught.value)


def test_offsets_as_the_tool_prints_them() -> None:
    """Offsets are read as the tool prints them; a partition without a leader has none."""
    text = "a:0:17\na.b-c:12:9\na:1:\n"

    assert [Measurement("offset", "a", 0, "", AT, 17), Measurement("offset", "a.b-c", 12, "", AT, 9)] == list(
        metric_files.measures("offsets", text, "offsets-2026-11-20T10:00:00Z.txt")
    )


def test_sizes_as_the_tool_prints_them() -> None:
    """Sizes are read as kafka-log-dirs prints them, with their broker."""
    replica = {"partition": "a-b-1", "size": 5, "offsetLag": 0, "isFuture": False}
    text = json.dumps(
        {"version": 1, "brokers": [{"broker": 7, "logDirs": [{"logDir": "/d", "partitions": [replica]}]}]}
    )

    assert [Measurement("size", "a-b", 1, "7", AT, 5)] == list(
        metric_files.measures("log_dirs", text, "x/log-dirs_2026-11-20_10-00-00.json")
    )


@pytest.mark.parametrize(
    ("kind", "text", "file", "why"),
    [
        ("offsets", "a:0:1\n", "offsets.txt", "when it was captured is unknown"),
        ("offsets", "a:0:1\nError\n", "o-2026-11-20T10:00:00Z.txt", ":2: 'Error' isn't topic:partition:offset"),
        ("query_range", "{", "f.json", "can't be read as JSON"),
        ("query_range", '{"data": {"resultType": "vector"}}', "f.json", "resultType is 'vector'; allowed: matrix"),
        (
            "query_range",
            '{"status": "error", "errorType": "bad_data", "error": "no such range"}',
            "f.json",
            "is an error of Prometheus: bad_data: 'no such range'; allowed: an answer with data",
        ),
        (
            "query_range",
            '{"status": "success", "isPartial": true, "data": {"resultType": "matrix", "result": []}}',
            "f.json",
            "says that it is incomplete; allowed: a complete answer",
        ),
        (
            "query_range",
            '{"warnings": ["no StoreAPIs matched"], "data": {"resultType": "matrix", "result": []}}',
            "f.json",
            "says that it is incomplete: ['no StoreAPIs matched']; allowed",
        ),
        ("query_range", "[1]", "f.json", "isn't an answer of query_range"),
        ("export", '{"metric": {"topic": "a"}}', "f.json", None),
        ("export", "[]", "f.json", "a line isn't a series of an export"),
    ],
)
def test_what_cannot_be_read_is_refused(
    kind: metric_files.MetricsFormat, text: str, file: str, why: str | None
) -> None:
    """A file that can't be read is refused with its name; a series of another metric is skipped."""
    if why is None:
        assert [] == list(metric_files.measures(kind, text, file))
        return
    with pytest.raises(PlannerError) as caught:
        list(metric_files.measures(kind, text, file))
    assert str(caught.value).startswith(file)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ('{"metric":{"__name__":"x"},"values":[1],"timestamps":[2]}', "export"),
        ('{"metric":{"__name__":"x"},"values":[1,1,1,1', "export"),
        ('{"status":"error","errorType":"bad_data"}', "query_range"),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "query_range"),
        ("# HELP x y\n", "exposition"),
        ('kafka_log_log_size{topic="a"} 3\n', "exposition"),
        ("orders:0:17\n", "offsets"),
        ("Querying brokers for log directories information\n", "log_dirs"),
        ('{"time":1,"topic":"a","partition":0}', None),
        ("", None),
    ],
)
def test_a_text_is_known_by_how_it_begins(head: str, kind: str | None) -> None:
    """The format is detected from the first characters; None means that the file may be a table."""
    assert kind == metric_files.file_kind(head)


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("exposition", 'kafka_log_log_size{topic="a",partition="0"} abc', "m-20261120T100000Z:1: 'abc' isn't a number"),
        ("query_range", '{"data":{"resultType":"matrix","result":[{"metric":5}]}}', "isn't an answer of query_range"),
        (
            "query_range",
            '{"data":{"resultType":"matrix","result":[{"metric":{"__name__":"kafka_log_log_size","topic":"a",'
            '"partition":"0"},"values":[["x","1"]]}]}}',
            "has the sample ['x', '1']; allowed: a time and a number",
        ),
        ("export", '{"metric":[],"timestamps":[1],"values":[1]}', "isn't a series of an export"),
        ("offsets", "a:9999999999:1", "isn't topic:partition:offset"),
    ],
)
def test_what_is_no_value_is_refused(kind: metric_files.MetricsFormat, text: str, why: str) -> None:
    """An invalid value or sample is refused."""
    with pytest.raises(PlannerError) as caught:
        list(metric_files.measures(kind, text, "m-20261120T100000Z"))
    assert why in str(caught.value)


def test_times_that_are_none_are_marked() -> None:
    """An impossible time is marked with -1, so that it can be counted. Impossible values stay for the same reason."""
    series = {"__name__": "kafka_log_log_size", "topic": "a", "partition": "0"}
    values = [[1e30, "1"], [-5, "1"], [1_795_168_800, "NaN"], [1_795_168_800.5, "2"]]
    text = json.dumps({"data": {"resultType": "matrix", "result": [{"metric": series, "values": values}]}})

    found = list(metric_files.measures("query_range", text, "f"))
    assert [(-1, "1.0"), (-1, "1.0"), (AT, "nan"), (AT, "2.0")] == [(each.at, str(each.value)) for each in found]

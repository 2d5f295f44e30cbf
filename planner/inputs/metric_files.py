"""Reads metric files as measures of topics and partitions: Prometheus' JSON and text, and output of Kafka's tools.

Every value is one measure of a topic (by broker) or of a partition at one time; `spark_jobs.load_profile` makes rates
of them. The names are those that the JMX exporter gives Kafka's MBeans: `kafka.server:type=BrokerTopicMetrics` (bytes
in and out, counters by topic and broker) and `kafka.log:type=Log` (`Size`, `LogEndOffset`, by partition and broker).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal, NamedTuple

import pyarrow as pa

from planner.inputs.importers import log_dirs_describe
from planner.inputs.load_profile_statistics import END_OF_TIME
from planner.model.errors import PlannerError

MeasureKind = Literal["bytes_in", "bytes_out", "offset", "size"]
MetricsFormat = Literal["query_range", "export", "exposition", "offsets", "log_dirs"]

# `partition` is -1 for a topic's measure. `broker` identifies the measuring broker, by one label or by several. `value`
# may be impossible, such as NaN: `load_profile` counts such values and leaves them out.
MEASURE_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("broker", pa.string()),
        ("at", pa.int64()),
        ("value", pa.float64()),
    ]
)


class Measurement(NamedTuple):
    """One value; see MEASURE_SCHEMA."""

    kind: MeasureKind
    topic: str
    partition: int
    broker: str
    at: int
    value: float


_PARTITION = re.compile(r"[0-9]{1,9}", re.ASCII)
# These match names in lower case without underscores, so that they fit all usual configurations of the exporter.
_TOPIC_METRIC = re.compile(r"kafkaserverbrokertopicmetrics.*?bytes(in|out)(?:persec)?(?:total|count)?$")
_LOG_METRIC = re.compile(r"kafkalog(?:log)?.*?(size|logendoffset)(?:value)?$")
_NOT_COUNTERS = ("oneminuterate", "fiveminuterate", "fifteenminuterate", "meanrate")
_BROKER_LABELS = ("broker", "broker_id", "kafka_broker_id", "strimzi_io_pod_name", "pod", "instance")
# Labels that say what is measured, and labels of the Prometheus server, of which two may read the same broker.
_NOT_BROKER_LABELS = frozenset(
    {"__name__", "name", "attribute", "topic", "partition"}
    | {"prometheus", "prometheus_replica", "__replica__", "replica", "monitor"}
)
_OFFSET_LINE = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249}):(?P<partition>\d{1,9}):(?P<offset>\d{1,19})?", re.ASCII)
_SAMPLE_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)\{(?P<labels>.*)\}\s+(?P<value>\S+)(?:\s+(?P<at>-?\d+))?\s*")
_LABEL = re.compile(r'(?P<name>[a-zA-Z_]\w*)="(?P<value>(?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r'\\([\\"n])')
_STAMP = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T_-]?(\d\d)[:.-]?(\d\d)[:.-]?(\d\d)Z?")
# What may be a time zone after a time without Z; before it, a fraction of a second.
_ZONE = re.compile(
    r"(?:[.,]\d{1,9}(?=Z|[+-]\d\d))?"
    r"(?P<zone>Z|[A-Z]{2,5}(?![A-Za-z0-9])|\+\d*(?::\d+)?|-\d\d(?::?\d\d)?(?!\d))"
)
# All zones of today are whole quarters of an hour from UTC. -1001 is more likely the number of a broker.
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>0\d|1[0-4]):?(?P<minutes>00|15|30|45)")


def file_kind(head: str) -> MetricsFormat | None:
    """The kind of file that begins with `head`; None if it isn't a metric file."""
    text = head.lstrip()
    if text.startswith("{") and ('"resultType"' in text or '"errorType"' in text):
        return "query_range"
    # The timestamps may come after thousands of values.
    if text.startswith("{") and '"metric"' in text and ('"timestamps"' in text or '"values"' in text):
        return "export"
    if log_dirs_describe.recognizes(text) or text.startswith("Querying brokers for log directories"):
        return "log_dirs"
    first_line = next((line for line in text.splitlines() if line and not line.startswith("#")), "")
    if _OFFSET_LINE.fullmatch(first_line):
        return "offsets"
    return "exposition" if text.startswith("# HELP") or _SAMPLE_LINE.fullmatch(first_line) else None


def measures(kind: MetricsFormat, text: str, file: str) -> Iterator[Measurement]:
    """Every value of a file, or of a line of an export. PlannerError if it can't be read as its kind."""
    match kind:
        case "query_range":
            yield from _query_range(_json(text, file), file)
        case "export":
            yield from _exported(_json(text, file), file)
        case "exposition":
            yield from _exposed(text, file)
        case "offsets":
            yield from _offsets(text.splitlines(), captured(file)[0], file)
        case "log_dirs":
            seconds, _ = captured(file)
            for each in log_dirs_describe.places(text, file).replicas:
                yield Measurement("size", each.topic, each.partition, str(each.broker), seconds, each.size_bytes)


def _json(text: str, file: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlannerError(f"{file}: can't be read as JSON ({error}); allowed: an answer of Prometheus") from None


def captured(file: str) -> tuple[int, str]:
    """The time in a file's name, as in `offsets-2026-11-20T10:00:00Z.txt`, in seconds since 1970; the path without it.

    The time is in UTC, unless an offset follows it. PlannerError without a time, or if its zone isn't clear.
    """
    stamp = _STAMP.search(file, file.rfind("/") + 1)
    try:
        moment = stamp and datetime(*map(int, stamp.groups()), tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        moment = None
    if not stamp or not moment:
        raise PlannerError(
            f"{file}: when it was captured is unknown; allowed: a name with the time in UTC or with an offset, "
            "such as offsets-2026-11-20T10:00:00Z.txt or offsets-2026-11-20T12:00:00+0200.txt"
        )
    seconds, end = int(moment.timestamp()), stamp.end()
    if not stamp[0].endswith("Z") and (after := _ZONE.match(file, end)):
        zone, end = after["zone"], after.end()
        offset = _OFFSET.fullmatch(zone)
        if not offset and zone not in {"Z", "UTC", "GMT"}:
            raise PlannerError(
                f"{file}: {zone!r} after the time in its name may be a time zone, but isn't clear; allowed: "
                "Z for UTC, or an offset such as +02:00 or -0500"
            )
        if offset:
            ahead = 3600 * int(offset["hours"]) + 60 * int(offset["minutes"])
            seconds += ahead if offset["sign"] == "-" else -ahead
    return seconds, _STAMP.sub("", file[: stamp.start()]) + _STAMP.sub("", file[end:])


# The exceptions that JSON of another structure raises.
_NO_SERIES = (AttributeError, KeyError, OverflowError, TypeError, ValueError)


def _query_range(answer: Any, file: str) -> Iterator[Measurement]:
    try:
        if answer.get("status") == "error":
            raise PlannerError(
                f"{file}: is an error of Prometheus: {answer.get('errorType')}: {str(answer.get('error'))[:200]!r}; "
                "allowed: an answer with data"
            )
        # Thanos and remote storage warn that a store didn't answer; VictoriaMetrics says that the answer is partial.
        if answer.get("isPartial") or answer.get("warnings"):
            details = f": {str(answer['warnings'])[:200]}" if answer.get("warnings") else ""
            raise PlannerError(f"{file}: says that it is incomplete{details}; allowed: a complete answer")
        data = answer["data"]
        if data["resultType"] != "matrix":
            raise PlannerError(f"{file}: resultType is {data['resultType']!r}; allowed: matrix, as query_range answers")
        for series in data["result"]:
            if maker := _measure_maker(series["metric"]):
                for each in series["values"]:
                    yield _measured(maker, *_sample(each, series["metric"], file))
    except _NO_SERIES:
        raise PlannerError(
            f"{file}: isn't an answer of query_range; allowed: data.result, a list of series with metric and values"
        ) from None


def _exported(series: Any, file: str) -> Iterator[Measurement]:
    try:
        if maker := _measure_maker(series["metric"]):
            for each in zip(series["timestamps"], series["values"], strict=True):
                if each[1] is not None:
                    milliseconds, value = _sample(each, series["metric"], file)
                    yield _measured(maker, milliseconds / 1000, value)
    except _NO_SERIES:
        raise PlannerError(
            f"{file}: a line isn't a series of an export; allowed: metric, and as many timestamps as values"
        ) from None


def _sample(pair: Sequence[Any], labels: Mapping[str, str], file: str) -> tuple[float, float]:
    try:
        time, value = pair
        return float(time), float(value)
    except _NO_SERIES:
        raise PlannerError(
            f"{file}: series {str(dict(labels))[:200]} has the sample {str(pair)[:80]}; allowed: a time and a number"
        ) from None


def _exposed(text: str, file: str) -> Iterator[Measurement]:
    # A broker's own output doesn't name the broker, so the file's path without the time identifies it.
    file_time, source = captured(file)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#") or not (match := _SAMPLE_LINE.fullmatch(line)):
            continue
        labels = {
            each["name"]: _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], each["value"])
            for each in _LABEL.finditer(match["labels"])
        }
        if maker := _measure_maker({"__name__": match["name"], **labels}, source):
            time = int(match["at"]) / 1000 if match["at"] else file_time
            try:
                value = float(match["value"])
            except ValueError:
                raise PlannerError(f"{file}:{number}: {match['value'][:80]!r} isn't a number; allowed: one") from None
            yield _measured(maker, time, value)


def _offsets(lines: Iterable[str], seconds: int, file: str) -> Iterator[Measurement]:
    for number, line in enumerate(lines, start=1):
        match = _OFFSET_LINE.fullmatch(line.strip())
        if not match:
            if line.strip():
                raise PlannerError(
                    f"{file}:{number}: {line[:80]!r} isn't topic:partition:offset; "
                    "allowed: what kafka-get-offsets.sh prints"
                )
        elif match["offset"]:
            yield Measurement("offset", match["topic"], int(match["partition"]), "", seconds, float(match["offset"]))


# Makes a measure of one series from a time and a value.
_MeasureMaker = Callable[[int, float], Measurement]


def _measure_maker(labels: Mapping[str, str], source: str = "") -> _MeasureMaker | None:
    """The maker of a series' measures (kind, topic, partition, broker); None for other metrics and sums of topics.

    `source` is part of the broker's name if no usual label has it.
    """
    parts = (labels.get("__name__", ""), labels.get("name", ""), labels.get("attribute", ""))
    name = "".join(parts).lower().replace("_", "").replace(":", "")
    topic = labels.get("topic", "")
    if not topic or name.endswith(_NOT_COUNTERS):
        return None
    # A usual label is the same for all Prometheus servers that read a broker. Without one, any label may name it.
    other_labels = (f"{each}={labels[each]}" for each in sorted(labels.keys() - _NOT_BROKER_LABELS) if labels[each])
    usual_labels = (labels[each] for each in _BROKER_LABELS if labels.get(each))
    broker = next(usual_labels, " ".join(filter(None, (source, *other_labels))))
    # Without rules, the exporter puts the attribute before the MBean's name: `…BrokerTopicMetrics_Count{name=…}`.
    if of_topic := _TOPIC_METRIC.search(name.replace("brokertopicmetricscount", "brokertopicmetrics")):
        return partial(Measurement, "bytes_in" if of_topic[1] == "in" else "bytes_out", topic, -1, broker)
    of_log = _LOG_METRIC.search(name)
    if not of_log or not _PARTITION.fullmatch(labels.get("partition", "")):
        return None
    return partial(Measurement, "size" if of_log[1] == "size" else "offset", topic, int(labels["partition"]), broker)


def _measured(maker: _MeasureMaker, time: float, value: float) -> Measurement:
    """The measure, at -1 for an invalid time."""
    return maker(int(time) if 0 <= time < END_OF_TIME else -1, value)

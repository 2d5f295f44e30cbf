"""Joins a load profile, and the rates that the YAML states, with a cluster. The YAML takes precedence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from statistics import median

import numpy as np
import pyarrow as pa

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.yaml_source import Path
from planner.model import load_history
from planner.model.cluster import Cluster, Partition, PartitionKey, Topic, keyed_partitions
from planner.model.document_fields import PPM, StatedRateRow
from planner.model.formats import counted
from planner.model.spec import Rate, first_rule, matches_any

# Enough for a median; a large cluster has hundreds of thousands of sizes.
_SIZES_COMPARED = 10_000
# Units that people confuse, by the ratio of two sizes of the same log.
_MISTAKEN = {1024: "KiB", 1024**2: "MiB", 1024**3: "GiB", 1000: "kB", 1000**2: "MB", 1000**3: "GB", 8: "bits"}
# How far the median ratio may be from one of these ratios: less than the 2.4 % between kB and KiB.
_ALIKE = 0.02


@dataclass(frozen=True, slots=True)
class PartitionLoad:
    """The size and the mean rates of a partition; None if unknown."""

    size_bytes: int | None
    bytes_in_per_sec: int | None
    bytes_out_per_sec: int | None


@dataclass(frozen=True)
class ClusterLoad:
    """The loads of a profile by (topic, partition), the growth of its topics, and its facts about its history.

    at_end: for each topic of known growth, the rate at the end of the history in millionths of its mean.
    """

    partitions: Mapping[PartitionKey, PartitionLoad]
    growth: tuple[Rate, ...]
    about: load_history.HistoryFacts
    at_end: Mapping[str, int]


def cluster_load(rows: pa.Table, about: load_history.HistoryFacts) -> ClusterLoad:
    """The load in a profile's rows (PROFILE_SCHEMA). A topic's growth is its partitions' mean, weighted by rates in."""
    columns = (rows[name].to_pylist() for name in ("size_bytes", "bytes_in_per_sec_mean", "bytes_out_per_sec_mean"))
    loads = dict(zip(_profile_keys(rows), map(PartitionLoad, *columns), strict=True))
    topic_of, names = load_history.topics_of(rows)
    growth, rates, coverage = load_history.columns(rows, "growth_per_month", "bytes_in_per_sec_mean", "coverage")
    growths = load_history.topic_growth(topic_of, len(names), growth, rates)
    at_ends = load_history.topic_ends(topic_of, growths, coverage, about.span)
    topics = zip(names, growths.tolist(), at_ends, strict=True)
    growing = [each for each in sorted(topics) if not isnan(each[1])]
    rising = tuple(Rate(name, round(rate * PPM)) for name, rate, _ in growing)
    ends = {name: round(PPM * end) for name, _, end in growing}
    return ClusterLoad(loads, rising, about, ends)


def week_of_load(rows: pa.Table, about: load_history.HistoryFacts) -> load_history.WeekOfLoad:
    """The hours of the week in a profile's rows (PROFILE_SCHEMA). Each row has all hours; some may be null."""
    means = load_history.columns(rows, "bytes_in_per_sec_mean", "bytes_out_per_sec_mean")
    hours = load_history.weeks(rows, "hours_in", "hours_out")
    rows_of = {key: row for row, key in enumerate(_profile_keys(rows))}
    return load_history.WeekOfLoad(rows_of, np.stack(means), np.stack(hours), about.time_zone)


def _profile_keys(rows: pa.Table) -> Iterator[PartitionKey]:
    return zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)


def without_hours(
    topics: Sequence[Topic], week: load_history.WeekOfLoad, hourly_keys: Sequence[tuple[Path, str]]
) -> str | None:
    """The message if a profile lacks hours of the week, with the first key that needs them and what else is allowed
    there; None if it has all.
    """
    rows = [week.rows[key] for key, _ in keyed_partitions(topics) if key in week.rows]
    lacking = int(np.isnan(week.hours[:, rows]).all(axis=(0, 1)).sum())
    if not lacking:
        return None
    path, allowed = hourly_keys[0] if hourly_keys else ((), "")
    return (
        f"lacks {lacking} of the {load_history.HOURS_OF_WEEK} hours of the week, which {'.'.join(map(str, path))} "
        f"needs; allowed: a profile of a week or more of history, or there: {allowed}"
    )


def loaded(assignment: Assignment, load: ClusterLoad, *, sized: bool) -> Assignment:
    """The assignment with the profile's rates for partitions without rates, and with its sizes unless it is `sized`."""

    def with_load(topic: str, partition: Partition) -> Partition:
        partition_load = load.partitions.get((topic, partition.id))
        if partition_load is None:
            return partition
        return replace(
            partition,
            size_bytes=partition.size_bytes if sized else partition_load.size_bytes or 0,
            bytes_in_per_sec=partition.bytes_in_per_sec or partition_load.bytes_in_per_sec or 0,
            bytes_out_per_sec=partition.bytes_out_per_sec or partition_load.bytes_out_per_sec or 0,
        )

    return assignment.with_partitions(with_load)


def with_rates(topics: Iterable[Topic], stated_rates: Sequence[StatedRateRow]) -> tuple[Topic, ...]:
    """The topics with the rates that the YAML states, in place of those that they have.

    The first pattern that matches a topic counts, and its bytes/s are divided evenly among the partitions. A rate
    stated for one partition takes precedence. 0 is a rate too.
    """
    patterns = [each for each in stated_rates if each.partition is None]
    by_partition = {(each.topics, each.partition): each for each in stated_rates}
    return tuple(_with_rates(topic, first_rule(topic.name, patterns), by_partition) for topic in topics)


def _with_rates(
    topic: Topic, topic_rate: StatedRateRow | None, by_partition: Mapping[tuple[str, int | None], StatedRateRow]
) -> Topic:
    if topic_rate is None and not by_partition:
        return topic
    count = len(topic.partitions)

    def rate(partition: Partition, name: str) -> int:
        partition_rate = getattr(by_partition.get((topic.name, partition.id)), name, None)
        total = getattr(topic_rate, name, None)
        # The first partitions get the remainder of the division, so that the sum is the total.
        share = getattr(partition, name) if total is None else total // count + (partition.id < total % count)
        return int(share if partition_rate is None else partition_rate)

    rows = ((each, rate(each, "bytes_in_per_sec"), rate(each, "bytes_out_per_sec")) for each in topic.partitions)
    rated = (
        replace(each, bytes_in_per_sec=bytes_in, bytes_out_per_sec=bytes_out) for each, bytes_in, bytes_out in rows
    )
    return replace(topic, partitions=tuple(rated))


def unstated_ends(at_end: Mapping[str, int], stated_rates: Sequence[StatedRateRow]) -> Mapping[str, int]:
    """`at_end` without the topics whose rates in and out the YAML states as a whole: stated rates are today's."""
    topic_rates = [each for each in stated_rates if each.partition is None]
    with_rules = ((name, ppm, first_rule(name, topic_rates)) for name, ppm in at_end.items())
    return {name: ppm for name, ppm, rule in with_rules if rule is None or rule.bytes_out_per_sec is None}


def count_without_size(topics: Sequence[Topic], load: ClusterLoad) -> int:
    """The number of partitions whose size the profile doesn't have."""
    loads = (load.partitions.get(key) for key, _ in keyed_partitions(topics))
    return sum(each is None or each.size_bytes is None for each in loads)


def mismatch_message(topics: Sequence[Topic], load: ClusterLoad, *, sized: bool) -> str | None:
    """The message if a profile can't belong to this cluster, with what is allowed; None if it can."""
    rows = list(keyed_partitions(topics))
    pairs = [(each, of_load) for key, each in rows if (of_load := load.partitions.get(key)) is not None]
    if rows and not pairs:
        return "has none of the cluster's partitions; allowed: a profile of the same cluster"
    ratios = [
        partition_load.size_bytes / partition.size_bytes
        for partition, partition_load in pairs[:_SIZES_COMPARED]
        if sized and partition_load.size_bytes and partition.size_bytes
    ]
    ratio = median(ratios) if ratios else 1.0
    for factor, unit in _MISTAKEN.items():
        for times, words in ((factor, f"{factor} times"), (1 / factor, f"1/{factor} of")):
            if abs(ratio / times - 1) < _ALIKE:
                return (
                    f"has sizes that are {words} those of the cluster's state, as if one of them were in {unit}; "
                    "allowed: bytes in both"
                )
    return None


def notes(topics: Sequence[Topic], load: ClusterLoad) -> tuple[str, ...]:
    """A plan's warnings about its profile: missing partitions, and topics whose rates can't be trusted."""
    lacking = sum(key not in load.partitions for key, _ in keyed_partitions(topics))
    untrusted = [topic.name for topic in topics if topic.name in load.about.findings.untrusted]
    warnings: list[str] = []
    if lacking:
        warnings.append(
            f"cluster.load doesn't have {counted(lacking, 'partition')}: they count as idle where the YAML says nothing"
        )
    if untrusted:
        names = ", ".join(untrusted[:3]) + (", …" if len(untrusted) > 3 else "")
        warnings.append(f"cluster.load has {counted(len(untrusted), 'topic')} not to be trusted: {names}")
    return tuple(warnings)


def growth_warning(cluster: Cluster, at_end: Mapping[str, int], history: load_history.Span) -> tuple[str, ...]:
    """A plan's warning if topics are written far faster than the means of their profile, which the plan is for.

    What the YAML states for a whole topic isn't a mean of the profile.
    """
    stated_topics = [each.topics for each in cluster.rates if each.partition is None]
    unstated = (topic.name for topic in cluster.topics if not matches_any(topic.name, stated_topics))
    return load_history.outgrown(history, {name: at_end.get(name, PPM) / PPM for name in unstated})

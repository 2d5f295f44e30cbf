"""The rows of `planner growth` as one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Literal, Self

import numpy as np
from msgspec import structs

from planner.model.build_problem import topics_after
from planner.model.effective_config import in_force
from planner.model.formats import counted, duration, size
from planner.model.problem import LongArray
from planner.model.spec import Spec
from planner.plan import headline
from planner.plan.document.request_types import BudgetLimits
from planner.plan.document.whatif_types import (
    BrokerClassRow,
    FirstLimit,
    GrowthAssignmentRow,
    GrowthBrokerRow,
    GrowthLoad,
    GrowthOptionRow,
    GrowthSection,
    GrowthTopicRow,
)
from planner.whatif.growth.forecast import Forecast, rate_ppm, retention
from planner.whatif.growth.lifetime import PLANNED, Case, Row, at_least, chosen, classes_of

FORMAT_VERSION = "1.0"


class GrowthDocument(GrowthSection, frozen=True, kw_only=True):
    """What `planner growth` says: the section of a plan, and what that is about."""

    format_version: str
    cluster: str
    first_step: str | None

    @classmethod
    def of(cls, section: GrowthSection, cluster: str, first_step: str | None = None) -> Self:
        """The section, of a cluster of this name."""
        return cls(**structs.asdict(section), format_version=FORMAT_VERSION, cluster=cluster, first_step=first_step)


def document(spec: Spec, cases: Sequence[Case], now: Row, rows: Sequence[Row]) -> GrowthDocument:
    """Everything that is shown; the arguments of `section`."""
    return GrowthDocument.of(section(spec, cases, now, rows), spec.cluster.name, _first_step(spec, rows[0]) or None)


def section(spec: Spec, cases: Sequence[Case], now: Row, rows: Sequence[Row]) -> GrowthSection:
    """What a plan says of growth: `now` is the row of today's assignment, `rows` those of the cases, in order."""
    base, best = cases[0], chosen(cases, rows)
    options = (_option(case, row, best) for case, row in zip(cases, rows, strict=True) if case.broker_class)
    return GrowthSection(
        months=base.months,
        assignments=(_lasting(base, "today", now), _lasting(base, PLANNED, rows[0])),
        brokers=tuple(_brokers(base, now, rows[0])),
        classes=tuple(
            BrokerClassRow(broker_class=each.name, at_least=at_least(spec, base, each)) for each in classes_of(spec)
        ),
        options=tuple(options),
        topics=tuple(_topics(spec, base.forecast, base.months)),
        notes=tuple(_notes(spec, base)),
    )


def _first_step(spec: Spec, planned: Row) -> str:
    """What a budget doesn't let one plan do: growth is judged of the whole change; empty where that is within it."""
    limits = asdict(spec.budget)
    spent = [(planned.get(name, 0), limit) for name, limit in limits.items() if limit is not None]
    steps = max((-(-moved // max(limit, 1)) for moved, limit in spent), default=0)
    if steps <= 1:
        return ""
    parts = (counted(planned["replicas_moved"], "replica"), counted(planned["leaders_changed"], "leader"))
    budget = headline.budget(BudgetLimits(**limits))
    copied = f"{size(planned['bytes_moved'])}, " if spec.cluster.sizes_known else ""
    return (
        f"FIRST STEP ONLY (budget {budget}): a plan makes a part of this, at least {steps} steps "
        f"make all of it; planned below is all of it: {copied}{parts[0]} to copy, {parts[1]} to change."
    )


def _lasting(case: Case, name: Literal["today", "as planned"], row: Row) -> GrowthAssignmentRow:
    """When the first limit is reached, by which broker; what is moved for it."""
    first = _first(case, row) if row["feasible"] else NEVER
    return GrowthAssignmentRow(
        **structs.asdict(first), assignment=name, feasible=row["feasible"], bytes_moved=row.get("bytes_moved", 0)
    )


NEVER = FirstLimit(month=None, broker=None, limit=None)


def _first(case: Case, row: Row) -> FirstLimit:
    """The month, the broker and the limit that are first."""
    ids = case.forecast.problem.broker_ids.tolist()
    reached = [
        (month, at, limit)
        for limit, key in (("disk", "disk_month"), ("network", "network_month"))
        for at, month in enumerate(row[key])
        if month >= 0
    ]
    if not reached:
        return NEVER
    month, at, limit = min(reached)
    return FirstLimit(month=month, broker=ids[at], limit=limit)


def _brokers(case: Case, now: Row, planned: Row) -> Iterator[GrowthBrokerRow]:
    problem = case.forecast.problem
    for at, broker in enumerate(problem.broker_ids.tolist()):
        rack = int(problem.broker_racks[at])
        yield GrowthBrokerRow(
            id=broker,
            rack=problem.rack_names[rack] if rack >= 0 else None,
            disk_limit_bytes=_stated(case.disk_limit_bytes, at),
            network_limit=_stated(case.network_limit, at),
            today=_load(now, at),
            planned=_load(planned, at) if planned["feasible"] else None,
        )


def _stated(limits: LongArray, at: int) -> int | None:
    return int(limits[at]) if limits[at] >= 0 else None


def _load(row: Row, at: int) -> GrowthLoad:
    """Months, None where the limit holds, and the loads when all months are over."""
    disk, network = row["disk_month"][at], row["network_month"][at]
    return GrowthLoad(
        disk_month=disk if disk >= 0 else None,
        network_month=network if network >= 0 else None,
        size_bytes=row["size_bytes"][at],
        network_in=row["network_in"][at],
        network_out=row["network_out"][at],
    )


def _option(case: Case, row: Row, best: Mapping[str, str]) -> GrowthOptionRow:
    planned = row["feasible"]
    return GrowthOptionRow(
        **structs.asdict(_first(case, row) if planned else NEVER),
        option=case.name,
        broker_class=case.broker_class,
        added=case.added,
        brokers=int(case.forecast.problem.targets.sum()),
        feasible=planned,
        holds=planned and row["first"] < 0,
        fewest=best.get(case.broker_class) == case.name,
        bytes_moved=row["bytes_moved"] if planned else None,
        replicas_moved=row["replicas_moved"] if planned else None,
        leaders_changed=row["leaders_changed"] if planned else None,
        fullest_percent=_fullest(case, row) if planned else None,
    )


def _fullest(case: Case, row: Row) -> float | None:
    """How much of its disk limit the fullest broker holds when all months are over; None where none states it."""
    limits, held = case.disk_limit_bytes, np.array(row["size_bytes"], dtype=np.int64)
    stated = limits > 0
    return round(float((100 * held[stated] / limits[stated]).max()), 2) if stated.any() else None


def _topics(spec: Spec, ahead: Forecast, months: int) -> Iterator[GrowthTopicRow]:
    """Each topic: why it grows as it does, and all its replicas' bytes today and then, one copy of each partition."""
    problem, then = ahead.problem, ahead.at(months)
    count = len(problem.topic_names)
    sums = [np.zeros(count, dtype=np.int64) for _ in range(2)]
    for total, sizes in zip(sums, (problem.size_bytes, then.size_bytes), strict=True):
        np.add.at(total, problem.topic_of, sizes)
    rated = np.bincount(problem.topic_of, weights=ahead.by_rate, minlength=count) > 0
    for at, topic in enumerate(topics_after(spec)):
        rule = _rule(in_force(topic, spec.cluster.config_defaults)) if rated[at] else "as it is, growing by its rate"
        yield GrowthTopicRow(
            topic=topic.name,
            per_month_percent=rate_ppm(spec, topic.name) / 10_000,
            size=rule,
            size_bytes=int(sums[0][at]),
            size_bytes_then=int(sums[1][at]),
        )


def _rule(config: Mapping[str, str]) -> str:
    kept = retention(config)
    parts = [f"what is written in {duration(round(kept.seconds))}"] if kept.seconds >= 0 else []
    parts += [f"at most {size(round(kept.size_bytes))} a partition"] if kept.size_bytes >= 0 else []
    return f"{' and '.join(parts)}, and a segment" if parts else "all that was ever written"


def _notes(spec: Spec, base: Case) -> Iterator[str]:
    """What the numbers rest on."""
    problem = base.forecast.problem
    if not spec.growth.rates:
        yield "growth has no entry: no topic grows, beyond filling up what its retention allows"
    if not spec.cluster.sizes_known:
        yield "sizes are unknown (no cluster.state.sizes): they are what rates and retention make of them"
    idle = int(((problem.bytes_in_per_sec == 0) & (problem.replicas[:, 0] >= 0)).sum())
    if idle:
        yield f"{counted(idle, 'partition')} without bytes_in (cluster.rates): sizes grow by the rate of growth alone"
    if (base.disk_limit_bytes[problem.targets] < 0).any():
        yield "brokers without capacity.disk have no disk limit"
    if (base.network_limit[problem.targets] < 0).any():
        yield "brokers without capacity.network have no network limit"
    yield "retention and segments are Kafka's defaults (7 days, 1 GiB) where a topic's configuration doesn't state them"
    yield "a limit is reached in the first month at whose beginning a broker is above it; a month is 30.4 days"

"""The rows of `planner growth` as one document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from planner.model.build_problem import topics_after
from planner.model.effective_config import in_force
from planner.model.formats import counted, duration, size
from planner.model.problem import LongArray
from planner.model.spec import Spec
from planner.plan import headline
from planner.plan.document.progress_types import BudgetLimits
from planner.whatif.growth.forecast import Forecast, rate_ppm, retention
from planner.whatif.growth.lifetime import PLANNED, Case, at_least, chosen, classes_of

FORMAT_VERSION = "1.0"
Row = Mapping[str, Any]


def document(spec: Spec, cases: Sequence[Case], now: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """Everything that is shown: `now` is the row of today's assignment, `rows` those of the cases, in order."""
    base, best = cases[0], chosen(cases, [dict(row) for row in rows])
    return {
        "format_version": FORMAT_VERSION,
        "cluster": spec.cluster.name,
        "first_step": _first_step(spec, rows[0]) or None,
        "months": base.months,
        "assignments": [_lasting(base, name, row) for name, row in (("today", now), (PLANNED, rows[0]))],
        "brokers": list(_brokers(base, now, rows[0])),
        "classes": [{"class": each.name, "at_least": at_least(spec, base, each)} for each in classes_of(spec)],
        "options": [_option(case, row, best) for case, row in zip(cases, rows, strict=True) if case.broker_class],
        "topics": list(_topics(spec, base.forecast, base.months)),
        "notes": list(_notes(spec, base)),
    }


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


def _lasting(case: Case, name: str, row: Row) -> dict[str, Any]:
    """When the first limit is reached, by which broker; what is moved for it."""
    head = {"assignment": name, "feasible": row["feasible"], "bytes_moved": row.get("bytes_moved", 0)}
    return head | (_first(case, row) if row["feasible"] else {"month": None, "broker": None, "limit": None})


def _first(case: Case, row: Row) -> dict[str, Any]:
    """The month, the broker and the limit that are first; None where all hold."""
    ids = case.forecast.problem.broker_ids.tolist()
    reached = [
        (month, at, limit)
        for limit, key in (("disk", "disk_month"), ("network", "network_month"))
        for at, month in enumerate(row[key])
        if month >= 0
    ]
    month, at, limit = min(reached, default=(None, None, None))
    return {"month": month, "broker": None if at is None else ids[at], "limit": limit}


def _brokers(case: Case, now: Row, planned: Row) -> Iterator[dict[str, Any]]:
    problem = case.forecast.problem
    for at, broker in enumerate(problem.broker_ids.tolist()):
        rack = int(problem.broker_racks[at])
        yield {
            "id": broker,
            "rack": problem.rack_names[rack] if rack >= 0 else None,
            "disk_limit_bytes": _stated(case.disk_limit_bytes, at),
            "network_limit": _stated(case.network_limit, at),
            "today": _state(now, at),
            "planned": _state(planned, at) if planned["feasible"] else None,
        }


def _stated(limits: LongArray, at: int) -> int | None:
    return int(limits[at]) if limits[at] >= 0 else None


def _state(row: Row, at: int) -> dict[str, int | None]:
    """Months, None where the limit holds, and the loads when all months are over."""
    months = {key: row[key][at] if row[key][at] >= 0 else None for key in ("disk_month", "network_month")}
    return {**months, **{key: row[key][at] for key in ("size_bytes", "network_in", "network_out")}}


def _option(case: Case, row: Row, best: Mapping[str, str]) -> dict[str, Any]:
    problem = case.forecast.problem
    head = {
        "option": case.name,
        "class": case.broker_class,
        "added": case.added,
        "brokers": int(problem.targets.sum()),
        "feasible": row["feasible"],
        "holds": row["feasible"] and row["first"] < 0,
        "fewest": best.get(case.broker_class) == case.name,
    }
    names = ("bytes_moved", "replicas_moved", "leaders_changed")
    if not row["feasible"]:
        return head | dict.fromkeys(("month", "broker", "limit", *names, "fullest_percent"))
    return head | _first(case, row) | {name: row[name] for name in names} | {"fullest_percent": _fullest(case, row)}


def _fullest(case: Case, row: Row) -> float | None:
    """How much of its disk limit the fullest broker holds when all months are over; None where none states it."""
    limits, held = case.disk_limit_bytes, np.array(row["size_bytes"], dtype=np.int64)
    stated = limits > 0
    return round(float((100 * held[stated] / limits[stated]).max()), 2) if stated.any() else None


def _topics(spec: Spec, ahead: Forecast, months: int) -> Iterator[dict[str, Any]]:
    """Each topic: why it grows as it does, and all its replicas' bytes today and then, one copy of each partition."""
    problem, then = ahead.problem, ahead.at(months)
    count = len(problem.topic_names)
    sums = [np.zeros(count, dtype=np.int64) for _ in range(2)]
    for total, sizes in zip(sums, (problem.size_bytes, then.size_bytes), strict=True):
        np.add.at(total, problem.topic_of, sizes)
    rated = np.bincount(problem.topic_of, weights=ahead.by_rate, minlength=count) > 0
    for at, topic in enumerate(topics_after(spec)):
        yield {
            "topic": topic.name,
            "per_month_percent": rate_ppm(spec, topic.name) / 10_000,
            "size": _rule(in_force(topic, spec.cluster.config_defaults))
            if rated[at]
            else "as it is, growing by its rate",
            "size_bytes": int(sums[0][at]),
            "size_bytes_then": int(sums[1][at]),
        }


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

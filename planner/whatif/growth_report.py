"""The output of `planner growth`: the rows of its cases as one document, and its view for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import convert, structs

from planner.model.build_problem import topics_after
from planner.model.cluster import in_force
from planner.model.formats import counted, duration, first_names, ranges, size
from planner.model.growth_forecast import Forecast, per_month_ppm, retention
from planner.model.load_history import MONTH_SECONDS
from planner.model.problem import sums_at
from planner.model.spec import Spec
from planner.plan import headline
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
from planner.report.view import Column, Lines, Name, Quantity, Sentence, Table, Value, View, ViewSection, visible
from planner.whatif.brokers_for_growth import (
    COPIED,
    MOST_TIMES,
    PLANNED,
    WHEN_REACHED,
    CaseRow,
    GrowthCase,
    at_least,
    caveats,
    classes_of,
    fewest_by_class,
)

FORMAT_VERSION = "1.0"
_TOO_MANY = f"not planned: more than {MOST_TIMES} times today's brokers, or more brokers than replicas"
_BROKERS_SHOWN = 24
_TOPICS_SHOWN = 8
_LONGEST_RACK = 20
_LONGEST_TOPIC = 60


class GrowthDocument(GrowthSection, frozen=True, kw_only=True):
    """The document of `planner growth`: the section of a plan, and its cluster."""

    format_version: str
    cluster: str
    first_step: str | None


def document(spec: Spec, cases: Sequence[GrowthCase], today: CaseRow, rows: Sequence[CaseRow]) -> GrowthDocument:
    """The whole document; the arguments are those of `section`."""
    plan_section, notes = section(spec, cases, today, rows), list[str]()
    differs = "planner whatif may choose another plan"
    if spec.week and spec.week.planned_for:
        notes.append(f"planned for mean rates here; with balance.at: busiest hours, {differs}")
    if spec.sweep.choice.rule not in ("asked", "within_budget"):
        notes.append(f"planned by balance here; with sweep.choose, {differs}")
    return GrowthDocument(
        **structs.asdict(plan_section) | {"notes": (*notes, *plan_section.notes)},
        format_version=FORMAT_VERSION,
        cluster=spec.cluster.name,
        first_step=_first_step(spec, rows[0]),
    )


def section(spec: Spec, cases: Sequence[GrowthCase], today: CaseRow, rows: Sequence[CaseRow]) -> GrowthSection:
    """A plan's section on growth: `today` is the row of today's assignment, `rows` those of the cases, in order."""
    base, fewest_cases = cases[0], fewest_by_class(cases, rows)
    options = (_option_row(case, row, fewest_cases) for case, row in zip(cases, rows, strict=True) if case.broker_class)
    return GrowthSection(
        months=base.months,
        assignments=(_assignment_row(base, "today", today), _assignment_row(base, PLANNED, rows[0])),
        brokers=tuple(_broker_rows(base, today, rows[0])),
        classes=tuple(
            BrokerClassRow(broker_class=each.name, at_least=at_least(spec, base, each)) for each in classes_of(spec)
        ),
        options=tuple(options),
        topics=tuple(_topic_rows(spec, base.forecast, base.months)),
        notes=tuple(_notes(spec, cases)),
    )


def _first_step(spec: Spec, planned: CaseRow) -> str | None:
    """A note if the budget needs several steps, because growth is judged for the whole change; None for one step."""
    limits = structs.asdict(spec.budget).items()
    spent = [(planned.get(name, 0), limit) for name, limit in limits if limit is not None]
    steps = max((-(-moved // max(limit, 1)) for moved, limit in spent), default=0)
    if steps <= 1:
        return None
    parts = (counted(planned["replicas_moved"], "replica"), counted(planned["leaders_changed"], "leader"))
    budget = headline.budget(spec.budget)
    copied_text = f"{size(planned['bytes_moved'])}, " if spec.cluster.sizes_known else ""
    return (
        f"FIRST STEP ONLY (budget: at most {budget}). A plan does a part of this, and all of it takes at least "
        f"{steps} steps; below is all of it: {copied_text}{parts[0]} to copy, {parts[1]} to change."
    )


def _assignment_row(case: GrowthCase, name: Literal["today", "as planned"], row: CaseRow) -> GrowthAssignmentRow:
    """When an assignment reaches its first limit, on which broker, and how many bytes it copies."""
    return GrowthAssignmentRow(
        **structs.asdict(_first_limit(case, row)),
        assignment=name,
        feasible=row["feasible"],
        bytes_moved=row.get("bytes_moved", 0),
    )


def _first_limit(case: GrowthCase, row: CaseRow) -> FirstLimit:
    """The first month in which a broker reaches a limit; None without a plan."""
    ids = case.forecast.problem.broker_ids.tolist()
    reached = [
        (month, index, limit)
        for limit, key in (("disk", "disk_month"), ("network", "network_month"))
        for index, month in enumerate(row.get(key, ()))
        if month >= 0
    ]
    if not reached:
        return FirstLimit(month=None, broker=None, limit=None)
    month, index, limit = min(reached)
    return FirstLimit(month=month, broker=ids[index], limit=limit)


def _broker_rows(case: GrowthCase, today: CaseRow, planned: CaseRow) -> Iterator[GrowthBrokerRow]:
    """Each broker's limits and loads; in the case's arrays, -1 means no limit or no rack."""
    problem = case.forecast.problem
    arrays = (problem.broker_ids, problem.broker_racks, case.disk_limit_bytes, case.network_limit)
    for index, (broker, rack, disk, network) in enumerate(zip(*(each.tolist() for each in arrays), strict=True)):
        yield GrowthBrokerRow(
            id=broker,
            rack=problem.rack_names[rack] if rack >= 0 else None,
            disk_limit_bytes=disk if disk >= 0 else None,
            network_limit=network if network >= 0 else None,
            today=_broker_load(today, index),
            planned=_broker_load(planned, index) if planned["feasible"] else None,
        )


def _broker_load(row: CaseRow, index: int) -> GrowthLoad:
    """The months in which limits are reached (None: never), and the loads after the last month."""
    values: CaseRow = {name: row[name][index] for name in GrowthLoad.__struct_fields__}
    return convert({name: None if value < 0 else value for name, value in values.items()}, GrowthLoad)


def _option_row(case: GrowthCase, row: CaseRow, fewest_cases: Mapping[str, str]) -> GrowthOptionRow:
    is_planned = row["feasible"]
    fullest = None
    if is_planned:
        has_limit = case.disk_limit_bytes > 0
        percent = 100 * np.array(row["size_bytes"], dtype=np.float64)[has_limit] / case.disk_limit_bytes[has_limit]
        fullest = round(float(percent.max()), 2) if has_limit.any() else None
    return GrowthOptionRow(
        **structs.asdict(_first_limit(case, row)),
        option=case.name,
        broker_class=case.broker_class,
        added=case.added,
        brokers=int(case.forecast.problem.targets.sum()),
        feasible=is_planned,
        holds=is_planned and row["first"] < 0,
        fewest=fewest_cases.get(case.broker_class) == case.name,
        **{name: row.get(name) for name in COPIED},
        fullest_percent=fullest,
    )


def _topic_rows(spec: Spec, forecast: Forecast, months: int) -> Iterator[GrowthTopicRow]:
    """Each topic: the rule of its growth, and the bytes of one copy of all its partitions, today and at the end."""
    problem, at_end = forecast.problem, forecast.in_month(months)
    count = len(problem.topic_names)
    today_bytes, end_bytes = (sums_at(count, problem.topic_of, each.size_bytes) for each in (problem, at_end))
    has_rate = np.bincount(problem.topic_of, weights=forecast.by_rate, minlength=count) > 0
    topics = topics_after(spec)
    growth = per_month_ppm(spec.growth.rates, [topic.name for topic in topics])
    for index, topic in enumerate(topics):
        rule = "today's bytes"
        if has_rate[index]:
            retained = retention(in_force(topic, spec.cluster.config_defaults))
            limits = [f"what is written in {duration(round(retained.seconds))}"] if retained.seconds >= 0 else []
            limits += [f"at most {size(round(retained.size_bytes))} a partition"] if retained.size_bytes >= 0 else []
            rule = f"{' and '.join(limits)}, and a segment" if limits else "all that was ever written"
        yield GrowthTopicRow(
            topic=topic.name,
            per_month_percent=growth[index] / 10_000 if spec.growth.rates else None,
            size=rule,
            size_bytes=int(today_bytes[index]),
            size_bytes_then=int(end_bytes[index]),
        )


def _notes(spec: Spec, cases: Sequence[GrowthCase]) -> Iterator[str]:
    """The assumptions behind the numbers."""
    base, problem = cases[0], cases[0].forecast.problem
    # With more brokers, less is counted.
    capped = np.logical_or.reduce([each.forecast.capped(each.months) for each in cases])
    if capped.any():
        most = min(each.forecast.most for each in cases)
        names = first_names([problem.topic_names[index] for index in np.unique(problem.topic_of[capped])])
        shown = f"sizes and rates are counted up to {size(most)} (or {size(most)}/s) a replica"
        yield f"{shown}, so these topics and their brokers have more than is shown: {names}"
    if not spec.growth.rates:
        yield "neither growth nor cluster.load states growth: it counts as 0 %, and sizes grow only up to retention"
    if not spec.cluster.sizes_known:
        yield "sizes are unknown (no cluster.state.sizes): they are estimated from rates and retention"
    idle = int(((problem.bytes_in_per_sec == 0) & (problem.replicas[:, 0] >= 0)).sum())
    if idle:
        idle_text = f"{counted(idle, 'partition')} without bytes_in (cluster.rates), or with 0"
        yield f"{idle_text}: sizes grow by the rate of growth alone"
    if (base.disk_limit_bytes[problem.targets] < 0).any():
        yield "brokers without capacity.disk have no disk limit"
    if (base.network_limit[problem.targets] < 0).any():
        yield "brokers without capacity.network have no network limit"
    if unlike := list(_unlike_retention(base.forecast)):
        names = first_names(unlike)
        yield f"stored bytes are under a third or over 3 times of what rates and retention give; check both: {names}"
    yield from caveats(spec)
    yield "retention and segments are Kafka's defaults (7 days, 1 GiB) where a topic's configuration doesn't state them"
    yield WHEN_REACHED


def _unlike_retention(forecast: Forecast) -> Iterator[str]:
    """Topics whose bytes today are far from what their rates write within their retention."""
    problem = forecast.problem
    retained = np.minimum(problem.bytes_in_per_sec * forecast.age_today * MONTH_SECONDS, forecast.most_bytes)
    is_limited = (forecast.by_rate > 0) & np.isfinite(retained) & (problem.size_bytes > 0)
    stored, written = (
        np.bincount(problem.topic_of[is_limited], each[is_limited], len(problem.topic_names))
        for each in (problem.size_bytes, retained)
    )
    for name, stored_bytes, written_bytes in zip(problem.topic_names, stored, written, strict=True):
        if stored_bytes and not 1 / 3 <= stored_bytes / max(1.0, written_bytes) <= 3:
            yield name


def view(document: GrowthDocument) -> View:
    """The view's title, the first step if a budget allows only that, and the section."""
    return View(f"{document.cluster}: growth", (view_section(document),), (document.first_step or "",))


def view_section(growth: GrowthSection) -> ViewSection:
    """How long each assignment lasts, when each broker is full, which brokers would help, and what grows."""
    tables = (_broker_table(growth), _option_table(growth), _topic_table(growth))
    return ViewSection("", visible(Lines(tuple(_verdicts(growth))), *tables, Lines(growth.notes, quiet=True)))


def _verdicts(growth: GrowthSection) -> Iterator[str]:
    limits = [limit for row in growth.brokers for limit in (row.disk_limit_bytes, row.network_limit)]
    if limits and set(limits) == {None}:
        yield "No broker states capacity.disk or capacity.network: there is no limit to reach."
        return
    for each in growth.assignments:
        name = "Today's assignment" if each.assignment == "today" else "The planned assignment"
        moved = f", after copying {size(each.bytes_moved)}" if each.bytes_moved else ""
        if not each.feasible:
            yield f"{name} isn't possible: no plan keeps every rule."
        elif each.month is None:
            yield f"{name} lasts all {growth.months} months{moved}."
        elif each.month == 0:
            yield f"{name} is above a limit from the start{moved}: broker {each.broker}, {each.limit}."
        else:
            limit = f"when broker {each.broker} reaches its {each.limit} limit"
            yield f"{name} lasts until month {each.month}, {limit}{moved}."
    if not _lasts_as_planned(growth):
        yield from _help_sentences(growth)


def _lasts_as_planned(growth: GrowthSection) -> bool:
    return any(each.assignment == PLANNED and each.feasible and each.month is None for each in growth.assignments)


def _help_sentences(growth: GrowthSection) -> Iterator[str]:
    """For each class, how many more brokers make the cluster last; else what was tried, and what is too few."""
    fewest = {option.broker_class: option for option in growth.options if option.fewest}
    for option in fewest.values():
        copied = size(option.bytes_moved)
        yield f"With {option.option} more it lasts all {growth.months} months; its plan copies {copied}."
    for class_row in growth.classes:
        counts = [option.added for option in growth.options if option.broker_class == class_row.broker_class]
        if class_row.broker_class in fewest:
            continue
        if counts:
            fewer = f", and fewer than {class_row.at_least:,} can't" if class_row.at_least > 1 else ""
            yield f"Class {class_row.broker_class}: no plan made with {ranges(counts)} more lasts that long{fewer}."
        elif class_row.at_least > 0:
            yield f"Class {class_row.broker_class}: it takes at least {class_row.at_least:,} more: {_TOO_MANY}."


def _broker_table(growth: GrowthSection) -> Table[GrowthBrokerRow]:
    """The brokers; those that reach a limit first come first."""
    column = Column[GrowthBrokerRow]

    def stored(state: GrowthLoad | None) -> Value:
        return None if state is None else Quantity(state.size_bytes, "bytes")

    def month(state: GrowthLoad | None, key: str) -> Value:
        reached = None if state is None else getattr(state, key)
        return None if reached is None else f"month {reached}" if reached else "now"

    def soonest(broker: GrowthBrokerRow) -> int:
        states = [state for state in (broker.today, broker.planned) if state]
        months = [each for state in states for each in (state.disk_month, state.network_month) if each is not None]
        return min(months, default=1 << 30)

    heading = f"Bytes in {growth.months} months: "
    # A limit that no broker has gets no column.
    has_disks = any(row.disk_limit_bytes is not None for row in growth.brokers)
    has_networks = any(row.network_limit is not None for row in growth.brokers)

    def full_columns(name: str, key: str) -> tuple[Column[GrowthBrokerRow], ...]:
        return (
            column(f"{name} full:\nas today", lambda row: month(row.today, key)),
            column(f"{name} full: as planned", lambda row: month(row.planned, key), narrow="\nas planned"),
        )

    columns = (
        column("Broker", lambda row: str(row.id)),
        column("Rack", lambda row: None if row.rack is None else Name(row.rack, _LONGEST_RACK), numeric=False),
        column("Disk\nlimit", lambda row: Quantity(row.disk_limit_bytes, "bytes")),
        column(f"{heading}as today", lambda row: stored(row.today), narrow=f"in {growth.months} months:\nas today"),
        column(f"{heading}as planned", lambda row: stored(row.planned), narrow="\nas planned"),
        *(full_columns("Disk", "disk_month") if has_disks else ()),
        *(full_columns("Network", "network_month") if has_networks else ()),
    )
    ordered = sorted(growth.brokers, key=lambda each: (soonest(each), each.id))
    return Table("broker", ordered, columns, most=_BROKERS_SHOWN)


def _option_table(growth: GrowthSection) -> Table[GrowthOptionRow]:
    column = Column[GrowthOptionRow]

    def lasts(row: GrowthOptionRow) -> str:
        return "all months" if row.holds else f"until month {row.month}" if row.feasible else "no plan"

    tried_options = {(option.broker_class, option.added) for option in growth.options}
    least = {each.broker_class: max(each.at_least, 1) for each in growth.classes}

    def fewest(row: GrowthOptionRow) -> str:
        if not row.fewest or _lasts_as_planned(growth):  # none are needed
            return ""
        class_name = row.broker_class
        all_tried = all((class_name, count) in tried_options for count in range(least.get(class_name, 1), row.added))
        return " (fewest)" if all_tried else " (fewest tried)"

    columns = (
        column("Added brokers", lambda row: Sentence(f"{row.option}{fewest(row)}", 50), numeric=False),
        column("Brokers\nin all", lambda row: row.brokers),
        column("Lasts", lasts, numeric=False),
        column(
            "First limit", lambda row: None if row.limit is None else f"broker {row.broker}, {row.limit}", numeric=False
        ),
        column("Copied", lambda row: Quantity(row.bytes_moved, "bytes")),
        column("Replicas\ncopied", lambda row: row.replicas_moved),
        column("Leaders\nchanged", lambda row: row.leaders_changed),
        column("Fullest disk\nof its limit", lambda row: Quantity(row.fullest_percent, "%")),
    )
    return Table("option", growth.options, columns)


def _topic_table(growth: GrowthSection) -> Table[GrowthTopicRow]:
    """The topics; those that grow by the most bytes come first."""
    column = Column[GrowthTopicRow]
    columns = (
        column("Topic", lambda row: Name(row.topic, _LONGEST_TOPIC), numeric=False),
        column("Growth\nper month", lambda row: Quantity(row.per_month_percent, "%")),
        column("Grows from", lambda row: row.size, numeric=False),
        column("Today", lambda row: Quantity(row.size_bytes, "bytes")),
        column(f"In {growth.months} months", lambda row: Quantity(row.size_bytes_then, "bytes")),
    )
    ordered = sorted(growth.topics, key=lambda each: (each.size_bytes - each.size_bytes_then, each.topic))
    return Table("topic", ordered, columns, most=_TOPICS_SHOWN)

"""The output of `planner size`: all clusters that could be bought as one document, and its view for people."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from msgspec import structs

from planner.model import formats
from planner.model.balance import NO_TOLERANCE
from planner.model.build_problem import build
from planner.model.formats import amount, counted, gap_shown, number, percent, size
from planner.model.spec import Spec
from planner.plan.document.whatif_types import FirstLimit, HorizonRow, SizeRow, SizesDocument
from planner.report import html, plot_axes, plot_svg
from planner.report.plot_svg import COLOR, Drawing, Mark
from planner.report.view import Column, Lines, Quantity, Table, View, ViewSection, visible
from planner.whatif.brokers_for_growth import WHEN_REACHED, CaseRow, caveats
from planner.whatif.sizing import Combination, sizing_of, spec_of

FORMAT_VERSION = "1.0"
_SHOWN, _POINTS_NAMED = 12, 12
# Limits that all brokers together may reach, with any plan.
_OF_ALL = ("disk", "network", "replicas")


def document(spec: Spec, candidates: Sequence[Combination], today: CaseRow, rows: Sequence[CaseRow]) -> SizesDocument:
    """The whole document: `today` is the row of today's cluster, `rows` those of the combinations, in order."""
    months = sizing_of(spec).months
    drafts = [
        SizeRow(
            **row,
            broker_class=candidate.broker_class,
            per_rack=candidate.per_rack,
            keeps_others=candidate.keeps,
            added=len(candidate.added),
            removed=len(candidate.removed),
            price=_price(spec_of(spec, candidate)),
            on_front=False,
        )
        for candidate, row in zip(candidates, rows, strict=True)
    ]
    lasting = [row for row in drafts if row.holds]
    sizes = tuple(
        structs.replace(row, on_front=row.holds and not any(_better(other, row) for other in lasting)) for row in drafts
    )
    planned = [(row, months if row.month is None else row.month - 1) for row in sizes if row.bytes_moved is not None]
    horizons = [
        HorizonRow(months=horizon, number=_cheapest([row for row, lasts in planned if lasts >= horizon]))
        for horizon in range(1, months + 1)
    ]
    return SizesDocument(
        format_version=FORMAT_VERSION,
        cluster=spec.cluster.name,
        months=months,
        today=_first_limit(today),
        sizes=sizes,
        chosen=_cheapest(lasting),
        horizons=tuple(horizons),
        notes=tuple(_notes(spec, sizes)),
    )


def _price(spec: Spec) -> float | None:
    """The monthly price of a spec's brokers; None if any has no price. A broker's class follows from its capacity."""
    cents, prices = 0, dict(sizing_of(spec).prices)
    classes = {each.broker(0, None).capacity: each.name for each in reversed(spec.growth.classes)}
    for broker in spec.all_brokers:
        if broker.id in spec.changes.leaving:
            continue
        class_cents = prices.get(classes.get(broker.capacity, ""))
        if class_cents is None:
            return None
        cents += class_cents
    return cents / 100


def _money(row: SizeRow) -> float:
    """A cluster's price; an unknown price counts as the highest."""
    return float("inf") if row.price is None else row.price


def _cheapest(rows: Sequence[SizeRow]) -> int | None:
    """The number of the row with the lowest price, then the fewest brokers, then the fewest bytes to copy."""
    cheapest = min(rows, key=lambda row: (_money(row), row.brokers, row.bytes_moved or 0), default=None)
    return None if cheapest is None else cheapest.number


def _better(one: SizeRow, other: SizeRow) -> bool:
    """True if `one` is at least as good as `other` in price, headroom and copied bytes, and not equal to it."""
    ours, theirs = (
        (_money(row), row.brokers if row.price is None else 0, row.used_percent or 0, row.bytes_moved or 0)
        for row in (one, other)
    )
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def _notes(spec: Spec, sizes: Sequence[SizeRow]) -> Iterator[str]:
    """The assumptions behind the numbers."""
    unplanned = sum(row.bytes_moved is None and row.limit in _OF_ALL for row in sizes)
    if unplanned:
        yield f"{counted(unplanned, 'cluster')} not planned: their brokers together are too small even today"
    if any(row.price is None for row in sizes):
        yield "a price is unknown where sizing.prices has none for a broker's class"
    if sizing_of(spec).survive != "none":
        single = int((build(spec).replication_factors == 1).sum())
        if single:
            yield f"{counted(single, 'partition')} with a single replica: offline without the broker, whatever you buy"
    if spec.week is None or not spec.week.planned_for:
        yield "the network is judged by mean rates; balance.at and cluster.load add the busiest hours of the week"
    overloaded = sum(row.broker is not None and (row.limit or "").startswith("network") for row in sizes)
    if overloaded and spec.balance.network_in == spec.balance.network_out == NO_TOLERANCE:
        reach = "1 cluster reaches" if overloaded == 1 else f"{overloaded} clusters reach"
        yield f"{reach} a network limit in plans that needn't spread traffic: state balance.network_in and network_out"
    yield from caveats(spec)
    yield WHEN_REACHED


def view(document: SizesDocument) -> View:
    """The cheapest cluster that lasts, the clusters worth comparing, and what it takes to last longer."""
    blocks = visible(
        Lines(tuple(_verdicts(document))),
        _sizes_table(document),
        _horizons_table(document),
        Lines(document.notes, quiet=True),
    )
    return View(f"{document.cluster}: sizes", (ViewSection("", blocks),))


def _until(month: int) -> str:
    return f"lasts until month {month}" if month else "is above a limit from the start"


def _verdicts(document: SizesDocument) -> Iterator[str]:
    today = document.today
    if today.month is None:
        yield f"Today's cluster lasts all {document.months} months."
    else:
        yield f"Today's cluster {_until(today.month)}: {_limit_text(today)}."
    rows = {row.number: row for row in document.sizes}
    if document.chosen is None:
        longest = max(document.sizes, key=lambda row: (row.bytes_moved is not None, row.month or 0, -_money(row)))
        yield f"None of {counted(len(rows), 'cluster')} lasts all {document.months} months."
        if longest.bytes_moved is not None:
            reached = f"{_until(longest.month or 0)}: {_limit_text(longest)}"
            yield f"The longest, number {longest.number} ({_describe(document, longest)}), {reached}."
        return
    row = rows[document.chosen]
    money = "price unknown" if row.price is None else f"{_price_shown(row.price)} a month"
    chosen_as = "the one with the fewest brokers" if row.price is None else "the cheapest"
    gap = formats.above_bound(row.bytes_moved or 0, row.least_bytes)
    proof = f", at most {gap_shown(max(gap, 0.01))} above the proven minimum" if gap else ""
    yield (
        f"Of {counted(len(rows), 'cluster')}, {chosen_as} that lasts all {document.months} months: "
        f"number {row.number}, {_describe(document, row)}; {counted(row.brokers, 'broker')}, {money}; "
        f"copies {size(row.bytes_moved)}{proof}."
    )


def _price_shown(price: float | None) -> str | None:
    return None if price is None else f"{price:,.2f}"


def _describe(document: SizesDocument, row: SizeRow) -> str:
    others = "" if not row.keeps_others else " with today's others"
    return f"{row.per_rack} × {row.broker_class}{_a_rack(document)}{others}"


def _a_rack(document: SizesDocument) -> str:
    """The unit of a number of brokers: a rack; empty without racks or with a single rack."""
    of_racks = any(row.brokers != row.per_rack for row in document.sizes if not row.keeps_others)
    return " a rack" if of_racks else ""


def _limit_text(limit: FirstLimit) -> str:
    together = ", all brokers together" if limit.limit in _OF_ALL else ""
    return f"{limit.limit}{together if limit.broker is None else f', broker {limit.broker}'}"


def reached_sentence(row: CaseRow) -> str | None:
    """Says when a cluster reaches a limit; None if it lasts."""
    return None if row["holds"] else f"number {row['number']} {_until(row['month'])}: {_limit_text(_first_limit(row))}"


def _first_limit(row: CaseRow) -> FirstLimit:
    return FirstLimit(month=row["month"], broker=row["broker"], limit=row["limit"])


def _sizes_table(document: SizesDocument) -> Table[SizeRow]:
    """The clusters: those that last first, by price; then those that last longest."""
    ordered = sorted(
        document.sizes,
        key=lambda row: (not row.holds, 0 if row.holds else -(row.month or 0), _money(row), row.brokers, row.number),
    )
    column = Column[SizeRow]

    def lasts(row: SizeRow) -> str:
        return "all months" if row.holds else f"{f'until {row.month}' if row.month else 'not at all'} ({row.limit})"

    columns = (
        column("Number", lambda row: str(row.number)),
        column(
            "Brokers\na rack" if _a_rack(document) else "\nBrokers",
            lambda row: f"{row.per_rack} × {row.broker_class}",
            numeric=False,
        ),
        column("Others", lambda row: "stay" if row.keeps_others else "–", numeric=False),
        column("\nIn all", lambda row: row.brokers),
        column("A\nmonth", lambda row: _price_shown(row.price)),
        column("Lasts", lasts, numeric=False),
        column("First limit", lambda row: None if row.limit is None else _limit_text(row), numeric=False, wide=True),
        column("Most\nused", lambda row: Quantity(row.used_percent, "%")),
        column("Copied", lambda row: Quantity(row.bytes_moved, "bytes")),
        column("Best", lambda row: "yes" if row.on_front else "", numeric=False),
    )
    chosen = document.chosen
    return Table("cluster", ordered, columns, strong=lambda row: row.number == chosen, most=_SHOWN, sortable=True)


def _horizons_table(document: SizesDocument) -> Table[Sequence[HorizonRow]]:
    """The horizons from which another cluster is needed."""
    rows = {row.number: row for row in document.sizes}
    runs = [list(run) for _, run in groupby(document.horizons, key=lambda each: each.number)]
    column = Column[Sequence[HorizonRow]]

    def row_of(run: Sequence[HorizonRow]) -> SizeRow | None:
        return None if run[0].number is None else rows[run[0].number]

    def months(run: Sequence[HorizonRow]) -> str:
        first, last = run[0].months, run[-1].months
        return counted(last, "month") if first == last else f"{first} to {last} months"

    priced = any(row.price is not None for row in document.sizes)
    columns = (
        column("To last", months, numeric=False),
        column(
            "Cheapest" if priced else "Fewest brokers",
            lambda run: "none" if (row := row_of(run)) is None else _describe(document, row),
            numeric=False,
        ),
        column("Brokers", lambda run: None if (row := row_of(run)) is None else row.brokers),
        column("A month", lambda run: None if (row := row_of(run)) is None else _price_shown(row.price)),
        column("Copied", lambda run: Quantity(None if (row := row_of(run)) is None else row.bytes_moved, "bytes")),
    )
    return Table("step", runs, columns)


def page(document: SizesDocument) -> bytes:
    """The view as a page with the plot of price against headroom and bytes; equal documents give equal bytes."""
    lasting = [row for row in document.sizes if row.holds]
    with plot_svg.settings():
        plots = {"front": plot_svg.as_svg("front", _front(document, lasting))} if lasting else {}
    blocks = visible(Lines(tuple(_verdicts(document))), _horizons_table(document), Lines(document.notes, quiet=True))
    clusters = replace(_sizes_table(document), title="every cluster", most=None)
    sections = (
        ViewSection("Result", blocks, "result"),
        ViewSection("Clusters", (clusters,), "clusters", "front" if lasting else ""),
    )
    return html.view_page(View(f"{document.cluster}: sizes", sections), plots)


def _front(document: SizesDocument, rows: Sequence[SizeRow]) -> Drawing:
    """The price of each cluster that lasts, against its highest use and what it copies; lower left is better."""
    priced = all(row.price is not None for row in rows)
    unit = "a month" if priced else "brokers"
    figure, panels = plot_axes.panels(2, 150)
    marks = {}
    xs = [_money(row) if priced else float(row.brokers) for row in rows]
    panel_data: tuple[tuple[str, str, list[float], Callable[[float], str]], ...] = (
        ("used", "the largest part of a limit ever used", [row.used_percent or 0.0 for row in rows], percent),
        ("copied", "copied", [float(row.bytes_moved or 0) for row in rows], partial(amount, unit="bytes")),
    )
    for axes, (gid, heading, ys, y_text) in zip(panels, panel_data, strict=True):
        for index, (x, y, row) in enumerate(zip(xs, ys, rows, strict=True)):
            color = COLOR["after" if row.on_front else "before"]
            point_size = 9 if row.number == document.chosen else 6
            (line,) = axes.plot([x], [y], "o", ms=point_size, mec=color, mfc=color, clip_on=False)
            line.set_gid(f"{gid}{index}")
            title = f"{row.number}: {_describe(document, row)}, {number(x)} {unit}, {y_text(y)}"
            marks[f"{gid}{index}"] = [Mark(f"{gid}-{index + 1}", title)]
        axes.set_xlim(0, 1.05 * (max(xs) or 1))
        axes.set_ylim(0, 1.08 * (max(ys) or 1))
        front_points = [(x, y, str(row.number)) for x, y, row in zip(xs, ys, rows, strict=True) if row.on_front]
        plot_axes.label_points(axes, front_points[:_POINTS_NAMED], beside=9)
        plot_axes.draw_amounts(axes, "y", y_text)
        plot_axes.heading(axes, heading)
        # There is no room for numbers above the heading of the next panel.
        plot_axes.draw_amounts(axes, "x", number if axes is panels[-1] else lambda _: "")
    plot_axes.name_below(panels[-1], "money a month" if priced else "brokers")
    of = "price" if priced else "number of brokers"
    words = (
        f"Each point is a cluster that lasts all months. Horizontal: its {of}. Vertical: the largest part of a disk or "
        "network limit that is ever used, and what its plan copies. Lower left is better. Blue points are better than "
        f"every other cluster in {of}, headroom or bytes; the large one has the lowest {of}."
    )
    return Drawing(figure, "Money against headroom and bytes", words, marks)

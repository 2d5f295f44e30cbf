"""plan.json → one terminal screen: the verdict, the terms, the brokers, the alternatives, and what was written.

Plain text where the console isn't a terminal: rich leaves the colours out by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import amount, arrow, counted, number, printable, size
from planner.plan import headline
from planner.plan.bound_file import LONGEST_PROOF
from planner.plan.document.cluster_types import BrokerRow
from planner.plan.document.front_types import CandidateFigures, FrontFigures
from planner.plan.document.plan_types import Plan
from planner.plan.document.term_types import LimitRow, RelaxedRow, TermRow
from planner.report import sentences
from planner.report.sentences import derived, known_size, limit_of, pace

_BROKERS_SHOWN = 12
_POINTS_SHOWN = 6
_VARIANTS_SHOWN = 8
_NOTES_SHOWN = 5
_LONGEST_NAME = 20
_LONGEST_NOTE = 190
_LONGEST_WHY = 300
_LONGEST_STEP = 600
_LONGEST_VARIANT = 16
_LONGEST_LABEL = 36
_MOVES = ("\ncopied", "\ngap", "\nreplicas", "\nleaders", "furthest\nabove share", "as\nasked")
_ALTERNATIVE_COLUMNS = (
    "\ncopied",
    "\nreplicas",
    "\nleaders",
    "spread:\nreplicas",
    "\nleaders",
    "furthest\nabove share",
    "as\nasked",
)


def show(plan: Plan, files: Sequence[str], console: Console) -> None:
    """Print a plan.json document, and the files it was written to; about 50 lines of 100 columns for 12 brokers.

    Sizes are decimal; `today → plan` wherever a cell holds two amounts.
    """
    _verdict(plan, console)
    console.print(_terms(plan), highlight=False)
    _zero_terms(plan, console)
    console.print(_brokers(plan), highlight=False)
    if sentences.states_traffic(plan):
        console.print(_traffic(plan), highlight=False)
    if plan.log_dirs:
        console.print(_log_dirs(plan), highlight=False)
    console.print(_alternatives(plan), highlight=False)
    if sentences.placed_new(plan):
        console.print(_placed_new(plan), highlight=False)
    if plan.variants:
        console.print(_variants(plan), highlight=False)
    if len(plan.pareto) > 1:
        console.print(_front(plan), highlight=False)
    refused = [f"{row.name}: {row.why_not}" for row in plan.variants if row.why_not]
    _listed("variant", refused[:_NOTES_SHOWN], len(refused), console)
    _scenarios(plan, console)
    _notes(plan, console)
    _written(files, console)


def _verdict(plan: Plan, console: Console) -> None:
    style = "bold green" if headline.calm(plan) else "bold yellow"
    step = headline.first_step(plan)
    if step:
        # On one line wherever it is read: what is left must not be cut off.
        console.print(f"[bold red]{_text(step, _LONGEST_STEP)}[/]", highlight=False, soft_wrap=True)
    why = f" Why: {_text(sentences.reasons(plan))}." if plan.partitions else ""
    proof = _text(plan.bound.proof.rstrip("."), LONGEST_PROOF)
    lines = (
        f"[bold]{_text(plan.cluster.name, 60)}[/]: {_text(sentences.wishes(plan.changes, 6))}",
        f"[{style}]{_text(headline.headline(plan))}[/]",
        _text(headline.state(plan), _LONGEST_STEP) + why,
        f"Runs in {_text(pace(plan))}. Best of {_text(sentences.searched(plan))}.",
        *([f"[dim]By default: {_text(derived(plan))}.[/]"] if derived(plan) else []),
        f"[dim]{'Proof, of this step alone' if step else 'Proof'}: {proof}.[/]",
        *([f"Chosen: {_text(headline.chosen(plan), _LONGEST_WHY)}."] if _says_why(plan) else []),
    )
    stays = plan.new_partitions or [*headline.racks(plan)]
    for line in lines if plan.partitions else lines[: 3 if stays else 2]:
        _print(line, console)


def _says_why(plan: Plan) -> bool:
    """True where there was more to choose from than the balance asked for."""
    return bool(plan.variants) or plan.choice.rule != "asked"


def _text(value: str, at_most: int = _LONGEST_NOTE) -> str:
    """A name or sentence as rich takes it: no markup, no control characters."""
    return escape(printable(value, at_most))


def _print(line: str, console: Console) -> None:
    console.print(line, highlight=False)


def _table(title: str, *columns: str, widest: int = _LONGEST_LABEL) -> Table:
    """A table without borders; a column whose heading starts with `<` is left-aligned, the others hold numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    # Names give way, so that no number is ever cut.
    table.add_column(title, no_wrap=True, overflow="ellipsis", max_width=widest)
    for column in columns:
        left = column.startswith("<")
        table.add_column(column.removeprefix("<"), justify="left" if left else "right", no_wrap=True)
    return table


def _terms(plan: Plan) -> Table:
    """The terms that say something, by group."""
    still = _differs_if_nothing_moves(plan)
    table = _table("\nTerms", "<", "\ntoday", *(["if nothing\nmoves"] if still else []), "\nplan", "\nlimit", "<\nunit")
    told = [term for term in plan.terms if _says_something(term)]
    last = None
    for term in told:
        group = "" if term.group == last else _text(term.group, _LONGEST_NAME)
        last = term.group
        table.add_row(group, *_term_cells(term, still))
    return table


def _differs_if_nothing_moves(plan: Plan) -> bool:
    """True where what is asked for judges today's placement otherwise than today does."""
    return any(term.if_nothing_moves != term.today for term in plan.terms)


def _says_something(term: TermRow) -> bool:
    return any(sentences.columns(term))


def _term_cells(term: TermRow, still: bool) -> tuple[str, ...]:
    unit = term.unit
    today, reached = (amount(value, unit) for value in (term.today, term.plan))
    between = [amount(term.if_nothing_moves, unit)] if still else []
    marked = reached if reached == today else f"[bold]{reached}[/]"
    return (
        _text(formats.words(term.name), 30),
        today,
        *between,
        marked,
        limit_of(term),
        _text(formats.unit_of(unit), 20),
    )


def _zero_terms(plan: Plan, console: Console) -> None:
    """Terms that are 0 today and stay so, on one line: a screen has few."""
    silent = [term for term in plan.terms if not _says_something(term)]
    for said, unknown in (("0 today and after", False), ("unknown", True)):
        names = [formats.words(term.name) for term in silent if (term.plan is None) == unknown]
        if names:
            _print(f"[dim]{said}: {_text(', '.join(names), _LONGEST_STEP)}[/]", console)


def _brokers(plan: Plan) -> Table:
    disks = sentences.states_disks(plan)
    columns = ("\ncopies in", "\nout", *(("\npeak disk",) if disks else ()))
    table = _table("\nBroker", "<\nrack", "\nreplicas", "\nleaders", "\nsize", *columns)
    shown = sentences.fullest_and_emptiest(plan.brokers, _BROKERS_SHOWN)
    for broker in shown:
        disk = [sentences.broker_peak(broker)] if disks else []
        table.add_row(_broker_name(broker), *_broker_cells(plan, broker), *disk)
    hidden = len(plan.brokers) - len(shown)
    if hidden:
        table.add_row(f"[dim]+ {number(hidden)} between[/]")
    return table


def _traffic(plan: Plan) -> Table:
    """A table of its own: beside all else a broker's traffic would be too wide for a screen."""
    table = _table("\nBroker", "network\nin", "\nout")
    for broker in sentences.fullest_and_emptiest(plan.brokers, _BROKERS_SHOWN):
        table.add_row(_broker_name(broker), *sentences.traffic(plan, broker))
    return table


def _log_dirs(plan: Plan) -> Table:
    """The log dirs that something comes to or goes from, and the fullest of the others."""
    table = _table("\nLog dir", "\nbroker", "\nreplicas", "\nsize", "\nat most", "\ncomes in", "\ngoes out")
    rows = sentences.log_dirs(plan)
    for broker, row in sorted(rows[:_BROKERS_SHOWN], key=lambda row: (row[0], row[1].path)):
        before, after = row.before, row.after
        table.add_row(
            _text(row.path, _LONGEST_LABEL),
            str(broker),
            arrow(number(before.replicas), number(after.replicas)),
            arrow(size(before.size_bytes), size(after.size_bytes)),
            "[red]error[/]" if row.error else size(row.most_bytes),
            size(row.bytes_in),
            size(row.bytes_out),
        )
    if len(rows) > _BROKERS_SHOWN:
        table.add_row(f"[dim]and {number(len(rows) - _BROKERS_SHOWN)} more[/]")
    return table


def _broker_name(broker: BrokerRow) -> str:
    sign = {"added": "[green]+[/] ", "removed": "[red]−[/] "}.get(broker.role, "")
    return f"{sign}{broker.id}"


def _broker_cells(plan: Plan, broker: BrokerRow) -> tuple[str, ...]:
    before, after = broker.before, broker.after
    return (
        formats.UNKNOWN if broker.rack is None else _text(broker.rack, _LONGEST_NAME),
        arrow(number(before.replicas), number(after.replicas)),
        arrow(number(before.leaders), number(after.leaders)),
        arrow(known_size(plan, before.size_bytes), known_size(plan, after.size_bytes)),
        known_size(plan, broker.bytes_in),
        known_size(plan, broker.bytes_out),
    )


def _alternatives(plan: Plan) -> Table:
    """The plan beside doing nothing and Kafka's own seeds."""
    table = _table("\nAlternative", *_ALTERNATIVE_COLUMNS)
    for row in plan.compared:
        style = "bold" if row.label == "this plan" else None
        # How many placements there were is in plan.json and the reports: a screen is narrow.
        table.add_row(_text(row.label.split(" of ")[0]), *_alternative(plan, row), style=style)
    return table


def _placed_new(plan: Plan) -> Table:
    """How even the cluster is with the new partitions, beside Kafka's own placements of them."""
    table = _table("\nNew partitions", "spread:\nreplicas", "\nleaders", "in a topic:\nreplicas", "\nleaders")
    for row in sentences.placed_new(plan):
        cells = (number(getattr(row, key)) for key in sentences.EVENNESS)
        table.add_row(_text(row.label), *cells, style="bold" if row.label == "this plan" else None)
    return table


def _front(plan: Plan) -> Table:
    """The Pareto front: bytes against evenness, each point with its gap to the least for its windows."""
    missed = ("\nscenarios",) if plan.scenarios else ()
    table = _table("\nFront", *_MOVES, *missed)
    shown = sentences.spread_out(plan.pareto, _POINTS_SHOWN)
    for point in shown:
        label = "this plan" if point.chosen else sentences.origin(plan, point)
        table.add_row(_text(label), *_moves(plan, point), style="bold" if point.chosen else None)
    hidden = len(plan.pareto) - len(shown)
    if hidden:
        table.add_row(f"[dim]and {counted(hidden, 'more point')}[/]")
    return table


def _variants(plan: Plan) -> Table:
    """The variants side by side, each with its best plan by the rule."""
    missed = ("\nscenarios",) if plan.scenarios else ()
    table = _table("\nVariant", "\nbrokers", *_MOVES, *missed, "\nat least", widest=_LONGEST_VARIANT)
    for row in plan.variants[:_VARIANTS_SHOWN]:
        cells = (number(row.brokers), *_moves(plan, row), formats.duration(row.seconds_at_throttle))
        table.add_row(_text(row.name), *cells, style="bold" if row.chosen else None)
    hidden = len(plan.variants) - _VARIANTS_SHOWN
    if hidden > 0:
        table.add_row(f"[dim]and {counted(hidden, 'more variant')}[/]")
    return table


def _moves(plan: Plan, row: FrontFigures) -> tuple[str, ...]:
    scenarios = plan.scenarios
    stood = [f"{number(len(scenarios) - row.scenarios_missed)} of {number(len(scenarios))}"] if scenarios else []
    return (
        known_size(plan, row.bytes_moved),
        sentences.gap(plan, row),
        number(row.replicas_moved),
        number(row.leaders_changed),
        sentences.above(row),
        sentences.completes(plan, row),
        *stood,
    )


def _scenarios(plan: Plan, console: Console) -> None:
    rows = plan.scenarios
    for row in rows[:_NOTES_SHOWN]:
        colour = "green" if row.feasible else "yellow"
        _print(f"[{colour}]scenario[/] {_text(sentences.scenario(row))}", console)
    if len(rows) > _NOTES_SHOWN:
        _print(f"[yellow]scenario[/] and {number(len(rows) - _NOTES_SHOWN)} more, see plan.json", console)


def _alternative(plan: Plan, row: CandidateFigures) -> Iterable[str]:
    counts = ("replicas_moved", "leaders_changed", "replica_spread", "leader_spread")
    return (
        known_size(plan, row.bytes_moved),
        *(number(getattr(row, key)) for key in counts),
        sentences.above(row),
        sentences.completes(plan, row),
    )


def _notes(plan: Plan, console: Console) -> None:
    """Limits, windows that could not be kept, and warnings; the first few of each, the rest counted."""
    if plan.limits:
        _print("[bold]limits[/] " + "; ".join(map(_limit, plan.limits)), console)
    relaxed = [_relaxed(row) for row in plan.balance.relaxed[:_NOTES_SHOWN]]
    _listed("relaxed", relaxed, len(plan.balance.relaxed), console)
    _listed("warning", list(plan.warnings[:_NOTES_SHOWN]), len(plan.warnings), console)


def _limit(limit: LimitRow) -> str:
    value, allowed = gate_cells(limit.key, limit.value, limit.limit, limit.broker)
    crossed = " [red]crossed[/]" if limit.crossed else ""
    name = _text(formats.words(limit.key.removeprefix("limits.")), _LONGEST_NOTE)
    return f"{name} {value} of {allowed}{crossed}"


def _relaxed(row: RelaxedRow) -> str:
    of = "" if row.topic is None else f" of {row.topic}"
    return f"{formats.words(row.window)}{of}: asked {row.wanted}, reached {sentences.reached(row)}: {row.why}"


def _listed(kind: str, notes: Sequence[str], total: int, console: Console) -> None:
    for note in notes:
        _print(f"[yellow]{kind}[/] {_text(note)}", console)
    if total > len(notes):
        _print(f"[yellow]{kind}[/] and {number(total - len(notes))} more, see plan.json", console)


def _written(files: Sequence[str], console: Console) -> None:
    """The folder, and what lies at its top: batches and roles have hundreds of files."""
    if not files:
        return
    folder = min((PurePath(file).parent for file in files), key=lambda path: len(path.parts))
    names = {PurePath(file).relative_to(folder).parts for file in files}
    tops = sorted({parts[0] + ("/" if len(parts) > 1 else "") for parts in names})
    _print(f"wrote {counted(len(files), 'file')} to [bold]{_text(str(folder))}[/]: {_text(' '.join(tops))}", console)

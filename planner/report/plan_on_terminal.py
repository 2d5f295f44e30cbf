"""plan.json → one terminal screen: the verdict, the terms, the brokers, the alternatives, and what was written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Console

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import counted, number
from planner.plan import headline
from planner.plan.bound_file import LONGEST_PROOF
from planner.plan.document.plan_types import Plan
from planner.plan.document.term_types import LimitRow, RelaxedRow
from planner.report import choice_tables, cluster_tables, sentences, terminal
from planner.report.plan_view import SOURCE
from planner.report.sentences import derived, pace
from planner.report.terminal import plain
from planner.report.view import Table

_NOTES_SHOWN = 5
_LONGEST_NOTE = 190
_LONGEST_WHY = 300
_LONGEST_STEP = 600
_Tables = tuple[tuple[Callable[[Plan], Table[Any]], int], ...]
# What is shown behind the terms, and how many rows of it.
_TABLES: _Tables = (
    (cluster_tables.brokers, 12),
    (cluster_tables.traffic, 12),
    (cluster_tables.log_dirs, 12),
    (choice_tables.compared, 12),
    (choice_tables.placed_new, 12),
    (choice_tables.variants, 8),
    (choice_tables.front, 6),
)


def show(plan: Plan, files: Sequence[str], console: Console) -> None:
    """Print a plan.json document, and the files it was written to; about 50 lines of 100 columns for 12 brokers.

    Sizes are decimal; `today → plan` wherever a cell holds two amounts.
    """
    _verdict(plan, console)
    terminal.table(choice_tables.terms(plan, telling=True), console, source=SOURCE)
    _zero_terms(plan, console)
    for table, most_rows in _TABLES:
        terminal.table(table(plan), console, source=SOURCE, most_rows=most_rows)
    _listed("variant", [f"{row.name}: {row.why_not}" for row in plan.variants if row.why_not], console)
    _scenarios(plan, console)
    _notes(plan, console)
    _written(files, console)


def _verdict(plan: Plan, console: Console) -> None:
    style = "bold green" if headline.calm(plan) else "bold yellow"
    step = headline.first_step(plan)
    terminal.first_step(step, console)
    why = f" Why: {plain(sentences.reasons(plan))}." if plan.partitions else ""
    proof = plain(plan.bound.proof.rstrip("."), LONGEST_PROOF)
    lines = (
        f"[bold]{plain(plan.cluster.name, 60)}[/]: {plain(sentences.wishes(plan.changes, 6), _LONGEST_NOTE)}",
        f"[{style}]{plain(headline.headline(plan), _LONGEST_NOTE)}[/]",
        plain(headline.state(plan), _LONGEST_STEP) + why,
        f"Runs in {plain(pace(plan))}. Best of {plain(sentences.searched(plan))}.",
        *([f"[dim]By default: {plain(derived(plan))}.[/]"] if derived(plan) else []),
        f"[dim]{'Proof, of this step alone' if step else 'Proof'}: {proof}.[/]",
        *([f"Chosen: {plain(headline.chosen(plan), _LONGEST_WHY)}."] if _says_why(plan) else []),
    )
    stays = plan.new_partitions or [*headline.racks(plan)]
    for line in lines if plan.partitions else lines[: 3 if stays else 2]:
        _print(line, console)


def _says_why(plan: Plan) -> bool:
    """True where there was more to choose from than the balance asked for."""
    return bool(plan.variants) or plan.choice.rule != "asked"


def _print(line: str, console: Console) -> None:
    console.print(line, highlight=False)


def _zero_terms(plan: Plan, console: Console) -> None:
    """Terms that are 0 today and stay so, on one line: a screen has few."""
    silent = [term for term in plan.terms if not any(sentences.columns(term))]
    for said, unknown in (("0 today and after", False), ("unknown", True)):
        names = [formats.words(term.name) for term in silent if (term.plan is None) == unknown]
        if names:
            _print(f"[dim]{said}: {plain(', '.join(names), _LONGEST_STEP)}[/]", console)


def _scenarios(plan: Plan, console: Console) -> None:
    rows = plan.scenarios
    for row in rows[:_NOTES_SHOWN]:
        colour = "green" if row.feasible else "yellow"
        _print(f"[{colour}]scenario[/] {plain(sentences.scenario(row))}", console)
    if len(rows) > _NOTES_SHOWN:
        _print(f"[yellow]scenario[/] and {number(len(rows) - _NOTES_SHOWN)} more, see plan.json", console)


def _notes(plan: Plan, console: Console) -> None:
    """Limits, windows that could not be kept, and warnings; the first few of each, the rest counted."""
    if plan.limits:
        _print("[bold]limits[/] " + "; ".join(map(_limit, plan.limits)), console)
    _listed("relaxed", [*map(_relaxed, plan.balance.relaxed)], console)
    _listed("warning", plan.warnings, console)


def _limit(limit: LimitRow) -> str:
    value, allowed = gate_cells(limit.key, limit.value, limit.limit, limit.broker)
    crossed = " [red]crossed[/]" if limit.crossed else ""
    name = plain(formats.words(limit.key.removeprefix("limits.")), _LONGEST_NOTE)
    return f"{name} {value} of {allowed}{crossed}"


def _relaxed(row: RelaxedRow) -> str:
    of = "" if row.topic is None else f" of {row.topic}"
    return f"{formats.words(row.window)}{of}: asked {row.wanted}, reached {sentences.reached(row)}: {row.why}"


def _listed(kind: str, notes: Sequence[str], console: Console) -> None:
    for note in notes[:_NOTES_SHOWN]:
        _print(f"[yellow]{kind}[/] {plain(note, _LONGEST_NOTE)}", console)
    if len(notes) > _NOTES_SHOWN:
        _print(f"[yellow]{kind}[/] and {number(len(notes) - _NOTES_SHOWN)} more, see {SOURCE}", console)


def _written(files: Sequence[str], console: Console) -> None:
    """The folder, and what lies at its top: batches and roles have hundreds of files."""
    if not files:
        return
    folder = min((PurePath(file).parent for file in files), key=lambda path: len(path.parts))
    names = {PurePath(file).relative_to(folder).parts for file in files}
    tops = sorted({parts[0] + ("/" if len(parts) > 1 else "") for parts in names})
    _print(f"wrote {counted(len(files), 'file')} to [bold]{plain(str(folder))}[/]: {plain(' '.join(tops))}", console)

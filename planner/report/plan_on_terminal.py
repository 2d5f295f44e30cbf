"""plan.json → the terminal: one screen to decide on and what to type next; all that the reports have by `--verbose`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath
from typing import Literal

from rich.console import Console

from planner.model import formats
from planner.model.formats import counted, number
from planner.plan import headline
from planner.plan.document.comparison_types import RelaxedRow
from planner.plan.document.plan_types import Plan
from planner.report import plan_view, sentences, summary, terminal, verdict
from planner.report.plan_view import SOURCE
from planner.report.terminal import plain
from planner.report.view import Facts, Lines, Section, Value, told

Detail = Literal["verdict", "summary", "everything"]

_NOTES_SHOWN = 3
_ROWS_SHOWN = 30
_LONGEST_NOTE = 160
_MORE = "planner show --verbose lists them"


def show(plan: Plan, console: Console, folder: str | None = None, files: int = 0, detail: Detail = "summary") -> None:
    """Print a plan.json document: its verdict alone, some 25 lines of 80 columns, or everything but single partitions.

    `folder` is where the plan is, if it is in one, and `files` how many were written there just now. Sizes are decimal.
    """
    terminal.first_step(headline.first_step(plan), console)
    crossed = any(row.crossed for row in plan.limits)
    style = "bold red" if crossed else "bold green" if headline.calm(plan) else "bold yellow"
    terminal.say(f"[{style}]{plain(verdict.verdict(plan))}[/]", console)
    terminal.say(f"[bold]{plain(headline.headline(plan))}[/]", console)
    if detail == "verdict":
        return
    first = (summary.section(plan),)
    rest = plan_view.details(plan) if detail == "everything" else (_notes(plan),)
    shown = [section for section in (*first, *rest, _next(plan, folder, files)) if section.blocks]
    # What stands first needs no title.
    untitled = (Section("", shown[0].blocks), *shown[1:])
    console.print()
    terminal.sections(untitled, SOURCE, console, most_rows=_ROWS_SHOWN)


def _notes(plan: Plan) -> Section:
    """Windows that could not be kept, scenarios, risks and warnings; the first few of each, the rest counted."""
    scenarios = [sentences.scenario(row) for row in plan.scenarios]
    notes = (
        *([f"writes: {verdict.writes(plan)}"] if plan.partitions else []),
        *_listed("not met", [*map(_relaxed, plan.balance.relaxed)]),
        *_listed("scenario", scenarios),
        *_listed("variant", [f"{row.name}: {row.why_not}" for row in plan.variants if row.why_not]),
        *_listed("warning", plan.warnings),
    )
    return Section("", told(Lines(notes)))


def _listed(kind: str, notes: Sequence[str]) -> list[str]:
    shown = [f"{kind}: {formats.printable(note, _LONGEST_NOTE)}" for note in notes[:_NOTES_SHOWN]]
    rest = len(notes) - len(shown)
    return [*shown, *([f"{kind}: {number(rest)} more; {_MORE}"] if rest else [])]


def _relaxed(row: RelaxedRow) -> str:
    of = "" if row.topic is None else f" of {row.topic}"
    return f"{formats.words(row.window)}{of}: {sentences.shortfall(row)} ({row.why})"


def _next(plan: Plan, folder: str | None, files: int) -> Section:
    """Where the files are, and what to type now."""
    if folder is None:
        return Section("", ())
    at = PurePath(folder)
    play = f"cd {shlex.quote(str(at / 'ansible'))} && ansible-playbook"
    written = f" ({counted(files, 'file')} written)" if files else ""
    facts: list[tuple[str, Value]] = [("Read", f"{at / 'report.html'}{written}")]
    if headline.has_something_to_do(plan):
        facts += [
            ("Next", f"{play} apply.yml --check"),
            ("Then", "ansible-playbook apply.yml, then verify.yml; to go back: rollback.yml"),
        ]
    if plan.unfinished:
        facts.append(("After that", "capture the state again, and planner whatif for the next step"))
    return Section("", (Facts(tuple(facts)),))

"""plan.json → report.md, the comment under a pull request: what to decide on first, every move folded below.

GitHub refuses comments over 65,536 characters, so each section has its own allowance of bytes: whatever does not fit
is counted and named, and the two long lists share what the rest has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.model.formats import counted
from planner.model.markup import code, text
from planner.plan import headline
from planner.plan.document.cluster_types import InputRow
from planner.plan.document.plan_types import Plan
from planner.plan.templates import environment
from planner.report import cluster_tables, markdown, plan_view, verdict
from planner.report.markdown import Room
from planner.report.plan_view import SOURCE
from planner.report.view import View

# Below GitHub's 65,536, for a bot that adds a line of its own. Counted in bytes: never fewer than characters.
MOST_BYTES = 65_000
# What a decision needs, of the sections in front of the folded ones.
_COMMENT = {
    "facts": Room(),
    "measures": Room(3_000),
    "warnings": Room(6_000),
    "limits": Room(2_000),
    "relaxed": Room(3_000),
    "risks": Room(),
    "commands": Room(),
    "variants": Room(3_000),
    "scenarios": Room(3_000),
}
_ROOMS = _COMMENT | {
    "racks-table": Room(1_500),
    "brokers-table": Room(7_000, 60),
    "batches-table": Room(1_200),
    "front-table": Room(3_000, 8),
    "new-partitions": Room(6_000),
    "new": Room(),
    "placed-new": Room(2_000),
    "new-lists": Room(8_000),
    "log-dirs": Room(4_000, 32),
    "log-dir-moves": Room(4_000),
    "terms": Room(7_000),
    "compared": Room(3_000),
    "found": Room(),
}
# What a folded page's own lines and the sentence on what is left out take, and a little more; a list's names two names.
_FRAME_BYTES = 400
_LIST_FRAME_BYTES = 2_000


def render(plan: Plan, pages: Sequence[View] = ()) -> str:
    """The report of a plan.json document, under 65,536 bytes however large the plan; GitHub and GitLab read it alike.

    Sizes are decimal, brokers are ids, a replica list names its preferred leader first. `pages` are folded in.
    """
    parts = list(markdown.body(plan_view.sections(plan), SOURCE, _ROOMS))
    parts += _folds(pages, (MOST_BYTES - _bytes(_page(plan, parts))) // 2)
    free = MOST_BYTES - _bytes(_page(plan, parts))
    changed = cluster_tables.topics(plan, changed=True)
    for table, share in ((changed, free // 3), (cluster_tables.partitions(plan), free)):
        if table.rows:
            fits = min(share, MOST_BYTES - _bytes(_page(plan, parts))) - _LIST_FRAME_BYTES
            parts.append(markdown.table(table, SOURCE, Room(fits, folded=True)))
    return _page(plan, parts)


def comment(plan: Plan) -> str:
    """What report.md begins with, to be read by itself: a comment under a pull request."""
    unfolded = [section for section in plan_view.sections(plan) if not section.folded]
    return _page(plan, list(markdown.body(unfolded, SOURCE, _COMMENT)))


def _bytes(page: str) -> int:
    return len(page.encode())


def _page(plan: Plan, parts: Sequence[str]) -> str:
    """The report with these sections."""
    page = (
        environment()
        .get_template("report.md.j2")
        .render(
            cluster=text(plan.cluster.name, 100),
            first_step=text(headline.first_step(plan), 600),
            headline=text(headline.headline(plan)),
            verdict=text(verdict.verdict(plan)),
            parts=parts,
            terraform=text(verdict.terraform(plan)),
            plan_id=code(plan.plan_id),
            inputs=_inputs(plan.inputs),
        )
    )
    return page.rstrip() + "\n"


def _folds(pages: Sequence[View], most_bytes: int) -> Iterator[str]:
    """The pages in the space that there is, shared alike; what a short one leaves is for those behind it."""
    for number, page in enumerate(pages):
        lines = "\n\n".join(markdown.body(page.sections, page.source)).splitlines()
        shown = list(markdown.fitting(lines, most_bytes // (len(pages) - number) - _FRAME_BYTES))
        rest = len(lines) - len(shown)
        if rest:
            shown += ["", f"{rest:,} lines left out here: see `{page.source}`."]
        most_bytes -= _bytes("\n".join(shown)) + _FRAME_BYTES
        yield markdown.folded(markdown.line(page.title), "\n".join(shown))


def _inputs(inputs: Sequence[InputRow]) -> str:
    """The files with the start of their digests; the whole digests are in plan.json."""
    shown = [f"{text(file.path, 120)} (SHA-256 {code(file.sha256[:12])}…)" for file in inputs[:4]]
    more = len(inputs) - len(shown)
    return ", ".join([*shown, *([f"and {counted(more, 'more file')}"] if more else [])]) or "no file"

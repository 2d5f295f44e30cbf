"""Writes any view, and report.md for pull requests, in GitHub's and GitLab's Markdown.

No name is read as markup. GitHub refuses comments over 65,536 characters, so each section of report.md has a maximum
number of bytes. Rows that don't fit are counted and named, and the two long lists share the bytes that are left.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.model.formats import counted, first_lines
from planner.model.generated_text import environment
from planner.model.generated_text import markdown_code as code
from planner.model.generated_text import markdown_text as text
from planner.plan import headline
from planner.plan.document.plan_types import Plan
from planner.report import cluster_tables, verdict
from planner.report.plan_sections_and_next_steps import SOURCE, old_tfvars, sections, terraform_news
from planner.report.view import (
    Block,
    Facts,
    Lines,
    Table,
    Value,
    View,
    ViewSection,
    Writer,
    left_out_here,
    written,
    written_rows,
)

# Names are written as code. Markup in running text is escaped.
_WRITER = Writer(code, text, lambda written: f"**{written}**")
_LONGEST_REST = 600


@dataclass(frozen=True)
class Room:
    """How many bytes and rows a table or a list may take (None: any number), and whether it is folded."""

    most_bytes: int | None = None
    most_rows: int | None = None
    folded: bool = False


def line(value: Value) -> str:
    """A value as Markdown's running text or table cell."""
    return written(value, _WRITER)


def render(view: View) -> str:
    """A page: the first steps, the title, then each section under its heading."""
    steps = (f"**{text(step, _LONGEST_REST)}**" for step in view.first_steps if step)
    title = [f"# {line(view.title)}"] if view.title else []
    return "\n\n".join([*steps, *title, *body(view.sections, view.source, heading="## {}")]) + "\n"


def body(
    sections: Iterable[ViewSection], source: str, rooms: Mapping[str, Room] | None = None, heading: str = "**{}**"
) -> Iterator[str]:
    """The sections as paragraphs, lists and tables.

    With `rooms`, only the tables and lists that have a room, by the name of the table or of the list's section.
    """
    for section in sections:
        blocks = list[str]()
        for block in section.blocks:
            name = block.name if isinstance(block, Table) else section.name
            if rooms is None or name in rooms:
                blocks.append(_block(block, source, rooms[name] if rooms else Room()))
        if section.plot and blocks:
            blocks.insert(0, f"![Plot: {line(section.title)}](plots/{section.plot}.svg)")
        if section.folded:
            if blocks:
                yield folded(line(section.title), "\n\n".join(blocks))
            continue
        # A table with a title needs no heading above it.
        if blocks and section.title and not (isinstance(section.blocks[0], Table) and section.blocks[0].title):
            yield heading.format(line(section.title))
        yield from blocks


def _block(block: Block, source: str, room: Room) -> str:
    match block:
        case Lines():
            bullet, separator = ("- ", "\n") if block.bulleted else ("", "\n\n")
            shown = list(fitting((f"{bullet}{line(each)}" for each in block.lines), room.most_bytes))
            hidden = len(block.lines) - len(shown)
            return separator.join(
                [*shown, *([f"{bullet}{_left_out_text(counted(hidden, block.line), source)}"] if hidden else [])]
            )
        case Facts(facts):
            return "\n".join(f"- {label}: {line(value)}" for label, value in facts)
        case _:
            return table(block, source, room)


def _left_out_text(description: str, source: str) -> str:
    return text(left_out_here(description, source), _LONGEST_REST)


def fitting(lines: Iterable[str], most_bytes: int | None) -> Iterator[str]:
    """The first lines that fit with their newlines. Later lines, perhaps a million, are never generated."""
    for each in lines:
        if most_bytes is not None:
            most_bytes -= len(each.encode()) + 1
            if most_bytes < 0:
                return
        yield each


def table(block: Table[Any], source: str, room: Room) -> str:
    """A table under its title; if `room` says so it is folded, and the title has the number of rows."""
    shown = block.shown(room.most_rows)
    written_cells = zip(shown, written_rows(shown, block.columns, _WRITER), strict=True)
    rows = (
        _row([f"**{cells[0]}**", *cells[1:]] if block.strong and block.strong(row) else cells)
        for row, cells in written_cells
    )
    lines = list(fitting(rows, room.most_bytes))
    rules = ("--:" if column.numeric else ":--" for column in block.columns)
    head = [_row(column.heading for column in block.columns), f"|{'|'.join(rules)}|"]
    left_out = block.left_out(shown[: len(lines)])
    markdown = "\n".join([*head, *lines]) + (f"\n\n{_left_out_text(left_out, source)}" if left_out else "")
    if room.folded:
        return folded(f"{block.title} ({counted(len(block.rows), block.row)})", markdown)
    return f"**{block.title}**\n\n{markdown}" if block.title else markdown


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def folded(summary: str, lines: str) -> str:
    """A block that readers can unfold; the blank lines make its content Markdown again."""
    return f"<details>\n<summary>{summary}</summary>\n\n{lines}\n\n</details>"


# Below GitHub's 65,536, so that a bot can add a line. Bytes are counted, because they are never fewer than characters.
MOST_BYTES = 65_000
# The tables and lists of the unfolded sections, which reviewers need for a decision.
_COMMENT = {
    "facts": Room(),
    "measures": Room(3_000),
    "warnings": Room(6_000),
    "limits": Room(2_000),
    "relaxed": Room(3_000),
    "risks": Room(),
    "commands": Room(),
    "variants": Room(3_000),
    "busiest-hours": Room(1_000),
    "scenarios": Room(3_000),
}
_ROOMS = _COMMENT | {
    "racks-table": Room(1_500),
    "brokers-table": Room(7_000, 60),
    "batches-table": Room(1_200),
    "rack-traffic": Room(500),
    "worst-hours": Room(2_000),
    "months-of-hours": Room(3_000),
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
# Bytes for a folded page's frame and its sentence on the rest, with a reserve; a list's sentence has two long names.
_FRAME_BYTES = 400
_LIST_FRAME_BYTES = 2_000


def report(plan: Plan, pages: Sequence[View] = ()) -> str:
    """The report of a plan.json document, under 65,536 bytes for any plan; GitHub and GitLab show it alike.

    Sizes are decimal, brokers are ids, a replica list starts with its preferred leader. `pages` are folded in.
    """
    parts = list(body(sections(plan), SOURCE, _ROOMS))
    free_bytes = (MOST_BYTES - _bytes(_page(plan, parts))) // 2
    for index, page in enumerate(pages):
        # Each page has an equal share of the bytes; later pages get what a short page leaves.
        lines = "\n\n".join(body(page.sections, page.source)).splitlines()
        shown = list(fitting(lines, free_bytes // (len(pages) - index) - _FRAME_BYTES))
        if hidden_count := len(lines) - len(shown):
            shown += ["", f"{hidden_count:,} lines left out here: see `{page.source}`."]
        content = "\n".join(shown)
        free_bytes -= _bytes(content) + _FRAME_BYTES
        parts.append(folded(line(page.title), content))
    free_bytes = MOST_BYTES - _bytes(_page(plan, parts))
    changed = cluster_tables.topics(plan, changed=True)
    for list_table, share in ((changed, free_bytes // 3), (cluster_tables.partitions(plan), free_bytes)):
        if list_table.rows:
            most_bytes = min(share, MOST_BYTES - _bytes(_page(plan, parts))) - _LIST_FRAME_BYTES
            parts.append(table(list_table, SOURCE, Room(most_bytes, folded=True)))
    return _page(plan, parts)


def comment(plan: Plan, folder: str | None = None) -> str:
    """The beginning of report.md, for a comment on a pull request about the plan in `folder`."""
    unfolded = [section for section in sections(plan, folder=folder) if not section.folded]
    return _page(plan, list(body(unfolded, SOURCE, _COMMENT)))


def refusal(lines: Sequence[str]) -> str:
    """A comment on a plan that isn't shown: the first line is the heading, the others are the reasons."""
    heading, *reasons = lines
    return "\n".join([f"**Refused: {text(heading)}**", "", *(f"- {text(reason)}" for reason in reasons)]) + "\n"


def _bytes(page: str) -> int:
    return len(page.encode())


def _page(plan: Plan, parts: Sequence[str]) -> str:
    """The report with these sections. It shows the first 12 digits of each input's SHA-256; plan.json has all."""
    files = [f"{text(file.path, 120)} (SHA-256 {code(file.sha256[:12])}…)" for file in plan.inputs]
    page = (
        environment()
        .get_template("report.md.j2")
        .render(
            cluster=text(plan.cluster.name, 100),
            first_step=text(headline.first_step(plan), 600),
            headline=text(headline.headline(plan)),
            verdict=text(verdict.verdict(plan)),
            parts=parts,
            terraform=text(terraform_news(plan)),
            old_tfvars=text(old_tfvars(plan)),
            imports=any(not topic.partitions_before for topic in plan.new_topics),
            throttled=plan.execution.throttle_bytes_per_sec is not None and plan.replicas_copied > 0,
            plan_id=code(plan.plan_id),
            inputs=", ".join(first_lines(files, 4, "file")) or "no file",
        )
    )
    return page.rstrip() + "\n"

"""Markdown for a pull request: only our own markup counts, report.md fits, and what is left out is counted."""

from __future__ import annotations

import json
import re

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from plan_documents import Document, typed
from report_documents import huge, small, with_alternatives, with_disks, with_traffic

from planner.model.generated_text import markdown_code, markdown_text
from planner.report import markdown
from planner.report.markdown import Room
from planner.report.view import Column, Facts, Lines, Name, Strong, Table, View, ViewSection


def table(count: int = 2, title: str = "") -> Table[int]:
    """A table of the numbers below a count."""
    columns = (
        Column[int]("Name", lambda n: Name(f"a|b{n}"), numeric=False),
        Column[int]("Twice", lambda n: Strong(2 * n)),
    )
    return Table("number", range(count), columns, "numbers", title, strong=lambda n: n == 1)


def test_a_page_has_headings_lists_and_tables() -> None:
    """A page has its first lines, then headings, lists and tables; a table with a title has that as its heading."""
    sections = (
        ViewSection(Name("g*"), (Lines(("said_",)), Lines(("a paragraph",), bulleted=False))),
        ViewSection("Not shown", (table(title="Numbers"),)),
        ViewSection("", (Facts((("Runs in", "2 batches"),)),)),
    )
    page = markdown.render(View("c: title", sections, ("FIRST STEP", "")))

    assert page == (
        "**FIRST STEP**\n\n# c: title\n\n## `g*`\n\n- said\\_\n\na paragraph\n\n**Numbers**\n\n"
        "| Name | Twice |\n|:--|--:|\n| `a\\|b0` | **0** |\n| **`a\\|b1`** | **2** |\n\n- Runs in: 2 batches\n"
    )


def test_rows_keep_their_cells() -> None:
    """Each row has two cells, whatever its name holds."""
    tokens = [
        token.type for token in MarkdownIt("commonmark").enable("table").parse(markdown.table(table(), "x", Room()))
    ]
    assert (2, 4) == (tokens.count("th_open"), tokens.count("td_open"))


def test_what_does_not_fit_is_counted() -> None:
    """Bytes and rows are each limited, and what doesn't fit is counted; no row is made that isn't shown."""
    by_bytes = markdown.table(table(1_000_000), "plan.json", Room(most_bytes=100))
    by_rows = markdown.table(table(10), "plan.json", Room(most_rows=3))

    assert "999,996 numbers left out here: see plan.json." == by_bytes.splitlines()[-1]
    assert "7 numbers left out here: see plan.json." == by_rows.splitlines()[-1]
    lines = Lines([f"line {number}" for number in range(9)], "line")
    shown = list(markdown.body([ViewSection("", (lines,), "lines")], "plan.json", {"lines": Room(25)}))
    assert ["- line 0\n- line 1\n- 7 lines left out here: see plan.json."] == shown


def test_what_is_folded_says_how_much_it_is() -> None:
    """A folded table or section says how much it has; blank lines make its content Markdown."""
    folded = "<details>\n<summary>Numbers (2 numbers)</summary>\n\n| Name"
    assert markdown.table(table(title="Numbers"), "x", Room(folded=True)).startswith(folded)
    (section,) = markdown.body([ViewSection("All (1)", (Lines(("a",)),), folded=True)], "x")
    assert "<details>\n<summary>All (1)</summary>\n\n- a\n\n</details>" == section


def test_only_what_has_a_room_is_shown_where_rooms_are_given() -> None:
    """If rooms are given, only tables and lists with a room are shown."""
    sections = [ViewSection("A", (Lines(("a",)), table()), "a"), ViewSection("B", (Lines(("b",)),), "b")]
    assert ["**A**", "- a"] == list(markdown.body(sections, "x", {"a": Room()}))


GOLDEN = DATA / "report" / "small.md"
NASTY = "a|b`c``d*e*<img src=x onerror=alert(1)>[f](http://g)\n# h\n\n| i | @everyone $x$ \\"


def parse(written: str) -> list[Token]:
    """All tokens of a text as in GitHub's Markdown (tables, inline HTML), also the inline ones."""
    blocks = MarkdownIt("commonmark", {"html": True}).enable("table").parse(written)
    return [token for block in blocks for token in (block, *(block.children or ()))]


def test_the_small_plan_reads_as_reviewed() -> None:
    """The small plan's report is byte for byte the reviewed one; review a new text, then write it into the file."""
    assert GOLDEN.read_text(encoding="utf-8") == markdown.report(typed(small()))


def test_the_verdict_comes_first() -> None:
    """The verdict follows the heading, then what is copied and how far that is from the proven minimum."""
    lines = markdown.report(typed(small())).splitlines()

    assert lines[0] == "## Kafka plan for orders-eu"
    assert lines[2].startswith("**Ready to apply: within the limit; ")
    assert lines[4].startswith("Copies 24.0 GB (2 replicas of 2 partitions), the proven minimum; elects 2 leaders")


def test_a_stored_plan_gives_the_same_bytes() -> None:
    """A plan with sorted keys gives the same report."""
    plan = small(changes={"replace_brokers": {"10": 11, "9": 12}, "set_racks": {"10": "a", "9": "b"}})

    assert markdown.report(typed(plan)) == markdown.report(typed(json.loads(json.dumps(plan, sort_keys=True))))


@pytest.mark.slow
def test_a_huge_plan_stays_under_the_limit_and_says_what_is_missing() -> None:
    """GitHub refuses comments above 65,536 characters; every section that is cut counts or names the rest."""
    written = markdown.report(typed(huge()))

    assert 40_000 < len(written.encode()) < 65_536
    for text in ("more file", "warnings left out here", "targets left out here", "points between left out here"):
        assert text in written
    for text in ("brokers neither among", "batches, ", "racks left out here", "that copy less, ", "partitions, "):
        assert text in written
    assert 9 == written.count("<details>") == written.count("</details>")


@pytest.mark.slow
def test_brokers_shown_and_left_out_add_up() -> None:
    """The table has at most 60 brokers; the rest is counted, and together these are all brokers."""
    written = markdown.report(typed(huge()))

    table = written.split("**Brokers, today → plan**")[1].split("see plan.json.")[0]
    rows = sum(line.startswith("| ") and line[2].isdigit() for line in table.splitlines())
    left_out = int(table.split(" brokers neither among")[0].splitlines()[-1])
    assert 400 == rows + left_out
    assert 0 < rows <= 60


def test_the_comment_is_what_the_report_begins_with() -> None:
    """The comment is the report up to its folded parts, plus the plan's id: short enough for any forge."""
    report, comment = markdown.report(typed(small())), markdown.comment(typed(small()))

    assert comment.startswith(report.partition("\n\n<details>")[0])
    assert comment.endswith(report[report.index("\nPlan id `") :])
    assert "<details>" not in comment
    assert len(markdown.comment(typed(huge(topics=300, partitions=2)))) < 40_000


def test_a_comment_names_the_folder_that_a_report_is_in() -> None:
    """A comment names the plan's folder, and quotes it in commands; report.md is the same for every folder."""
    report, comment = markdown.report(typed(small())), markdown.comment(typed(small()), "my plans/a.plan")

    files = "review report.md or report.html, apply with ansible/."
    assert f"- Files: `my plans/a.plan/`: {files}\n" in comment
    assert "- Dry run: `cd 'my plans/a.plan/ansible' && ansible-playbook apply.yml --check`." in comment
    assert f"- Files, in the folder of this report: {files}\n" in report
    assert "- Dry run, in the plan's folder: `cd ansible && ansible-playbook apply.yml --check`." in report


@pytest.mark.slow
def test_rows_shown_and_left_out_add_up() -> None:
    """The partitions in the table and those counted as left out are all partitions."""
    plan = huge(topics=300, partitions=10)
    written = markdown.report(typed(plan))
    table = written.split("<summary>Partition changes (3,000 partitions)</summary>")[1]
    shown = sum(line.startswith("| `t") for line in table.splitlines())
    left_out = int(table.split(" partitions, t")[0].splitlines()[-1].replace(",", ""))

    assert shown + left_out == 3_000
    assert shown > 10


@given(st.text(max_size=60) | st.just(NASTY))
def test_names_never_become_markup(name: str) -> None:
    """A name in running text is text, in a cell it is one code span, and a row keeps its cells."""
    table = f"| a | b |\n|:--|:--|\n| {markdown_code(name)} | {markdown_text(name)} |\n"
    tokens = parse(f"x {markdown_text(name)}\n\n{table}")
    kinds = {token.type for token in tokens} - {"html_inline"}
    html = {token.content for token in tokens if token.type == "html_inline"}

    assert kinds <= {
        "paragraph_open", "paragraph_close", "inline", "text", "text_special", "code_inline", "table_open",
        "table_close", "thead_open", "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open",
        "th_close", "td_open", "td_close",
    }  # fmt: skip
    assert html <= {"<!-- -->"}
    assert 2 == sum(token.type == "td_open" for token in tokens)
    assert 1 == sum(token.type == "paragraph_open" for token in tokens)


def test_code_shows_the_name_itself() -> None:
    """Underscores, dots and backticks are shown as they are."""
    for name in ("__consumer_offsets", "a.b-c_d", "tick`tock", "`", "``x"):
        spans = [token.content for token in parse(markdown_code(name)) if token.type == "code_inline"]

        assert [name] == spans


def test_nasty_names_stay_names_in_the_whole_report() -> None:
    """In the whole report, no name makes an image, link or mention, and tables keep their rows."""
    plan = small(warnings=[NASTY], inputs=[{"path": NASTY, "sha256": "ab" * 32}])
    plan["cluster"]["name"] = NASTY
    plan["changes"] = {
        "set_racks": {"5": NASTY},
        "set_replication_factor": [{"topics": NASTY, "replication_factor": 3}],
    }
    for row in [*plan["brokers"], *plan["racks"]]:
        row["rack"] = NASTY
    for row in plan["partitions"]:
        row["topic"] = NASTY
    for row in plan["topics"]:
        row["name"] = NASTY
    plan["balance"]["relaxed"][0] |= {"topic": NASTY, "why": NASTY}
    tokens = parse(markdown.report(typed(plan)))
    rows = "".join({"tr_open": "\n", "td_open": "x"}.get(token.type, "") for token in tokens).split()
    expected = parse(markdown.report(typed(small(inputs=[{"path": "p", "sha256": "ab" * 32}]))))

    assert not {"link_open", "em_open"} & {token.type for token in tokens}
    plots = {f"plots/{name}.svg" for name in ("racks", "brokers", "front")}
    assert {token.attrs["src"] for token in tokens if token.type == "image"} <= plots
    assert {"<!-- -->"} == {token.content for token in tokens if token.type == "html_inline"}
    assert "".join({"tr_open": "\n", "td_open": "x"}.get(t.type, "") for t in expected).split() == rows
    assert "@everyone" not in "\n".join(token.content for token in tokens if token.type == "text")


@pytest.mark.parametrize("section", ["warnings", "racks", "limits", "pareto"])
def test_empty_sections_leave_no_heading(section: str) -> None:
    """A table without rows has no heading."""
    headings = {
        "warnings": "**Warnings**",
        "racks": "| Rack | Brokers |",
        "limits": "**Limits**",
        "pareto": "would give",
    }

    assert headings[section] in markdown.report(typed(small()))
    assert headings[section] not in markdown.report(typed(small(**{section: []})))


def test_a_plan_that_changes_nothing_has_no_moves_to_unfold() -> None:
    """A plan that changes nothing has no batches, no lists of partitions, and nothing for Terraform."""
    written = markdown.report(typed(small(partitions=[], batches=[], topics=[])))

    assert "\nNothing to do: no plan tried comes closer to the targets.\n" in written
    assert [
        "Racks",
        "Brokers",
        "Alternatives that copy less or more",
        "Compared with doing nothing and with Kafka's own placement",
        "Every term",
        "How the plan was found",
    ] == [
        line.removeprefix("<summary>").removesuffix("</summary>")
        for line in written.splitlines()
        if line.startswith("<summary>")
    ]


def test_what_decides_comes_before_what_is_folded() -> None:
    """In order: verdict, measures, warnings, limits, missed targets, risks and commands; then the folded details."""
    written = markdown.report(typed(small()))
    order = (
        "Ready to apply: within the limit; 1 warning. 1 balance target is not met: no plan tried meets all targets.",
        "| replicas per broker |",
        "**Warnings**",
        "**Limits**",
        "**Targets that aren't met**",
        "**Risks**",
        "ansible-playbook rollback.yml",
        "<details>",
        "**Racks, today → plan**",
        "**Brokers, today → plan**",
        "**Batches, in this order**",
        "**What copying less or more would give**",
        "**fairness**",
        "Plan id `0123",
    )

    assert sorted(written.index(part) for part in order) == [written.index(part) for part in order]
    assert written.index("<details>") < 4_000


@pytest.mark.parametrize(
    "plan", [small(), huge(300, 4), with_disks(), with_traffic(), with_alternatives()], ids=lambda plan: ""
)
def test_github_and_gitlab_render_it(plan: Document) -> None:
    """In a CommonMark parser with tables, every table line is a row, and folded content is Markdown.

    An HTML block ends at a blank line, so `</summary>` needs one behind it, and `</details>` one before it.
    """
    written = markdown.report(typed(plan))
    tokens = parse(written)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    table_lines = sum(line.startswith("|") for line in written.splitlines())
    rows = sum(token.type == "tr_open" for token in tokens)
    tables = sum(token.type == "table_open" for token in tokens)

    assert table_lines == rows + tables
    assert {"<details>", "</details>"} == {line.splitlines()[0] for line in html}
    assert all(re.fullmatch(r"<details>\n<summary>[^<>\n]+</summary>|</details>", block) for block in html)
    assert html.count("</details>") * 2 == len(html)


def test_peaks_stand_beside_each_broker_and_each_batch() -> None:
    """If disks are stated, each broker's peak is shown, and for each batch its time and its fullest broker."""
    written = markdown.report(typed(with_disks()))
    rows = [token.type for token in parse(written)]

    assert "| 1 | `a` |  | 40 → 39 | 20 → 19 | 40.0 GB → 39.0 GB | 0 B | 12.0 GB | 40.0 GB, 80 % |" in written
    assert "| 1 | 1 | 1 | 1 | 12.0 GB | 4 min | 40.0 GB, 80 %, broker 3 |" in written
    assert "| `limits.disk_used` | 80 % on broker 3, 40.0 GB | 90 %, 45 GB | kept |" in written
    assert "| `limits.eta` | 8 min | 1 h | kept |" in written
    assert rows.count("th_open") == 1 + [token.type for token in parse(markdown.report(typed(small())))].count(
        "th_open"
    )


def test_traffic_stands_beside_each_broker_and_rack() -> None:
    """If rates are known, brokers and racks have two columns of traffic, today and with the plan."""
    written = markdown.report(typed(with_traffic()))
    columns = [token.type for token in parse(written)].count("th_open")

    assert "40.0 GB → 39.0 GB | 0 B | 12.0 GB | 60.0 MB/s → 58.5 MB/s | 30.0 MB/s → 28.5 MB/s |" in written
    assert "| Rack | Brokers | Replicas | Leaders | Size | Network in | Network out |" in written
    assert columns == 4 + [token.type for token in parse(markdown.report(typed(small())))].count("th_open")


def test_plans_of_format_1_0_are_read() -> None:
    """Plans of format 1.0 have no disks and no peaks: batches have a dash, brokers no column."""
    plan = small()
    for row in plan["brokers"]:
        del row["disk_bytes"], row["peak_size_bytes"]
    for batch in plan["batches"]:
        del batch["fullest_broker"]
    del plan["execution"]["seconds_at_throttle"]

    assert "| 1 | 1 | 1 | 1 | 12.0 GB | 4 min | – |" in markdown.report(typed(plan))
    assert "Peak disk |" not in markdown.report(typed(plan)).split("**Batches")[0]


def test_no_bytes_are_shown_where_sizes_are_unknown() -> None:
    """Without sizes, bytes are dashes, not 0 B."""
    plan = small()
    plan["cluster"]["sizes_known"] = False
    assert "Peak disk use" not in markdown.report(typed(plan))
    brokers = markdown.report(typed(plan)).split("**Brokers")[1].split("**Batches")[0]

    assert "GB" not in brokers
    assert "| 1 | `a` |  | 40 → 39 | 20 → 19 | – | – | – |" in brokers


def test_variants_scenarios_and_the_choice_are_told() -> None:
    """Variants are in one table with the chosen one marked; the front has gaps, and scenarios say what doesn't hold."""
    written = markdown.report(typed(with_alternatives()))
    rows = written.split("**Compared with the variants**\n\n")[1].split("\n\n")[0].splitlines()

    assert "- Chosen: variant one: the most even of all\n" in written
    assert rows[2].startswith("| **one** | rebalance: all | 4 | 24.0 GB | 24.0 GB | 0 % | 2 | 2 | +3.25 % leaders |")
    assert "| nearest | 1 of 2 | 8 min |" in rows[2]
    assert rows[2].endswith("**this plan** |")
    assert rows[3].startswith("| two\\_\\[bold\\] |")
    assert rows[4].endswith("| 2 of 2 | 8 min | no candidate keeps every rule |")
    assert {14} == {row.count("|") for row in rows}
    assert "| 30.0 GB | 24.0 GB | 25 % |" in written
    assert "- orders × 2: disk 48.0 GB on broker 4 (target: at most 30.0 GB)\n" in written
    assert "- logs: all targets for bytes and traffic are met, and no disk is too full\n" in written


def test_a_refusal_without_its_plan_says_why() -> None:
    """Without a plan, the comment has only the reasons, with text from the cluster escaped."""
    assert "**Refused: not safe:**\n\n- broker 5 is \\*cordoned\\*\n" == markdown.refusal(
        ["not safe:", "broker 5 is *cordoned*"]
    )

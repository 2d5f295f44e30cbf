"""The Markdown report: what a reviewer reads, its size, and that no name can become markup."""

from __future__ import annotations

import json
import re

import pytest
from folders import DATA
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from plan_documents import Document, change, typed
from report_documents import huge, small, with_alternatives, with_disks, with_traffic

from planner.model import markup
from planner.plan.document.cluster_types import THROTTLE_CONFIGS
from planner.report import plan_markdown

GOLDEN = DATA / "report" / "small.md"
NASTY = "a|b`c``d*e*<img src=x onerror=alert(1)>[f](http://g)\n# h\n\n| i | @everyone $x$ \\"


def parse(markdown: str) -> list[Token]:
    """All tokens of a text as GitHub's Markdown (tables, inline HTML) has them, inline ones included."""
    blocks = MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown)
    return [token for block in blocks for token in (block, *(block.children or ()))]


def test_the_small_plan_reads_as_reviewed() -> None:
    """Byte for byte what was looked at; write the new text into the file after looking at it."""
    assert GOLDEN.read_text(encoding="utf-8") == plan_markdown.render(typed(small()))


def test_the_verdict_comes_first() -> None:
    """The first line after the heading says what moves and how far it is from the least."""
    lines = plan_markdown.render(typed(small())).splitlines()

    assert lines[0] == "## Kafka plan for orders-eu"
    assert lines[2].startswith("**Ready to apply: the one limit is kept; ")
    assert lines[4].startswith("Copies 24.0 GB (2 replicas of 2 partitions), the proven least; elects 2 leaders")


def test_a_stored_plan_gives_the_same_bytes() -> None:
    """Keys sorted or not: the report is the same."""
    plan = small(changes={"replace_brokers": {"10": 11, "9": 12}, "set_racks": {"10": "a", "9": "b"}})

    assert plan_markdown.render(typed(plan)) == plan_markdown.render(
        typed(json.loads(json.dumps(plan, sort_keys=True)))
    )


@pytest.mark.slow
def test_a_huge_plan_stays_under_the_limit_and_says_what_is_missing() -> None:
    """GitHub refuses comments over 65,536 characters; every section that is cut counts and names its rest."""
    markdown = plan_markdown.render(typed(huge()))

    assert 40_000 < len(markdown.encode()) < 65_536
    for text in ("more file", "warnings left out here", "windows left out here", "points between left out here"):
        assert text in markdown
    for text in ("brokers neither among", "batches, ", "racks left out here", "that copy less, ", "partitions, "):
        assert text in markdown
    assert 9 == markdown.count("<details>") == markdown.count("</details>")


@pytest.mark.slow
def test_brokers_shown_and_left_out_add_up() -> None:
    """The table has at most 60 rows, and the ids of all others."""
    markdown = plan_markdown.render(typed(huge()))

    table = markdown.split("**Brokers, today → plan**")[1].split("see plan.json.")[0]
    rows = sum(line.startswith("| ") and line[2].isdigit() for line in table.splitlines())
    left_out = int(table.split(" brokers neither among")[0].splitlines()[-1])
    assert 400 == rows + left_out
    assert 0 < rows <= 60


def test_the_comment_is_what_the_report_begins_with() -> None:
    """Up to what is folded, and then the plan's id: short enough for any forge, however large the plan."""
    report, comment = plan_markdown.render(typed(small())), plan_markdown.comment(typed(small()))

    assert comment.startswith(report.partition("\n\n<details>")[0])
    assert comment.endswith(report[report.index("\nPlan id `") :])
    assert "<details>" not in comment
    assert len(plan_markdown.comment(typed(huge(topics=300, partitions=2)))) < 40_000


@pytest.mark.slow
def test_rows_shown_and_left_out_add_up() -> None:
    """Partitions in the table and partitions counted as left out are all of them."""
    plan = huge(topics=300, partitions=10)
    markdown = plan_markdown.render(typed(plan))
    table = markdown.split("<summary>Partition changes (3,000 partitions)</summary>")[1]
    shown = sum(line.startswith("| `t") for line in table.splitlines())
    left_out = int(table.split(" partitions, t")[0].splitlines()[-1].replace(",", ""))

    assert shown + left_out == 3_000
    assert shown > 10


@given(st.text(max_size=60) | st.just(NASTY))
def test_names_never_become_markup(name: str) -> None:
    """A name in running text is text, in a cell it is one code span, and a row keeps its cells."""
    table = f"| a | b |\n|:--|:--|\n| {markup.code(name)} | {markup.text(name)} |\n"
    tokens = parse(f"x {markup.text(name)}\n\n{table}")
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
    """Underscores, dots and backticks as they are."""
    for name in ("__consumer_offsets", "a.b-c_d", "tick`tock", "`", "``x"):
        spans = [token.content for token in parse(markup.code(name)) if token.type == "code_inline"]

        assert [name] == spans


def test_nasty_names_stay_names_in_the_whole_report() -> None:
    """Cluster, racks, topics, warnings, reasons and files: no image, no link, no mention, and the tables hold."""
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
    tokens = parse(plan_markdown.render(typed(plan)))
    rows = "".join({"tr_open": "\n", "td_open": "x"}.get(token.type, "") for token in tokens).split()
    expected = parse(plan_markdown.render(typed(small(inputs=[{"path": "p", "sha256": "ab" * 32}]))))

    assert not {"link_open", "em_open"} & {token.type for token in tokens}
    plots = {f"plots/{name}.svg" for name in ("racks", "brokers", "front")}
    assert {token.attrs["src"] for token in tokens if token.type == "image"} <= plots
    assert {"<!-- -->"} == {token.content for token in tokens if token.type == "html_inline"}
    assert "".join({"tr_open": "\n", "td_open": "x"}.get(t.type, "") for t in expected).split() == rows
    assert "@everyone" not in "\n".join(token.content for token in tokens if token.type == "text")


@pytest.mark.parametrize("section", ["warnings", "racks", "limits", "pareto"])
def test_empty_sections_leave_no_heading(section: str) -> None:
    """A table without rows isn't printed."""
    headings = {
        "warnings": "**Warnings**",
        "racks": "| Rack | Brokers |",
        "limits": "**Gates**",
        "pareto": "more, movement",
    }

    assert headings[section] in plan_markdown.render(typed(small()))
    assert headings[section] not in plan_markdown.render(typed(small(**{section: []})))


def test_a_plan_that_changes_nothing_has_no_moves_to_unfold() -> None:
    """No batches, no lists, nothing for Terraform."""
    markdown = plan_markdown.render(typed(small(partitions=[], batches=[], topics=[])))

    assert "\nNothing to do: no allowed move brings the balance asked for any closer.\n" in markdown
    assert [
        "Racks",
        "Brokers",
        "Less or more movement",
        "Beside doing nothing and Kafka's own placement",
        "Every term",
        "How the plan was found",
    ] == [
        line.removeprefix("<summary>").removesuffix("</summary>")
        for line in markdown.splitlines()
        if line.startswith("<summary>")
    ]


def test_what_decides_comes_before_what_is_folded() -> None:
    """In this order: the verdict, the measures, warnings, limits, relaxed windows, risks and commands; then details."""
    markdown = plan_markdown.render(typed(small()))
    order = (
        "Ready to apply: the one limit is kept; 1 balance target can't be met; 1 warning.",
        "| replicas per broker |",
        "**Warnings**",
        "**Gates**",
        "**Balance that could not be kept**",
        "**Risks**",
        "ansible-playbook rollback.yml",
        "<details>",
        "**Racks, today → plan**",
        "**Brokers, today → plan**",
        "**Batches, in this order**",
        "**What less, or more, movement would give**",
        "**fairness**",
        "Plan id `0123",
    )

    assert sorted(markdown.index(part) for part in order) == [markdown.index(part) for part in order]
    assert markdown.index("<details>") < 4_000


@pytest.mark.parametrize(
    "plan", [small(), huge(300, 4), with_disks(), with_traffic(), with_alternatives()], ids=lambda plan: ""
)
def test_github_and_gitlab_render_it(plan: Document) -> None:
    """By a CommonMark parser with tables: every table line is a row of a table, and what is folded is Markdown.

    An HTML block ends at a blank line, so `</summary>` needs one behind it, and `</details>` one before it.
    """
    markdown = plan_markdown.render(typed(plan))
    tokens = parse(markdown)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    table_lines = sum(line.startswith("|") for line in markdown.splitlines())
    rows = sum(token.type == "tr_open" for token in tokens)
    tables = sum(token.type == "table_open" for token in tokens)

    assert table_lines == rows + tables
    assert {"<details>", "</details>"} == {line.splitlines()[0] for line in html}
    assert all(re.fullmatch(r"<details>\n<summary>[^<>\n]+</summary>|</details>", block) for block in html)
    assert html.count("</details>") * 2 == len(html)


def test_terraform_is_told_what_changes_for_it() -> None:
    """The order of operations and the rule that ignores a throttle, only where a topic is declared anew."""
    topic = {**small()["topics"][0], "name": "orders", "replication_factor_before": [2], "replication_factor": 3}
    raised = change("orders", 5, [1, 2], [1, 2, 4])
    mixed = {**topic, "name": "mixed", "replication_factor_before": [1, 2], "replication_factor": None}
    plan = small(topics=[topic, mixed])
    markdown = plan_markdown.render(typed(plan | {"partitions": [*plan["partitions"], raised]}))
    rule = next(token.content for token in parse(markdown) if token.type == "fence" and token.info == "hcl")

    assert "<summary>Terraform</summary>" in markdown
    assert "1 topic with another replication factor; 1 topic left out" in markdown
    assert all(f'config["{key}"]' in rule for key in THROTTLE_CONFIGS)
    assert "Terraform" not in plan_markdown.render(typed(small()))


def test_peaks_stand_beside_each_broker_and_each_batch() -> None:
    """Where disks are stated: how full each one becomes, and the fullest in every batch with the time it takes."""
    markdown = plan_markdown.render(typed(with_disks()))
    rows = [token.type for token in parse(markdown)]

    assert "| 1 | `a` |  | 40 → 39 | 20 → 19 | 40.0 GB → 39.0 GB | 0 B | 12.0 GB | 40.0 GB, 80 % |" in markdown
    assert "| 1 | 1 | 1 | 1 | 12.0 GB | 4 min | 40.0 GB, 80 %, broker 3 |" in markdown
    assert "| `limits.disk_used` | 40.0 GB on broker 3 | 45 GB | kept |" in markdown
    assert "| `limits.eta` | 8 min | 1 h | kept |" in markdown
    assert rows.count("th_open") == 1 + [token.type for token in parse(plan_markdown.render(typed(small())))].count(
        "th_open"
    )


def test_traffic_stands_beside_each_broker_and_rack() -> None:
    """Where rates are known, and only there: two columns, today and after."""
    markdown = plan_markdown.render(typed(with_traffic()))
    columns = [token.type for token in parse(markdown)].count("th_open")

    assert "40.0 GB → 39.0 GB | 0 B | 12.0 GB | 60.0 MB/s → 58.5 MB/s | 30.0 MB/s → 28.5 MB/s |" in markdown
    assert "| Rack | Brokers | Replicas | Leaders | Size | Network in | Network out |" in markdown
    assert columns == 4 + [token.type for token in parse(plan_markdown.render(typed(small())))].count("th_open")


def test_plans_of_format_1_0_are_read() -> None:
    """They know no disks and no peaks: a dash, and no column."""
    plan = small()
    for row in plan["brokers"]:
        del row["disk_bytes"], row["peak_size_bytes"]
    for batch in plan["batches"]:
        del batch["fullest_broker"]
    del plan["execution"]["seconds_at_throttle"]

    assert "| 1 | 1 | 1 | 1 | 12.0 GB | 4 min | – |" in plan_markdown.render(typed(plan))
    assert "Peak disk |" not in plan_markdown.render(typed(plan)).split("**Batches")[0]


def test_no_bytes_are_shown_where_sizes_are_unknown() -> None:
    """A dash, not 0 B: nobody measured."""
    plan = small()
    plan["cluster"]["sizes_known"] = False
    assert "Peak disk use" not in plan_markdown.render(typed(plan))
    brokers = plan_markdown.render(typed(plan)).split("**Brokers")[1].split("**Batches")[0]

    assert "GB" not in brokers
    assert "| 1 | `a` |  | 40 → 39 | 20 → 19 | – | – | – |" in brokers


def test_variants_scenarios_and_the_choice_are_told() -> None:
    """Side by side with the one chosen marked, the front with each point's gap, and where a scenario doesn't hold."""
    markdown = plan_markdown.render(typed(with_alternatives()))
    rows = markdown.split("**Beside the variants**\n\n")[1].split("\n\n")[0].splitlines()

    assert "- Chosen: variant one: the most even of all\n" in markdown
    assert rows[2].startswith("| **one** | rebalance: all | 4 | 24.0 GB | 24.0 GB | 0 % | 2 | 2 | +3.25 % leaders |")
    assert "| nearest | 1 of 2 | 8 min |" in rows[2]
    assert rows[2].endswith("**this plan** |")
    assert rows[3].startswith("| two\\_\\[bold\\] |")
    assert rows[4].endswith("| 2 of 2 | 8 min | no candidate keeps every rule |")
    assert {14} == {row.count("|") for row in rows}
    assert "| 30.0 GB | 24.0 GB | 20 % |" in markdown
    assert "- orders × 2: disk 48.0 GB on broker 4, allowed at most 30.0 GB\n" in markdown
    assert "- logs: every window of bytes and every disk holds\n" in markdown

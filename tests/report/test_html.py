"""report.html is one page that needs no network; every text in its sections is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache

import html5lib
import pytest
from large_plans import HOSTILE, hostile, large
from plan_documents import document, typed
from report_documents import small, with_alternatives, with_disks

from planner.report import html
from planner.report.view import Column, Facts, Joined, Lines, Name, Quantity, Strong, Table, View, ViewSection


def test_every_text_is_escaped_once() -> None:
    """Names, sentences and marked texts are escaped exactly once."""
    assert "&lt;b&gt; &amp;" == html.line(Name("<b> &"))
    assert "<b>&lt;i&gt;</b>" == html.line(Strong("<i>"))


HTML = "{http://www.w3.org/1999/xhtml}"


def page(plan) -> str:
    """The page's source."""
    return _page(json.dumps(plan))


@cache
def _page(plan: str) -> str:
    return html.files(typed(json.loads(plan)))["report.html"].decode()


def parsed(plan):
    """The page's root from a parser that refuses every error of the HTML standard; parsed once per plan."""
    return _parsed(json.dumps(plan))


@cache
def _parsed(plan: str):
    return html5lib.HTMLParser(strict=True).parse(_page(plan))


def found(root, tag):
    """Every element with a tag."""
    return list(root.iter(f"{HTML}{tag}"))


def text(element) -> str:
    """The text of an element, with single spaces."""
    return " ".join("".join(element.itertext()).split())


def by_id(root, name):
    """The element with an id."""
    return next(element for element in root.iter() if element.get("id") == name)


def rows(root, table) -> list[list[str]]:
    """A table's cells, without the head."""
    body = next(by_id(root, table).iter(f"{HTML}tbody"))
    return [[text(cell) for cell in row] for row in body]


def shown(*blocks):
    """The main part of a page that has one section with these blocks."""
    source = html.view_page(View("v", (ViewSection("s", blocks, "s"),), source="plan.json"), {})
    return html5lib.HTMLParser(strict=True).parse(source).find(f".//{HTML}main")


def test_cells_have_what_they_are_sorted_by():
    """Cells have a key to sort by if they are numbers and their table can be sorted."""
    columns = (
        Column[int]("name", lambda n: Name(f"t{n}"), numeric=False),
        Column[int]("size", lambda n: Quantity(n, "bytes")),
    )
    table = shown(Table("row", [5], columns, "t", sortable=True))
    plain = shown(Table("row", [5], columns, "t", strong=lambda _: True))

    assert [("t5", None), ("5\u00a0B", "5")] == [(cell.text, cell.get("data-sort")) for cell in found(table, "tr")[1]]
    assert {None} == {cell.get("data-sort") for cell in plain.iter()}
    assert ["strong", None] == [found(each, "tr")[1].get("class") for each in (plain, table)]
    assert [("name", None), ("size", "number")] == [(each.text, each.get("class")) for each in found(table, "tr")[0]]


def test_what_is_to_be_typed_is_told_from_its_sentence():
    """Names in a list of commands are marked as code; names in other sentences aren't."""
    typed_line = Joined(("Run ", Name("ansible-playbook <x>"), "."))
    typed_item, plain = found(shown(Lines((typed_line,), "command"), Lines((typed_line,))), "li")

    assert [text(typed_item), "ansible-playbook <x>"] == [text(plain), text(found(typed_item, "code")[0])]
    assert not found(plain, "code")


def test_what_is_left_out_is_said():
    """Rows and lines that don't fit are counted."""
    table = Table("row", range(html.MOST_ROWS + 7), (Column("n", str),))
    main = shown(table, Lines(["x"] * 105, "warning"))

    assert "7 rows left out here: see plan.json." == text(found(main, "p")[0])
    assert "5 warnings left out here: see plan.json." == text(found(main, "li")[-1])


def test_blocks_say_what_they_are():
    """Lines become a list or paragraphs, and facts become terms and descriptions."""
    main = shown(Lines(("a",)), Lines(("b",), bulleted=False), Facts((("label", 1),)))
    assert ["a", "b", "label", "1"] == [text(found(main, tag)[0]) for tag in ("li", "p", "dt", "dd")]


PLANS = {
    "small": small,
    "disks": with_disks,
    "alternatives": with_alternatives,
    "nothing": lambda: document([]),
    "hostile": hostile,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_page_is_valid_html_with_ids_of_its_own(plan):
    """Each id is on the page once, and every reference to an id has its target."""
    root = parsed(plan())
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    refers = ("aria-labelledby", "aria-describedby", "aria-controls", "for")
    named = {element.get(key) for element in root.iter() for key in refers if element.get(key)}
    links = {link.get("href")[1:] for link in found(root, "a")}

    assert len(set(ids)) == len(ids)
    assert named | links <= set(ids)


def test_the_verdict_comes_first():
    """The verdict is first, then the sections in their order."""
    root = parsed(small())

    assert "orders-eu" == text(found(root, "h1")[0])
    (verdict,) = (each for each in root.iter() if each.get("class", "").startswith("verdict"))
    assert "verdict look" == verdict.get("class")
    sentence = "Copies 24.0 GB (2 replicas of 2 partitions), the proven minimum; elects 2 leaders."
    assert text(verdict).startswith("Ready to apply: within the limit; ")
    assert text(verdict).endswith(sentence)
    assert [
        "In short", "Warnings", "Limits and balance", "Risks", "How to apply and roll back", "Racks", "Brokers",
        "Movement", "Batches", "Disk use while the plan runs", "Alternatives that copy less or more",
        "Compared with doing nothing and with Kafka's own placement", "Every term", "How the plan was found",
        "Every change, partition by partition", "Topics",
    ] == [text(each) for each in found(root, "h2")]  # fmt: skip


def test_every_plot_has_its_numbers_beside_it():
    """Each plot has its numbers beside it, in folded tables with a caption and heads for rows or columns."""
    root = parsed(small())
    figures = [section for section in found(root, "section") if found(section, "figure")]

    assert 6 == len(figures)
    for section in figures:
        tables = [table for details in found(section, "details") for table in found(details, "table")]
        assert tables
        assert all(text(found(table, "caption")[0]) for table in tables)
    assert {"col", "row"} == {head.get("scope") for head in found(root, "th")}


def test_tables_say_what_the_plan_says():
    """The tables of copies, of what brokers hold, of batches and of topics have the plan's numbers."""
    root = parsed(small())

    assert [["1", "4", "12.0 GB"], ["2", "4", "12.0 GB"]] == rows(root, "movement-table")
    assert ["4", "batch 2", "0 B", "24.0 GB", "2.00 GB"] == rows(root, "held-table")[3]
    assert ["1", "1", "0 B", "12.0 GB"] == rows(root, "copies-table")[0]
    assert ["2", "1", "1", "1", "12.0 GB", "4 min", "40.0 GB, broker 3"] == rows(root, "batches-table")[1]
    assert ["orders", "2", "2", "2", "2", "24.0 GB"] == rows(root, "topics-table")[0]


def test_topics_are_sorted_by_numbers_and_not_by_how_they_are_written():
    """24.0 GB is sorted as 24,000,000,000 bytes."""
    root = parsed(small())
    last = [row[-1].get("data-sort") for row in next(by_id(root, "topics-table").iter(f"{HTML}tbody"))]

    assert ["24000000000", "5000000"] == last


def test_hostile_names_are_text_everywhere():
    """A name never becomes a script, image or element; the page shows the name itself."""
    root = parsed(hostile())

    assert [html._template_text("report.js")] == [script.text for script in found(root, "script")]
    assert [] == found(root, "img")
    assert not [key for each in root.iter() for key in each.attrib if key.startswith("on")]
    assert text(found(root, "h1")[0]).startswith("</script><script>alert(1)</script>\"'><img")
    assert rows(root, "topics-table")[0][0].startswith(HOSTILE[:60])
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", page(hostile()))


def test_a_page_needs_no_network_and_runs_one_script():
    """The content security policy allows one script and no network, and nothing on the page needs more."""
    source = page(hostile())
    root = parsed(hostile())
    policy = next(meta.get("content") for meta in found(root, "meta") if meta.get("http-equiv"))
    script = found(root, "script")[0].text
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}'" in policy
    assert [] == re.findall(r"""\b(?:src|href)="(?!#|data:,)""", re.sub(r"<h1>.*?</h1>|&[^;]*;", "", source))
    assert [] == re.findall(r"url\((?!#)|@import", source)


def test_the_same_plan_gives_the_same_files():
    """The page and each plot are the same bytes each time."""
    first, second = html.files(typed(small())), html.files(typed(small()))

    assert first == second
    assert [
        "report.html", "plots/front.svg", "plots/brokers.svg", "plots/racks.svg", "plots/movement.svg",
        "plots/batches.svg", "plots/held.svg",
    ] == list(first)  # fmt: skip


def test_the_page_shows_the_very_plots_of_the_folder():
    """The page has the same plots as the folder, but their style sheet only once."""
    files = html.files(typed(small()))
    source = files["report.html"].decode()

    for path, content in files.items():
        if path.startswith("plots/"):
            plot = re.sub("<style>.*?</style>", "", content.decode()).rstrip("\n")
            assert plot in source, path


@pytest.mark.slow
def test_a_large_plan_is_summarized():
    """A large plan's page counts what it leaves out, and stays small."""
    plan = large(300, 100, 3_500, 4, 900)
    source = page(plan)

    assert len(source) < 4_000_000
    assert f"{3_500 - html.MOST_TOPICS} topics that copy less, 2.00 TB in all, left out here" in source
    assert "400 batches, 501 to 900, that copy " in source
    assert html.MOST_TOPICS == source.count('data-sort="4"') // 3


def test_nothing_to_do_says_so():
    """A plan with nothing to do has no section or plot of moves."""
    root = parsed(document([]))

    assert "Nothing to do" in text(found(root, "header")[0])
    assert not {"movement", "batches", "held"} & {section.get("id") for section in found(root, "section")}


def test_what_only_some_plans_have():
    """Variants, scenarios and disks are there if the plan has them."""
    root = parsed(with_alternatives())

    assert ["one", "two_[bold]", "three"] == [row[0] for row in rows(root, "variants")]
    assert 2 == len(found(by_id(root, "scenarios"), "li"))
    assert "40.0 GB, 80 %" == rows(parsed(with_disks()), "brokers-table")[0][-1]


def test_limits_crossed_stand_out():
    """An exceeded limit is in the table, and marks the verdict for a second look."""
    limit = {"key": "limits.bytes_moved", "limit": 10, "value": 24}
    root = parsed(small(limits=[limit], warnings=[], balance={"wanted": {}, "relaxed": []}))

    assert [["limits.bytes_moved", "24 B", "10 B", "exceeded"]] == rows(root, "limits")
    assert "look" in next(each for each in root.iter() if each.get("class", "").startswith("verdict")).get("class")


def test_pages_of_other_commands_are_sections_of_their_own():
    """Other commands' pages are sections with tables, and HTML in them is plain text."""
    table = Table("row", [("a@b", 1)], (Column("broker", lambda row: Name(row[0]), numeric=False),))
    lines = Lines((Joined(("said of ", Name("<script>alert(1)</script>"))),))
    page = View("What breaks", (ViewSection(Name("group <1>"), (lines, table)),), source="planner failures")
    source = html.files(typed(small()), (page,))["report.html"].decode()
    root = html5lib.HTMLParser(strict=True).parse(source)
    section = by_id(root, "page-1")

    assert ["What breaks"] == [text(each) for each in found(section, "h2")]
    assert ["group <1>"] == [text(each) for each in found(section, "h3")]
    assert [["a@b"]] == [[text(cell) for cell in row] for row in found(section, "tr")[1:]]
    assert "said of <script>alert(1)</script>" in text(section)
    assert 1 == len(found(root, "script"))
    assert "#page-1" in [link.get("href") for link in found(root, "a")]


@pytest.mark.slow
def test_a_page_too_long_is_cut_and_says_so():
    """Sections, lines and rows that don't fit are counted, with the command that shows them all."""
    table = Table("member", range(5_000), (Column("number", str),))
    lines = Lines([f"line {number} {'x' * 90}" for number in range(20_000)])
    long = View(
        "All",
        (ViewSection("", (lines, table)), *(ViewSection(f"group {n}", ()) for n in range(99))),
        source="planner x",
    )
    source = html.files(typed(small()), (long,))["report.html"].decode()

    assert len(source) < len(html.files(typed(small()))["report.html"]) + 700_000
    for rest in ("19,900 lines", "4,500 members", "40 sections"):
        assert f"{rest} left out here: see planner x." in source

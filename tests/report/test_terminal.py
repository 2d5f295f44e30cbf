"""The terminal: tables that fit, a plan on one screen, and everything if that is asked for."""

from __future__ import annotations

import io
import json
import re
from io import StringIO
from typing import Any

import pytest
from folders import DATA
from plan_documents import typed
from report_documents import broker, huge, small, with_alternatives
from rich.console import Console

from planner.report import terminal
from planner.report.terminal import Detail
from planner.report.view import Column, Facts, Lines, Name, Table, Value, View, ViewSection


def lines_of(
    *blocks: Lines | Facts | Table[tuple[Value, ...]], width: int = 60, is_terminal: bool = False
) -> list[str]:
    """The printed lines of a view with these blocks."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, force_terminal=is_terminal, color_system=None)
    terminal.show(View("", (ViewSection("", blocks),)), console)
    return screen.getvalue().splitlines()


def table(*rows: tuple[Value, ...], most: int | None = None) -> Table[tuple[Value, ...]]:
    """A table of names and counts."""
    columns = (Column("Topic", lambda row: row[0], numeric=False), Column("Replicas", lambda row: row[1], narrow="no."))
    return Table("topic", rows, columns, most=most)  # type: ignore[arg-type]


def test_numbers_are_flush_right_and_lines_end_where_their_text_ends() -> None:
    """Numbers are aligned right under short headings; if the output is no terminal, lines have no blanks at the end."""
    assert ["Topic   no.", "orders    1", "x       100"] == lines_of(table((Name("orders"), 1), (Name("x"), 100)))
    assert ["Topic  no.", "x      100"] == [
        line.rstrip() for line in lines_of(table((Name("x"), 100)), is_terminal=True)
    ]


def test_names_are_no_markup() -> None:
    """Rich's markup in names is shown as text; racks can have such names."""
    assert ["Topic    no.", "[red]r1    1"] == lines_of(table((Name("[red]r1"), 1)))
    assert r"\[bold]" == terminal.plain("[bold]")
    assert ["[/] and [bold]"] == lines_of(Lines(("[/] and [bold]",)))


def test_names_give_way_to_numbers() -> None:
    """On a narrow screen names are wrapped, numbers aren't, and no letter is lost."""
    lines = lines_of(table((Name("t" * 200), 123_456_789)), width=40)
    assert lines[1].endswith("t  123,456,789")
    assert 200 == "".join(lines[1:]).count("t")
    assert 40 == max(map(len, lines))


def test_names_get_narrower_before_a_column_is_left_out() -> None:
    """On a narrow screen the first column of names wraps, so that the last column is still there."""
    columns = (
        Column[tuple[str, int, str]]("Measure", lambda row: row[0], numeric=False),
        Column[tuple[str, int, str]]("Plan", lambda row: row[1]),
        Column[tuple[str, int, str]]("Limit", lambda row: row[2], numeric=False),
    )
    measures = Table("measure", [("n" * 30, 123_456_789, "at most 5 (exceeded)")], columns, "measures")
    for width, names in ((55, 24), (50, 19), (47, 16)):
        first, *rows = lines_of(measures, width=width)
        assert ["Measure", "Plan", "Limit"] == first.split()
        assert names == rows[0].split()[0].count("n")
    assert "Columns that need a wider terminal: limit" in lines_of(measures, width=46)


def test_what_is_left_out_is_counted() -> None:
    """Rows left out are counted, with the place where they are."""
    lines = lines_of(table(*((Name(f"t{number}"), number) for number in range(9)), most=2))
    assert "7 topics left out here: see --format json." == lines[-1]


def test_lines_are_wrapped_for_people_alone() -> None:
    """Lines are wrapped on a terminal, but not for programs."""
    long = " ".join(["word"] * 40)
    assert [long] == lines_of(Lines((long,)))
    assert 4 == len(lines_of(Lines((long,)), is_terminal=True))


def test_facts_have_their_labels() -> None:
    """Each fact is a line with its label."""
    assert ["Runs in  3", "Chosen   –"] == lines_of(Facts((("Runs in", 3), ("Chosen", None))))


def test_long_texts_are_cut() -> None:
    """A long text is cut at the length asked for."""
    assert len(terminal.plain("x" * 500, 60)) <= 60


GOLDEN = DATA / "report" / "small.txt"


def shown(plan: dict[str, Any], detail: Detail = "summary", folder: str | None = "out", *, columns: int = 0) -> str:
    """The text printed to a pipe, or to a terminal of so many columns."""
    out = StringIO()
    console = Console(file=out, width=columns or 1000, force_terminal=bool(columns), emoji=False)
    terminal.show_plan(typed(plan), console, folder, 4 if folder else 0, detail)
    return out.getvalue()


def test_the_small_plan_reads_as_reviewed() -> None:
    """The small plan's text is the reviewed one, apart from line ends; review a new text before you write the file."""
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == [line.rstrip() for line in shown(small()).splitlines()]


def test_plain_text_has_no_escape_codes_and_a_terminal_has_colors() -> None:
    """A pipe gets no escape codes, and a terminal gets colors."""
    assert "\x1b" not in shown(small())
    assert "\x1b[" in shown(small(), columns=80)


def test_lines_are_wrapped_on_a_terminal_alone() -> None:
    """Lines are wrapped on a terminal of 80 columns, without cutting numbers, but not for programs."""
    plan = small(warnings=["w " * 60])

    assert any(len(line) > 100 for line in shown(plan).splitlines())
    lines = _plain(shown(plan, columns=80))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


def test_a_screen_has_some_thirty_lines_of_eighty_columns() -> None:
    """The summary stays short, whatever the plan holds: 57 lines of 80 columns at most, and 36 for the small plan."""
    for plan in (small(warnings=["w"] * 9), huge(topics=50, partitions=5), with_alternatives()):
        assert len(_plain(shown(plan, columns=80))) <= 57, plan["cluster"]["name"]
    assert len(_plain(shown(small(), columns=80))) <= 36


def _plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def test_the_verdict_stands_alone_where_nothing_else_is_wanted() -> None:
    """`--quiet` prints only whether the plan can be applied, and what it does."""
    lines = shown(small(), "verdict").splitlines()

    assert ["Ready to apply", "Copies 24.0 GB (2 replicas of 2 partitions), the proven minimum; elects 2 leaders."] == [
        line.partition(":")[0] for line in lines
    ]


def test_everything_has_every_section_of_the_report() -> None:
    """`--verbose` has all sections: brokers, front, terms, how the plan was found; it begins like the summary."""
    text = shown(small(), "everything")

    assert text.startswith("".join(f"{line}\n" for line in shown(small()).splitlines()[:4]))
    for title in (
        "Risks",
        "Brokers",
        "Batches",
        "Alternatives that copy less or more",
        "Every term",
        "How the plan was found",
    ):
        assert f"\n\n{title}\n" in text


def test_a_proof_is_shown_to_its_end() -> None:
    """A long proof is printed to its end, where it says what the bound covers."""
    plan = small()
    plan["bound"]["proof"] = f"{'a long sentence; ' * 40}of those plans, none moves less"

    assert "of those plans, none moves less" in " ".join(shown(plan, "everything").split())


def test_many_brokers_are_cut_to_both_ends() -> None:
    """Of many brokers, the fullest, the emptiest and those that join or leave are shown; the rest is counted."""
    plan = small(brokers=[broker(n, "added" if n == 50 else "stays", (n, 1), (n, 1)) for n in range(100)])
    text = shown(plan, "everything")

    assert re.search(r"\n +50 +a +added ", text)
    assert "\n70 brokers left out here: see plan.json.\n" in text
    assert text.index("\n     0  ") < text.index("\n    99  ")


def test_a_stored_plan_shows_the_same() -> None:
    """`planner show` prints the same as `planner whatif`."""
    plan = small()

    assert shown(plan, "everything") == shown(json.loads(json.dumps(plan, sort_keys=True)), "everything")


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "\x1b[31mred", "a\nb", "x\\", "[link=http://y]z[/link]"])
@pytest.mark.parametrize("detail", ["summary", "everything"])
def test_names_are_shown_and_never_obeyed(name: str, detail: Detail) -> None:
    """Markup, escape codes and line breaks in the cluster's names are shown, not interpreted."""
    plan = small(warnings=[name], changes={"set_racks": {"1": name}})
    plan["cluster"]["name"] = name
    plan["balance"]["relaxed"][0] |= {"topic": name, "why": name}
    for row in plan["brokers"]:
        row["rack"] = name
    text = shown(plan, detail, f"{name}/plan")
    expected = name.replace("\x1b", "�").replace("\n", "�")

    assert f"\nCluster         {expected}: " in text
    assert ("\nwarning: " if detail == "summary" else "\nWarnings\n") + expected in text
    assert "\x1b" not in text


def test_what_is_not_met_and_warned_of_is_listed() -> None:
    """The first warnings and missed targets are listed, the rest counted; an exceeded limit is on top and in a row."""
    plan = small(warnings=["w" * 200, *(f"w{n}" for n in range(1, 9))])
    plan["terms"][3] |= {"limit": 1}
    plan["limits"] = [{"key": "limits.bytes_moved", "limit": 1, "value": 2}]
    text = shown(plan)

    assert text.startswith("Refused: 1 of 1 limit is exceeded (limits.bytes_moved: 2 B, at most 1 B); ")
    assert re.search(r"\ncopied +24.0 GB  at most 1 B \(exceeded\)\n", text)
    assert "\nnot met: topic replicas (racks" in text
    assert f"\nwarning: {'w' * 200}\nwarning: w1\n" in text
    assert "warning: w3\nwarning: 5 more; planner show --verbose lists them" in text


def test_a_failed_log_dir_is_to_be_repaired_first() -> None:
    """Before applying, the failed log dir should be repaired, because a later plan can use its room."""
    load = {"replicas": 1, "size_bytes": 9}
    failed = {"path": "/c", "error": "KafkaStorageException", "disk_bytes": None, "bytes_in": 0, "bytes_out": 0}
    failed |= {"least_bytes": None, "most_bytes": None, "before": load, "after": load}
    moved = {"bytes_moved": 0, "least_bytes_moved": 0}
    brokers = [{"id": 1, "within": True, "log_dirs": [failed], **moved}]
    rest = {"wanted": "10%", "gap_percent": 0.0, "replicas_moved": 0, "left_out": [], "moves": []}
    text = shown(small(log_dirs={"brokers": brokers, **moved, **rest}))

    assert "\nFirst     better repair log dir /c of broker 1, wait until all replicas are in sync, " in text


def test_the_next_command_names_the_folder() -> None:
    """The next command has the folder, quoted for a shell; without a folder or anything to do there is no command."""
    assert "\nNext      cd 'my plans/ansible' && ansible-playbook apply.yml --check\n" in shown(
        small(), folder="my plans"
    )
    assert "\nFiles     out/ (4 files): review report.md or report.html, apply with ansible/\n" in shown(small())
    assert "\nFiles" not in shown(small(), folder=None)
    down = small()
    down["brokers"][0]["seems_down"] = True
    assert (
        "\nFirst     start broker 1, wait until all replicas are in sync, then preferably capture the state "
        in shown(down)
    )
    behind = small()
    behind["risks"]["out_of_sync"] = 4
    assert "\nFirst     wait until all replicas are in sync (4 partitions under-replicated)\n" in shown(behind)
    assert "Next   nothing to apply" in shown(small(partitions=[], batches=[]), folder="there")
    assert "ansible-playbook" not in shown(small(partitions=[], batches=[]), folder="there")


def test_an_empty_plan_says_so() -> None:
    """A plan with nothing to do says so in the verdict, and still has its measures."""
    text = shown(small(partitions=[], batches=[]))

    assert "Nothing to apply: " in text
    assert "Nothing to do: no plan tried comes closer to the targets." in text
    assert "Duration" not in text
    assert "\nreplicas per broker " in text


def test_variants_scenarios_and_the_choice_are_told() -> None:
    """The summary has the rule and failing scenarios; `--verbose` has tables of variants and points."""
    text = " ".join(shown(with_alternatives()).split())
    everything = " ".join(shown(with_alternatives(), "everything").split())

    assert "Chosen variant one: the most even of all" in text
    assert "scenario: orders × 2: disk 48.0 GB on broker 4 (target: at most 30.0 GB)" in text
    assert "variant: three: no candidate keeps every rule" in text
    assert "one 4 24.0 GB 0 % 2 2 +3.25 % leaders nearest 1 of 2 8 min" in everything
    assert "two_[bold] 5 24.0 GB 0 % 2 2 +3.25 % leaders yes 1 of 2 8 min" in everything
    assert "changes: replicas 5%, leaders 5% 30.0 GB 25 %" in everything
    assert not re.search("\nChosen", shown(small()))

"""The terminal's one screen."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from folders import DATA
from plan_documents import typed
from report_documents import broker, huge, small, with_alternatives
from rich.console import Console

from planner.report import plan_on_terminal
from planner.report.plan_on_terminal import Detail

GOLDEN = DATA / "report" / "small.txt"


def shown(plan: dict[str, Any], detail: Detail = "summary", folder: str | None = "out", *, terminal: int = 0) -> str:
    """What is printed off a terminal, or on one of so many columns."""
    out = StringIO()
    console = Console(file=out, width=terminal or 1000, force_terminal=bool(terminal), emoji=False)
    plan_on_terminal.show(typed(plan), console, folder, 4 if folder else 0, detail)
    return out.getvalue()


def test_the_small_plan_reads_as_reviewed() -> None:
    """Byte for byte what was looked at, line ends aside; write the new text into the file after looking at it."""
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == [line.rstrip() for line in shown(small()).splitlines()]


def test_plain_text_has_no_escape_codes_and_a_terminal_has_colours() -> None:
    """A pipe gets the same words without codes."""
    assert "\x1b" not in shown(small())
    assert "\x1b[" in shown(small(), terminal=80)


def test_lines_are_wrapped_on_a_terminal_alone() -> None:
    """Programs read a line as it is; a screen of 80 columns cuts no digit."""
    plan = small(warnings=["w " * 60])

    assert any(len(line) > 100 for line in shown(plan).splitlines())
    lines = _plain(shown(plan, terminal=80))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


def test_a_screen_has_some_thirty_lines_of_eighty_columns() -> None:
    """Whatever the plan holds: what doesn't fit is counted."""
    for plan in (small(warnings=["w"] * 9), huge(topics=50, partitions=5), with_alternatives()):
        assert len(_plain(shown(plan, terminal=80))) <= 57, plan["cluster"]["name"]
    assert len(_plain(shown(small(), terminal=80))) <= 30


def _plain(text: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


def test_the_verdict_stands_alone_where_nothing_else_is_wanted() -> None:
    """`--quiet`: whether it can be applied, and what it does."""
    lines = shown(small(), "verdict").splitlines()

    assert ["Ready to apply", "Copies 24.0 GB (2 replicas of 2 partitions), the proven least; elects 2 leaders."] == [
        line.partition(":")[0] for line in lines
    ]


def test_everything_has_every_section_of_the_report() -> None:
    """`--verbose`: brokers, the front, all terms and how the plan was found, behind the same first lines."""
    text = shown(small(), "everything")

    assert text.startswith("".join(f"{line}\n" for line in shown(small()).splitlines()[:4]))
    for title in ("Risks", "Brokers", "Batches", "Less or more movement", "Every term", "How the plan was found"):
        assert f"\n\n{title}\n" in text


def test_a_proof_is_shown_to_its_end() -> None:
    """What a bound is about stands at the end of the sentence."""
    plan = small()
    plan["bound"]["proof"] = f"{'a long sentence; ' * 40}of those plans, none moves less"

    assert "of those plans, none moves less" in " ".join(shown(plan, "everything").split())


def test_many_brokers_are_cut_to_both_ends() -> None:
    """The fullest, the emptiest and those that come or leave; the rest is counted."""
    plan = small(brokers=[broker(n, "added" if n == 50 else "stays", (n, 1), (n, 1)) for n in range(100)])
    text = shown(plan, "everything")

    assert re.search(r"\n +50 +a +added ", text)
    assert "\n70 brokers left out here: see plan.json.\n" in text
    assert text.index("\n     0  ") < text.index("\n    99  ")


def test_a_stored_plan_shows_the_same() -> None:
    """`planner show` prints what `planner whatif` printed."""
    plan = small()

    assert shown(plan, "everything") == shown(json.loads(json.dumps(plan, sort_keys=True)), "everything")


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "\x1b[31mred", "a\nb", "x\\", "[link=http://y]z[/link]"])
@pytest.mark.parametrize("detail", ["summary", "everything"])
def test_names_are_shown_and_never_obeyed(name: str, detail: Detail) -> None:
    """Markup, escape codes and line breaks in names from the cluster stay characters."""
    plan = small(warnings=[name], changes={"set_racks": {"1": name}})
    plan["cluster"]["name"] = name
    plan["balance"]["relaxed"][0] |= {"topic": name, "why": name}
    for row in plan["brokers"]:
        row["rack"] = name
    text = shown(plan, detail, f"{name}/plan")
    expected = name.replace("\x1b", "�").replace("\n", "�")

    assert f"\nCluster          {expected}: " in text
    assert ("\nwarning: " if detail == "summary" else "\nWarnings\n") + expected in text
    assert "\x1b" not in text


def test_what_is_not_met_and_warned_of_is_listed() -> None:
    """The first of each kind, the rest counted; a crossed limit is called so on top and in its row."""
    plan = small(warnings=[f"w{n}" for n in range(9)])
    plan["terms"][3] |= {"limit": 1}
    plan["limits"] = [{"key": "limits.bytes_moved", "limit": 1, "value": 2}]
    text = shown(plan)

    assert text.startswith("Refused: 1 of 1 limit is crossed, limits.bytes_moved; ")
    assert re.search(r"\ncopied +24.0 GB  1 B \(not met\)\n", text)
    assert "not met: topic replicas: brokers differ by 2, asked for at most 1 (racks" in text
    assert "warning: w2\nwarning: 6 more; planner show --verbose lists them" in text


def test_the_next_command_names_the_folder() -> None:
    """As a shell takes it; nothing is to be typed where nothing is to be done, or where there is no folder."""
    assert "\nNext  cd 'my plans/ansible' && ansible-playbook apply.yml --check\n" in shown(small(), folder="my plans")
    assert "\nRead  out/report.html (4 files written)\n" in shown(small())
    assert "\nRead" not in shown(small(), folder=None)
    assert "Next" not in shown(small(partitions=[], batches=[]))


def test_an_empty_plan_says_so() -> None:
    """Nothing to do is the verdict; the measures still stand."""
    text = shown(small(partitions=[], batches=[]))

    assert "Nothing to apply: " in text
    assert "Nothing to do: no allowed move brings the balance asked for any closer." in text
    assert "Duration" not in text
    assert "\nreplicas per broker " in text


def test_variants_scenarios_and_the_choice_are_told() -> None:
    """The rule and how many scenarios the plan stands; side by side where everything is asked for."""
    text = " ".join(shown(with_alternatives()).split())
    everything = " ".join(shown(with_alternatives(), "everything").split())

    assert "Chosen variant one: the most even of all" in text
    assert "scenario: orders × 2: disk 48.0 GB on broker 4, allowed at most 30.0 GB" in text
    assert "variant: three: no candidate keeps every rule" in text
    assert "one 4 24.0 GB 0 % 2 2 +3.25 % leaders nearest 1 of 2 8 min" in everything
    assert "two_[bold] 5 24.0 GB 0 % 2 2 +3.25 % leaders yes 1 of 2 8 min" in everything
    assert "changes: replicas 5%, leaders 5% 30.0 GB 20 %" in everything
    assert not re.search("\nChosen", shown(small()))

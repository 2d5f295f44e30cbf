"""The terminal's one screen."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from folders import DATA
from plan_documents import typed
from report_documents import broker, huge, small, with_alternatives, with_disks, with_traffic
from rich.console import Console

from planner.report import plan_on_terminal

GOLDEN = DATA / "report" / "small.txt"
FILES = ("out/plan.json", "out/batches/01/reassignment.json", "out/batches/02/reassignment.json", "out/report.md")


def shown(plan: dict[str, Any], files: tuple[str, ...] = FILES, *, terminal: bool = False) -> str:
    """What a console of 100 columns prints."""
    out = StringIO()
    colours = "standard" if terminal else None
    plan_on_terminal.show(
        typed(plan), files, Console(file=out, width=100, force_terminal=terminal, color_system=colours)
    )  # type: ignore[arg-type]
    return out.getvalue()


def test_the_small_plan_reads_as_reviewed() -> None:
    """Byte for byte what was looked at, line ends aside; write the new text into the file after looking at it."""
    assert GOLDEN.read_text(encoding="utf-8").splitlines() == [line.rstrip() for line in shown(small()).splitlines()]


def test_plain_text_has_no_escape_codes_and_a_terminal_has_colours() -> None:
    """A pipe gets the same words without codes."""
    assert "\x1b" not in shown(small())
    assert "\x1b[" in shown(small(), terminal=True)


def test_twelve_brokers_fit_on_a_screen() -> None:
    """At most 54 lines of 100 columns, with a few warnings and a long front."""
    plan = small(brokers=[broker(n, "stays", (1234, 456), (1200 + n, 450)) for n in range(12)], warnings=["w"] * 4)
    plan["pareto"] = [{**plan["pareto"][2], "candidate": n + 5} for n in range(40)]
    plan["terms"] = [{**plan["terms"][0], "name": f"term_{n}"} for n in range(11)]
    lines = shown(plan).splitlines()

    assert 30 < len(lines) <= 54
    assert max(map(len, lines)) <= 100
    assert "34 points between left out here: see plan.json" in "\n".join(lines)


def test_a_proof_is_shown_to_its_end() -> None:
    """What a bound is about stands at the end of the sentence."""
    plan = small()
    plan["bound"]["proof"] = f"{'a long sentence; ' * 40}of those plans, none moves less"

    assert "of those plans, none moves less" in " ".join(shown(plan).split())


def test_many_brokers_are_cut_to_both_ends() -> None:
    """The fullest, the emptiest and those that come or leave; the rest is counted."""
    plan = small(brokers=[broker(n, "added" if n == 50 else "stays", (n, 1), (n, 1)) for n in range(100)])
    text = shown(plan)

    assert re.search(r"\n +50 +a +added ", text)
    assert "\n88 brokers left out here: see plan.json\n" in text
    assert text.index("\n     0  ") < text.index("\n    99  ")


def test_a_huge_plan_still_fits() -> None:
    """Whatever the plan holds, the screen stays one."""
    lines = shown(huge(topics=50, partitions=5)).splitlines()

    assert len(lines) <= 74
    assert max(map(len, lines)) <= 100


def test_a_stored_plan_shows_the_same() -> None:
    """`planner show` prints what `planner whatif` printed."""
    plan = small()

    assert shown(plan) == shown(json.loads(json.dumps(plan, sort_keys=True)))


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "\x1b[31mred", "a\nb", "x\\", "[link=http://y]z[/link]"])
def test_names_are_shown_and_never_obeyed(name: str) -> None:
    """Markup, escape codes and line breaks in names from the cluster stay characters."""
    plan = small(warnings=[name], changes={"set_racks": {"1": name}})
    plan["cluster"]["name"] = name
    plan["balance"]["relaxed"][0] |= {"topic": name, "why": name}
    for row in plan["brokers"]:
        row["rack"] = name
    text = shown(plan, (f"{name}/plan.json",))
    expected = name.replace("\x1b", "�").replace("\n", "�")

    assert text.startswith(f"{expected}: ")
    assert f"warning {expected}" in text
    assert "\x1b" not in text


def test_limits_relaxed_windows_and_warnings_are_named() -> None:
    """What asks for a second look stands under the tables; a crossed limit is called so."""
    plan = small(
        warnings=[f"w{n}" for n in range(9)], limits=[{"key": "limits.replicas_moved", "limit": 1, "value": 2}]
    )
    text = shown(plan)

    assert "limits replicas moved 2 of 1 crossed" in text
    assert "relaxed topic replicas: asked 1, reached 2: racks" in text
    assert "warning w4\nwarning and 4 more, see plan.json" in text


def test_peaks_stand_beside_each_broker() -> None:
    """Where disks are stated, and only there; the widest line still fits on 100 columns."""
    text = shown(with_disks())

    assert "40.0 GB → 39.0 GB        0 B  12.0 GB  40.0 GB, 80 %" in text
    assert "limits eta 8 min of 1 h; disk used 40.0 GB on broker 3 of 45 GB\n" in text
    assert "peak disk" not in shown(small())
    wide = broker(100_000, "added", (123_456, 45_678), (123_457, 45_679), bytes_in=10**15, bytes_out=10**15)
    plan = with_disks()
    plan["brokers"] = [{**wide, "disk_bytes": 10**15, "rack": "eu-central-1a"}]
    assert max(map(len, shown(plan).splitlines())) <= 100


def test_traffic_has_a_table_where_rates_are_known() -> None:
    """Each broker's traffic, today and after; no table without rates, nor for plans of formats that had none."""
    text = shown(with_traffic())

    assert "60.0 MB/s → 58.5 MB/s  30.0 MB/s → 28.5 MB/s" in text
    assert "network" not in shown(small())
    old = small()
    for row in old["brokers"]:
        del row["before"]["network_in"], row["after"]["network_in"]
    assert shown(small()) == shown(old)


def test_relaxed_bytes_are_told_in_per_cent() -> None:
    """A window of bytes reached a percentage, a count a spread."""
    rows = [
        {"window": name, "topic": None, "wanted": "10%", "reached": reached, "why": "racks"}
        for name, reached in (("disk", 12.5), ("replicas", 3))
    ]
    text = shown(small(balance={"wanted": {}, "relaxed": rows}))
    assert "relaxed disk: asked 10%, reached 12.5 %: racks" in text
    assert "relaxed replicas: asked 10%, reached 3: racks" in text


def test_files_are_counted_by_their_folder() -> None:
    """The folder once, then what lies at its top."""
    assert "wrote 4 files to out: batches/ plan.json report.md\n" in shown(small())
    assert "wrote" not in shown(small(), ())


def test_an_empty_plan_says_so() -> None:
    """Nothing to do is the verdict; the terms still stand."""
    text = shown(small(partitions=[], batches=[]))

    assert "Nothing to do: no allowed move brings the balance asked for any closer." in text
    assert "Runs in" not in text


def test_variants_scenarios_and_the_choice_are_told() -> None:
    """The rule, the variants side by side, how many scenarios each stands, and where this plan doesn't."""
    text = " ".join(shown(with_alternatives()).split())

    assert "Chosen: variant one: the most even of all." in text
    assert "one 4 24.0 GB 0 % 2 2 +3.25 % leaders nearest 1 of 2 8 min" in text
    assert "two_[bold] 5 24.0 GB 0 % 2 2 +3.25 % leaders yes 1 of 2 8 min" in text
    assert "variant three: no candidate keeps every rule" in text
    assert "scenario orders × 2: disk 48.0 GB on broker 4, allowed at most 30.0 GB" in text
    assert "changes: replicas 5%, leaders 30.0 GB 20 %" in text
    assert "Chosen" not in shown(small())

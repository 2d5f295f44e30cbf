"""The ablation: every part can be switched off and comes back, and the rows say what was measured."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import pytest

from benchmarks import ablation
from benchmarks.ablation import (
    COUNTS,
    EVEN,
    EVERY_PART,
    HEAVY,
    OF_BYTES,
    OF_COUNTS,
    OF_STARTS,
    PARTS,
    WIDE,
    Ablated,
    measure,
    switched_off,
)
from benchmarks.benchmark import Scope, lines
from benchmarks.table import Figures


def functions(part: str) -> list[Any]:
    """The functions of a part, as the planner would call them now."""
    return [resolve_name(f"planner.strategies.{name}") for name in PARTS[part]]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_switched_off_and_comes_back(part: str) -> None:
    """Inside the block, each of the part's functions is replaced. Afterwards, it is the planner's own again."""
    before = functions(part)
    with switched_off(part):
        within = functions(part)
    assert before == functions(part)
    assert not [each for each, instead in zip(before, within, strict=True) if each is instead]


@pytest.mark.slow
def test_without_a_part_plans_move_no_less_and_break_no_rule() -> None:
    """On even disks, plans without a part copy no less, break no rule and stay above their bound."""
    whole, *others = measure("no-racks", "public", EVEN)
    assert (EVERY_PART, [*OF_BYTES]) == (whole.part, [each.part for each in others])
    assert {0} == {each.violations for each in (whole, *others)}
    assert all(each.bytes_moved >= max(each.least_bytes, whole.bytes_moved) for each in others)
    polishing = next(each for each in others if each.part == "polishing")
    assert polishing.bytes_moved > whole.bytes_moved
    assert polishing.relative == polishing.bytes_moved / whole.bytes_moved


def test_windows_of_counts_need_the_condensed_network_alone() -> None:
    """Without the condensed network, the full one finds the same bytes."""
    whole, condensed = measure("expand-small", "public", COUNTS)
    assert (EVERY_PART, *OF_COUNTS) == (whole.part, condensed.part)
    assert 189 * 10**9 == whole.bytes_moved == condensed.bytes_moved == condensed.least_bytes


@pytest.mark.slow
def test_where_wide_windows_begin_is_worth_a_search() -> None:
    """With very different sizes, starting with topics within 3 copies less than starting around their shares."""
    whole, *others = measure("skewed-sizes", "public", WIDE)
    assert (EVERY_PART, *OF_STARTS) == (whole.part, *(each.part for each in others))
    assert {0} == {each.violations for each in (whole, *others)}
    assert all(each.bytes_moved >= whole.bytes_moved for each in others)
    assert others[0].relative > 1.05


def test_a_row_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measurement is a row of numbers and a row of cells. The cluster with heavy tails is added."""
    asked: list[tuple[str, ...]] = []

    def measured(_: object, *of: str) -> tuple[Ablated, ...]:
        asked.append(of)
        return (Ablated(of[0], of[2], "polishing", 202 * 10**9, 200 * 10**9, 1.01, 1, 0.5),)

    monkeypatch.setattr(ablation, "apart", measured)
    found = [each for each in ablation.entries(("skewed-sizes",), "other") if isinstance(each, Figures)]
    assert [("skewed-sizes", "other", windows) for windows in (COUNTS, WIDE, EVEN, HEAVY)] == asked
    assert [202 * 10**9] * 4 == [each.values["bytes_moved"] for each in found]
    last = [cell.strip() for cell in list(lines(Scope(("no-racks",), ("ablate",))))[-1].strip("|").split("|")]
    assert ["polishing", "202.000", "+1.0000 %, 1 rules broken", "200.000", "1.0000 %", "0.50"] == last[2:]

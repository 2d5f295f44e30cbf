"""What each part of the optimum is worth: the same clusters planned with all parts, and with one of them switched off.

A part is switched off by another function in its place, in the process that measures, so the planner itself has no
switches. What plans then move beside the one with all parts says what the part saves; the gap says what it proves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import cases as bench_cases
from benchmarks.apart import apart
from benchmarks.measure import outcome
from benchmarks.table import Entries, Figures, gap, gigabytes, head, row
from benchmarks.windows import EVEN_DISKS
from planner.model import build_problem
from planner.model.balance import Tolerance
from planner.model.problem import Problem
from planner.model.spec import Spec
from planner.scoring.windows import Windows
from planner.strategies import optimum
from planner.strategies.flow.placement import place
from planner.strategies.flow.placement_network import Layout
from planner.strategies.lagrangian_bound import GRAIN
from planner.strategies.load_windows.byte_loads import ByteLoads, priced
from planner.strategies.load_windows.share_program import Rounded, roundings
from planner.strategies.work_limits import Effort

# What is measured where no case is named: the large ones would take most of a day.
CASES = tuple(case for case in bench_cases.CASES if case not in ("expand-big", "huge"))
EVERY_PART = "none"
# A case as it is, with topics that may be less even, with even disks, and with those and sizes of so heavy a tail.
COUNTS, WIDE, EVEN, HEAVY = "counts", "topics within 3", "disks 2 %", "disks 2 %, heavy tails"
_WIDE_SPREAD = Tolerance("spread", 3)
_TAIL = 3.0
# The cluster that there is with heavy tails, too.
_TAILED = "skewed-sizes"
# Steeper prices, as multiples of what a byte is worth, would leave the flow's arithmetic.
_STEEPEST = 3

_COLUMNS = ("case", "windows", "switched off", "GB moved", "to all parts", "bound GB", "gap", "solve s")


@dataclass(frozen=True)
class Ablated:
    """A cluster planned without a part; `relative` is what it moves more than the plan with all parts, as a ratio."""

    case: str
    windows: str
    part: str
    bytes_moved: int
    least_bytes: int
    relative: float
    violations: int
    solve_seconds: float


def entries(cases: Sequence[str], seed: str) -> Entries:
    """The table as Markdown, a cluster's rows as soon as all of them are measured, in one process."""
    yield from (f"## With a part of the optimum switched off, seed `{seed}`", "")
    yield from head(_COLUMNS)
    for case in cases or CASES:
        for windows in (COUNTS, WIDE, EVEN, *([HEAVY] if case == _TAILED else [])):
            for each in apart(measure, case, seed, windows):
                yield Figures("ablation", asdict(each))
                yield row(_cells(each))


def measure(case: str, seed: str, windows: str) -> tuple[Ablated, ...]:
    """The case planned in this process, with all parts first, then without each that its windows need.

    The first plan's seconds hold what it takes to load the solvers, half a second.
    """
    problem = build_problem.build(_spec(case, seed, windows))
    whole = _planned(problem, (case, windows, EVERY_PART))
    found = [whole]
    for part in OF_WINDOWS.get(windows, OF_BYTES):
        with switched_off(part):
            found.append(_planned(problem, (case, windows, part), whole.bytes_moved))
    return tuple(found)


def switched_off(part: str) -> ExitStack:
    """A block of code without the part. AttributeError where its functions aren't where they were."""
    stack = ExitStack()
    for place_of, instead in PARTS[part].items():
        stack.enter_context(patch(f"planner.strategies.{place_of}", instead))
    return stack


def _spec(case: str, seed: str, windows: str) -> Spec:
    recipe = bench_cases.RECIPES[case]
    made = bench_cases.from_recipe(case, replace(recipe, size_sigma=_TAIL) if windows == HEAVY else recipe, seed)
    spec = bench_cases.to_spec(made)
    if windows == WIDE:
        return replace(spec, balance=replace(spec.balance, topic_replicas=_WIDE_SPREAD))
    return spec if windows == COUNTS else replace(spec, balance=EVEN_DISKS)


def _planned(problem: Problem, of: tuple[str, str, str], whole: int | None = None) -> Ablated:
    started = perf_counter()
    solution = optimum.solve(problem, problem.balance)
    seconds = perf_counter() - started
    plan = outcome("the plan", problem, solution.assignment)
    moved, beside = plan.bytes_moved, plan.bytes_moved if whole is None else whole
    return Ablated(*of, moved, solution.least_bytes, moved / beside if beside else 1.0, plan.violations, seconds)


def _none(*_: Any, **__: Any) -> None:
    """Instead of a solver: no solution. Instead of what works in place: nothing is done."""


def _nothing(*_: Any, **__: Any) -> Iterator[Any]:
    """Instead of a generator."""
    return iter(())


def _unrounded(
    problem: Problem, layout: Layout, wanted: Windows, loads: ByteLoads, effort: Effort
) -> Iterator[Rounded]:
    """The linear program's prices, with the flow that is cheapest at them instead of what it would do."""
    for found in roundings(problem, layout, wanted, loads, effort):
        steepest = _STEEPEST * loads.scales[:, None]
        prices = np.rint(found.prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)
        yield found._replace(chosen=place(problem, priced(layout, loads, prices), wanted).chosen)
        return


def _where_asked(_: Any, wanted: Windows, __: Any) -> Windows:
    """The windows where the balance itself has them, instead of where they could begin."""
    return wanted


_CASES = {"load_windows.balanced_placement.branchings": _nothing}
_BYTE_PRICES = {"load_windows.linear_program.byte_prices": _none}
_FRACTIONS = {"load_windows.balanced_placement.roundings": _nothing}
_TOPIC_STARTS = {"load_windows.window_positions._topic_starts": _where_asked}
_NEXT_TO = {"load_windows.window_positions._next_to": _where_asked}
# The functions of each part, below `planner.strategies`, and what stands in for them.
PARTS: dict[str, dict[str, Callable[..., Any]]] = {
    "condensed network": {"flow.condensed_network.solve": _none},
    "polishing": {"load_windows.balanced_placement.polish": _none},
    "branch and bound": _CASES,
    "fractional program": _FRACTIONS,
    "its rounding": {"load_windows.balanced_placement.roundings": _unrounded},
    "byte prices": _BYTE_PRICES,
    "all linear programs": {**_CASES, **_FRACTIONS, **_BYTE_PRICES},
    "starts by topic": _TOPIC_STARTS,
    "starts next to the relaxed plan": _NEXT_TO,
    "all starts": {**_TOPIC_STARTS, **_NEXT_TO},
}
# Those that are of use where windows are of counts alone, where topics may be less even, and where bytes have windows.
OF_COUNTS, OF_STARTS = ("condensed network",), ("starts by topic", "starts next to the relaxed plan", "all starts")
OF_WINDOWS = {COUNTS: OF_COUNTS, WIDE: OF_STARTS}
OF_BYTES = tuple(part for part in PARTS if part not in OF_STARTS)


def _cells(each: Ablated) -> tuple[str, ...]:
    broken = f", {each.violations:,} rules broken" if each.violations else ""
    return (
        each.case,
        each.windows,
        each.part,
        gigabytes(each.bytes_moved),
        f"{(each.relative - 1) * 100:+.4f} %{broken}",
        gigabytes(each.least_bytes),
        gap(each.bytes_moved, each.least_bytes),
        f"{each.solve_seconds:.2f}",
    )

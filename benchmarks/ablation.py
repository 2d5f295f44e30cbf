"""Measures the worth of each part of the optimum: plans the same clusters with all parts, and with one switched off.

To switch a part off, the measuring process replaces its functions, so the planner itself has no switches. The bytes
moved, compared with those of the plan with all parts, show how much the part saves; the gap shows how much it proves.
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
from planner.strategies.load_windows.lp_relaxation import Rounded, roundings
from planner.strategies.work_limits import Effort

# The cases that are measured if none is named. The large ones would take most of a day.
CASES = tuple(case for case in bench_cases.CASES if case not in ("expand-big", "huge"))
EVERY_PART = "none"
# A case as it is; with topics that may be less even; with even disks; and with even disks and sizes with a heavy tail.
COUNTS, WIDE, EVEN, HEAVY = "counts", "topics within 3", "disks 2 %", "disks 2 %, heavy tails"
_WIDE_SPREAD = Tolerance("spread", 3)
_TAIL = 3.0
# The case that is also measured with a heavy tail.
_TAILED = "skewed-sizes"
# Prices are at most this multiple of a byte's worth, because steeper ones would exceed the range of the flow's numbers.
_STEEPEST = 3

_COLUMNS = ("case", "windows", "switched off", "GB moved", "to all parts", "bound GB", "gap", "solve s")


@dataclass(frozen=True)
class Ablated:
    """A cluster planned without a part; `relative` is its bytes moved divided by those of the plan with all parts."""

    case: str
    windows: str
    part: str
    bytes_moved: int
    least_bytes: int
    relative: float
    violations: int
    solve_seconds: float


def entries(cases: Sequence[str], seed: str) -> Entries:
    """The table as Markdown, a cluster's rows as soon as they are measured, all in one process."""
    yield from (f"## With a part of the optimum switched off, seed `{seed}`", "")
    yield from head(_COLUMNS)
    for case in cases or CASES:
        for windows in (COUNTS, WIDE, EVEN, *([HEAVY] if case == _TAILED else [])):
            for each in apart(measure, case, seed, windows):
                yield Figures("ablation", asdict(each))
                yield row(_cells(each))


def measure(case: str, seed: str, windows: str) -> tuple[Ablated, ...]:
    """Plans the case in this process, first with all parts, then without each part that its windows need.

    The first plan's seconds include half a second for loading the solvers.
    """
    problem = build_problem.build(_spec(case, seed, windows))
    full = _plan_without(problem, (case, windows, EVERY_PART))
    rows = [full]
    for part in OF_WINDOWS.get(windows, OF_BYTES):
        with switched_off(part):
            rows.append(_plan_without(problem, (case, windows, part), full.bytes_moved))
    return tuple(rows)


def switched_off(part: str) -> ExitStack:
    """A context without the part. AttributeError if one of its functions isn't where `PARTS` says."""
    stack = ExitStack()
    for target, replacement in PARTS[part].items():
        stack.enter_context(patch(f"planner.strategies.{target}", replacement))
    return stack


def _spec(case: str, seed: str, windows: str) -> Spec:
    recipe = bench_cases.RECIPES[case]
    bench_case = bench_cases.from_recipe(case, replace(recipe, size_sigma=_TAIL) if windows == HEAVY else recipe, seed)
    spec = bench_cases.to_spec(bench_case)
    if windows == WIDE:
        return replace(spec, balance=replace(spec.balance, topic_replicas=_WIDE_SPREAD))
    return spec if windows == COUNTS else replace(spec, balance=EVEN_DISKS)


def _plan_without(problem: Problem, labels: tuple[str, str, str], full_bytes: int | None = None) -> Ablated:
    started = perf_counter()
    solution = optimum.solve(problem, problem.balance)
    seconds = perf_counter() - started
    plan = outcome("the plan", problem, solution.assignment)
    moved, base_bytes = plan.bytes_moved, plan.bytes_moved if full_bytes is None else full_bytes
    return Ablated(
        *labels, moved, solution.least_bytes, moved / base_bytes if base_bytes else 1.0, plan.violations, seconds
    )


def _no_result(*_: Any, **__: Any) -> None:
    """Replaces a solver: no solution. Replaces a function that works in place: does nothing."""


def _yield_nothing(*_: Any, **__: Any) -> Iterator[Any]:
    """Replaces a generator: yields nothing."""
    return iter(())


def _unrounded(
    problem: Problem, layout: Layout, windows: Windows, loads: ByteLoads, effort: Effort, reachable: Windows
) -> Iterator[Rounded]:
    """Yields the linear program's prices with the cheapest flow at these prices, instead of its rounded solution."""
    for rounded in roundings(problem, layout, windows, loads, effort, reachable):
        steepest = _STEEPEST * loads.scales[:, None]
        prices = np.rint(rounded.prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)
        yield rounded._replace(chosen=place(problem, priced(layout, loads, prices), windows).chosen)
        return


def _start_at_balance(*arguments: Any) -> Windows:
    """Replaces the search for starts: the windows begin where the balance has them."""
    return next(each for each in arguments if isinstance(each, Windows))


_BRANCHINGS = {"load_windows.balanced_placement.branchings": _yield_nothing}
_BYTE_PRICES = {"load_windows.price_program.byte_prices": _no_result}
_FRACTIONS = {"load_windows.balanced_placement.roundings": _yield_nothing}
_TOPIC_STARTS = {"load_windows.window_positions._topic_starts": _start_at_balance}
_NEXT_TO = {"load_windows.window_positions._next_to": _start_at_balance}
# The functions of each part, below `planner.strategies`, and their replacements.
PARTS: dict[str, dict[str, Callable[..., Any]]] = {
    "condensed network": {"flow.condensed_network.solve": _no_result},
    "polishing": {"load_windows.balanced_placement.polish": _no_result},
    "branch and bound": _BRANCHINGS,
    "fractional program": _FRACTIONS,
    "large neighborhood search": {"load_windows.balanced_placement.by_few_brokers": _no_result},
    "its rounding": {"load_windows.balanced_placement.roundings": _unrounded},
    "byte prices": _BYTE_PRICES,
    "all linear programs": {**_BRANCHINGS, **_FRACTIONS, **_BYTE_PRICES},
    "starts by topic": _TOPIC_STARTS,
    "starts next to the relaxed plan": _NEXT_TO,
    "starts at a plan's prices": {"load_windows.window_positions._starts_at_its_prices": _no_result},
    "all starts": {**_TOPIC_STARTS, **_NEXT_TO},
}
# The parts that matter if only counts have windows, if topics may be less even, and if bytes have windows.
OF_COUNTS = ("condensed network",)
OF_STARTS = ("starts by topic", "starts next to the relaxed plan", "starts at a plan's prices", "all starts")
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

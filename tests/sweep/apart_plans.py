"""Plans of specs with topics that are apart, checked as they are made; and any such spec."""

from __future__ import annotations

from dataclasses import replace

from clusters import placed_specs, specs
from hypothesis import assume
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.document_fields import Apart
from planner.model.spec import Spec
from planner.scoring import independent_check
from planner.strategies.optimum import Proposal, solve
from planner.sweep.apart_sides import with_sides

NAMES = ("orders", "payments")


def solved(spec: Spec) -> tuple[Spec, Proposal]:
    """The spec with the sides chosen for it, and the plan for its balance."""
    sided = with_sides(spec)
    problem = build(sided)
    solution = solve(problem, problem.balance)
    assert () == independent_check.check(problem, solution.assignment)
    # The check also judges the rule itself, not only the sides.
    assert () == independent_check.check(replace(problem, allowed=None), solution.assignment)
    return sided, solution


def copied(before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...], sizes: list[int]) -> int:
    """Bytes of the new replicas."""
    return sum(len(set(b) - set(a)) * size for a, b, size in zip(before, after, sizes, strict=True))


@st.composite
def apart_specs(draw: st.DrawFn) -> Spec:
    """Any spec with two or more topics, with or without placement rules; the first shares no broker with the others."""
    spec = draw(st.one_of(specs(rebalance=("all", "none", "racks")), placed_specs(rebalance=("all", "none", "racks"))))
    assume(len(spec.cluster.topics) > 1)
    return replace(spec, apart=(Apart(("t0", "t[12]")),))

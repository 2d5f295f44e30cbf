"""The alternatives that a sweep compares: `changes` and each of `sweep.variants`, as a problem and a sweep by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from planner.model import build_problem
from planner.model.problem import Problem
from planner.model.spec import Changes, Spec
from planner.sweep import budget_steps
from planner.sweep.candidates import Candidates, candidates
from planner.sweep.sweep_result import SweepResult

# What `changes` itself is called beside its variants.
BASE = "changes"


@dataclass(frozen=True, eq=False)
class Alternative:
    """One of the alternatives: the spec with its changes in the place of `changes`, and what its sweep takes."""

    name: str
    spec: Spec
    problem: Problem
    candidates: Candidates


@dataclass(frozen=True, eq=False)
class Swept:
    """An alternative with the result of its sweep."""

    name: str
    spec: Spec
    problem: Problem
    result: SweepResult


def alternatives(spec: Spec) -> tuple[Alternative, ...]:
    """`changes`, unless it is empty and there are variants; then the variants. They share the candidates equally."""
    only_variants = bool(spec.sweep.variants) and spec.changes == Changes()
    named = [] if only_variants else [(BASE, spec.changes)]
    named += [(variant.name, variant.changes) for variant in spec.sweep.variants]
    found = []
    for name, changes in named:
        its_spec = replace(spec, changes=changes)
        problem = budget_steps.first_step(build_problem.build(its_spec))
        found.append(Alternative(name, its_spec, problem, candidates(problem, spec.sweep, len(named))))
    return tuple(found)


def chosen(spec: Spec, variant: str) -> Spec:
    """The spec with the changes of a variant."""
    changes = next((each.changes for each in spec.sweep.variants if each.name == variant), spec.changes)
    return replace(spec, changes=changes)


def swept(tried: Sequence[Alternative], results: Sequence[SweepResult]) -> tuple[Swept, ...]:
    """The alternatives with their results."""
    pairs = zip(tried, results, strict=True)
    return tuple(Swept(each.name, each.spec, each.problem, result) for each, result in pairs)


def scores(tried: Sequence[Swept]) -> pa.Table:
    """All rows that are kept, with the alternative's name in front, one alternative after the other."""
    named = []
    for each in tried:
        table = each.result.scores
        names = pa.DictionaryArray.from_arrays(np.zeros(len(table), dtype=np.int32), pa.array([each.name]))
        named.append(table.add_column(0, "variant", names.cast(pa.string())))
    return pa.concat_tables(named)

"""Alternatives to `changes`, each a problem and a sweep of its own, told apart by their names."""

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
    """`changes`, unless it is empty and there are variants; then the variants. They share the candidates alike."""
    only_variants = bool(spec.sweep.variants) and spec.changes == Changes()
    wishes = [] if only_variants else [(BASE, spec.changes)]
    wishes += [(variant.name, variant.changes) for variant in spec.sweep.variants]
    specs = [(name, replace(spec, changes=changes)) for name, changes in wishes]
    return tuple(_alternative(name, each, len(specs)) for name, each in specs)


def _alternative(name: str, spec: Spec, among: int) -> Alternative:
    problem = budget_steps.first_step(build_problem.build(spec))
    return Alternative(name, spec, problem, candidates(problem, spec.sweep, among))


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
    return pa.concat_tables([_named(each.name, each.result.scores) for each in tried])


def _named(name: str, table: pa.Table) -> pa.Table:
    names = pa.DictionaryArray.from_arrays(np.zeros(len(table), dtype=np.int32), pa.array([name]))
    return table.add_column(0, "variant", names.cast(pa.string()))

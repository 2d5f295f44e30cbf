"""The plan's bound as a file of its own, and the check of it: arithmetic on that file alone, no solver.

`bound.json` holds what `planner.bounds` needs; plan.json holds its SHA-256, so that the two can't drift apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner import bounds
from planner.bounds import Certificate
from planner.errors import StalePlanError

FILE = "bound.json"
METHODS = {
    "none": "nothing moves",
    "forced": "only what the other changes force moves: every partition's cheapest choice, summed",
    "flow": "a min-cost flow's optimum: no plan with these racks, replication factors and replica windows moves less",
    "prices": (
        "a min-cost flow with a price on each broker's bytes: no plan with these racks, replication factors and "
        "windows of replicas, bytes and traffic moves less"
    ),
    "branches": (
        "prices by cases: every way in which the largest partitions may lie on the brokers is one of the cases, and in "
        "none of them a plan with these racks, replication factors and windows moves less"
    ),
}


@dataclass(frozen=True)
class Checked:
    """What a bound comes to when it is worked out again."""

    measure: str
    least: int
    moved: int
    partitions: int
    prices: int

    @property
    def gap_percent(self) -> float:
        """By how much the plan is above the bound."""
        return gap_percent(self.moved, self.least)


def gap_percent(moved: int, least: int) -> float:
    """How far `moved` is above `least`, in per cent of itself, to three decimals."""
    return round(100 * (moved - least) / moved, 3) + 0.0 if moved else 0.0


def method(certificate: Certificate | None, forced_only: bool) -> str:
    """Which of METHODS a certificate is of."""
    if certificate is None:
        return "none"
    if forced_only:
        return "forced"
    every = (certificate, *certificate.others)
    if any(each.parts for each in every):
        return "branches"
    return "prices" if any(table.size for each in every for table in each.prices.loads) else "flow"


def encoded(certificate: Certificate) -> bytes:
    """The file: one line a key, since most of it are long lists of numbers."""
    document = bounds.to_document(certificate)
    lines = [f'"{key}":{json.dumps(document[key], sort_keys=True, separators=(",", ":"))}' for key in sorted(document)]
    return ("{" + ",\n".join(lines) + "}\n").encode()


def sha256(file: bytes) -> str:
    """The digest that the plan carries."""
    return hashlib.sha256(file).hexdigest()


def check(plan: Mapping[str, Any], file: bytes, shown: str) -> Checked:
    """A plan's bound worked out again; StalePlanError where the file isn't the plan's, or comes to another bound."""
    stated = plan["bound"]
    if sha256(file) != stated["sha256"]:
        raise StalePlanError(f"{shown}: not the file that the plan was made with: its SHA-256 isn't bound.sha256")
    certificate = bounds.from_document(json.loads(file))
    in_bytes = certificate.facts.measure == "bytes"
    worked_out = bounds.least(certificate)
    claimed = stated["least_bytes_moved" if in_bytes else "least_replicas_moved"]
    if worked_out != claimed:
        raise StalePlanError(f"{shown}: the prices come to a bound of {worked_out}, the plan says {claimed}")
    return Checked(
        measure=certificate.facts.measure,
        least=worked_out,
        moved=_moved(plan, in_bytes),
        partitions=len(certificate.facts.factors),
        prices=sum(table.shape[1] for table in _tables(certificate)),
    )


def _tables(certificate: Certificate) -> tuple[Any, ...]:
    every = (certificate, *certificate.others)
    cases = [each for of in every for part in of.parts for each in bounds.leaves(part.case)]
    return tuple(table for prices in (*(of.prices for of in every), *cases) for table in prices.tables)


def _moved(plan: Mapping[str, Any], in_bytes: bool) -> int:
    """What the plan's own list of partitions moves, counted again."""
    adding = [
        (len(set(each["replicas"]) - set(each["replicas_before"])), each["size_bytes"]) for each in plan["partitions"]
    ]
    return sum(count * (size if in_bytes else 1) for count, size in adding)

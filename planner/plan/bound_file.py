"""The plan's bound in a file of its own, bound.json, and the check of it: arithmetic on that file, without a solver.

`bound.json` holds what `strategies.bounds` needs; plan.json holds the file's SHA-256, so that the two belong together.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.model.cluster import LEADERS, Apart, PartitionKey
from planner.model.errors import StalePlanError
from planner.model.file_reading import json_value
from planner.model.formats import size
from planner.model.problem import LongArray
from planner.plan import bound_certificate
from planner.plan.document.comparison_types import BoundMethod, ExcessSection, FurthestRow
from planner.plan.document.plan_types import Plan
from planner.strategies import bounds
from planner.strategies.bounds import Certificate, Facts, Outside

FILE = "bound.json"
# Replica lists by topic and partition, of the partitions that a plan changes or creates.
Placed = Mapping[PartitionKey, Sequence[int]]
_WITHIN = {
    "flow": "no plan with these racks, replication factors and replica windows moves less",
    "prices": "no plan with these racks, replication factors and windows of replicas, bytes and traffic moves less",
    "branches": "in none of them a plan with these racks, replication factors and windows moves less",
}
_HOW = {
    "flow": "a min-cost flow's optimum",
    "prices": "a min-cost flow with a price on each broker's bytes",
    "branches": (
        "prices by cases: every way in which the largest partitions may lie on the brokers is one of the cases, and"
    ),
}
# No proof is longer than this: readers see all of it.
LONGEST_PROOF = 1_000
METHODS = {
    "none": "nothing moves",
    "forced": "only what the other changes force moves: every partition's cheapest choice, summed",
    **{name: f"{how}{'' if name == 'branches' else ':'} {_WITHIN[name]}" for name, how in _HOW.items()},
}


@dataclass(frozen=True)
class CheckedBound:
    """A bound worked out again, in bytes or replicas, and how many partitions and prices it rests on."""

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
    """How far `moved` is above `least`, in percent of `moved`, to three decimals, rounded up."""
    return -(-100_000 * (moved - least) // moved) / 1000 if moved else 0.0


def method(certificate: Certificate | None, forced_only: bool) -> BoundMethod:
    """Which of METHODS a certificate belongs to."""
    if certificate is None:
        return "none"
    if forced_only:
        return "forced"
    every = (certificate, *certificate.others)
    if any(each.parts for each in every):
        return "branches"
    return "prices" if any(table.size for each in every for table in each.prices.loads) else "flow"


UNPROVEN = "nobody knows how few bytes would do: the plan is a placement of Kafka's own, chosen from the front"
# A heuristic, and said to be one; the bound is for all starts.
SEARCHED = (
    ". Where each topic's window begins was searched, without a proof: with other starts fewer bytes may move, down to "
    "this least"
)
# Whether what comes after bytes is proven.
TIES = {
    True: ". Of the plans that copy as little, none takes fewer replicas from leaders, or as many and touches fewer "
    "partitions, or as many and spreads arrivals more evenly over brokers: proven by flows and integer programs",
    False: ". Of the plans that copy as little, this one was chosen without a proof",
}


def proof(certificate: Certificate | None, forced_only: bool, apart: Sequence[Apart] = ()) -> str:
    """What is proven, and how, in a sentence; if some windows don't hold, also for which plans; and whether it holds
    for one split of the brokers among topics that are apart.
    """
    name, split = method(certificate, forced_only), ""
    # Who may lead changes no bound on what is copied.
    apart = [rule for rule in apart if not rule.by.endswith(LEADERS)]
    if apart and certificate is not None:
        split = ", for every split of the brokers among topics that are apart that is as even as this one"
    if any(not rule.proven for rule in apart) and certificate is not None:
        split = ", for this split of the brokers among topics that are apart; with another one less may move"
    if certificate is None or certificate.outside is None:
        return f"{METHODS[name]}{split}"
    found = excess(certificate)
    assert found is not None
    how = _HOW[name].removesuffix(", and")
    return (
        f"{how}; the windows can't all be shown to hold, so this is about all plans with these racks and replication "
        f"factors that are outside of them by no more than this one, whichever brokers carry it ({_outside(found)}): "
        f"none of them moves less{split}"
    )


def excess(certificate: Certificate | None) -> ExcessSection | None:
    """The `bound.excess` of plan.json; None if the bound is about plans within their windows, or about all plans."""
    if certificate is None or certificate.outside is None:
        return None
    facts, allowed = certificate.facts, certificate.outside.allowed
    least = bounds.least_outside(facts, certificate.outside)
    furthest = [] if allowed.furthest is None else allowed.furthest.tolist()
    return ExcessSection(
        replicas=allowed.replicas,
        least_replicas=least.replicas,
        loads=allowed.loads,
        least_loads=least.loads,
        furthest=tuple(
            FurthestRow(window=name, value=value)
            for name, value in zip(facts.load_names, furthest, strict=True)
            if value
        ),
    )


def _outside(found: ExcessSection) -> str:
    """How far the plans that a bound covers are outside of the windows, and the least for any plan."""
    said = []
    if found.replicas:
        said.append(f"replicas by a weight of {found.replicas:,}{_at_least(found.replicas, found.least_replicas, str)}")
    if found.loads:
        worst = max((each.value for each in found.furthest if each.window.startswith("disk")), default=0)
        one = f", {size(worst)} on the worst broker" if worst else ""
        said.append(f"loads by {size(found.loads)} in all{one}{_at_least(found.loads, found.least_loads, size)}")
    return "; ".join(said)


def _at_least(found: int, least: int, shown: Callable[[int], str]) -> str:
    return ", the least possible" if least >= found else f", proven to be at least {shown(least)}"


def encoded(certificate: Certificate) -> bytes:
    """The file: one line a key, since most of it are long lists of numbers."""
    document = bound_certificate.to_document(certificate)
    lines = [f'"{key}":{json.dumps(document[key], sort_keys=True, separators=(",", ":"))}' for key in sorted(document)]
    return ("{" + ",\n".join(lines) + "}\n").encode()


def sha256(file: bytes) -> str:
    """The digest that the plan carries."""
    return hashlib.sha256(file).hexdigest()


def check(plan: Plan, file: bytes, shown: str) -> CheckedBound:
    """The bound worked out again; StalePlanError if the file isn't the plan's, or comes to another bound."""
    stated = plan.bound
    if sha256(file) != stated.sha256:
        raise StalePlanError(f"{shown}: not the file that the plan was made with: its SHA-256 isn't bound.sha256")
    certificate = bound_certificate.from_document(json_value(file))
    in_bytes = certificate.facts.measure == "bytes"
    worked_out = bounds.least(certificate)
    _check_excess(plan, certificate, shown)
    claimed = stated.least_bytes_moved if in_bytes else stated.least_replicas_moved
    if worked_out != claimed:
        raise StalePlanError(f"{shown}: the prices come to a bound of {worked_out}, the plan says {claimed}")
    # Counted again, from the plan's own list of partitions.
    moved = sum(len(row.added) * (row.size_bytes if in_bytes else 1) for row in plan.partitions)
    if moved < worked_out:
        raise StalePlanError(
            f"{shown}: the prices say that no plan moves fewer than {worked_out}, this one moves {moved}"
        )
    every = (certificate, *certificate.others)
    cases = [each for of in every for part in of.parts for each in bounds.leaves(part.case)]
    return CheckedBound(
        measure=certificate.facts.measure,
        least=worked_out,
        moved=moved,
        partitions=len(certificate.facts.factors),
        prices=sum(table.shape[1] for prices in (*(each.prices for each in every), *cases) for table in prices.tables),
    )


def _check_excess(plan: Plan, certificate: Certificate, shown: str) -> None:
    """StalePlanError if the plan isn't one of those that the bound covers, or states another excess."""
    found, stated = excess(certificate), plan.bound.excess
    if found != stated:
        raise StalePlanError(f"{shown}: the bound is for plans with an excess of {found}, the plan says {stated}")
    if certificate.outside is None:
        return
    outside = certificate.outside
    reached = outside.allowed.reached(*_placed(plan.replica_lists, certificate.facts, outside, shown))
    if not outside.allowed.holds(reached):
        raise StalePlanError(
            f"{shown}: the plan is further outside of its windows than the plans that the bound is for: "
            f"{reached.replicas} and {reached.loads}, allowed: {outside.allowed.replicas} and {outside.allowed.loads}"
        )


def covers(certificate: Certificate, placed: Placed) -> bool:
    """True if the bound is about plans as far outside of their windows as the one that places partitions like this.

    A bound about plans within their windows doesn't say which those are: then it is True.
    """
    outside = certificate.outside
    if outside is None:
        return True
    return outside.allowed.holds(outside.allowed.reached(*_placed(placed, certificate.facts, outside, FILE)))


def _placed(placed: Placed, facts: Facts, outside: Outside, shown: str) -> tuple[LongArray, LongArray]:
    """The replicas (T, Bt) and loads (D, Bt) of the partitions that the bound covers, by a plan's own lists."""
    here = {broker: at for at, broker in enumerate(facts.broker_ids.tolist())}
    cells = np.zeros((len(outside.allowed.topics.movable), len(here)), dtype=np.int64)
    load = np.zeros((len(facts.loads), len(here)), dtype=np.int64)
    for row, (topic, number) in enumerate(zip(facts.topics.tolist(), outside.partitions.tolist(), strict=True)):
        key = outside.topic_names[topic], number
        stays = [at for at in facts.home[row].tolist() if at >= 0]
        brokers = [here[broker] for broker in placed[key]] if key in placed else stays
        if len(brokers) != facts.factors[row]:
            raise StalePlanError(
                f"{shown}: partition {number} of topic {key[0]} has {len(brokers)} replicas in the plan"
            )
        cells[topic, brokers] += 1
        load[:, brokers] += facts.loads[:, row, None]
    return cells, load

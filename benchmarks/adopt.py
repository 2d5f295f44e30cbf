"""The results of `planner adopt` for other planners' plans of the benchmark's cases, made here by their rules.

- Kafka's `--generate`: its own placement, with one start index and shift per topic; it keeps replication factors.
- topicmappr `rebuild --force-rebuild`, placement by count: partition by partition, each replica goes to the broker
  with the fewest replicas so far in a rack that the partition isn't in. Leaders aren't balanced afterwards.
- kafka-assigner (SiftScience): topic by topic, replicas stay if neither the rack rule nor the topic's ceiling per
  broker forbids it; the others go to the allowed broker with the fewest replicas of the topic.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter

import numpy as np

from benchmarks import cases as bench_cases
from benchmarks.apart import apart
from benchmarks.table import UNKNOWN, Entries, Figures, gigabytes, head, row
from planner.approval import adopted_plan
from planner.approval.adopted_plan import place
from planner.approval.given_reassignment import Given
from planner.inputs.importers.state_parts import AssignmentEntry
from planner.model import build_problem
from planner.model.cluster import Partition
from planner.model.errors import InfeasibleError, Place
from planner.model.problem import IntArray, Problem
from planner.scoring import independent_check
from planner.scoring.missed_targets import reached
from planner.scoring.score import ScoringBasis, score
from planner.strategies import kafka_classic

# The largest case is left out unless it is named, because each of its plans takes some minutes.
CASES = tuple(case for case in bench_cases.CASES if case != "huge")
_COLUMNS = (
    "case",
    "plan",
    "rules broken",
    "balance reached: replicas / leaders / topic replicas",
    "GB moved",
    "proven minimum GB at that balance",
    "our plan's GB at that balance",
    "GB more than needed",
    "s",
)


@dataclass(frozen=True)
class Verdict:
    """The result for one plan. `balance` is the balance reached; `balance` and the bytes after it are None if refused.

    `violations` sums the partitions that break each rule. `needed_bytes` is how much our plan copies at that balance,
    None if our plan is less even.
    """

    case: str
    plan: str
    violations: int
    bytes_moved: int
    balance: tuple[str, str, str] | None = None
    least_bytes: int | None = None
    needed_bytes: int | None = None
    seconds: float = 0.0


def entries(cases: Sequence[str], seed: str) -> Entries:
    """A row for each plan of each case."""
    yield from (f"## Other planners' plans, adopted, seed `{seed}`", "", *head(_COLUMNS))
    for case in cases or CASES:
        for plan in PLANS:
            found = apart(verdict, case, seed, plan)
            yield Figures("adopt", asdict(found))
            yield row(_cells(found))


def verdict(case: str, seed: str, plan: str) -> Verdict:
    """Make the case and the plan, and judge the plan as adopt does."""
    problem = build_problem.build(bench_cases.to_spec(bench_cases.make(case, seed)))
    assignment = PLANS[plan](problem)
    moved = int(score(ScoringBasis.of(problem), assignment).bytes_moved[0])
    broken = sum(int(rows.sum()) for rows in independent_check.broken_rules(problem, assignment).values())
    begun = perf_counter()
    try:
        placed = place(given_of(problem, assignment, plan), problem, case)
    except InfeasibleError:
        return Verdict(case, plan, broken, moved, seconds=perf_counter() - begun)
    proofs = adopted_plan.proven(placed)
    found = proofs[-1] if proofs else None  # None if the search found no other valid plan to compare with
    balance = found.run.balance if found else reached(problem, placed.assignment)
    ours = score(ScoringBasis.of(problem), found.proposal.assignment) if found else None
    return Verdict(
        case=case,
        plan=plan,
        violations=broken,
        bytes_moved=moved,
        balance=(str(balance.replicas), str(balance.leaders), str(balance.topic_replicas)),
        least_bytes=found.proposal.least_bytes if found else None,
        needed_bytes=int(ours.bytes_moved[0]) if found and ours and adopted_plan.as_even(placed, found) else None,
        seconds=perf_counter() - begun,
    )


def given_of(problem: Problem, assignment: IntArray, plan: str) -> Given:
    """An assignment (P, W) as if it were read from a file; every partition is named."""
    ids = problem.broker_ids.tolist()
    wanted = []
    for number, (topic, partition, brokers) in enumerate(
        zip(problem.topic_of.tolist(), problem.partition_ids.tolist(), assignment.tolist(), strict=True)
    ):
        replicas = tuple(ids[broker] for broker in brokers if broker >= 0)
        part = Partition(partition, replicas, replicas[0])
        wanted.append(AssignmentEntry(Place(plan), f"partitions[{number}]", problem.topic_names[topic], part))
    return Given(plan, plan, hashlib.sha256(plan.encode()).hexdigest(), plan, tuple(wanted), {})


def generate(problem: Problem) -> IntArray:
    """(P, W): Kafka's --generate, which keeps replication factors."""
    factors = (problem.replicas >= 0).sum(axis=1).astype(np.int32)
    assignment = kafka_classic.assign(replace(problem, replication_factors=factors), 1)
    padding = problem.width - assignment.shape[1]
    return np.pad(assignment, ((0, 0), (0, padding)), constant_values=-1)


def rebuild(problem: Problem) -> IntArray:
    """(P, W): topicmappr's forced rebuild by count; of equally loaded brokers, it takes the one with the lowest id."""
    targets = np.flatnonzero(problem.targets).tolist()
    racks, held = _racks(problem), Counter[int]()
    assignment = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for partition, factor in enumerate(problem.replication_factors.tolist()):
        taken: set[int | tuple[int]] = set()
        for at in range(factor):
            free = [broker for broker in targets if racks[broker] not in taken and broker not in assignment[partition]]
            broker = min(free, key=lambda each: (held[each], each))
            assignment[partition, at] = broker
            taken.add(racks[broker])
            held[broker] += 1
    return assignment


def assigner(problem: Problem) -> IntArray:
    """(P, W): kafka-assigner's placement; topics that its rule can't place stay as they are today."""
    targets, racks = np.flatnonzero(problem.targets).tolist(), _racks(problem)
    assignment = build_problem.today(problem)
    for topic in range(len(problem.topic_names)):
        rows = np.flatnonzero(problem.topic_of == topic).tolist()
        factor = int(problem.replication_factors[rows[0]])
        ceiling, held = -(-len(rows) * factor // len(targets)), Counter[int]()
        lists: dict[int, list[int]] = {each: [] for each in rows}

        def fits(partition: int, broker: int, lists: dict[int, list[int]] = lists, most: int = ceiling,
                 held: Counter[int] = held) -> bool:  # fmt: skip
            return held[broker] < most and racks[broker] not in {racks[each] for each in lists[partition]}

        for partition in rows:
            for broker in problem.replicas[partition].tolist():
                if broker >= 0 and problem.targets[broker] and fits(partition, broker):
                    lists[partition].append(broker)
                    held[broker] += 1
        if _filled(lists, factor, targets, fits, held):
            for partition, brokers in lists.items():
                assignment[partition] = -1
                assignment[partition, :factor] = brokers
    return assignment


def _filled(
    lists: Mapping[int, list[int]],
    factor: int,
    targets: Sequence[int],
    fits: Callable[[int, int], bool],
    held: Counter[int],
) -> bool:
    """Give each partition the replicas that it lacks; False if one of them finds no broker."""
    for partition, brokers in lists.items():
        while len(brokers) < factor:
            free = [broker for broker in targets if fits(partition, broker)]
            if not free:
                return False
            brokers.append(min(free, key=lambda each: (held[each], each)))
            held[brokers[-1]] += 1
    return True


def _racks(problem: Problem) -> list[int | tuple[int]]:
    """The rack of each broker; if racks don't matter, each broker is a rack by itself."""
    if not problem.racks_matter:
        return [(broker,) for broker in range(len(problem.broker_ids))]
    return list(problem.broker_racks.tolist())


PLANS: Mapping[str, Callable[[Problem], IntArray]] = {
    "Kafka --generate": generate,
    "fewest replicas first (topicmappr, forced)": rebuild,
    "topic ceilings (kafka-assigner)": assigner,
}


def _cells(found: Verdict) -> tuple[str, ...]:
    least, needed = found.least_bytes, found.needed_bytes
    return (
        found.case,
        found.plan,
        f"{found.violations:,}{'' if found.balance else ' (refused)'}",
        " / ".join(found.balance) if found.balance else UNKNOWN,
        gigabytes(found.bytes_moved),
        UNKNOWN if least is None else gigabytes(least),
        UNKNOWN if needed is None else gigabytes(needed),
        UNKNOWN if needed is None else gigabytes(max(found.bytes_moved - needed, 0)),
        f"{found.seconds:.1f}",
    )

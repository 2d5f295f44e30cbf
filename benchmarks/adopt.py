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
from planner.approval.given_reassignment import GivenReassignment
from planner.inputs.importers.state_parts import AssignmentEntry
from planner.model import build_problem
from planner.model.cluster import Partition
from planner.model.errors import InfeasibleError, Place
from planner.model.problem import IntArray, Problem
from planner.scoring import independent_check
from planner.scoring.missed_targets import widened_to_reach
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
            judged = apart(verdict, case, seed, plan)
            yield Figures("adopt", asdict(judged))
            yield row(_cells(judged))


def verdict(case: str, seed: str, plan: str) -> Verdict:
    """Make the case and the plan, and judge the plan as adopt does."""
    problem = build_problem.build(bench_cases.to_spec(bench_cases.make(case, seed)))
    assignment = PLANS[plan](problem)
    moved = int(score(ScoringBasis.of(problem), assignment).bytes_moved[0])
    broken = sum(int(rows.sum()) for rows in independent_check.broken_rules(problem, assignment).values())
    started = perf_counter()
    try:
        adopted = place(given_of(problem, assignment, plan), problem, case)
    except InfeasibleError:
        return Verdict(case, plan, broken, moved, seconds=perf_counter() - started)
    proofs = adopted_plan.prove_optimum(adopted)
    proof = proofs[-1] if proofs else None  # None if the search found no other valid plan to compare with
    balance = proof.run.balance if proof else widened_to_reach(problem, adopted.assignment)
    our_scores = score(ScoringBasis.of(problem), proof.proposal.assignment) if proof else None
    return Verdict(
        case=case,
        plan=plan,
        violations=broken,
        bytes_moved=moved,
        balance=(str(balance.replicas), str(balance.leaders), str(balance.topic_replicas)),
        least_bytes=proof.proposal.least_bytes if proof else None,
        needed_bytes=int(our_scores.bytes_moved[0])
        if proof and our_scores and adopted_plan.is_as_even(adopted, proof)
        else None,
        seconds=perf_counter() - started,
    )


def given_of(problem: Problem, assignment: IntArray, plan: str) -> GivenReassignment:
    """An assignment (P, W) as if it were read from a file; every partition is named."""
    ids = problem.broker_ids.tolist()
    given_entries = []
    for index, (topic, partition, brokers) in enumerate(
        zip(problem.topic_of.tolist(), problem.partition_ids.tolist(), assignment.tolist(), strict=True)
    ):
        replicas = tuple(ids[broker] for broker in brokers if broker >= 0)
        part = Partition(partition, replicas, replicas[0])
        given_entries.append(AssignmentEntry(Place(plan), f"partitions[{index}]", problem.topic_names[topic], part))
    return GivenReassignment(plan, plan, hashlib.sha256(plan.encode()).hexdigest(), plan, tuple(given_entries), {})


def generate(problem: Problem) -> IntArray:
    """(P, W): Kafka's --generate, which keeps replication factors."""
    factors = (problem.replicas >= 0).sum(axis=1).astype(np.int32)
    assignment = kafka_classic.assign(replace(problem, replication_factors=factors), 1)
    padding = problem.width - assignment.shape[1]
    return np.pad(assignment, ((0, 0), (0, padding)), constant_values=-1)


def rebuild(problem: Problem) -> IntArray:
    """(P, W): topicmappr's forced rebuild by count; of equally loaded brokers, it takes the one with the lowest id."""
    targets = np.flatnonzero(problem.targets).tolist()
    racks, replica_counts = _racks(problem), Counter[int]()
    assignment = np.full((problem.rows, problem.width), -1, dtype=np.int32)
    for partition, factor in enumerate(problem.replication_factors.tolist()):
        used_racks: set[int | tuple[int]] = set()
        for slot in range(factor):
            free = [
                broker for broker in targets if racks[broker] not in used_racks and broker not in assignment[partition]
            ]
            broker = min(free, key=lambda each: (replica_counts[each], each))
            assignment[partition, slot] = broker
            used_racks.add(racks[broker])
            replica_counts[broker] += 1
    return assignment


def assigner(problem: Problem) -> IntArray:
    """(P, W): kafka-assigner's placement; topics that its rule can't place stay as they are today."""
    targets, racks = np.flatnonzero(problem.targets).tolist(), _racks(problem)
    assignment = build_problem.today(problem)
    for topic in range(len(problem.topic_names)):
        rows = np.flatnonzero(problem.topic_of == topic).tolist()
        factor = int(problem.replication_factors[rows[0]])
        ceiling, topic_counts = -(-len(rows) * factor // len(targets)), Counter[int]()
        lists: dict[int, list[int]] = {each: [] for each in rows}

        def fits(partition: int, broker: int, lists: dict[int, list[int]] = lists, most: int = ceiling,
                 topic_counts: Counter[int] = topic_counts) -> bool:  # fmt: skip
            return topic_counts[broker] < most and racks[broker] not in {racks[each] for each in lists[partition]}

        for partition in rows:
            for broker in problem.replicas[partition].tolist():
                if broker >= 0 and problem.targets[broker] and fits(partition, broker):
                    lists[partition].append(broker)
                    topic_counts[broker] += 1
        if _fill_lists(lists, factor, targets, fits, topic_counts):
            for partition, brokers in lists.items():
                assignment[partition] = -1
                assignment[partition, :factor] = brokers
    return assignment


def _fill_lists(
    lists: Mapping[int, list[int]],
    factor: int,
    targets: Sequence[int],
    fits: Callable[[int, int], bool],
    topic_counts: Counter[int],
) -> bool:
    """Give each partition the replicas that it lacks; False if one of them finds no broker."""
    for partition, brokers in lists.items():
        while len(brokers) < factor:
            free = [broker for broker in targets if fits(partition, broker)]
            if not free:
                return False
            brokers.append(min(free, key=lambda each: (topic_counts[each], each)))
            topic_counts[brokers[-1]] += 1
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


def _cells(result: Verdict) -> tuple[str, ...]:
    least, needed = result.least_bytes, result.needed_bytes
    return (
        result.case,
        result.plan,
        f"{result.violations:,}{'' if result.balance else ' (refused)'}",
        " / ".join(result.balance) if result.balance else UNKNOWN,
        gigabytes(result.bytes_moved),
        UNKNOWN if least is None else gigabytes(least),
        UNKNOWN if needed is None else gigabytes(needed),
        UNKNOWN if needed is None else gigabytes(max(result.bytes_moved - needed, 0)),
        f"{result.seconds:.1f}",
    )

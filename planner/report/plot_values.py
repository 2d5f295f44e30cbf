"""The numbers that plots show, taken from plan.json: who sends how much to whom, when, and what brokers hold meanwhile.

A cluster whose sizes are unknown is measured in replicas. Whatever there is too much of to be seen is summed up: many
brokers into the largest ones and the others, many batches into runs of batches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.model import formats
from planner.model.problem import LongArray
from planner.plan.document.plan_types import Plan

OTHERS = -1


@dataclass(frozen=True)
class Movement:
    """What is copied between B brokers in N batches, in bytes, or in replicas where sizes are unknown.

    brokers    ids of the brokers, ascending
    copied     (B, B) from the broker of the row, which leads, to that of the column
    received   (N, B) what each broker copies in, in each batch
    sent       (N, B) what each broker sends
    held       (N + 1, B) what it holds: today, then while each batch runs, with both copies of what moves
    """

    brokers: tuple[int, ...]
    copied: LongArray
    received: LongArray
    sent: LongArray
    held: LongArray


def measure(plan: Plan) -> tuple[str, Callable[[int], str]]:
    """What loads are measured in, a key of `before` and `after`, and how an amount of it is written."""
    return ("size_bytes", formats.size) if plan.cluster.sizes_known else ("replicas", formats.number)


def movement(plan: Plan) -> Movement:
    """Every copy of every batch, added up. A replica is copied from the leader of today while that holds one."""
    key, _ = measure(plan)
    copies, removals = _steps(plan, key == "size_bytes")
    ids = {broker.id for broker in plan.brokers}
    brokers = np.array(sorted(ids.union(*copies[:, 1:3].T.tolist(), removals[:, 1].tolist())), dtype=np.int64)
    batches, count = len(plan.batches), len(brokers)
    batch, sender, receiver, amount = (
        copies[:, 0],
        *(np.searchsorted(brokers, copies[:, c]) for c in (1, 2)),
        copies[:, 3],
    )
    received, sent, removed = (np.zeros((batches, count), dtype=np.int64) for _ in range(3))
    copied = np.zeros((count, count), dtype=np.int64)
    np.add.at(copied, (sender, receiver), amount)
    np.add.at(received, (batch, receiver), amount)
    np.add.at(sent, (batch, sender), amount)
    np.add.at(removed, (removals[:, 0], np.searchsorted(brokers, removals[:, 1])), removals[:, 2])
    before = {broker.id: getattr(broker.before, key) for broker in plan.brokers}
    today = np.array([before.get(broker, 0) for broker in brokers.tolist()], dtype=np.int64)
    # What a batch removes goes when it is complete; until then both copies count.
    done = np.vstack([np.zeros_like(today)[None], np.cumsum(received - removed, axis=0)])
    held = np.vstack([today[None], today + done[:-1] + received])
    return Movement(tuple(brokers.tolist()), copied, received, sent, held)


def _steps(plan: Plan, in_bytes: bool) -> tuple[LongArray, LongArray]:
    """Rows of (batch, sender, receiver, amount), and of (batch, broker, amount) for what is removed."""
    changed = {row.key: row for row in plan.partitions}
    copies: list[tuple[int, int, int, int]] = []
    removals: list[tuple[int, int, int]] = []
    for at, batch in enumerate(plan.batches):
        for step in batch.partitions:
            row, before = changed[step.key], step.replicas_before
            amount = row.size_bytes if in_bytes else 1
            source = row.leader_before if row.leader_before in before else before[0]
            copies += [(at, source, broker, amount) for broker in step.replicas if broker not in before]
            removals += [(at, broker, amount) for broker in before if broker not in step.replicas]
    return (np.array(copies, dtype=np.int64).reshape(-1, 4), np.array(removals, dtype=np.int64).reshape(-1, 3))


def largest(amounts: LongArray, at_most: int, first: Sequence[bool] = ()) -> list[int]:
    """Indices of all, or of the `at_most` − 1 largest with OTHERS behind them; ascending, so in the order of ids.

    What is to come `first` has half of the places before others are asked, the largest of it where it needs more.
    """
    if len(amounts) <= at_most:
        return list(range(len(amounts)))
    order = np.argsort(-amounts, kind="stable").tolist()
    ahead = [at for at in order if any(first) and first[at]][: at_most // 2]
    behind = [at for at in order if at not in set(ahead)]
    return [*sorted([*ahead, *behind][: at_most - 1]), OTHERS]


def summed(values: LongArray, kept: Sequence[int]) -> LongArray:
    """(N, K) the columns of `values` (N, B) that are kept, OTHERS as the sum of all that aren't."""
    shown = [at for at in kept if at != OTHERS]
    rest = values.sum(axis=1) - values[:, shown].sum(axis=1)
    columns = [rest if at == OTHERS else values[:, at] for at in kept]
    return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0), dtype=np.int64)


@dataclass(frozen=True)
class Run:
    """Consecutive batches shown as one: indices from `first` up to `end`, and when they run.

    `start` and `seconds` are at the throttle; where nobody knows how long batches take each counts as one.
    """

    first: int
    end: int
    start: float
    seconds: float

    @property
    def name(self) -> str:
        """`batch 3`, or `batches 3 to 7`."""
        return f"batch {self.first + 1}" if self.end - self.first == 1 else f"batches {self.first + 1} to {self.end}"


def times_known(plan: Plan) -> bool:
    """True where every batch says how long it takes at the throttle, and any of them takes time."""
    seconds = [batch.seconds_at_throttle for batch in plan.batches]
    return plan.cluster.sizes_known and None not in seconds and any(seconds)


def runs(plan: Plan, at_most: int) -> list[Run]:
    """All batches in order, as at most `at_most` runs of about equally many."""
    times = [batch.seconds_at_throttle if times_known(plan) else 1 for batch in plan.batches]
    count = min(at_most, len(times))
    bounds = [round(at * len(times) / count) for at in range(count + 1)] if count else [0]
    starts = np.concatenate([[0], np.cumsum(np.array(times, dtype=np.int64))]).tolist()
    return [Run(first, end, starts[first], starts[end] - starts[first]) for first, end in pairwise(bounds)]


def copied_pairs(moved: Movement) -> Iterator[tuple[int, int, int]]:
    """(sender, receiver, amount) of every pair that copies anything, the largest amounts first."""
    rows, columns = np.nonzero(moved.copied)
    amounts = moved.copied[rows, columns]
    for at in np.argsort(-amounts, kind="stable").tolist():
        yield moved.brokers[rows[at]], moved.brokers[columns[at]], int(amounts[at])

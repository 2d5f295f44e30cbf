"""Log dirs in batches: which step of a partition names which, and in which batch replicas move inside their brokers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.log_dirs_values import ANY
from planner.model import BatchRules, PartitionChange

Paths = tuple[str, ...]


def of_step(change: PartitionChange, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[Paths, Paths]:
    """The log dirs of one step of a change, parallel to its lists before and after; empty where none are planned.

    A replica that comes has its log dir at once, and one that goes its old one for the way back; one that stays on its
    broker moves between its log dirs in the last step.
    """
    if not change.log_dirs:
        return (), ()
    old = dict(zip(change.before, change.log_dirs_before, strict=True))
    new = dict(zip(change.after, change.log_dirs, strict=True))
    moves = {broker for broker in change.before if broker in new} if after == change.after else set()
    come, go = set(after) - set(before), set(before) - set(after)
    return (
        tuple(old.get(broker, ANY) if broker in go or broker in moves else ANY for broker in before),
        tuple(new.get(broker, ANY) if broker in come or broker in moves else ANY for broker in after),
    )


def deal(changes: Sequence[PartitionChange], rules: BatchRules, batches: int) -> list[int]:
    """The batch of each change of which replicas only move between log dirs: as many more batches as it takes.

    What brokers move inside counts apart from what goes between them: at most `rules.bytes` in a batch, unless one
    partition alone has more, and at most `rules.moves_per_broker` replicas of one broker. Without rules the changes are
    spread evenly.
    """
    if rules.bytes is None and rules.moves_per_broker is None:
        return [at * max(batches, 1) // len(changes) for at in range(len(changes))]
    sizes, moves = Counter[int](), Counter[tuple[int, int]]()
    found = []
    for change in changes:
        size_bytes, batch = change.size_bytes * len(change.dir_moves), 0
        while not _fits(change, rules, sizes[batch], batch, moves):
            batch += 1
        sizes[batch] += size_bytes
        moves.update((batch, broker) for broker in change.dir_moves)
        found.append(batch)
    return found


def _fits(
    change: PartitionChange, rules: BatchRules, size_bytes: int, batch: int, moves: Counter[tuple[int, int]]
) -> bool:
    more = change.size_bytes * len(change.dir_moves)
    if rules.bytes is not None and size_bytes and size_bytes + more > rules.bytes:
        return False
    most = rules.moves_per_broker
    return most is None or all(moves[batch, broker] < most for broker in change.dir_moves)

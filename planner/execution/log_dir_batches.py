"""The batches of replicas that move between the log dirs of their brokers.

Kafka throttles them apart from what goes between brokers (KIP-113), so they are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.execution.election_batches import evenly
from planner.model.cluster import ANY
from planner.model.partition_changes import PartitionChange
from planner.model.spec import BatchRules

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


def deal(changes: Sequence[PartitionChange], rules: BatchRules, elections: Sequence[int]) -> list[int]:
    """The batch of each change of which replicas only move between log dirs: as many more batches as it takes.

    `elections` are those of each batch that there is, which count. What brokers move inside counts apart from what goes
    between them: at most `rules.bytes` in a batch, and for each broker what it moves in `rules.seconds`, unless one
    partition alone has more, and at most `rules.moves_per_broker` replicas of one broker. Without any such rule the
    changes are spread evenly.
    """
    if (rules.bytes, rules.moves_per_broker, rules.bytes_per_broker) == (None, None, None):
        return evenly(len(changes), elections, rules.elections)
    held = [_Held(elected) for elected in elections]
    found = []
    for change in changes:
        batch = 0
        while batch < len(held) and not held[batch].has_room(change, rules):
            batch += 1
        if batch == len(held):
            held.append(_Held())
        held[batch].put(change, rules)
        found.append(batch)
    return found


class _Held:
    """What a batch moves inside brokers so far, and how many leaders it elects."""

    def __init__(self, elections: int = 0) -> None:
        self.elections, self.size_bytes = elections, 0
        self.moves, self.loads = Counter[int](), Counter[int]()

    def has_room(self, change: PartitionChange, rules: BatchRules) -> bool:
        """True where the rules let the batch take the change, too."""
        more, brokers = change.size_bytes * len(change.dir_moves), change.dir_moves
        load, of_broker = _load(change, rules), rules.bytes_per_broker
        return (
            _within(self.size_bytes, more, rules.bytes)
            and all(_within(self.loads[broker], load, of_broker) for broker in brokers)
            and (rules.moves_per_broker is None or all(self.moves[each] < rules.moves_per_broker for each in brokers))
            and (rules.elections is None or self.elections + change.elects <= rules.elections)
        )

    def put(self, change: PartitionChange, rules: BatchRules) -> None:
        """Add a change."""
        self.size_bytes += change.size_bytes * len(change.dir_moves)
        self.elections += change.elects
        self.moves.update(change.dir_moves)
        for broker in change.dir_moves:
            self.loads[broker] += _load(change, rules)


def _load(change: PartitionChange, rules: BatchRules) -> int:
    """What a broker moves of it, with what producers write meanwhile where time is limited."""
    return change.size_bytes + change.bytes_in_per_sec * (rules.seconds or 0)


def _within(held: int, more: int, limit: int | None) -> bool:
    return limit is None or not held or not more or held + more <= limit

"""Log dirs in batches: which step of a partition names which."""

from __future__ import annotations

from planner.log_dirs_values import ANY
from planner.model import PartitionChange

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

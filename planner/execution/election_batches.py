"""The batches of what copies nothing: elections, and replicas that only change their order.

They cost no bytes, but all of them at once would flood the controller, and every client that looks for its leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def evenly(count: int, elections: Sequence[int], most: int | None) -> list[int]:
    """The batch of each of `count` elections, in ascending order: spread evenly over batches that hold some already.

    A batch takes at most `most` of them with those that it holds. Where there is no room left, batches are appended.
    """
    if not count:
        return []
    held = list(elections) or [0]
    while most is not None and sum(max(most - each, 0) for each in held) < count:
        held.append(0)
    rooms = [count if most is None else max(most - each, 0) for each in held]
    wanted = Counter(at * len(held) // count for at in range(count))
    taken = [min(wanted[batch], room) for batch, room in enumerate(rooms)]
    left = count - sum(taken)
    for batch, room in enumerate(rooms):
        more = min(left, room - taken[batch])
        taken[batch] += more
        left -= more
    return [batch for batch, number in enumerate(taken) for _ in range(number)]

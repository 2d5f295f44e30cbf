"""The flow at prices of loads, and the bound that it proves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.bounds import GRAIN
from planner.flow import CostRangeError
from planner.model import FloatArray, LongArray
from planner.strategies.attempts import Bound, Task, of_proof
from planner.strategies.byte_loads import priced
from planner.strategies.placing import Placed, place
from planner.strategies.proof import proof

# Prices beyond this many times what a byte is worth would leave the solver's arithmetic.
_STEEPEST = 3


class Priced(NamedTuple):
    """The cheapest placement at some prices, and the bound that it proves."""

    placed: Placed
    bound: Bound


def in_parts(task: Task, prices: FloatArray) -> LongArray:
    """Prices (D, Bt) in bytes a unit as whole parts of GRAIN, none too steep for the solver's arithmetic."""
    steepest = _STEEPEST * task.loads.scales[:, None]
    return np.rint(prices.clip(-steepest, steepest) * GRAIN).astype(np.int64)


def at_prices(task: Task, prices: LongArray) -> Priced | None:
    """The flow at prices (D, Bt) in parts of GRAIN a unit; None where they are beyond the solver's arithmetic."""
    try:
        layout = priced(task.layout, task.loads, prices)
        placed = place(task.problem, layout, task.wanted)
    except CostRangeError:
        return None
    return Priced(placed, of_proof(task, proof(layout, placed, prices)))


def without_prices(task: Task, placed: Placed) -> Bound:
    """The bound of a placement that was made without prices."""
    nothing = np.zeros(task.loads.windows[:, 0].shape, dtype=np.int64)
    return of_proof(task, proof(task.layout, placed, nothing))

"""Packs one broker's replicas into its log dirs: within their windows, with the fewest bytes moved, and a lower bound.

Moves of single replicas give a packing, and the bytes that log dirs hold outside of their windows give a bound. If the
two differ, CP-SAT closes or narrows the gap. It stops by its own deterministic measure of work, not by a clock.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.scoring.window_excess import beyond, distance

# A gap below this share of the bytes moved counts as closed.
_SMALL_GAP = 1e-6
# The most choices (replicas × dirs) for CP-SAT, and its work for one broker; a unit of work is about a second.
_MOST_CHOICES = 4_000
MOST_WORK = 2.0
# Sums over all log dirs must fit into 64 bits.
_MOST_BYTES = 1 << 60
# The gain of a step to the dir where a replica is already: never taken.
_NEVER = -(1 << 62)
# The cost assumed for a step that costs no bytes or saves some.
_FREE = 1e-9
_FOUND = ("OPTIMAL", "FEASIBLE")


@dataclass(frozen=True)
class Dirs:
    """N replicas that may be in any of K log dirs.

    sizes (N,): bytes of each · homes (N,): today's dir, -1 if the broker adds the replica · fixed_bytes (K,): bytes of
    the replicas that stay where they are · window (2, K): the least and the most bytes that each dir is to hold.
    """

    sizes: LongArray
    homes: IntArray
    fixed_bytes: LongArray
    window: LongArray

    @property
    def total_bytes(self) -> int:
        """Bytes of all replicas."""
        return sum(self.fixed_bytes.tolist()) + sum(self.sizes.tolist())

    def loads(self, places: IntArray) -> LongArray:
        """(K,): bytes in each dir with the replicas at these places (N,), -1 for none."""
        loads, is_placed = self.fixed_bytes.copy(), places >= 0
        np.add.at(loads, places[is_placed], self.sizes[is_placed])
        return loads

    def outside(self, places: IntArray) -> int:
        """The total bytes by which the dirs are outside of their windows."""
        return int(distance(self.window, self.loads(places)).sum())

    def moved(self, places: IntArray) -> BoolArray:
        """(N,): True for replicas that go from one dir to another."""
        return (self.homes >= 0) & (places != self.homes)

    def bytes_moved(self, places: IntArray) -> int:
        """Bytes that go from one dir to another; a replica that the broker adds is in no dir yet and doesn't count."""
        return int(self.sizes[self.moved(places)].sum())


@dataclass(frozen=True)
class Packed:
    """The dir of each replica (N,), and a lower bound on the bytes moved by any packing as near to the windows.

    `outside_bytes`: bytes above and below the windows. `nearest`: True if it is proven that no packing comes nearer.
    """

    places: IntArray
    bytes_moved: int
    least_bytes_moved: int
    outside_bytes: int
    nearest: bool


def pack(dirs: Dirs, work: float = MOST_WORK) -> Packed:
    """A packing as near to the windows as possible; among those, one with the fewest bytes moved.

    `work` is what CP-SAT may spend, in its own units. Deterministic: ties go to the first replica and dir.
    """
    if dirs.total_bytes * len(dirs.fixed_bytes) > _MOST_BYTES:
        raise OverflowError(f"{dirs.total_bytes} bytes in {len(dirs.fixed_bytes)} log dirs of one broker are too many")
    places = _improved(dirs, _first_packing(dirs))
    outside, nearest = dirs.outside(places), dirs.outside(places) == 0
    solvable = len(dirs.sizes) * len(dirs.fixed_bytes) <= _MOST_CHOICES
    if outside and solvable:
        places, nearest = _nearest(dirs, places, work)
        outside = dirs.outside(places)
    # A lower bound: bytes that must leave dirs that are too full, or come to dirs that lack more than new replicas can
    # fill. A packing that is outside of the windows by some bytes may save as many.
    coming, leaving = beyond(dirs.window, dirs.loads(dirs.homes)).sum(axis=1).tolist()
    coming -= int(dirs.sizes[dirs.homes < 0].sum())
    least = max(leaving - outside, coming - outside, 0)
    if solvable and dirs.bytes_moved(places) - least > _SMALL_GAP * least:
        places, proven = _fewest(dirs, places, outside, work)
        least = max(least, proven)
    return Packed(places, dirs.bytes_moved(places), min(least, dirs.bytes_moved(places)), outside, nearest)


def _first_packing(dirs: Dirs) -> IntArray:
    """Replicas stay in their dirs; new replicas, the largest first, go to the dir that lacks most."""
    places = dirs.homes.copy()
    new, loads = np.flatnonzero(dirs.homes < 0), dirs.loads(places)
    counts = np.bincount(places[places >= 0], minlength=len(loads))
    middle = dirs.window.sum(axis=0) // 2
    for replica in new[np.argsort(-dirs.sizes[new], kind="stable")].tolist():
        missing = middle - loads
        place = int(np.lexsort((counts, -missing))[0])
        places[replica] = place
        loads[place] += dirs.sizes[replica]
        counts[place] += 1
    return places


def _improved(dirs: Dirs, places: IntArray) -> IntArray:
    """The packing improved by moves of single replicas: first nearer to the windows, then with fewer bytes moved.

    Every move improves the packing, so the moves end.
    """
    places, loads = places.copy(), dirs.loads(places)
    while len(places):
        gains, costs = _steps(dirs, places, loads)
        better = (gains > 0) | ((gains == 0) & (costs < 0))
        if not better.any():
            break
        # Highest gain per byte first: moves that cost nothing come first, moves that only save bytes come last.
        rates = np.where(gains > 0, gains / np.maximum(costs, _FREE), 0.0)
        brings = np.where(gains > 0, gains, -costs)
        ranked = np.where(better & (rates == rates[better].max()), brings, _NEVER)
        replica, place = divmod(int(ranked.argmax()), len(loads))
        loads[places[replica]] -= dirs.sizes[replica]
        loads[place] += dirs.sizes[replica]
        places[replica] = place
    return places


def _steps(dirs: Dirs, places: IntArray, loads: LongArray) -> tuple[LongArray, LongArray]:
    """(N, K) each: for a replica's step to a dir, the bytes less outside of the windows, and the bytes it costs."""
    sizes, columns = dirs.sizes[:, None], np.arange(len(loads))[None, :]
    distances = distance(dirs.window, loads)
    gain_left = distances[places] - distance(dirs.window[:, places], loads[places] - dirs.sizes)
    gains = gain_left[:, None] + distances - distance(dirs.window, loads + sizes)
    paid = np.where(dirs.moved(places), dirs.sizes, 0)[:, None]
    costs = np.where((dirs.homes < 0)[:, None] | (columns == dirs.homes[:, None]), 0, sizes) - paid
    return np.where(columns == places[:, None], _NEVER, gains), costs


def _nearest(dirs: Dirs, places: IntArray, work: float) -> tuple[IntArray, bool]:
    """A packing with the least outside of the windows, starting at `places`; True if this is proven to be the least."""
    choices = _PackingModel.of(dirs, places)
    choices.model.minimize(choices.outside(dirs, dirs.outside(places)))
    solver, status = _solved(choices.model, work, 0.0)
    return (choices.chosen(solver, places), status == "OPTIMAL") if status in _FOUND else (places, False)


def _fewest(dirs: Dirs, places: IntArray, outside: int, work: float) -> tuple[IntArray, int]:
    """A packing no farther outside of the windows with the fewest bytes moved, and a lower bound on these bytes."""
    choices = _PackingModel.of(dirs, places)
    choices.model.add(choices.outside(dirs, outside) <= outside)
    choices.model.minimize(choices.bytes_moved(dirs))
    solver, status = _solved(choices.model, work, _SMALL_GAP)
    if status not in _FOUND:
        return places, 0
    chosen = choices.chosen(solver, places)
    moved = dirs.bytes_moved(chosen)
    # Bytes are whole numbers, but the bound is a floating-point number with a small error.
    proven = ceil(solver.best_objective_bound * (1 - 1e-12) - 1e-6)
    return (chosen if moved < dirs.bytes_moved(places) else places), min(proven, moved)


def _solved(model: Any, work: float, gap: float) -> tuple[Any, str]:
    """CP-SAT's solver after its work, and the name of its status; the caller has a packing in any case."""
    solver = _cp_model().CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = work
    solver.parameters.relative_gap_limit = gap
    return solver, solver.status_name(solver.solve(model))


def _cp_model() -> Any:
    # Imported here, because the import takes a second or more and most plans don't need it.
    from ortools.sat.python import cp_model

    return cp_model


class _PackingModel(NamedTuple):
    """CP-SAT's model of a packing: for each replica with bytes, one variable per dir that it may be in."""

    model: Any
    variables: dict[tuple[int, int], Any]

    @classmethod
    def of(cls, dirs: Dirs, places: IntArray) -> Self:
        """The model, with a packing to start from."""
        model, count = _cp_model().CpModel(), len(dirs.fixed_bytes)
        rows = np.flatnonzero(dirs.sizes).tolist()
        variables = {(row, place): model.new_bool_var("") for row in rows for place in range(count)}
        for row in rows:
            model.add_exactly_one(variables[row, place] for place in range(count))
        for (row, place), variable in variables.items():
            model.add_hint(variable, int(places[row]) == place)
        return cls(model, variables)

    def outside(self, dirs: Dirs, at_most: int) -> Any:
        """Bytes outside of the windows, at most `at_most` on each side of a window, as an expression."""
        excess = []
        for index in range(len(dirs.fixed_bytes)):
            in_dir = {row: variable for (row, place), variable in self.variables.items() if place == index}
            load = sum(int(dirs.sizes[row]) * variable for row, variable in in_dir.items()) + int(
                dirs.fixed_bytes[index]
            )
            over, under = (self.model.new_int_var(0, at_most, "") for _ in range(2))
            self.model.add_linear_constraint(load + under - over, *dirs.window[:, index].tolist())
            excess += [over, under]
        return sum(excess)

    def bytes_moved(self, dirs: Dirs) -> Any:
        """Bytes that go from one dir to another, as an expression."""
        leaves = ((row, place) for row, place in self.variables if dirs.homes[row] not in (-1, place))
        return sum(int(dirs.sizes[row]) * self.variables[row, place] for row, place in leaves)

    def chosen(self, solver: Any, places: IntArray) -> IntArray:
        """The places (N,) that the solver found; replicas without bytes stay where they were."""
        new_places = places.copy()
        for (row, place), variable in self.variables.items():
            if solver.boolean_value(variable):
                new_places[row] = place
        return new_places

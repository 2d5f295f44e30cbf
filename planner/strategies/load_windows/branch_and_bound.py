"""The cheapest placement if only small partitions' replicas could be split: branch and bound over the large ones.

If single partitions are larger than the windows of bytes are wide, the linear program that splits them is far too
cheap. Here a partition has a replica on a broker or it doesn't. The cheapest case so far is split in two, at the
replica that raises the cost of both the most, until all large partitions are whole in the cheapest case. The prices of
all cases prove a bound (see `lagrangian_bound`), and the cheapest case's shares are close to a placement. Smaller
partitions come next if those two aren't close yet.

If every partition must have a fixed number of replicas in each rack, the cost of one rack's brokers doesn't depend on
the other racks. Then every rack has its own cases, instead of all the racks' cases times each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np

from planner.model.problem import BoolArray, FloatArray, IntArray
from planner.strategies.lagrangian_bound import (
    FINE,
    BoundFacts,
    Branch,
    Case,
    Certificate,
    Part,
    Prices,
    price_at_edges,
)
from planner.strategies.load_windows.lp_relaxation import Decision, Duals, Fits, ShareProgram, as_decided, is_split
from planner.strategies.work_limits import (
    BRANCHES_TRIED,
    CASE_COLUMNS,
    CASE_DECISIONS,
    CASE_HALVINGS,
    CASE_ROWS,
    CASE_SOLVES,
    DIVE_BROKERS,
    DIVE_ROWS,
    FAIR,
    SHARE_OF_PLACEMENT,
    SHARE_OF_SPLITTING,
    Effort,
)

# Rows below this part of a window needn't be decided for a placement.
_TINY = 1e-5
# Cases whose costs differ by less than this part are as good as each other: deeper ones come first.
_ALIKE = 1e-5
# Steeper prices might exceed 64 bits.
_MOST = 1 << 60


class Branched(NamedTuple):
    """The proof so far, and shares (M, Bt) of all rows in the cheapest cases, nearly all of them whole.

    Shares are None if that took too long.
    """

    proof: Certificate
    shares: FloatArray | None


@dataclass(eq=False)
class _Node:
    """A case: its decisions, its least cost, the shares of large rows, its prices; and its two cases."""

    decisions: tuple[Decision, ...]
    least_cost: float
    shares: FloatArray
    duals: Duals
    split: "tuple[Decision, _Node, _Node] | None" = None


class _Search:
    """The cases of one part. `large` (K,): the rows that may be decided, the largest first; `sizes` (M,): of all rows.

    `fits`: split replicas can be in all windows. `brokers` (b,): the part's brokers. `effort`: the work that is left.
    `solves`: the most programs. `goal`: a bound that is high enough.
    """

    def __init__(
        self, program: ShareProgram, large: IntArray, sizes: FloatArray, effort: Effort, solves: int, goal: float
    ) -> None:
        self._program, self._large, self._sizes, self.brokers = program, large, sizes, program.brokers
        self.effort, self._most_solves, self._goal = effort, solves, goal
        # The costs so far of deciding a replica, per unit of its share: sums and numbers, for off and for on.
        self._gains = np.zeros((2, len(large), len(program.brokers), 2))
        self._order = count()
        self._open: list[tuple[int, int, int, _Node]] = []
        self.solves = 0
        self.root = self._solve_case((), 0.0)
        self.fits = self.root is not None and program.fits()
        if self.root is not None:
            self._push(self.root)

    @property
    def exhausted(self) -> bool:
        """True if the work or the programs are used up, or if decisions go too deep."""
        solved = self.solves >= self._most_solves or self.effort.spent or self.cheapest.least_cost >= self._goal
        return solved or len(self.cheapest.decisions) >= CASE_DECISIONS

    @property
    def cheapest(self) -> _Node:
        """The case to be split next."""
        return self._open[0][-1]

    def run(self, smallest: float) -> bool:
        """Split the cheapest case until all its rows of that size are whole; False if that took too long."""
        sizes = self._sizes[self._large][:, None]
        while not self.exhausted:
            node = self.cheapest
            split = is_split(node.shares) & (sizes >= smallest)
            if not split.any():
                return True
            self._branch(node, np.where(split, np.minimum(node.shares, 1 - node.shares) * sizes, 0))
        return False

    def placement(self, smallest: float, most_cost: float) -> FloatArray | None:
        """The shares (M, b) of all rows in the cheapest case, nearly whole; None if they cost more than `most_cost`."""
        shares, width = self.cheapest.shares, len(self._program.brokers)
        is_whole = ~is_split(shares).any(axis=1) & (self._sizes[self._large] >= smallest)
        is_settled, all_shares = np.zeros(len(self._sizes), dtype=bool), np.zeros((len(self._sizes), width))
        is_settled[self._large[is_whole]], all_shares[self._large[is_whole]] = True, shares[is_whole]
        return self._dive(is_settled, all_shares, most_cost)

    def _dive(self, is_settled: BoolArray, shares: FloatArray, most_cost: float) -> FloatArray | None:
        """Decide the largest split row on the broker where that costs the least, keep all larger rows as they are, and
        repeat until only tiny rows are split.
        """
        decided = as_decided(np.flatnonzero(is_settled), shares[is_settled].round() > 0)
        cost = self._least_cost(decided)
        for _ in range(DIVE_ROWS):
            if cost is None or cost > most_cost or self.effort.spent:
                return None
            shares[~is_settled] = self._program.shares(np.flatnonzero(~is_settled))
            split = is_split(shares)
            row = int(np.where(split.any(axis=1), self._sizes, 0).argmax())
            if not split[row].any() or self._sizes[row] < _TINY:
                return shares
            is_whole = ~split.any(axis=1) & ~is_settled & (self._sizes >= self._sizes[row])
            decided |= as_decided(np.flatnonzero(is_whole), shares[is_whole].round() > 0)
            is_settled |= is_whole
            cost = self._decide(decided, row, np.where(split[row], shares[row], -1), cost)
        return shares

    def _decide(self, decided: set[Decision], row: int, shares: FloatArray, parent_cost: float) -> float | None:
        """Decide for one of the brokers on which the row has shares (b,); return the cost."""
        candidates: list[tuple[float, Decision]] = []
        for broker in np.argsort(-shares, kind="stable")[: min(DIVE_BROKERS, np.count_nonzero(shares > 0))].tolist():
            decision = row, broker, True
            if (cost := self._least_cost(decided | {decision})) is None:
                continue
            if cost <= parent_cost + _ALIKE * max(1.0, parent_cost):
                decided.add(decision)
                return cost
            candidates.append((cost, decision))
        if not candidates:
            return None
        decided.add(min(candidates)[1])
        return self._least_cost(decided)

    def case(self, fits: Fits) -> Case:
        """All cases with their prices."""
        assert self.root is not None
        return _case_of(self.root, self._program.brokers, fits)

    def _branch(self, node: _Node, weights: FloatArray) -> None:
        width = weights.shape[1]
        order = np.argsort(-weights, axis=None, kind="stable")[
            : min(BRANCHES_TRIED, np.count_nonzero(weights))
        ].tolist()
        best, best_split = -1.0, None
        for cell in (divmod(each, width) for each in order):
            (sums, counts), share, cases = self._gains[:, *cell], float(node.shares[cell]), None
            if counts.all():
                off_costs, on_costs = (sums / counts * (share, 1 - share)).tolist()
            else:
                cases = self._split_cases(node, cell)
                off_costs, on_costs = (case.least_cost - node.least_cost for case in cases)
            least_rise = _ALIKE * max(1.0, node.least_cost)
            if (score := max(off_costs, least_rise) * max(on_costs, least_rise)) > best:
                best, best_split = score, (cell, cases)
        assert best_split is not None
        cell, cases = best_split
        off, on = self._split_cases(node, cell) if cases is None else cases
        node.split = (int(self._large[cell[0]]), cell[1], True), off, on
        heappop(self._open)
        self._push(off)
        self._push(on)

    def _split_cases(self, node: _Node, cell: tuple[int, int]) -> tuple[_Node, _Node]:
        """The case without the replica, and with it."""
        share = float(node.shares[cell])
        cases = []
        for is_on, unit in ((False, share), (True, 1 - share)):
            decisions = (*node.decisions, (int(self._large[cell[0]]), cell[1], is_on))
            case = self._solve_case(decisions, node.least_cost)
            # A case on which the solver gives up has the prices of its parent, and comes last.
            if case is not None:
                self._gains[:, *cell, int(is_on)] += (case.least_cost - node.least_cost) / unit, 1
            cases.append(case or _Node(decisions, np.inf, np.rint(node.shares), node.duals))
        return cases[0], cases[1]

    def _solve_case(self, decisions: tuple[Decision, ...], parent_cost: float) -> _Node | None:
        """A case, no cheaper than its parent; None if it has no cost, or prices that aren't finite."""
        if (cost := self._least_cost(decisions)) is None:
            return None
        duals = self._program.duals()
        if not all(np.isfinite(prices).all() for prices in duals):
            return None
        return _Node(decisions, max(parent_cost, cost), self._program.shares(self._large), duals)

    def _least_cost(self, decisions: Iterable[Decision]) -> float | None:
        self.solves += 1
        self.effort.spend(self._program.columns)
        return self._program.least_cost(decisions)

    def _push(self, node: _Node) -> None:
        """Add a case: the cheapest comes first; of cases alike the deepest, and then the first."""
        assert self.root is not None
        quantum = _ALIKE * max(1.0, self.root.least_cost)
        worse = int(min((node.least_cost - self.root.least_cost) / quantum, 1e15))
        heappush(self._open, (worse, -len(node.decisions), next(self._order), node))


def branchings(
    facts: BoundFacts, fits: Fits, base: Certificate, effort: Effort, solves: int = CASE_SOLVES, goal: float = np.inf
) -> Iterator[Branched]:
    """Proofs and shares with ever smaller rows whole; none if the programs are too large. At the end the effort may be
    spent. `solves`: the most programs of one part. With `goal`, only proofs, until one part's proves so many bytes.
    """
    racks = range(facts.least.shape[1])
    # Each rack by itself if every row must have a fixed number of replicas there.
    by_rack = fits.slack is None and (facts.least[facts.kinds] == facts.most[facts.kinds]).all()
    parts = [(rack,) for rack in racks if (facts.racks == rack).any()] if by_rack else [tuple(racks)]
    sizes = sizes_in_windows(facts, fits)
    large = np.argsort(-sizes, kind="stable")[: min(CASE_ROWS, int((sizes >= 0.5**CASE_HALVINGS).sum()))]
    placing = np.isinf(goal)
    if effort.spent or facts.measure != "bytes":
        return
    if len(facts.factors) * max(int(np.isin(facts.racks, part).sum()) for part in parts) > CASE_COLUMNS:
        return
    programs = [ShareProgram(facts, fits, part, large) for part in parts]
    efforts = [effort.part((SHARE_OF_SPLITTING if placing else 1) / len(parts)) for _ in parts]
    searches = [
        _Search(program, large, sizes, each, solves, goal) for program, each in zip(programs, efforts, strict=True)
    ]
    if any(search.root is None or (placing and not (search.fits or fits.slack)) for search in searches):
        return
    if fits.slack is not None and not fits.steep and not all(search.fits for search in searches):
        yield from branchings(facts, replace(fits, steep=True), base, effort, solves, goal)
        return
    for smallest in (np.inf, *(0.5**halved for halved in range(CASE_HALVINGS + 1))):
        for search, each in zip(searches, efforts, strict=True):
            search.effort = each
        are_whole = [np.isinf(smallest) or search.run(smallest) for search in searches]
        shares = _all_shares(facts, searches, smallest, effort.part(SHARE_OF_PLACEMENT)) if placing else None
        if shares is not None or not np.isinf(smallest) or fits.slack is not None:
            cases = zip(parts, searches, strict=True)
            proof_parts = tuple(Part(part, search.case(fits)) for part, search in cases)
            yield Branched(replace(base, parts=proof_parts), shares)
        if not all(are_whole) or effort.spent:
            return


def _all_shares(facts: BoundFacts, searches: Sequence[_Search], smallest: float, effort: Effort) -> FloatArray | None:
    """The shares (M, Bt) of all parts; None if some part has none. Before any case is split, only shares that cost next
    to nothing more are worth their time.
    """
    shares = np.zeros((len(facts.factors), len(facts.racks)))
    allowed_rise = FAIR * sum(search.cheapest.least_cost for search in searches) if smallest == np.inf else np.inf
    for search in searches:
        search.effort = effort
        if (placement := search.placement(smallest, search.cheapest.least_cost + allowed_rise)) is None:
            return None
        shares[:, search.brokers] = placement
    return shares


def sizes_in_windows(facts: BoundFacts, fits: Fits) -> FloatArray:
    """(M,): how large a row's loads are in comparison with their narrowest window."""
    widths = np.maximum((fits.loads[:, 1] - fits.loads[:, 0]).min(axis=1), 1)
    sizes: FloatArray = (facts.loads / widths[:, None]).max(axis=0)
    return sizes


def _case_of(node: _Node, targets: IntArray, fits: Fits) -> Case:
    if node.split is not None:
        (row, broker, _), off, on = node.split
        return Branch(row, int(targets[broker]), _case_of(off, targets, fits), _case_of(on, targets, fits))
    everywhere = []
    for prices in node.duals:
        everywhere.append(np.zeros((*prices.shape[:-1], fits.brokers.shape[1]), dtype=np.int64))
        everywhere[-1][..., targets] = np.rint(prices * FINE).clip(-_MOST, _MOST).astype(np.int64)
    cells, brokers, loads = everywhere
    tables = tuple(map(price_at_edges, loads, fits.loads))
    return Prices(price_at_edges(cells, fits.topics), price_at_edges(brokers, fits.brokers), tables, FINE)

"""Which brokers fail together (each, a rack, pairs, or any K, drawn at random if those are too many), and what fails.

Many sets are evaluated without looking at every partition for each. A partition depends only on which of its own few
replicas fail. So any sum over partitions, as a function of the failing set F, is Σ d(S) over the subsets S of F. d(S)
collects, by inclusion and exclusion (a Möbius transform), what partitions with replicas on all of S add if exactly
those fail. d is zero for sets larger than a partition's replicas, so its table is small and made once, and a pair of
brokers takes three look-ups, however many partitions there are. Brokers that fail together are a domain: a single
broker, or all brokers of a rack.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import NamedTuple, Self

import numpy as np
import scipy  # its parts are imported when they are first used, because most commands use none

from planner.model.errors import SetupError
from planner.model.problem import BoolArray, IntArray, LongArray, Problem, draw_numbers
from planner.whatif.cluster_states import FACTS, Outcome, PartitionStates, outcome, worse

# On each live broker: leaders, bytes/s written to it, bytes/s that it sends.
LOADS = ("leaders", "network_in", "network_out")
_BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class OutcomeSums:
    """d(S) of sets S of domains; each set is one number, ascending.

    sets (K,), facts (K, len(FACTS)); load_sets (L,) ascending, load_brokers (L,), loads (L, M): the first M of LOADS.
    `base` is one more than the number of domains.
    """

    order: int
    base: int
    sets: LongArray
    facts: LongArray
    load_sets: LongArray
    load_brokers: LongArray
    loads: LongArray


class SignedRows(NamedTuple):
    """Partitions in two conditions (the same one twice if there is only one), counted `sign` times."""

    sign: int
    first: PartitionStates
    second: PartitionStates

    def take(self, rows: LongArray) -> Self:
        """Some of the partitions."""
        first = self.first.take(rows)
        return self._replace(first=first, second=first if self.second is self.first else self.second.take(rows))


def table(parts: Iterable[SignedRows], domain_of: IntArray, order: int, measures: int) -> OutcomeSums:
    """The sum of the parts, for sets of up to `order` domains (B,) and the first `measures` of LOADS."""
    blocks = list[SignedRows]()
    for part in parts:
        for start in range(0, len(part.first.leaders), _BLOCK):
            blocks.append(part.take(np.arange(start, min(start + _BLOCK, len(part.first.leaders)), dtype=np.int64)))
    width = max((block.first.replicas.shape[1] for block in blocks), default=1)
    order, base = min(order, width), int(domain_of.max(initial=-1)) + 2
    if base**order > 2**62 // (len(domain_of) + 1):
        raise SetupError(f"sets of {order} of {base - 1} are too many; allowed: fewer brokers that fail")
    pieces = [_OutcomeBlock(block, domain_of, order).pieces(base, measures) for block in blocks]
    facts = _merged([piece for piece, _ in pieces], len(FACTS))
    loads = _merged([piece for _, piece in pieces], measures)
    sets, brokers = np.divmod(loads.keys, len(domain_of))
    return OutcomeSums(order, base, facts.keys, facts.values, sets, brokers, loads.values)


def add(table: OutcomeSums, sets: IntArray, facts: LongArray, loads: LongArray) -> None:
    """Adds what fails with each set (C, k) of domains, ascending, to facts (C, len(FACTS)) and loads (C, B, M)."""
    for size in range(min(table.order, sets.shape[1]) + 1):
        for columns in combinations(range(sets.shape[1]), size):
            codes = _codes(sets[:, list(columns)], table.base)
            if len(table.sets):
                indices = np.searchsorted(table.sets, codes).clip(max=len(table.sets) - 1)
                is_listed = table.sets[indices] == codes
                facts[is_listed] += table.facts[indices[is_listed]]
            low, high = (np.searchsorted(table.load_sets, codes, side=side) for side in ("left", "right"))
            counts = high - low
            rows = np.repeat(np.arange(len(codes)), counts)
            entries = np.arange(len(rows)) + np.repeat(low - np.cumsum(counts) + counts, counts)
            flat = loads.reshape(-1, loads.shape[2])
            np.add.at(flat, rows * loads.shape[1] + table.load_brokers[entries], table.loads[entries])


def failed_slots(replicas: IntArray, domain_of: IntArray, failed: IntArray | Sequence[int]) -> BoolArray:
    """(N, W): True if a replica is on a broker of one of the failed domains."""
    return np.isin(_domains_of(replicas, domain_of), failed)


class _KeyedValues(NamedTuple):
    """Keys (n,) and their values (n, m)."""

    keys: LongArray
    values: LongArray


class _OutcomeBlock:
    """Some partitions with their outcomes for every set of up to `order` of their own domains."""

    def __init__(self, part: SignedRows, domain_of: IntArray, order: int) -> None:
        self.part, self.brokers = part, len(domain_of)
        domains = _domains_of(part.first.replicas, domain_of)
        # Two replicas in one domain fail together, so the domain counts once, at the first of them.
        self.slots = domains.copy()
        for column in range(1, self.slots.shape[1]):
            is_repeated = (domains[:, :column] == domains[:, column : column + 1]).any(axis=1)
            self.slots[is_repeated, column] = -1
        width = self.slots.shape[1]
        self.subsets = [each for size in range(min(order, width) + 1) for each in combinations(range(width), size)]
        self.facts: dict[tuple[int, ...], LongArray] = {}
        self.first: dict[tuple[int, ...], Outcome] = {}
        second_domains = domains if part.second is part.first else _domains_of(part.second.replicas, domain_of)
        for subset in self.subsets:
            columns = self.slots[:, list(subset)]
            block_outcome = self.first[subset] = outcome(part.first, _failing_slots(domains, columns))
            self.facts[subset] = block_outcome.facts
            if part.second is not part.first:
                self.facts[subset] = worse(
                    block_outcome.facts, outcome(part.second, _failing_slots(second_domains, columns)).facts
                )

    def pieces(self, base: int, measures: int) -> tuple[_KeyedValues, _KeyedValues]:
        """The facts by set (a number to this base), and the loads by set and broker."""
        facts, loads = list[_KeyedValues](), list[_KeyedValues]()
        for subset in self.subsets:
            rows = np.flatnonzero((self.slots[:, list(subset)] >= 0).all(axis=1))
            codes = _codes(np.sort(self.slots[rows][:, list(subset)], axis=1), base)
            # Inclusion and exclusion: a part that lacks an odd number of the subset's members has a negative sign.
            signed = [
                (self.part.sign * (-1) ** (len(subset) - size), part)
                for size in range(len(subset) + 1)
                for part in combinations(subset, size)
            ]
            value = sum(sign * self.facts[part][rows] for sign, part in signed)
            facts.append(_without_zeros(_KeyedValues(codes, np.asarray(value))))
            loads += self._loads(rows, codes, signed, measures)
        return _merged(facts, len(FACTS)), _merged(loads, measures)

    def _loads(
        self, rows: LongArray, codes: LongArray, signed: Sequence[tuple[int, tuple[int, ...]]], measures: int
    ) -> Iterable[_KeyedValues]:
        """Leaders and bytes sent, by broker; and bytes written to every replica."""
        for sign, part in signed:
            part_outcome = self.first[part]
            is_led = part_outcome.leaders[rows] >= 0
            one_each = np.ones(len(rows), dtype=np.int64)
            value = np.stack([one_each, np.zeros_like(one_each), part_outcome.sent[rows]])
            yield _KeyedValues(
                codes[is_led] * self.brokers + part_outcome.leaders[rows][is_led], sign * value.T[is_led, :measures]
            )
        if measures == 1:
            return
        written = np.asarray(sum(sign * self.first[part].written[rows] for sign, part in signed))
        for column in self.part.first.replicas[rows].T:
            is_written = (column >= 0) & (written != 0)
            value = np.zeros((int(is_written.sum()), measures), dtype=np.int64)
            value[:, 1] = written[is_written]
            yield _KeyedValues(codes[is_written] * self.brokers + column[is_written], value)


def _domains_of(replicas: IntArray, domain_of: IntArray) -> IntArray:
    return np.where(replicas >= 0, domain_of[replicas], -1)


def _failing_slots(replica_domains: IntArray, failed: IntArray) -> BoolArray:
    """(N, W): True if a replica's domain is one of the failing ones (N, s); a domain of -1 never fails."""
    is_failing = np.zeros(replica_domains.shape, dtype=bool)
    for column in failed.T:
        is_failing |= (replica_domains == column[:, None]) & (replica_domains >= 0)
    return is_failing


def _codes(sets: IntArray, base: int) -> LongArray:
    """Each set (n, s), ascending, as one number; 0 for the empty set."""
    codes = np.zeros(len(sets), dtype=np.int64)
    for column in sets.T:
        codes = codes * base + column + 1
    return codes


def _without_zeros(pairs: _KeyedValues) -> _KeyedValues:
    is_nonzero = pairs.values.any(axis=1)
    return _KeyedValues(pairs.keys[is_nonzero], pairs.values[is_nonzero])


def _merged(pieces: Sequence[_KeyedValues], columns: int) -> _KeyedValues:
    """Merges all pieces: each key once, ascending, with the sum of its values; zero sums are left out."""
    no_pairs = _KeyedValues(np.zeros(0, dtype=np.int64), np.zeros((0, columns), dtype=np.int64))
    keys, values = (np.concatenate(each) for each in zip(no_pairs, *pieces, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    # All keys are at least 0.
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    return _without_zeros(_KeyedValues(keys[starts], np.add.reduceat(values[order], starts, axis=0)))


BROKERS, RACKS, PAIRS = "brokers", "racks", "pairs"
KINDS = (BROKERS, RACKS, PAIRS)
CONFIDENCE = 0.95
# The most sets of a number of brokers that are evaluated; if there are more, this many are drawn.
MOST = 200_000


@dataclass(frozen=True, eq=False)
class FailureSets:
    """Sets (C, k) of domains that fail together, each ascending; `possible`: the number of all such sets.

    `domains` (B,): the domain of each broker, -1 if it is in none. `drawn`: the sets are independent draws with equal
    probability, not all possible sets.
    """

    kind: str
    sets: IntArray
    domains: IntArray
    possible: int
    drawn: bool = False

    @property
    def worse_at_most(self) -> float:
        """The largest share of all possible sets that may be worse than the worst drawn one, with CONFIDENCE.

        It is the upper end of the one-sided Clopper-Pearson interval for 0 of C (about 3 / C, the rule of three).
        """
        return float(scipy.special.betaincinv(1, len(self.sets), CONFIDENCE)) if self.drawn else 0.0


def scenarios(problem: Problem, kind: str, most: int, seed: int) -> FailureSets:
    """The sets of a kind (`brokers`, `racks`, `pairs` or a number of brokers); for a number at most `most`, else draws.

    SetupError if more brokers are to fail than there are.
    """
    brokers = len(problem.broker_ids)
    if kind == RACKS:
        racks = np.arange(len(problem.rack_names), dtype=np.int32)
        return FailureSets(kind, racks[:, None], problem.broker_racks, len(racks))
    count = {BROKERS: 1, PAIRS: 2}.get(kind) or int(kind)
    if count > brokers:
        raise SetupError(f"--of {kind}: {count} brokers can't fail; allowed: at most {brokers}, as there are no more")
    domain_of, possible = np.arange(brokers, dtype=np.int32), comb(brokers, count)
    if kind in KINDS or possible <= most:
        flat = np.fromiter((each for sets in combinations(range(brokers), count) for each in sets), dtype=np.int32)
        return FailureSets(kind, flat.reshape(-1, count), domain_of, possible)
    return FailureSets(kind, _draw_sets(brokers, count, most, seed), domain_of, possible, drawn=True)


def failure_name(problem: Problem, kind: str, failed: IntArray) -> str:
    """A scenario's name: `broker 1`, `rack r0`, `brokers 1, 2`."""
    if kind == RACKS:
        return f"rack {problem.rack_names[int(failed[0])]}"
    ids = problem.broker_ids[failed].tolist()
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))}"


def coverage_text(scenarios: FailureSets) -> str:
    """How many scenarios were evaluated, and what that says about the others."""
    if not scenarios.drawn:
        return f"all {scenarios.possible:,}"
    return (
        f"{len(scenarios.sets):,} of {scenarios.possible:,}, at random: with {CONFIDENCE:.0%} confidence at most "
        f"{100 * scenarios.worse_at_most:.2g} % of them are worse than the worst one seen"
    )


def _draw_sets(brokers: int, count: int, draws: int, seed: int) -> IntArray:
    """Sets (draws, count) of different brokers, ascending, with equal probability (Floyd's algorithm, CACM 1987).

    The random numbers are hashes of seed, column and draw, so they are the same on every machine.
    """
    chosen = np.full((draws, count), -1, dtype=np.int64)
    for column, last in enumerate(range(brokers - count, brokers)):
        pick = draw_numbers(np.array([(seed << 8) + column], dtype=np.uint64), draws, last + 1)[0]
        is_taken = (chosen[:, :column] == pick[:, None]).any(axis=1)
        chosen[:, column] = np.where(is_taken, last, pick)
    return np.sort(chosen, axis=1).astype(np.int32)

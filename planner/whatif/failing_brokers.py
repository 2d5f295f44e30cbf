"""Which brokers fail together: every broker, every rack, every pair, or any K, drawn where those are too many."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import scipy  # its parts are imported where they are first used: most commands use none

from planner.model.errors import SetupError
from planner.model.problem import IntArray, Problem
from planner.model.seeded_numbers import mix
from planner.whatif.offline_sums import Domains

BROKERS, RACKS, PAIRS = "brokers", "racks", "pairs"
KINDS = (BROKERS, RACKS, PAIRS)
CONFIDENCE = 0.95
# Of a number of brokers so many sets are looked at; where there are more, as many are drawn.
MOST = 200_000
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Scenarios:
    """Sets (C, k) of domains that fail together, each ascending; `possible` is how many there are in all.

    `drawn`: they are independent draws, every set as likely as the others, and not all there are.
    """

    kind: str
    sets: IntArray
    domains: Domains
    possible: int
    drawn: bool = False

    @property
    def worse_at_most(self) -> float:
        """The largest share of all possible sets that may be worse than the worst drawn one, with CONFIDENCE.

        The upper end of the one-sided Clopper-Pearson interval for 0 of C (about 3 / C, the rule of three).
        """
        return float(scipy.special.betaincinv(1, len(self.sets), CONFIDENCE)) if self.drawn else 0.0


def scenarios(problem: Problem, kind: str, most: int, seed: int) -> Scenarios:
    """The sets of a kind, `brokers`, `racks`, `pairs` or a number of brokers; at most `most` of that, else draws.

    SetupError where there are fewer brokers than are to fail.
    """
    brokers = len(problem.broker_ids)
    if kind == RACKS:
        domains = Domains(problem.broker_racks, len(problem.rack_names))
        return Scenarios(kind, np.arange(domains.count, dtype=np.int32)[:, None], domains, domains.count)
    count = {BROKERS: 1, PAIRS: 2}.get(kind) or int(kind)
    if count > brokers:
        raise SetupError(f"--of {kind}: {count} brokers can't fail; allowed: at most {brokers}, as there are no more")
    domains, possible = Domains(np.arange(brokers, dtype=np.int32), brokers), comb(brokers, count)
    if kind in KINDS or possible <= most:
        flat = np.fromiter((each for sets in combinations(range(brokers), count) for each in sets), dtype=np.int32)
        return Scenarios(kind, flat.reshape(-1, count), domains, possible)
    return Scenarios(kind, _drawn(brokers, count, most, seed), domains, possible, drawn=True)


def named(problem: Problem, kind: str, failed: IntArray) -> str:
    """What a scenario is called: `broker 1`, `rack r0`, `brokers 1, 2`."""
    if kind == RACKS:
        return f"rack {problem.rack_names[int(failed[0])]}"
    ids = problem.broker_ids[failed].tolist()
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {', '.join(map(str, ids))}"


def brokers_of(problem: Problem, scenarios: Scenarios, failed: IntArray) -> list[int]:
    """The ids of the brokers that fail."""
    ids: list[int] = problem.broker_ids[np.isin(scenarios.domains.of, failed)].tolist()
    return ids


def explained(scenarios: Scenarios) -> str:
    """How many scenarios were looked at, and what that says of the others."""
    if not scenarios.drawn:
        return f"all {scenarios.possible:,}"
    return (
        f"{len(scenarios.sets):,} drawn of {scenarios.possible:,}: with {CONFIDENCE:.0%} confidence at most "
        f"{100 * scenarios.worse_at_most:.2g} % of them are worse than the worst one seen"
    )


def _drawn(brokers: int, count: int, draws: int, seed: int) -> IntArray:
    """Sets (draws, count) of different brokers, ascending; every set as likely (Floyd's algorithm, CACM 1987).

    Its numbers are hashes of seed, column and draw: the same on every machine.
    """
    chosen = np.full((draws, count), -1, dtype=np.int64)
    for column, last in enumerate(range(brokers - count, brokers)):
        start = mix(np.array([(seed << 8) + column], dtype=np.uint64))
        hashes = mix(start + np.arange(1, draws + 1, dtype=np.uint64) * _GOLDEN_GAMMA)
        pick = ((hashes >> np.uint64(32)) * np.uint64(last + 1) >> np.uint64(32)).astype(np.int64)
        taken = (chosen[:, :column] == pick[:, None]).any(axis=1)
        chosen[:, column] = np.where(taken, last, pick)
    return np.sort(chosen, axis=1).astype(np.int32)

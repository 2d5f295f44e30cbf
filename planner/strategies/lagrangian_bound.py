"""The lower bound on the bytes that any plan moves, from prices alone, so that no solver is needed to check it.

This is Lagrangian relaxation. Every window gets a price per unit, and each broker's bytes (or traffic) a price per
byte. For each replica, a partition pays the cost of copying it minus the prices at its broker. Sorting finds its
cheapest choice of brokers within the racks and the replication factor. The sum of these costs over all partitions, plus
each price times the edge of its window (the low edge for a positive price, else the high edge), is never more than a
plan within the windows moves, whatever the prices. Good prices make the bound tight: the node potentials of the
optimum's flow.

Prices alone don't suffice if single partitions are as large as the windows of bytes. Then the bound branches into
cases: a partition has a replica on a broker, or it doesn't. Each case has its own prices or branches again, and the
bound is the least of all cases. The cost of one rack's brokers can be bounded separately, which keeps the cases few;
the bound is then the sum over racks. A window that may begin anywhere branches too: into ranges of its start. For
windows of topics, each start has prices of its own, and each topic's part of the bound is the least of its starts'.

If the windows can't all hold, the bound is for all plans that are no further outside them than `window_excess.Allowed`
says, and a unit outside has a price too. With the bytes left out of the costs, such prices also prove how far outside
any plan is.

All numbers are integers: a price is a whole number of 1 / `grain` bytes, so rounding loses nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from planner.model.problem import BoolArray, IntArray, LongArray
from planner.scoring.window_excess import Allowed

# Prices are in units of 1 / GRAIN byte, or finer ones; coarser prices lower the bound by up to a tenth of a percent.
GRAIN = 256
FINEST = 1 << 20
# Programs with split replicas have finer prices, because coarser ones matter for partitions of terabytes.
FINE = 16 * GRAIN
# Rows priced at a time, because pricing holds rows × brokers numbers.
_CHUNK = 20_000
# More than any choice costs: in 64 bits, and in Python's integers if 64 bits are too few.
_NEVER, _NEVER_EVER = np.int64(1) << np.int64(60), 1 << 200


@dataclass(frozen=True, eq=False)
class BoundFacts:
    """The data of a bound: M partitions that may move, Bt target brokers, R racks, T topics, D kinds of bytes.

    measure            "bytes" or "replicas": the unit of the costs
    broker_ids, racks  (Bt,) Kafka's id, and number of the rack, of each broker
    least, most        (K, R) fewest and most replicas in each rack, for a partition of each kind
    topics, factors    (M,) topic and replication factor of each partition
    kinds              (M,) kind of each partition: its replication factor, unless topics have different brokers
    forbidden          (T, Bt) True if no replica of the topic may enter the broker; None: every topic may be everywhere
    costs              (M,) cost of entering a broker, in bytes or replicas
    home, home_costs   (M, W) brokers where a replica may stay (-1: none) and the cost of staying
    loads              (D, M) bytes, bytes/s in, of each replica
    load_names         the D windows' names in the YAML
    together           (M,) slot of each partition, -1: none; one broker has a replica of all partitions of a slot
    leader_ranks       (T, Bt) no replica of such a partition is on a broker of lower rank; None: anywhere
    """

    measure: str
    broker_ids: IntArray
    racks: IntArray
    least: IntArray
    most: IntArray
    topics: IntArray
    factors: IntArray
    costs: LongArray
    home: IntArray
    home_costs: LongArray
    loads: LongArray
    load_names: tuple[str, ...]
    kinds: IntArray
    forbidden: BoolArray | None = None
    together: IntArray | None = None
    leader_ranks: IntArray | None = None


@dataclass(frozen=True, eq=False)
class TopicStart:
    """Other prices (4, K), as `Prices.topic_replicas`, of some topics (T',), whose windows may begin elsewhere too."""

    topics: IntArray
    topic_replicas: LongArray


@dataclass(frozen=True, eq=False)
class Prices:
    """The prices other than 0, each with the edge of its window; in units of 1 / `grain`.

    topic_replicas (4, K): topic, broker, price, edge · replicas (3, K): broker, price, edge · loads: the same for each
    kind of bytes · of_replicas, of_loads: price of a unit of weight that may be outside of windows · starts: further
    places where windows of topics may begin; what proves the least for a topic counts
    """

    topic_replicas: LongArray
    replicas: LongArray
    loads: tuple[LongArray, ...]
    grain: int = GRAIN
    of_replicas: int = 0
    of_loads: int = 0
    starts: tuple[TopicStart, ...] = ()

    @property
    def tables(self) -> tuple[LongArray, ...]:
        """The tables of all prices: by topic, by broker, then of each load."""
        return (self.topic_replicas, self.replicas, *self.loads)

    def of_brokers(self, brokers: int) -> LongArray:
        """(1 + D, Bt): the prices of replicas and of each load, in 1 / GRAIN."""
        return np.stack([GRAIN // self.grain * _broker_prices(table, brokers) for table in self.tables[1:]])


@dataclass(frozen=True, eq=False)
class Branch:
    """Two cases that cover every plan: a row (its place in the facts) has no replica on a broker, or it has one."""

    row: int
    broker: int
    off: "Case"
    on: "Case"


Case = Branch | Prices


@dataclass(frozen=True, eq=False)
class Part:
    """Some racks, and the cases that bound the cost of their brokers."""

    racks: tuple[int, ...]
    case: Case


# The first and last start of the window of all replicas for which prices hold; None: all starts.
StartRange = tuple[int, int] | None


@dataclass(frozen=True, eq=False)
class StartCase:
    """A case for some starts of the window of all replicas."""

    case: Case
    lows: StartRange = None


@dataclass(frozen=True, eq=False)
class Outside:
    """How far outside their windows the bound's plans may be, and the proof of how far outside every plan is.

    `replicas` and `loads` are cases in which a unit outside has the price of `grain`. Together they cover all starts,
    and the one that proves the least counts. `topic_names` (T,) and `partitions` (M,), Kafka's ids, name the rows.
    """

    slack: Allowed
    replicas: tuple[StartCase, ...]
    loads: tuple[StartCase, ...]
    topic_names: tuple[str, ...]
    partitions: IntArray


@dataclass(frozen=True, eq=False)
class Certificate:
    """Facts with prices, and possibly parts: everything needed to compute the bound again.

    If a window may begin at several places, the prices may be for some of those starts only, `lows`. `others` are then
    the certificates of the same facts for the other starts, and the bound is the least of all. `outside` is None if
    plans are within their windows; otherwise there is at most one part, of all racks.
    """

    facts: BoundFacts
    prices: Prices
    parts: tuple[Part, ...] = ()
    others: "tuple[Certificate, ...]" = ()
    outside: Outside | None = None
    lows: StartRange = None


class LeastOutside(NamedTuple):
    """The least weight by which any plan is outside of its windows: of replicas, and of loads."""

    replicas: int
    loads: int


@dataclass(frozen=True)
class _Decided:
    """The (row, broker) pairs that a case requires and excludes, and how far outside windows plans may be."""

    allowed: Allowed | None
    on: frozenset[tuple[int, int]] = frozenset()
    off: frozenset[tuple[int, int]] = frozenset()


def lower_bound(certificate: Certificate) -> int:
    """The bound in bytes (or replicas), at least 0: no plan that the certificate covers moves less."""
    return _whole_bound(certificate, None if certificate.outside is None else certificate.outside.slack)


def least_outside(facts: BoundFacts, outside: Outside) -> LeastOutside:
    """How far outside every plan is at least: of counts; and of loads, among plans as close to counts as allowed."""
    free = replace(facts, costs=np.zeros_like(facts.costs), home_costs=np.zeros_like(facts.home_costs))
    racks, allowed = every_rack(facts), replace(outside.slack, loads=0, furthest=None)
    of_replicas, of_loads = [], []
    for each in outside.replicas:
        at_starts = allowed.beginning(each.lows)
        no_slack = replace(at_starts, replicas=at_starts.certain)
        of_replicas.append(at_starts.certain + _case_bound(free, each.case, racks, _Decided(no_slack)))
    for each in outside.loads:
        of_loads.append(_case_bound(free, each.case, racks, _Decided(allowed.beginning(each.lows))))
    return LeastOutside(min(of_replicas), min(of_loads))


def every_rack(facts: BoundFacts) -> tuple[int, ...]:
    """All racks' numbers."""
    return tuple(range(facts.least.shape[1]))


def _whole_bound(certificate: Certificate, allowed: Allowed | None) -> int:
    facts = certificate.facts
    start = _Decided(None if allowed is None else allowed.beginning(certificate.lows))
    proven = max(
        _case_bound(facts, certificate.prices, every_rack(facts), start),
        sum(_case_bound(facts, part.case, part.racks, start) for part in certificate.parts),
    )
    return min([proven, *(_whole_bound(other, allowed) for other in certificate.others)])


def prices_of_cases(case: Case) -> Iterator[Prices]:
    """The prices of all cases."""
    if isinstance(case, Prices):
        yield case
    else:
        yield from prices_of_cases(case.off)
        yield from prices_of_cases(case.on)


def changed(case: Case, change: Callable[[Prices], Prices]) -> Case:
    """The case with `change` applied to the prices of all its cases."""
    if isinstance(case, Prices):
        return change(case)
    return replace(case, off=changed(case.off, change), on=changed(case.on, change))


def none_priced(facts: BoundFacts) -> Prices:
    """Prices of 0: their bound is what the racks, the brokers and the replication factors force."""
    empty = np.zeros((3, 0), np.int64)
    return Prices(np.zeros((4, 0), np.int64), empty, (empty,) * len(facts.load_names))


def price_at_edges(prices: LongArray, windows: LongArray) -> LongArray:
    """The table (…, price, edge) of the prices (…) that aren't 0, with windows (2, …)."""
    indices = np.nonzero(prices)
    priced = prices[indices]
    return np.stack([*indices, priced, np.where(priced > 0, windows[0][indices], windows[1][indices])]).astype(np.int64)


def _case_bound(facts: BoundFacts, case: Case, racks: tuple[int, ...], decided: _Decided) -> int:
    """A lower bound, at least 0, on the cost of these racks' brokers with the decided pairs."""
    if isinstance(case, Prices):
        return max(0, _price_bound(facts, case, racks, decided))
    pair = frozenset({(case.row, case.broker)})
    return min(
        _case_bound(facts, case.off, racks, replace(decided, off=decided.off | pair)),
        _case_bound(facts, case.on, racks, replace(decided, on=decided.on | pair)),
    )


def _price_bound(facts: BoundFacts, prices: Prices, racks: tuple[int, ...], decided: _Decided) -> int:
    """The bound by these prices for these racks; huge if no choice fits the decided pairs."""
    is_decided = np.zeros(len(facts.factors), dtype=bool)
    is_decided[[row for row, _ in decided.on | decided.off]] = True
    free = np.flatnonzero(~is_decided)
    chunks = [free[at : at + _CHUNK] for at in range(0, len(free), _CHUNK)]
    in_racks = np.isin(facts.racks, racks)
    # Prices times edges, in Python's integers, because they may exceed 64 bits.
    edges = (table[-2:, in_racks[table[-3]]].tolist() for table in prices.tables)
    total = sum(price * edge for table in edges for price, edge in zip(*table, strict=True))
    if decided.allowed is not None:
        total -= decided.allowed.cost(prices.tables, prices.of_replicas, prices.of_loads)
    total += sum(sum(_cheapest(facts, _priced(facts, prices, rows), rows, racks).tolist()) for rows in chunks)
    if prices.starts:
        total -= _less_elsewhere(facts, prices)
    elif facts.together is not None and racks == every_rack(facts):
        total += _more_together(facts, prices, free[facts.together[free] >= 0])
    rows = np.flatnonzero(is_decided)
    costs = _priced(facts, prices, rows).astype(object)
    for pairs, cost in ((decided.on, -_NEVER_EVER), (decided.off, _NEVER_EVER)):
        for row, broker in pairs:
            costs[np.searchsorted(rows, row), broker] += cost
    total += sum(_cheapest(facts, costs, rows, racks).tolist()) + _NEVER_EVER * len(decided.on)
    return -(-total // prices.grain)


def _more_together(facts: BoundFacts, prices: Prices, rows: IntArray) -> int:
    """How much more these rows' parts of the bound are if one broker has a replica of all rows of a slot."""
    assert facts.together is not None
    slots, racks = np.unique(facts.together[rows], return_inverse=True)[1], every_rack(facts)
    costs, ranks = _priced(facts, prices, rows), facts.leader_ranks
    separate = _cheapest(facts, costs, rows, racks).astype(object)
    # Several replicas on brokers of lower rank are beyond 64 bits.
    costs = costs if ranks is None else costs.astype(object)
    # So cheap that a row's cheapest choice has it, unless the rack rule or `placement` forbid it there.
    discount = 2 * int(_NEVER) if costs.dtype != object else _NEVER_EVER << 40
    rises = np.zeros((len(facts.racks), int(slots.max(initial=-1)) + 1), dtype=object)
    for broker, of_slots in enumerate(rises):
        shifted = costs.copy()
        shifted[:, broker] -= discount
        if ranks is not None:
            shifted[(ranks < ranks[:, [broker]])[facts.topics[rows]]] += _NEVER_EVER
        np.add.at(of_slots, slots, _cheapest(facts, shifted, rows, racks) + discount - separate)
    # If no broker may have all rows, nothing is known of such plans.
    return sum(each for each in rises.min(axis=0).tolist() if each < int(_NEVER) // 4)


def _less_elsewhere(facts: BoundFacts, prices: Prices) -> int:
    """How much less the topics' parts of the bound are at the start that proves the least, for all brokers."""
    first = least = _topic_bounds(facts, prices, TopicStart(np.unique(facts.topics), prices.topic_replicas))
    for start in prices.starts:
        elsewhere = _topic_bounds(facts, prices, start)
        least = np.where(np.isin(np.arange(len(least)), start.topics), np.minimum(least, elsewhere), least)
    return sum((first - least).tolist())


def _topic_bounds(facts: BoundFacts, prices: Prices, start: TopicStart) -> LongArray:
    """(T,): the parts of a bound, in Python's integers, of the topics with these prices; of others, their edges'."""
    tables = (prices.topic_replicas, *(each.topic_replicas for each in prices.starts))
    # Topics whose partitions may not move have edges too.
    last = max(int(each.max(initial=-1)) for each in (facts.topics, *(table[0] for table in tables)))
    parts, cells = np.zeros(last + 1, dtype=object), start.topic_replicas
    np.add.at(parts, cells[0], cells[2].astype(object) * cells[3])
    at_start = replace(prices, topic_replicas=start.topic_replicas)
    free = np.flatnonzero(np.isin(facts.topics, start.topics))
    for rows in (free[at : at + _CHUNK] for at in range(0, len(free), _CHUNK)):
        costs = _cheapest(facts, _priced(facts, at_start, rows), rows, every_rack(facts))
        np.add.at(parts, facts.topics[rows], costs.astype(object))
    return parts


def _cheapest(facts: BoundFacts, costs: LongArray, rows: IntArray, racks: tuple[int, ...]) -> LongArray:
    """(m,): the sum of the costs (m, Bt) of the cheapest choices of each of these rows.

    Over all racks, a row has as many replicas as its replication factor. Over some racks, it has as many as they must
    hold, and more replicas of negative cost, up to as many as they may hold.
    """
    kinds, remaining = facts.kinds[rows], facts.factors[rows].astype(np.int64)
    # The cost that the racks force on each row, and the costs of its other possible choices.
    forced, choices = np.zeros(len(costs), dtype=costs.dtype), []
    never = _NEVER_EVER if costs.dtype == object else _NEVER
    for rack in racks:
        ascending = np.sort(costs[:, facts.racks == rack], axis=1)
        rank_index = np.arange(ascending.shape[1])
        must, may = facts.least[kinds, rack][:, None], facts.most[kinds, rack][:, None]
        forced += np.where(rank_index < must, ascending, 0).sum(axis=1)
        remaining -= np.minimum(must[:, 0], ascending.shape[1])
        choices.append(np.where((rank_index >= must) & (rank_index < may), ascending, never))
    spare = np.concatenate(choices, axis=1)
    if len(racks) < facts.least.shape[1]:
        return forced + np.minimum(spare, 0).sum(axis=1)
    spare.sort(axis=1)
    chosen = np.where(np.arange(spare.shape[1]) < remaining[:, None], spare, 0)
    return forced + chosen.sum(axis=1)


def _priced(facts: BoundFacts, prices: Prices, rows: IntArray) -> LongArray:
    """(m, Bt): the cost of a replica of each row on each broker, minus the prices there.

    Python's integers if 64 bits may be too few.
    """
    tables = zip(facts.loads, prices.loads, strict=True)
    largest = prices.grain * (_largest(facts.costs) + _largest(facts.home_costs)) + _largest(prices.replicas[-2:-1])
    largest += _largest(prices.topic_replicas[-2:-1])
    largest += sum(_largest(load) * _largest(table[-2:-1]) for load, table in tables)
    # No sum over a row's replicas may exceed 64 bits.
    number_type = np.int64 if largest * (1 + int(facts.factors.max(initial=0))) < int(_NEVER) else object
    topics, costs, home = facts.topics[rows], facts.costs[rows].astype(number_type), facts.home[rows]
    by_cell = np.zeros((int(facts.topics.max(initial=0)) + 1, len(facts.racks)), dtype=number_type)
    cells = prices.topic_replicas[:, prices.topic_replicas[0] < len(by_cell)]
    by_cell[cells[0], cells[1]] = cells[2]
    priced = prices.grain * costs[:, None] - by_cell[topics] - _broker_prices(prices.replicas, len(facts.racks))
    indices, slots = np.nonzero(home >= 0)
    priced[indices, home[indices, slots]] += prices.grain * (facts.home_costs[rows][indices, slots] - costs[indices])
    for load, table in zip(facts.loads, prices.loads, strict=True):
        priced -= load[rows, None].astype(number_type) * _broker_prices(table, len(facts.racks))
    if facts.forbidden is not None:
        # Dearer than anything else. A row needs no more replicas in a rack than it may have brokers there.
        is_forbidden = facts.forbidden[topics]
        is_forbidden[indices, home[indices, slots]] = False
        priced[is_forbidden] = _NEVER_EVER if number_type is object else _NEVER
    return priced


def _largest(values: LongArray) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def _broker_prices(table: LongArray, brokers: int) -> LongArray:
    priced = np.zeros(brokers, dtype=np.int64)
    priced[table[0]] = table[1]
    return priced

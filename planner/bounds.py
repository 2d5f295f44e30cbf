"""The least that any plan could move, from prices alone: a bound that needs no solver to be checked.

Every window gets a price a unit, every broker's bytes (or traffic) a price a byte. A partition then pays, for each
replica, what copying it costs less the prices where it lies; its cheapest choice of brokers, within the racks and the
replication factor, is found by sorting. The sum of those over all partitions, plus each price times the edge of its
window (the low one where the price is positive, else the high one), is never above what any plan within the windows
moves, whatever the prices are. Good prices make it tight: they are the node potentials of the optimum's flow.

Everything is an integer: prices are in parts of GRAIN of a byte, so nothing is lost to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.model import BoolArray, IntArray, LongArray

# Prices are in this part of a byte; coarser ones cost the bound up to a tenth of a per cent.
GRAIN = 256
# Rows priced at once: rows × brokers numbers are held.
_CHUNK = 20_000
# More than any choice costs, in 64 bits, and where they are too few.
_NEVER, _NEVER_EVER = np.int64(1) << np.int64(60), 1 << 200


@dataclass(frozen=True, eq=False)
class Facts:
    """What a bound is about: M partitions that may move, Bt target brokers, R racks, T topics, D kinds of bytes.

    measure            "bytes" or "replicas": what is counted
    broker_ids, racks  (Bt,) Kafka's id, and number of the rack, of each broker
    least, most        (F, R) replicas in each rack of a partition with a replication factor of F
    topics, factors    (M,) topic and replication factor of each partition
    costs              (M,) what entering a broker costs, in bytes or replicas
    home, home_costs   (M, W) brokers where a replica may stay (-1: none) and what that costs
    loads              (D, M) bytes, bytes/s in, that each replica brings
    load_names         the D windows' names in the YAML
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


@dataclass(frozen=True, eq=False)
class Prices:
    """A price and the window's edge for everything that has a price other than 0; prices in parts of GRAIN.

    topic_replicas (4, K): topic, broker, price, edge · replicas (3, K): broker, price, edge · loads: the same for each
    kind of bytes.
    """

    topic_replicas: LongArray
    replicas: LongArray
    loads: tuple[LongArray, ...]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Facts and prices: enough to work out the bound again."""

    facts: Facts
    prices: Prices


def least(certificate: Certificate) -> int:
    """The bound in bytes (or replicas): no plan within the windows moves less. Never negative."""
    facts, prices = certificate.facts, certificate.prices
    edges = sum(_at_edges(table) for table in (prices.topic_replicas, prices.replicas, *prices.loads))
    chunks = range(0, len(facts.factors), _CHUNK)
    total = edges + sum(_cheapest(facts, prices, slice(at, at + _CHUNK)) for at in chunks)
    return max(0, -(-total // GRAIN))


def none_priced(facts: Facts) -> Prices:
    """No prices at all: the bound of what the racks, the brokers and the replication factors force alone."""
    return Prices(np.zeros((4, 0), np.int64), np.zeros((3, 0), np.int64), tuple(_no_table() for _ in facts.load_names))


def at_edges(prices: LongArray, windows: LongArray) -> LongArray:
    """The table (…, price, edge) of the prices (…) that aren't 0, with windows (2, …)."""
    at = np.nonzero(prices)
    priced = prices[at]
    return np.stack([*at, priced, np.where(priced > 0, windows[0][at], windows[1][at])]).astype(np.int64)


def to_document(certificate: Certificate) -> dict[str, Any]:
    """Plain data, by the names of the dataclasses."""
    facts, prices = certificate.facts, certificate.prices
    names = ("broker_ids", "racks", "least", "most", "topics", "factors", "costs", "home", "home_costs")
    loads = zip(facts.load_names, facts.loads, prices.loads, strict=True)
    return {
        "measure": facts.measure,
        "grain": GRAIN,
        **{name: getattr(facts, name).tolist() for name in names},
        "loads": [{"window": name, "of": of.tolist(), "prices": table.T.tolist()} for name, of, table in loads],
        "prices": {"topic_replicas": prices.topic_replicas.T.tolist(), "replicas": prices.replicas.T.tolist()},
    }


def from_document(document: Mapping[str, Any]) -> Certificate:
    """The certificate of such data; ValueError or KeyError where it isn't one."""
    if document["grain"] != GRAIN or document["measure"] not in ("bytes", "replicas"):
        raise ValueError(f"grain {document['grain']!r}, measure {document['measure']!r}")
    rows, loads = len(document["factors"]), document["loads"]
    facts = Facts(
        measure=str(document["measure"]),
        **{name: _vector(document[name]) for name in ("broker_ids", "racks", "topics", "factors", "costs")},
        **{name: np.array(document[name], dtype=np.int64) for name in ("least", "most")},
        **{name: _rows(document[name], rows) for name in ("home", "home_costs")},
        loads=np.array([load["of"] for load in loads], dtype=np.int64).reshape(len(loads), rows),
        load_names=tuple(str(load["window"]) for load in loads),
    )
    tables = document["prices"]
    return Certificate(
        facts,
        Prices(
            _table(tables["topic_replicas"], 4),
            _table(tables["replicas"], 3),
            tuple(_table(load["prices"], 3) for load in loads),
        ),
    )


def _at_edges(table: LongArray) -> int:
    """Prices times edges, in Python's own integers: they may be beyond 64 bits."""
    return sum(price * edge for price, edge in zip(table[-2].tolist(), table[-1].tolist(), strict=True))


def _cheapest(facts: Facts, prices: Prices, rows: slice) -> int:
    """The cheapest choices of these rows, summed."""
    costs = _priced(facts, prices, rows)
    forced, spare, left = _by_rack(facts, costs, facts.factors[rows])
    spare.sort(axis=1)
    taken = np.where(np.arange(spare.shape[1]) < left[:, None], spare, 0)
    return sum((forced + taken.sum(axis=1)).tolist())


def _priced(facts: Facts, prices: Prices, rows: slice) -> LongArray:
    """(m, Bt): what a replica of each row costs on each broker, less the prices there.

    Python's integers where 64 bits may be too few.
    """
    number = np.int64 if _fits(facts, prices) else object
    topics, costs, home = facts.topics[rows], facts.costs[rows].astype(number), facts.home[rows]
    by_cell = np.zeros((int(facts.topics.max(initial=0)) + 1, len(facts.racks)), dtype=number)
    cells = prices.topic_replicas[:, prices.topic_replicas[0] < len(by_cell)]
    by_cell[cells[0], cells[1]] = cells[2]
    priced = GRAIN * costs[:, None] - by_cell[topics] - _by_broker(prices.replicas, len(facts.racks))
    at, slots = np.nonzero(home >= 0)
    priced[at, home[at, slots]] += GRAIN * (facts.home_costs[rows][at, slots] - costs[at])
    for load, table in zip(facts.loads, prices.loads, strict=True):
        priced -= load[rows, None].astype(number) * _by_broker(table, len(facts.racks))
    return priced


def _fits(facts: Facts, prices: Prices) -> bool:
    """True where no sum over a row's replicas leaves 64 bits."""
    tables = zip(facts.loads, prices.loads, strict=True)
    one = GRAIN * (_largest(facts.costs) + _largest(facts.home_costs)) + _largest(prices.replicas[-2:-1])
    one += _largest(prices.topic_replicas[-2:-1]) + sum(_largest(of) * _largest(table[-2:-1]) for of, table in tables)
    return one * (1 + int(facts.factors.max(initial=0))) < int(_NEVER)


def _largest(values: LongArray) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def _by_broker(table: LongArray, brokers: int) -> LongArray:
    priced = np.zeros(brokers, dtype=np.int64)
    priced[table[0]] = table[1]
    return priced


def _by_rack(facts: Facts, costs: LongArray, factors: IntArray) -> tuple[LongArray, LongArray, LongArray]:
    """What the racks force each row to pay (m,), the costs of what else it may choose (m, …), and of how many (m,)."""
    forced, left, spare = np.zeros(len(costs), dtype=costs.dtype), factors.astype(np.int64), []
    never = _NEVER_EVER if costs.dtype == object else _NEVER
    for rack in range(facts.least.shape[1]):
        ascending = np.sort(costs[:, facts.racks == rack], axis=1)
        at = np.arange(ascending.shape[1])
        must, may = facts.least[factors, rack][:, None], facts.most[factors, rack][:, None]
        forced += np.where(at < must, ascending, 0).sum(axis=1)
        left -= np.minimum(must[:, 0], ascending.shape[1])
        spare.append(np.where(_between(at, must, may), ascending, never))
    return forced, np.concatenate(spare, axis=1), left


def _between(at: IntArray, low: IntArray, high: IntArray) -> BoolArray:
    return (at >= low) & (at < high)


def _no_table() -> LongArray:
    return np.zeros((3, 0), dtype=np.int64)


def _vector(values: Sequence[int]) -> LongArray:
    return np.array(values, dtype=np.int64)


def _rows(values: Sequence[Sequence[int]], count: int) -> LongArray:
    return np.array(values, dtype=np.int64).reshape(count, -1 if count else 0)


def _table(rows: Sequence[Sequence[int]], columns: int) -> LongArray:
    return np.array(rows, dtype=np.int64).reshape(-1, columns).T

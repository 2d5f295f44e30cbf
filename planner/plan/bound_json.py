"""Writes and reads `bound.json`, the input of `lagrangian_bound`, and checks it by arithmetic, without a solver.

plan.json holds the SHA-256 of bound.json, so that neither can be exchanged alone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from msgspec import convert

from planner.model.cluster import PartitionKey
from planner.model.document_fields import Count
from planner.model.errors import StalePlanError
from planner.model.file_reading import digest, json_value
from planner.model.problem import BoolArray, LongArray
from planner.plan.document.comparison_types import ExcessSection, FurthestRow
from planner.plan.document.plan_types import Plan
from planner.scoring.window_excess import BROKER_PRICE, TOPIC_PRICE, Allowed, CountWindows, Loads
from planner.strategies import lagrangian_bound
from planner.strategies.lagrangian_bound import (
    FINEST,
    BoundFacts,
    Branch,
    Case,
    Certificate,
    Outside,
    Part,
    Prices,
    StartCase,
    StartRange,
    TopicStart,
    every_rack,
    prices_of_cases,
)

FILE = "bound.json"
# Replica lists by topic and partition, of the partitions that a plan changes or creates.
PlacedReplicas = Mapping[PartitionKey, Sequence[int]]


def to_document(certificate: Certificate) -> dict[str, Any]:
    """JSON values under the names of the dataclasses' fields; empty parts are left out."""
    facts, own_parts = certificate.facts, _own_document(certificate)
    grain, tables = own_parts["prices"].pop("grain"), own_parts["prices"].pop("loads")
    names = ["broker_ids", "racks", "least", "most", "topics", "factors", "costs", "home", "home_costs"]
    names += ["kinds"] if facts.forbidden is not None or (facts.kinds != facts.factors).any() else []
    loads = zip(facts.load_names, facts.loads.tolist(), tables, strict=True)
    return {
        "measure": facts.measure,
        "grain": grain,
        **{name: getattr(facts, name).tolist() for name in names},
        **({} if facts.forbidden is None else {"forbidden": facts.forbidden.astype(int).tolist()}),
        **{name: data.tolist() for name in ("together", "leader_ranks") if (data := getattr(facts, name)) is not None},
        "loads": [{"window": name, "of": data, "prices": table} for name, data, table in loads],
        **own_parts,
        **_not_empty(others=[_own_document(other) for other in certificate.others]),
        **_not_empty(outside=certificate.outside and _outside_document(certificate.outside)),
    }


def from_document(document: Mapping[str, Any]) -> Certificate:
    """The certificate that the JSON values describe; ValueError or KeyError if they describe none."""
    if document["measure"] not in ("bytes", "replicas"):
        raise ValueError(f"measure {document['measure']!r}")
    rows, loads = len(document["factors"]), document["loads"]
    facts = BoundFacts(
        measure=str(document["measure"]),
        **{name: _array(document[name]) for name in ("broker_ids", "factors", "costs")},
        **{name: _array(document[name], of=Count) for name in ("racks", "topics")},
        **{name: _array(document[name], of=list[int]) for name in ("least", "most")},
        **{name: _array(document[name], rows, -1 if rows else 0) for name in ("home", "home_costs")},
        loads=_array([load["of"] for load in loads], len(loads), rows),
        load_names=convert([load["window"] for load in loads], tuple[str, ...]),
        kinds=_array(document.get("kinds", document["factors"]), of=Count),
        forbidden=None,
    )
    slots = _array(document["together"], rows) if "together" in document else None
    ranks = _array(document["leader_ranks"], -1, len(facts.racks)) if "leader_ranks" in document else None
    facts = replace(facts, forbidden=_forbidden(document, facts), together=slots, leader_ranks=ranks)
    excess_json = document.get("outside", {})
    tables = {"loads": [load["prices"] for load in loads], "grain": document["grain"], **document["prices"]}
    others = tuple(
        Certificate(facts, _prices(facts, other["prices"]), _parts(facts, other.get("parts", ())), lows=_lows(other))
        for other in document.get("others", ())
    )
    parts, outside = _parts(facts, document.get("parts", ())), _outside(facts, excess_json) if excess_json else None
    certificate = Certificate(facts, _prices(facts, tables), parts, others, outside, _lows(document))
    if outside:
        _check_outside(certificate, outside)
    return certificate


def _check_outside(certificate: Certificate, outside: Outside) -> None:
    """ValueError if a part omits racks, a start of a window has no proof, or an edge isn't its window's."""
    facts, allowed = certificate.facts, outside.slack
    certificates = (certificate, *certificate.others)
    if any(each.prices.starts for each in certificates):
        raise ValueError("starts of topics' windows, for plans outside of them")
    if any(set(part.racks) != set(every_rack(facts)) for each in certificates for part in each.parts):
        raise ValueError("parts of some racks only")
    proofs = [
        StartCase(case, each.lows)
        for each in certificates
        for case in (each.prices, *(part.case for part in each.parts))
    ]
    for cases in (proofs, outside.replicas, outside.loads):
        if not allowed.covered([each.lows for each in cases]):
            raise ValueError("starts of a window that nothing is proven for")
        for each in cases:
            narrowed = allowed.beginning(each.lows)
            if not all(narrowed.bears(prices.tables) for prices in prices_of_cases(each.case)):
                raise ValueError("an edge that isn't that of its window")


def _forbidden(document: Mapping[str, Any], facts: BoundFacts) -> BoolArray | None:
    """True for brokers that may get no new replica of a topic; None if every topic may use every broker.

    ValueError if a partition may have more replicas in a rack than that rack has usable brokers.
    """
    if "forbidden" not in document:
        return None
    racks, most = facts.racks, facts.most[facts.kinds]
    forbidden = _array(document["forbidden"], -1, len(racks), of=Literal[0, 1]).astype(bool)
    usable = (~forbidden).astype(np.int64) @ (racks[:, None] == np.arange(most.shape[1])).astype(np.int64)
    usable = usable[facts.topics]
    # A replica that is already on a forbidden broker may stay.
    for column in facts.home.T:
        rows = np.flatnonzero((column >= 0) & forbidden[facts.topics, column])
        usable[rows, racks[column[rows]]] += 1
    if (most > usable).any():
        raise ValueError("a partition that may have more replicas in a rack than it may use brokers")
    return forbidden


def _not_empty(**values: Any) -> dict[str, Any]:
    """The values that aren't empty, 0 or None: others aren't written."""
    return {name: value for name, value in values.items() if value}


def _own_document(certificate: Certificate) -> dict[str, Any]:
    """What a certificate doesn't share with those for other starts."""
    parts = [{"racks": list(part.racks), "case": _case_document(part.case)} for part in certificate.parts]
    return {"prices": _case_document(certificate.prices), **_not_empty(parts=parts, lows=certificate.lows)}


def _lows(document: Mapping[str, Any]) -> StartRange:
    return convert(document["lows"], tuple[int, int]) if "lows" in document else None


def _case_document(case: Case) -> dict[str, Any]:
    if isinstance(case, Branch):
        off, on = _case_document(case.off), _case_document(case.on)
        return {"row": case.row, "broker": case.broker, "off": off, "on": on}
    starts = [
        {"topics": start.topics.tolist(), "topic_replicas": start.topic_replicas.T.tolist()} for start in case.starts
    ]
    return {
        "grain": case.grain,
        "topic_replicas": case.topic_replicas.T.tolist(),
        "replicas": case.replicas.T.tolist(),
        "loads": [table.T.tolist() for table in case.loads],
        **_not_empty(starts=starts, of_replicas=case.of_replicas, of_loads=case.of_loads),
    }


def _outside_document(outside: Outside) -> dict[str, Any]:
    allowed, furthest = outside.slack, outside.slack.furthest
    return {
        "replicas": allowed.replicas,
        "loads": allowed.loads,
        "furthest": [] if furthest is None else furthest.tolist(),
        "topic_windows": _windows_document(allowed.topics),
        "broker_windows": _windows_document(allowed.brokers),
        "load_windows": allowed.windows.bounds.tolist(),
        "scales": allowed.windows.scales.tolist(),
        "least": {
            name: [{**_case_document(each.case), **_not_empty(lows=each.lows)} for each in getattr(outside, name)]
            for name in ("replicas", "loads")
        },
        "topic_names": list(outside.topic_names),
        "partitions": outside.partitions.tolist(),
    }


def _windows_document(windows: CountWindows) -> dict[str, Any]:
    names = ("bounds", "fixed", "movable", "open", "first", "last")
    return {**{name: getattr(windows, name).tolist() for name in names}, "spread": windows.spread}


def _outside(facts: BoundFacts, document: Mapping[str, Any]) -> Outside:
    racks, least, brokers, kinds = every_rack(facts), document["least"], len(facts.racks), len(facts.load_names)
    allowed = Allowed(
        _windows(document["topic_windows"], TOPIC_PRICE, brokers),
        _windows(document["broker_windows"], BROKER_PRICE, brokers),
        Loads(_array(document["load_windows"], kinds, 2, brokers), _array(document["scales"])),
        convert(document["replicas"], int),
        convert(document["loads"], int),
        _array(document["furthest"]),
    )
    of_replicas, of_loads = (
        tuple(StartCase(_case(facts, case, racks), _lows(case)) for case in least[name])
        for name in ("replicas", "loads")
    )
    for kind, cases in (("replica", of_replicas), ("load", of_loads)):
        if any(
            getattr(prices, f"of_{kind}s") != prices.grain for each in cases for prices in prices_of_cases(each.case)
        ):
            raise ValueError(f"a {kind} outside has another price than 1")
    names = convert(document["topic_names"], tuple[str, ...])
    return Outside(allowed, of_replicas, of_loads, names, _array(document["partitions"]))


def _windows(document: Mapping[str, Any], price: int, brokers: int) -> CountWindows:
    movable = _array(document["movable"])
    return CountWindows(
        bounds=_array(document["bounds"], 2, len(movable), brokers),
        fixed=_array(document["fixed"], len(movable), brokers),
        movable=movable,
        price=price,
        open=_array(document["open"], of=bool).astype(bool),
        first=_array(document["first"]),
        last=_array(document["last"]),
        spread=convert(document["spread"], int),
    )


def _parts(facts: BoundFacts, documents: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    """The parts; ValueError if two of them share a rack."""
    racks = [rack for part in documents for rack in convert(part["racks"], list[int])]
    if len(set(racks)) < len(racks) or not set(racks) <= set(range(facts.least.shape[1])):
        raise ValueError(f"parts of racks {racks!r}")
    return tuple(Part(tuple(part["racks"]), _case(facts, part["case"], tuple(part["racks"]))) for part in documents)


def _case(facts: BoundFacts, document: Mapping[str, Any], racks: tuple[int, ...]) -> Case:
    if "row" not in document:
        prices = _prices(facts, document)
        if prices.starts:
            raise ValueError("starts of topics' windows in a case")
        return prices
    row, broker = convert((document["row"], document["broker"]), tuple[int, int])
    if not (0 <= row < len(facts.factors) and 0 <= broker < len(facts.racks) and facts.racks[broker] in racks):
        raise ValueError(f"row {row}, broker {broker}")
    return Branch(row, broker, _case(facts, document["off"], racks), _case(facts, document["on"], racks))


def _prices(facts: BoundFacts, document: Mapping[str, Any]) -> Prices:
    grain, loads = convert(document["grain"], int), tuple(_table(load, 3) for load in document["loads"])
    if not 1 <= grain <= FINEST or len(loads) != len(facts.load_names):
        raise ValueError(f"grain {grain!r}, prices of {len(loads)} loads")
    excess = convert((document.get("of_replicas", 0), document.get("of_loads", 0)), tuple[int, int])
    if min(excess) < 0:
        raise ValueError(f"prices {excess!r} of what is outside")
    starts = tuple(
        TopicStart(_array(start["topics"], of=Count), _table(start["topic_replicas"], 4))
        for start in document.get("starts", ())
    )
    return Prices(_table(document["topic_replicas"], 4), _table(document["replicas"], 3), loads, grain, *excess, starts)


def _array(values: Sequence[Any], *shape: int, of: Any = int) -> LongArray:
    """An array of this shape, by default as long as the values; ValueError if one isn't of the type `of`."""
    for _ in range(max(len(shape), 1)):
        of = list[of]
    array = np.array(convert(values, of), dtype=np.int64)
    return array.reshape(shape) if shape else array


def _table(rows: Sequence[Sequence[int]], columns: int) -> LongArray:
    """The table of these rows, each of which begins with the numbers of its window, then price and edge.

    ValueError if two are of the same window, of which only one price would count; a negative number would hide that.
    """
    table = _array(rows, -1, columns).T
    if (table[:-2] < 0).any():
        raise ValueError("a price of a window with a negative number")
    if np.unique(table[:-2], axis=1).shape[1] < table.shape[1]:
        raise ValueError("two prices of one window")
    return table


@dataclass(frozen=True)
class CheckedBound:
    """A recomputed bound, in bytes or replicas, and the number of partitions and prices that it is computed from."""

    measure: str
    least: int
    moved: int
    partitions: int
    prices: int


def excess(certificate: Certificate | None) -> ExcessSection | None:
    """The `bound.excess` of plan.json; None if the bound is for plans within their windows, or for all plans."""
    if certificate is None or certificate.outside is None:
        return None
    facts, allowed = certificate.facts, certificate.outside.slack
    least = lagrangian_bound.least_outside(facts, certificate.outside)
    furthest = [] if allowed.furthest is None else allowed.furthest.tolist()
    return ExcessSection(
        replicas=allowed.replicas,
        least_replicas=least.replicas,
        loads=allowed.loads,
        least_loads=least.loads,
        furthest=tuple(
            FurthestRow(window=name, value=value)
            for name, value in zip(facts.load_names, furthest, strict=True)
            if value
        ),
    )


def encoded(certificate: Certificate) -> bytes:
    """The file's bytes: one line for each key, because most values are long lists of numbers."""
    document = to_document(certificate)
    lines = [f'"{key}":{json.dumps(document[key], sort_keys=True, separators=(",", ":"))}' for key in sorted(document)]
    return ("{" + ",\n".join(lines) + "}\n").encode()


def check(plan: Plan, file: bytes, label: str) -> CheckedBound:
    """Computes the bound again; StalePlanError if the file isn't the plan's, or gives another bound."""
    bound = plan.bound
    if digest(file) != bound.sha256:
        raise StalePlanError(f"{label}: not the file that the plan was made with: its SHA-256 isn't bound.sha256")
    certificate = from_document(json_value(file))
    in_bytes = certificate.facts.measure == "bytes"
    worked_out = lagrangian_bound.lower_bound(certificate)
    _check_excess(plan, certificate, label)
    claimed = bound.least_bytes_moved if in_bytes else bound.least_replicas_moved
    if worked_out != claimed:
        raise StalePlanError(f"{label}: the prices come to a bound of {worked_out}, the plan says {claimed}")
    # What the plan moves is counted again, from its own list of partitions.
    moved = sum(len(row.added) * (row.size_bytes if in_bytes else 1) for row in plan.partitions)
    if moved < worked_out:
        raise StalePlanError(
            f"{label}: the prices say that no plan moves fewer than {worked_out}, this one moves {moved}"
        )
    certificates = (certificate, *certificate.others)
    cases = [
        each for proof in certificates for part in proof.parts for each in lagrangian_bound.prices_of_cases(part.case)
    ]
    prices = (*(each.prices for each in certificates), *cases)
    tables = [table for each in prices for table in (*each.tables, *(start.topic_replicas for start in each.starts))]
    return CheckedBound(
        measure=certificate.facts.measure,
        least=worked_out,
        moved=moved,
        partitions=len(certificate.facts.factors),
        prices=sum(table.shape[1] for table in tables),
    )


def _check_excess(plan: Plan, certificate: Certificate, label: str) -> None:
    """StalePlanError if the bound doesn't cover the plan, or if the plan states another excess."""
    proven_excess, plan_excess = excess(certificate), plan.bound.excess
    if proven_excess != plan_excess:
        raise StalePlanError(f"{label}: the prices are for plans with another excess than bound.excess says")
    if certificate.outside is None:
        return
    outside = certificate.outside
    reached = outside.slack.reached(*_tally(plan.replica_lists, certificate.facts, outside, label))
    if not outside.slack.holds(reached):
        raise StalePlanError(
            f"{label}: the plan is further outside of its windows than the plans that the bound is for: by a weight of "
            f"{reached.replicas} for replicas and {reached.loads} bytes of loads, allowed: {outside.slack.replicas} "
            f"and {outside.slack.loads}"
        )


def covers(certificate: Certificate, lists: PlacedReplicas) -> bool:
    """True if the bound covers plans that are as far outside of their windows as these replica lists.

    A bound for plans within their windows doesn't contain the windows: then the result is True.
    """
    outside = certificate.outside
    if outside is None:
        return True
    return outside.slack.holds(outside.slack.reached(*_tally(lists, certificate.facts, outside, FILE)))


def _tally(lists: PlacedReplicas, facts: BoundFacts, outside: Outside, label: str) -> tuple[LongArray, LongArray]:
    """The replicas (T, Bt) and loads (D, Bt) of the partitions that the bound covers, from a plan's replica lists."""
    column_of = {broker: column for column, broker in enumerate(facts.broker_ids.tolist())}
    cells = np.zeros((len(outside.slack.topics.movable), len(column_of)), dtype=np.int64)
    load = np.zeros((len(facts.loads), len(column_of)), dtype=np.int64)
    for row, (topic, number) in enumerate(zip(facts.topics.tolist(), outside.partitions.tolist(), strict=True)):
        key = outside.topic_names[topic], number
        home = [column for column in facts.home[row].tolist() if column >= 0]
        brokers = [column_of[broker] for broker in lists[key]] if key in lists else home
        if len(brokers) != facts.factors[row]:
            raise StalePlanError(
                f"{label}: partition {number} of topic {key[0]} has {len(brokers)} replicas in the plan"
            )
        cells[topic, brokers] += 1
        load[:, brokers] += facts.loads[:, row, None]
    return cells, load

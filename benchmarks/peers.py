"""Published figures of other planners on the same clusters, read from a table; these planners aren't run here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from benchmarks.table import UNKNOWN, Entries, Figures, gigabytes, head, ratio, row

# The published figures are for the clusters that this seed makes.
SEED = "public"
_GIGABYTE = 10**9
# A published plan is compared if its replicas are as even as ours and few of them are above their topics' ceilings.
_REPLICA_SPREAD, _OVER_CEILING_PER_REPLICA = 1, 0.01

_COLUMNS = (
    "case",
    "peer",
    "version",
    "GB moved",
    "× ours",
    "replicas moved",
    "spread: replicas / leaders",
    "above topics' ceilings",
    "bytes max ÷ mean",
    "s",
)


@dataclass(frozen=True)
class Peer:
    """A published plan; None if a figure wasn't published. `topic_replicas_over_ceiling` as in `MeasuredPlan`.

    `rounding_bytes` is the unit to which the bytes moved were rounded, so the true number is within half of it;
    `only_ceilings`: even if no replica is above its topic's ceiling, topics may be uneven below the ceiling.
    """

    name: str
    version: str | None
    replicas_moved: int | None
    bytes_moved: int
    rounding_bytes: int
    replica_spread: int
    leader_spread: int
    topic_replicas_over_ceiling: int | None
    size_max_over_mean: float | None
    seconds: float
    only_ceilings: bool = False


def peers(case: str) -> tuple[Peer, ...]:
    """The published plans of a case that keep the replication factors, the brokers and the racks."""
    table = _table()
    return tuple(_peer(dict(zip(table["columns"], row, strict=True))) for row in table["cases"][case]["peers"])


def optimum_bytes(case: str) -> int:
    """The published minimum bytes for even replicas, leaders and topics, to the gigabyte."""
    return int(_table()["cases"][case]["optimum"]) * _GIGABYTE


def best(case: str, replicas: int) -> Peer | None:
    """The published plan that moves the fewest bytes, of the plans about as even as ours; `replicas` is the total.

    About as even: a replica spread of at most 1, and at most 1 % of the replicas above their topic's ceiling.
    """
    even_plans = [peer for peer in peers(case) if _is_even(peer, replicas)]
    return min(even_plans, key=lambda peer: peer.bytes_moved, default=None)


def candidates_per_second(case: str) -> float | None:
    """Candidates per second on one core of Astraea, the only peer that tries candidates; None if not measured."""
    speed = _table()["astraea_candidates_per_second"].get(case)
    return None if speed is None else float(speed)


def reported_minutes() -> tuple[int, int]:
    """The minutes, from and to, that users of Cruise Control report for a plan of the scale curve's largest cluster."""
    reported = _table()["cruise_control_reported"]
    return int(reported["fast_minutes"]), int(reported["regular_minutes"])


def entries(bytes_by_case: dict[str, int]) -> Entries:
    """Every published plan of the cases in `bytes_by_case`, compared with the bytes that our plan moves."""
    yield from ("## Published plans", "", *head(_COLUMNS))
    for case, bytes_moved in bytes_by_case.items():
        for peer in peers(case):
            yield _figures(case, peer, bytes_moved)
            yield row(_cells(case, peer, bytes_moved))


def _figures(case: str, peer: Peer, our_bytes: int) -> Figures:
    return Figures(
        "peers", {"case": case, "peer": peer.name, "bytes_moved": peer.bytes_moved, "our_bytes_moved": our_bytes}
    )


def _cells(case: str, peer: Peer, our_bytes: int) -> tuple[str, ...]:
    return (
        case,
        peer.name,
        peer.version or UNKNOWN,
        gigabytes(peer.bytes_moved).removesuffix(".000"),
        ratio(peer.bytes_moved, our_bytes),
        count(peer.replicas_moved),
        f"{peer.replica_spread:,} / {peer.leader_spread:,}",
        count(peer.topic_replicas_over_ceiling),
        UNKNOWN if peer.size_max_over_mean is None else f"{peer.size_max_over_mean:.3f}",
        f"{peer.seconds:g}",
    )


def count(number: int | None) -> str:
    """A count with thousands separators, or unknown."""
    return UNKNOWN if number is None else f"{number:,}"


def _is_even(peer: Peer, replicas: int) -> bool:
    over = peer.topic_replicas_over_ceiling or 0
    return peer.replica_spread <= _REPLICA_SPREAD and over <= replicas * _OVER_CEILING_PER_REPLICA


def _peer(row: dict[str, Any]) -> Peer:
    versions = _table()["versions"]
    return Peer(
        version=next((str(versions[tool]) for tool in versions if row["name"].startswith(tool)), None),
        bytes_moved=row.pop("gigabytes_moved") * _GIGABYTE,
        rounding_bytes=row.pop("rounded_to_gigabytes") * _GIGABYTE,
        only_ceilings=row["name"] in _table()["only_ceilings"],
        **row,
    )


@cache
def _table() -> dict[str, Any]:
    return dict(yaml.safe_load(Path(__file__).with_name("peers.yaml").read_text(encoding="utf-8")))

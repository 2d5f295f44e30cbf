"""What other planners moved on the same clusters, as published: read from a table, never run here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from planner.resources import PACKAGE

# The published figures are those of the clusters that this seed makes.
SEED = "public"
_GIGABYTE = 10**9
# A published plan is compared where its replicas are as even as ours and few of them clump within topics.
_REPLICA_SPREAD, _OVER_CEILING_PER_REPLICA = 1, 0.01


@dataclass(frozen=True)
class Peer:
    """A published plan; None where a figure wasn't published. `topic_replicas_over_ceiling` as in `Outcome`."""

    name: str
    replicas_moved: int | None
    bytes_moved: int
    replica_spread: int
    leader_spread: int
    topic_replicas_over_ceiling: int | None
    size_max_over_mean: float | None
    seconds: float


def peers(case: str) -> tuple[Peer, ...]:
    """The published plans of a case that keep the replication factors, the brokers and the racks."""
    table = _table()
    return tuple(_peer(dict(zip(table["columns"], row, strict=True))) for row in table["cases"][case]["peers"])


def optimum_bytes(case: str) -> int:
    """The published least bytes for even replicas, leaders and topics; to the gigabyte."""
    return int(_table()["cases"][case]["optimum"]) * _GIGABYTE


def best(case: str, replicas: int) -> Peer | None:
    """The published plan that moves the fewest bytes of those about as even as ours, of `replicas` in all.

    About as even: a replica spread of at most 1, and at most 1 % of the replicas above their topic's ceiling.
    """
    even = [peer for peer in peers(case) if _is_even(peer, replicas)]
    return min(even, key=lambda peer: peer.bytes_moved, default=None)


def _is_even(peer: Peer, replicas: int) -> bool:
    over = peer.topic_replicas_over_ceiling or 0
    return peer.replica_spread <= _REPLICA_SPREAD and over <= replicas * _OVER_CEILING_PER_REPLICA


def _peer(row: dict[str, Any]) -> Peer:
    return Peer(bytes_moved=row.pop("gigabytes_moved") * _GIGABYTE, **row)


@cache
def _table() -> dict[str, Any]:
    return dict(yaml.safe_load((PACKAGE / "bench_peers.yaml").read_text(encoding="utf-8")))

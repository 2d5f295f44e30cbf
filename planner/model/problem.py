"""A spec as flat arrays, for everything that is computed thousands of times. Also sums and hashes of whole numbers,
which are the same on every machine and in any order.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.balance import Balance
from planner.model.cluster import PartitionKey
from planner.model.document_fields import LEADERS, ApartBy
from planner.model.spec import AIMS, Budget, Rebalance, Survive

# Large arrays of indices and counts are int32 to save memory; bytes are int64. The types don't distinguish them.
IntArray = NDArray[np.integer[Any]]
LongArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]

# The cap of a broker without a cap: more replicas or leaders than any broker has.
UNCAPPED = 1 << 30
# Ranks in `leader_ranks` from here on: the broker is to be demoted, and `apart` doesn't let the broker lead the topic.
DEMOTED, NEVER_LEADS = 9_999, 10_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A spec as flat arrays: B brokers (today's and the target's, ascending by id), T topics, P partitions.

    Brokers, racks and topics are indices everywhere; -1 means none. Partitions are sorted by (topic, id).
    """

    broker_ids: IntArray  # (B,) Kafka's ids
    broker_racks: IntArray  # (B,) rack index after the change, -1 without a rack
    rack_names: tuple[str, ...]
    targets: BoolArray  # (B,) True where the broker may hold replicas after the change
    topic_names: tuple[str, ...]
    topic_of: IntArray  # (P,) topic index
    partition_ids: IntArray  # (P,) Kafka's partition ids
    # (P, R) today's replicas, preferred leader first, padded with -1; all -1 for a partition to be made
    replicas: IntArray
    leaders: IntArray  # (P,) today's actual leader, -1 without one
    replacements: IntArray  # (B,) the broker that takes over all of this broker's replicas, -1 without one
    size_bytes: LongArray  # (P,) bytes of one replica
    replication_factors: IntArray  # (P,) wanted number of replicas
    min_insync: IntArray  # (P,) the min.insync.replicas in force for the topic
    movable: BoolArray  # (P,) False where the partition stays as it is, because of the topic filter or without a leader
    forced: BoolArray  # (P,) True where a change doesn't allow the partition to stay as it is
    bytes_in_per_sec: LongArray  # (P,) what producers write to the leader
    bytes_out_per_sec: LongArray  # (P,) what consumers read
    # (B,) weights of the shares of replicas and bytes: capacities, or 1 each if not all are stated
    disk_bytes: LongArray
    network_bytes_per_sec: LongArray  # (B,) the same for leaders and traffic
    disk_limit_bytes: LongArray  # (B,) the most bytes that a broker may hold after the change, -1 without a limit
    rack_aware: bool
    rebalance: Rebalance
    balance: Balance
    apart: IntArray  # (G, T) the side of each topic in each group of `apart`, -1 for none
    # (G) what the sides of a group don't share: brokers or racks, for all replicas or for leaders
    apart_by: tuple[ApartBy, ...]
    sizes_known: bool = True
    racks_as_today: bool = False  # True if a partition that breaks the rack rule today may stay as uneven as it is
    budget: Budget = field(default_factory=Budget)
    aims: tuple[str, ...] = AIMS
    scenario_names: tuple[str, ...] = ()  # (G + H) the names of `sweep.scenarios`, then of the busiest hours
    # (G, P) each scenario's factor for a partition's bytes and traffic, in millionths; None without any
    scenario_ppm: LongArray | None = None
    # (H, 2, P) bytes/s in and out of a partition in each of the busiest hours; None without any
    scenario_hours: LongArray | None = None
    # (2, P, 168) bytes/s in and out of a partition in each hour of the week, for judging candidates; None if not known
    week: LongArray | None = None
    network_limit: LongArray | None = None  # (B,) each broker's `capacity.network`, -1 if not stated; only with `week`
    # (P, M + 1) bytes of one replica now and in each coming month; None if growth or all brokers' disks are unknown
    sizes_ahead: LongArray | None = None
    # (K,) the millionths of all reads that consumers of each rack fetch from the nearest replica (KIP-392), for `week`
    # only; None: all reads are from leaders
    read_in_racks: LongArray | None = None
    survive: Survive = "none"  # what may fail without a partition going offline (`resilience.survive`)
    # (P,) True where a change has to wait because the budget doesn't pay for it; None: no change waits
    deferred: BoolArray | None = None
    # (B,) True for brokers that hold replicas but are in no ISR, so can't be elected; None: no broker
    out_of_sync: BoolArray | None = None
    # (T, B) True where `placement` lets a topic have replicas on a broker; None: no such rules
    allowed: BoolArray | None = None
    # (B,) True for brokers that get no new replica and may keep today's; None: no broker
    cordoned: BoolArray | None = None
    # (T, B) a replica of the lowest rank leads a partition. Ranks follow `leader_racks`; brokers to be demoted, and
    # those that `apart` doesn't let lead, rank highest; None: no such rules
    leader_ranks: IntArray | None = None
    # (2, B) the most replicas and the most leaders that each broker may have, UNCAPPED if it has no cap; None: no
    # broker has caps
    caps: LongArray | None = None
    # (P,) the slot of `together` that a partition is in, -1 for none: one broker should be preferred leader of all
    # partitions of a slot; None: no groups
    together: IntArray | None = None

    @property
    def rows(self) -> int:
        """Number of partitions."""
        return len(self.topic_of)

    @property
    def partition_keys(self) -> list[PartitionKey]:
        """(P,): the topic and the partition number of each row."""
        topics = (self.topic_names[topic] for topic in self.topic_of.tolist())
        return list(zip(topics, self.partition_ids.tolist(), strict=True))

    @property
    def row_of(self) -> dict[PartitionKey, int]:
        """The row of each partition, by topic and number."""
        return {key: row for row, key in enumerate(self.partition_keys)}

    @property
    def lifts_leader_caps(self) -> bool:
        """True if a broker that stays is in no ISR: until it is back, others lead in its place, whatever their caps."""
        return self.out_of_sync is not None and bool((self.out_of_sync & self.targets).any())

    @property
    def waits(self) -> BoolArray:
        """(P,): `deferred`, or all False if it is None."""
        return np.zeros(self.rows, dtype=bool) if self.deferred is None else self.deferred

    @property
    def is_new(self) -> BoolArray:
        """(P,): True for partitions to be made. Their replicas aren't copied and their leaders aren't elected."""
        return self.replicas[:, 0] < 0

    @property
    def width(self) -> int:
        """Columns of an assignment: the most replicas that any partition has or will have."""
        return max(self.replicas.shape[1], int(self.replication_factors.max(initial=1)))

    @property
    def may_lead_anew(self) -> BoolArray:
        """(P,): True where the plan may change the leader, by replica order or by an election."""
        return self.movable & (self.forced | (not self.forced_only) | may_be_reordered(self))

    @property
    def is_led(self) -> BoolArray:
        """(P,): True where there is a leader, today or after the plan."""
        return self.may_lead_anew | (self.leaders >= 0)

    @property
    def copied_from(self) -> IntArray:
        """(P,): the broker that new replicas are copied from: today's leader, or without one the preferred leader."""
        return np.where(self.leaders >= 0, self.leaders, self.replicas[:, 0])

    @property
    def forced_only(self) -> bool:
        """True if only forced partitions are moved, reordered or elected: `rebalance` is none or racks."""
        return self.rebalance in ("none", "racks")

    @property
    def slot_of(self) -> IntArray:
        """(P,): `together`, or -1 for all without groups."""
        return np.full(self.rows, -1, dtype=np.int32) if self.together is None else self.together

    @property
    def racks_matter(self) -> bool:
        """True if the rack rule applies: it is enforced and every target broker has a rack."""
        return self.rack_aware and bool((self.broker_racks[self.targets] >= 0).all())

    def ranks_lost(self, side: IntArray, elsewhere: BoolArray) -> LongArray:
        """(N,): by how many ranks the best broker of a partition's side is behind the best of all, over all partitions.

        `side` (T,) is each topic's side, -1: none. `elsewhere` (sides, N, Bt): the target brokers on another side.
        """
        lost = np.zeros(elsewhere.shape[1], dtype=np.int64)
        if self.leader_ranks is None:
            return lost
        ranks = self.leader_ranks[:, self.targets].astype(np.int64)
        if self.allowed_targets is not None:
            ranks = np.where(self.allowed_targets, ranks, NEVER_LEADS)
        count = np.bincount(self.topic_of, minlength=len(side))
        kinds, of_topic = np.unique(np.column_stack([side, ranks]), axis=0, return_inverse=True)
        for (own_side, *rank), partitions in zip(kinds, np.bincount(of_topic.reshape(-1), weights=count), strict=True):
            if own_side >= 0:
                best = np.where(elsewhere[own_side], NEVER_LEADS, rank).min(axis=1)
                lost += int(partitions) * (best - min(rank))
        return lost

    def not_shared(self, group: int) -> IntArray:
        """(B,): the index of each broker, or of its rack, whichever the sides of this group of `apart` don't share."""
        brokers = np.arange(len(self.broker_ids), dtype=np.int32)
        if self.apart_by[group].startswith("broker"):
            return brokers
        return np.where(self.broker_racks >= 0, self.broker_racks, len(self.rack_names) + brokers)

    @property
    def allowed_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers that each topic may use; None without `placement` rules."""
        return None if self.allowed is None else self.allowed[:, self.targets]

    @property
    def open_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers that may get new replicas of each topic; None if all may."""
        if self.cordoned is None:
            return self.allowed_targets
        may_come = ~self.cordoned[self.targets] & np.ones((len(self.topic_names), 1), dtype=bool)
        return may_come if self.allowed is None else may_come & self.allowed[:, self.targets]

    @property
    def leading_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers of the lowest rank for each topic, which should lead it; None if all may lead."""
        if self.leader_ranks is None:
            return self.allowed_targets
        ranks = self.leader_ranks[:, self.targets]
        if self.allowed is not None:
            ranks = np.where(self.allowed[:, self.targets], ranks, np.iinfo(ranks.dtype).max)
        lowest: BoolArray = ranks == ranks.min(axis=1, keepdims=True)
        return lowest


def sums_at(shape: int | tuple[int, ...], places: Any, values: Any = 1) -> LongArray:
    """(shape): zeros, with each value added at its place; a place may repeat. Exact, unlike `np.bincount` with weights,
    which adds floats.
    """
    sums: LongArray = np.zeros(shape, dtype=np.int64)
    np.add.at(sums, places, values)
    return sums


# Constants of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def effective_min_insync(least: IntArray, replicas: LongArray) -> LongArray:
    """The replicas that must be in sync for acks=all, by `min.insync.replicas` and the number of replicas assigned.

    While a partition is reassigned, its old and new replicas are all assigned. Before Kafka 3.7, the setting counts
    even if it is larger. Source: `kafka.cluster.Partition.effectiveMinIsr`, KAFKA-15583.
    """
    return np.minimum(least, replicas)


def hash64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function, element by element, modulo 2^64."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def draw_numbers(seeds: NDArray[np.uint64], count: int, bound: int) -> IntArray:
    """(C, count): numbers in 0..bound-1. Each is a hash of one of the `seeds` (C,) and a counter, instead of the next
    number of a stream, so that thousands are drawn at once and none depends on the others.
    """
    counters = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN_GAMMA
    hashes = hash64(hash64(seeds)[:, None] + counters)
    # The hash's high 32 bits, scaled to the bound without a division. Even enough for any number of brokers.
    return ((hashes >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int32)


def like_brokers(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of interchangeable target brokers, by position: both hold and lead nothing, replace no other broker, and
    have the same rack, capacities and rules.
    """
    capacities = [problem.broker_racks, problem.disk_bytes, problem.network_bytes_per_sec, problem.disk_limit_bytes]
    rules = [problem.network_limit, problem.cordoned, problem.caps, problem.allowed, problem.leader_ranks]
    facts = np.concatenate([np.atleast_2d(each) for each in (*capacities, *rules) if each is not None])
    in_use = {*problem.replicas.ravel().tolist(), *problem.replacements.tolist(), *problem.leaders.tolist()}
    position_of, pairs = dict[tuple[int, ...], int](), []
    for position, broker in enumerate(np.flatnonzero(problem.targets).tolist()):
        if broker not in in_use:
            key = tuple(facts[:, broker].tolist())
            if key in position_of:
                pairs.append((position_of[key], position))
            position_of[key] = position
    return pairs


def misplaced(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions with one of these replicas (P, W) on a broker that `placement` doesn't let their topic use, or
    without a replica that may lead.
    """
    outside = leaderless(problem, replicas)
    if problem.allowed is None:
        return outside
    indices = replicas.clip(0, len(problem.broker_ids) - 1)
    elsewhere: BoolArray = ((replicas >= 0) & ~problem.allowed[problem.topic_of[:, None], indices]).any(axis=1)
    return outside | elsewhere


def leaderless(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions of whose replicas (P, W) `apart` lets none lead."""
    if not any(by.endswith(LEADERS) for by in problem.apart_by):
        return np.zeros(problem.rows, dtype=bool)
    return without_leader(problem, replicas, NEVER_LEADS)


def without_leader(problem: Problem, replicas: IntArray, rank: int) -> BoolArray:
    """(P,): partitions with replicas (P, W), all of this rank or a higher one as leaders."""
    if problem.leader_ranks is None:
        return np.zeros(problem.rows, dtype=bool)
    ranks = replica_ranks(problem, problem.leader_ranks, replicas, np.arange(problem.rows))
    lacks_leader: BoolArray = (ranks.min(axis=1) >= rank) & (replicas[:, 0] >= 0)
    return lacks_leader


def replica_ranks(problem: Problem, ranks: IntArray, replicas: IntArray, rows: IntArray) -> IntArray:
    """(n, W): the rank of each replica of these rows' partitions as a leader; the type's largest number for none."""
    indices = replicas.clip(0, len(problem.broker_ids) - 1)
    is_replica = (replicas >= 0) & (replicas < len(problem.broker_ids))
    return np.where(is_replica, ranks[problem.topic_of[rows][:, None], indices], np.iinfo(ranks.dtype).max)


def may_lead(problem: Problem, assignment: IntArray, rows: IntArray) -> BoolArray:
    """(n, W): the replicas of these rows (n,) that should lead: those of lowest rank, or all without `leader_ranks`."""
    is_replica: BoolArray = assignment[rows] >= 0
    if problem.leader_ranks is None:
        return is_replica
    ranks = replica_ranks(problem, problem.leader_ranks, assignment[rows], rows)
    return is_replica & (ranks == ranks.min(axis=1, keepdims=True))


def may_be_elected(problem: Problem, assignment: IntArray, rows: IntArray) -> BoolArray:
    """(n, W): as `may_lead`, of the replicas on brokers that aren't out of sync, where one of these may lead."""
    able = may_lead(problem, assignment, rows)
    if problem.out_of_sync is None:
        return able
    live = np.where(np.append(problem.out_of_sync, True)[assignment], -1, assignment)
    electable = may_lead(problem, live, rows)
    if problem.leader_ranks is not None:
        electable &= replica_ranks(problem, problem.leader_ranks, live[rows], rows) < NEVER_LEADS
    return np.where(electable.any(axis=1, keepdims=True), electable, able)


def may_be_reordered(problem: Problem) -> BoolArray:
    """(P,): partitions that rules on leaders allow to reorder or elect even if nothing else forces it. Their preferred
    or current leader should be another, or their slot has such a partition, a forced one, or several preferred leaders.
    """
    badly = badly_led(problem, problem.replicas) | badly_led(problem, problem.replicas, problem.leaders)
    if problem.together is None:
        return badly
    changes = (problem.together >= 0) & (badly | problem.forced | led_by_several(problem, problem.replicas))
    return badly | (np.isin(problem.together, problem.together[changes]))


def led_by_several(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions of slots with more than one preferred leader, the first of these replicas (P, W).

    Partitions to be made have none yet, so they don't count.
    """
    is_several = np.zeros(problem.rows, dtype=bool)
    if problem.together is None:
        return is_several
    rows = np.flatnonzero((problem.together >= 0) & (replicas[:, 0] >= 0))
    slot, leaders = problem.together[rows], replicas[rows, 0]
    leader_of_slot = np.zeros(int(problem.together.max(initial=0)) + 1, dtype=leaders.dtype)
    leader_of_slot[slot] = leaders
    is_several[rows] = np.isin(slot, slot[leader_of_slot[slot] != leaders])
    return is_several


def badly_led(problem: Problem, replicas: IntArray, leaders: IntArray | None = None) -> BoolArray:
    """(P,): partitions that another of these replicas (P, W) should lead instead of `leaders` (P,) or else the first.

    Brokers in no ISR don't count as better leaders, because they can't be elected. They do count for partitions whose
    leader breaks `apart`, because that is a rule and not a preference.
    """
    if problem.leader_ranks is None:
        return np.zeros(problem.rows, dtype=bool)
    leaders = replicas[:, 0] if leaders is None else leaders
    ranks = replica_ranks(problem, problem.leader_ranks, replicas, np.arange(problem.rows))
    rank = replica_ranks(problem, problem.leader_ranks, leaders[:, None], np.arange(problem.rows))[:, 0]
    better = ranks == ranks.min(axis=1, keepdims=True)
    if problem.out_of_sync is not None:
        # -1 and unknown brokers both index the False at the end.
        is_off = np.append(problem.out_of_sync, False)[replicas.clip(max=len(problem.broker_ids))]
        better &= ~is_off | (rank >= NEVER_LEADS)[:, None]
    badly: BoolArray = (leaders >= 0) & (rank > ranks.min(axis=1)) & better.any(axis=1)
    return badly

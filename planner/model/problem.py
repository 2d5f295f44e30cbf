"""A spec as flat arrays, which everything that is computed thousands of times works on; and sums and hashes of whole
numbers, which are the same on every machine and in any order.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.balance import Balance
from planner.model.cluster import LEADERS, ApartBy, PartitionKey
from planner.model.spec import AIMS, Budget, Rebalance, Survive

# Indices and counts are int32 where there are many; bytes are int64. The difference matters to memory, not to types.
IntArray = NDArray[np.integer[Any]]
LongArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]

# More replicas or leaders than any broker has: what a broker without a cap may hold.
UNCAPPED = 1 << 30
# In `leader_ranks` from here on: brokers that `apart` doesn't let lead a topic.
NEVER_LEADS = 10_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A spec as flat arrays: B brokers (today's and the target's, ascending by id), T topics, P partitions.

    Brokers, racks and topics are indices everywhere; -1 means none. Partitions are sorted by (topic, id).

    broker_ids      (B,)    Kafka's ids
    broker_racks    (B,)    rack index after the change, -1 without a rack
    targets         (B,)    True where the broker may hold replicas after the change
    topic_of        (P,)    topic index
    partition_ids   (P,)    Kafka's partition ids
    replicas        (P, R)  today's replicas, preferred leader first, padded with -1; none of a partition to be made
    leaders         (P,)    today's actual leader, -1 where there is none
    replacements    (B,)    the broker that takes over this one's replicas one to one, -1 without one
    size_bytes      (P,)    bytes of one replica
    replication_factors (P,) replicas wanted
    min_insync      (P,)    the min.insync.replicas in force for the topic
    movable         (P,)    False where the partition stays as it is: by the topic filter, or without a leader
    forced          (P,)    True where a change makes it impossible to leave the partition as it is
    bytes_in_per_sec, bytes_out_per_sec (P,) what producers write to the leader and what consumers read of it
    disk_bytes      (B,)    weights of the shares of replicas and bytes: capacities, or 1 each where some state none
    network_bytes_per_sec (B,) the same for leaders and traffic
    racks_as_today  True where a partition that breaks the rack rule today may stay as uneven as it is
    disk_limit_bytes (B,)   the most bytes that a broker may hold after the change, -1 without a limit
    scenario_names (G + H)  what `sweep.scenarios` are called, then the busiest hours
    scenario_ppm (G, P)     how many times its bytes and traffic a partition has then, in millionths; None without any
    scenario_hours (H, 2, P) bytes/s in and out of a partition in each of the busiest hours; None without any
    week (2, P, 168)        bytes/s in and out of a partition in each hour of the week, by which candidates are judged;
                            None where they aren't known
    network_limit   (B,)    each broker's `capacity.network`, -1 where it states none; only with `week`
    sizes_ahead     (P, M + 1) bytes of one replica now and in each coming month; None where growth isn't known, or no
                            broker's disk
    read_in_racks   (K,)    millionths of what is read that consumers of each rack fetch from the nearest replica
                            (KIP-392), for `week` alone; None: all is read from leaders
    survive         what should fail without a partition going offline (`resilience.survive`)
    deferred        (P,)    True where a change has to wait, as the budget doesn't pay for it; None: nowhere
    out_of_sync     (B,)    True for brokers that hold replicas and are in no ISR, so that none can be elected; None: no
    allowed         (T, B)  True where `placement` lets a topic have replicas on a broker; None: there are no such rules
    cordoned        (B,)    True for brokers that get no new replica, and may keep those of today; None: no broker is
    leader_ranks    (T, B)  a topic's partitions are led by a replica of the lowest rank: by `leader_racks`, and highest
                            on brokers to be demoted, or that `apart` doesn't let lead; None: there are no such rules
    caps            (2, B)  the most replicas and the most leaders that each broker may have, UNCAPPED where it states
                            none; None: no broker states any
    apart           (G, T)  for each group of `apart`, the side that each topic is on, -1 for none; None: no groups
    apart_by        (G)     what sides of the group don't share: brokers or racks, for all replicas or leaders
    together        (P,)    the slot of `together` that a partition is in, -1 for none: one broker is preferred to lead
                            all partitions of a slot; None: no groups
    """

    broker_ids: IntArray
    broker_racks: IntArray
    rack_names: tuple[str, ...]
    targets: BoolArray
    topic_names: tuple[str, ...]
    topic_of: IntArray
    partition_ids: IntArray
    replicas: IntArray
    leaders: IntArray
    replacements: IntArray
    size_bytes: LongArray
    replication_factors: IntArray
    min_insync: IntArray
    movable: BoolArray
    forced: BoolArray
    bytes_in_per_sec: LongArray
    bytes_out_per_sec: LongArray
    disk_bytes: LongArray
    network_bytes_per_sec: LongArray
    disk_limit_bytes: LongArray
    rack_aware: bool
    rebalance: Rebalance
    balance: Balance
    sizes_known: bool = True
    racks_as_today: bool = False
    budget: Budget = field(default_factory=Budget)
    aims: tuple[str, ...] = AIMS
    scenario_names: tuple[str, ...] = ()
    scenario_ppm: LongArray | None = None
    scenario_hours: LongArray | None = None
    week: LongArray | None = None
    network_limit: LongArray | None = None
    sizes_ahead: LongArray | None = None
    read_in_racks: LongArray | None = None
    survive: Survive = "none"
    deferred: BoolArray | None = None
    out_of_sync: BoolArray | None = None
    allowed: BoolArray | None = None
    cordoned: BoolArray | None = None
    leader_ranks: IntArray | None = None
    caps: LongArray | None = None
    apart: IntArray | None = None
    apart_by: tuple[ApartBy, ...] = ()
    together: IntArray | None = None

    @property
    def rows(self) -> int:
        """Number of partitions."""
        return len(self.topic_of)

    @property
    def partition_keys(self) -> list[PartitionKey]:
        """(P,): the topic and the partition's number of each row."""
        topics = (self.topic_names[topic] for topic in self.topic_of.tolist())
        return list(zip(topics, self.partition_ids.tolist(), strict=True))

    @property
    def row_of(self) -> dict[PartitionKey, int]:
        """The row of each partition, by topic and number."""
        return {key: row for row, key in enumerate(self.partition_keys)}

    @property
    def waits(self) -> BoolArray:
        """(P,): `deferred`, or nowhere where it is None."""
        return np.zeros(self.rows, dtype=bool) if self.deferred is None else self.deferred

    @property
    def is_new(self) -> BoolArray:
        """(P,): True for partitions to be made, whose replicas nobody copies and whose leader nobody elects."""
        return self.replicas[:, 0] < 0

    @property
    def width(self) -> int:
        """Columns of an assignment: the most replicas that any partition has or will have."""
        return max(self.replicas.shape[1], int(self.replication_factors.max(initial=1)))

    @property
    def may_lead_anew(self) -> BoolArray:
        """(P,): True where the plan may say who leads, by replica order or by an election."""
        return self.movable & (self.forced | (not self.forced_only) | may_be_reordered(self))

    @property
    def is_led(self) -> BoolArray:
        """(P,): True where there is a leader, today or after the plan."""
        return self.may_lead_anew | (self.leaders >= 0)

    @property
    def copied_from(self) -> IntArray:
        """(P,): the broker that copies come from: today's leader, else the preferred one."""
        return np.where(self.leaders >= 0, self.leaders, self.replicas[:, 0])

    @property
    def forced_only(self) -> bool:
        """True where nothing moves, is reordered or elected that no change forces: `rebalance` is none or racks."""
        return self.rebalance in ("none", "racks")

    @property
    def slot_of(self) -> IntArray:
        """(P,): `together`, or no slots where there are no groups."""
        return np.full(self.rows, -1, dtype=np.int32) if self.together is None else self.together

    @property
    def racks_matter(self) -> bool:
        """True where the rack rule applies: it is enforced and every target broker has a rack."""
        return self.rack_aware and bool((self.broker_racks[self.targets] >= 0).all())

    def not_shared(self, group: int) -> IntArray:
        """(B,): the number of what sides of a group of `apart` don't share: the broker's, or that of its rack."""
        brokers = np.arange(len(self.broker_ids), dtype=np.int32)
        if self.apart_by[group].startswith("broker"):
            return brokers
        return np.where(self.broker_racks >= 0, self.broker_racks, len(self.rack_names) + brokers)

    @property
    def allowed_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers that each topic may use; None without rules of placement."""
        return None if self.allowed is None else self.allowed[:, self.targets]

    @property
    def open_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers that new replicas of each topic may come to; None where all of them are."""
        if self.cordoned is None:
            return self.allowed_targets
        may_come = ~self.cordoned[self.targets] & np.ones((len(self.topic_names), 1), dtype=bool)
        return may_come if self.allowed is None else may_come & self.allowed[:, self.targets]

    @property
    def leading_targets(self) -> BoolArray | None:
        """(T, Bt): the target brokers that are to lead each topic; None where all that may hold it are."""
        if self.leader_ranks is None:
            return self.allowed_targets
        ranks = self.leader_ranks[:, self.targets]
        if self.allowed is not None:
            ranks = np.where(self.allowed[:, self.targets], ranks, np.iinfo(ranks.dtype).max)
        lowest: BoolArray = ranks == ranks.min(axis=1, keepdims=True)
        return lowest


def sums_at(shape: int | tuple[int, ...], at: Any, values: Any = 1) -> LongArray:
    """(shape): zeros with values added at these places, as often as they are there; exact, which weighted counts of
    floats aren't.
    """
    sums: LongArray = np.zeros(shape, dtype=np.int64)
    np.add.at(sums, at, values)
    return sums


# Of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function, element by element, modulo 2^64."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def drawn(seeds: NDArray[np.uint64], count: int, bound: int) -> IntArray:
    """(C, count): numbers in 0..bound-1, each a hash of one of the `seeds` (C,) and a counter: not the next one of a
    stream, so that thousands can be drawn at once, and none depends on which others are asked for.
    """
    counters = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN_GAMMA
    hashes = mix(mix(seeds)[:, None] + counters)
    # The high half times the bound, its high half: even enough for any number of brokers, and no division.
    return ((hashes >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int32)


def like_brokers(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of target brokers, by position, of which either could be the other: each holds nothing, stands for no
    other broker, and has the same rack, capacities and rules as the one before.
    """
    given = [problem.broker_racks, problem.disk_bytes, problem.network_bytes_per_sec, problem.disk_limit_bytes]
    rules = [problem.network_limit, problem.cordoned, problem.caps, problem.allowed, problem.leader_ranks]
    facts = np.concatenate([np.atleast_2d(each) for each in (*given, *rules) if each is not None])
    taken = {*problem.replicas.ravel().tolist(), *problem.replacements.tolist(), *problem.leaders.tolist()}
    seen, pairs = dict[tuple[int, ...], int](), []
    for position, broker in enumerate(np.flatnonzero(problem.targets).tolist()):
        if broker not in taken:
            key = tuple(facts[:, broker].tolist())
            if key in seen:
                pairs.append((seen[key], position))
            seen[key] = position
    return pairs


def misplaced(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions with one of these replicas (P, W) on a broker that `placement` doesn't let their topic use, or
    with none that may lead it.
    """
    outside = leaderless(problem, replicas)
    if problem.allowed is None:
        return outside
    known = replicas.clip(0, len(problem.broker_ids) - 1)
    elsewhere: BoolArray = ((replicas >= 0) & ~problem.allowed[problem.topic_of[:, None], known]).any(axis=1)
    return outside | elsewhere


def leaderless(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions with replicas (P, W) of which `apart` lets none lead."""
    if problem.leader_ranks is None or not any(by.endswith(LEADERS) for by in problem.apart_by):
        return np.zeros(problem.rows, dtype=bool)
    ranks = replica_ranks(problem, problem.leader_ranks, replicas, np.arange(problem.rows))
    found: BoolArray = (ranks.min(axis=1) >= NEVER_LEADS) & (replicas[:, 0] >= 0)
    return found


def replica_ranks(problem: Problem, ranks: IntArray, replicas: IntArray, rows: IntArray) -> IntArray:
    """(n, W): of each replica of these rows' partitions, the rank among leaders; the highest there is for none."""
    known = replicas.clip(0, len(problem.broker_ids) - 1)
    there = (replicas >= 0) & (replicas < len(problem.broker_ids))
    return np.where(there, ranks[problem.topic_of[rows][:, None], known], np.iinfo(ranks.dtype).max)


def may_lead(problem: Problem, placed: IntArray, rows: IntArray) -> BoolArray:
    """(n, W): the replicas of these rows (n,) that are to lead: all, or with rules on leaders those of lowest rank."""
    there: BoolArray = placed[rows] >= 0
    if problem.leader_ranks is None:
        return there
    ranks = replica_ranks(problem, problem.leader_ranks, placed[rows], rows)
    return there & (ranks == ranks.min(axis=1, keepdims=True))


def may_be_reordered(problem: Problem) -> BoolArray:
    """(P,): partitions that a rule on leaders lets be reordered or elected where nothing else changes: its leader,
    preferred or of today, should be another, or that of a partition in its slot, or this one changes.
    """
    badly = badly_led(problem, problem.replicas) | badly_led(problem, problem.replicas, problem.leaders)
    if problem.together is None:
        return badly
    changes = (problem.together >= 0) & (badly | problem.forced | led_by_several(problem, problem.replicas))
    return badly | (np.isin(problem.together, problem.together[changes]))


def led_by_several(problem: Problem, replicas: IntArray) -> BoolArray:
    """(P,): partitions of slots whose preferred leaders, the first of these replicas (P, W), aren't one broker.

    A partition that is to be made has none yet.
    """
    found = np.zeros(problem.rows, dtype=bool)
    if problem.together is None:
        return found
    rows = np.flatnonzero((problem.together >= 0) & (replicas[:, 0] >= 0))
    slot, first = problem.together[rows], replicas[rows, 0]
    one_of = np.zeros(int(problem.together.max(initial=0)) + 1, dtype=first.dtype)
    one_of[slot] = first
    found[rows] = np.isin(slot, slot[one_of[slot] != first])
    return found


def badly_led(problem: Problem, replicas: IntArray, leaders: IntArray | None = None) -> BoolArray:
    """(P,): partitions whose leader (P,), -1: none, should be another of these replicas (P, W); without it, the first.

    Partitions whose better leaders are all on brokers that are in no ISR aren't judged, as none of them is electable;
    but for those led where `apart` doesn't let them be, which is a rule and not a preference.
    """
    if problem.leader_ranks is None:
        return np.zeros(problem.rows, dtype=bool)
    leaders = replicas[:, 0] if leaders is None else leaders
    ranks = replica_ranks(problem, problem.leader_ranks, replicas, np.arange(problem.rows))
    rank = replica_ranks(problem, problem.leader_ranks, leaders[:, None], np.arange(problem.rows))[:, 0]
    better = ranks == ranks.min(axis=1, keepdims=True)
    if problem.out_of_sync is not None:
        # Whatever isn't a broker, or isn't one that is known, is at the end.
        off = np.append(problem.out_of_sync, False)[replicas.clip(max=len(problem.broker_ids))]
        better &= ~off | (rank >= NEVER_LEADS)[:, None]
    badly: BoolArray = (leaders >= 0) & (rank > ranks.min(axis=1)) & better.any(axis=1)
    return badly

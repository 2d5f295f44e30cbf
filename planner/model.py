"""The facts and the wish, as frozen values: what the YAML and the state files say, without files or units.

Two forms of the same thing: dataclasses in the words of Kafka (`Cluster`, `Changes`, `Spec`) for everything that
people read, and `Problem`, flat numpy arrays, for everything that is computed thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from planner.balance import NO_TOLERANCE, Balance, BalanceGrid, Tolerance
from planner.execution_values import BatchRules as BatchRules
from planner.execution_values import Derived as Derived
from planner.execution_values import Execution as Execution
from planner.group_values import ConsumerGroup
from planner.log_dirs_values import NO_LOG_DIRS, LogDir, LogDirs
from planner.monthly import Monthly
from planner.partition_changes import PartitionChange as PartitionChange
from planner.partition_changes import Reason as Reason

# Indices and counts are int32 where there are many; bytes are int64. The difference matters to memory, not to types.
IntArray = NDArray[np.integer[Any]]
LongArray = NDArray[np.integer[Any]]
FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]

# Configuration as (key, value) pairs, sorted by key.
Config = tuple[tuple[str, str], ...]

Rebalance = Literal["all", "leaders", "none"]
Survive = Literal["none", "broker", "rack"]


@dataclass(frozen=True)
class Broker:
    """A broker, the rack in its `broker.rack`, the room for its log dirs and what its network carries each way; None
    where not stated. `log_dirs` are those that the YAML lists.
    """

    id: int
    rack: str | None = None
    disk_bytes: int | None = None
    network_bytes_per_sec: int | None = None
    log_dirs: tuple[LogDir, ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the cluster reports it. `replicas[0]` is the preferred leader.

    `leader` is today's leader, None where the partition has none; `isr` is None where the source doesn't say.
    `size_bytes` is the size of one replica (the largest, where log dirs differ), 0 where unknown. `bytes_in_per_sec` is
    what producers write to it, `bytes_out_per_sec` what consumers read of it; 0 where not stated.
    """

    id: int
    replicas: tuple[int, ...]
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    size_bytes: int = 0
    bytes_in_per_sec: int = 0
    bytes_out_per_sec: int = 0


@dataclass(frozen=True)
class Topic:
    """A topic with its own configuration and its partitions by id.

    `deleting` is True where it is marked for deletion: it stays as it is until it is gone. `effective_config` is in
    force for it too, but no source says whether it is the topic's own or inherited.
    """

    name: str
    partitions: tuple[Partition, ...]
    config: Config = ()
    deleting: bool = False
    effective_config: Config = ()


@dataclass(frozen=True)
class Cluster:
    """Today's cluster. `sizes_known` is False where no source gave sizes: then replicas are counted instead.

    `unsized` is how many partitions have no size although others have one; they count as empty. `log_dirs` is what the
    brokers say of theirs, read only where they are to be balanced. `notes` are what the sources of the state disagree
    about, in sentences. `config_defaults` is what brokers and the cluster set for all topics, under the names that
    topics have for it.
    """

    name: str
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    bootstrap_servers: tuple[str, ...] = ()
    sizes_known: bool = True
    unsized: int = 0
    log_dirs: LogDirs = NO_LOG_DIRS
    notes: tuple[str, ...] = ()
    config_defaults: Config = ()


@dataclass(frozen=True)
class ReplicationFactorChange:
    """`topics` is a shell-style pattern; every matching topic gets `replication_factor` replicas."""

    topics: str
    replication_factor: int


@dataclass(frozen=True)
class NewPartitions:
    """Partitions `first` to `count` - 1 of a topic, to be made: all of a new topic, where `first` is 0, or more of one.

    Size, rates: what is expected of each, 0 where not stated. `config` is that of a new topic.
    """

    topic: str
    first: int
    count: int
    replication_factor: int
    config: Config = ()
    size_bytes: int = 0
    bytes_in_per_sec: int = 0
    bytes_out_per_sec: int = 0


@dataclass(frozen=True)
class Changes:
    """The wish. `rebalance` says whether replicas may move that no other change forces to."""

    add_brokers: tuple[Broker, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    replace_brokers: tuple[tuple[int, int], ...] = ()
    set_racks: tuple[tuple[int, str], ...] = ()
    set_replication_factor: tuple[ReplicationFactorChange, ...] = ()
    new_partitions: tuple[NewPartitions, ...] = ()
    rebalance: Rebalance = "all"


@dataclass(frozen=True)
class TopicFilter:
    """Shell-style patterns of the topics whose replicas may move; all topics are counted."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """Gates: a plan beyond one of them is refused. None means no gate.

    `disk_used_ppm` is a share of each broker's `disk_bytes`, in millionths; None means all of it where it is stated.
    `gap_ppm` is how far the plan may be above the proven least, in millionths of itself. `broker_offline` to
    `rack_refused` are partitions, by the worst single failure (see `exposure`).
    """

    bytes_moved: int | None = None
    replicas_moved: int | None = None
    leaders_changed: int | None = None
    eta_seconds: int | None = None
    disk_used_ppm: int | None = None
    cross_rack_bytes: int | None = None
    broker_offline: int | None = None
    broker_refused: int | None = None
    rack_offline: int | None = None
    rack_refused: int | None = None
    gap_ppm: int | None = None


@dataclass(frozen=True)
class Budget:
    """What a plan may spend; it steers: the most even plan within it. None means no budget."""

    bytes_moved: int | None = None
    replicas_moved: int | None = None
    leaders_changed: int | None = None


@dataclass(frozen=True)
class Variant:
    """An alternative to `changes`, compared side by side."""

    name: str
    changes: Changes


@dataclass(frozen=True)
class Growth:
    """A scenario: the topics that a shell-style pattern matches have `factor` times their bytes and traffic."""

    name: str
    topics: str
    factor: float


@dataclass(frozen=True)
class Choice:
    """Which plan of the front is chosen.

    `asked`: the fewest bytes at the balance asked for. `most_even_within_bytes`: the most even one that moves at most
    `value` bytes. `fewest_bytes_within_imbalance`: the fewest bytes with an imbalance of at most `value` ppm.
    `within_budget`: the most even one within the spec's budget, which is what `asked` means where there is one.
    """

    rule: Literal["asked", "within_budget", "most_even_within_bytes", "fewest_bytes_within_imbalance"] = "asked"
    value: int = 0


AIMS = ("leaders_changed", "cross_rack_bytes", "makespan", "peak_disk")


@dataclass(frozen=True)
class Sweep:
    """How wide to look. `candidates` None means: by the size of the cluster (see `candidates.candidate_budget`).

    `solved` is how many of the candidates are solved plans; None means: by the size of the cluster, at most a fifth.
    `aims` is what comes after bytes among equally cheap plans, most important first: some of AIMS.
    """

    candidates: int | None = None
    seed: int = 0
    grid: BalanceGrid = field(default_factory=BalanceGrid)
    aims: tuple[str, ...] = AIMS
    choice: Choice = field(default_factory=Choice)
    variants: tuple[Variant, ...] = ()
    growth: tuple[Growth, ...] = ()
    solved: int | None = None


@dataclass(frozen=True)
class ReportSections:
    """What else the plan tells: kinds of failures (as `planner failures --of` has them), so many months of growth (None
    without), consumer groups.
    """

    failures: tuple[str, ...] = ()
    growth_months: int | None = None
    consumers: bool = False


@dataclass(frozen=True)
class InputFile:
    """A file the plan was made from: its path as written (relative to the YAML) and its SHA-256."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Spec:
    """One YAML file, read, checked and without units. `log_dirs`: how even each broker's log dirs have to be."""

    cluster: Cluster
    changes: Changes = field(default_factory=Changes)
    topics: TopicFilter = field(default_factory=TopicFilter)
    rack_aware: bool = True
    balance: Balance = field(default_factory=Balance)
    log_dirs: Tolerance = NO_TOLERANCE
    budget: Budget = field(default_factory=Budget)
    limits: Limits = field(default_factory=Limits)
    sweep: Sweep = field(default_factory=Sweep)
    execution: Execution = field(default_factory=Execution)
    resilience: Survive = "none"
    growth: Monthly = field(default_factory=Monthly)
    consumers: tuple[ConsumerGroup, ...] = ()
    report: ReportSections = field(default_factory=ReportSections)
    captured_at: str | None = None
    valid_for_seconds: int | None = None
    inputs: tuple[InputFile, ...] = ()


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
    disk_limit_bytes (B,)   the most bytes that a broker may hold after the change, -1 without a limit
    scenario_names (S)      what `sweep.scenarios` are called
    scenario_ppm (S, P)     how many times its bytes and traffic a partition has then, in millionths; None without any
    survive         what should fail without a partition going offline (`resilience.survive`)
    deferred        (P,)    True where a change has to wait, as the budget doesn't pay for it; None: nowhere
    out_of_sync     (B,)    True for brokers that hold replicas and are in no ISR, so that none can be elected; None: no
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
    budget: Budget = Budget()
    aims: tuple[str, ...] = AIMS
    scenario_names: tuple[str, ...] = ()
    scenario_ppm: LongArray | None = None
    survive: Survive = "none"
    deferred: BoolArray | None = None
    out_of_sync: BoolArray | None = None

    @property
    def rows(self) -> int:
        """Number of partitions."""
        return len(self.topic_of)

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
        return self.movable & (self.forced | (self.rebalance != "none"))

    @property
    def racks_matter(self) -> bool:
        """True where the rack rule applies: it is enforced and every target broker has a rack."""
        return self.rack_aware and bool((self.broker_racks[self.targets] >= 0).all())

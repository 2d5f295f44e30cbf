"""The request of one YAML file as frozen values in base units: the change, balance, limits, execution, groups.

Topics are named by shell-style patterns: `orders-*`; `?` for one character, `[ab]` for one of these. If several rules
of a list match a topic, the first counts.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Annotated, Literal, Protocol, TypeVar

from planner.model import document_fields
from planner.model.balance import NO_TOLERANCE, Balance, BalanceGrid, Tolerance
from planner.model.cluster import Broker, Cluster, Config, PartitionKey
from planner.model.document_fields import PPM, Apart, Count, Positive, Section, doc
from planner.model.load_history import WeekOfLoad


class _OfTopics(Protocol):
    @property
    def topics(self) -> str:
        """The pattern."""


_Rule = TypeVar("_Rule", bound=_OfTopics)


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """True if one of the patterns matches the topic."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def matching(names: Set[str], pattern: str) -> set[str]:
    """The topics that the pattern matches."""
    # In long lists, most patterns are plain names.
    if not any(sign in pattern for sign in "*?["):
        return {pattern} & names
    return {name for name in names if fnmatchcase(name, pattern)}


def first_rule(name: str, rules: Iterable[_Rule]) -> _Rule | None:
    """The first rule whose pattern matches the topic; None if there is none."""
    return next((rule for rule in rules if fnmatchcase(name, rule.topics)), None)


@dataclass(frozen=True)
class DescribedGroup:
    """A consumer group as Kafka describes it. `assignor` is empty if not known.

    `members` maps the id of each consumer to the partitions that it owns, (topic, partition), sorted. `topics` are
    those for which the group has offsets or owns partitions.
    """

    name: str
    assignor: str = ""
    members: Mapping[str, tuple[PartitionKey, ...]] = field(default_factory=dict)
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class ConsumerMember:
    """A consumer of a group: its id, patterns of topics that it reads, its `client.rack`, its `group.instance.id`."""

    id: str
    topics: tuple[str, ...]
    rack: str | None = None
    instance: str | None = None


@dataclass(frozen=True)
class ConsumerGroup:
    """A group of the YAML: its `assignor`, `topic_ids` and patterns of `topics` if stated, and the group as its state
    file describes it.
    """

    name: str
    assignor: str = ""
    members: tuple[ConsumerMember, ...] = ()
    described: DescribedGroup | None = None
    topic_ids: tuple[tuple[str, str], ...] = ()
    topics: tuple[str, ...] = ()


class BatchRules(Section, frozen=True, omit_defaults=False):
    """What one batch may hold; null means no limit."""

    bytes: Annotated[Positive | None, doc("Bytes that a batch copies.")] = None
    moves_per_broker: Annotated[Positive | None, doc("Replicas that are copied to a broker, and as many from it.")] = (
        None
    )
    replicas_per_partition: Annotated[Positive | None, doc("Replicas that a partition adds at a time.")] = None
    seconds: Annotated[Positive | None, doc("Seconds that the busiest broker copies, at bytes_per_sec.")] = None
    bytes_per_sec: Annotated[
        Positive | None,
        doc("The rate for `seconds`: the throttle, or the one that would be derived; null without `seconds`."),
    ] = None
    elections: Annotated[Positive | None, doc("Preferred leaders that a batch elects.")] = None

    @property
    def bytes_per_broker(self) -> int | None:
        """The most bytes that a batch copies to or from a broker, including what producers write there meanwhile."""
        return None if self.seconds is None or self.bytes_per_sec is None else self.seconds * self.bytes_per_sec


@dataclass(frozen=True)
class Execution:
    """How the plan will be executed; the planner itself runs nothing.

    `unset` are the keys of `execution` that have a default and that the YAML leaves out (see
    `throttle_and_batch_defaults`). `derived` are their values, once the changes are known.
    """

    throttle_bytes_per_sec: int | None = None
    batches: BatchRules = field(default_factory=BatchRules)
    kafka_bin_dir: str = "/opt/kafka/bin"
    unset: tuple[str, ...] = ()
    derived: tuple[document_fields.DerivedRow, ...] = ()


# The limits of a batch with a default, by their keys in `execution.batches`; and an `execution` with only defaults.
LIMITS = ("duration", "moves_per_broker", "replicas_per_partition", "elections")
UNSTATED = Execution(unset=("throttle", *(f"batches.{key}" for key in LIMITS)))


@dataclass(frozen=True)
class Rate:
    """Topics that match a shell-style pattern grow by `ppm` millionths per month, compounded."""

    topics: str
    ppm: int


@dataclass(frozen=True)
class BrokerClass:
    """A kind of broker that can be added: its room for log dirs, its network each way, its caps; None if not stated."""

    name: str
    disk_bytes: int | None = None
    network_bytes_per_sec: int | None = None
    max_replicas: int | None = None
    max_leaders: int | None = None
    max_disk_bytes: int | None = None

    def broker(self, broker_id: int, rack: str | None) -> Broker:
        """A broker of this class."""
        caps = self.max_replicas, self.max_leaders, self.max_disk_bytes
        return Broker(broker_id, rack, self.disk_bytes, self.network_bytes_per_sec, (), *caps)


@dataclass(frozen=True)
class Monthly:
    """`growth` and `cluster.broker_classes`. If several rates match a topic, the first one counts."""

    rates: tuple[Rate, ...] = ()
    classes: tuple[BrokerClass, ...] = ()
    # By topic with mean rates of a load profile: the rate at the profile's end, where forecasts begin, in millionths of
    # the mean. Partitions whose rate the YAML states don't use it.
    at_end: Mapping[str, int] = field(default_factory=dict)


Rebalance = Literal["all", "leaders", "racks", "none"]
Survive = Literal["none", "broker", "rack"]
FetchFrom = Literal["leader", "nearest replica"]


@dataclass(frozen=True)
class Sizing:
    """`sizing`: the brokers that may be bought, and what a cluster of them has to hold for `months` months.

    racks: those for brokers, empty for today's. per_rack: the fewest and the most brokers of a class in a rack.
    prices: of a broker per month, in hundredths of the currency, by class. replicas_per_broker: None without a limit.
    """

    classes: tuple[BrokerClass, ...]
    per_rack: tuple[int, int]
    racks: tuple[str, ...] = ()
    prices: tuple[tuple[str, int], ...] = ()
    months: int = 12
    survive: Survive = "none"
    disk_used_ppm: int = PPM
    replicas_per_broker: int | None = None


class RackTraffic(Section, frozen=True, omit_defaults=False):
    """`traffic` and `prices` of the YAML."""

    # Empty if not known.
    consumers: Annotated[Mapping[str, Count], doc("Racks, each with its millionths of what consumers read.")] = {}
    fetch_from: Annotated[FetchFrom, doc("Where consumers read.")] = "leader"
    cross_rack_per_gib_millionths: Annotated[
        Count | None, doc("Millionths of the currency that a GiB from one rack to another costs; null without a price.")
    ] = None

    @property
    def nearest(self) -> bool:
        """True if consumers fetch from the nearest replica (KIP-392)."""
        return self.fetch_from == "nearest replica"


@dataclass(frozen=True)
class NewPartitions:
    """Partitions `first` to `count` - 1 of a topic, to be made: all of a new topic, if `first` is 0, or added ones.

    The size and rates are expected values of each partition, 0 if not stated. `config` is that of a new topic.
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
    """The changes. `rebalance` says whether replicas may move that no other change forces to move."""

    add_brokers: tuple[Broker, ...] = ()
    remove_brokers: tuple[int, ...] = ()
    replace_brokers: tuple[tuple[int, int], ...] = ()
    set_racks: tuple[tuple[int, str], ...] = ()
    set_replication_factor: tuple[document_fields.ReplicationFactorRow, ...] = ()
    new_partitions: tuple[NewPartitions, ...] = ()
    demote_brokers: tuple[int, ...] = ()
    rebalance: Rebalance = "all"

    @property
    def leaving(self) -> frozenset[int]:
        """The brokers that are removed or replaced, so hold nothing afterwards."""
        return frozenset((*self.remove_brokers, *(old for old, _ in self.replace_brokers)))


@dataclass(frozen=True)
class TopicFilter:
    """Shell-style patterns of topics whose replicas may move, and brokers (see `is_near`); all topics are counted."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    on_brokers: tuple[int, ...] = ()

    def moves(self, topic: str) -> bool:
        """True if the patterns let this topic's replicas move."""
        return matches_any(topic, self.include) and not matches_any(topic, self.exclude)

    def is_near(self, replicas: Iterable[int]) -> bool:
        """True if `on_brokers` lets a partition move: one of them has a replica, or `on_brokers` is empty."""
        return not self.on_brokers or not set(self.on_brokers).isdisjoint(replicas)

    def keeps(self, topic: str, replicas: Iterable[int]) -> bool:
        """True if a partition with these replicas stays as it is, because of its topic or its brokers."""
        return not (self.moves(topic) and self.is_near(replicas))


# If it doesn't pay for the whole change, the plan is a part of it.
class Budget(Section, frozen=True, omit_defaults=False):
    """What each step may spend; null means no limit."""

    bytes_moved: Annotated[Count | None, doc("Bytes copied between brokers.")] = None
    replicas_moved: Annotated[Count | None, doc("Replicas copied.")] = None
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes.")] = None


@dataclass(frozen=True)
class Variant:
    """An alternative to `changes`, for comparison with it."""

    name: str
    changes: Changes


@dataclass(frozen=True)
class Growth:
    """A scenario: topics that match a shell-style pattern have `factor` times their bytes and traffic."""

    name: str
    topics: str
    factor: float


ChoiceRule = Literal[
    "asked",
    "within_budget",
    "most_even_within_bytes",
    "fewest_bytes_within_imbalance",
    "lowest_worst_hour_within_bytes",
    "fewest_bytes_within_worst_hour",
    "most_months_within_bytes",
    "fewest_bytes_lasting_months",
]


@dataclass(frozen=True)
class Choice:
    """The rule that chooses a plan of the Pareto front.

    `asked`: the fewest bytes at the balance asked for. `most_even_within_bytes`: the most even plan that moves at most
    `value` bytes. `fewest_bytes_within_imbalance`: the fewest bytes with an imbalance of at most `value` ppm.
    `lowest_worst_hour_within_bytes`, `fewest_bytes_within_worst_hour`: the same by the worst hour of any broker, in
    bytes/s; the former prefers fewer hours above `capacity.network`.
    `most_months_within_bytes`, `fewest_bytes_lasting_months`: the same by the months until a broker's disk is full.
    `within_budget`: all that is asked for, else a part of it, else the most even plan, within the spec's budget.
    `asked` means this if there is a budget.
    """

    rule: ChoiceRule = "asked"
    value: int = 0

    @property
    def of_hours(self) -> bool:
        """True if the rule compares hours of the week."""
        return self.rule in ("lowest_worst_hour_within_bytes", "fewest_bytes_within_worst_hour")


Aim = Literal["leaders_changed", "cross_rack_bytes", "makespan", "peak_disk"]
AIMS: tuple[Aim, ...] = ("leaders_changed", "cross_rack_bytes", "makespan", "peak_disk")


@dataclass(frozen=True)
class Sweep:
    """The size of the search. If `candidates` is None, the cluster's size decides (see `candidates.candidate_budget`).

    `solved` is how many candidates are solved plans; if None, the cluster's size decides, at most a fifth.
    `aims` decide between plans with equal bytes, most important first: some of AIMS.
    """

    candidates: int | None = None
    seed: int = 0
    grid: BalanceGrid = field(default_factory=dict)
    aims: tuple[Aim, ...] = AIMS
    choice: Choice = field(default_factory=Choice)
    variants: tuple[Variant, ...] = ()
    growth: tuple[Growth, ...] = ()
    solved: int | None = None
    scores: str | None = None


@dataclass(frozen=True)
class ReportSections:
    """Optional sections of the plan: kinds of failures (as in `planner failures --of`), months of growth (None for no
    such section), consumer groups.
    """

    failures: tuple[str, ...] = ()
    growth_months: int | None = None
    consumers: bool = False


@dataclass(frozen=True)
class Spec:
    """One YAML file, read, checked, in base units. `log_dirs`: how even each broker's must be. `week`: if known."""

    cluster: Cluster
    changes: Changes = field(default_factory=Changes)
    topics: TopicFilter = field(default_factory=TopicFilter)
    rack_aware: bool = True
    racks_as_today: bool = False
    balance: Balance = field(default_factory=Balance)
    log_dirs: Tolerance = NO_TOLERANCE
    budget: Budget = field(default_factory=Budget)
    limits: document_fields.SpecLimits = field(default_factory=document_fields.SpecLimits)
    sweep: Sweep = field(default_factory=Sweep)
    execution: Execution = field(default_factory=Execution)
    resilience: Survive = "none"
    growth: Monthly = field(default_factory=Monthly)
    consumers: tuple[ConsumerGroup, ...] = ()
    report: ReportSections = field(default_factory=ReportSections)
    captured_at: str | None = None
    valid_for_seconds: int | None = None
    inputs: tuple[document_fields.InputRow, ...] = ()
    week: WeekOfLoad | None = None
    placement: tuple[document_fields.PlacementRuleRow, ...] = ()
    leader_racks: tuple[document_fields.LeaderRacksRow, ...] = ()
    apart: tuple[Apart, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    sizing: Sizing | None = None
    traffic: RackTraffic = field(default_factory=RackTraffic)

    @property
    def all_brokers(self) -> tuple[Broker, ...]:
        """Today's brokers, including those that leave, and those to be added."""
        return self.cluster.brokers + self.changes.add_brokers


# The fields of `SpecLimits` that aren't called like their keys in the YAML: these end with a unit.
LIMIT_FIELDS = {
    "eta": "eta_seconds",
    "disk_used": "disk_used_ppm",
    "gap": "gap_ppm",
    "worst_hour": "worst_hour_bytes_per_sec",
    "p99_hour": "p99_hour_bytes_per_sec",
}
# Limits that can't be checked without sizes, without racks (both by their keys in the YAML), or without the hours of
# the week (by their field names).
OF_SIZES = ("bytes_moved", "cross_rack_bytes", "eta", "disk_used", "months_until_full")
OF_RACKS = ("cross_rack_bytes", "rack_offline", "rack_refused")
OF_HOURS = ("hours_above_capacity", "worst_hour_bytes_per_sec", "p99_hour_bytes_per_sec")

"""The cluster: its state when the plan was made; its brokers, log dirs, racks and topics before and after."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from planner.model.document_fields import (
    BrokerId,
    Count,
    LogDirMoveRow,
    LogDirRow,
    NameText,
    NotNegative,
    Percentage,
    Positive,
    Section,
    Sha256,
    TopicConfig,
    TopicName,
    doc,
)
from planner.model.spec import FetchFrom


class HeldLoad(Section, frozen=True):
    """What a broker or a rack holds."""

    replicas: Annotated[Count, doc("Replicas.")]
    leaders: Annotated[Count, doc("Partitions that it leads.")]
    size_bytes: Annotated[Count, doc("Bytes of all replicas.")]
    network_in: Annotated[
        Count | None,
        doc("Bytes per second written to its replicas, by producers or leaders; null where no rates are known."),
    ]
    network_out: Annotated[
        Count | None,
        doc(
            "Bytes per second that its leaders send to followers and consumers, as if all consumers read from leaders, "
            "whatever traffic.fetch_from says; null where no rates are known."
        ),
    ]


class ClusterSection(Section, frozen=True, kw_only=True):
    """The cluster that the plan is for."""

    name: Annotated[str, doc("Its name.")]
    bootstrap_servers: Annotated[tuple[str, ...], doc("host:port of brokers, for the playbooks alone.")]
    sizes_known: Annotated[bool, doc("False where no source gives sizes; then replicas are counted instead of bytes.")]
    partitions_without_size: Annotated[
        Positive | None,
        doc(
            "How many partitions have no known size although others have one. They count as empty, so more bytes "
            "may move than the plan says. Left out where every size is known, or none."
        ),
    ] = None
    config_defaults: Annotated[
        TopicConfig | None,
        doc("What topics inherit from the brokers, under the topics' names for it; left out where nothing is known."),
    ] = None


class StateRow(Section, frozen=True, kw_only=True):
    """One topic of the state."""

    topic: TopicName
    replicas: Annotated[
        str,
        Meta(pattern="^([A-Za-z0-9+/]{2})*$"),
        doc("Two characters for each partition: a checksum of its replica list."),
    ]
    leaders: Annotated[
        str,
        Meta(pattern="^[A-Za-z0-9+/-]*$"),
        doc(
            "A character for each partition: A where its first replica leads, B where its second does, and so on;"
            " - where nobody does."
        ),
    ]
    size_bytes: Annotated[Count | None, doc("Bytes of one replica of each partition, null where sizes aren't known.")]


class StateSection(Section, frozen=True, kw_only=True):
    """The state of the cluster when the plan was made: `planner check` tells from it what has changed since."""

    sha256: Annotated[Sha256, doc("SHA-256 over the replicas and the leader of every partition.")]
    topics: Annotated[tuple[StateRow, ...], doc("Every topic there was, by name.")]


class BrokerRow(Section, frozen=True, kw_only=True):
    """One broker, before and after."""

    id: BrokerId
    rack: Annotated[str | None, doc("Its broker.rack after the change; null without one.")]
    role: Annotated[Literal["stays", "added", "removed"], doc("Whether the broker stays, is added or is removed.")]
    before: Annotated[HeldLoad, doc("What it holds today.")]
    after: Annotated[HeldLoad, doc("What it holds after the plan.")]
    bytes_in: Annotated[Count, doc("Bytes that this broker copies in.")]
    bytes_out: Annotated[Count, doc("Bytes that others copy from the replicas it leads.")]
    disk_bytes: Annotated[Positive | None, doc("Bytes that its log dirs have room for; null where not stated.")]
    peak_size_bytes: Annotated[
        Count,
        doc(
            "The most bytes that it holds today, or while a batch runs: what the batch adds, and still what it "
            "removes. New partitions are empty then; `after` has them with their stated sizes."
        ),
    ]
    network_bytes_per_sec: Annotated[
        Positive | None, doc("Bytes per second that its network carries each way; only where stated.")
    ] = None
    max_replicas: Annotated[Positive | None, doc("The most replicas that it may hold; only where stated.")] = None
    max_leaders: Annotated[Positive | None, doc("The most partitions that it may lead; only where stated.")] = None
    max_disk_bytes: Annotated[Positive | None, doc("The most bytes that it may hold after; only where stated.")] = None
    cordoned: Annotated[
        bool | None, doc("True where it gets no new replica (cordoned.log.dirs); left out where it may.")
    ] = None
    seems_down: Annotated[
        bool | None, doc("True where it holds replicas today and is in no ISR; left out where not, or not known.")
    ] = None


class RackRow(Section, frozen=True, kw_only=True):
    """One rack, before and after: the sum of its brokers."""

    rack: Annotated[str | None, doc("Name of the rack; null for the brokers without one.")]
    brokers_before: Annotated[Count, doc("Brokers today.")]
    brokers_after: Annotated[Count, doc("Brokers after the plan; one that leaves counts as long as it is not empty.")]
    before: Annotated[HeldLoad, doc("What it holds today.")]
    after: Annotated[HeldLoad, doc("What it holds after the plan.")]


# Kafka creates these itself.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})

# What moves replicas sets these on topics while a throttle is on (KIP-73), and clears them afterwards.
THROTTLE_CONFIGS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class DeclaredTopic(TypedDict):
    """A topic as Terraform's `kafka_topic` declares it; `config` is None if the topic's own one isn't known whole."""

    partitions: int
    replication_factor: int
    config: dict[str, str] | None


class TopicRow(Section, frozen=True, kw_only=True):
    """One topic, before and after."""

    name: TopicName
    partitions: Annotated[Count, doc("Number of partitions, new ones included.")]
    replication_factor_before: Annotated[
        tuple[Positive, ...],
        Meta(extra_json_schema={"uniqueItems": True}),
        doc("The distinct replication factors of its partitions today, ascending; empty for a new topic."),
    ]
    replication_factor: Annotated[
        Positive | None, doc("Replicas of each partition after; null where the partitions differ.")
    ]
    config: Annotated[TopicConfig, doc("Its own configuration, without inherited values.")]
    effective_config: Annotated[
        TopicConfig | None,
        doc(
            "Configuration that is also in force for it where the state does not say whether it is its own or "
            "inherited; left out where there is none."
        ),
    ] = None
    partitions_changed: Annotated[Count, doc("Partitions whose replica list, leader or log dirs change.")]
    replicas_moved: Annotated[Count, doc("Replicas that a broker has to copy.")]
    bytes_moved: Annotated[Count, doc("Bytes copied between brokers.")]

    @property
    def declared(self) -> DeclaredTopic | None:
        """As Terraform declares the topic after the plan; None if Terraform can't.

        It must not create Kafka's own topics, and has no way to say that partitions differ in replication factor.
        """
        if self.name in INTERNAL_TOPICS or self.replication_factor is None:
            return None
        own = {key: value for key, value in self.config.items() if key not in THROTTLE_CONFIGS}
        return {
            "partitions": self.partitions,
            "replication_factor": self.replication_factor,
            "config": None if self.effective_config else own,
        }


class LogDirsBrokerRow(Section, frozen=True, kw_only=True):
    """One broker whose log dirs are planned."""

    id: BrokerId
    bytes_moved: Annotated[Count, doc("Bytes that it moves between its log dirs.")]
    least_bytes_moved: Annotated[Count, doc("The least bytes that any packing as near to the windows moves.")]
    within: Annotated[bool, doc("True where every log dir is within its window.")]
    log_dirs: Annotated[tuple[LogDirRow, ...], doc("Its log dirs, by path.")]


class LeftOutRow(Section, frozen=True, kw_only=True):
    """One broker whose log dirs are not planned."""

    id: BrokerId
    why: Annotated[str, doc("Why its log dirs are not planned.")]


HourOfWeek = Annotated[int, Meta(ge=0, le=167, description="Hour of the week; 0 is Monday 00:00 UTC.")]
HourName = Annotated[str, Meta(min_length=1, description="The hour in the cluster's time zone.")]


class PlannedHourRow(Section, frozen=True, kw_only=True):
    """An hour of the week in which the windows of traffic are to hold, too."""

    hour: HourOfWeek
    name: HourName


class TopicOfHourRow(Section, frozen=True, kw_only=True):
    """A topic's part in the traffic of a broker in an hour."""

    topic: TopicName
    bytes_per_sec: Annotated[Count, doc("Bytes per second.")]


class WorstHourRow(Section, frozen=True, kw_only=True):
    """The highest traffic that any broker has in any hour of the week."""

    broker: BrokerId
    hour: HourOfWeek
    name: HourName
    bytes_per_sec: Annotated[Count, doc("What the broker has in that hour, in bytes per second.")]
    topics: Annotated[
        tuple[TopicOfHourRow, ...], doc("The topics with the most of it, at most three, the first one with the most.")
    ]


HoursAbove = Annotated[
    Count | None,
    doc("Hours of brokers with more traffic, in or out, than capacity.network; null where no broker states it."),
]


class HoursState(Section, frozen=True, kw_only=True):
    """All 168 hours of the week under one assignment."""

    bytes_moved: Annotated[Count, doc("Bytes that are copied to get there.")]
    network_in: Annotated[WorstHourRow, doc("The worst hour of traffic in.")]
    network_out: Annotated[WorstHourRow, doc("The worst hour of traffic out.")]
    above_capacity: HoursAbove
    months_until_above_capacity: Annotated[
        Count | None,
        doc(
            "The first month of growth in which there is such an hour, 0: now; null where no broker states a "
            "capacity.network, or there is none in any month of `months`."
        ),
    ]


LevelsOfWeek = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]{168}$",
        description="A digit for each hour of the week, Monday 00:00 UTC first: ninths of `highest`, rounded up.",
    ),
]


class BrokerHoursRow(Section, frozen=True, kw_only=True):
    """A broker's traffic in each hour of the week, in or out, whichever is more."""

    id: BrokerId
    today: LevelsOfWeek
    plan: LevelsOfWeek


class StateOfMonth(Section, frozen=True, kw_only=True):
    """The hours of the week under one assignment, so many months from now."""

    bytes_per_sec: Annotated[Count, doc("The most bytes per second, in or out, of any broker in any hour.")]
    above_capacity: HoursAbove


class MonthOfGrowthRow(Section, frozen=True, kw_only=True):
    """The hours of the week so many months from now, with the growth of each topic."""

    month: Annotated[Count, doc("Months from now; 0 is now.")]
    today: Annotated[StateOfMonth, doc("With today's assignment.")]
    plan: Annotated[StateOfMonth, doc("With this plan.")]


class HoursSection(Section, frozen=True, kw_only=True):
    """The hours of the week of the cluster's load profile, judged for the plan."""

    time_zone: Annotated[NameText, doc("The cluster's time zone, in which hours are named.")]
    planned: Annotated[tuple[PlannedHourRow, ...], doc("The hours that were planned for, the most loaded first.")]
    today: Annotated[HoursState, doc("As it is today.")]
    plan: Annotated[HoursState, doc("With this plan.")]
    of_mean: Annotated[
        HoursState | None, doc("With the plan for the mean rates at the same balance; null where the sweep made none.")
    ]
    highest: Annotated[
        Count, doc("The most bytes per second, in or out, of any broker in any hour, today or with this plan.")
    ]
    brokers: Annotated[tuple[BrokerHoursRow, ...], doc("Every broker's hours, by id.")]
    months: Annotated[
        tuple[MonthOfGrowthRow, ...],
        doc("Now and each coming month, as many as report.growth.months says, else 12; empty where no topic grows."),
    ]


class CrossRackState(Section, frozen=True, kw_only=True):
    """What goes from rack to rack under one assignment, by the mean rates."""

    replication: Annotated[Count, doc("Bytes an hour that followers fetch from leaders in other racks.")]
    consumers: Annotated[
        Count | None, doc("Bytes an hour that consumers read from other racks; null where traffic.consumers isn't set.")
    ]
    money_per_month: Annotated[
        NotNegative | None, doc("What both cost in a month of 730.5 hours; null without prices.cross_rack_per_gib.")
    ]


class CrossRackSection(Section, frozen=True, kw_only=True):
    """Traffic between racks."""

    fetch_from: Annotated[FetchFrom, doc("Where consumers read.")]
    today: Annotated[CrossRackState, doc("As it is today.")]
    plan: Annotated[CrossRackState, doc("With this plan.")]
    money_once: Annotated[
        NotNegative | None,
        doc("What the plan's copies from rack to rack cost, once; null without a price, or where sizes are unknown."),
    ]


class LogDirsSection(Section, frozen=True, kw_only=True):
    """The brokers' log dirs."""

    wanted: Annotated[Percentage, doc("The percentage around each log dir's share of its broker's bytes.")]
    bytes_moved: Annotated[Count, doc("Bytes that brokers move between their log dirs, not over the network.")]
    least_bytes_moved: Annotated[Count, doc("The least bytes that any packing as near to the windows moves.")]
    gap_percent: Annotated[NotNegative, doc("How far bytes_moved is above that, in percent.")]
    replicas_moved: Annotated[Count, doc("Replicas that move between log dirs of one broker.")]
    brokers: Annotated[tuple[LogDirsBrokerRow, ...], doc("Every broker whose log dirs are planned, by id.")]
    left_out: Annotated[tuple[LeftOutRow, ...], doc("The brokers whose log dirs are not planned.")]
    moves: Annotated[
        tuple[LogDirMoveRow, ...],
        doc("The replicas that move between log dirs of one broker, by topic, partition and broker."),
    ]

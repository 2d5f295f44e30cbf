"""Types of the values that a plan records, with units and allowed values; and the types it shares with a spec."""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A JSON object of the plan. A default of `None` means that the key is left out. With `omit_defaults=False`, all
    keys are required, and the defaults are for Python code alone.

    `gc=False`, because sections have no cycles: a million replicas are read in 0.5 s instead of 1.2 s.
    """


def doc(text: str) -> Meta:
    """A field's description, for the code and the JSON Schema."""
    return Meta(description=text)


# Kafka's numbers, and all sums of bytes, are 64-bit; ids of brokers and partitions are 32-bit.
LARGEST, LARGEST_ID = 2**63 - 1, 2**31 - 1
# Factors and shares are whole millionths.
PPM = 1_000_000

Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST)]
Whole = Annotated[int, Meta(ge=-LARGEST, le=LARGEST)]
Number = Whole | Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
NotNegative = Count | Annotated[float, Meta(ge=0, le=LARGEST)]

NameText = Annotated[str, Meta(min_length=1)]
SentenceText = Annotated[str, Meta(description="One sentence.")]
TopicName = Annotated[str, Meta(min_length=1, description="Topic name.")]
PartitionId = Annotated[int, Meta(ge=0, le=LARGEST_ID, description="Partition id.")]
BrokerId = Annotated[int, Meta(ge=0, le=LARGEST_ID, description="Broker id.")]
# Keys in JSON are strings.
BrokerKey = Annotated[str, Meta(pattern="^[0-9]+$", description="Broker id.")]

Replicas = Annotated[
    tuple[BrokerId, ...],
    Meta(min_length=1, extra_json_schema={"uniqueItems": True}, description="Broker ids, preferred leader first."),
]
LogDirPath = Annotated[str, Meta(min_length=1, description="Absolute path, or any.")]
LogDirPaths = Annotated[
    tuple[LogDirPath, ...],
    Meta(min_length=1, description="Log dirs, parallel to a replica list; any where Kafka isn't told one."),
]
TopicConfig = Mapping[str, str]

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
UtcTime = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
Percentage = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?%$")]
Window = Annotated[
    str, Meta(pattern=r"^(none|([0-9]+(\.[0-9]+)?% of the way to )?([0-9]+|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?%))$")
]
WindowName = Annotated[str, Meta(description="Name of a window, as in balance.asked.")]


class SpecLimits(Section, frozen=True):
    """The limits, as the YAML sets them; a limit that it doesn't set is left out."""

    bytes_moved: Annotated[Count | None, doc("Bytes copied between brokers.")] = None
    replicas_moved: Annotated[Count | None, doc("Replicas copied.")] = None
    leaders_changed: Annotated[Count | None, doc("Partitions whose leader changes.")] = None
    eta_seconds: Annotated[Count | None, doc("Seconds that copying takes at the throttle.")] = None
    disk_used_ppm: Annotated[Count | None, doc("Millionths of each broker's disk_bytes that it may hold.")] = None
    cross_rack_bytes: Annotated[Count | None, doc("Bytes copied from rack to rack.")] = None
    broker_offline: Annotated[Count | None, doc("Partitions that the failure of any one broker takes offline.")] = None
    broker_refused: Annotated[
        Count | None, doc("Partitions that refuse writes with acks=all when any one broker fails.")
    ] = None
    rack_offline: Annotated[Count | None, doc("Partitions that the failure of any one rack takes offline.")] = None
    rack_refused: Annotated[
        Count | None, doc("Partitions that refuse writes with acks=all when any one rack fails.")
    ] = None
    gap_ppm: Annotated[Count | None, doc("Millionths of what is copied that may be above the proven minimum.")] = None
    hours_above_capacity: Annotated[
        Count | None, doc("Hours of the week, of each broker, with more traffic than capacity.network.")
    ] = None
    worst_hour_bytes_per_sec: Annotated[
        Count | None, doc("Bytes per second, in or out, of any broker in any hour of the week.")
    ] = None
    p99_hour_bytes_per_sec: Annotated[
        Count | None, doc("Bytes per second, in or out, that 99 % of all hours of the brokers that stay don't exceed.")
    ] = None
    months_until_full: Annotated[
        Count | None, doc("The fewest months until a broker's disk is above its limit, as topics grow.")
    ] = None

    def on_disk(self, disk_bytes: int) -> int:
        """Bytes that a broker with a disk of `disk_bytes` may hold: all of it if `disk_used` isn't set."""
        return disk_bytes if self.disk_used_ppm is None else disk_bytes * self.disk_used_ppm // PPM


class LeaderRacksRow(Section, frozen=True):
    """One rule on the racks that partitions are led in."""

    topics: Annotated[str, doc("Shell-style pattern of topic names.")]
    prefer: Annotated[tuple[str, ...], doc("Racks, the most preferred first.")]


class ReplicationFactorRow(Section, frozen=True):
    """One rule that sets a replication factor."""

    topics: Annotated[str, doc("Shell-style pattern of topic names.")]
    replication_factor: Annotated[Positive, doc("Replicas of each partition.")]


class DerivedRow(Section, frozen=True):
    """One setting that the YAML leaves out."""

    key: Annotated[str, doc("The key of the YAML that changes it.")]
    value: Annotated[str, doc("The value, as the YAML takes it.")]
    why: Annotated[str, doc("Where it comes from.")]


class InputRow(Section, frozen=True):
    """One file that the plan was made from."""

    path: Annotated[str, doc("As written, relative to the YAML.")]
    sha256: Annotated[Sha256, doc("SHA-256 of its bytes.")]


class StatedRateRow(Section, frozen=True):
    """One rate that the YAML states."""

    topics: Annotated[str, doc("Shell-style pattern of topic names; the first that matches a topic counts.")]
    partition: Annotated[
        Count | None, doc("Partition id; null for all partitions together, each of which has an equal share.")
    ]
    bytes_in_per_sec: Annotated[Count | None, doc("What producers write; null where not stated.")]
    bytes_out_per_sec: Annotated[Count | None, doc("What consumers read; null where not stated.")]


class PlacementRuleRow(Section, frozen=True):
    """One rule of placement."""

    topics: Annotated[str, doc("Shell-style pattern of topic names.")]
    broker_set: Annotated[str, doc("The name of the set in the YAML.")]
    brokers: Annotated[tuple[BrokerId, ...], doc("The brokers of the set: these topics may use no others.")]
    exclusive: Annotated[bool, doc("Whether no other topic may use them.")]


# What topics of an `apart` rule don't share. LEADERS: no broker or rack leads topics of two patterns.
ApartBy = Literal["broker", "rack", "broker_leaders", "rack_leaders"]
LEADERS = "_leaders"


# It has sides once these are chosen.
class Apart(Section, frozen=True, omit_defaults=False):
    """Topics of which no two patterns' share a broker, or a rack, and the brokers that each has."""

    topics: Annotated[tuple[str, ...], doc("Shell-style patterns of topic names.")]
    by: Annotated[ApartBy, doc("What they don't share.")] = "broker"
    sides: Annotated[
        tuple[tuple[BrokerId, ...], ...], doc("The brokers that each pattern's topics have: chosen for the plan.")
    ] = ()
    proven: Annotated[bool, doc("Whether no other sides, as even, let a plan copy less.")] = False


class TopicPartition(Section, frozen=True):
    """One partition of a topic."""

    topic: TopicName
    partition: PartitionId

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition id."""
        return self.topic, self.partition

    @property
    def name(self) -> str:
        """The partition's name as Kafka's tools print it."""
        return f"{self.topic}-{self.partition}"


class LogDirMoveRow(TopicPartition, frozen=True):
    """One replica that moves between log dirs of its broker."""

    broker: Annotated[BrokerId, doc("The broker that keeps it.")]
    log_dir_before: Annotated[str, doc("Today's log dir.")]
    log_dir: Annotated[str, doc("The log dir after the plan.")]
    size_bytes: Annotated[Count, doc("Bytes of the replica on this broker.")]


class LogDirLoad(Section, frozen=True):
    """What a log dir holds."""

    replicas: Annotated[Count, doc("Replicas.")]
    size_bytes: Annotated[Count, doc("Bytes of all replicas.")]


class LogDirRow(Section, frozen=True, kw_only=True):
    """One log dir of a broker."""

    path: Annotated[str, doc("Absolute path.")]
    error: Annotated[
        str | None,
        doc("Kafka's name for what is wrong with it; null where nothing is. A log dir with an error gets nothing."),
    ]
    disk_bytes: Annotated[Count | None, doc("Bytes that it has room for; null where not stated.")]
    least_bytes: Annotated[
        Count | None, doc("The least bytes that it should hold; null with an error, or if it is cordoned.")
    ]
    most_bytes: Annotated[
        Count | None, doc("The most bytes that it should hold; null with an error, or if it is cordoned.")
    ]
    before: Annotated[LogDirLoad, doc("What it holds today.")]
    after: Annotated[LogDirLoad, doc("What it holds after the plan.")]
    bytes_in: Annotated[Count, doc("Bytes that come to it from other log dirs and other brokers.")]
    bytes_out: Annotated[Count, doc("Bytes that go from it to other log dirs.")]

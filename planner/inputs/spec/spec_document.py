"""A spec's YAML together with what follows from several of its keys: brokers and racks after the change, and the like.

Rules ask for these again and again, so each is worked out once, when it is first asked for. So a rule whose keys have
errors, which doesn't run, needs none of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.yaml_source import Document, Path
from planner.model.amounts import parse_bytes, parse_bytes_per_sec, unless_none
from planner.model.cluster import Broker, Config, LogDir
from planner.model.document_fields import Apart, LeaderRacksRow, PlacementRuleRow, ReplicationFactorRow, StatedRateRow
from planner.model.spec import BrokerClass, NewPartitions, Rebalance, TopicFilter, first_rule

# The keys that `target_brokers` reads. A rule that uses it must not run if one of them has errors.
TARGET_KEYS = (
    "cluster.brokers",
    "changes.add_brokers",
    "changes.remove_brokers",
    "changes.replace_brokers",
    "changes.set_racks",
)

# Caps per broker that platforms publish (docs/caps.md has the pages): the default of `max_replicas` for brokers whose
# capacity states none. Above its cap, MSK refuses updates.
_MSK_SIZES = {"large": 1500, "xlarge": 1500, "2xlarge": 3000, "4xlarge": 6000, "8xlarge": 6000, "12xlarge": 6000}
PROFILES: Mapping[str, int] = {
    "msk.t3.small": 300,
    **{f"msk.{family}.{size}": cap for family in ("m5", "m7g") for size, cap in _MSK_SIZES.items()},
    "msk.m5.16xlarge": 6000,
    "msk.m5.24xlarge": 6000,
    "msk.m7g.16xlarge": 6000,
    "confluent-platform": 4000,
    "strimzi": 10_000,
}
# Platforms that place replicas themselves, by the beginning of their names.
REFUSED = {
    "msk.express": "Amazon MSK places the replicas of Express brokers itself",
    "confluent-cloud": "Confluent Cloud places replicas itself",
}

# The keys of rates in `cluster.rates` and in partitions.
RATES = ("bytes_in", "bytes_out")

# The changes that need no other moves: these make new partitions, or name the brokers that take over.
_WITHOUT_MOVES = {"create_topics", "add_partitions", "replace_brokers", "demote_brokers"}


@dataclass(frozen=True)
class SpecDocument(Document):
    """The YAML that the schema accepts at the keys asked for. `assignment` has today's topics, none while unknown.

    `cordoned` are the cordoned log dirs by broker, as state files have them; those that the YAML states count first.
    A broker that joins may already be live, and cordoned until then.
    """

    assignment: Assignment = field(default_factory=Assignment)
    cordoned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def brokers_today(self) -> tuple[Broker, ...]:
        """`cluster.brokers`, in the file's order."""
        return tuple(self._broker(item) for _, item in self.items("cluster", "brokers"))

    @cached_property
    def added_brokers(self) -> tuple[Broker, ...]:
        """`changes.add_brokers`, in the file's order."""
        return tuple(self._broker(item) for _, item in self.items("changes", "add_brokers"))

    def _broker(self, item: Mapping[str, Any]) -> Broker:
        """A broker with its own capacity, or that of its class. A rule reports an unknown class."""
        capacity = item.get("capacity") or self.get("cluster", "broker_classes", item.get("class", "")) or {}
        broker = self._broker_class(item.get("class", ""), capacity).broker(item["id"], item.get("rack"))
        cordoned = tuple(item.get("cordoned_log_dirs", self.cordoned.get(item["id"], ())))
        return replace(broker, log_dirs=broker_log_dirs(item), cordoned_log_dirs=cordoned)

    @cached_property
    def broker_classes(self) -> tuple[BrokerClass, ...]:
        """`cluster.broker_classes`, in the file's order."""
        classes = (self.get("cluster", "broker_classes") or {}).items()
        return tuple(self._broker_class(name, capacity) for name, capacity in classes)

    def _broker_class(self, name: str, capacity: Mapping[str, Any]) -> BrokerClass:
        """The capacity that a class or a single broker states. Its cap on replicas may come from `cluster.profile`."""
        profile = PROFILES.get(self.get("cluster", "profile") or "")
        return BrokerClass(
            name,
            disk_bytes=unless_none(capacity.get("disk"), parse_bytes),
            network_bytes_per_sec=unless_none(capacity.get("network"), parse_bytes_per_sec),
            max_replicas=capacity.get("max_replicas", profile),
            max_leaders=capacity.get("max_leaders"),
            max_disk_bytes=unless_none(capacity.get("max_disk"), parse_bytes),
        )

    @cached_property
    def written_brokers(self) -> tuple[tuple[Path, Mapping[str, Any]], ...]:
        """The path and value of each item of `cluster.brokers` and of `changes.add_brokers`."""
        return (*self.items("cluster", "brokers"), *self.items("changes", "add_brokers"))

    @cached_property
    def replacements(self) -> tuple[tuple[int, int], ...]:
        """`changes.replace_brokers` as (old id, new id), in the file's order."""
        return tuple((int(old), new) for old, new in (self.get("changes", "replace_brokers") or {}).items())

    @cached_property
    def set_racks(self) -> tuple[tuple[int, str], ...]:
        """`changes.set_racks` as (id, rack), in the file's order."""
        return tuple((int(broker), rack) for broker, rack in (self.get("changes", "set_racks") or {}).items())

    @cached_property
    def joining_brokers(self) -> tuple[Broker, ...]:
        """The added brokers, and replacements that aren't listed, with the racks and disks of the replaced brokers."""
        today = {broker.id: broker for broker in self.brokers_today}
        listed_ids = {*today, *(broker.id for broker in self.added_brokers)}
        pairs = [(today.get(old, Broker(old)), new) for old, new in self.replacements if new not in listed_ids]
        inherited = {new: replace(old, id=new, cordoned_log_dirs=self.cordoned.get(new, ())) for old, new in pairs}
        return (*self.added_brokers, *inherited.values())

    @cached_property
    def leaving_brokers(self) -> frozenset[int]:
        """The brokers that are removed or replaced, so hold nothing afterwards."""
        removed = self.get("changes", "remove_brokers") or ()
        return frozenset((*removed, *(old for old, _ in self.replacements)))

    @cached_property
    def demoted_brokers(self) -> frozenset[int]:
        """`changes.demote_brokers`, which should lead no partition afterwards."""
        return frozenset(self.get("changes", "demote_brokers") or ())

    @cached_property
    def target_brokers(self) -> tuple[Broker, ...]:
        """The brokers that may hold replicas afterwards, with their racks after the change."""
        racks, brokers = dict(self.set_racks), self.brokers_today + self.joining_brokers
        staying = (each for each in brokers if each.id not in self.leaving_brokers)
        return tuple(replace(each, rack=racks.get(each.id, each.rack)) for each in staying)

    @cached_property
    def racks_after(self) -> dict[int, str | None]:
        """The rack of each target broker after the change, by id."""
        return {broker.id: broker.rack for broker in self.target_brokers}

    @cached_property
    def target_racks(self) -> frozenset[str]:
        """The racks of the target brokers."""
        return frozenset(broker.rack for broker in self.target_brokers if broker.rack is not None)

    def broker_set(self, name: str) -> tuple[int, ...]:
        """The ids in one of `broker_sets`: as listed, or the brokers of a class, or of a rack after the change."""
        match self.get("broker_sets", name):
            case {"rack": rack}:
                return tuple(broker.id for broker in self.target_brokers if broker.rack == rack)
            case {"class": class_name}:
                classes = {item["id"]: item.get("class") for _, item in self.written_brokers}
                # A replacement that isn't listed has the class of the broker that it replaces.
                classes = {new: classes.get(old) for old, new in self.replacements} | classes
                return tuple(broker for broker, of_class in classes.items() if of_class == class_name)
            case listed:
                return tuple(listed or ())

    @cached_property
    def placement(self) -> tuple[PlacementRuleRow, ...]:
        """`placement`, in the file's order, with the ids of each rule's set."""
        return tuple(
            PlacementRuleRow(
                item["topics"], item["brokers"], self.broker_set(item["brokers"]), item.get("exclusive", False)
            )
            for _, item in self.items("placement")
        )

    def usable_brokers(self, topic: str) -> frozenset[int]:
        """The target brokers that a topic may use by the rules of `placement`."""
        targets = frozenset(self.racks_after)
        if (topic_rule := first_rule(topic, self.placement)) is not None:
            return targets & set(topic_rule.brokers)
        return targets - {broker for rule in self.placement if rule.exclusive for broker in rule.brokers}

    @cached_property
    def leader_racks(self) -> tuple[LeaderRacksRow, ...]:
        """`leader_racks`, in the file's order."""
        return tuple(LeaderRacksRow(item["topics"], tuple(item["prefer"])) for _, item in self.items("leader_racks"))

    @cached_property
    def apart(self) -> tuple[tuple[Path, Apart], ...]:
        """The rules of `apart`, in the file's order, each with the path of its patterns."""
        return tuple(
            (path, Apart(tuple(group)))
            if isinstance(group, list)
            else ((*path, "topics"), Apart(tuple(group["topics"]), by=group["by"]))
            for path, group in self.items("apart")
        )

    @cached_property
    def together(self) -> tuple[tuple[Path, tuple[str, ...]], ...]:
        """The groups of `together`, in the file's order: the path of the patterns, and the patterns."""
        return tuple(
            (path, tuple(group)) if isinstance(group, list) else ((*path, "topics"), tuple(group["topics"]))
            for path, group in self.items("together")
        )

    @cached_property
    def rack_aware(self) -> bool:
        """False if `rack_aware` is `disabled`."""
        return bool(self.get("rack_aware") != "disabled")

    @cached_property
    def topic_filter(self) -> TopicFilter:
        """`topics`; by default, all topics."""
        section = self.get("topics") or {}
        return TopicFilter(
            **{key: tuple(section[key]) for key in ("include", "exclude", "on_brokers") if key in section}
        )

    @cached_property
    def knows_sizes(self) -> bool:
        """True if a state file, a load profile, or any inline partition gives sizes."""
        source = self.get("cluster", "state", "sizes") or self.get("cluster", "load")
        return source is not None or "size" in self._inline_keys

    def knows_traffic(self, window: str) -> bool:
        """True if any rate is stated for the window `network_in` or `network_out` of `balance`."""
        source = self.get("cluster", "rates") or self.get("cluster", "load")
        has_rates = bool(source) or "bytes_in" in self._inline_keys
        return has_rates or (window == "network_out" and "bytes_out" in self._inline_keys)

    @cached_property
    def _inline_keys(self) -> set[str]:
        """The keys that any partition in `cluster.topics` states."""
        rows = (row for topic in self.get("cluster", "topics") or () for row in topic["partitions"])
        return {key for row in rows for key in row}

    @cached_property
    def stated_rates(self) -> tuple[StatedRateRow, ...]:
        """The rates of whole topics (`cluster.rates`), in the file's order; then of partitions (`cluster.topics`)."""
        of_topics = (StatedRateRow(item["topics"], None, *_rates(item)) for item in self.get("cluster", "rates") or ())
        of_partitions = (
            StatedRateRow(topic["name"], number, *_rates(item))
            for topic in self.get("cluster", "topics") or ()
            for number, item in enumerate(topic["partitions"])
            if any(key in item for key in RATES)
        )
        return (*of_topics, *of_partitions)

    @cached_property
    def config_defaults(self) -> Config:
        """`cluster.config_defaults`: what topics inherit."""
        return config(self.get("cluster", "config_defaults") or {})

    @cached_property
    def rebalance(self) -> Rebalance:
        """`changes.rebalance`, or its default.

        The default is `none` if the only changes are new partitions, replaced brokers or demoted brokers, because these
        need no other moves. Otherwise it is `all`.
        """
        changes = self.get("changes") or {}
        if "rebalance" in changes:
            stated: Rebalance = changes["rebalance"]
            return stated
        keys = {key for key, value in changes.items() if value}
        added = {broker["id"] for broker in changes.get("add_brokers", ())}
        if added <= set(changes.get("replace_brokers", {}).values()):
            keys.discard("add_brokers")
        return "none" if keys and keys <= _WITHOUT_MOVES else "all"

    @cached_property
    def created_topics(self) -> tuple[NewPartitions, ...]:
        """`changes.create_topics`, in the file's order."""
        return tuple(
            NewPartitions(
                item["name"],
                0,
                item["partitions"],
                item["replication_factor"],
                config(item.get("config") or {}),
                *stated_load(item),
            )
            for _, item in self.items("changes", "create_topics")
        )

    @cached_property
    def added_partitions(self) -> tuple[NewPartitions, ...]:
        """`changes.add_partitions`, in the file's order, without topics that don't exist.

        New partitions have as many replicas as the topic's first one, because Kafka accepts no other number.
        """
        partitions_of = {topic.name: topic.partitions for topic in self.assignment.topics}
        return tuple(
            NewPartitions(item["topic"], len(today), item["partitions"], len(today[0].replicas), (), *stated_load(item))
            for _, item in self.items("changes", "add_partitions")
            if (today := partitions_of.get(item["topic"], ()))
        )

    @cached_property
    def replication_factor_changes(self) -> tuple[ReplicationFactorRow, ...]:
        """`changes.set_replication_factor`, in the file's order."""
        items = self.items("changes", "set_replication_factor")
        return tuple(ReplicationFactorRow(item["topics"], item["replication_factor"]) for _, item in items)

    @cached_property
    def replicas_after(self) -> dict[str, int]:
        """The most replicas of a partition after the change, by topic, without topics that are being deleted."""
        changes = self.replication_factor_changes
        today = {
            topic.name: max(len(partition.replicas) for partition in topic.partitions)
            for topic in self.assignment.topics
            if not topic.deleting
        }
        changed = {name: rule.replication_factor for name in today if (rule := first_rule(name, changes)) is not None}
        return today | changed | {new.topic: new.replication_factor for new in self.created_topics}

    @cached_property
    def variants(self) -> tuple[tuple[Mapping[str, Any], "SpecDocument"], ...]:
        """`sweep.variants`, each with the document in which the variant's changes replace `changes`."""
        items = self.items("sweep", "variants")
        return tuple((item, self.instead(("changes",), (*path, "changes"))) for path, item in items)


def broker_log_dirs(item: Mapping[str, Any]) -> tuple[LogDir, ...]:
    """A broker's `log_dirs`, each a path or a mapping of path and size, in the file's order."""
    listed = ({"path": each} if isinstance(each, str) else each for each in item.get("log_dirs", ()))
    return tuple(LogDir(each["path"], unless_none(each.get("size"), parse_bytes)) for each in listed)


def stated_load(item: Mapping[str, Any]) -> tuple[int, int, int]:
    """The size and the rates that an item states, 0 if it doesn't."""
    bytes_in, bytes_out = (parse_bytes_per_sec(item.get(key, 0)) for key in RATES)
    return parse_bytes(item.get("size", 0)), bytes_in, bytes_out


def config(values: Mapping[str, Any]) -> Config:
    """A configuration with all values as text, because Kafka's are. YAML's booleans are written like Kafka's."""
    return tuple(
        sorted((key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in values.items())
    )


def _rates(item: Mapping[str, Any]) -> Iterator[int | None]:
    return (parse_bytes_per_sec(item[key]) if key in item else None for key in RATES)

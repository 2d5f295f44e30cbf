"""Makes the model's values from a document that the schema accepts: without units, with defaults filled in."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.inputs.cluster_load import with_rates
from planner.inputs.importers.state_parts import Assignment, AssignmentEntry
from planner.inputs.spec import yaml_sections
from planner.inputs.yaml_source import Document, Path, key_text
from planner.model.amounts import parse_bytes, parse_bytes_per_sec
from planner.model.cluster import Apart, Broker, Cluster, Config, LogDirs, Partition, Topic
from planner.model.document_fields import (
    InputRow,
    LeaderRacksRow,
    PlacementRuleRow,
    ReplicationFactorRow,
    StatedRateRow,
)
from planner.model.spec import AIMS, Changes, NewPartitions, Rebalance, Spec, Sweep, TopicFilter, Variant

# The keys that `target_brokers` reads. A rule that uses it must not run if one of them has errors.
TARGET_KEYS = (
    "cluster.brokers",
    "changes.add_brokers",
    "changes.remove_brokers",
    "changes.replace_brokers",
    "changes.set_racks",
)

# The keys of rates in `cluster.rates` and in partitions.
RATES = ("bytes_in", "bytes_out")


@dataclass(frozen=True)
class Sizes:
    """Whether sizes are known, and how many partitions have no size although others have one."""

    known: bool = False
    unsized: int = 0


def build_spec(
    document: Document,
    assignment: Assignment,
    sizes: Sizes,
    inputs: tuple[InputRow, ...],
    log_dirs: LogDirs,
    described: yaml_sections.Described,
) -> Spec:
    """The spec. The document and the assignment have passed every check."""
    rates = tuple(stated_rates(document))
    return Spec(
        cluster=Cluster(
            name=document.get("cluster", "name"),
            brokers=brokers_today(document),
            topics=with_rates(assignment.topics, rates),
            bootstrap_servers=tuple(document.get("cluster", "bootstrap_servers") or ()),
            sizes_known=sizes.known,
            unsized=sizes.unsized,
            log_dirs=log_dirs,
            config_defaults=config_defaults(document),
            rates=rates,
        ),
        changes=_changes(document, assignment.topics),
        topics=topic_filter(document),
        placement=placement(document),
        leader_racks=leader_racks(document),
        apart=tuple(rule for _, rule in apart(document)),
        together=tuple(patterns for _, patterns in together(document)),
        rack_aware=rack_aware(document),
        racks_as_today=document.get("rack_aware") == "as_today",
        balance=yaml_sections.balance(document, sizes.known),
        log_dirs=yaml_sections.log_dirs_tolerance(document),
        budget=yaml_sections.budget(document),
        limits=yaml_sections.limits(document),
        sweep=_sweep(document, assignment.topics),
        execution=yaml_sections.execution(document),
        resilience=document.get("resilience", "survive") or "none",
        growth=yaml_sections.monthly(document),
        sizing=yaml_sections.sizing(document),
        consumers=yaml_sections.groups(document, described),
        report=yaml_sections.report_sections(document),
        captured_at=document.get("cluster", "captured_at"),
        valid_for_seconds=yaml_sections.valid_for_seconds(document),
        inputs=inputs,
    )


def brokers_today(document: Document) -> tuple[Broker, ...]:
    """`cluster.brokers`, in the file's order."""
    return tuple(_broker(document, item) for item in document.get("cluster", "brokers") or ())


def added_brokers(document: Document) -> tuple[Broker, ...]:
    """`changes.add_brokers`, in the file's order."""
    return tuple(_broker(document, item) for item in document.get("changes", "add_brokers") or ())


def written_brokers(document: Document) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The path and value of each item of `cluster.brokers` and of `changes.add_brokers`."""
    yield from document.items("cluster", "brokers")
    yield from document.items("changes", "add_brokers")


def replacements(document: Document) -> tuple[tuple[int, int], ...]:
    """`changes.replace_brokers` as (old id, new id), in the file's order."""
    return tuple((int(old), new) for old, new in (document.get("changes", "replace_brokers") or {}).items())


def set_racks(document: Document) -> tuple[tuple[int, str], ...]:
    """`changes.set_racks` as (id, rack), in the file's order."""
    return tuple((int(broker), rack) for broker, rack in (document.get("changes", "set_racks") or {}).items())


def joining_brokers(document: Document) -> tuple[Broker, ...]:
    """The added brokers, and replacements that aren't listed, with the racks and disks of the replaced brokers."""
    added = added_brokers(document)
    today = {broker.id: broker for broker in brokers_today(document)}
    known = {*today, *(broker.id for broker in added)}
    pairs = [(today.get(old, Broker(old)), new) for old, new in replacements(document) if new not in known]
    inherited = {new: replace(old, id=new, cordoned_log_dirs=()) for old, new in pairs}
    return (*added, *inherited.values())


def leaving_brokers(document: Document) -> frozenset[int]:
    """The brokers that are removed or replaced, so hold nothing afterwards."""
    removed = document.get("changes", "remove_brokers") or ()
    return frozenset((*removed, *(old for old, _ in replacements(document))))


def demoted_brokers(document: Document) -> set[int]:
    """`changes.demote_brokers`, which should lead no partition afterwards."""
    return set(document.get("changes", "demote_brokers") or ())


def target_brokers(document: Document) -> tuple[Broker, ...]:
    """The brokers that may hold replicas afterwards, with their racks after the change."""
    racks, leaving = dict(set_racks(document)), leaving_brokers(document)
    brokers = brokers_today(document) + joining_brokers(document)
    return tuple(replace(each, rack=racks.get(each.id, each.rack)) for each in brokers if each.id not in leaving)


def racks_after(document: Document) -> dict[int, str | None]:
    """The rack of each target broker after the change, by id."""
    return {broker.id: broker.rack for broker in target_brokers(document)}


def target_racks(document: Document) -> set[str]:
    """The racks of the target brokers."""
    return {broker.rack for broker in target_brokers(document) if broker.rack is not None}


def broker_set(document: Document, name: str) -> tuple[int, ...]:
    """The ids in one of `broker_sets`: as listed, or the brokers of a class, or of a rack after the change."""
    match document.get("broker_sets", name):
        case {"rack": rack}:
            return tuple(broker.id for broker in target_brokers(document) if broker.rack == rack)
        case {"class": wanted}:
            classes = {item["id"]: item.get("class") for _, item in written_brokers(document)}
            # A replacement that isn't listed has the class of the broker that it replaces.
            classes = {new: classes.get(old) for old, new in replacements(document)} | classes
            return tuple(broker for broker, of_class in classes.items() if of_class == wanted)
        case listed:
            return tuple(listed or ())


def placement(document: Document) -> tuple[PlacementRuleRow, ...]:
    """`placement`, in the file's order, with the ids of each rule's set."""
    return tuple(
        PlacementRuleRow(
            item["topics"], item["brokers"], broker_set(document, item["brokers"]), item.get("exclusive", False)
        )
        for item in document.get("placement") or ()
    )


def leader_racks(document: Document) -> tuple[LeaderRacksRow, ...]:
    """`leader_racks`, in the file's order."""
    return tuple(LeaderRacksRow(item["topics"], tuple(item["prefer"])) for item in document.get("leader_racks") or ())


def apart(document: Document) -> Iterator[tuple[Path, Apart]]:
    """The rules of `apart`, in the file's order, each with the path of its patterns."""
    for path, group in document.items("apart"):
        if isinstance(group, list):
            yield path, Apart(tuple(group))
        else:
            yield (*path, "topics"), Apart(tuple(group["topics"]), by=group["by"])


def together(document: Document) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The groups of `together`, in the file's order: the path of the patterns, and the patterns."""
    for path, group in document.items("together"):
        listed = isinstance(group, list)
        yield path if listed else (*path, "topics"), tuple(group if listed else group["topics"])


def rack_aware(document: Document) -> bool:
    """False if `rack_aware` is `disabled`."""
    return bool(document.get("rack_aware") != "disabled")


def topic_filter(document: Document) -> TopicFilter:
    """`topics`; by default, all topics."""
    chosen = document.get("topics") or {}
    return TopicFilter(**{key: tuple(chosen[key]) for key in ("include", "exclude", "on_brokers") if key in chosen})


def inline_assignment(document: Document) -> Assignment:
    """`cluster.topics` as topics sorted by name, and one entry per partition in the file's order."""
    entries: list[AssignmentEntry] = []
    topics: list[Topic] = []
    for topic_path, item in document.items("cluster", "topics"):
        partitions: list[Partition] = []
        for number, (path, row) in enumerate(document.items(*topic_path, "partitions")):
            replicas, isr = tuple(row["replicas"]), tuple(row["isr"]) if "isr" in row else None
            leader = row.get("leader", replicas[0])
            partitions.append(Partition(number, replicas, None if leader == "none" else leader, isr, *_load(row)))
            entries.append(AssignmentEntry(document.place(path), key_text(path), item["name"], partitions[-1]))
        config, effective = (_config(item.get(key) or {}) for key in ("config", "effective_config"))
        deleting = item.get("marked_for_deletion", False)
        topics.append(Topic(item["name"], tuple(partitions), config, deleting, effective))
    return Assignment(tuple(sorted(topics, key=lambda topic: topic.name)), tuple(entries))


def inline_sizes(document: Document) -> Sizes:
    """The sizes of inline partitions; they are known if any partition has one."""
    topics = document.get("cluster", "topics") or ()
    sized = ["size" in partition for topic in topics for partition in topic["partitions"]]
    return Sizes(True, sized.count(False)) if any(sized) else Sizes()


def stated_rates(document: Document) -> Iterator[StatedRateRow]:
    """The rates of whole topics (`cluster.rates`), in the file's order; then those of partitions (`cluster.topics`)."""
    for item in document.get("cluster", "rates") or ():
        yield StatedRateRow(item["topics"], None, *_rates(item))
    for topic in document.get("cluster", "topics") or ():
        for number, item in enumerate(topic["partitions"]):
            if any(key in item for key in RATES):
                yield StatedRateRow(topic["name"], number, *_rates(item))


def _rates(item: Mapping[str, Any]) -> Iterator[int | None]:
    return (parse_bytes_per_sec(item[key]) if key in item else None for key in RATES)


def _broker(document: Document, item: Mapping[str, Any]) -> Broker:
    """A broker with its own capacity, or that of its class. A rule reports an unknown class."""
    capacity = item.get("capacity") or document.get("cluster", "broker_classes", item.get("class", "")) or {}
    made = yaml_sections.broker_class(document, item.get("class", ""), capacity).broker(item["id"], item.get("rack"))
    cordoned = tuple(item.get("cordoned_log_dirs", ()))
    return replace(made, log_dirs=yaml_sections.broker_log_dirs(item), cordoned_log_dirs=cordoned)


def config_defaults(document: Document) -> Config:
    """`cluster.config_defaults`: what topics inherit."""
    return _config(document.get("cluster", "config_defaults") or {})


def _config(config: Mapping[str, Any]) -> Config:
    """A configuration with all values as text, because Kafka's are. YAML's booleans are written like Kafka's."""
    return tuple(
        sorted((key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in config.items())
    )


def _changes(document: Document, topics: Sequence[Topic]) -> Changes:
    changes = document.get("changes") or {}
    return Changes(
        add_brokers=joining_brokers(document),
        remove_brokers=tuple(changes.get("remove_brokers", ())),
        replace_brokers=replacements(document),
        set_racks=set_racks(document),
        set_replication_factor=replication_factor_changes(document),
        new_partitions=(*created_topics(document), *added_partitions(document, topics)),
        demote_brokers=tuple(changes.get("demote_brokers", ())),
        rebalance=rebalance(changes),
    )


_WITHOUT_MOVES = {"create_topics", "add_partitions", "replace_brokers", "demote_brokers"}


def rebalance(changes: Mapping[str, Any]) -> Rebalance:
    """`rebalance`, or its default.

    The default is `none` if the only changes are new partitions, replaced brokers or demoted brokers, because these
    need no other moves. Otherwise it is `all`.
    """
    if "rebalance" in changes:
        stated: Rebalance = changes["rebalance"]
        return stated
    asked = {key for key, value in changes.items() if value}
    if {broker["id"] for broker in changes.get("add_brokers", ())} <= set(changes.get("replace_brokers", {}).values()):
        asked.discard("add_brokers")
    return "none" if asked and asked <= _WITHOUT_MOVES else "all"


def created_topics(document: Document) -> tuple[NewPartitions, ...]:
    """`changes.create_topics`, in the file's order."""
    return tuple(
        NewPartitions(
            new["name"], 0, new["partitions"], new["replication_factor"], _config(new.get("config") or {}), *_load(new)
        )
        for new in document.get("changes", "create_topics") or ()
    )


def added_partitions(document: Document, topics: Iterable[Topic]) -> tuple[NewPartitions, ...]:
    """`changes.add_partitions`, in the file's order, without topics that don't exist.

    New partitions have as many replicas as the topic's first one, because Kafka accepts no other number.
    """
    known = {topic.name: topic.partitions for topic in topics}
    return tuple(
        NewPartitions(item["topic"], len(today), item["partitions"], len(today[0].replicas), (), *_load(item))
        for item in document.get("changes", "add_partitions") or ()
        if (today := known.get(item["topic"], ()))
    )


def _load(item: Mapping[str, Any]) -> tuple[int, int, int]:
    """The size and the rates that an item states, 0 if it doesn't."""
    written, read = (parse_bytes_per_sec(item.get(key, 0)) for key in RATES)
    return parse_bytes(item.get("size", 0)), written, read


def replication_factor_changes(document: Document) -> tuple[ReplicationFactorRow, ...]:
    """`changes.set_replication_factor`, in the file's order."""
    items = document.get("changes", "set_replication_factor") or ()
    return tuple(ReplicationFactorRow(item["topics"], item["replication_factor"]) for item in items)


def _sweep(document: Document, topics: Sequence[Topic]) -> Sweep:
    sweep = document.get("sweep") or {}
    return Sweep(
        candidates=sweep.get("candidates"),
        seed=sweep.get("seed", 0),
        grid=yaml_sections.grid(document),
        aims=tuple(sweep.get("aims", AIMS)),
        choice=yaml_sections.choice(document),
        variants=tuple(Variant(item["name"], _changes(view, topics)) for item, view in variants(document)),
        growth=yaml_sections.growth(document),
        solved=sweep.get("solved"),
        scores=sweep.get("scores"),
    )


def variants(document: Document) -> Iterator[tuple[Mapping[str, Any], Document]]:
    """`sweep.variants`, each with the document in which the variant's changes replace `changes`."""
    for path, item in document.items("sweep", "variants"):
        yield item, document.instead(("changes",), (*path, "changes"))

"""Merges several sources of one cluster's state, and notes where they differ.

Precedence: brokers' answers (`kafka-topics --describe`, a live cluster) come before znodes, and these before documents
(reassignment JSON, replica assignments, Cruise Control). Within a kind, the source named first wins. The cluster's
topics and partitions are those of the first kind. Other sources add leaders, ISRs and configurations that are otherwise
unknown, and are compared with the first. Sizes, brokers and running reassignments come from all sources.

`kafka-topics --describe` shows the configuration in force without its origin. A source of topics' own configurations
(`kafka-configs`, znodes, Terraform's state) reveals it: keys that this source doesn't have are inherited.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from planner.inputs.importers.state_parts import (
    Assignment,
    AssignmentEntry,
    LeaderAndIsr,
    Rank,
    RegisteredBroker,
    RunningReassignment,
    StatePart,
    TopicTarget,
    assignment,
    largest_sizes,
    moving_finding,
)
from planner.model.cluster import MIN_INSYNC, Config, Partition, PartitionKey, a_few, largest_min_insync, partition_name
from planner.model.document_fields import LARGEST_ID
from planner.model.errors import Finding, ImportStateError, Place
from planner.model.formats import brokers as named_brokers
from planner.model.formats import counted, first_names


@dataclass(frozen=True)
class Merged:
    """The state of a cluster. `sizes` is None if no source has any. `notes` are sentences about the sources;
    `disagreements` are the notes about two sources that contradict each other.

    `declared_by` is the file of the first target. `config_defaults` is what all topics inherit. `configs_known` is
    False if no source has configurations. `cordoned` are the log dirs of each broker that get no new replica, `*` for
    all. `platform` is the brokers' provider and type, if a source says so.
    """

    assignment: Assignment
    sizes: Mapping[PartitionKey, int] | None
    brokers: tuple[RegisteredBroker, ...]
    only_topics: tuple[str, ...] | None
    targets: tuple[TopicTarget, ...]
    declared_by: str
    notes: tuple[str, ...]
    config_defaults: Config
    configs_known: bool
    cordoned: Mapping[int, tuple[str, ...]]
    platform: str
    disagreements: tuple[str, ...]


@dataclass
class _Configs:
    """Configurations by topic: its own, and others in force of unknown origin. Also the values of each inherited key,
    and the topics whose configurations differ between sources, by the source that counts.
    """

    own: dict[str, Config] = field(default_factory=dict)
    effective: dict[str, Config] = field(default_factory=dict)
    inherited: dict[str, set[str]] = field(default_factory=dict)
    unlike: dict[str, list[str]] = field(default_factory=dict)


def merge(parts: Sequence[StatePart], *, to_targets: bool = False) -> Merged:
    """The parts as one state. ImportStateError if they have no partition, contradict themselves, or are moving.

    A reassignment in progress is refused, with each partition named, unless `to_targets`: then its target is the state.
    """
    by_rank = sorted(parts, key=lambda part: part.rank)
    ranked = [part for part in by_rank if part.entries]
    if not ranked:
        sources = ", ".join(f"{part.file} ({part.title})" for part in parts[:3]) or "nothing"
        allowed = "at least one assignment, such as the output of kafka-topics --describe"
        message = f"no source says where replicas are, only {sources}; allowed: {allowed}"
        raise ImportStateError([Finding(Place(parts[0].file if parts else "state"), "", message)])
    moving = moving_now(parts)
    if moving and not to_targets:
        raise ImportStateError(moving_finding(each) for each in moving.values())
    entries, entry_notes, moving_notes = _entries(parts, ranked, moving)
    configs = _Configs()
    for topic in dict.fromkeys(topic for part in by_rank for topic in part.configs):
        _merge_topic(topic, [part for part in by_rank if topic in part.configs], configs)
    config_defaults, config_notes = _inherited(by_rank, configs)
    merged = assignment(entries, configs.own, frozenset().union(*(part.deleting for part in parts)), configs.effective)
    all_sizes = [part.sizes for part in parts if part.sizes is not None]
    sizes = largest_sizes(chain.from_iterable(each.items() for each in all_sizes)) if all_sizes else None
    brokers, broker_notes = _brokers_seen(by_rank)
    only_topics, topic_notes = _only_topics(parts, {topic.name for topic in merged.topics})
    config_notes += tuple(_config_notes(parts, {topic.name for topic in merged.topics}, ranked[0].file))
    size_notes = _size_notes(merged, ranked[0].file, parts, sizes or {}, moving)
    own_notes = (note for part in parts for note in part.notes)
    disagreements = (*entry_notes, *broker_notes, *size_notes)
    return Merged(
        merged,
        sizes,
        brokers,
        only_topics,
        tuple(target for part in parts for target in part.targets),
        next((part.file for part in parts if part.targets), ""),
        (*own_notes, *moving_notes, *config_notes, *topic_notes, *disagreements),
        config_defaults,
        bool(configs.own or config_defaults),
        {broker: dirs for part in reversed(by_rank) for broker, dirs in part.cordoned.items()},
        next((part.platform for part in parts if part.platform), ""),
        disagreements,
    )


def _entries(
    parts: Sequence[StatePart], ranked: Sequence[StatePart], moving: Mapping[PartitionKey, RunningReassignment]
) -> tuple[Iterable[AssignmentEntry], list[str], tuple[str, ...]]:
    if len(ranked) == 1 and ranked[0].leaders_known and not moving:
        return ranked[0].entries, [], ()  # there may be millions, so they are returned as they are
    primary = [part for part in ranked if part.rank == ranked[0].rank]
    chosen, duplicates, repeats, owners = _chosen(primary)
    entries, moving_notes = reassigned(_with_leaders(chosen, parts, ranked), moving)
    notes = _disagreements(chosen, owners, [*repeats, *ranked[len(primary) :]], moving)
    return [*entries, *duplicates], notes, moving_notes


def _chosen(
    primary: Sequence[StatePart],
) -> tuple[dict[PartitionKey, AssignmentEntry], list[AssignmentEntry], list[StatePart], dict[str, StatePart]]:
    """The partitions of the sources of the first rank, those that a source has twice, what later sources repeat, and
    each topic's first source.

    If a topic's first source is `complete`, only that source says which partitions exist; otherwise sources add up.
    """
    chosen: dict[PartitionKey, AssignmentEntry] = {}
    duplicates: list[AssignmentEntry] = []
    owners: dict[str, StatePart] = {}
    repeats: list[StatePart] = []
    for part in primary:
        repeated: list[AssignmentEntry] = []
        for entry in part.entries:
            owner, key = owners.setdefault(entry.topic, part), (entry.topic, entry.partition.id)
            if key not in chosen and (owner is part or not owner.complete):
                chosen[key] = entry
            else:
                (duplicates if owner is part else repeated).append(entry)
        if repeated:
            repeats.append(replace(part, entries=tuple(repeated)))
    return chosen, duplicates, repeats, owners


def moving_now(parts: Iterable[StatePart]) -> dict[PartitionKey, RunningReassignment]:
    """Each partition that is being reassigned, as the first source describes it."""
    moving: dict[PartitionKey, RunningReassignment] = {}
    for part in sorted(parts, key=lambda part: part.rank):
        for each in part.moving:
            moving.setdefault((each.topic, each.partition), each)
    return moving


def _with_leaders(
    chosen: Mapping[PartitionKey, AssignmentEntry], parts: Sequence[StatePart], ranked: Sequence[StatePart]
) -> Iterator[AssignmentEntry]:
    """The chosen partitions, with leaders and ISRs from a source that knows them."""
    unknown = {id(entry) for part in ranked if not part.leaders_known for entry in part.entries}
    leaders: dict[PartitionKey, LeaderAndIsr] = {}
    for key, leader_and_isr in (each for part in parts for each in part.leaders.items()):
        leaders.setdefault(key, leader_and_isr)
    for entry in (entry for part in ranked if part.leaders_known for entry in part.entries):
        leaders.setdefault((entry.topic, entry.partition.id), (entry.partition.leader, entry.partition.isr))
    for key, entry in chosen.items():
        leader, isr = leaders.get(key, (entry.partition.leader, entry.partition.isr))
        replicas = entry.partition.replicas
        fits = (leader is None or leader in replicas) and set(isr or ()) <= set(replicas)
        if id(entry) in unknown and key in leaders and fits:
            yield replace(entry, partition=replace(entry.partition, leader=leader, isr=isr))
        else:
            yield entry


def _inherited(by_rank: Sequence[StatePart], configs: _Configs) -> tuple[Config, tuple[str, ...]]:
    """What all topics inherit, by the first source (min.insync.replicas: the largest); and notes on differences."""
    stated_defaults = [dict(part.config_defaults) for part in by_rank]
    defaults = {key: next(iter(values)) for key, values in configs.inherited.items() if len(values) == 1}
    for each in reversed(stated_defaults):
        defaults |= each
    min_insyncs = [*(each.get(MIN_INSYNC) for each in stated_defaults), *configs.inherited.get(MIN_INSYNC, ())]
    least, notes = largest_min_insync(min_insyncs)
    for file, unlike in configs.unlike.items():
        topics = f"{counted(len(unlike), 'topic')} ({first_names(unlike)})"
        notes += (f"sources disagree about the configuration of {topics}: {file} counts",)
    return tuple(sorted((defaults | least).items())), notes


def _merge_topic(topic: str, parts: Sequence[StatePart], merged: _Configs) -> None:
    if len(parts) == 1:  # most often, and there may be a million topics
        merged.own[topic], merged.effective[topic] = parts[0].configs[topic], parts[0].effective_configs.get(topic, ())
        return
    full_parts, own_parts = ([part for part in parts if part.complete is complete] for complete in (True, False))
    values = [
        [dict((*part.configs[topic], *part.effective_configs.get(topic, ()))) for part in group]
        for group in (full_parts, own_parts)
    ]
    in_force, own = (each[0] if each else {} for each in values)
    # What other topics of the same output lack can't be inherited.
    certain = dict(pair for part in full_parts for pair in part.configs[topic] if pair in in_force.items())
    differ = full_parts and own_parts and (own.items() - in_force.items() or certain.keys() - own.keys())
    if differ or any(each != group[0] for group in values for each in group):
        merged.unlike.setdefault(parts[0].file, []).append(topic)
    valid = {key: in_force[key] for key in own if key in in_force}
    config = merged.own[topic] = tuple(sorted((certain | valid if parts[0].complete else own).items()))
    other_values = {key: value for key, value in in_force.items() if key not in {**dict(config), **certain}}
    if not own_parts:
        merged.effective[topic] = tuple(sorted(other_values.items()))
    for key, value in other_values.items() if own_parts else ():
        merged.inherited.setdefault(key, set()).add(value)


def _config_notes(parts: Iterable[StatePart], names: set[str], winner: str) -> Iterator[str]:
    """Notes on configurations of topics that don't exist. If brokers told them and none of the topics does, they are of
    another cluster: ImportStateError. What Terraform declares is compared elsewhere.
    """
    for part in parts:
        unknown = sorted(part.configs.keys() - names) if not part.targets else []
        if unknown and len(unknown) == len(part.configs) and part.rank == Rank.CLUSTER:
            message = f"has configurations of {a_few(unknown)}, unknown to {winner}; allowed: those of the same cluster"
            raise ImportStateError([Finding(Place(part.file), "", message)])
        if unknown:
            yield f"{part.file} has configurations of {a_few(unknown)}, unknown to {winner}: left out"


def _size_notes(
    merged: Assignment,
    winner: str,
    parts: Iterable[StatePart],
    sizes: Mapping[PartitionKey, int],
    moving: Mapping[PartitionKey, RunningReassignment],
) -> Iterator[str]:
    """Notes on sizes of partitions that don't exist, and of replicas on brokers without any, because the sizes may be
    of another time. Sizes of no broker that has replicas are of another cluster: ImportStateError.
    """
    replicas = {(each.topic, each.partition.id): each.partition.replicas for each in merged.entries} if sizes else {}
    unknown = sorted(key for key in sizes if key not in replicas)
    file_of = {broker: part.file for part in parts for broker in part.size_replicas}
    holders = {broker for each in moving.values() for broker in each.removing}
    holders.update(*(entry.partition.replicas for entry in merged.entries if file_of))
    if strangers := file_of.keys() - holders:
        file = file_of[min(strangers)]
        have = "has" if len(strangers) == 1 else "have"
        text = f"has sizes of replicas on {named_brokers(strangers)}, which {have} none in {winner}"
        if len(strangers) == len(file_of):
            raise ImportStateError([Finding(Place(file), "", f"{text}; allowed: sizes of the same cluster")])
        yield f"{file} {text}: of another time or cluster, or of other topics"
    if unknown and len(unknown) < len(sizes):
        by_broker = chain.from_iterable(part.size_replicas.items() for part in parts)
        on = {broker for broker, keys in by_broker if not replicas.keys() >= set(keys)}
        where = f" on {named_brokers(on)}" if on else ""
        left = "plans neither count nor move them, not even off brokers that leave"
        yield f"sizes are given for {_partitions(unknown)}{where}, which {winner} doesn't have: {left}"
    sized = ((key, broker) for part in parts for broker in part.size_replicas for key in part.size_replicas[broker])
    comparable = ((key, broker) for key, broker in sized if broker in holders and key in replicas and key not in moving)
    if astray := sorted({key for key, broker in comparable if broker not in replicas[key]}):
        yield f"sizes of {_partitions(astray)} are of brokers without a replica in {winner}: of another time or cluster"


def _only_topics(parts: Sequence[StatePart], names: set[str]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The topics that may move, and a note about those that don't exist."""
    requested = [(part.file, name) for part in parts for name in part.only_topics or ()]
    if not requested:
        return None, ()
    unknown = [name for _, name in requested if name not in names]
    existing = tuple(dict.fromkeys(name for _, name in requested if name in names))
    if not existing:
        message = f"names {a_few(unknown)}, which the cluster doesn't have; allowed: at least one topic that it has"
        raise ImportStateError([Finding(Place(requested[0][0]), "", message)])
    return existing, (f"{requested[0][0]} names {a_few(unknown)}, which the cluster doesn't have",) if unknown else ()


def _disagreements(
    chosen: Mapping[PartitionKey, AssignmentEntry],
    owners: Mapping[str, StatePart],
    other_parts: Sequence[StatePart],
    moving: Mapping[PartitionKey, RunningReassignment],
) -> list[str]:
    """Notes on how sources that don't count differ: one per source and kind, with the first few partitions."""

    def winner(keys: Iterable[PartitionKey]) -> str:
        files = dict.fromkeys(owners[topic].file for topic, _ in keys if topic in owners)
        return first_names(list(files or dict.fromkeys(part.file for part in owners.values())))

    notes: list[str] = []
    topics = {topic for topic, _ in chosen}
    for part in other_parts:
        partitions = {(entry.topic, entry.partition.id): entry.partition for entry in part.entries}
        extra = [key for key in partitions if key not in chosen]
        shared = [(key, chosen[key].partition, theirs) for key, theirs in partitions.items() if key in chosen]
        unlike = [key for key, ours, theirs in shared if key not in moving and ours.replicas != theirs.replicas]
        unlike_leaders = [
            key
            for key, ours, theirs in shared
            if ours.replicas == theirs.replicas
            and None not in (ours.isr, theirs.isr)
            and (ours.leader, {*(ours.isr or ())}) != (theirs.leader, {*(theirs.isr or ())})
        ]
        listed = {topic for topic, _ in partitions} & topics if part.complete else set()
        lacking = [key for key in chosen if key[0] in listed and key not in partitions]
        who = f"{part.file} ({part.title})"
        for noun, keys in (("the replicas", unlike), ("leaders or ISRs", unlike_leaders)):
            if keys:
                subject = f"{noun} of {_partitions(keys)}"
                winning = winner(keys)
                notes.append(f"{who} disagrees with {winning} about {subject}: {winning} counts")
        if extra:
            notes.append(f"{who} has {_partitions(extra)}, unknown to {winner(extra)}: left out")
        if lacking:
            notes.append(f"{who} lacks {_partitions(lacking)}, known to {winner(lacking)}")
    return notes


def _partitions(keys: Sequence[PartitionKey]) -> str:
    return a_few([partition_name(*key) for key in keys], "partition")


def reassigned(
    entries: Iterable[AssignmentEntry], moving: Mapping[PartitionKey, RunningReassignment]
) -> tuple[list[AssignmentEntry], tuple[str, ...]]:
    """The entries as they will be after the running reassignments, and notes on these."""
    if not moving:
        return list(entries), ()
    moved = []
    for entry in entries:
        partition, isr = entry.partition, entry.partition.isr
        if (move := moving.get((entry.topic, partition.id))) is not None:
            # Afterwards added replicas are in sync, and a removed one no longer leads.
            replicas = target(partition, move)
            leader = partition.leader if partition.leader in replicas else next(iter(replicas), None)
            in_sync = None if isr is None else tuple(each for each in replicas if each in isr or each in move.adding)
            entry = replace(entry, partition=replace(partition, replicas=replicas, leader=leader, isr=in_sync))
        moved.append(entry)
    keys = {(entry.topic, entry.partition.id) for entry in moved}
    missing = [partition_name(*key) for key in moving if key not in keys]
    count = len(moving) - len(missing)
    are, targets = ("partition is", "target") if count == 1 else ("partitions are", "targets")
    then = "run apply.yml once that is reached"
    notes = [f"{count:,} {are} being reassigned: the plan starts from the {targets}; {then}"] if count else []
    if missing:
        notes.append(f"{missing[0]} is being reassigned ({len(missing)} such), but isn't in the assignment")
    return moved, tuple(notes)


def target(partition: Partition, moving: RunningReassignment) -> tuple[int, ...]:
    """The replicas that will stay. Kafka lists the target's replicas first, then those to be removed (KIP-455)."""
    replicas = moving.replicas or partition.replicas
    with_added = (*replicas, *(broker for broker in moving.adding if broker not in replicas))
    return tuple(broker for broker in with_added if broker not in moving.removing)


# The same as `text` in the YAML's schema.
_SIGN = r"[^\s\x00-\x1f\x7f\ud800-\udfff]"

ALLOWED_TEXT = "1 to 200 characters, no control characters, no blanks around them"
TEXT = re.compile(rf"{_SIGN}(?:(?:{_SIGN}| ){{0,198}}{_SIGN})?")


def _brokers_seen(by_rank: Iterable[StatePart]) -> tuple[tuple[RegisteredBroker, ...], tuple[str, ...]]:
    """Each broker once, by id, as the source of the first rank describes it; and notes on other racks in other sources.

    ImportStateError for a rack that a YAML can't contain, because Kafka accepts any text.
    """
    by_id: dict[int, RegisteredBroker] = {}
    notes: list[str] = []
    findings: list[Finding] = []
    for part in by_rank:
        for broker in part.brokers:
            if broker.rack is not None and not TEXT.fullmatch(broker.rack):
                message = f"{broker.rack[:60]!r} isn't usable; allowed: {ALLOWED_TEXT}"
                findings.append(Finding(broker.place, "rack", message))
            if not 0 <= broker.id <= LARGEST_ID:
                message = f"broker {broker.id} can't exist; allowed: ids from 0 to {LARGEST_ID}"
                findings.append(Finding(broker.place, "", message))
            first_seen = by_id.setdefault(broker.id, replace(broker, source=part.file))
            if first_seen.disk_bytes is None and broker.disk_bytes is not None:
                first_seen = by_id[broker.id] = replace(first_seen, disk_bytes=broker.disk_bytes)
            if first_seen.rack != broker.rack:
                notes.append(
                    f"broker {broker.id} is in rack {rack_named(broker.rack)} by {part.file}, in rack "
                    f"{rack_named(first_seen.rack)} by {first_seen.source}, which counts"
                )
    if findings:
        raise ImportStateError(findings)
    return tuple(by_id[number] for number in sorted(by_id)), tuple(notes)


def rack_named(rack: str | None) -> str:
    """A rack for a message."""
    return "none" if rack is None else repr(rack)

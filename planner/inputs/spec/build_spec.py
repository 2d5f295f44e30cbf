"""Makes the model's values from a document that the schema accepts: without units, with defaults filled in."""

from dataclasses import dataclass

from planner.inputs.cluster_load import with_rates
from planner.inputs.importers.state_parts import Assignment, AssignmentEntry
from planner.inputs.spec import yaml_sections
from planner.inputs.spec.spec_document import SpecDocument, config, stated_load
from planner.inputs.yaml_source import Document, key_text
from planner.model.cluster import Cluster, LogDirs, Partition, Topic
from planner.model.document_fields import InputRow
from planner.model.spec import AIMS, Changes, Spec, Sweep, Variant


@dataclass(frozen=True)
class Sizes:
    """Whether sizes are known, and how many partitions have no size although others have one."""

    known: bool = False
    unsized: int = 0


def build_spec(
    document: SpecDocument,
    sizes: Sizes,
    inputs: tuple[InputRow, ...],
    log_dirs: LogDirs,
    described: yaml_sections.Described,
) -> Spec:
    """The spec. The document, with its assignment, has passed every check."""
    return Spec(
        cluster=Cluster(
            name=document.get("cluster", "name"),
            brokers=document.brokers_today,
            topics=with_rates(document.assignment.topics, document.stated_rates),
            bootstrap_servers=tuple(document.get("cluster", "bootstrap_servers") or ()),
            sizes_known=sizes.known,
            unsized=sizes.unsized,
            log_dirs=log_dirs,
            config_defaults=document.config_defaults,
            rates=document.stated_rates,
        ),
        changes=_changes(document),
        topics=document.topic_filter,
        placement=document.placement,
        leader_racks=document.leader_racks,
        apart=tuple(rule for _, rule in document.apart),
        together=tuple(patterns for _, patterns in document.together),
        rack_aware=document.rack_aware,
        racks_as_today=document.get("rack_aware") == "as_today",
        balance=yaml_sections.balance(document, sizes.known),
        log_dirs=yaml_sections.log_dirs_tolerance(document),
        budget=yaml_sections.budget(document),
        limits=yaml_sections.limits(document),
        sweep=_sweep(document),
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


def inline_assignment(document: Document) -> Assignment:
    """`cluster.topics` as topics sorted by name, and one entry per partition in the file's order."""
    entries: list[AssignmentEntry] = []
    topics: list[Topic] = []
    for topic_path, item in document.items("cluster", "topics"):
        partitions: list[Partition] = []
        for number, (path, row) in enumerate(document.items(*topic_path, "partitions")):
            replicas, isr = tuple(row["replicas"]), tuple(row["isr"]) if "isr" in row else None
            leader = row.get("leader", replicas[0])
            partitions.append(Partition(number, replicas, None if leader == "none" else leader, isr, *stated_load(row)))
            entries.append(AssignmentEntry(document.place(path), key_text(path), item["name"], partitions[-1]))
        own_config, effective = (config(item.get(key) or {}) for key in ("config", "effective_config"))
        deleting = item.get("marked_for_deletion", False)
        topics.append(Topic(item["name"], tuple(partitions), own_config, deleting, effective))
    return Assignment(tuple(sorted(topics, key=lambda topic: topic.name)), tuple(entries))


def inline_sizes(document: Document) -> Sizes:
    """The sizes of inline partitions; they are known if any partition has one."""
    topics = document.get("cluster", "topics") or ()
    sized = ["size" in partition for topic in topics for partition in topic["partitions"]]
    return Sizes(True, sized.count(False)) if any(sized) else Sizes()


def _changes(document: SpecDocument) -> Changes:
    changes = document.get("changes") or {}
    return Changes(
        add_brokers=document.joining_brokers,
        remove_brokers=tuple(changes.get("remove_brokers", ())),
        replace_brokers=document.replacements,
        set_racks=document.set_racks,
        set_replication_factor=document.replication_factor_changes,
        new_partitions=(*document.created_topics, *document.added_partitions),
        demote_brokers=tuple(changes.get("demote_brokers", ())),
        rebalance=document.rebalance,
    )


def _sweep(document: SpecDocument) -> Sweep:
    sweep = document.get("sweep") or {}
    return Sweep(
        candidates=sweep.get("candidates"),
        seed=sweep.get("seed", 0),
        grid=yaml_sections.grid(document),
        aims=tuple(sweep.get("aims", AIMS)),
        choice=yaml_sections.choice(document),
        variants=tuple(Variant(item["name"], _changes(view)) for item, view in document.variants),
        growth=yaml_sections.growth(document),
        solved=sweep.get("solved"),
        scores=sweep.get("scores"),
    )

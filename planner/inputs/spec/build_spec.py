"""Makes the model's values from a document that the schema accepts: in base units, with defaults filled in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from planner.inputs.cluster_load import with_rates
from planner.inputs.importers.state_parts import Assignment, AssignmentEntry
from planner.inputs.spec.spec_document import SpecDocument, config, stated_load
from planner.inputs.yaml_source import Document, Path, key_text
from planner.model import spec
from planner.model.amounts import parse_bytes, parse_bytes_per_sec, parse_seconds, unless_none
from planner.model.balance import NO_TOLERANCE, WINDOWS, Balance, Tolerance
from planner.model.cluster import Cluster, LogDir, LogDirs, Partition, ReplicaDir, Topic
from planner.model.document_fields import PPM, InputRow, SpecLimits
from planner.model.growth_forecast import MONTHS

# The groups of each state file that `consumers` names, by its path.
Described = Mapping[str, Sequence[spec.DescribedGroup]]

# Without a window on bytes, the cheapest plan moves the smallest partitions, and new brokers get almost no data.
_DISK_WHERE_SIZES_ARE_KNOWN = "10%"


def build_spec(
    document: SpecDocument, unsized: int | None, inputs: tuple[InputRow, ...], log_dirs: LogDirs, described: Described
) -> spec.Spec:
    """The spec. The document, with its assignment, has passed every check.

    `unsized` is how many partitions have no size although others have one; None if no sizes are known.
    """
    return spec.Spec(
        cluster=Cluster(
            name=document.get("cluster", "name"),
            brokers=document.brokers_today,
            topics=with_rates(document.assignment.topics, document.stated_rates),
            bootstrap_servers=tuple(document.get("cluster", "bootstrap_servers") or ()),
            sizes_known=unsized is not None,
            unsized=unsized or 0,
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
        balance=balance(document, unsized is not None),
        log_dirs=log_dirs_tolerance(document),
        budget=budget(document),
        limits=limits(document),
        sweep=_sweep(document),
        execution=execution(document),
        resilience=document.get("resilience", "survive") or "none",
        growth=monthly(document),
        sizing=sizing(document),
        consumers=groups(document, described),
        report=report_sections(document),
        traffic=traffic(document),
        captured_at=document.get("cluster", "captured_at"),
        valid_for_seconds=valid_for_seconds(document),
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


def inline_unsized(document: Document) -> int | None:
    """How many inline partitions have no size; None if no partition has one."""
    topics = document.get("cluster", "topics") or ()
    sized = ["size" in partition for topic in topics for partition in topic["partitions"]]
    return sized.count(False) if any(sized) else None


def _changes(document: SpecDocument) -> spec.Changes:
    changes = document.get("changes") or {}
    return spec.Changes(
        add_brokers=document.joining_brokers,
        remove_brokers=tuple(changes.get("remove_brokers", ())),
        replace_brokers=document.replacements,
        set_racks=document.set_racks,
        set_replication_factor=document.replication_factor_changes,
        new_partitions=(*document.created_topics, *document.added_partitions),
        demote_brokers=tuple(changes.get("demote_brokers", ())),
        rebalance=document.rebalance,
    )


def _sweep(document: SpecDocument) -> spec.Sweep:
    sweep = document.get("sweep") or {}
    return spec.Sweep(
        candidates=sweep.get("candidates"),
        seed=sweep.get("seed", 0),
        grid={name: tuple(map(Tolerance.parse, values)) for name, values in (sweep.get("balance") or {}).items()},
        aims=tuple(sweep.get("aims", spec.AIMS)),
        choice=choice(document),
        variants=tuple(spec.Variant(item["name"], _changes(view)) for item, view in document.variants),
        growth=growth(document),
        solved=sweep.get("solved"),
        scores=sweep.get("scores"),
    )


def balance(document: Document, sizes_known: bool) -> Balance:
    """`balance`, with the model's defaults for missing keys. For bytes, the default is 10 % if sizes are known."""
    tolerances = ({"disk": _DISK_WHERE_SIZES_ARE_KNOWN} if sizes_known else {}) | (document.get("balance") or {})
    return Balance(**{name: Tolerance.parse(tolerances[name]) for name in WINDOWS if name in tolerances})


def keys_of_hours(document: Document) -> Iterator[tuple[Path, str]]:
    """The keys that need the hours of the week, each with an allowed alternative."""
    if at_busiest_hours(document):
        yield ("balance", "at"), "mean"
    if (chosen := choice(document)).of_hours:
        yield ("sweep", "choose", chosen.rule), "another rule"
    for limit in ("hours_above_capacity", "worst_hour", "p99_hour"):
        if document.get("limits", limit) is not None:
            yield ("limits", limit), "no such limit"


def keys_of_months(document: Document) -> Iterator[Path]:
    """The keys that need sizes, the growth of topics, and each broker's disk."""
    if (chosen := choice(document)).rule in ("most_months_within_bytes", "fewest_bytes_lasting_months"):
        yield ("sweep", "choose", chosen.rule)
    if document.get("limits", "months_until_full") is not None:
        yield ("limits", "months_until_full")


def limits(document: Document) -> SpecLimits:
    """`limits`; no limits if it is missing."""
    items = (document.get("limits") or {}).items()
    return SpecLimits(**{spec.LIMIT_FIELDS.get(key, key): _LIMITS.get(key, int)(value) for key, value in items})


def at_busiest_hours(document: Document) -> bool:
    """True if `balance.at` asks for balance in the busiest hours of the week too."""
    return bool(document.get("balance", "at") == "busiest hours")


def budget(document: Document) -> spec.Budget:
    """`budget`; no budget if it is missing."""
    section = document.get("budget") or {}
    size_bytes = unless_none(section.get("bytes_moved"), parse_bytes)
    return spec.Budget(size_bytes, section.get("replicas_moved"), section.get("leaders_changed"))


def choice(document: Document) -> spec.Choice:
    """`sweep.choose`: `asked`, or the rule that it names, with its amount."""
    section = document.get("sweep", "choose")
    for rule, parse in _AMOUNTS.items():
        if isinstance(section, dict) and rule in section:
            return spec.Choice(rule, parse(section[rule]))
    return spec.Choice()


def share_ppm(percentage: str) -> int:
    """`87.5%` in millionths. Exact, because at most four decimals are allowed."""
    return int(Fraction(percentage.removesuffix("%")) * 10_000)


# The parsers of limits that aren't counts.
_LIMITS: Mapping[str, Callable[[Any], int]] = {
    "bytes_moved": parse_bytes,
    "cross_rack_bytes": parse_bytes,
    "disk_used": share_ppm,
    "gap": share_ppm,
    "worst_hour": parse_bytes_per_sec,
    "p99_hour": parse_bytes_per_sec,
    "eta": parse_seconds,
}
# The parser for the amount of each rule of `sweep.choose`.
_AMOUNTS: Mapping[spec.ChoiceRule, Callable[[Any], int]] = {
    "most_even_within_bytes": parse_bytes,
    "fewest_bytes_within_imbalance": share_ppm,
    "lowest_worst_hour_within_bytes": parse_bytes,
    "fewest_bytes_within_worst_hour": parse_bytes_per_sec,
    "most_months_within_bytes": parse_bytes,
    "fewest_bytes_lasting_months": int,
}


def growth(document: Document) -> tuple[spec.Growth, ...]:
    """`sweep.scenarios.growth`, in the file's order."""
    return tuple(
        spec.Growth(item.get("name", f"{item['topics']} × {item['factor']:g}"), item["topics"], float(item["factor"]))
        for item in document.get("sweep", "scenarios", "growth") or ()
    )


def monthly(document: SpecDocument) -> spec.Monthly:
    """`growth` and `cluster.broker_classes`, in the file's order."""
    rates = tuple(spec.Rate(item["topics"], share_ppm(item["per_month"])) for item in document.get("growth") or ())
    return spec.Monthly(rates, document.broker_classes)


def sizing(document: SpecDocument) -> spec.Sizing | None:
    """`sizing`, None without it. If it names no classes, all of `cluster.broker_classes` count."""
    section = document.get("sizing")
    if section is None:
        return None
    classes = {each.name: each for each in document.broker_classes}
    least, _, most = str(section["brokers_per_rack"]).partition("..")
    prices = ((name, round(100 * price)) for name, price in section.get("prices", {}).items())
    return spec.Sizing(
        classes=tuple(classes[name] for name in section.get("classes", classes)),
        per_rack=(int(least), int(most or least)),
        racks=tuple(section.get("racks", ())),
        prices=tuple(prices),
        months=section.get("months", MONTHS),
        survive=section.get("survive", "none"),
        disk_used_ppm=share_ppm(section.get("disk_used", "100%")),
        replicas_per_broker=section.get("replicas_per_broker"),
    )


def traffic(document: Document) -> spec.RackTraffic:
    """`traffic` and `prices`, racks in the file's order."""
    shares = document.get("traffic", "consumers") or {}
    price = document.get("prices", "cross_rack_per_gib")
    return spec.RackTraffic(
        consumers={rack: share_ppm(share) for rack, share in shares.items()},
        fetch_from=document.get("traffic", "fetch_from") or "leader",
        cross_rack_per_gib_millionths=None if price is None else round(PPM * price),
    )


def valid_for_seconds(document: Document) -> int | None:
    """`valid_for` in seconds."""
    return unless_none(document.get("valid_for"), parse_seconds)


def log_dirs_tolerance(document: Document) -> Tolerance:
    """`balance.log_dirs`; without it, log dirs aren't planned."""
    tolerance = document.get("balance", "log_dirs")
    return NO_TOLERANCE if tolerance is None else Tolerance.parse(tolerance)


def inline_log_dirs(document: SpecDocument) -> LogDirs:
    """The log dirs in `cluster.topics`. A broker's log dirs are those that it lists, or those of its replicas."""
    replicas = [
        ReplicaDir(topic["name"], number, broker, path, parse_bytes(item.get("size", 0)))
        for topic in document.get("cluster", "topics") or ()
        for number, item in enumerate(topic["partitions"])
        for broker, path in zip(item["replicas"], item.get("log_dirs", ()), strict=False)
    ]
    replicas.sort(key=lambda each: (each.topic, each.partition, each.broker))
    used: dict[int, set[str]] = {}
    for replica in replicas:
        used.setdefault(replica.broker, set()).add(replica.path)
    brokers = []
    for broker in document.brokers_today:
        if listed := broker.log_dirs or tuple(map(LogDir, used.get(broker.id, ()))):
            brokers.append((broker.id, tuple(sorted(listed, key=lambda log_dir: log_dir.path))))
    return LogDirs(tuple(sorted(brokers)), tuple(replicas))


def report_sections(document: Document) -> spec.ReportSections:
    """`report`; no optional sections if it is missing."""
    growth = document.get("report", "growth")
    return spec.ReportSections(
        tuple(dict.fromkeys(map(str, failure_kinds(document)))),
        None if growth is None else growth.get("months", MONTHS),
        document.get("report", "consumers") or False,
    )


def failure_kinds(document: Document) -> Sequence[Any]:
    """`report.failures` as a list: one kind, or several."""
    kinds = document.get("report", "failures")
    if kinds is None:
        return ()
    return kinds if isinstance(kinds, list) else (kinds,)


def groups(document: Document, described: Described) -> tuple[spec.ConsumerGroup, ...]:
    """`consumers`, in the file's order, with topics still as patterns. `described`: state files' groups, by path."""
    declared = []
    for _, item in document.items("consumers"):
        members_stated, shared_topics = item.get("members", ()), tuple(item.get("topics", ()))
        if isinstance(members_stated, int):
            width = len(str(members_stated))
            members_stated = [{"id": f"consumer-{number:0{width}}"} for number in range(1, members_stated + 1)]
        members = tuple(
            spec.ConsumerMember(
                each["id"], tuple(each.get("topics", shared_topics)), each.get("rack"), each.get("instance")
            )
            for each in members_stated
        )
        in_file = described.get(item.get("state", ""), ())
        group = next((each for each in in_file if each.name == item["group"]), None)
        ids = tuple((item.get("topic_ids") or {}).items())
        declared.append(spec.ConsumerGroup(item["group"], item.get("assignor", ""), members, group, ids, shared_topics))
    return tuple(declared)


def execution(document: Document) -> spec.Execution:
    """The stated settings. `unset` has the keys that have a default and aren't stated.

    `batches: none` removes all limits of a batch. Each limit has its own default. `bytes` and `moves_per_broker` limit
    the size of a batch like `duration`, so the default of `duration` applies only if neither is stated.
    """
    section: Mapping[str, Any] = document.get("execution") or {}
    throttle, batches = section.get("throttle"), section.get("batches") or {}
    unset = ["throttle"] if throttle is None else []
    limits: Mapping[str, Any] = dict.fromkeys(spec.LIMITS, "none") if batches == "none" else batches
    # The default of `moves_per_broker` only replaces a limit on bytes, for the case that sizes aren't known.
    of_bytes, of_replicas = (limits.get(key, "none") != "none" for key in ("bytes", "moves_per_broker"))
    timed = limits.get("duration", "none" if of_bytes or of_replicas else None) != "none"
    has_default = {"duration": timed, "moves_per_broker": timed or of_bytes}
    unset += [f"batches.{key}" for key in spec.LIMITS if key not in limits and has_default.get(key, True)]
    return spec.Execution(
        throttle_bytes_per_sec=unless_none(throttle, parse_bytes_per_sec),
        batches=spec.BatchRules(
            bytes=unless_none(limits.get("bytes"), parse_bytes),
            moves_per_broker=unless_none(limits.get("moves_per_broker"), int),
            replicas_per_partition=unless_none(limits.get("replicas_per_partition"), int),
            seconds=unless_none(limits.get("duration"), parse_seconds),
            elections=unless_none(limits.get("elections"), int),
        ),
        kafka_bin_dir=section.get("kafka_bin_dir", spec.Execution.kafka_bin_dir),
        unset=tuple(unset),
    )

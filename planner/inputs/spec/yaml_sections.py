"""One function for each section of the YAML that isn't in `build_spec`. It gives the section's values in base units."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from planner.inputs.yaml_source import Document, Path
from planner.model import spec
from planner.model.amounts import parse_bytes, parse_bytes_per_sec, parse_seconds, unless_none
from planner.model.balance import NO_TOLERANCE, WINDOWS, Balance, BalanceGrid, Tolerance
from planner.model.cluster import LogDir, LogDirs, ReplicaDir
from planner.model.document_fields import PPM, SpecLimits
from planner.model.growth_forecast import MONTHS

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

# The groups of each state file that `consumers` names, by its path.
Described = Mapping[str, Sequence[spec.DescribedGroup]]

# Without a window on bytes, the cheapest plan moves the smallest partitions, and new brokers get almost no data.
_DISK_WHERE_SIZES_ARE_KNOWN = "10%"


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


def grid(document: Document) -> BalanceGrid:
    """`sweep.balance`."""
    tolerances = document.get("sweep", "balance") or {}
    return {name: tuple(map(Tolerance.parse, values)) for name, values in tolerances.items()}


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


def monthly(document: Document) -> spec.Monthly:
    """`growth` and `cluster.broker_classes`, in the file's order."""
    rates = tuple(spec.Rate(item["topics"], share_ppm(item["per_month"])) for item in document.get("growth") or ())
    return spec.Monthly(rates, broker_classes(document))


def sizing(document: Document) -> spec.Sizing | None:
    """`sizing`, None without it. If it names no classes, all of `cluster.broker_classes` count."""
    section = document.get("sizing")
    if section is None:
        return None
    classes = {each.name: each for each in broker_classes(document)}
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


def broker_log_dirs(item: Mapping[str, Any]) -> tuple[LogDir, ...]:
    """A broker's `log_dirs`, each a path or a mapping of path and size, in the file's order."""
    listed = ({"path": each} if isinstance(each, str) else each for each in item.get("log_dirs", ()))
    return tuple(LogDir(each["path"], unless_none(each.get("size"), parse_bytes)) for each in listed)


def inline_log_dirs(document: Document) -> LogDirs:
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
    for item in document.get("cluster", "brokers"):
        if listed := broker_log_dirs(item) or tuple(LogDir(path) for path in used.get(item["id"], ())):
            brokers.append((item["id"], tuple(sorted(listed, key=lambda log_dir: log_dir.path))))
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


def broker_class(document: Document, name: str, capacity: Mapping[str, Any]) -> spec.BrokerClass:
    """The capacity that a class, or a single broker, states. Its cap on replicas may come from `cluster.profile`."""
    profile = PROFILES.get(document.get("cluster", "profile") or "")
    return spec.BrokerClass(
        name,
        disk_bytes=unless_none(capacity.get("disk"), parse_bytes),
        network_bytes_per_sec=unless_none(capacity.get("network"), parse_bytes_per_sec),
        max_replicas=capacity.get("max_replicas", profile),
        max_leaders=capacity.get("max_leaders"),
        max_disk_bytes=unless_none(capacity.get("max_disk"), parse_bytes),
    )


def broker_classes(document: Document) -> tuple[spec.BrokerClass, ...]:
    """`cluster.broker_classes`, in the file's order."""
    classes = (document.get("cluster", "broker_classes") or {}).items()
    return tuple(broker_class(document, name, capacity) for name, capacity in classes)

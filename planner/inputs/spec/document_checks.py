"""The rules of a spec that need only the YAML: brokers, racks, log dirs, limits, known sizes and rates, reports.

A limit that can't be checked for lack of numbers would let every plan pass, so it is refused when the spec is read.
"""

from collections.abc import Iterator

from planner.inputs.spec import build_spec
from planner.inputs.spec.checks import ADDED, BROKERS, RuleList, leaving_path, listed, repeated, unknown
from planner.inputs.spec.spec_document import TARGET_KEYS, SpecDocument, broker_log_dirs
from planner.inputs.yaml_source import Document, Path, PathFinding
from planner.model.amounts import MOMENT_ALLOWED, valid_until
from planner.model.balance import BYTE_WINDOWS
from planner.model.cluster import LogDirs
from planner.model.spec import OF_RACKS, OF_SIZES

DOCUMENT_RULES = RuleList()
_reads = DOCUMENT_RULES.reads

_REMOVED, _REPLACED = "changes.remove_brokers", "changes.replace_brokers"
_LOADS = ("cluster.state", "cluster.topics", "cluster.rates", "cluster.load")
_SIZES = "sizes for every partition (cluster.state.sizes, or size in cluster.topics)"
_RATES = "rates (cluster.rates, cluster.load, or bytes_in and bytes_out in cluster.topics)"
_LONGEST_DAYS = 3650
# The least number of brokers that fail together.
_TOGETHER = {"brokers": 1, "racks": 1, "pairs": 2}


def source_findings(document: Document) -> Iterator[PathFinding]:
    """Today's topics must come from exactly one source."""
    cluster = document.get("cluster")
    if not isinstance(cluster, dict):
        return
    if "state" in cluster and "topics" in cluster:
        yield ("cluster", "topics"), "both state and topics say what the cluster holds; allowed: one of them"
    if "state" not in cluster and "topics" not in cluster:
        yield ("cluster",), "neither state nor topics says what the cluster holds; allowed: one of them"
    state = cluster.get("state")
    if isinstance(state, dict) and not {"assignment", "files"} & state.keys():
        allowed = "what kafka-topics --describe prints, here or in files"
        yield ("cluster", "state", "assignment"), f"is missing; allowed: {allowed}"


@_reads(BROKERS)
def _brokers_once(document: SpecDocument) -> Iterator[PathFinding]:
    ids = (((*path, "id"), item["id"]) for path, item in document.items("cluster", "brokers"))
    return repeated(ids, "each broker once")


@_reads(BROKERS, ADDED, _REMOVED)
def _added_once(document: SpecDocument) -> Iterator[PathFinding]:
    today, added = _ids(document), set[int]()
    removed = set(document.get("changes", "remove_brokers") or ())
    for item_path, item in document.items("changes", "add_brokers"):
        path, broker = (*item_path, "id"), item["id"]
        if broker in today:
            yield path, f"{broker} is a broker of the cluster already; allowed: an id that cluster.brokers doesn't use"
        elif broker in removed:
            yield path, f"{broker} is removed too; allowed: one of the two"
        elif broker in added:
            yield path, f"{broker} is added twice; allowed: each broker once"
        added.add(broker)


@_reads(BROKERS, ADDED, _REMOVED)
def _removed_known(document: SpecDocument) -> Iterator[PathFinding]:
    broker_ids = _ids(document)
    added = {broker.id for broker in document.added_brokers}
    for path, broker in document.items("changes", "remove_brokers"):
        if broker not in broker_ids and broker not in added:
            yield path, f"{broker} isn't a broker of the cluster; allowed: {listed(broker_ids)}"


@_reads(BROKERS, _REMOVED, _REPLACED)
def _replaced_known(document: SpecDocument) -> Iterator[PathFinding]:
    broker_ids = _ids(document)
    removed = set(document.get("changes", "remove_brokers") or ())
    takers: set[int] = set()
    for old, new in document.replacements:
        path = ("changes", "replace_brokers", str(old))
        if old not in broker_ids:
            yield path, f"{old} isn't a broker of the cluster; allowed: {listed(broker_ids)}"
        if old in removed:
            yield path, f"{old} is removed too; allowed: one of the two"
        if new in document.leaving_brokers:
            yield path, f"{new} leaves the cluster itself; allowed: a broker that stays or joins"
        if new in takers:
            yield path, f"{new} replaces another broker already; allowed: a broker for each"
        takers.add(new)


@_reads(BROKERS, ADDED, _REPLACED, "changes.set_racks")
def _racks_of_known(document: SpecDocument) -> Iterator[PathFinding]:
    broker_ids = _ids(document) | {broker.id for broker in document.joining_brokers}
    for broker, _ in document.set_racks:
        if broker not in broker_ids:
            message = f"{broker} is neither a broker of the cluster nor added; allowed: {listed(broker_ids)}"
            yield ("changes", "set_racks", str(broker)), message


@_reads(*TARGET_KEYS, "rack_aware")
def _racks_for_all(document: SpecDocument) -> Iterator[PathFinding]:
    """Kafka refuses rack-aware placement if only some brokers have racks (KIP-36)."""
    targets = document.target_brokers
    rackless = [broker.id for broker in targets if broker.rack is None]
    if not document.rack_aware or len(rackless) in (0, len(targets)):
        return
    allowed = "a rack for every broker that stays or joins, for none, or rack_aware: disabled"
    for path, who, replaced in _broker_paths(document, set(rackless)):
        if replaced is None:
            yield (*path, "rack"), f"broker {who} has no rack, but others have; allowed: {allowed}"
        else:
            yield path, f"broker {who} gets no rack from broker {replaced}, but others have one; allowed: {allowed}"


@_reads(*TARGET_KEYS, "limits.disk_used", "limits.hours_above_capacity")
def _capacities_for_all(document: SpecDocument) -> Iterator[PathFinding]:
    """`disk_used` needs each broker's disk, and `hours_above_capacity` each broker's network."""
    for limit, capacity_key, field in (
        ("disk_used", "disk", "disk_bytes"),
        ("hours_above_capacity", "network", "network_bytes_per_sec"),
    ):
        if document.get("limits", limit) is None:
            continue
        lacking = {broker.id for broker in document.target_brokers if getattr(broker, field) is None}
        allowed = f"capacity.{capacity_key} for every broker that stays or joins, or no limits.{limit}"
        for path, who, replaced in _broker_paths(document, lacking):
            if replaced is None:
                message = f"broker {who} has no capacity.{capacity_key}, which limits.{limit} needs; allowed: {allowed}"
                yield (*path, "capacity"), message
            else:
                yield path, f"broker {who} gets no capacity.{capacity_key} from broker {replaced}; allowed: {allowed}"


def _broker_paths(document: SpecDocument, ids: set[int]) -> Iterator[tuple[Path, int, int | None]]:
    """The path of each of these target brokers, its id, and if it isn't listed the broker that it replaces."""
    yield from ((path, item["id"], None) for path, item in document.written_brokers if item["id"] in ids)
    inherited = {broker.id for broker in document.joining_brokers} - {each.id for each in document.added_brokers}
    for old, new in document.replacements:
        if new in inherited & ids and old in _ids(document):
            yield ("changes", "replace_brokers", str(old)), new, old


@_reads(*TARGET_KEYS)
def _someone_stays(document: SpecDocument) -> Iterator[PathFinding]:
    if not document.target_brokers:
        yield leaving_path(document), "no broker is left; allowed: at least one that stays or joins"


@_reads(BROKERS, ADDED, "cluster.broker_classes")
def _classes_known(document: SpecDocument) -> Iterator[PathFinding]:
    """A broker states its capacity once: by its class, or by itself."""
    classes = document.get("cluster", "broker_classes") or {}
    for item_path, item in (each for each in document.written_brokers if "class" in each[1]):
        path = (*item_path, "class")
        if "capacity" in item:
            yield path, "both class and capacity say what the broker can hold; allowed: one of them"
        if item["class"] not in classes:
            yield unknown(path, item["class"], "cluster.broker_classes", classes)


@_reads("balance", "budget", "sweep.balance", "sweep.choose", *_LOADS)
def _bytes_are_known(document: SpecDocument) -> Iterator[PathFinding]:
    keys: list[tuple[Path, str]] = [(("balance", name), name) for name in BYTE_WINDOWS]
    keys += [(path, name) for name in BYTE_WINDOWS for path, _ in document.items("sweep", "balance", name)]
    sized = ("most_even_within_bytes", "most_months_within_bytes", "fewest_bytes_lasting_months")
    keys += [(("budget", "bytes_moved"), "disk"), *((("sweep", "choose", rule), "disk") for rule in sized)]
    keys += [(("balance", "log_dirs"), "disk")]
    for path, name in keys:
        is_known = document.knows_sizes if name == "disk" else document.knows_traffic(name)
        kind, allowed = ("sizes", _SIZES) if name == "disk" else ("rates", _RATES)
        if not is_known and (value := document.get(*path)) not in (None, "none"):
            yield path, f"{value!r} can't be judged without {kind}; allowed: {allowed}, or none"


@_reads("balance", "cluster.load", "sweep.choose", "limits")
def _hours_are_known(document: SpecDocument) -> Iterator[PathFinding]:
    """Hours need a load profile, and the busiest hours need a window on traffic."""
    for path, allowed in build_spec.keys_of_hours(document):
        if not document.get("cluster", "load"):
            message = f"{document.get(*path)!r} can't be judged without a load profile"
            yield path, f"{message}; allowed: with cluster.load, or {allowed}"
    of_traffic = (document.get("balance", name) for name in ("network_in", "network_out"))
    if build_spec.at_busiest_hours(document) and all(target in (None, "none") for target in of_traffic):
        allowed = "allowed: together with network_in or network_out, or mean"
        yield ("balance", "at"), f"'busiest hours' needs a target for traffic; {allowed}"


@_reads("sweep.variants")
def _variants_once(document: SpecDocument) -> Iterator[PathFinding]:
    names = [((*path, "name"), item["name"]) for path, item in document.items("sweep", "variants")]
    yield from repeated(names, "a name for each")
    for path, name in names:
        if name == "changes":
            yield path, "'changes' is the name of the plan for the key changes; allowed: another name"


@_reads("sweep.scenarios", *_LOADS)
def _scenarios_once(document: SpecDocument) -> Iterator[PathFinding]:
    path: Path = ("sweep", "scenarios", "growth")
    scenarios = build_spec.growth(document)
    yield from repeated(
        (((*path, index, "name"), each.name) for index, each in enumerate(scenarios)), "a name for each"
    )
    if scenarios and not document.knows_sizes and not document.knows_traffic("network_out"):
        yield path, "growth can't be judged without sizes or rates; allowed: either of them, or no scenarios"


@_reads(*TARGET_KEYS, "resilience")
def _racks_to_survive(document: SpecDocument) -> Iterator[PathFinding]:
    if document.get("resilience", "survive") == "rack" and not document.target_racks:
        yield ("resilience", "survive"), "'rack' can't be judged, no broker has a rack; allowed: racks, broker, or none"


def log_dir_findings(document: SpecDocument, log_dirs: LogDirs) -> Iterator[PathFinding]:
    """Findings for `balance.log_dirs` without any known log dir, and for lists that differ from the broker's own."""
    described = dict(log_dirs.brokers)
    if not described and not any(broker.log_dirs for broker in (*document.brokers_today, *document.added_brokers)):
        allowed = "log_dirs on brokers, cluster.state.sizes from kafka-log-dirs --describe, or none"
        tolerance = document.get("balance", "log_dirs")
        yield ("balance", "log_dirs"), f"{tolerance!r} can't be judged: no log dir is known; allowed: {allowed}"
    for path, paths, broker in _log_dir_lists(document):
        dirs = {log_dir.path for log_dir in described.get(broker, ())}
        if dirs and dirs != set(paths):
            message = (
                f"broker {broker} says that its log dirs are {', '.join(sorted(dirs))}; allowed: these, or no list"
            )
            yield path, message


@_reads(BROKERS, ADDED)
def _log_dirs_once(document: SpecDocument) -> Iterator[PathFinding]:
    for path, paths, _ in _log_dir_lists(document):
        yield from repeated((((*path, index), each) for index, each in enumerate(paths)), "each log dir once")


@_reads(BROKERS, ADDED)
def _sizes_of_all_log_dirs(document: SpecDocument) -> Iterator[PathFinding]:
    for path, item in document.written_brokers:
        sized = [log_dir.disk_bytes is not None for log_dir in broker_log_dirs(item)]
        if any(sized) and not all(sized):
            message = f"broker {item['id']} states a size for {sized.count(True)} of {len(sized)} log dirs"
            yield (*path, "log_dirs"), f"{message}; allowed: a size for all, or for none"


@_reads(BROKERS, "cluster.topics")
def _replicas_in_log_dirs(document: SpecDocument) -> Iterator[PathFinding]:
    lists = {broker.id: [log_dir.path for log_dir in broker.log_dirs] for broker in document.brokers_today}
    for topic_path, _ in document.items("cluster", "topics"):
        for item_path, item in document.items(*topic_path, "partitions"):
            path, paths = (*item_path, "log_dirs"), item.get("log_dirs")
            if paths is not None and len(paths) != len(item["replicas"]):
                message = f"{len(paths)} log dirs for {len(item['replicas'])} replicas; allowed: one for each, in order"
                yield path, message
                continue
            for index, (broker, log_dir) in enumerate(zip(item["replicas"], paths or (), strict=False)):
                if lists.get(broker) and log_dir not in lists[broker]:
                    message = f"{log_dir!r} isn't a log dir of broker {broker}; allowed: {', '.join(lists[broker])}"
                    yield (*path, index), message


def _log_dir_lists(document: SpecDocument) -> Iterator[tuple[Path, list[str], int]]:
    """Each list of log dirs: its path in the document, its log dirs' paths, and its broker."""
    for path, item in document.written_brokers:
        if "log_dirs" in item:
            yield (*path, "log_dirs"), [log_dir.path for log_dir in broker_log_dirs(item)], item["id"]


def size_findings(document: SpecDocument, unsized: int | None) -> Iterator[PathFinding]:
    """Findings for limits on bytes if partitions have no size: so many by the state files and the YAML, None: all."""
    if unsized != 0:
        some = f"with {unsized} partition{'' if unsized == 1 else 's'} without a size"
        lacking = some if unsized else "without sizes"
        yield from _unjudged_limits(document, OF_SIZES, f" {lacking}; allowed: {_SIZES}")


@_reads("topics", "cluster.brokers")
def _filter_names_brokers(document: SpecDocument) -> Iterator[PathFinding]:
    broker_ids = [broker.id for broker in document.brokers_today]
    for path, broker in document.items("topics", "on_brokers"):
        if broker not in broker_ids:
            yield path, f"{broker} isn't in cluster.brokers; allowed: {listed(broker_ids)}"


@_reads("limits.eta", "execution.throttle")
def _eta_has_throttle(document: SpecDocument) -> Iterator[PathFinding]:
    if document.get("execution", "throttle") == "none":
        yield from _unjudged_limits(document, ("eta",), " with execution.throttle: none; allowed: a throttle")


@_reads(*TARGET_KEYS, "limits")
def _racks_for_limits(document: SpecDocument) -> Iterator[PathFinding]:
    if not document.target_racks:
        yield from _unjudged_limits(document, OF_RACKS, ", no broker has a rack; allowed: racks")


def _unjudged_limits(document: SpecDocument, names: tuple[str, ...], why: str) -> Iterator[PathFinding]:
    for name in names:
        if (value := document.get("limits", name)) is not None:
            yield ("limits", name), f"{value!r} can't be judged{why}, or no such limit"


@_reads("report.failures", *TARGET_KEYS)
def _can_fail(document: SpecDocument) -> Iterator[PathFinding]:
    """Failures of racks need racks, and no more brokers can fail than there are today, whatever a variant adds."""
    brokers, failures = len(document.brokers_today), ("report", "failures")
    for index, kind in enumerate(build_spec.failure_kinds(document)):
        path: Path = (*failures, index) if isinstance(document.get(*failures), list) else failures
        if kind == "racks" and not document.target_racks:
            yield path, "'racks' can't be judged, no broker has a rack; allowed: racks, or brokers"
        if _TOGETHER.get(kind, kind) > brokers:
            yield path, f"{kind!r} can't fail of {brokers:,} brokers; allowed: at most as many"


@_reads("report.growth", *_LOADS)
def _can_grow(document: SpecDocument) -> Iterator[PathFinding]:
    has_loads = document.knows_sizes or document.knows_traffic("network_in")
    if document.get("report", "growth") is not None and not has_loads:
        message = "growth can't be judged without sizes or rates; allowed: either of them, or no report.growth"
        yield ("report", "growth"), message


@_reads("report.consumers", "consumers")
def _groups_declared(document: SpecDocument) -> Iterator[PathFinding]:
    if document.get("report", "consumers") and not document.get("consumers"):
        message = "no consumer group is declared; allowed: the key consumers with at least one group, or false here"
        yield ("report", "consumers"), message


@_reads("cluster.captured_at")
def _captured_at_a_moment(document: SpecDocument) -> Iterator[PathFinding]:
    text = document.get("cluster", "captured_at")
    if text is None:
        return
    try:
        valid_until(text, _LONGEST_DAYS * 86_400)
    except (ValueError, OverflowError):
        yield ("cluster", "captured_at"), f"{text!r} isn't a moment; allowed: {MOMENT_ALLOWED}"


@_reads("valid_for", "cluster.captured_at")
def _valid_from_a_moment(document: SpecDocument) -> Iterator[PathFinding]:
    text, seconds = document.get("valid_for"), build_spec.valid_for_seconds(document)
    if seconds is not None and document.get("cluster", "captured_at") is None:
        message = f"{text!r} needs a start time; allowed: together with cluster.captured_at, {MOMENT_ALLOWED}"
        yield ("valid_for",), message
    if seconds is not None and seconds > _LONGEST_DAYS * 86_400:
        yield ("valid_for",), f"{text!r} is too long; allowed: at most {_LONGEST_DAYS}d"


def _ids(document: SpecDocument) -> set[int]:
    return {broker.id for broker in document.brokers_today}

"""What no schema can say of single sections: `limits`, `valid_for`, `report` and `log_dirs`.

A gate of `limits` without the numbers to judge it by would let every plan pass, so it is refused when the spec is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.inputs.spec import sections
from planner.inputs.spec.build_spec import TARGET_KEYS, Sizes, added_brokers, brokers_today, target_brokers
from planner.inputs.spec.sections import captured_at, kinds, knows_sizes, knows_traffic, valid_for_seconds
from planner.inputs.yaml_source import Document, Path
from planner.model.cluster import LogDirs
from planner.model.errors import Finding
from planner.model.expiry import ALLOWED, parse_moment
from planner.model.spec import OF_RACKS, OF_SIZES

_BROKERS, _ADD = "cluster.brokers", "changes.add_brokers"


def known_findings(document: Document, known: LogDirs) -> Iterator[Finding]:
    """`balance.log_dirs` without any log dir known, and lists that differ from what a broker itself says it has."""
    told = dict(known.brokers)
    listed = [broker for broker in (*brokers_today(document), *added_brokers(document)) if broker.log_dirs]
    if not told and not listed:
        allowed = "log_dirs on brokers, cluster.state.sizes from kafka-log-dirs --describe, or none"
        asked = document.get("balance", "log_dirs")
        yield document.finding(
            ("balance", "log_dirs"), f"{asked!r} can't be judged: no log dir is known; allowed: {allowed}"
        )
    for path, paths, broker in _lists(document):
        has = {log_dir.path for log_dir in told.get(broker, ())}
        if has and has != set(paths):
            message = f"broker {broker} says that its log dirs are {', '.join(sorted(has))}; allowed: these, or no list"
            yield document.finding(path, message)


def _each_once(document: Document) -> Iterator[Finding]:
    for path, paths, _ in _lists(document):
        for at, log_dir in enumerate(paths):
            if log_dir in paths[:at]:
                yield document.finding((*path, at), f"{log_dir!r} is here twice; allowed: each log dir once")


def _sizes_for_all(document: Document) -> Iterator[Finding]:
    """Shares by size need the size of each of a broker's log dirs."""
    for prefix, brokers in ((("cluster", "brokers"), brokers_today), (("changes", "add_brokers"), added_brokers)):
        for at, broker in enumerate(brokers(document)):
            sized = [log_dir.disk_bytes is not None for log_dir in broker.log_dirs]
            if any(sized) and not all(sized):
                message = f"broker {broker.id} states a size for {sized.count(True)} of {len(sized)} log dirs"
                yield document.finding((*prefix, at, "log_dirs"), f"{message}; allowed: a size for all, or for none")


def _replicas_fit(document: Document) -> Iterator[Finding]:
    """A replica written here lies in a log dir of its broker, and each replica has one, or none has."""
    lists = {broker.id: [log_dir.path for log_dir in broker.log_dirs] for broker in brokers_today(document)}
    for topic_at, topic in enumerate(document.get("cluster", "topics") or ()):
        for number, item in enumerate(topic["partitions"]):
            path: Path = ("cluster", "topics", topic_at, "partitions", number, "log_dirs")
            paths = item.get("log_dirs")
            if paths is not None and len(paths) != len(item["replicas"]):
                message = f"{len(paths)} log dirs for {len(item['replicas'])} replicas; allowed: one for each, in order"
                yield document.finding(path, message)
                continue
            for at, (broker, log_dir) in enumerate(zip(item["replicas"], paths or (), strict=False)):
                if lists.get(broker) and log_dir not in lists[broker]:
                    message = f"{log_dir!r} isn't a log dir of broker {broker}; allowed: {', '.join(lists[broker])}"
                    yield document.finding((*path, at), message)


def _lists(document: Document) -> Iterator[tuple[Path, list[str], int]]:
    """Each list of log dirs: where it is written, its paths, and whose it is."""
    for prefix in (("cluster", "brokers"), ("changes", "add_brokers")):
        for at, item in enumerate(document.get(*prefix) or ()):
            if "log_dirs" in item:
                paths = [log_dir.path for log_dir in sections.of_broker(item)]
                yield (*prefix, at, "log_dirs"), paths, item["id"]


LOG_DIR_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    ((_BROKERS, _ADD), _each_once),
    ((_BROKERS, _ADD), _sizes_for_all),
    ((_BROKERS, "cluster.topics"), _replicas_fit),
)


_FAILURES: Path = ("report", "failures")
# How many brokers fail together, at the least.
_TOGETHER = {"brokers": 1, "racks": 1, "pairs": 2}


def _can_fail(document: Document) -> Iterator[Finding]:
    """Racks fail where there are any; and no more brokers than there are today, whatever a variant adds."""
    racks, brokers = any(each.rack is not None for each in target_brokers(document)), len(brokers_today(document))
    for at, kind in enumerate(kinds(document)):
        path = (*_FAILURES, at) if isinstance(document.get(*_FAILURES), list) else _FAILURES
        if kind == "racks" and not racks:
            yield document.finding(path, "'racks' can't be judged, no broker has a rack; allowed: racks, or brokers")
        if _TOGETHER.get(kind, kind) > brokers:
            yield document.finding(path, f"{kind!r} can't fail of {brokers:,} brokers; allowed: at most as many")


def _can_grow(document: Document) -> Iterator[Finding]:
    """Growth is told of bytes or traffic."""
    if document.get("report", "growth") is None:
        return
    if not knows_sizes(document) and not knows_traffic(document, "network_in"):
        message = "growth can't be judged without sizes or rates; allowed: either of them, or no report.growth"
        yield document.finding(("report", "growth"), message)


def _groups_declared(document: Document) -> Iterator[Finding]:
    if document.get("report", "consumers") and not document.get("consumers"):
        message = "no consumer group is declared; allowed: the key consumers with at least one group, or false here"
        yield document.finding(("report", "consumers"), message)


REPORT_RULES = (
    (("report.failures", *TARGET_KEYS), _can_fail),
    (("report.growth", "cluster.state", "cluster.topics", "cluster.rates"), _can_grow),
    (("report.consumers", "consumers"), _groups_declared),
)


_CAPTURED_AT, _VALID_FOR = "cluster.captured_at", "valid_for"
_LONGEST_DAYS = 3650


def _moment_is_one(document: Document) -> Iterator[Finding]:
    text = captured_at(document)
    if text is None:
        return
    try:
        parse_moment(text)
    except (ValueError, OverflowError):
        yield document.finding(("cluster", "captured_at"), f"{text!r} isn't a moment; allowed: {ALLOWED}")


def _valid_from_when(document: Document) -> Iterator[Finding]:
    seconds = valid_for_seconds(document)
    if seconds is None:
        return
    if captured_at(document) is None:
        message = f"{document.get('valid_for')!r} from when on? allowed: with cluster.captured_at, {ALLOWED}"
        yield document.finding(("valid_for",), message)
    if seconds > _LONGEST_DAYS * 86_400:
        message = f"{document.get('valid_for')!r} is too long; allowed: at most {_LONGEST_DAYS}d"
        yield document.finding(("valid_for",), message)


VALIDITY_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    ((_CAPTURED_AT,), _moment_is_one),
    ((_VALID_FOR, _CAPTURED_AT), _valid_from_when),
)


_SIZES = "sizes for every partition (cluster.state.sizes, or size in cluster.topics), or no such limit"


def size_findings(document: Document, sizes: Sizes) -> Iterator[Finding]:
    """Gates on bytes where some partition has no size; `sizes` is what the state files and the YAML say together."""
    if sizes.known and not sizes.unsized:
        return
    unsized = f"{sizes.unsized} partition{'' if sizes.unsized == 1 else 's'} without a size"
    without = unsized if sizes.known else "sizes"
    for name, value in _asked(document, OF_SIZES):
        message = f"{value!r} can't be judged {'with' if sizes.known else 'without'} {without}; allowed: {_SIZES}"
        yield document.finding(("limits", name), message)


def _racks_for_limits(document: Document) -> Iterator[Finding]:
    if any(broker.rack is not None for broker in target_brokers(document)):
        return
    for name, value in _asked(document, OF_RACKS):
        message = f"{value!r} can't be judged, no broker has a rack; allowed: racks, or no such limit"
        yield document.finding(("limits", name), message)


def _eta_has_throttle(document: Document) -> Iterator[Finding]:
    """Without a throttle nobody knows how long copying takes."""
    for _, eta in _asked(document, ("eta",)):
        if document.get("execution", "throttle") == "none":
            message = f"{eta!r} can't be judged with execution.throttle: none; allowed: a throttle, or no such limit"
            yield document.finding(("limits", "eta"), message)


def _asked(document: Document, names: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """Those of the gates that are set, with what is written."""
    written = ((name, document.get("limits", name)) for name in names)
    yield from ((name, value) for name, value in written if value is not None)


LIMIT_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    (("limits.eta", "execution.throttle"), _eta_has_throttle),
    ((*TARGET_KEYS, "limits"), _racks_for_limits),
)

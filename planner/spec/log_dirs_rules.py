"""What no schema can say of log dirs: each is there once, brokers really have them, and some are known where asked for.

Kafka starts a reassignment before it finds that a log dir isn't there (KIP-113), so doubtful ones are refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.errors import Finding
from planner.log_dirs_values import LogDirs
from planner.spec import log_dirs
from planner.spec.build import added_brokers, brokers_today
from planner.yaml_source import Document, Path

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
                paths = [log_dir.path for log_dir in log_dirs.of_broker(item)]
                yield (*prefix, at, "log_dirs"), paths, item["id"]


LOG_DIR_RULES: tuple[tuple[tuple[str, ...], Callable[[Document], Iterator[Finding]]], ...] = (
    ((_BROKERS, _ADD), _each_once),
    ((_BROKERS, _ADD), _sizes_for_all),
    ((_BROKERS, "cluster.topics"), _replicas_fit),
)

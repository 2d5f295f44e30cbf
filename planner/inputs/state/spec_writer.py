"""Writes specs in YAML: a state as the `cluster` part of one, and a spec rewritten for planner drain or size --row.

The YAML library quotes all names; numbers need none.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal

import yaml

from planner.inputs.importers import brokers_and_configs, topics_describe
from planner.inputs.importers.terraform_show import Targets
from planner.inputs.state.merge import merge
from planner.inputs.yaml_source import read_yaml
from planner.model.cluster import OF_TOPIC, Broker, Config, PartitionKey, Topic
from planner.model.errors import ImportStateError, SpecError
from planner.model.generated_text import with_digest, yaml_scalar

_WORD = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)


class _Dumper(yaml.SafeDumper):
    """Writes numbers without exponents, because with one they are read as text."""

    def represent_float(self, value: float) -> yaml.ScalarNode:
        digits = f"{Decimal(repr(value)):f}"
        return self.represent_scalar("tag:yaml.org,2002:float", digits if "." in digits else f"{digits}.0")


_Dumper.add_representer(float, _Dumper.represent_float)

# With more partitions, the YAML is slow to read, and too long for people.
MOST_INLINE = 2_000
_STATE_FILES = ("topics-describe.txt", "log-dirs.json", "topic-configs.txt")
TITLE = "Written by planner import; a part of a spec, to be completed with what is to change."


@dataclass(frozen=True)
class Imported:
    """The content to write. `sizes` has the partitions of known size. `state` names files instead of inline topics."""

    name: str
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    sizes: Mapping[PartitionKey, int]
    bootstrap_servers: tuple[str, ...] = ()
    only_topics: tuple[str, ...] | None = None
    targets: Targets = field(default_factory=Targets)
    state: Mapping[str, str | list[str]] | None = None
    config_defaults: Config = ()
    profile: str = ""


def text(imported: Imported) -> str:
    """The YAML, with a final newline. It is a valid spec."""
    return with_digest(TITLE, "\n".join(_lines(imported)) + "\n")


def _lines(imported: Imported) -> Iterator[str]:
    yield from ("version: 1", "cluster:", f"  name: {_flow(imported.name)}")
    if imported.bootstrap_servers:
        yield f"  bootstrap_servers: {_flow(list(imported.bootstrap_servers))}"
    if imported.profile:
        yield f"  profile: {_flow(imported.profile)}"
    yield "  brokers:"
    for broker in imported.brokers:
        rack = "" if broker.rack is None else f", rack: {_flow(broker.rack)}"
        cordoned = f", cordoned_log_dirs: {_flow(list(dirs))}" if (dirs := broker.cordoned_log_dirs) else ""
        room = "" if broker.disk_bytes is None else f", capacity: {{disk: {broker.disk_bytes}}}"
        yield f"    - {{id: {broker.id}{rack}{room}{cordoned}}}"
    if imported.config_defaults:
        yield f"  config_defaults: {_flow(dict(imported.config_defaults))}"
    if imported.state is None:
        yield "  topics:"
        for topic in imported.topics:
            yield from _topic(topic, imported.sizes)
    else:
        yield "  state:"
        yield from (f"    {key}: {_flow(path)}" for key, path in imported.state.items())
    yield from _changes(imported.targets)
    if imported.only_topics is not None:
        yield "topics:"
        yield "  include:"
        yield from (f"    - {_flow(name)}" for name in imported.only_topics)


def _changes(targets: Targets) -> Iterator[str]:
    """The `changes` that make the topics as Terraform declares them."""
    created = [each for each in targets.new if each.partitions and each.replication_factor]
    if not (targets.factors or targets.partitions or created):
        return
    yield "changes:"
    if targets.factors:
        yield "  set_replication_factor:"
        yield from (f"    - {{topics: {_flow(name)}, replication_factor: {to}}}" for name, to in targets.factors)
    if targets.partitions:
        yield "  add_partitions:"
        yield from (f"    - {{topic: {_flow(name)}, partitions: {count}}}" for name, count in targets.partitions)
    if created:
        yield "  create_topics:"
        for each in created:
            config = f", config: {_flow(dict(each.config))}" if each.config else ""
            counts = f"partitions: {each.partitions}, replication_factor: {each.replication_factor}"
            yield f"    - {{name: {_flow(each.topic)}, {counts}{config}}}"


def _flow(value: object) -> str:
    """A value on one line, also for use inside brackets. Text that isn't a plain word is in double quotes, escaped."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_flow(key)}: {_flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str) and not _WORD.fullmatch(value):
        return yaml_scalar(value)
    listed = yaml.dump([value], Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return listed.strip()[1:-1]


def too_long(imported: Imported) -> str:
    """A note if there are so many partitions that they should be in files beside the YAML; else empty."""
    count = sum(len(topic.partitions) for topic in imported.topics)
    # Reading a YAML takes a second or two per thousand partitions.
    long = f"{count:,} partitions make a YAML that takes long to read: with --output they go into files beside it"
    return long if count > MOST_INLINE else ""


def with_state_files(imported: Imported, folder: str) -> tuple[Imported, dict[str, str]]:
    """The content with its partitions in files of a folder, and these files by name, if they are too many for a YAML.

    Without files if they are few, or if reading them back would give another state.
    """
    files = _state_files(imported) if too_long(imported) else {}
    if files:
        described, sizes, configs = (f"{folder}/{name}" if name in files else None for name in _STATE_FILES)
        state = {"assignment": described, "sizes": sizes, "files": [configs] if configs else None}
        imported = replace(imported, state={key: value for key, value in state.items() if value})
    return imported, files


def _state_files(imported: Imported) -> dict[str, str]:
    """The state in the format of Kafka's tools, by file name; empty if reading it back would give another state.

    The topics' own configurations have a file if the sources distinguish them from inherited ones.
    """
    topics_text, configs_text = describe(imported.topics), topic_configs(imported.topics)
    inherited = any(topic.effective_config for topic in imported.topics)
    has_own = not inherited and any(topic.config for topic in imported.topics)
    try:
        parts = [topics_describe.read_part(topics_text, "")]
        parts += [brokers_and_configs.read_configs(configs_text, "")] if has_own else []
        merged = merge(parts)
    except ImportStateError:
        return {}
    unsized = tuple(
        replace(topic, partitions=tuple(replace(each, size_bytes=0) for each in topic.partitions))
        for topic in imported.topics
    )
    if merged.assignment.topics != unsized or merged.config_defaults:
        return {}
    sizes = {_STATE_FILES[1]: log_dirs(imported.topics, imported.sizes)} if imported.sizes else {}
    return {_STATE_FILES[0]: topics_text, **sizes, **({_STATE_FILES[2]: configs_text} if has_own else {})}


def describe(topics: Iterable[Topic]) -> str:
    """The topics as `kafka-topics --describe` prints them, without the ISR if it isn't known."""
    lines: list[str] = []
    for topic in topics:
        config = sorted({**dict(topic.effective_config), **dict(topic.config)}.items())
        counts = f"PartitionCount: {len(topic.partitions)}\tReplicationFactor: {len(topic.partitions[0].replicas)}"
        deleting = "\tMarkedForDeletion: true" if topic.deleting else ""
        pairs = ",".join(f"{key}={value}" for key, value in config)
        lines.append(f"Topic: {topic.name}\t{counts}\tConfigs: {pairs}{deleting}\n")
        for each in topic.partitions:
            leader = "none" if each.leader is None else each.leader
            isr = "" if each.isr is None else f"\tIsr: {','.join(map(str, each.isr))}"
            replicas = f"Replicas: {','.join(map(str, each.replicas))}"
            lines.append(f"\tTopic: {topic.name}\tPartition: {each.id}\tLeader: {leader}\t{replicas}{isr}{deleting}\n")
    return "".join(lines)


def topic_configs(topics: Iterable[Topic]) -> str:
    """The topics' own configurations as `kafka-configs --describe --entity-type topics` prints them."""
    lines: list[str] = []
    for topic in topics:
        lines.append(f"Dynamic configs for topic {topic.name} are:\n")
        lines += [
            f"  {key}={value} sensitive=false synonyms={{{OF_TOPIC}:{key}={value}}}\n" for key, value in topic.config
        ]
    return "".join(lines)


def log_dirs(topics: Sequence[Topic], sizes: Mapping[PartitionKey, int]) -> str:
    """The sizes as `kafka-log-dirs --describe` prints them, each at the partition's first replica, without log dirs."""
    rows_of: dict[int, list[dict[str, object]]] = {}
    for topic in topics:
        for each in topic.partitions:
            if (size_bytes := sizes.get((topic.name, each.id))) is not None:
                row = {"partition": f"{topic.name}-{each.id}", "size": size_bytes, "offsetLag": 0, "isFuture": False}
                rows_of.setdefault(each.replicas[0], []).append(row)
    brokers = [
        {"broker": broker, "logDirs": [{"partitions": rows, "error": None}]} for broker, rows in sorted(rows_of.items())
    ]
    return json.dumps({"version": 1, "brokers": brokers}, ensure_ascii=False, separators=(",", ":")) + "\n"


def _topic(topic: Topic, sizes: Mapping[PartitionKey, int]) -> Iterator[str]:
    yield f"    - name: {_flow(topic.name)}"
    if topic.config:
        yield f"      config: {_flow(dict(topic.config))}"
    if topic.effective_config:
        yield f"      effective_config: {_flow(dict(topic.effective_config))}"
    if topic.deleting:
        yield "      marked_for_deletion: true"
    yield "      partitions:"
    for partition in topic.partitions:
        # Only fields that differ from the spec's defaults.
        fields = [f"replicas: {list(partition.replicas)}"]
        if partition.leader != partition.replicas[0]:
            fields.append(f"leader: {'none' if partition.leader is None else partition.leader}")
        if partition.isr is not None:
            fields.append(f"isr: {list(partition.isr)}")
        if (size_bytes := sizes.get((topic.name, partition.id))) is not None:
            fields.append(f"size: {size_bytes}")
        yield f"        - {{{', '.join(fields)}}}"


# The changes of topics, which are kept if the brokers change.
_OF_TOPICS = ("set_replication_factor", "create_topics", "add_partitions")


def with_brokers(
    text: str, added: Sequence[Broker], removed: Sequence[int], class_name: str, disk_used: str | None, title: str
) -> str:
    """A spec's YAML with other changes of brokers, and without `sizing`. All other text stays as it is.

    `title` is its first comment. `disk_used` becomes `limits.disk_used` if the spec states none. ValueError if the
    top-level keys are in braces, or if the lines that stay would say something else.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        raise ValueError("the keys of the file are in braces")
    spec, lines = read_yaml(text, "").value, text.splitlines(keepends=True)
    limits = spec.get("limits") or {}
    keeps_limits = disk_used is None or "disk_used" in limits
    new_keys = {"changes", "sizing"} if keeps_limits else {"changes", "sizing", "limits"}
    starts = [(key.value, key.start_mark.line) for key, _ in root.value]
    ends = [*(line for _, line in starts[1:]), len(lines)]
    kept_lines = lines[: starts[0][1]]
    for (name, start), end in zip(starts, ends, strict=True):
        # Comments before the next key belong to that key.
        while end > start + 1 and lines[end - 1].startswith(("#", "\n")):
            end -= 1
        next_start = next((line for _, line in starts if line >= end), len(lines))
        kept_lines += lines[end:next_start] if name in new_keys else lines[start:next_start]
    changes = {key: value for key, value in (spec.get("changes") or {}).items() if key in _OF_TOPICS}
    change_lines = [f"  {key}: {_flow(value)}\n" for key, value in changes.items()]
    if added:
        change_lines.append("  add_brokers:\n")
        for broker in added:
            rack = "" if broker.rack is None else f"rack: {_flow(broker.rack)}, "
            change_lines.append(f"    - {{id: {broker.id}, {rack}class: {_flow(class_name)}}}\n")
    if removed:
        change_lines.append(f"  remove_brokers: {list(removed)}\n")
    block = ["changes:\n", *change_lines, *(() if added or removed else ("  rebalance: all\n",))]
    if not keeps_limits:
        block.append(f"limits: {_flow({**limits, 'disk_used': disk_used})}\n")
    if kept_lines and not kept_lines[-1].endswith("\n"):
        kept_lines[-1] += "\n"
    return require_same(spec, new_keys, changes, with_digest(title, "".join([*kept_lines, *block])))


def require_same(spec: Mapping[str, object], new_keys: Set[str], changes: Mapping[str, object], text: str) -> str:
    """The text of a spec whose keys `new_keys` were written anew; ValueError unless it says all else as `spec`.

    An alias in a line that stays may need an anchor in one that doesn't, and no key can follow `...` or keys that are
    indented.
    """
    try:
        new_spec = read_yaml(text, "").value
    except SpecError as error:
        raise ValueError(f"without today's {', '.join(sorted(new_keys))}, it is {error.findings[0].message}") from None
    before, after = (
        {key: value for key, value in values.items() if key not in new_keys} for values in (spec, new_spec)
    )
    if before != after or not changes.items() <= new_spec["changes"].items():
        raise ValueError(f"without today's {', '.join(sorted(new_keys))}, its other keys would say something else")
    return text


# Keys that ask for another change, or for balance that copies more. Rules and limits stay.
_OF_LEADERS = ("leader_racks", "together")
_NOT_OF_DRAIN = ("changes", "balance", "log_dirs", "budget", "sweep", "sizing", "resilience", *_OF_LEADERS, "report")


def drained(text: str, broker: int, most_bytes: int, title: str) -> str:
    """The YAML of a valid spec that only asks that a broker holds at most `most_bytes`. `title` is its comment."""
    spec = deepcopy(read_yaml(text, "").value)
    classes = spec["cluster"].get("broker_classes") or {}
    class_of = {item["id"]: item.get("class") for item in spec["cluster"]["brokers"]}
    for item in spec["cluster"]["brokers"]:
        if item["id"] == broker:
            item["capacity"] = (item.get("capacity") or classes.get(item.pop("class", "")) or {}) | {
                "max_disk": f"{most_bytes}B"
            }
    drain_spec = {key: value for key, value in spec.items() if key not in _NOT_OF_DRAIN}
    for name, definition in (spec.get("broker_sets") or {}).items():
        # The broker's class is replaced by its capacity, and no broker joins, so a set is written as today's brokers.
        if "rack" not in definition:
            drain_spec["broker_sets"][name] = [
                each
                for each, class_name in class_of.items()
                if (class_name == definition["class"] if "class" in definition else each in definition)
            ]
    drain_spec |= {
        "changes": {"rebalance": "all"},
        "rack_aware": "disabled" if spec.get("rack_aware") == "disabled" else "as_today",
        "topics": {**(spec.get("topics") or {}), "on_brokers": [broker]},
        "balance": dict.fromkeys(("replicas", "leaders", "topic_replicas", "disk"), "none"),
        "sweep": {"candidates": 30},
    }
    return with_digest(title, yaml.dump(drain_spec, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))

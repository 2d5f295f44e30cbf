"""A state as the `cluster` part of a spec, in YAML. Every name goes through the YAML library, numbers through none."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from planner.inputs.importers.state_parts import TopicTarget
from planner.inputs.state.terraform_targets import Targets
from planner.model.cluster import Broker, Config, Partition, Topic
from planner.model.quoting import yaml_scalar

Key = tuple[str, int]

_WORD = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
_ENDLESS = sys.maxsize

_MARK = "# Written by planner import; a part of a spec, to be completed with what is to change."
# So that a later import replaces what nobody has worked on, and nothing else.
_DIGEST = "# SHA-256 of all below: "


@dataclass(frozen=True)
class Imported:
    """What is written. `sizes` has the partitions whose size is known; `state` are files instead of inline topics."""

    name: str
    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    sizes: Mapping[Key, int]
    bootstrap_servers: tuple[str, ...] = ()
    only_topics: tuple[str, ...] | None = None
    targets: Targets = field(default_factory=Targets)
    state: Mapping[str, str | list[str]] | None = None
    config_defaults: Config = ()


def text(imported: Imported) -> str:
    """The YAML, with a final newline; a sound spec by itself."""
    return _marked("\n".join(_lines(imported)) + "\n")


def is_as_written(content: bytes) -> bool:
    """Whether this is what an import wrote, to the last byte."""
    body = content.split(b"\n", 2)[-1].decode(errors="replace")
    return content == _marked(body).encode()


def _marked(body: str) -> str:
    return f"{_MARK}\n{_DIGEST}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


def _lines(imported: Imported) -> Iterator[str]:
    yield from ("version: 1", "cluster:", f"  name: {_flow(imported.name)}")
    if imported.bootstrap_servers:
        yield f"  bootstrap_servers: {_flow(list(imported.bootstrap_servers))}"
    yield "  brokers:"
    yield from (f"    - {_broker(broker)}" for broker in imported.brokers)
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


def _broker(broker: Broker) -> str:
    return f"{{id: {broker.id}}}" if broker.rack is None else f"{{id: {broker.id}, rack: {_flow(broker.rack)}}}"


def _topic(topic: Topic, sizes: Mapping[Key, int]) -> Iterator[str]:
    yield f"    - name: {_flow(topic.name)}"
    if topic.config:
        yield f"      config: {_flow(dict(topic.config))}"
    if topic.effective_config:
        yield f"      effective_config: {_flow(dict(topic.effective_config))}"
    if topic.deleting:
        yield "      marked_for_deletion: true"
    yield "      partitions:"
    for partition in topic.partitions:
        yield f"        - {_partition(partition, sizes.get((topic.name, partition.id)))}"


def _partition(partition: Partition, size_bytes: int | None) -> str:
    """Only what differs from what the spec takes for granted."""
    fields = [f"replicas: {_ids(partition.replicas)}"]
    if partition.leader != partition.replicas[0]:
        fields.append(f"leader: {'none' if partition.leader is None else partition.leader}")
    if partition.isr is not None:
        fields.append(f"isr: {_ids(partition.isr)}")
    if size_bytes is not None:
        fields.append(f"size: {size_bytes}")
    return f"{{{', '.join(fields)}}}"


def _ids(brokers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, brokers))}]"


def _changes(targets: Targets) -> Iterator[str]:
    """What Terraform declares otherwise than it is."""
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
        yield from (f"    - {_created(each)}" for each in created)


def _created(each: TopicTarget) -> str:
    config = f", config: {_flow(dict(each.config))}" if each.config else ""
    counts = f"partitions: {each.partitions}, replication_factor: {each.replication_factor}"
    return f"{{name: {_flow(each.topic)}, {counts}{config}}}"


def _flow(value: object) -> str:
    """A value on one line, inside brackets too: what isn't a plain word is in double quotes, line breaks escaped."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_flow(key)}: {_flow(each)}' for key, each in value.items())}}}"
        case list():
            return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, str) and not _WORD.fullmatch(value):
        return yaml_scalar(value)
    return yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=_ENDLESS).strip()[1:-1]

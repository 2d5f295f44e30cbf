"""A running cluster's state, through Confluent's client: the extra `live`.

Topics with replicas, leaders and ISRs, brokers with racks, and the configuration that topics set themselves. The client
offers neither log dirs nor running reassignments: the output of Kafka's own tools goes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from planner.errors import Place, SetupError
from planner.importers.entries import Config, Entry
from planner.importers.parts import BrokerSeen, Rank, StatePart
from planner.model import Partition

TITLE = "the live cluster"
TIMEOUT_SECONDS = 30.0
_AT_ONCE = 500
_NOTE = (
    "the client doesn't tell running reassignments: add the output of kafka-reassign-partitions --list, "
    "or make sure that there are none"
)
# `ConfigSource.DYNAMIC_TOPIC_CONFIG`: set for the topic itself.
_OF_TOPIC = 1


def read_live(bootstrap_servers: str, settings: Mapping[str, str]) -> StatePart:
    """The state of the cluster at `bootstrap_servers`. SetupError where the client is missing or can't reach it."""
    try:
        admin = import_module("confluent_kafka.admin")
        kafka_error = import_module("confluent_kafka").KafkaException
    except ImportError:
        message = "confluent-kafka isn't installed, which --bootstrap-servers needs"
        raise SetupError(f"{message}; allowed: pip install 'kafka-planner[live]'") from None
    complaints: list[str] = []
    own = {
        "bootstrap.servers": bootstrap_servers,
        "error_cb": lambda error: complaints.append(error.str()),
        "log_level": 0,
    }
    try:
        return read_cluster(admin.AdminClient({**settings, **own}), admin.ConfigResource, bootstrap_servers)
    except (kafka_error, ValueError, TypeError) as error:
        told = "; ".join(dict.fromkeys([*_told(error), *complaints[:3]]))
        raise SetupError(f"{bootstrap_servers}: the cluster can't be read: {told}") from None


def _told(error: Exception) -> Iterable[str]:
    """What librdkafka says; its KafkaException holds a KafkaError."""
    first = error.args[0] if error.args else error
    return [first.str() if hasattr(first, "str") else str(first)]


def read_cluster(client: Any, resource: Callable[[str, str], Any], where: str) -> StatePart:
    """What an AdminClient tells; `resource` makes the ConfigResource of a type and a name."""
    metadata = client.list_topics(timeout=TIMEOUT_SECONDS)
    described = client.describe_cluster(request_timeout=TIMEOUT_SECONDS).result()
    place = Place(where)
    return StatePart(
        TITLE,
        where,
        Rank.CLUSTER,
        tuple(_entries(metadata, place)),
        _configs(client, resource, sorted(metadata.topics)),
        leaders_known=True,
        whole=True,
        brokers=tuple(
            BrokerSeen(place, node.id, node.rack or None) for node in sorted(described.nodes, key=lambda node: node.id)
        ),
        notes=(_NOTE,),
    )


def _entries(metadata: Any, place: Place) -> Iterable[Entry]:
    for name, topic in sorted(metadata.topics.items()):
        if topic.error is not None:
            raise SetupError(f"{place.file}: topic {name} can't be read: {topic.error.str()}")
        for number, found in sorted(topic.partitions.items()):
            leader = found.leader if found.leader >= 0 else None
            partition = Partition(number, tuple(found.replicas), leader, tuple(found.isrs))
            yield Entry(place, f"{name}-{number}", name, partition)


def _configs(client: Any, resource: Callable[[str, str], Any], names: Sequence[str]) -> dict[str, Config]:
    """What each topic sets itself."""
    configs: dict[str, Config] = {}
    for start in range(0, len(names), _AT_ONCE):
        asked = [resource("TOPIC", name) for name in names[start : start + _AT_ONCE]]
        for about, future in client.describe_configs(asked, request_timeout=TIMEOUT_SECONDS).items():
            entries = future.result().values()
            own = [(entry.name, entry.value) for entry in entries if entry.source == _OF_TOPIC and entry.value]
            configs[about.name] = tuple(sorted(own))
    return configs

"""Reads configurations and racks from the output of Kafka's tools: topics' own and inherited configurations, brokers.

`kafka-configs --describe` prints a heading for each topic or broker (`Dynamic configs for topic T are:`, with `--all`
`All configs for topic T are:`, for the cluster `Default configs for brokers in the cluster are:`), then a line for each
key. `synonyms` lists the sources of the value, the effective one first; it is empty for Kafka's own default.
`kafka-broker-api-versions` prints every live broker above the versions of its requests. Source:
`kafka.admin.ConfigCommand`, since 2.5; `org.apache.kafka.tools.BrokerApiVersionsCommand`, which prints `Node`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.inputs.importers.state_parts import TOPIC_NAME, Rank, RegisteredBroker, StatePart
from planner.model.cluster import INHERITED, MIN_INSYNC, OF_TOPIC, Config, largest_min_insync
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "kafka-configs --describe"
_HEADING = re.compile(
    r"(?:(Dynamic|All) configs for (topic|broker) (\S+)|(Default) configs for brokers in the cluster) are:"
)
_LINE = re.compile(r"\s+([A-Za-z0-9._-]+)=(.*) sensitive=(?:true|false) synonyms=\{(.*)\}")
_SYNONYM = re.compile(r"(?:^|, )([A-Z_]+_CONFIG):([A-Za-z0-9._-]+)=")
_ALLOWED = "allowed: what kafka-configs --describe prints for topics or brokers, whole lines"

_BROKER = re.compile(
    r"^\S+:-?[0-9]{1,5} \(id: (\d{1,10}) rack: (.*?)(?: isFenced: (true|false))?\) -> (ERROR: )?",
    re.ASCII | re.MULTILINE,
)

# The log dirs that get no new replicas (KIP-1066), since Kafka 4.3.
CORDONED = "cordoned.log.dirs"

# Brokers' names of configurations that topics inherit with the same value (ServerTopicConfigSynonyms).
_BROKERS_NAMES = {
    "log.cleanup.policy": "cleanup.policy",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "message.max.bytes": "max.message.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}


@dataclass
class _ReadConfigs:
    """What is collected line by line. `brokers` has one mapping for each broker, `cluster` the default of all brokers.

    `cordoned` are the log dirs of each broker that get no new replica.
    """

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    inherited: dict[str, str] = field(default_factory=dict)
    brokers: list[dict[str, str]] = field(default_factory=list)
    cordoned: dict[int, tuple[str, ...]] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)


def recognizes_configs(text: str) -> bool:
    """True if any line is a heading of this format. Other output of the tool may come before it."""
    return re.search(rf"^{_HEADING.pattern}\s*$", text, re.MULTILINE) is not None


def read_configs(text: str, file: str) -> StatePart:
    """The configurations in the text. ImportStateError names each line that isn't a heading or a key with its value."""
    configs, findings = _ReadConfigs(), list[Finding]()
    heading = None
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rstrip("\r")
        place = Place(file, number, 1)
        new_heading = _HEADING.fullmatch(line.rstrip())
        if new_heading is not None:
            heading = new_heading
            _, kind, name, _ = heading.groups()
            if kind == "topic" and (name in configs.topics or not TOPIC_NAME.fullmatch(name)):
                message = f"the topic is here twice, or no topic can have this name; {_ALLOWED}"
                findings.append(Finding(place, name[:60], message))
            if kind == "topic":
                configs.topics.setdefault(name, {})
            elif kind == "broker":
                configs.brokers.append({})
        elif heading is not None and line.strip():
            entry = _LINE.fullmatch(line)
            if entry is None:
                findings.append(Finding(place, "", f"{line.strip()[:60]!r} isn't a key with its value; {_ALLOWED}"))
            else:
                _add_entry(heading, entry, configs)
    if findings:
        raise ImportStateError(findings)
    by_topic = {topic: tuple(sorted(config.items())) for topic, config in configs.topics.items()}
    alike = set.intersection(*(set(each.items()) for each in configs.brokers)) if configs.brokers else ()
    defaults = {**configs.cluster, **dict(alike), **configs.inherited}
    least, notes = largest_min_insync(each.get(MIN_INSYNC) for each in (defaults, configs.cluster, *configs.brokers))
    config_defaults = tuple(sorted((defaults | least).items()))
    return StatePart(
        TITLE,
        file,
        Rank.CLUSTER,
        configs=by_topic,
        config_defaults=config_defaults,
        notes=notes,
        cordoned=configs.cordoned,
    )


def _add_entry(heading: re.Match[str], entry: re.Match[str], configs: _ReadConfigs) -> None:
    """Adds one key of the topic, of the broker, or of all brokers that the heading is about."""
    _, kind, name, _ = heading.groups()
    key, value, listed = entry.groups()
    _, *parts = _SYNONYM.split(listed)
    synonyms = list(zip(parts[0::3], parts[1::3], parts[2::3], strict=True))
    source = synonyms[0][0] if synonyms else ""
    if kind == "topic":
        if source == OF_TOPIC and value:
            configs.topics[name][key] = value
        # A topic's own value hides the inherited one, which other topics have; it follows in `synonyms`.
        inherited = next(((name, text) for origin, name, text in synonyms if origin in INHERITED), None)
        if source in INHERITED:
            configs.inherited.setdefault(key, value)
        elif inherited is not None and inherited[0] == key:
            configs.inherited.setdefault(key, inherited[1])
    elif kind == "broker" and key == CORDONED and name.isdecimal():
        configs.cordoned |= cordoned(int(name), value)
    elif key in _BROKERS_NAMES and source in INHERITED:
        (configs.brokers[-1] if kind == "broker" else configs.cluster)[_BROKERS_NAMES[key]] = value


def cordoned(broker: int, value: str) -> dict[int, tuple[str, ...]]:
    """The broker with the log dirs of its `cordoned.log.dirs`; empty if it has none.

    Kafka before 4.3 accepts settings of any name. It prints `null` for this one, which has no effect there.
    """
    dirs = tuple(path for each in value.split(",") if (path := each.strip()) == "*" or path.startswith("/"))
    return {broker: dirs} if dirs else {}


def as_topics_inherit(config: Mapping[str, str]) -> Config:
    """The part of a broker's configuration that topics inherit, under the topics' names."""
    return tuple(sorted((_BROKERS_NAMES[key], value) for key, value in config.items() if key in _BROKERS_NAMES))


def recognizes_brokers(text: str) -> bool:
    """True if a line names a broker in the form of this tool."""
    return _BROKER.search(text) is not None


def read_brokers(text: str, file: str) -> StatePart:
    """The registered brokers, and a note of those that are fenced or gave an error.

    The lines are `kafka-1:9092 (id: 1 rack: r0 isFenced: false) -> (` …. No other tool of Kafka prints racks under
    KRaft. A rack named `null` can't be distinguished from no rack, because Kafka prints both the same.
    """
    lines = list(_BROKER.finditer(text))
    brokers = tuple(
        RegisteredBroker(
            Place(file, text.count("\n", 0, line.start()) + 1, 1),
            int(line[1]),
            None if line[2] in ("null", "") else line[2],
            answers=line[4] is None,
        )
        for line in lines
    )
    ids = [broker.id for broker in brokers]
    for index, broker in enumerate(brokers):
        if broker.id in ids[:index]:
            raise ImportStateError([Finding(broker.place, "", f"broker {broker.id} is here twice; allowed: once")])
    fenced = [line[1] for line in lines if line[3] == "true"]
    silent = (broker.id for broker in brokers if not broker.answers)
    notes = (
        *(f"broker {broker} is fenced by {file}: it is down, or not yet up" for broker in fenced),
        *(f"broker {broker} gave kafka-broker-api-versions an error, by {file}: it may be down" for broker in silent),
    )
    return StatePart("kafka-broker-api-versions", file, Rank.CLUSTER, brokers=brokers, notes=notes)

"""Parses the output of Kafka's tools. All functions are pure."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import re

BROKER_THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
CORDONED, ALL = "cordoned.log.dirs", "*"
TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

_LIVE_BROKER = re.compile(r"^\S+ [(]id: ([0-9]+) rack: (.*?)(?: isFenced: (?:true|false))?[)] -> [(]$", re.MULTILINE)
_PARTITION = re.compile(
    r"^\s+Topic: (\S+)\s+Partition: ([0-9]+)\s+Leader: (\S+)\s+Replicas: ([0-9,]*)\s+Isr: ([0-9,]*)(.*)$", re.MULTILINE
)
_TOPIC = re.compile(r"^Topic: (\S+)\s(?:.*\bTopicId: (\S+))?.*?\bConfigs:[ \t]*(.*)$", re.MULTILINE)
# Between these lines there may be warnings, if the operator's log4j settings send them to stdout.
_BROKER_CONFIGS = re.compile(r"^(?:Dynamic configs for broker ([0-9]+)|Default configs for .*) are:$")
_CONFIG = re.compile(r"^\s+([a-z][a-zA-Z.]*)=(\S*) sensitive=false")
_MOVING = re.compile(
    r"Reassignment of (?:partition ([A-Za-z0-9._-]+)|replica ([A-Za-z0-9._-]+)-[0-9]+) is still in progress"
)
_ELSEWHERE = re.compile(
    r"no active reassignment of partition ([A-Za-z0-9._-]+), but replica set is ([0-9,]*) rather than"
)
_COMPLETED = re.compile(r"Reassignment of partition ([A-Za-z0-9._-]+) is completed")
# A replica that isn't in its planned log dir: it still moves, doesn't move, moves to another dir, or isn't found.
_MISPLACED = re.compile(
    r"^(?:Reassignment of replica |Partition )([A-Za-z0-9._-]+?)(?:-[0-9]+ is still in progress|"
    r" on broker [0-9]+ is (?:not )?being moved| is not found in any live| cannot be found in any live)",
    re.MULTILINE,
)
_LISTED = re.compile(
    r"^([A-Za-z0-9._-]+): replicas: ([0-9,]+)[.](?: adding: [0-9,]*[.])?(?: removing: ([0-9,]*)[.])?", re.MULTILINE
)
_ADDED_AND_REMOVED = re.compile(r"^([A-Za-z0-9._-]+): .* adding: ([0-9,]+)[.] removing: ([0-9,]+)[.]", re.MULTILINE)
_LISTED_ADDING = re.compile(r"^([A-Za-z0-9._-]+): replicas: [0-9,]+[.] adding: ([0-9,]+)[.]", re.MULTILINE)
_ADDING = re.compile("Adding Replicas: ([0-9,]+)")
_REMOVING = re.compile("Removing Replicas: ([0-9,]+)")
# After a group's name: topic, partition, offset, end offset and lag, then the member, whose name may have spaces. A
# dash stands for no value.
_LAG = r" +[A-Za-z0-9._-]+ +[0-9]+ +(?:[0-9]+|-) +(?:[0-9]+|-) +([0-9]+|-) +[^ ]"


def live_brokers(text):
    """Ids of the live brokers in the output of kafka-broker-api-versions."""
    return set(broker_racks(text))


def broker_racks(text):
    """{id: rack} of the live brokers in the output of kafka-broker-api-versions."""
    return {int(broker): rack for broker, rack in _LIVE_BROKER.findall(text)}


def partitions(text):
    """{name: (leader or None, replicas, isr)} in the output of kafka-topics --describe."""
    return {
        f"{topic}-{number}": (int(leader) if leader.isdigit() else None, ids(replicas), ids(isr))
        for topic, number, leader, replicas, isr, _ in _PARTITION.findall(text)
    }


def reassigned(text):
    """{partition: its replica list after its reassignment} in the output of kafka-topics --describe."""
    found = {}
    for topic, number, _, replicas, _, rest in _PARTITION.findall(text):
        if "ing Replicas: " in rest:
            removing = _REMOVING.search(rest)
            leave = ids(removing.group(1)) if removing else []
            found[f"{topic}-{number}"] = [broker for broker in ids(replicas) if broker not in leave]
    return dict(sorted(found.items()))


def adding(text, listed=""):
    """{partition: brokers that it is being copied to} in the output of kafka-topics --describe, and of --list."""
    found = {f"{topic}-{number}": _ADDING.search(rest) for topic, number, _, _, _, rest in _PARTITION.findall(text)}
    found = {name: ids(match.group(1)) for name, match in found.items() if match}
    return {**found, **{name: ids(brokers) for name, brokers in _LISTED_ADDING.findall(listed)}}


def topics(text):
    """{topic: (its id or an empty text, {throttle: value})} in the output of kafka-topics --describe."""
    return {
        topic: (number, {key: value for key, value in _pairs(configs) if key in TOPIC_THROTTLES})
        for topic, number, configs in _TOPIC.findall(text)
    }


def min_insync(text):
    """{topic: min.insync.replicas} in the output of kafka-topics --describe; without the default, 1."""
    return {
        topic: int(value)
        for topic, _, configs in _TOPIC.findall(text)
        for key, value in _pairs(configs)
        if key == "min.insync.replicas"
    }


def broker_throttles(text, keys=BROKER_THROTTLES):
    """{broker: {throttle: value}} in the output of kafka-configs --describe --entity-type brokers; or other keys."""
    found, broker = {}, None
    for line in text.splitlines():
        head, config = _BROKER_CONFIGS.match(line), _CONFIG.match(line)
        if head:
            broker = head.group(1)
            found.update({broker: {}} if broker else {})
        elif broker is not None and config and config.group(1) in keys:
            found[broker][config.group(1)] = config.group(2)
    return found


def cordon(text):
    """The cordoned log dirs in the output of kafka-configs --describe --all of a broker: in force, and set on itself.

    The first is None if the broker's Kafka doesn't know the setting. Such a Kafka accepts it nevertheless, as it
    accepts any name, and prints it as a secret. The second is None if nothing is set on the broker itself.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(f"{CORDONED}=")]
    if not lines or " sensitive=true" in lines[0]:
        return None, None
    own = f"DYNAMIC_BROKER_CONFIG:{CORDONED}="
    value = lines[0].partition("=")[2].rpartition(" sensitive=")[0]
    # A value set on the broker itself is the one in force.
    return value, value if own in lines[0] else None


def moving(text):
    """Partitions that still move, or have a replica that moves to another log dir, in the output of --verify."""
    return sorted({between or inside for between, inside in _MOVING.findall(text)})


def reached(text):
    """Partitions that are where they should be, log dirs included, in the output of --verify."""
    return sorted(set(_COMPLETED.findall(text)) - misplaced(text))


def misplaced(text):
    """Partitions with a replica that isn't in its planned log dir, in the output of --verify."""
    return set(_MISPLACED.findall(text))


def elsewhere(text):
    """Partitions that don't move and aren't where they should be, with the reason, in the output of --verify."""
    found = {name: f" (replicas {now})" if now else " (gone)" for name, now in _ELSEWHERE.findall(text)}
    inside = dict.fromkeys(misplaced(text) - {*moving(text)}, " (another log dir)")
    return sorted(name + said for name, said in {**inside, **found}.items())


def listed(text):
    """{partition: its replica list after its reassignment} in the output of --list."""
    return {
        name: [broker for broker in ids(replicas) if broker not in ids(removing)]
        for name, replicas, removing in _LISTED.findall(text)
    }


def turned_around(text):
    """Partitions in the output of --list with a replica both to be added and removed. Kafka never completes these."""
    return [name for name, added, gone in _ADDED_AND_REMOVED.findall(text) if {*ids(added)} & {*ids(gone)}]


def voters(text):
    """Ids of the controllers in the output of kafka-metadata-quorum describe --status, of Kafka 3.3 or newer."""
    line = re.search(r"^CurrentVoters:\s*(\[.*\])", text, re.MULTILINE)
    return [each["id"] if isinstance(each, dict) else each for each in json.loads(line.group(1))] if line else []


def lists(text):
    """{partition: replica list} in a reassignment file."""
    return {f"{each['topic']}-{each['partition']}": each["replicas"] for each in json.loads(text)["partitions"]}


def by_topic(names):
    """{topic: numbers of its partitions} from the names of partitions."""
    found = {}
    for name in names:
        topic, _, number = name.rpartition("-")
        found.setdefault(topic, []).append(int(number))
    return found


def arriving(target, origin):
    """{broker: partitions that it gets a replica of}, from the replica lists of two reassignment files."""
    found = {}
    for name, replicas in target.items():
        for broker in replicas:
            if broker not in origin.get(name, []):
                found.setdefault(broker, set()).add(name)
    return found


def usable_dirs(text):
    """{broker: paths of log dirs without an error} in the output of kafka-log-dirs."""
    return {
        broker["broker"]: [log_dir["logDir"] for log_dir in broker["logDirs"] if log_dir["error"] is None]
        for broker in _log_dirs(text) or []
    }


def _log_dirs(text):
    rows = [line for line in text.splitlines() if line.startswith("{") and '"brokers":' in line]
    return json.loads(rows[0])["brokers"] if rows else None


def used_bytes(text):
    """{broker: bytes of all its replicas, including those being copied} in the output of kafka-log-dirs.

    A broker without log dirs isn't in it: nothing is known of its disks.
    """
    return {
        broker["broker"]: sum(each["size"] for log_dir in broker["logDirs"] for each in log_dir["partitions"])
        for broker in _log_dirs(text) or []
        if broker["logDirs"]
    }


def lag(text, group):
    """The lag of a consumer group, in records, in the output of kafka-consumer-groups; None if it lists no lag."""
    rows = [each for each in re.findall(f"^{re.escape(group)}{_LAG}", text, re.MULTILINE) if each != "-"]
    return sum(map(int, rows)) if rows else None


def unstored(text, wanted):
    """Rows on the `wanted` replicas, {broker: partitions}, that a broker doesn't have and one of its log dirs failed.

    The output of kafka-log-dirs doesn't say which replicas a failed log dir has. It lists all others.
    """
    rows = []
    for broker in _log_dirs(text) or []:
        failed = [each["logDir"] for each in broker["logDirs"] if each["error"] is not None]
        has = {each["partition"] for log_dir in broker["logDirs"] for each in log_dir["partitions"]}
        lacks = sorted(set(wanted.get(broker["broker"], ())) - has) if failed else []
        rows += [f"{name} (broker {broker['broker']}, {', '.join(failed)})" for name in lacks]
    return rows


def copied_bytes(text, wanted):
    """Bytes of the `wanted` replicas, {broker: partitions}, in the output of kafka-log-dirs; None if it has no JSON."""
    brokers = _log_dirs(text)
    if brokers is None:
        return None
    total = 0
    for broker in brokers:
        names = wanted.get(broker["broker"], ())
        for log_dir in broker["logDirs"]:
            total += sum(each["size"] for each in log_dir["partitions"] if each["partition"] in names)
    return total


def ids(text):
    """The brokers of a replica list such as `1,2,3`."""
    return [int(broker) for broker in text.split(",") if broker]


def _pairs(configs):
    """The keys and values of `a=1,b=0:1,0:2`; values may contain commas."""
    return re.findall(r"(?:^|,)([a-z][a-zA-Z.]*)=(.*?)(?=,[a-z][a-zA-Z.]*=|$)", configs.strip())

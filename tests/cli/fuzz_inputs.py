"""The sound files from which the fuzz test starts, and the ways to break them; data for test_fuzz."""

from __future__ import annotations

import json
import random

TEMPLATES = (
    "{{ lookup('pipe','id') }}",
    "{% for x in y %}",
    "{# x",
    "[[ x ]]",
    "[% x %]",
    "$(id)",
    "`id`",
    '"; rm -rf /',
    "|| id",
)
MARKUP = ("<script>alert(1)</script>", "](http://x)", "| a | b |", "# x", "* x", "&lt;", "\\", "'", '"')
YAML = (
    "!!python/object:os.system",
    "&a [*a]",
    "*a",
    "<<: *a",
    "%TAG",
    "---\n",
    "...\n",
    "- " * 300,
    "? ",
    ": ",
    "#",
    "~",
    "yes",
)
SIGNS = (
    "\x00",
    "\x1b[2J",
    "\u202e",
    "\ufeff",
    "\u2028",
    "\x85",
    "\ud83d",
    "é" * 300,
    "x" * 5000,
    "\t",
    "\r",
    "\n",
    ",",
    ":",
)
NUMBERS = ("-1", "NaN", "Infinity", "1e999", "9" * 400, "2147483648", "0x10", "1_0", "1:20", "null", "", "07", "1.5")
JSONS = (
    "[" * 200,
    "{" * 200,
    '{"a":' * 2000,
    "[]",
    "{}",
    '"partitions":{',
    '"version":3',
    '"topic":"a"',
    '"a":1,"a":2',
)
PATHS = ("../../../../etc/passwd", "/dev/zero", "~/x", "a-1", "a-", "-1-1", "..", ".")
KAFKAS = (
    "Topic: ",
    "\tTopic: a\tPartition: 0",
    "Leader: none",
    "MarkedForDeletion: true",
    "Adding Replicas: 9",
    "Current partition replica assignment",
    "Current partition reassignments:",
    "No partition reassignments found.",
)
HOSTILE = TEMPLATES + MARKUP + YAML + SIGNS + NUMBERS + JSONS + PATHS + KAFKAS

_SIZES = [{"partition": name, "size": 5 << 20, "offsetLag": 0, "isFuture": False} for name in ("a-1-0", "a-1-1", "b-0")]
_REPLICAS = [{"topic": "a-1", "partition": at, "replicas": [at + 1, at + 2]} for at in range(2)]
_ROW = {"topic": "a-1", "partition": 0, "leader": 1, "replicas": [1, 2], "in-sync": [1], "out-of-sync": [2]}
_TOPIC = {"name": "a-1", "partitions": 4, "replication_factor": 3, "config": {"a.b": "c"}}
_RESOURCE = {"address": "kafka_topic.x", "mode": "managed", "type": "kafka_topic", "values": _TOPIC}
_REASSIGNMENT = json.dumps({"version": 1, "partitions": _REPLICAS})

STATE_FILES = {
    "describe.txt": (
        "Topic: a-1\tTopicId: x\tPartitionCount: 2\tReplicationFactor: 2\t"
        "Configs: min.insync.replicas=1,cleanup.policy=compact,delete\n"
        "\tTopic: a-1\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr: \n"
        "\tTopic: a-1\tPartition: 1\tLeader: none\tReplicas: 2,3\tIsr: 2\tElr: N/A\tLastKnownElr: N/A\n"
        "Topic:b\tPartitionCount:1\tReplicationFactor:3\tConfigs:\tMarkedForDeletion:true\n"
        "\tTopic: b\tPartition: 0\tLeader: -1\tReplicas: 3,1,2\tIsr: \tMarkedForDeletion: true\n"
    ),
    "log-dirs.txt": "Querying brokers\n"
    + json.dumps({"brokers": [{"broker": 1, "logDirs": [{"partitions": _SIZES, "error": None, "logDir": "/d1"}]}]}),
    "topic-configs.txt": (
        "All configs for topic a-1 are:\n"
        "  a.b=c sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:a.b=c, DEFAULT_CONFIG:log.a.b=d}\n"
        "  min.insync.replicas=1 sensitive=false synonyms={STATIC_BROKER_CONFIG:min.insync.replicas=1}\n"
        "Default configs for brokers in the cluster are:\n"
        "  log.retention.ms=5 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5}\n"
    ),
    "config-topics-a-1.json": '{"version":1,"config":{"a.b":"c","min.insync.replicas":"1"}}',
    "reassignment.json": _REASSIGNMENT,
    "generate.txt": (
        f"Current partition replica assignment\n{_REASSIGNMENT}\n\n"
        f"Proposed partition reassignment configuration\n{_REASSIGNMENT}\n"
    ),
    "topics-to-move.json": '{"version":1,"topics":[{"topic":"a-1"},{"topic":"gone"}]}',
    "list.txt": "Current partition reassignments:\na-1-0: replicas: 1,2,4,3. adding: 4. removing: 3.\n",
    "replica-assignment.txt": "0:1,1:0,0:1",
    "versions.txt": "h:1 (id: 1 rack: r1 isFenced: false) -> (\n\tProduce(0): 0\n)\nh:2 (id: 2 rack: null) -> (\n)\n",
    "brokers-topics-a-1.json": (
        '{"version":3,"partitions":{"0":[1,2],"1":[2,3]},"adding_replicas":{"0":[]},"removing_replicas":{}}'
    ),
    "brokers-ids-1.json": '{"endpoints":["PLAINTEXT://h:1"],"rack":"r1","jmx_port":-1,"port":1,"host":"h","version":5}',
    "brokers-topics-a-1-partitions-0-state.json": '{"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}',
    "terraform.json": json.dumps(
        {"format_version": "1.0", "terraform_version": "1", "values": {"root_module": {"resources": [_RESOURCE]}}}
    ),
    "cluster-state.json": json.dumps({"KafkaPartitionState": {"urp": [_ROW], "other": [{**_ROW, "partition": 1}]}}),
    "proposals.json": json.dumps({"proposals": [{"topicPartition": "a-1-0", "oldLeader": 1, "oldReplicas": [1, 2]}]}),
}

_BROKERS = (
    "  brokers: [{id: 1, rack: a}, {id: 2, rack: b, capacity: {disk: 4TiB, network: 1Gbit/s}}, {id: 3, rack: c}]\n"
)
_HEAD = f"version: 1\ncluster:\n  name: n\n{_BROKERS}"
INLINE = f"""\
{_HEAD}  bootstrap_servers: [kafka-1:9092, "[::1]:9093"]
  config_defaults: {{segment.bytes: 1048576}}
  topics:
    - name: a-1
      config: {{min.insync.replicas: 1, cleanup.policy: "compact,delete"}}
      effective_config: {{retention.ms: 5}}
      partitions:
        - {{replicas: [1, 2], size: 12GiB, leader: none, isr: [1]}}
        - {{replicas: [2, 3], size: 500 GB, bytes_in: 3MB/s}}
    - {{name: __consumer_offsets, partitions: [{{replicas: [1], size: 1}}]}}
changes:
  add_brokers: [{{id: 7, rack: c}}]
  replace_brokers: {{3: 9}}
  set_replication_factor: [{{topics: "a-*", replication_factor: 3}}]
topics: {{include: ["*"], exclude: ["__consumer_offsets"]}}
balance: {{replicas: 1, leaders: 5%, disk: 40%}}
limits: {{bytes_moved: 2TiB, replicas_moved: 500}}
sweep: {{candidates: 20, seed: 7, variants: [{{name: three, changes: {{remove_brokers: [2]}}}}]}}
execution: {{throttle: 50MB/s, batches: {{bytes: 500GiB, moves_per_broker: 4}}}}
"""
FROM_FILES = f"""\
{_HEAD}  state: {{assignment: describe.txt, sizes: log-dirs.txt}}
changes: {{add_brokers: [{{id: 7, rack: c}}]}}
"""


def named(name: str, rack: str, value: str) -> str:
    """A spec with this cluster name, rack and topic configuration; it may be invalid."""
    cluster, zone, config = (json.dumps(text) for text in (name, rack, value))
    return f"""\
version: 1
cluster:
  name: {cluster}
  brokers: [{{id: 1, rack: {zone}}}, {{id: 2, rack: b}}, {{id: 3, rack: c}}]
  topics:
    - name: a-1
      config: {{cleanup.policy: {config}}}
      partitions: [{{replicas: [1, 2], size: 1GB}}, {{replicas: [1, 2], size: 1GB}}, {{replicas: [2, 1], size: 2GB}}]
changes: {{remove_brokers: [2]}}
execution: {{throttle: 50MB/s}}
"""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The data after one to four changes: cut, repeated, shuffled, re-encoded, or with a hostile token."""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(_MUTATIONS)(data, rng)
    return data


def _hostile(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + _token(rng) + data[at:]


def _in_the_place_of_a_word(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + _token(rng) + data[start + rng.randint(1, 12) :]


def _token(rng: random.Random) -> bytes:
    return rng.choice(HOSTILE).encode("utf-8", "surrogatepass")


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _drop(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.randint(1, 40) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    end = start + rng.randint(1, 60)
    return data[:end] + data[start:end] * rng.choice([1, 1, 3, 300]) + data[end:]


def _shuffle_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _number(data: bytes, rng: random.Random) -> bytes:
    digits = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    at = rng.choice(digits) if digits else 0
    return data[:at] + rng.choice([*NUMBERS, "0", "99", "2147483647"]).encode() + data[at + 1 :]


def _windows(data: bytes, _: random.Random) -> bytes:
    return b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")


def _utf_16(data: bytes, _: random.Random) -> bytes:
    return data.decode("utf-8", "replace").encode("utf-16")


_OFTEN = (_hostile, _in_the_place_of_a_word, _number, _number)
_MUTATIONS = (*_OFTEN, *_OFTEN, _flip, _cut, _drop, _repeat, _shuffle_lines, _windows, _utf_16)

#!/usr/bin/python
"""One look at a cluster while a plan is carried out: what still moves, and what speaks against going on."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import re
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
---
module: kafka_reassign
short_description: Waits for a batch of a reassignment of Apache Kafka, and looks whether the cluster is well meanwhile
description:
  - Asks Kafka's own tools. Changes nothing.
  - The action plugin of the same name calls it again and again, prints the progress, and holds or stops the run.
options:
  reassign:
    description: Command of kafka-reassign-partitions with its client's options.
    type: list
    elements: str
    required: true
  topics:
    description: Command of kafka-topics with its client's options.
    type: list
    elements: str
    required: true
  brokers:
    description: Command of kafka-broker-api-versions with its client's options.
    type: list
    elements: str
    required: true
  log_dirs:
    description: Command of kafka-log-dirs with its client's options.
    type: list
    elements: str
    required: true
  target:
    description: Reassignment file of the batch on the admin host. Without it there is only a look at the cluster.
    type: str
    default: ""
  origin:
    description: Reassignment file of the same partitions with the lists they come from.
    type: str
    default: ""
  look_at_cluster:
    description: Whether to look at brokers and at partitions outside the batch.
    type: bool
    default: true
  measure:
    description: Whether to add up the bytes that have arrived.
    type: bool
    default: false
  expected_brokers:
    description: Brokers that must be live.
    type: list
    elements: int
    default: []
  leaving_brokers:
    description: Brokers that the plan empties. A replica there may be out of sync.
    type: list
    elements: int
    default: []
  known:
    description: Partitions that were out of sync or without a leader before, and are allowed to be.
    type: list
    elements: str
    default: []
  stop_file:
    description: The run stops after the batch when this file exists on the admin host.
    type: str
    default: ""
  command:
    description: Command of the operator's own. Another exit code than 0 speaks against going on.
    type: list
    elements: str
    default: []
author:
  - kafka-planner (@kafka-planner)
"""

EXAMPLES = r"""
- name: Look at the cluster between two batches
  kafka_reassign:
    reassign: [/opt/kafka/bin/kafka-reassign-partitions.sh, --bootstrap-server, "kafka-1:9092"]
    topics: [/opt/kafka/bin/kafka-topics.sh, --bootstrap-server, "kafka-1:9092"]
    brokers: [/opt/kafka/bin/kafka-broker-api-versions.sh, --bootstrap-server, "kafka-1:9092"]
    log_dirs: [/opt/kafka/bin/kafka-log-dirs.sh, --bootstrap-server, "kafka-1:9092"]
    expected_brokers: [1, 2, 3]
"""

RETURN = r"""
reasons:
  description: What speaks against going on, by guard, as sentences.
  returned: always
  type: dict
  sample: {"live_brokers": "broker 4 is not live"}
rc:
  description: Exit code of the --verify of the batch.
  returned: with target
  type: int
stdout:
  description: Output of the --verify of the batch.
  returned: with target
  type: str
moving:
  description: Partitions of the batch that still move.
  returned: with target
  type: list
  elements: str
partitions:
  description: Number of partitions of the batch.
  returned: with target
  type: int
elsewhere:
  description: Partitions of the batch that don't move and are not where they should be.
  returned: with target
  type: list
  elements: str
copied_bytes:
  description: Bytes of the batch's new replicas on their brokers, or null where nobody knows.
  returned: with target
  type: int
"""

_LIVE_BROKER = re.compile(r"^\S+ [(]id: ([0-9]+) rack: .*[)] -> [(]$", re.MULTILINE)
_PARTITION = re.compile(
    r"^\s+Topic: (\S+)\s+Partition: ([0-9]+)\s+Leader: (\S+)\s+Replicas: ([0-9,]*)\s+Isr: ([0-9,]*)", re.MULTILINE
)
_MOVING = re.compile(r"Reassignment of (?:partition|replica) ([A-Za-z0-9._-]+) is still in progress")
_ELSEWHERE = re.compile(r"no active reassignment of partition ([A-Za-z0-9._-]+), but replica set is")
_LISTED = re.compile(r"^([A-Za-z0-9._-]+): replicas: [0-9,]+[.]", re.MULTILINE)
_NAMED = 5
# A list of topics longer than this may not fit into one argument of a command.
_TOPICS_GIVEN = 100


def live_brokers(text):
    """Ids in the output of kafka-broker-api-versions."""
    return {int(broker) for broker in _LIVE_BROKER.findall(text)}


def partitions(text):
    """{name: (leader or None, replicas, isr)} in the output of kafka-topics --describe."""
    return {
        f"{topic}-{number}": (int(leader) if leader.isdigit() else None, _ids(replicas), _ids(isr))
        for topic, number, leader, replicas, isr in _PARTITION.findall(text)
    }


def moving(text):
    """Partitions, and replicas on their way to a log dir, that the output of --verify says are in progress."""
    return sorted(set(_MOVING.findall(text)))


def elsewhere(text):
    """Partitions that the output of --verify says don't move and are not where they should be."""
    return sorted(set(_ELSEWHERE.findall(text)))


def listed(text):
    """Partitions that the output of --list says are reassigned."""
    return sorted(set(_LISTED.findall(text)))


def lists(text):
    """{name: brokers} in a reassignment file."""
    return {f"{each['topic']}-{each['partition']}": each["replicas"] for each in json.loads(text)["partitions"]}


def arriving(target, origin):
    """{broker: partitions that it gets} of two reassignment files' lists."""
    found = {}
    for name, replicas in target.items():
        for broker in replicas:
            if broker not in origin.get(name, []):
                found.setdefault(broker, set()).add(name)
    return found


def copied_bytes(text, wanted):
    """Bytes of the wanted partitions on their brokers in the output of kafka-log-dirs, or None without an answer."""
    rows = [line for line in text.splitlines() if line.startswith("{")]
    if not rows:
        return None
    total = 0
    for broker in json.loads(rows[0])["brokers"]:
        names = wanted.get(broker["broker"], ())
        for log_dir in broker["logDirs"]:
            total += sum(each["size"] for each in log_dir["partitions"] if each["partition"] in names)
    return total


def cluster_reasons(live, described, under_min_isr, reassigned, expected, leaving, own, known):
    """What speaks against going on, by guard: a sentence without its full stop each.

    A partition of the batch may be out of sync: its new replicas are, until they have caught up.
    """
    dead = sorted(set(expected) - live)
    behind = sorted(
        name
        for name, (leader, replicas, isr) in described.items()
        if leader is not None and set(replicas) - set(isr) - set(leaving) - set(dead) and name not in own
    )
    offline = sorted(name for name, (leader, _, _) in described.items() if leader is None)
    found = {
        "live_brokers": "not live: " + _named("broker", dead) if dead else "",
        "offline": _counted([name for name in offline if name not in known], "without a leader"),
        "under_min_isr": _counted([name for name in under_min_isr if name not in known], "under min.insync.replicas"),
        "under_replicated": _counted([name for name in behind if name not in known], "under-replicated"),
        "foreign": _counted([name for name in reassigned if name not in own], "reassigned by somebody else"),
    }
    return {guard: said for guard, said in found.items() if said}


def _ids(text):
    return [int(broker) for broker in text.split(",") if broker]


def _named(noun, ids):
    return f"{noun if len(ids) == 1 else noun + 's'} {', '.join(map(str, ids))}"


def _counted(names, what):
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
    return f"{len(names)} {'partition' if len(names) == 1 else 'partitions'} {what}: {shown}"


class Look:
    """The questions, each to one of Kafka's tools."""

    def __init__(self, module):
        self.module = module
        self.given = module.params

    def run(self, argv):
        """Exit code and output; arguments are passed on as they are."""
        code, out, err = self.module.run_command(argv, expand_user_and_vars=False)
        return code, out, err

    def asked(self, tool, *options):
        """Output of a tool, or None where it failed: a controller or a broker may just restart."""
        code, out, _ = self.run([*self.given[tool], *options])
        return out if code == 0 else None

    def cluster(self, own):
        """Reasons of the brokers and partitions; a question without an answer is a reason itself."""
        answers = [
            self.asked("brokers"),
            self.asked("topics", "--describe"),
            self.asked("topics", "--describe", "--under-min-isr-partitions"),
            self.asked("reassign", "--list"),
        ]
        if None in answers:
            return {"no_answer": "Kafka's tools get no answer from the cluster"}
        live, described, below, moved = answers
        return cluster_reasons(
            live_brokers(live),
            partitions(described),
            sorted(partitions(below)),
            listed(moved),
            self.given["expected_brokers"],
            self.given["leaving_brokers"],
            own,
            set(self.given["known"]),
        )

    def operators(self):
        """Reasons of the operator's own: the stop file, and the command."""
        found = {}
        if self.given["stop_file"] and Path(self.given["stop_file"]).exists():
            found["stop_file"] = f"the stop file {self.given['stop_file']} exists"
        if self.given["command"]:
            code, out, err = self.run(self.given["command"])
            if code != 0:
                said = ((out + err).strip().splitlines() or [""])[0][:200]
                found["command"] = f"the guard command ends with exit code {code}{': ' + said if said else ''}"
        return found

    def batch(self, target, origin):
        """How far the batch is."""
        options = ["--verify", "--preserve-throttles", "--reassignment-json-file"]
        target_file = self.given["target"]
        code, out, err = self.run([*self.given["reassign"], *options, target_file])
        found = {"rc": code, "stdout": out, "stderr": err, "moving": moving(out), "elsewhere": elsewhere(out)}
        found["copied_bytes"] = self.copied(arriving(target, origin)) if self.given["measure"] else None
        return dict(found, partitions=len(target))

    def copied(self, wanted):
        """Bytes that have arrived so far."""
        if not wanted:
            return 0
        topics = sorted({name.rpartition("-")[0] for names in wanted.values() for name in names})
        only = ["--topic-list", ",".join(topics)] if len(topics) <= _TOPICS_GIVEN else []
        out = self.asked("log_dirs", "--describe", "--broker-list", ",".join(map(str, sorted(wanted))), *only)
        return None if out is None else copied_bytes(out, wanted)


def main():
    """One look."""
    words = {"type": "list", "elements": "str"}
    numbers = {"type": "list", "elements": "int", "default": []}
    module = AnsibleModule(
        argument_spec={
            "reassign": dict(words, required=True),
            "topics": dict(words, required=True),
            "brokers": dict(words, required=True),
            "log_dirs": dict(words, required=True),
            "target": {"type": "str", "default": ""},
            "origin": {"type": "str", "default": ""},
            "look_at_cluster": {"type": "bool", "default": True},
            "measure": {"type": "bool", "default": False},
            "expected_brokers": numbers,
            "leaving_brokers": numbers,
            "known": dict(words, default=[]),
            "stop_file": {"type": "str", "default": ""},
            "command": dict(words, default=[]),
        },
        supports_check_mode=True,
    )
    look = Look(module)
    result = {"changed": False, "reasons": {}}
    target, origin = {}, {}
    if module.params["target"]:
        target, origin = (lists(Path(module.params[name]).read_text()) for name in ("target", "origin"))
        result.update(look.batch(target, origin))
    if module.params["look_at_cluster"]:
        result["reasons"].update(look.cluster(set(target)))
        result["reasons"].update(look.operators())
    module.exit_json(**result)


if __name__ == "__main__":
    main()

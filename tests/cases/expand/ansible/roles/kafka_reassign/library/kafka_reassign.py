#!/usr/bin/python
"""What the role asks the cluster and its admin host: looks, throttles, and the journal of a run."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_reassign_cluster import Cluster, ToolError
from ansible.module_utils.kafka_reassign_throttles import Throttles, folder_of

DOCUMENTATION = r"""
---
module: kafka_reassign
short_description: Waits for a batch of a reassignment of Apache Kafka, and looks whether the cluster is well meanwhile
description:
  - Asks Kafka's own tools, and keeps a journal and the throttles from before the run on the admin host.
  - The action plugin of the same name calls it again and again, prints the progress, and holds or stops the run.
options:
  ask:
    description:
      - C(check) whether the plan may begin.
      - C(look) at the cluster and at the batch.
      - Whether the whole target is C(reached).
      - Which batches C(leaders) are still to be elected for.
      - How topics with C(new) partitions stand.
      - C(begin) a journal, and record the throttles that are set.
      - C(throttle) what moves at another rate.
      - C(restore) the throttles from before.
      - C(note) something in the journal only.
    type: str
    choices: [check, look, reached, leaders, new, begin, throttle, restore, note]
    default: look
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
  configs:
    description: Command of kafka-configs with its client's options.
    type: list
    elements: str
    required: true
  groups:
    description: Command of kafka-consumer-groups with its client's options.
    type: list
    elements: str
    required: true
  target:
    description: Reassignment file on the admin host. Without it there is only a look at the cluster.
    type: str
    default: ""
  origin:
    description: Reassignment file of the same partitions with the lists they come from.
    type: str
    default: ""
  plan_dir:
    description: Folder on the admin host with the plan's files.
    type: str
    default: ""
  before:
    description: Whether the batch of the target isn't begun yet. Throttles of topics that are done are lifted then.
    type: bool
    default: false
  verify:
    description: Whether to ask for the progress of the file's partitions.
    type: bool
    default: false
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
  racks:
    description: Racks of brokers that the plan counts on.
    type: dict
    default: {}
  planned_log_dirs:
    description: Log dirs that the plan names, by broker.
    type: dict
    default: {}
  allow_under_replicated:
    description: Whether to begin although replicas that stay are out of sync.
    type: bool
    default: false
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
  disk_limits:
    description: Bytes that a broker may hold, by broker.
    type: dict
    default: {}
  lag_limits:
    description: Records that a consumer group may be behind, by group.
    type: dict
    default: {}
  stop_file:
    description: The run stops after the batch when this file exists on the admin host.
    type: str
    default: ""
  command:
    description: Command of the operator's own. Another exit code than 0 speaks against going on.
    type: list
    elements: str
    default: []
  throttle_bytes_per_sec:
    description: Rate of this run, 0 for none.
    type: int
    default: 0
  throttle_file:
    description: File on the admin host with another rate, in bytes a second. It may change while a batch runs.
    type: str
    default: ""
  journal_dir:
    description: Folder on the admin host for journals and the throttles from before.
    type: str
    default: ""
  journal:
    description: Journal of this run, as C(begin) returns it; nothing is written without it.
    type: str
    default: ""
  entries:
    description: What to write to the journal.
    type: list
    elements: dict
    default: []
  plan_id:
    description: Id of the plan, for the names of files.
    type: str
    default: ""
  direction:
    description: Direction of the run, for the name of the journal.
    type: str
    default: apply
  although_moving:
    description: Whether to restore throttles while partitions of the plan still move.
    type: bool
    default: false
author:
  - kafka-planner (@kafka-planner)
"""

EXAMPLES = r"""
- name: Look at the cluster between two batches
  kafka_reassign:
    reassign: [/opt/kafka/bin/kafka-reassign-partitions.sh, --bootstrap-server, "kafka-1:9092"]
    topics: [/opt/kafka/bin/kafka-topics.sh, --bootstrap-server, "kafka-1:9092"]
    brokers: [/opt/kafka/bin/kafka-broker-api-versions.sh, --bootstrap-server, "kafka-1:9092"]
    configs: [/opt/kafka/bin/kafka-configs.sh, --bootstrap-server, "kafka-1:9092"]
    log_dirs: [/opt/kafka/bin/kafka-log-dirs.sh, --bootstrap-server, "kafka-1:9092"]
    groups: [/opt/kafka/bin/kafka-consumer-groups.sh, --bootstrap-server, "kafka-1:9092"]
    expected_brokers: [1, 2, 3]
"""

RETURN = r"""
---
calls:
  description: The commands that were run, each a start of one of Kafka's tools or of the guard command.
  returned: always
  type: list
  elements: list
problem:
  description: A sentence on what speaks against beginning, or an empty one.
  returned: for check
  type: str
live:
  description: Ids of the live brokers.
  returned: for check
  type: list
  elements: int
known:
  description: Partitions that are out of sync or without a leader.
  returned: for check
  type: list
  elements: str
reasons:
  description: What speaks against going on, by guard, as sentences.
  returned: for look
  type: dict
  sample: {"live_brokers": "broker 4 is not live"}
throttle_bytes_per_sec:
  description: The rate that is wanted, of the throttle file if there is one.
  returned: for look
  type: int
rc:
  description: Exit code of the --verify of the batch.
  returned: with verify
  type: int
done:
  description: Partitions that are where they should be.
  returned: for check and reached, with verify, and before a batch
  type: list
  elements: str
moving:
  description: Partitions that still move.
  returned: for check, reached and restore, with verify, and before a batch
  type: list
  elements: str
pending:
  description: Partitions that wait for the batch.
  returned: before a batch
  type: list
  elements: str
strangers:
  description: Partitions that are neither done nor pending, and where they are.
  returned: before a batch
  type: list
  elements: str
offline:
  description: Partitions without a leader.
  returned: for check, and before a batch
  type: list
  elements: str
partitions:
  description: Number of partitions of the batch.
  returned: with verify
  type: int
reached:
  description: Number of partitions that are where they should be.
  returned: for reached, and with verify
  type: int
elsewhere:
  description: Partitions of the batch that don't move and are not where they should be.
  returned: with verify
  type: list
  elements: str
copied_bytes:
  description: Bytes of the batch's new replicas on their brokers, or null where nobody knows.
  returned: with verify
  type: int
batches:
  description: Numbers of the batches with a partition that another broker leads than planned.
  returned: for leaders
  type: list
  elements: str
unpreferred:
  description: Partitions that get back a leader that isn't the preferred one.
  returned: for leaders
  type: list
  elements: str
unmade:
  description: Topics whose new partitions are still to be made.
  returned: for check and new
  type: list
  elements: str
made_otherwise:
  description: Topics whose new partitions are there with other replicas, or in another number.
  returned: for new
  type: list
  elements: str
journal:
  description: Path of the journal.
  returned: for begin
  type: str
said:
  description: What was found or done with throttles, as sentences.
  returned: for begin, throttle and restore, and before a batch
  type: list
  elements: str
"""


def _now():
    return datetime.now(timezone.utc)  # noqa: UP017  (Python 3.8 has no datetime.UTC)


def begun(given):
    """Path of a new journal."""
    folder = folder_of(given["journal_dir"])
    name = f"{_now().strftime('%Y%m%dT%H%M%SZ')}-{given['direction']}-{given['plan_id'][:12]}.jsonl"
    path = folder / name
    path.touch(mode=0o600)
    return str(path)


def noted(path, entries):
    """Append entries to a journal."""
    if path and entries:
        time = _now().strftime("%Y-%m-%dT%H:%M:%SZ")
        with Path(path).open("a") as file:
            file.writelines(json.dumps({"time": time, **each}, sort_keys=True) + "\n" for each in entries)


def answered(cluster):
    """What was asked for."""
    given = cluster.given
    if given["ask"] == "begin":
        said = Throttles(cluster).begin() if given["throttle_bytes_per_sec"] and given["target"] else []
        return {"journal": begun(given), "said": said}
    answers = {
        "check": cluster.check,
        "look": lambda: looked(cluster),
        "reached": cluster.batch,
        "leaders": cluster.leaders,
        "new": cluster.new_partitions,
        "throttle": lambda: {"said": Throttles(cluster).set_rate()},
        "restore": lambda: Throttles(cluster).restore(),
        "note": dict,
    }
    ask = given["ask"]
    return answers[ask]()


def looked(cluster):
    """A look at the batch, at the cluster, or at both."""
    given = cluster.given
    result = cluster.batch() if given["verify"] else {}
    result["reasons"] = {}
    if given["look_at_cluster"]:
        result.update(cluster.look())
        result["reasons"].update(cluster.operators())
        described = result.pop("described", None)
        if described and result["pending"] and not cluster.module.check_mode:
            result["said"] = Throttles(cluster).lift(described)
    result["throttle_bytes_per_sec"], result["throttle_problem"] = cluster.wanted_rate()
    return result


def main():
    """One answer."""
    tool = {"type": "list", "elements": "str", "required": True}
    words = {"type": "list", "elements": "str", "default": []}
    numbers = {"type": "list", "elements": "int", "default": []}
    text = {"type": "str", "default": ""}
    by_name = {"type": "dict", "default": {}}
    no = {"type": "bool", "default": False}
    asks = ["check", "look", "reached", "leaders", "new", "begin", "throttle", "restore", "note"]
    names = ("target", "origin", "plan_dir", "stop_file", "throttle_file", "journal_dir", "journal", "plan_id")
    module = AnsibleModule(
        argument_spec={
            "ask": {"type": "str", "choices": asks, "default": "look"},
            **dict.fromkeys(("reassign", "topics", "brokers", "log_dirs", "configs", "groups"), tool),
            **dict.fromkeys(names, text),
            **dict.fromkeys(("before", "verify", "measure", "although_moving", "allow_under_replicated"), no),
            **dict.fromkeys(("racks", "planned_log_dirs", "disk_limits", "lag_limits"), by_name),
            "look_at_cluster": {"type": "bool", "default": True},
            **dict.fromkeys(("expected_brokers", "leaving_brokers"), numbers),
            **dict.fromkeys(("known", "command"), words),
            "throttle_bytes_per_sec": {"type": "int", "default": 0},
            "entries": {"type": "list", "elements": "dict", "default": []},
            "direction": {"type": "str", "default": "apply"},
        },
        supports_check_mode=True,
    )
    cluster = Cluster(module)
    try:
        result = answered(cluster)
    except ToolError as error:
        module.fail_json(msg=str(error), calls=cluster.calls)
    told = [*module.params["entries"], *_entries(module.params, result)]
    noted(result.get("journal") or module.params["journal"], told)
    module.exit_json(changed=False, calls=cluster.calls, **result)


def _entries(given, result):
    first = {"event": "run", "said": f"A run began: {given['direction']} of plan {given['plan_id'][:12]}."}
    said = [{"event": "throttles", "said": said} for said in result.get("said", [])]
    return ([first] if given["ask"] == "begin" else []) + said


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Inspects and changes a cluster for the role, sets and restores throttles, and writes the journal of a run."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

from ansible.module_utils import kafka_reassign_changes as changes
from ansible.module_utils import kafka_reassign_journal as journal
from ansible.module_utils import kafka_reassign_output as output
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_reassign_cluster import Cluster, ToolError
from ansible.module_utils.kafka_reassign_cordons import cordon
from ansible.module_utils.kafka_reassign_options import argument_spec
from ansible.module_utils.kafka_reassign_throttles import Throttles

DOCUMENTATION = r"""
---
module: kafka_reassign
short_description: Starts a batch of a reassignment of Apache Kafka, and watches the cluster until it is complete
description:
  - Runs Kafka's own tools, and keeps a journal and the throttles from before the run on the admin host.
  - The action plugin of the same name calls it repeatedly, prints the progress, and holds or stops the run.
options:
  ask:
    description:
      - C(check) compares the cluster with the plan before anything starts.
      - C(look) inspects the cluster, the batch, or both.
      - C(start) starts the reassignment of the target, and C(elect) the elections of the target.
      - C(reached) counts the partitions of the target that are in place, and C(measure) the bytes that have arrived.
      - C(leaders) lists batches whose leaders are still to be elected; C(new) compares new partitions with the plan.
      - C(refusing) lists partitions that would refuse writes, or have no leader, without some brokers.
      - C(begin) creates a journal and records the throttles that are set; C(summary) adds it up, C(note) writes to it.
      - C(throttle) gives what moves another rate, and C(restore) puts back the throttles from before.
      - C(cordon) cordons the brokers that leave (KIP-1066), and in the direction C(rollback) undoes only that.
    type: str
    choices:
      [check, look, start, elect, reached, measure, leaders, new, refusing, begin, throttle, restore, cordon, summary,
      note]
    default: look
  name:
    description: What the journal calls the batch.
    type: str
    default: ""
  tools:
    description:
      - Commands of Kafka's tools with the client's options, each a list of words, by the names C(reassign), C(topics),
        C(brokers), C(log_dirs), C(configs), C(groups), C(quorum), and C(election), which has no client's options.
    type: dict
    required: true
  command_config:
    description: Client properties for the election tool, whose option for them depends on its version; or nothing.
    type: str
    default: ""
  execute_options:
    description: Further options for --execute.
    type: list
    elements: str
    default: []
  keeps_replication_factor:
    description: Whether Kafka is to refuse to change a replication factor (KIP-860), where the tool can.
    type: bool
    default: false
  with_log_dirs:
    description: Whether the target names log dirs.
    type: bool
    default: false
  down_brokers:
    description: Brokers of the plan that are not live; for C(refusing), those that will be down; else those of C(dead).
    type: list
    elements: int
    default: []
  target:
    description: Reassignment or election file on the admin host. Without it only the cluster is inspected.
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
    description:
      - Whether the batch of the target hasn't been started. Then throttles of topics that are done are lifted.
      - For C(begin), whether something of the plan is left to move.
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
    description: Brokers that leave. A replica there may be out of sync.
    type: list
    elements: int
    default: []
  known:
    description:
      - Partitions that were out of sync or without a leader before, and are allowed to be.
      - For C(refusing), those that are foretold.
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
    description: File on the admin host with another rate, in bytes per second. It may change while a batch runs.
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
    tools:
      reassign: [/opt/kafka/bin/kafka-reassign-partitions.sh, --bootstrap-server, "kafka-1:9092"]
      topics: [/opt/kafka/bin/kafka-topics.sh, --bootstrap-server, "kafka-1:9092"]
      brokers: [/opt/kafka/bin/kafka-broker-api-versions.sh, --bootstrap-server, "kafka-1:9092"]
      configs: [/opt/kafka/bin/kafka-configs.sh, --bootstrap-server, "kafka-1:9092"]
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
live: {description: Ids of the live brokers., returned: for check, type: list, elements: int}
dead: {description: Brokers that a rollback goes on without., returned: for check, type: list, elements: int}
needed: {description: Dead brokers in lists that are wanted., returned: for leaders and look, type: list, elements: int}
known:
  description: Partitions that are out of sync or without a leader.
  returned: for check
  type: list
  elements: str
reasons:
  description: What speaks against going on, by guard, as sentences.
  returned: for look
  type: dict
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
  description: Bytes of the target's new replicas on their brokers, or null where they are unknown.
  returned: for measure, and with verify
  type: int
started: {description: Whether the reassignment was started., returned: for start, type: bool}
unstored: {description: A phrase on replicas whose log dir has failed., returned: for measure, type: str}
partly: {description: Whether Kafka may move a part of it., returned: for a start that failed, type: bool}
elected:
  description: Whether the tool elected the leaders, or found them elected already.
  returned: for elect
  type: bool
elections:
  description: Number of leaders that were elected; for summary, a list with the number of each election of the run.
  returned: for elect and summary
said_by_kafka:
  description: What the tool said where it failed, else an empty text.
  returned: for start and elect
  type: str
seconds: {description: How long the run has taken., returned: for summary, type: int}
figures:
  description: Time and bytes of each batch that the run started, planned and measured.
  returned: for summary
  type: list
  elements: dict
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
refused:
  description: Partitions that would refuse writes with acks=all, or have no leader, and aren't among those known.
  returned: for refusing
  type: list
  elements: str
quorum:
  description: A phrase on C(down_brokers) if they are so many of the controllers that no majority is left.
  returned: for refusing
  type: str
led:
  description: Partitions that one of C(down_brokers) leads, and another broker could.
  returned: for refusing
  type: list
  elements: str
journal:
  description: Path of the journal.
  returned: for begin
  type: str
said:
  description: What was found or done with throttles or cordons, or elected, as sentences; brokers to stop with care.
  returned: for begin, throttle, restore, cordon, elect, reached and look
  type: list
  elements: str
"""


def answer(cluster):
    """Return the module's result for the value of `ask`."""
    answers = {
        "check": cluster.check,
        "look": lambda: look(cluster),
        "start": lambda: changes.start(cluster),
        "elect": lambda: changes.elect(cluster),
        "reached": cluster.reached,
        "measure": cluster.copied,
        "leaders": cluster.leaders,
        "new": cluster.new_partitions,
        "refusing": cluster.refusing,
        "begin": lambda: begin(cluster),
        "throttle": lambda: {"said": Throttles(cluster).set_rate()},
        "restore": lambda: Throttles(cluster).restore(),
        "cordon": lambda: cordon(cluster),
        "summary": lambda: journal.summary(cluster.given["journal"]),
        "note": dict,
    }
    ask = cluster.given["ask"]
    return answers[ask]()


def begin(cluster):
    """Create the journal of a run. If the run will set throttles, record the existing ones first."""
    given = cluster.given
    said = Throttles(cluster).begin() if given["throttle_bytes_per_sec"] and given["target"] else []
    return {"journal": journal.begin(given), "said": said}


def look(cluster):
    """The state of the batch, of the cluster, or of both."""
    given = cluster.given
    result = {**(cluster.batch() if given["verify"] else {}), "reasons": {}}
    if given["look_at_cluster"]:
        result.update(cluster.look())
        result["reasons"].update(cluster.operators())
        described, configs = result.pop("described", None), result.pop("configs", None)
        if described and given["journal"]:  # A run with --check has none, and changes nothing.
            if configs:  # Before a batch.
                result["said"] = Throttles(cluster).lift(described, output.broker_throttles(configs))
            else:
                result["said"] = changes.throttle_again(cluster, described, result.get("moving"))
    result["throttle_bytes_per_sec"], result["throttle_problem"] = cluster.wanted_rate()
    return result


def main():
    """Read the arguments, answer, and write the journal."""
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    cluster, given = Cluster(module), module.params
    began = {"event": "run", "said": f"A run began: {given['direction']} {given['plan_id'][:12]}."}
    try:
        result = answer(cluster)
        elected = {"event": "elect", **({"elections": result["elections"]} if result.get("elections") else {})}
        what = elected if "elected" in result else {"event": "cordon" if given["ask"] == "cordon" else "throttles"}
        said = [{**what, "said": each} for each in result.get("said", [])]
        entries = [*given["entries"], *([began] if given["ask"] == "begin" else []), *said]
        journal.append(result.get("journal") or given["journal"], entries)
    except (ToolError, OSError) as error:  # for example, kafka_reassign_journal_dir can't be written
        module.fail_json(msg=str(error), calls=cluster.calls)
    module.exit_json(changed=result.pop("changed", False), calls=cluster.calls, **result)


if __name__ == "__main__":
    main()

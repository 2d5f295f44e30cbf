#!/usr/bin/python
"""What the role asks the cluster and its admin host: looks, throttles, and the journal of a run."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils import kafka_reassign_output as output
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.kafka_reassign_throttles import Record, alteration, folder_of

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
      - C(look) at the cluster and at the batch.
      - C(begin) a journal, and record the throttles that are set.
      - C(throttle) what moves at another rate.
      - C(restore) the throttles from before.
      - C(note) something in the journal only.
    type: str
    choices: [look, begin, throttle, restore, note]
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
  target:
    description: Reassignment file on the admin host. Without it there is only a look at the cluster.
    type: str
    default: ""
  origin:
    description: Reassignment file of the same partitions with the lists they come from.
    type: str
    default: ""
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
  last:
    description: Whether C(restore) is the last one of the run. Another one is about the topics of its file only.
    type: bool
    default: true
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
    expected_brokers: [1, 2, 3]
"""

RETURN = r"""
---
reasons:
  description: What speaks against going on, by guard, as sentences.
  returned: for a look
  type: dict
  sample: {"live_brokers": "broker 4 is not live"}
throttle_bytes_per_sec:
  description: The rate that is wanted, of the throttle file if there is one.
  returned: for a look
  type: int
rc:
  description: Exit code of the --verify of the batch.
  returned: with verify
  type: int
moving:
  description: Partitions of the batch that still move.
  returned: with verify
  type: list
  elements: str
partitions:
  description: Number of partitions of the batch.
  returned: with verify
  type: int
reached:
  description: Number of partitions that are where they should be.
  returned: with verify
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
journal:
  description: Path of the journal.
  returned: for begin
  type: str
said:
  description: What was found or done with throttles, as sentences.
  returned: for begin, throttle and restore
  type: list
  elements: str
"""

# A list of topics longer than this may not fit into one argument of a command.
_TOPICS_GIVEN = 100
_NO_BROKER = "Timed out waiting for a node assignment"


class Cluster:
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

    def required(self, tool, *options):
        """Output of a tool; the module fails where the tool does."""
        code, out, err = self.run([*self.given[tool], *options])
        if code != 0:
            self.module.fail_json(msg=f"{Path(self.given[tool][0]).name} {' '.join(options[:3])}: {(err + out)[-500:]}")
        return out

    def look(self):
        """Reasons of the brokers and partitions."""
        target, _ = self.lists()
        live, described = self.asked("brokers"), self.asked("topics", "--describe")
        seen = output.partitions(described or "")
        below = ""
        if any(set(replicas) - set(isr) for _, replicas, isr in seen.values()):
            below = self.asked("topics", "--describe", "--under-min-isr-partitions")
        if None in (live, described, below):
            return {"reasons": {"no_answer": "Kafka's tools get no answer from the cluster"}}
        active = output.reassigned(described)
        reasons = output.cluster_reasons(
            output.live_brokers(live),
            seen,
            sorted(output.partitions(below)),
            active,
            self.given["expected_brokers"],
            self.given["leaving_brokers"],
            set(target),
            set(self.given["known"]),
        )
        return {"reasons": reasons}

    def verified(self):
        """Exit code, stdout and stderr of a --verify that leaves the throttles alone."""
        target = self.given["target"]
        options = ["--verify", "--preserve-throttles", "--reassignment-json-file", target]
        return self.run([*self.given["reassign"], *options])

    def lists(self):
        """Lists of the target and of the origin, by partition; nothing without a target."""
        paths = (self.given["target"], self.given["origin"])
        return [output.lists(Path(path).read_text()) if path else {} for path in paths]

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

    def batch(self):
        """How far the batch is."""
        code, out, err = self.verified()
        target, origin = self.lists()
        found = {"rc": code, "stdout": out, "stderr": err, "moving": output.moving(out)}
        found.update(elsewhere=output.elsewhere(out), reached=len(output.reached(out)), partitions=len(target))
        found["copied_bytes"] = self.copied(output.arriving(target, origin)) if self.given["measure"] else None
        return found

    def copied(self, wanted):
        """Bytes that have arrived so far."""
        if not wanted:
            return 0
        topics = sorted({name.rpartition("-")[0] for names in wanted.values() for name in names})
        only = ["--topic-list", ",".join(topics)] if len(topics) <= _TOPICS_GIVEN else []
        out = self.asked("log_dirs", "--describe", "--broker-list", ",".join(map(str, sorted(wanted))), *only)
        return None if out is None else output.copied_bytes(out, wanted)

    def wanted_rate(self):
        """The rate of the run, or of the throttle file; and a sentence where that file has none."""
        path = self.given["throttle_file"]
        if not path or not Path(path).exists():
            return self.given["throttle_bytes_per_sec"], ""
        text = Path(path).read_text().strip()
        if text.isascii() and text.isdigit() and int(text) > 0:
            return int(text), ""
        said = f"the throttle file {path} says '{text[:40]}'; allowed: bytes a second, such as 50000000"
        return self.given["throttle_bytes_per_sec"], said


class Throttles:
    """Records and restores what is set of throttles."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.given = cluster.given
        self.folder = folder_of(self.given["journal_dir"])
        self.seen = None

    def begin(self):
        """Record what is set before this run changes it; sentences on what somebody else has set."""
        described = self.described()
        record = Record.found(self.folder, described)
        left = record is not None
        record = record or Record(self.folder / f"throttles-{self.given['plan_id'][:12]}.json")
        record.see(self.live(), described, self.moved())
        record.add_rate(self.given["throttle_bytes_per_sec"])
        record.save()
        said = ["An earlier run left its throttles; those from before it are put back at the end."] if left else []
        before = {f"broker {broker}": values for broker, values in sorted(record.brokers.items())}
        before.update({f"topic {topic}": known["configs"] for topic, known in sorted(record.topics.items())})
        set_before = [f"{name}: {_said(values)}" for name, values in before.items() if values]
        return said + ([f"Throttles from before, put back at the end: {'; '.join(set_before)}."] if set_before else [])

    def set_rate(self):
        """Give what moves another rate, as Kafka's tool does it: the same reassignment, with another throttle."""
        record = self.record()
        rate = str(self.given["throttle_bytes_per_sec"])
        brokers = {} if record is None else self.live()
        if all(values.get(output.BROKER_THROTTLES[0], rate) == rate for values in brokers.values()):
            return []
        moving = set(output.moving(self.cluster.verified()[1]))
        rows = json.loads(Path(self.given["target"]).read_text())["partitions"]
        rows = [each for each in rows if f"{each['topic']}-{each['partition']}" in moving]
        if not rows:
            return []
        record.see(brokers, {}, {})
        record.add_rate(rate)
        record.save()
        code, out, err = self.reassigned(rows, "--execute", "--additional", "--throttle", rate)
        if code != 0 and _NO_BROKER not in out + err:
            self.cluster.module.fail_json(msg=f"the throttle couldn't be changed: {(err + out)[-500:]}")
        return [f"The throttle is {rate} bytes a second from now on."]

    def restore(self):
        """Put back what was set before; sentences on what couldn't be, or was left as somebody else set it."""
        record = self.record()
        if record is None:
            return []
        active = []
        if self.given["last"]:
            active = output.listed(self.cluster.required("reassign", "--list"))
            own = [name for name in active if int(name.rpartition("-")[2]) in _numbers(record, name)]
            if own and not self.given["although_moving"]:
                return [f"{len(own)} partitions of the plan still move, so their throttles stay."]
        brokers = self.live()
        record.see(brokers, {}, {})
        described = self.described()
        of_topics = {each: described[each][1] for each in record.topics if each in described}
        if not self.given["last"]:
            only = {name.rpartition("-")[0] for name in self.cluster.lists()[0]}
            of_topics = {each: values for each, values in of_topics.items() if each in only}
        changed = {f"broker {each}": record.changed(each, values) for each, values in sorted(brokers.items())}
        changed.update({f"topic {each}": record.changed_on_topic(each, of_topics[each]) for each in sorted(of_topics)})
        said = [
            f"Somebody else has set {_said(values)} on {name} meanwhile, which stays."
            for name, values in changed.items()
            if values
        ]
        now = {("brokers", each): values for each, values in brokers.items()}
        now.update({("topics", each): values for each, values in of_topics.items()})
        desired = {("brokers", each): record.desired_broker(each, values) for each, values in brokers.items()}
        desired.update({("topics", each): record.desired_topic(each, values) for each, values in of_topics.items()})
        for (kind, name), values in desired.items():
            if kind == "brokers":
                record.brokers[name] = values
            else:
                record.topics[name]["configs"] = values
        record.save()
        self.alter(now, desired, active)
        return said + (self.finish(record, brokers) if self.given["last"] else [])

    def described(self):
        """What kafka-topics says is set of throttles on topics; it is asked once."""
        if self.seen is None:
            self.seen = output.topics(self.cluster.required("topics", "--describe"))
        return self.seen

    def alter(self, now, desired, active):
        """Turn what is set into what is desired, with as few calls of Kafka's tools as possible."""
        changes = [each for each, values in now.items() if values != desired.get(each)]
        topics = [name for kind, name in changes if kind == "topics"]
        # --verify clears all live brokers and the topics it is given at once, where nothing moves in the cluster.
        wiped = [each for each in now if each[0] == "brokers" or each[1] in topics]
        if not active and changes and 1 + sum(bool(desired[each]) for each in wiped) < len(changes) and topics:
            broker = min(int(name) for kind, name in now if kind == "brokers")
            rows = [{"topic": each, "partition": 0, "replicas": [broker]} for each in topics]
            code, out, _ = self.reassigned(rows, "--verify")
            if code == 0 and "Clearing topic-level throttles" in out:
                # Log dirs' throttles are cleared for brokers too.
                now = {**now, **{each: {} for each in wiped}}
                changes = [each for each in wiped if desired.get(each)]
        for kind, name in changes:
            options = alteration(now[(kind, name)], desired[(kind, name)])
            if options:
                self.cluster.required("configs", "--alter", "--entity-type", kind, "--entity-name", name, *options)

    def finish(self, record, brokers):
        """Forget what is put back; what brokers that aren't live have is kept for later."""
        away = sorted(int(broker) for broker in record.brokers if broker not in brokers)
        for broker in brokers:
            record.brokers.pop(broker, None)
        record.topics.clear()
        record.save()
        if not away:
            return []
        named = ", ".join(map(str, away))
        return [
            f"Not live, so a throttle of theirs couldn't be put back: broker {named}. Once they are live again, run "
            "ansible-playbook apply.yml --tags unthrottle."
        ]

    def reassigned(self, rows, *options):
        """Call kafka-reassign-partitions with a file of these partitions."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "partitions": rows}, file)
            file.flush()
            return self.cluster.run([*self.given["reassign"], *options, "--reassignment-json-file", file.name])

    def live(self):
        """{broker: throttles} of the live brokers."""
        return output.broker_throttles(self.cluster.required("configs", "--describe", "--entity-type", "brokers"))

    def moved(self):
        """{topic: numbers of the partitions that the plan moves}."""
        found = {}
        for name in self.cluster.lists()[0]:
            topic, _, number = name.rpartition("-")
            found.setdefault(topic, []).append(int(number))
        return found

    def record(self):
        """The record of this cluster, or None; no tool is asked where there is no record at all."""
        if not list(self.folder.glob("throttles-*.json")):
            return None
        return Record.found(self.folder, self.described())


def _numbers(record, name):
    return record.topics.get(name.rpartition("-")[0], {}).get("partitions", ())


def _said(values):
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))


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


def answered(module):
    """What was asked for."""
    given, cluster = module.params, Cluster(module)
    ask = given["ask"]
    if ask == "begin":
        said = Throttles(cluster).begin() if given["throttle_bytes_per_sec"] and given["target"] else []
        return {"journal": begun(given), "said": said}
    if ask == "throttle":
        return {"said": Throttles(cluster).set_rate()}
    if ask == "restore":
        return {"said": Throttles(cluster).restore()}
    result = {"reasons": {}}
    if ask == "look":
        if given["verify"]:
            result.update(cluster.batch())
        if given["look_at_cluster"]:
            result.update(cluster.look())
            result["reasons"].update(cluster.operators())
        result["throttle_bytes_per_sec"], result["throttle_problem"] = cluster.wanted_rate()
    return result


def main():
    """One answer."""
    tool = {"type": "list", "elements": "str", "required": True}
    words = {"type": "list", "elements": "str", "default": []}
    numbers = {"type": "list", "elements": "int", "default": []}
    text = {"type": "str", "default": ""}
    yes, no = {"type": "bool", "default": True}, {"type": "bool", "default": False}
    asks = ["look", "begin", "throttle", "restore", "note"]
    module = AnsibleModule(
        argument_spec={
            "ask": {"type": "str", "choices": asks, "default": "look"},
            **dict.fromkeys(("reassign", "topics", "brokers", "log_dirs", "configs"), tool),
            **dict.fromkeys(
                ("target", "origin", "stop_file", "throttle_file", "journal_dir", "journal", "plan_id"), text
            ),
            **dict.fromkeys(("verify", "measure", "although_moving"), no),
            **dict.fromkeys(("look_at_cluster", "last"), yes),
            **dict.fromkeys(("expected_brokers", "leaving_brokers"), numbers),
            **dict.fromkeys(("known", "command"), words),
            "throttle_bytes_per_sec": {"type": "int", "default": 0},
            "entries": {"type": "list", "elements": "dict", "default": []},
            "direction": {"type": "str", "default": "apply"},
        },
        supports_check_mode=True,
    )
    result = answered(module)
    told = [*module.params["entries"], *_entries(module.params, result)]
    noted(result.get("journal") or module.params["journal"], told)
    module.exit_json(changed=False, **result)


def _entries(given, result):
    first = {"event": "run", "said": f"A run began: {given['direction']} of plan {given['plan_id'][:12]}."}
    said = [{"event": "throttles", "said": said} for said in result.get("said", [])]
    return ([first] if given["ask"] == "begin" else []) + said


if __name__ == "__main__":
    main()

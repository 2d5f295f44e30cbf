"""Changes the cluster: starts a batch's reassignment, and elects preferred leaders."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import re
from pathlib import Path

from ansible.module_utils import kafka_reassign_output as output
from ansible.module_utils.kafka_reassign_cluster import NO_BROKER, STARTED, ToolError, refused, shortened
from ansible.module_utils.kafka_reassign_throttles import Throttles

# Kafka moves the other partitions, if there are any. The tool says this of those that it refused.
_IN_PART = "Error reassigning partition"
_REFUSED = re.compile(r"^(?:Error: )?(\S+-\d+): ", re.MULTILINE)
# The tool asked the controller, and got no answer in time.
_NO_ANSWER = re.compile(r"^(?:Error: )?\S+-\d+: .*(?:request|[)]) timed out", re.MULTILINE)
# Shells give a command that a signal ended an exit code above this one.
_SIGNALED = 128
_ELECTED = "Successfully completed leader election"
_NOT_ELECTED = re.compile(r"for partition: (\S+): (?:[\w.$]+: )?(.+?)\.?$", re.MULTILINE)
# A broker older than Kafka 4.1 says this, whatever the tool's release. Then nothing was started.
_NOT_BY_BROKER = "does not support the AllowReplicationFactorChange option"
_NAMED = 10
# How long --execute may wait for the new replicas to exist, because it sets their log dirs only then.
_LOG_DIRS_MILLIS = "60000"


def start(cluster):
    """Start the reassignment of the target file. Returns whether it started and, if not, what Kafka's tool said.

    --execute starts the moves between brokers before it asks for log dirs. If a broker refuses a log dir, for example
    one that is cordoned, the tool fails although replicas move: `partly` says so.

    If a broker is down, --execute sets the throttles of the topics and of the live brokers, waits a minute for that
    broker, and gives up before it starts anything. A second --execute starts the moves and leaves the throttles alone.
    """
    given, target = cluster.given, cluster.given["target"]
    Throttles(cluster).keep_record()
    execute = [*cluster.tools["reassign"], "--execute", "--reassignment-json-file", target]
    rate = str(given["throttle_bytes_per_sec"]) if given["throttle_bytes_per_sec"] else ""
    throttle, options = ["--throttle", rate] if rate else [], []
    if given["down_brokers"]:
        if throttle:
            code, out, err = cluster.run([*execute, *throttle])
            if STARTED not in out and NO_BROKER not in out + err:
                return _not_started(cluster, code, out, err)
        throttle = ["--additional"]
    if given["with_log_dirs"]:
        options += ["--timeout", _LOG_DIRS_MILLIS]
        if rate and not given["down_brokers"]:
            # KIP-113: moves between the log dirs of a broker have a separate throttle.
            options += ["--replica-alter-log-dirs-throttle", rate]
    # KIP-860: makes Kafka refuse any change of a replication factor. Kafka 4.1 and later have the option.
    keeps = ["--disallow-replication-factor-change"] if given["keeps_replication_factor"] else []
    code, out, err = run_newer(cluster, execute + throttle + options + given["execute_options"], keeps, [])
    if code == 0 and STARTED in out:
        return {"started": True, "changed": True, **_said("")}
    return _not_started(cluster, code, out, err)


def throttle_again(cluster, described, moving):
    """Throttle what moves again if somebody has removed its throttle. Returns sentences on it.

    Kafka's tool removes the throttles of all brokers if somebody cancels a single partition without
    --preserve-throttles. `--tags unthrottle` also removes the record of the topics: then nothing is set again.
    """
    throttles, given = Throttles(cluster), cluster.given
    if not moving or not given["throttle_bytes_per_sec"]:
        return []
    throttles.seen = output.topics(described)
    topics, record = output.by_topic(moving).keys() & throttles.seen.keys(), throttles.record()
    if record is None or any(throttles.seen[each][1] for each in topics) or not topics <= record.topics.keys():
        return []
    given["throttle_bytes_per_sec"] = cluster.wanted_rate()[0]
    try:
        said = throttles.set_rate()
    except ToolError as error:
        return [f"Somebody has removed the throttle of what moves, and it isn't set again yet: {error}"]
    return ["Somebody has removed the throttle of what moves. It is set again.", *said] if said else []


def _not_started(cluster, code, out, err):
    """What --execute says when it fails; `partly` if it has started moves of partitions that Kafka didn't refuse.

    If the tool was killed, or the controller's answer is lost, Kafka may move the partitions all the same. Then the
    result has no `said_by_kafka`, as without an answer of the admin host.
    """
    said = out + err
    if code < 0 or code > _SIGNALED or _NO_ANSWER.search(said):
        return {
            "started": False,
            "changed": True,
            "msg": refused(out, err) or f"Kafka's tool ended with exit code {code}",
        }
    others = set(cluster.lists()[0]) - set(_REFUSED.findall(said))
    partly = STARTED in said or (_IN_PART in said and bool(others))
    return {"started": False, "changed": partly, **_said(refused(out, err)), **({"partly": True} if partly else {})}


def _said(by_kafka):
    """What Kafka's tool said when it failed; also as `msg`, which Ansible prints if the task fails."""
    return {"said_by_kafka": by_kafka, **({"msg": by_kafka} if by_kafka else {})}


def elect(cluster):
    """Elect the preferred leaders of the partitions in the target file. Returns their number, and a sentence on it."""
    given, config = cluster.given, cluster.given["command_config"]
    target = given["target"]
    argv = [*cluster.tools["election"], "--election-type", "preferred", "--path-to-json-file", target]
    # Kafka 4.3 renamed the option; the old name will be removed.
    newer, older = (["--command-config", config], ["--admin.config", config]) if config else ([], [])
    code, out, err = run_newer(cluster, argv, newer, older)
    # This line names the partitions. Those already led by their preferred leader are on another line.
    named = "".join(line.partition(" for partitions ")[2] for line in out.splitlines() if line.startswith(_ELECTED))
    count = len([name for name in named.split(",") if name.strip()])
    waiting = _led_by_dead(cluster, err + out) if code and given["down_brokers"] else []
    said = [f"{count} leader{' was' if count == 1 else 's were'} elected"] if count else []
    if waiting:
        code = 0
        said.append(f"without its preferred leader, which isn't live: {', '.join(waiting)}")
    return {
        "elected": code == 0,
        "elections": count,
        "changed": _ELECTED in out,
        "said": [f"{given['name']}: {'; '.join(said)}."] if said else [],
        **_said("" if code == 0 else _not_elected(err + out) or shortened(err + out)),
    }


def _not_elected(text):
    """The partitions whose leader couldn't be elected, and why, from the tool's output; empty if it names none."""
    rows = list(dict.fromkeys(f"{name} ({why})" for name, why in _NOT_ELECTED.findall(text)))
    return f"{len(rows)} of its leaders couldn't be elected: {', '.join(rows[:_NAMED])}" if rows else ""


def _led_by_dead(cluster, text):
    """The partitions that the election tool names in `text` if a down broker is first in each list; else []."""
    names = sorted({name for name, _ in _NOT_ELECTED.findall(text)})
    described = output.partitions(cluster.asked("topics", "--describe") or "")
    down = set(cluster.given["down_brokers"])
    return names if all(name in described and described[name][1][0] in down for name in names) else []


def run_newer(cluster, argv, newer, older):
    """Run a command with its `newer` options or, if the tool doesn't know the first of them, with the `older` ones.

    A tool reads all options before it does anything. The name of an option that the tool or an older broker doesn't
    know is kept in the run's folder, so that each run tries it only once.
    """
    kept = Path(cluster.given["plan_dir"]) / "unknown-options.json"
    unknown = json.loads(kept.read_text()) if kept.exists() else []
    if not newer or newer[0] in unknown:
        return cluster.run([*argv, *older])
    code, out, err = cluster.run([*argv, *newer])
    refusals = (f"{newer[0].lstrip('-')} is not a recognized option", _NOT_BY_BROKER)
    if code == 0 or not any(each in out + err for each in refusals):
        return code, out, err
    kept.write_text(json.dumps(unknown + newer[:1]))
    return cluster.run([*argv, *older])

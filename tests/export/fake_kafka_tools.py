"""Kafka's command line tools, as far as the role calls them. A JSON file replaces the cluster.

`stage` makes a script with a tool's name beside `cluster.json`. The printed texts are those of Kafka 4.3.
A reassignment completes after `polls` questions. One of the `lost` partitions is given up at the first question, as
if somebody canceled it. For `lag` more questions, the asked broker still shows the old replicas, as one that lags
behind the controller does.
Tools fail as often as `failing` says: {tool: times}, or {"tool --option": times}.
If `times_out`, a broker to throttle is down: --execute with a throttle gives up.
If `refuses_dirs`, a planned log dir is cordoned: --execute fails after it has started the moves.
The tools don't know `unknown_options`, {tool: options}, as the tools of Kafka 3.9 lack some of today's options.
"""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import pairwise

# A tool starts dozens of times in a play, and these would take half of its CPU.
# ruff: noqa: PTH120, PTH123
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

# The script imports this module, so that Python compiles it only once. Compiling takes half of a start.
SCRIPT = """\
#!{python} -IS
import sys
sys.path.append({here!r})
from fake_kafka_tools import run
sys.exit(run(__file__, sys.argv[1:]))
"""


def stage(script: Path) -> None:
    """Write the script of a tool."""
    script.write_text(SCRIPT.format(python=sys.executable, here=os.path.dirname(__file__)))
    script.chmod(0o755)


def run(script: str, arguments: list[str]) -> int:
    """Do to the cluster what the tool of this name does. Return its exit code."""
    folder, name = os.path.split(script)
    tool, state = name.removesuffix(".sh"), f"{folder}/cluster.json"
    cluster = _read(state)
    options = {word: value for word, value in zip(arguments, [*arguments[1:], ""], strict=True) if word[:2] == "--"}
    cluster["calls"].append([tool, *(word for word in options if word != "--bootstrap-server")])
    cluster.setdefault("arguments", []).append([tool, *arguments])
    cluster.setdefault("kafka_opts", []).append(os.environ.get("KAFKA_OPTS", ""))
    failing = cluster.get("failing", {})
    if key := next((each for each in (tool, *(f"{tool} {word}" for word in options)) if failing.get(each)), None):
        failing[key] -= 1
        _write(state, cluster)
        sys.stderr.write(f"Error: {tool} fails\n")
        return 1
    cluster["bootstrap"] = options.get("--bootstrap-server", cluster.get("bootstrap"))
    configs = [value for word, value in pairwise(arguments) if word == "--config"]
    code = _run(tool, options | {"configs": ",".join(configs)}, cluster)
    _write(state, cluster)
    return code


def _read(path: str) -> dict[str, Any]:
    with open(path) as file:
        return json.load(file)


def _write(path: str, content: dict[str, Any]) -> None:
    with open(path, "w") as file:
        file.write(json.dumps(content))


def _run(tool: str, options: dict[str, str], cluster: dict[str, Any]) -> int:
    for unknown in set(options) & set(cluster.get("unknown_options", {}).get(tool, ())):
        name = "joptsimple.UnrecognizedOptionException"
        sys.stderr.write(f'Exception in thread "main" {name}: {unknown[2:]} is not a recognized option\n')
        return 1
    match tool:
        case "kafka-broker-api-versions":
            return _list_brokers(cluster["brokers"], cluster.get("racks", {}))
        case "kafka-metadata-quorum" | "kafka-log-dirs":
            return _list_log_dirs(cluster) if tool == "kafka-log-dirs" else _list_voters(cluster)
        case "kafka-topics" if "--describe" not in options:
            return _make(options, cluster)
        case "kafka-topics":
            return _describe(cluster["partitions"], options)
        case "kafka-configs":
            return _configs(options, cluster)
        case "kafka-consumer-groups":
            return _describe_group(options["--group"], cluster["behind"])
        case "kafka-leader-election":
            return _elect(_wanted(options["--path-to-json-file"]), cluster)
        case _:
            return _reassign(options, cluster)


def _reassign(options: dict[str, str], cluster: dict[str, Any]) -> int:
    if "--list" in options:
        return _list_moving(cluster["partitions"])
    given = _wanted(options["--reassignment-json-file"])
    if "--verify" in options:
        return _verify(given, cluster, preserve="--preserve-throttles" in options)
    if "--cancel" in options:
        return _cancel(given, cluster["partitions"])
    return _execute(given, cluster, options.get("--throttle"), additional="--additional" in options)


def _list_brokers(brokers: list[int], racks: dict[str, str]) -> int:
    for broker in brokers:
        _say(f"host-{broker}:9092 (id: {broker} rack: {racks.get(str(broker), 'a')} isFenced: false) -> (")
    return 0


def _list_log_dirs(cluster: dict[str, Any]) -> int:
    rows = cluster.get("log_dirs_print") or [
        {"broker": int(broker), "logDirs": [{"logDir": path, "error": None, "partitions": []} for path in paths]}
        for broker, paths in cluster["log_dirs"].items()
    ]
    _say("Querying brokers for log directories information")
    _say("Received log directory information from brokers " + ",".join(str(row["broker"]) for row in rows))
    _say(json.dumps({"version": 1, "brokers": rows}))
    return 0


def _list_voters(cluster: dict[str, Any]) -> int:
    if cluster.get("voters", []) is None:
        _say("Error: TimeoutException")
        return 1
    _say(f"ClusterId: c\nCurrentVoters:          {json.dumps(cluster.get('voters', [100, 101, 102]))}")
    return 0


def _wanted(path: str) -> dict[str, list[int]]:
    rows = _read(path)["partitions"]
    return {f"{row['topic']}-{row['partition']}": row.get("replicas", []) for row in rows}


def _describe(partitions: dict[str, Any], options: dict[str, str]) -> int:
    for topic in sorted({name.rpartition("-")[0] for name in partitions}):
        least = partitions[next(name for name in partitions if name.rpartition("-")[0] == topic)].get("least")
        configs = f"min.insync.replicas={least}" if least else ""
        _say(f"Topic: {topic}\tTopicId: id-{topic}\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: {configs}")
    shown = {name: each for name, each in partitions.items() if "--under-min-isr-partitions" not in options}
    if "--at-min-isr-partitions" in options:
        shown = {
            name: each for name, each in shown.items() if len(each.get("isr", each["replicas"])) == each.get("least")
        }
    for name, partition in shown.items():
        topic, number = name.rsplit("-", 1)
        isr = partition.get("isr", partition["replicas"])
        leader = "none" if partition["leader"] is None else partition["leader"]
        listed, to = f"Replicas: {_text(partition['replicas'])}\tIsr: {_text(isr)}", partition.get("target")
        if to:
            added, removed = (
                [b for b in p if b not in q] for p, q in ((to, partition["replicas"]), (partition["replicas"], to))
            )
            listed = f"Replicas: {_text(_union(partition))}\tIsr: {_text(isr)}"
            listed += f"\tAdding Replicas: {_text(added)}\tRemoving Replicas: {_text(removed)}"
        _say(f"\tTopic: {topic}\tPartition: {number}\tLeader: {leader}\t{listed}\tElr: \tLastKnownElr: ")
    return 0


def _configs(options: dict[str, str], cluster: dict[str, Any]) -> int:
    """Brokers' throttles, which are the same for all brokers, and `cordons`, {broker: value}; None: older than 4.3."""
    cordons, broker, key = cluster.setdefault("cordons", {}), options.get("--entity-name", ""), "cordoned.log.dirs"
    if "--all" in options:
        _say(f"All configs for broker {broker} are:\n  log.dirs=/d sensitive=false synonyms={{}}")
        if cordons is not None:
            own = f"DYNAMIC_BROKER_CONFIG:{key}={cordons[broker]}, " if broker in cordons else ""
            _say(f"  {key}={cordons.get(broker, '')} sensitive=false synonyms={{{own}DEFAULT_CONFIG:{key}=}}")
        return 0
    if key in (added := options.get("--add-config", "")) + options.get("--delete-config", ""):
        cordons.pop(broker, None)
        cordons |= {broker: added.partition("=")[2].strip("[]")} if added else {}
        return 0
    if "--alter" in options:
        cluster["throttle"] = None
        return 0
    for broker in cluster["brokers"]:
        _say(f"Dynamic configs for broker {broker} are:")
        if value := (cordons or {}).get(str(broker)):
            _say(f"  {key}={value} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}={value}}}")
        if cluster["throttle"]:
            key = "leader.replication.throttled.rate"
            _say(f"  {key}={cluster['throttle']} sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{key}=}}")
    return 0


def _describe_group(group: str, behind: dict[str, int]) -> int:
    if group not in behind:
        _say(f"Error: Consumer group '{group}' does not exist.")
        return 1
    _say("\nGROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID")
    _say(f"{group} a 0 10 {10 + behind[group]} {behind[group]} - - -           ")
    _say(f"{group} a 1 - 7 - client-1-0a2b /10.0.0.7 client-1")
    return 0


def _make(options: dict[str, str], cluster: dict[str, Any]) -> int:
    """Create a topic, or add partitions to each topic that matches `--topic`, a regular expression then.

    The list's first entries exist already, so they are skipped.
    """
    topic, partitions = options["--topic"], cluster["partitions"]
    topics = {name.rpartition("-")[0] for name in partitions}
    topics = {each for each in topics if (re.fullmatch(topic, each) if "--alter" in options else each == topic)}
    if ("--create" in options) == bool(topics):
        _say(
            f"Error while executing topic command : Topic '{topic}' {'already exists' if topics else 'does not exist'}."
        )
        return 1
    alike = {
        name.rpartition("-")[0]
        for name in partitions
        if name.rpartition("-")[0].replace(".", "_") == topic.replace(".", "_")
    }
    if alike and not topics:
        _say("WARNING: Due to limitations in metric names, topics with a period could collide.")
        _say(f"Error while executing topic command : Topic '{topic}' collides with existing topic: {min(alike)}")
        return 1
    lists = [[int(broker) for broker in each.split(":")] for each in options["--replica-assignment"].split(",")]
    if "--alter" in options and int(options["--partitions"]) != len(lists):
        return 1
    for each in topics or {topic}:
        there = sum(name.rpartition("-")[0] == each for name in partitions)
        for number, replicas in list(enumerate(lists))[there:]:
            partitions[f"{each}-{number}"] = {"replicas": replicas, "leader": replicas[0]}
    if not topics:
        cluster.setdefault("configs", {})[topic] = options["configs"]
        _say(f"Created topic {topic}.")
    return 0


def _elect(wanted: dict[str, list[int]], cluster: dict[str, Any]) -> int:
    partitions = cluster["partitions"]
    able = [] if cluster.get("elects") == "none" else cluster["brokers"]
    dead = [name for name in wanted if partitions[name]["replicas"][0] not in able]
    given = [name for name in wanted if name not in dead]
    off = [name for name in given if partitions[name]["leader"] != partitions[name]["replicas"][0]]
    for name in off:
        partitions[name]["leader"] = partitions[name]["replicas"][0]
    valid = [name for name in given if name not in off]
    if off:
        _say("Successfully completed leader election (PREFERRED) for partitions " + ", ".join(off))
    if valid:
        _say("Valid replica already elected for partitions " + ", ".join(valid))
    for name in dead:
        why = "PreferredLeaderNotAvailableException: The preferred leader was not available."
        _say(
            f"Error completing leader election (PREFERRED) for partition: {name}: org.apache.kafka.common.errors.{why}"
        )
    return 1 if dead else 0


def _list_moving(partitions: dict[str, Any]) -> int:
    moving = {name: p for name, p in partitions.items() if p.get("target")}
    _say("Current partition reassignments:" if moving else "No partition reassignments found.")
    for name, partition in moving.items():
        added = [broker for broker in partition["target"] if broker not in partition["replicas"]]
        left = [broker for broker in partition["replicas"] if broker not in partition["target"]]
        adding, removing = f" adding: {_text(added)}." if added else "", f" removing: {_text(left)}." if left else ""
        _say(f"{name}: replicas: {_text(_union(partition))}.{adding}{removing}")
    return 0


def _verify(given: dict[str, list[int]], cluster: dict[str, Any], preserve: bool) -> int:
    partitions = cluster["partitions"]
    _say("Status of partition reassignment:")
    for name in given:
        _go_on(name, partitions[name], cluster)
        _say(_status(name, partitions[name], given[name]))
    if not preserve and not any(p.get("target") for p in partitions.values()):
        _say("\nClearing broker-level throttles on brokers " + _text(cluster["brokers"]))
        cluster["throttle"] = None
    return 0


def _go_on(name: str, partition: dict[str, Any], cluster: dict[str, Any]) -> None:
    if not partition.get("target"):
        return
    partition["polls"] -= 1
    if name in cluster["lost"]:
        partition["target"] = None
    elif partition["polls"] <= 0:
        shown = {"shown": partition["replicas"], "lag": cluster["lag"]} if cluster.get("lag") else {}
        partition |= {"replicas": partition["target"], "target": None, **shown}
        if partition["leader"] not in partition["replicas"]:
            partition["leader"] = partition["replicas"][-1]


def _status(name: str, partition: dict[str, Any], replicas: list[int]) -> str:
    if partition.get("target"):
        return f"Reassignment of partition {name} is still in progress."
    current = _shown(partition)
    if current == replicas:
        return f"Reassignment of partition {name} is completed."
    now = _text(current)
    return (
        f"There is no active reassignment of partition {name}, but replica set is {now} rather than {_text(replicas)}."
    )


def _shown(partition: dict[str, Any]) -> list[int]:
    if not partition.get("lag"):
        return list(partition["replicas"])
    partition["lag"] -= 1
    return list(partition["shown"])


def _cancel(given: dict[str, list[int]], partitions: dict[str, Any]) -> int:
    moving = [name for name in given if partitions[name].get("target")]
    for name in moving:
        before = partitions[name]["replicas"]
        partitions[name] |= {"replicas": [b for b in _union(partitions[name]) if b in before], "target": None}
    _say("Successfully cancelled partition reassignments for: " + ",".join(moving))
    return 0


def _execute(given: dict[str, list[int]], cluster: dict[str, Any], throttle: str | None, *, additional: bool) -> int:
    if not additional and any(p.get("target") for p in cluster["partitions"].values()):
        _say("Cannot execute because there is an existing partition assignment.")
        return 1
    if throttle and cluster.get("times_out"):
        _say("Error: Timed out waiting for a node assignment.")
        return 1
    if unknown := sorted({broker for each in given.values() for broker in each} - set(cluster["brokers"])):
        _say(f"Error: Unknown broker id {unknown[0]}")
        return 1
    cluster["throttle"] = throttle
    for name, replicas in given.items():
        if cluster["partitions"][name].get("target") != replicas:
            cluster["partitions"][name] |= {"target": replicas, "polls": cluster["polls"]}
    _say("Current partition replica assignment\n\n{}\n\nSave this to use as the --reassignment-json-file option")
    _say("Successfully started partition reassignment" + "s" * (len(given) > 1) + " for " + ",".join(given))
    if cluster.get("refuses_dirs"):
        _say(f"Error: Failed to alter dir for {next(iter(given))}-9")
    return int(cluster.get("refuses_dirs", False))


def _union(partition: dict[str, Any]) -> list[int]:
    return partition["target"] + [broker for broker in partition["replicas"] if broker not in partition["target"]]


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _text(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))

"""Reads the state of a cluster with Kafka's tools, and the operator's own reasons to stop on the admin host."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import re
from pathlib import Path

from ansible.module_utils import kafka_reassign_guards as guards
from ansible.module_utils import kafka_reassign_output as output

# A list of topics longer than this may not fit into one argument of a command.
_TOPICS_GIVEN = 100
_HEAD, _TAIL = 400, 200
# A line that says what went wrong. The JVM and the client may print many others before it and after it.
_REASON = re.compile("[^\n]*(?:Error|Exception)[^\n]*")
# --execute says this once the moves between brokers have begun.
STARTED = "Successfully started"
# Kafka's tools say this about a broker that is down.
NO_BROKER = "Timed out waiting for a node assignment"
# And they say this if they mistake the first bytes of TLS for the length of an answer.
_NO_TLS = "Java heap space"
# The exit code of shells and containers for a command that isn't there.
_NO_COMMAND = 127


class ToolError(Exception):
    """One of Kafka's tools failed. The message has what it said, shortened."""


def refused(out, err):
    """What --execute says about its failure, without the present assignment and the throttles that it prints first."""
    _, started, after = out.rpartition("option during rollback")[2].rpartition(STARTED)
    return shortened(err + (after.partition("\n")[2] if started else after))


def shortened(text):
    """The output of a tool without stack traces. If it is long, the middle is left out, except for the reason."""
    text = "\n".join(line for line in text.strip().splitlines() if not line.startswith("\tat "))
    if _NO_TLS in text:
        text = f"{_NO_TLS}, such as when brokers require TLS and kafka_reassign_command_config doesn't say so"
    if len(text) <= _HEAD + _TAIL:
        return text
    reason = None if _REASON.search(text[:_HEAD]) else _REASON.search(text, _HEAD, len(text) - _TAIL)
    return f"{text[:_HEAD]} ... {reason.group()[:_HEAD] + ' ... ' if reason else ''}{text[-_TAIL:]}"


def alteration(now, desired):
    """Options of kafka-configs --alter that turn the values `now` into the desired ones; none if they are equal."""
    gone = sorted(key for key in now if key not in desired)
    new = sorted(key for key in desired if desired[key] != now.get(key))
    added = [f"{key}=[{desired[key]}]" if "," in desired[key] else f"{key}={desired[key]}" for key in new]
    return (["--add-config", ",".join(added)] if added else []) + (["--delete-config", ",".join(gone)] if gone else [])


class Cluster:
    """Runs Kafka's tools with the module's arguments, and keeps a list of all commands that it ran."""

    def __init__(self, module):
        self.module = module
        self.given = module.params
        self.tools = self.given["tools"]
        self.calls = []
        self.unanswered = ""

    def run(self, argv):
        """Run a command; exit code, stdout and stderr. $NAME and ~ in its arguments aren't replaced."""
        self.calls.append(argv)
        try:
            return self.module.run_command(argv, expand_user_and_vars=False, handle_exceptions=False)
        except OSError as error:
            # Without this, Ansible would end the module without the command's name.
            return 127, "", f"{argv[0]} can't be started: {error.strerror}"

    def asked(self, tool, *options):
        """Output of a tool; None if it failed, for example while a controller or a broker restarts."""
        code, out, err = self.run([*self.tools[tool], *options])
        if code != 0 and (named := re.search(r"\w+Exception", err + out)):
            self.unanswered = f" ({named.group()})"
        return out if code == 0 else None

    def required(self, tool, *options):
        """Output of a tool; ToolError if it failed."""
        code, out, err = self.run([*self.tools[tool], *options])
        if code != 0:
            words = (Path(self.tools[tool][0]).name, *options[:3])
            raise ToolError(f"{' '.join(words)}: {shortened(err + out)}")
        return out

    def plan_file(self, name):
        """Content of a JSON file of the plan on the admin host, or {} if the plan has no such file."""
        path = Path(self.given["plan_dir"]) / name
        return json.loads(path.read_text()) if path.exists() else {}

    def states(self):
        """By partition, the replica lists that it passes through, from the list before the plan to the planned one."""
        return {name: [output.ids(each) for each in lists] for name, lists in self.plan_file("states.json").items()}

    def lists(self):
        """The replica lists of the target file and of the origin file, by partition; {} without a file."""
        paths = (self.given["target"], self.given["origin"])
        return [output.lists(Path(path).read_text()) if path else {} for path in paths]

    def verified(self):
        """Run --verify with the target file, which keeps the throttles; exit code, stdout and stderr."""
        target = self.given["target"]
        options = ["--verify", "--preserve-throttles", "--reassignment-json-file", target]
        return self.run([*self.tools["reassign"], *options])

    def of_log_dirs(self):
        """Output of --verify with the target file if the plan names log dirs, else an empty text."""
        return self.verified()[1] if self.given["planned_log_dirs"] else ""

    def check(self):
        """Compare the cluster with the plan: `problem` says why the run must not begin, or is empty."""
        given = self.given
        racks = output.broker_racks(self.required("brokers"))
        found = {"live": sorted(racks), "done": [], "moving": [], "offline": [], "known": [], "unmade": []}
        # A rollback goes on without brokers that aren't live, up to the first batch whose lists have them.
        found["dead"] = sorted({*given["expected_brokers"]} - {*racks}) if given["direction"] == "rollback" else []
        needed = set(given["expected_brokers"]) - set(found["dead"])
        problem = guards.absent(needed, racks, given["racks"]) or self.unusable_dirs(racks)
        if problem:
            return {**found, "problem": problem}
        # A move that completes between the two calls counts as running, also if a broker that lags still shows it.
        listed, text = self.required("reassign", "--list"), self.required("topics", "--describe")
        running = {**output.reassigned(text), **output.listed(listed)}
        described, placed = output.partitions(text), self.of_log_dirs()
        target, origin = self.lists()
        stands = guards.standing(target, origin, described, running, output.misplaced(placed), self.states())
        new = guards.new_partitions(self.plan_file("new-partitions.json"), described)
        return {
            **found,
            "done": stands["done"],
            "moving": sorted({*stands["moving"], *output.moving(placed)}),
            "offline": guards.offline(described),
            "known": sorted({*guards.offline(described), *guards.out_of_sync(described)}),
            "unmade": new["unmade"] if given["direction"] == "apply" else [],
            "problem": (given["direction"] != "rollback" and guards.never_complete(output.turned_around(listed)))
            or self.problem(described, running, output.adding(text, listed), new["made_otherwise"], racks),
        }

    def problem(self, described, running, adding, made_otherwise, live):
        """The first reason not to begin, or an empty text. Fewer reasons stop a rollback."""
        applied = self.given["direction"] != "rollback"
        states = self.states()
        waiting = {name for names in self.plan_file("leaderless.json").values() for name in names}
        said = guards.foreign(running, states)
        said = said or guards.strangers(states, described, running, any_order=not applied)
        if applied:
            said = said or guards.made_otherwise(made_otherwise) or guards.without_leader(described, states, waiting)
        if not self.given["allow_under_replicated"]:
            holding = {broker for _, replicas, _ in described.values() for broker in replicas}
            away = self.given["leaving_brokers"] + ([] if applied else sorted(holding - set(live)))
            said = said or guards.behind(described, adding, away, waiting)
        if applied:
            said = said or guards.kept_on_dead(described, running, states, live, waiting)
        return said

    def unusable_dirs(self, live):
        """A sentence on log dirs that live brokers lack. Kafka would notice this only after it has started to move."""
        planned = {broker: paths for broker, paths in self.given["planned_log_dirs"].items() if int(broker) in live}
        if not planned:
            return ""
        text = self.required("log_dirs", "--describe", "--broker-list", ",".join(planned))
        return guards.unusable_dirs(planned, output.usable_dirs(text))

    def look(self):
        """The guards' reasons that concern brokers and partitions; before a batch, also where its partitions are."""
        target, origin = self.lists()
        live, text = self.asked("brokers"), self.asked("topics", "--describe")
        described = output.partitions(text or "")
        below = ""
        if any(set(replicas) - set(isr) for _, replicas, isr in described.values()):
            below = self.asked("topics", "--describe", "--under-min-isr-partitions")
        if None in (live, text, below):
            return {"reasons": {"no_answer": f"Kafka's tools get no answer from the cluster{self.unanswered}"}}
        active = output.reassigned(text)
        reasons = guards.cluster_reasons(
            output.live_brokers(live),
            described,
            sorted(output.partitions(below)),
            active,
            set(self.given["expected_brokers"]) - set(self.given["down_brokers"]),
            self.given["leaving_brokers"] + self.given["down_brokers"],
            set(target),
            set(self.given["known"]),
        )
        reasons.update(self.limits(output.live_brokers(live)))
        if not self.given["before"]:
            return {"reasons": reasons, "described": text}
        misplaced = output.misplaced(self.of_log_dirs())
        stands = guards.standing(target, origin, described, active, misplaced, self.states())
        pending = stands["pending"]
        needed = guards.dead_targets(target, pending, output.live_brokers(live))
        configs = self.asked("configs", "--describe", "--entity-type", "brokers") if pending else None
        if configs:
            cordons = output.broker_throttles(configs, (output.CORDONED,))
            cordons = {broker: values.get(output.CORDONED, "") for broker, values in cordons.items()}
            rows = json.loads(Path(self.given["target"]).read_text())["partitions"]
            rows = [each for each in rows if f"{each['topic']}-{each['partition']}" in pending]
            said = guards.cordoned(rows, described, cordons, self.given["direction"] == "apply")
            # A run with --check has no journal, and leaves what apply.yml cordoned as it is.
            if said and (self.given["journal"] or self.given["direction"] == "apply"):
                reasons["cordoned"] = said
        found = {"reasons": reasons, "offline": guards.offline(described), "needed": needed, **stands}
        return {**found, "described": text, "configs": configs}

    def limits(self, live):
        """Reasons to stop: brokers with full disks, and consumer groups that lag behind."""
        found = {}
        limited = [broker for broker in self.given["disk_limits"] if int(broker) in live]
        if limited:
            text = self.asked("log_dirs", "--describe", "--broker-list", ",".join(limited))
            if text is None:
                found["no_answer"] = f"kafka-log-dirs gets no answer from the cluster{self.unanswered}"
            else:
                used = output.used_bytes(text)
                found["disk"] = guards.overfull(used, self.given["disk_limits"])
                if silent := [broker for broker in limited if int(broker) not in used]:
                    those = f"broker{'s' if len(silent) > 1 else ''} {', '.join(silent)}"
                    found["no_answer"] = f"kafka-log-dirs lists no log dir of {those}"
        groups = self.given["lag_limits"]
        lags = {group: self.asked("groups", "--describe", "--group", group) for group in groups}
        found["lag"] = guards.lagging({group: output.lag(text or "", group) for group, text in lags.items()}, groups)
        return {guard: said for guard, said in found.items() if said}

    def operators(self):
        """The operator's own reasons to stop: the stop file, and the guard command."""
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
        """How far the target's partitions are, from --verify."""
        code, out, err = self.verified()
        target = self.lists()[0]
        said = shortened(err + out) if code else err
        found = {"rc": code, "stderr": said, "moving": output.moving(out), "done": output.reached(out)}
        found.update(elsewhere=output.elsewhere(out), reached=len(found["done"]), partitions=len(target))
        return {**found, "copied_bytes": None, **(self.copied(set(found["moving"])) if self.given["measure"] else {})}

    def reached(self):
        """How far the target's partitions are; `held` are other partitions on brokers that should be empty by then.

        After a rollback, the brokers that the plan added may have others. That is only said.
        """
        leaving, target = self.given["leaving_brokers"], self.lists()[0]
        described = output.partitions(self.required("topics", "--describe")) if leaving else {}
        others = {name: row for name, row in described.items() if name not in target}
        found = self.batch()
        if found["rc"] != 0:
            raise ToolError(f"kafka-reassign-partitions --verify: {found['stderr']}")
        held = guards.held(others, leaving)
        if self.given["direction"] == "rollback":
            said, held = guards.stay_behind(held), []
        else:
            said = guards.controllers(self.voters(), leaving) if leaving else ""
        return {**found, "held": held, "said": [said] if said else []}

    def copied(self, moving=frozenset()):
        """Bytes of the target's new replicas so far, None without an answer; `unstored` says which have no log dir."""
        wanted = output.arriving(*self.lists())
        if not wanted:
            return {"copied_bytes": 0}
        topics = sorted({name.rpartition("-")[0] for names in wanted.values() for name in names})
        only = ["--topic-list", ",".join(topics)] if len(topics) <= _TOPICS_GIVEN else []
        out = self.asked("log_dirs", "--describe", "--broker-list", ",".join(map(str, sorted(wanted))), *only)
        if out is None:
            return {"copied_bytes": None}
        copied = output.copied_bytes(out, wanted)
        if copied is None:
            return {"copied_bytes": None}
        arriving = {broker: names & moving for broker, names in wanted.items()}
        if output.unstored(out, arriving):
            # What an interrupted run left may still move to the lists of an earlier step.
            running = output.listed(self.asked("reassign", "--list") or "")
            arriving = {b: {name for name in names if b in running.get(name, ())} for b, names in arriving.items()}
        return {"copied_bytes": copied, "unstored": guards.unstored(output.unstored(out, arriving))}

    def leaders(self):
        """Batches with a wrong leader, and partitions that still have to get back a leader that isn't preferred."""
        wanted, direction = self.plan_file("leaders.json"), self.given["direction"]
        described = output.partitions(self.required("topics", "--describe"))
        leading = guards.leading(described)
        # A run that was killed may have left these leaders first in the replica lists. Then the order is still wrong.
        turned = guards.leading({name: (row[1][0], *row[1:]) for name, row in described.items()})
        found = {
            "batches": sorted(number for number, each in wanted[direction].items() if set(each) - leading),
            "unpreferred": sorted(set(wanted["unpreferred"]) - (leading - turned)) if direction == "rollback" else [],
        }
        named = {"-".join(each.split()[:2]) for each in wanted["unpreferred"]}
        listed = {broker for name in named if name in described for broker in described[name][1]}
        # If a task retries until nothing is left and gives up, Ansible prints this message.
        msg = "leaders aren't as planned" if any(found.values()) else ""
        return {**found, "needed": sorted(listed & set(self.given["down_brokers"])), "msg": msg}

    def refusing(self):
        """Partitions that would refuse writes with acks=all, or have no leader, without `down_brokers`.

        Kafka itself lists partitions with as many replicas in sync as min.insync.replicas. `known` ones are left out.
        """
        scarce = output.partitions(self.required("topics", "--describe", "--at-min-isr-partitions"))
        text = self.required("topics", "--describe")
        described, down = output.partitions(text), set(self.given["down_brokers"])
        found = guards.refusing(scarce, described, down, output.min_insync(text))
        led = guards.led_by(described, down)
        quorum = guards.no_majority(self.quorum(), self.given["down_brokers"])
        return {"refused": sorted(found - set(self.given["known"])), "led": led, "quorum": quorum}

    def quorum(self):
        """Ids of the controllers, which may be brokers too; empty with ZooKeeper, or with tools older than 3.3.

        ToolError without an answer: the quorum may be what is unwell.
        """
        code, out, err = self.run([*self.tools["quorum"], "describe", "--status"])
        if code not in (0, _NO_COMMAND) and "UnsupportedVersionException" not in out + err:
            raise ToolError(f"kafka-metadata-quorum describe: {shortened(err + out)}")
        return output.voters(out if code == 0 else "")

    def voters(self):
        """The same; empty without an answer."""
        try:
            return self.quorum()
        except ToolError:
            return []

    def new_partitions(self):
        """The topics that lack new partitions, or have them otherwise than planned: see `guards.new_partitions`."""
        described = output.partitions(self.required("topics", "--describe"))
        return guards.new_partitions(self.plan_file("new-partitions.json"), described)

    def wanted_rate(self):
        """The rate in the throttle file, else the run's rate; and a sentence if the file has no valid rate."""
        path = self.given["throttle_file"]
        if not path or not Path(path).exists():
            return self.given["throttle_bytes_per_sec"], ""
        try:
            text = Path(path).read_text().strip()
        except OSError as error:
            text = str(error)
        if text.isascii() and text.isdigit() and int(text) > 0:
            return int(text), ""
        said = f"the throttle file {path} says '{text[:40]}'; allowed: bytes per second, such as 50000000"
        return self.given["throttle_bytes_per_sec"], said

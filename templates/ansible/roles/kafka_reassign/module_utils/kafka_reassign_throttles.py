"""Records the throttles that a cluster has before a run, in a file on the admin host, and restores them."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from ansible.module_utils import kafka_reassign_output as output
from ansible.module_utils.kafka_reassign_cluster import NO_BROKER, STARTED, ToolError, alteration, refused
from ansible.module_utils.kafka_reassign_journal import folder_of, read_json, replace_json

# When throttles are restored: the most readings, and the seconds in between, for brokers to learn of a change.
_READINGS, _APART_SECONDS = 4, 1
_NAMED = 10


class Record:
    """The throttles of brokers and of the plan's topics from before the first run of an unfinished plan.

    `rates` are the rates that runs have set since. Somebody else set any other value.
    """

    def __init__(self, path, content=None):
        self.path = path
        self.content = content or {"topic_ids": [], "rates": [], "brokers": {}, "topics": {}}

    @classmethod
    def found(cls, folder, described):
        """The record of the cluster with these topics, {name: (id, throttles)}; None if there is none."""
        for path in sorted(folder.glob("throttles-*.json")):
            content = read_json(path)
            if {f"{name} {number}" for name, (number, _) in described.items()} & set(content["topic_ids"]):
                return cls(path, content)
        return None

    @property
    def brokers(self):
        """{broker: {throttle: value}} from before the first run."""
        return self.content["brokers"]

    @property
    def topics(self):
        """{topic: {"configs": {throttle: value from before}, "partitions": numbers that the plan moves}}."""
        return self.content["topics"]

    @property
    def rates(self):
        """Rates that runs have set, as texts, the latest one last."""
        return self.content["rates"]

    def see(self, brokers, described, moved):
        """Add values not recorded yet, of {broker: throttles}, {topic: (id, throttles)} and {topic: partitions}."""
        if described:
            self.forget_recreated(described)
            self.content["topic_ids"] = sorted(f"{name} {number}" for name, (number, _) in described.items())
        for broker, values in brokers.items():
            # A broker that was down when the run began may have the run's rate by now.
            self.brokers.setdefault(broker, {k: v for k, v in values.items() if v not in self.rates})
        for topic, numbers in moved.items():
            known = self.topics.setdefault(topic, {"configs": described.get(topic, ("", {}))[1], "partitions": []})
            known["partitions"] = sorted(set(known["partitions"]) | set(numbers))

    def forget_recreated(self, described):
        """Drop the recorded throttles of topics that were deleted since: a topic of the same name is another topic."""
        ids = {each.partition(" ")[0]: each.partition(" ")[2] for each in self.content["topic_ids"]}
        for topic in self.topics.keys() & described.keys():
            if described[topic][0] != ids.get(topic):
                self.topics[topic]["configs"] = {}

    def add_rate(self, rate):
        """Add a rate that is about to be set."""
        self.content["rates"] = [each for each in self.rates if each != str(rate)] + [str(rate)]

    def save(self):
        """Replace the file as a whole, or remove it if nothing is left to restore."""
        if not self.brokers and not self.topics:
            self.path.unlink()
            return
        replace_json(self.path, self.content)

    def changed(self, broker, values):
        """A broker's throttles that somebody else has set since: neither a run's rate nor the value from before."""
        before = self.brokers[broker]
        return {k: v for k, v in values.items() if v not in self.rates and v != before.get(k)}

    def desired_broker(self, broker, values):
        """The throttles that a broker should get back: values from before, and values of somebody else since then."""
        return {**self.brokers[broker], **self.changed(broker, values)}

    def changed_on_topic(self, topic, values):
        """A topic's throttles that somebody else has set since: new, and not a list of the plan's partitions alone."""
        known = self.topics[topic]
        return {
            key: value
            for key, value in values.items()
            if value != known["configs"].get(key) and not _of_partitions(value, known["partitions"])
        }

    def desired_topic(self, topic, values):
        """The throttles that a topic should get back: values from before, and values of somebody else since then."""
        return {**self.topics[topic]["configs"], **self.changed_on_topic(topic, values)}


def _of_partitions(value, partitions):
    """True if a list `partition:broker,...`, as --execute sets it, has no other partitions than these."""
    numbers = [pair.partition(":")[0] for pair in value.split(",") if pair]
    return all(number.isdigit() and int(number) in partitions for number in numbers)


class Throttles:
    """Records, sets and restores the throttles of a cluster."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.given = cluster.given
        self.folder = folder_of(self.given["journal_dir"])
        self.seen = None
        # Topics with a partition of the plan that somebody else moves. The throttles of these topics are theirs.
        self.theirs = set()

    def begin(self):
        """Record the existing throttles before this run sets its own. Returns sentences on them."""
        moved = output.by_topic(self.cluster.lists()[0])
        described = self.described() if moved else {}
        record = Record.found(self.folder, described)
        left = record is not None
        orphans = {} if left else self.orphans(described)
        if not self.given["before"] and not orphans:
            return []
        record = record or Record(self.folder / f"throttles-{self.given['plan_id'][:12]}.json")
        brokers = self.live()
        for broker in {pair.partition(":")[2] for pairs in orphans.values() for pair in pairs} & brokers.keys():
            for rate in brokers[broker].values():
                record.add_rate(rate)
        record.see(brokers, {**described, **{each: (described[each][0], {}) for each in orphans}}, moved)
        record.add_rate(self.given["throttle_bytes_per_sec"])
        record.save()
        said = ["An earlier run left its throttles; those from before it are put back at the end."] if left else []
        if orphans:
            named = ", ".join(sorted(orphans)[:_NAMED])
            said.append(
                f"Another host's run of this plan throttled {named} and brokers; that is taken off at the end. What "
                "was set before that run only that host knows."
            )
        before = {f"broker {broker}": values for broker, values in sorted(record.brokers.items())}
        before.update({f"topic {topic}": known["configs"] for topic, known in sorted(record.topics.items())})
        set_before = [f"{name}: {_said(values)}" for name, values in before.items() if values]
        return said + ([f"Throttles from before, put back at the end: {'; '.join(set_before)}."] if set_before else [])

    def keep_record(self):
        """Record the throttles again if another run on this host has meanwhile restored them and removed the record."""
        if self.given["throttle_bytes_per_sec"] and not list(self.folder.glob("throttles-*.json")):
            self.begin_with_plan()

    def begin_with_plan(self):
        """Run `begin` for all partitions of the plan, which are the same in both directions. Returns its sentences."""
        batch, plan = {key: self.given[key] for key in ("target", "origin")}, Path(self.given["plan_dir"])
        self.given.update(target=str(plan / "reassignment.json"), origin=str(plan / "rollback.json"))
        said = self.begin()
        self.given.update(batch)
        return said

    def orphans(self, described):
        """{topic: throttled pairs `partition:broker`} of topics whose throttled followers are all moved by this plan.

        A run on another host set these throttles. Its record is on that host, or lost with it.
        """
        target, origin = self.cluster.lists()
        moves = {}
        for name, replicas in target.items():
            topic, _, number = name.rpartition("-")
            moves.setdefault(topic, set()).update(f"{number}:{each}" for each in set(replicas) ^ set(origin[name]))
        values = {topic: described[topic][1] for topic in moves.keys() & described.keys()}
        throttled = {
            t: [set(each.get(key, "").split(",")) for key in output.TOPIC_THROTTLES] for t, each in values.items()
        }
        return {
            topic: leaders | followers for topic, (leaders, followers) in throttled.items() if followers <= moves[topic]
        }

    def set_rate(self):
        """Set another rate the way Kafka's tool does: execute the moves that still run once more, with the new rate.
        0 restores the throttles from before the runs.

        They keep the lists they move to, which may be a step's or a rollback's. Kafka never completes a move that is
        reversed: a replica that is being added and isn't in the new list stays one to be added.
        """
        record = self.record()
        if record and not self.given["throttle_bytes_per_sec"]:
            self.given["although_moving"] = True
            return [*self.restore()["said"], "This run has no throttle: that of an earlier run is taken off."]
        rate = str(self.given["throttle_bytes_per_sec"])
        brokers = {} if record is None else self.live()
        rates = {values.get(output.BROKER_THROTTLES[0]) for values in brokers.values()} - {None}
        if not brokers or rates == {rate}:
            return []
        moving = set(output.moving(self.cluster.verified()[1]))
        rows = json.loads(Path(self.given["target"]).read_text())["partitions"]
        rows = {f"{each['topic']}-{each['partition']}": each for each in rows}
        rows = {name: each for name, each in rows.items() if name in moving}
        if not rows:
            return []
        running = output.listed(self.cluster.required("reassign", "--list"))
        for name, each in rows.items():
            if running.get(name, each["replicas"]) != each["replicas"]:
                rows[name] = {key: each[key] for key in ("topic", "partition")} | {"replicas": running[name]}
        record.see(brokers, {}, {})
        said = self.kept(record, brokers, self.topics_of(record))
        record.add_rate(rate)
        record.save()
        options = ["--execute", "--additional", "--throttle", rate]
        if any("log_dirs" in each for each in rows.values()):
            options += ["--replica-alter-log-dirs-throttle", rate]
        code, out, err = self.reassigned(list(rows.values()), *options)
        # The rate is set before the moves start again, and a log dir that a broker refuses is asked for after that.
        if code != 0 and not any(each in out + err for each in (NO_BROKER, STARTED)):
            raise ToolError(f"the throttle couldn't be changed: {refused(out, err)}")
        return [*said, f"The throttle is {rate} bytes per second from now on."]

    def restore(self):
        """Restore the throttles. Returns sentences on any that stay, and the plan's partitions that still move."""
        by_name, said, record = self.given["although_moving"], [], self.record()
        if record is None and by_name:
            said = self.begin_with_plan()
            record = self.record()
        if record is None:
            return {"said": [self.unknown()] if by_name else [], "moving": []}
        active = output.listed(self.cluster.required("reassign", "--list"))
        moving = [(name, to) for name, to in active.items() if int(name.rpartition("-")[2]) in _numbers(record, name)]
        states = self.cluster.states()
        own = [name for name, to in moving if sorted(to) in map(sorted, states.get(name, [to]))]
        self.theirs = {name.rpartition("-")[0] for name, _ in moving if name not in own}
        if own and not by_name:
            moves = f"{len(own)} partition{' of the plan still moves' if len(own) == 1 else 's of the plan still move'}"
            return {"said": [f"{moves}, so the throttles stay."], "moving": own}
        if self.theirs:
            named = ", ".join(sorted(self.theirs)[:_NAMED])
            said.append(f"Somebody else moves partitions of {named}: the throttles of these topics stay meanwhile.")
        brokers, seen = self.settled(record, active)
        return {"said": said + seen + self.finish(record, brokers), "moving": []}

    def unknown(self):
        """A sentence on the brokers' throttles if neither a record nor this plan's moves tell who set them."""
        found = [f"broker {broker}: {_said(values)}" for broker, values in sorted(self.live().items()) if values]
        return (
            "This host has no record of a throttle, and no topic is throttled for this plan's moves alone: nothing was "
            f"put back. Set on brokers: {'; '.join(found) or 'no throttle'}."
        )

    def settled(self, record, active):
        """Restore all throttles until a second reading confirms them. Returns the live brokers, and sentences.

        Any broker may answer. A broker that lags behind the controller shows older throttles. So it may not show
        the throttles of a batch that has just begun. Without a second reading these would stay for good.
        """
        record.forget_recreated(self.described())
        said = []
        for reading in range(_READINGS):
            brokers = self.live()
            record.see(brokers, {}, {})
            topics = self.topics_of(record)
            right = all(values == record.desired_broker(each, values) for each, values in brokers.items())
            right = right and all(values == record.desired_topic(each, values) for each, values in topics.items())
            if right and reading:
                break
            said += self.put_back(record, brokers, topics, active)
            time.sleep(_APART_SECONDS)
            self.seen = None
        return brokers, said

    def lift(self, described, brokers):
        """Restore the throttles of topics that earlier batches have moved. If this fails, the end of the run does it.

        Records that producers write to a throttled topic count against the throttle even if its replicas are in sync,
        which slows down later batches more and more. The next batch's --execute sets the throttles of its own topics.
        """
        self.seen = output.topics(described)
        record = None if output.reassigned(described) else self.record()
        if record is None:
            return []
        record.forget_recreated(self.seen)
        starting = {name.rpartition("-")[0] for name in self.cluster.lists()[0]}
        seen = self.topics_of(record)
        topics = {each: values for each, values in seen.items() if each not in starting}
        changing = [each for each, values in topics.items() if values != record.desired_topic(each, values)]
        try:
            record.see(brokers, {}, {})
            said = self.kept(record, brokers, {each: seen[each] for each in seen.keys() & starting})
            return said + (self.put_back(record, brokers if changing[1:] else {}, topics, []) if changing else [])
        except ToolError as error:
            return [f"The throttles of topics that are done stay until the end of the run: {error}"] if changing else []

    def kept(self, record, brokers, topics):
        """Record what somebody else has set on these since, because this run may replace it. Returns sentences."""
        found = {f"broker {each}": record.changed(each, values) for each, values in sorted(brokers.items())}
        found.update({f"topic {each}": record.changed_on_topic(each, topics[each]) for each in sorted(topics)})
        for each, values in brokers.items():
            record.brokers[each] = record.desired_broker(each, values)
        for each, values in topics.items():
            record.topics[each]["configs"] = record.desired_topic(each, values)
        if any(found.values()):
            record.save()
        rest = "meanwhile. This run may replace it, and puts it back at its end."
        return [f"Somebody else has set {_said(new)} on {each} {rest}" for each, new in found.items() if new]

    def topics_of(self, record):
        """{topic: its throttles now} of the record's topics that still exist and that nobody else moves."""
        found = record.topics.keys() & self.described().keys() - self.theirs
        return {each: self.described()[each][1] for each in sorted(found)}

    def put_back(self, record, brokers, topics, active):
        """Restore the throttles of these brokers and topics; sentences on values that somebody else has set since."""
        changed = {f"broker {each}": record.changed(each, values) for each, values in sorted(brokers.items())}
        changed.update({f"topic {each}": record.changed_on_topic(each, topics[each]) for each in sorted(topics)})
        said = [
            f"Somebody else has set {_said(values)} on {name} meanwhile, which stays."
            for name, values in changed.items()
            if values
        ]
        now = {("brokers", each): values for each, values in brokers.items()}
        now.update({("topics", each): values for each, values in topics.items()})
        desired = {("brokers", each): record.desired_broker(each, values) for each, values in brokers.items()}
        desired.update({("topics", each): record.desired_topic(each, values) for each, values in topics.items()})
        for (kind, name), values in desired.items():
            if kind == "brokers":
                record.brokers[name] = values
            else:
                record.topics[name]["configs"] = values
        record.save()
        self.alter(now, desired, active)
        return said

    def described(self):
        """{topic: (id, throttles)} from kafka-topics, which is run once."""
        if self.seen is None:
            self.seen = output.topics(self.cluster.required("topics", "--describe"))
        return self.seen

    def alter(self, now, desired, active):
        """Change the throttles from `now` to the desired ones, with as few calls of Kafka's tools as possible."""
        changes = [each for each, values in now.items() if values != desired.get(each)]
        topics = [name for kind, name in changes if kind == "topics"]
        # If nothing moves in the cluster, one --verify clears the throttles of all live brokers and of its topics.
        wiped = [each for each in now if each[0] == "brokers" or each[1] in topics]
        if not active and topics and 1 + sum(bool(desired[each]) for each in wiped) < len(changes):
            broker = min(int(name) for kind, name in now if kind == "brokers")
            rows = [{"topic": each, "partition": 0, "replicas": [broker]} for each in topics]
            code, out, _ = self.reassigned(rows, "--verify")
            if code == 0 and "Clearing topic-level throttles" in out:
                # It also clears the brokers' throttles between log dirs.
                now = {**now, **{each: {} for each in wiped}}
                changes = [each for each in wiped if desired.get(each)]
        for kind, name in changes:
            options = alteration(now[(kind, name)], desired[(kind, name)])
            if options:
                self.cluster.required("configs", "--alter", "--entity-type", kind, "--entity-name", name, *options)

    def finish(self, record, brokers):
        """Remove the restored throttles from the record. Those of brokers that aren't live stay in it for later."""
        away = sorted(int(broker) for broker in record.brokers if broker not in brokers)
        for broker in brokers:
            record.brokers.pop(broker, None)
        for topic in record.topics.keys() - self.theirs:
            del record.topics[topic]
        record.save()
        if not away:
            return []
        named = ", ".join(map(str, away))
        return [
            f"Not live, so a throttle of theirs couldn't be put back: broker {named}. Once they are live again, run "
            "ansible-playbook apply.yml --tags unthrottle."
        ]

    def reassigned(self, rows, *options):
        """Run kafka-reassign-partitions with a file of these partitions; exit code, stdout and stderr."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "partitions": rows}, file)
            file.flush()
            return self.cluster.run([*self.given["tools"]["reassign"], *options, "--reassignment-json-file", file.name])

    def live(self):
        """{broker: throttles} of the live brokers."""
        return output.broker_throttles(self.cluster.required("configs", "--describe", "--entity-type", "brokers"))

    def record(self):
        """The record of this cluster, or None. Runs no tool if the folder has no record at all."""
        if not list(self.folder.glob("throttles-*.json")):
            return None
        return Record.found(self.folder, self.described())


def _numbers(record, name):
    return record.topics.get(name.rpartition("-")[0], {}).get("partitions", ())


def _said(values):
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items()))

"""The throttles of a cluster before a run, kept in a file on the admin host, and what puts them back."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import json
import os
from pathlib import Path


class Record:
    """The values from before the first run of a plan that isn't finished: of brokers, and of the plan's topics.

    `rates` are those that runs have set since; with them a value is told from one that somebody else has set.
    """

    def __init__(self, path, content=None):
        self.path = path
        self.content = content or {"topic_ids": [], "rates": [], "brokers": {}, "topics": {}}

    @classmethod
    def found(cls, folder, described):
        """The record of the cluster whose topics are {name: (id, throttles)}, or None."""
        for path in sorted(folder.glob("throttles-*.json")):
            content = json.loads(path.read_text())
            if {f"{name} {number}" for name, (number, _) in described.items()} & set(content["topic_ids"]):
                return cls(path, content)
        return None

    @property
    def brokers(self):
        """{broker: {throttle: value}} from before."""
        return self.content["brokers"]

    @property
    def topics(self):
        """{topic: {"configs": {throttle: value}, "partitions": numbers that the plan moves}} from before."""
        return self.content["topics"]

    @property
    def rates(self):
        """Rates that runs have set, the last one last, as texts."""
        return self.content["rates"]

    def see(self, brokers, described, moved):
        """Take over what isn't known yet: {broker: throttles}, {topic: (id, throttles)}, {topic: partitions}."""
        if described:
            self.content["topic_ids"] = sorted(f"{name} {number}" for name, (number, _) in described.items())
        for broker, values in brokers.items():
            # One that was down at the begin of the run may have its rate by now.
            self.brokers.setdefault(broker, {k: v for k, v in values.items() if v not in self.rates})
        for topic, numbers in moved.items():
            known = self.topics.setdefault(topic, {"configs": described.get(topic, ("", {}))[1], "partitions": []})
            known["partitions"] = sorted(set(known["partitions"]) | set(numbers))

    def add_rate(self, rate):
        """A rate that is about to be set."""
        self.content["rates"] = [each for each in self.rates if each != str(rate)] + [str(rate)]

    def save(self):
        """Write the file at once, or remove it where nothing is left to put back."""
        if not self.brokers and not self.topics:
            self.path.unlink()
            return
        partial = self.path.with_suffix(".part")
        with partial.open("w") as file:
            json.dump(self.content, file, indent=1, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)

    def changed(self, broker, values):
        """What of a broker's throttles somebody else has set since: neither a run's value nor the one from before."""
        before = self.brokers[broker]
        return {k: v for k, v in values.items() if v not in self.rates and v != before.get(k)}

    def desired_broker(self, broker, values):
        """A broker's throttles as they should be: those from before, but what somebody has set since stays."""
        return {**self.brokers[broker], **self.changed(broker, values)}

    def changed_on_topic(self, topic, values):
        """What of a topic's throttles somebody else has set since: no list of partitions that the plan moves."""
        known = self.topics[topic]
        return {
            key: value
            for key, value in values.items()
            if value != known["configs"].get(key) and not _of_partitions(value, known["partitions"])
        }

    def desired_topic(self, topic, values):
        """A topic's throttles as they should be: those from before, but what somebody has set since stays."""
        return {**self.topics[topic]["configs"], **self.changed_on_topic(topic, values)}


def _of_partitions(value, partitions):
    """True for a list `partition:broker,...` of these partitions alone, or of none, as --execute sets it."""
    numbers = [pair.partition(":")[0] for pair in value.split(",") if pair]
    return all(number.isdigit() and int(number) in partitions for number in numbers)


def alteration(now, desired):
    """Options of kafka-configs --alter that turn {key: value} into what is desired; none where it is that already."""
    gone = sorted(key for key in now if key not in desired)
    new = sorted(key for key in desired if desired[key] != now.get(key))
    added = [f"{key}=[{desired[key]}]" if "," in desired[key] else f"{key}={desired[key]}" for key in new]
    return (["--add-config", ",".join(added)] if added else []) + (["--delete-config", ",".join(gone)] if gone else [])


def folder_of(given):
    """The folder of journals and records, which only its owner reads."""
    folder = Path(given or Path.home() / ".local" / "state" / "kafka_reassign")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder

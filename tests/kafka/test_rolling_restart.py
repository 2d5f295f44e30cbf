"""During a rolling restart of a real cluster, a producer with acks=all sees exactly the predicted errors."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, Message, Producer
from operator_at_work import Operator
from playbooks import Playbooks, Run

from planner.cli.commands import commands

pytestmark = [pytest.mark.kafka, pytest.mark.long]

# After this time without acknowledgment, a record counts as an error. The Java producer's default is 120 s.
PATIENCE = 15
TASKS = """---
- name: Ask for a restart
  ansible.builtin.copy:
    content: "{{ kafka_reassign_restart_brokers | join(' ') }}"
    dest: FOLDER/wanted
    mode: "0600"
- name: Wait until they were stopped and started
  ansible.builtin.wait_for:
    path: FOLDER/wanted
    state: absent
    sleep: 1
"""


@dataclass
class Load:
    """A producer with acks=all that keeps writing to every partition. `errors` has each partition's errors, timed."""

    operator: Operator
    partitions: Sequence[tuple[str, int]]
    acknowledged: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    errors: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[Load]:
        """Writes inside the block. At its end, waits for all records that are on their way."""
        thread = threading.Thread(target=self._write)
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            thread.join()

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": ",".join(self.operator.cluster.bootstrap_servers),
                "acks": "all",
                "delivery.timeout.ms": PATIENCE * 1000,
                "log_level": 2,
            }
        )
        while not self.ended.is_set():
            for topic, partition in self.partitions:
                producer.produce(topic, b"x" * 100, partition=partition, on_delivery=self._delivered)
            producer.poll(0)
            self.ended.wait(0.2)
        producer.flush(2 * PATIENCE)

    def tell(self) -> None:
        """Print the number of acknowledged records, and each partition's number of errors."""
        errors = {name: len(found) for name, found in sorted(self.errors.items())}
        sys.stdout.write(f"{sum(self.acknowledged.values())} records acknowledged; errors: {errors or 'none'}\n")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        name = f"{message.topic()}-{message.partition()}"
        if error is None:
            self.acknowledged[name] += 1
        else:
            self.errors[name].append((time.monotonic(), error.str()))


@dataclass
class Restarts:
    """The operator's own restart command: it stops the requested brokers, waits, and starts them."""

    operator: Operator
    down_seconds: float = 0
    done: list[tuple[list[int], float, float]] = field(default_factory=list)

    @contextmanager
    def obeyed(self) -> Iterator[Path]:
        """The file with the tasks. Inside the block, a thread does what they ask for."""
        tasks, wanted = self.operator.folder / "tasks.yml", self.operator.folder / "wanted"
        tasks.write_text(TASKS.replace("FOLDER", str(self.operator.folder)))
        ended = threading.Event()

        def obey() -> None:
            while not ended.is_set():
                if wanted.exists() and (text := wanted.read_text()):
                    self._restart(list(map(int, text.split())))
                    wanted.unlink()
                time.sleep(0.2)

        thread = threading.Thread(target=obey)
        thread.start()
        try:
            yield tasks
        finally:
            ended.set()
            thread.join()

    def _restart(self, brokers: list[int]) -> None:
        began = time.monotonic()
        ending = [self.operator.cluster.processes.pop(broker) for broker in brokers]
        for process in ending:
            process.terminate()  # a clean shutdown, as an operator's command does it
        for process in ending:
            process.wait(60)
        time.sleep(self.down_seconds)
        self.operator.start(*brokers)
        self.done.append((brokers, began, time.monotonic()))


def made(operator: Operator, *options: str) -> tuple[Playbooks, dict]:
    """Make a restart of the current cluster beside the spec. Return its playbooks and restart.json."""
    operator.capture()
    defaults = {"config_defaults": {"min.insync.replicas": 1}}
    path, out = operator.spec({}, cluster=defaults), operator.folder / "restart"
    ended = CliRunner().invoke(commands, ["restart", str(path), "-o", str(out), *options], standalone_mode=False)
    if ended.exception:
        raise ended.exception
    return Playbooks(out / "ansible", operator.folder / "home"), json.loads((out / "restart.json").read_text())


def play(playbooks: Playbooks, tasks: Path, *options: str) -> Run:
    """Run the whole restart."""
    return playbooks.play("restart", "-e", f"kafka_reassign_restart_tasks={tasks}", *options, delay=1)


def named(partitions: list[dict]) -> set[str]:
    """The names of restart.json's partitions, as Kafka's tools write them."""
    return {f"{each['topic']}-{number}" for each in partitions for number in each["partitions"]}


# Each partition has one replica in each of the three racks (1 and 4, 2 and 5, 3 and 6).
SPREAD = [[1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 6], [5, 6, 1], [6, 1, 2]]


def test_no_error_where_none_was_foretold(operator: Operator) -> None:
    """Three steps, one rack each: every record is acknowledged, and leaders are as before."""
    operator.create_topic("orders", SPREAD, min_insync_replicas="2")
    operator.await_true(operator.in_sync, "all in sync")
    before = operator.leaders()
    playbooks, document = made(operator)
    assert [[1, 4], [2, 5], [3, 6]] == [step["brokers"] for step in document["steps"]]
    assert not any(step["writes_refused"] or step["offline"] for step in document["steps"])

    load, restarts = Load(operator, [("orders", number) for number in range(6)]), Restarts(operator)
    with load.running(), restarts.obeyed() as tasks:
        run = play(playbooks, tasks)
    assert 0 == run.code, run.output
    assert [[1, 4], [2, 5], [3, 6]] == [brokers for brokers, _, _ in restarts.done]
    load.tell()
    assert {} == load.errors
    assert before.keys() == load.acknowledged.keys()
    operator.await_equal(before, operator.leaders)
    assert operator.in_sync()


def test_errors_where_they_were_foretold(operator: Operator) -> None:
    """With min.insync.replicas equal to the RF, writes are refused in the steps and partitions of restart.json."""
    operator.create_topic("orders", SPREAD, min_insync_replicas="2")
    operator.create_topic("strict", [[2, 3], [3, 1]], min_insync_replicas="2")
    operator.await_true(operator.in_sync, "all in sync")
    before = operator.leaders()
    playbooks, document = made(operator)
    foretold = {tuple(step["brokers"]): named(step["writes_refused"]) for step in document["steps"]}
    assert {(1,): {"strict-1"}, (2,): {"strict-0"}, (3,): {"strict-0", "strict-1"}} == {
        brokers: names for brokers, names in foretold.items() if names
    }

    partitions = [*(("orders", number) for number in range(6)), ("strict", 0), ("strict", 1)]
    load, restarts = Load(operator, partitions), Restarts(operator, down_seconds=PATIENCE + 5)
    with load.running(), restarts.obeyed() as tasks:
        refused = play(playbooks, tasks)
        assert 2 == refused.code
        assert "Nothing was restarted. To allow this, set kafka_reassign_allow_refused_writes." in refused.text
        assert [] == restarts.done
        assert {} == load.errors
        run = play(playbooks, tasks, "-e", "kafka_reassign_allow_refused_writes=true")
    assert 0 == run.code, run.output
    seen = {
        tuple(brokers): {
            name
            for name, errors in load.errors.items()
            if any(began <= moment <= end + PATIENCE for moment, _ in errors)
        }
        for brokers, began, end in restarts.done
    }
    load.tell()
    assert foretold == seen
    operator.await_equal(before, operator.leaders)


def test_what_was_not_foretold_stops_before_the_step(operator: Operator) -> None:
    """If min.insync.replicas is raised after the steps were made, the playbook notices and restarts nothing."""
    operator.create_topic("orders", SPREAD, min_insync_replicas="2")
    operator.await_true(operator.in_sync, "all in sync")
    playbooks, _ = made(operator)
    options = ("--entity-type", "topics", "--entity-name", "orders", "--alter", "--add-config", "min.insync.replicas=3")
    operator.cluster.tool("kafka-configs", *options)
    restarts = Restarts(operator)
    with restarts.obeyed() as tasks:
        run = play(playbooks, tasks)
    assert 2 == run.code, run.output
    assert (
        "Stopped before step 1 of 3: not in report.md: partitions would refuse writes with acks=all: "
        "orders-0, orders-1, orders-2, orders-3, orders-4, orders-5. None of its brokers was restarted. Run the "
        "playbook again with -e kafka_reassign_from_step=1 to go on" in run.text
    )
    assert [] == restarts.done

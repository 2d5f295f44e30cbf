"""Measures what a change of a real cluster takes: time, bytes copied, and the planned time at a throttle.

`python tests/kafka/measure.py` starts its own cluster and prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS.parent / "examples" / "local-cluster"), str(TESTS), str(TESTS / "kafka")]

from cluster import running  # noqa: E402  (found by the line above)
from loop import play  # noqa: E402
from operator_at_work import RECORD_BYTES, Operator, Plan  # noqa: E402

PARTITIONS = 12
BYTES_WITHIN, SECONDS_WITHIN = 5, 25  # percent
Stored = dict[int, dict[str, int]]


@dataclass(frozen=True)
class Figure:
    """A planned figure and the measured one. They may differ by `within` percent of the planned figure."""

    name: str
    planned: float
    measured: float
    within: int
    unit: str

    @property
    def off_percent(self) -> float:
        """By how many percent the measured figure exceeds the planned one."""
        return 100 * (self.measured - self.planned) / self.planned

    @property
    def holds(self) -> bool:
        """Whether the difference is within the limit."""
        return abs(self.off_percent) <= self.within

    def row(self) -> str:
        """A row of the table."""
        amounts = f"{self.planned:.1f} {self.unit} | {self.measured:.1f} {self.unit} | {self.off_percent:+.1f} %"
        return f"| {self.name} | {amounts} | {self.within} % | {'ok' if self.holds else 'off'} |"


@dataclass
class Clock:
    """Seconds by phase, in the order of the phases."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the time that the block takes."""
        start = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - start

    def rows(self) -> list[str]:
        """The rows of the table. The last one is the sum."""
        timed = [*self.seconds.items(), ("all of it", sum(self.seconds.values()))]
        return [f"| {name} | {seconds:.1f} |" for name, seconds in timed]


def stored(operator: Operator) -> Stored:
    """Bytes of each replica on each broker's disks."""
    return {broker: operator.stored(broker) for broker in operator.cluster.racks}


def copied(before: Stored, after: Stored) -> dict[int, int]:
    """Bytes that each broker copied: the sizes of the replicas that it didn't hold before."""
    return {
        broker: sum(size for name, size in replicas.items() if name not in before[broker])
        for broker, replicas in after.items()
    }


def produce(operator: Operator, moved_bytes: int) -> None:
    """Produce topics on three brokers. Half of the replicas, about `moved_bytes` in all, will move to three others."""
    operator.create_topic("orders", [[1 + p % 3, 1 + (p + 1) % 3] for p in range(PARTITIONS)])
    operator.produce("orders", PARTITIONS, round(moved_bytes / PARTITIONS / RECORD_BYTES))


def expansion(operator: Operator, **execution: object) -> Path:
    """A spec that adds three brokers."""
    added = [{"id": broker, "rack": operator.cluster.racks[broker]} for broker in (4, 5, 6)]
    return operator.spec({"add_brokers": added}, brokers=[1, 2, 3], execution=execution)


def timed_loop(operator: Operator, moved_bytes: int) -> tuple[Clock, Figure]:
    """Time each phase of the README's loop, without a throttle. Also return the bytes that it copied."""
    clock = Clock()
    with clock.phase("create topics, produce"):
        produce(operator, moved_bytes)
    with clock.phase("capture the state"):
        operator.capture()
    with clock.phase("planner whatif --engine local"):
        plan = operator.whatif(expansion(operator, throttle="none", batches={"bytes": f"{moved_bytes // 2}B"}))
    before = stored(operator)
    with clock.phase(f"apply.yml, {len(plan.document['batches'])} batches"):
        play(plan, "apply", changes=True)
    figure = copied_figure("bytes copied by the loop", plan, copied(before, stored(operator)))
    with clock.phase("apply.yml again"):
        play(plan, "apply", changes=False)
    with clock.phase("rollback.yml"):
        play(plan, "rollback", changes=True)
    return clock, figure


def timed_move(operator: Operator, moved_bytes: int, throttle: str) -> list[Figure]:
    """Make one reassignment at a throttle. Return the bytes that it copied and the time that it took."""
    produce(operator, moved_bytes)
    operator.capture()
    plan = operator.whatif(expansion(operator, throttle=throttle, batches="none"))
    before = stored(operator)
    seconds = move(operator, plan)
    planned = sum(batch["seconds_at_throttle"] for batch in plan.document["batches"])
    return [
        copied_figure(f"bytes copied at {throttle}", plan, copied(before, stored(operator))),
        Figure(f"time of that at {throttle} a broker", planned, seconds, SECONDS_WITHIN, "s"),
    ]


def copied_figure(name: str, plan: Plan, bytes_in: Mapping[int, int]) -> Figure:
    """The copied bytes and the planned ones."""
    return Figure(name, plan.bytes_moved / 1e6, sum(bytes_in.values()) / 1e6, BYTES_WITHIN, "MB")


def move(operator: Operator, plan: Plan) -> float:
    """Execute a plan at its throttle with Kafka's tool. Return seconds from first to last change of a replica list."""
    before, throttle = operator.replicas(), plan.document["execution"]["throttle_bytes_per_sec"]
    options = ("--reassignment-json-file", plan.folder / "reassignment.json")
    limit = ("--throttle", throttle) if throttle else ()
    with ThreadPoolExecutor(1) as other:
        execute = ("kafka-reassign-partitions", "--execute", *options, *limit)
        started = other.submit(operator.cluster.tool, *execute)
        operator.await_true(lambda: started.done() or before != operator.replicas(), "the move to start")
        start = time.monotonic()
        started.result()
        operator.await_true(lambda: before | plan.replicas == operator.replicas(), "the move to end", seconds=600)
    seconds = time.monotonic() - start
    operator.cluster.tool("kafka-reassign-partitions", "--verify", *options)
    return seconds


def main() -> int:
    """Measure and print. Return 1 if a figure is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop-mb", type=int, default=20, help="megabytes that the loop moves")
    parser.add_argument("--move-mb", type=int, default=200, help="megabytes that are moved at a throttle")
    parser.add_argument("--throttle", default="4MB/s", help="that throttle")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "cluster") as cluster:
        operator = Operator(cluster, Path(folder))
        clock, loop_bytes = timed_loop(operator, options.loop_mb * 10**6)
        operator.tidy_up()
        figures = [loop_bytes, *timed_move(operator, options.move_mb * 10**6, options.throttle)]
    phases = ["| phase of the loop | seconds |", "|---|--:|", *clock.rows()]
    heads = ["| figure | planned | measured | off by | allowed | verdict |", "|---|--:|--:|--:|--:|---|"]
    rows = [*phases, "", *heads, *(figure.row() for figure in figures)]
    sys.stdout.write("".join(f"{row}\n" for row in rows))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())

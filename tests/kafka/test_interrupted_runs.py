"""After a run is ended at any moment, on a real cluster, the next run applies the plan and restores throttles."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass

import pytest
from faults import MEGABYTE, SLOWLY, await_move, expansion
from operator_at_work import Lists, Operator, Plan

# Numbers of tasks before the signal, one in each half of the run. Random moments and all signals take half an hour.
ENDED = pytest.mark.parametrize(("tasks", "ended_by"), [(22, signal.SIGTERM), (37, signal.SIGKILL)])
MOMENTS = 10
# Batches of a megabyte or two, which take some seconds each.
MODERATELY = ("-e", "kafka_reassign_throttle_bytes_per_sec=150000")
BEFORE = {
    ("brokers", "2"): "leader.replication.throttled.rate=777000000",
    ("brokers", "6"): "follower.replication.throttled.rate=888",
    ("topics", "quiet"): "leader.replication.throttled.replicas=*",
    ("topics", "orders"): "follower.replication.throttled.replicas=[0:1,2:3]",
}
SIGNALS = pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])

pytestmark = pytest.mark.kafka


@dataclass(frozen=True)
class Begun:
    """A plan, the earlier throttles that it has to keep, and the lists that it has to reach."""

    plan: Plan
    throttles: str
    wanted: Lists

    @staticmethod
    def on(operator: Operator) -> Begun:
        """Makes a plan with one replica a batch, on a cluster where somebody else has set throttles."""
        plan = expansion(operator, MEGABYTE, moves_per_broker=1)
        operator.create_topic("quiet", [[5, 6]])
        for (kind, name), value in BEFORE.items():
            options = ("--entity-type", kind, "--entity-name", name, "--alter", "--add-config", value)
            operator.cluster.tool("kafka-configs", *options)
        operator.await_true(lambda: len(BEFORE) == len(operator.throttles().splitlines()), "the throttles from before")
        return Begun(plan, operator.throttles(), operator.replicas() | plan.replicas)

    def resume(self, operator: Operator, *options: str) -> None:
        """Run the playbook again: it applies the plan, loses nothing, and puts the throttles back."""
        run = self.plan.playbooks.play("apply", *options)
        assert 0 == run.code, run.output
        operator.await_equal(self.wanted, operator.replicas)
        assert [] == operator.moving()
        operator.await_equal(self.throttles, operator.throttles)
        kept = operator.folder / "home" / ".local" / "state" / "kafka_reassign"
        assert [] == list(kept.glob("throttles-*")), run.output
        assert {} == operator.lost()


@ENDED
def test_run_ended_after_so_many_tasks_is_resumed(operator: Operator, tasks: int, ended_by: signal.Signals) -> None:
    """The next run finishes. After the first number of tasks the first batch moves, after the second a later one."""
    begun = Begun.on(operator)
    with begun.plan.playbooks.playing("apply", *SLOWLY) as running:

        def so_far() -> bool:
            if running.text.count("TASK [") > 20:
                operator.lift_throttle()
            return running.text.count("TASK [") >= tasks or running.process.poll() is not None

        operator.await_true(so_far, f"{tasks} tasks")
        running.process.send_signal(ended_by)
        running.process.wait(60)
    begun.resume(operator)


def test_a_run_without_a_throttle_takes_off_that_of_the_interrupted_one(operator: Operator) -> None:
    """What still moves does so at full speed, and the throttles from before are put back."""
    begun = Begun.on(operator)
    with begun.plan.playbooks.playing("apply", *SLOWLY):
        await_move(operator)
    begun.resume(operator, "-e", "kafka_reassign_throttle_bytes_per_sec=0", "-e", "kafka_reassign_wait_seconds=60")


@dataclass
class Moments:
    """Random moments within the time that the latest uninterrupted run took. The first draw interrupts no run."""

    seed: int
    generator: random.Random
    seconds: float | None = None

    def draw(self) -> float | None:
        """Seconds after the start, or None if the run isn't to be interrupted."""
        return None if self.seconds is None else self.generator.random() * self.seconds


@pytest.fixture(scope="module")
def moments() -> Moments:
    """Moments drawn with the seed `MOMENTS_SEED` from the environment, or with a new seed in each session."""
    seed = int(os.environ.get("MOMENTS_SEED") or random.SystemRandom().randrange(10**6))
    print(f"MOMENTS_SEED={seed}")  # noqa: T201
    return Moments(seed, random.Random(seed))


@pytest.mark.long
@SIGNALS
@pytest.mark.parametrize("number", range(MOMENTS))
def test_run_ended_at_a_random_moment_is_resumed(
    operator: Operator, moments: Moments, number: int, ended_by: signal.Signals
) -> None:
    """A run is ended at a random moment, and the next one finishes. If it ended by itself, another moment is drawn."""
    while (said := ended_at_random(begun := Begun.on(operator), moments, ended_by)) is None:
        begun.resume(operator)
        operator.tidy_up()
        operator.produced.clear()
    begun.resume(operator)
    print(f"{number + 1} of {MOMENTS}: {said}: resumed, plan reached, throttles equal")  # noqa: T201


def ended_at_random(begun: Begun, moments: Moments, ended_by: signal.Signals) -> str | None:
    """Where the run was when it was ended, or None if it ended by itself before that."""
    started, moment = time.monotonic(), moments.draw()
    with begun.plan.playbooks.playing("apply", *MODERATELY) as running:
        with suppress(subprocess.TimeoutExpired):
            assert 0 == running.process.wait(moment), running.text
            moments.seconds = time.monotonic() - started
            return None
        running.process.send_signal(ended_by)
        running.process.wait(60)
        tasks = running.text.count("TASK [")
    return (
        f"MOMENTS_SEED={moments.seed}, {ended_by.name} after {moment:.1f} s of {moments.seconds:.1f} s, in task {tasks}"
    )

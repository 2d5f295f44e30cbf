"""How long it takes on a real cluster until brokers have a changed throttle, and until they copy at that rate."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults import MEGABYTE, assert_unharmed, await_move
from operator_at_work import Operator

pytestmark = [pytest.mark.kafka, pytest.mark.long]

SLOW, FAST = 250_000, 1_500_000
# Kafka averages a rate over about ten seconds, and a partition's bytes arrive one megabyte at a time.
WINDOW_SECONDS = 20
WITHIN_SECONDS = 60


class Copying:
    """The bytes of a broker's replicas, read from its disks each second."""

    def __init__(self, operator: Operator, broker: int) -> None:
        self.operator, self.broker = operator, broker
        self.seen: list[tuple[float, int]] = []

    def rate(self) -> float:
        """Bytes/s over the last window. NaN before the first window is over."""
        now = time.monotonic()
        self.seen.append((now, sum(self.operator.stored(self.broker).values())))
        early = [each for each in self.seen if each[0] <= now - WINDOW_SECONDS]
        if not early:
            return float("nan")
        then, before = early[-1]
        return (self.seen[-1][1] - before) / (now - then)

    def at(self, rate: int) -> bool:
        """Whether the current rate is this one, within a third."""
        return abs(self.rate() - rate) <= rate / 3


def seconds_until(condition: Callable[[], bool], since: float, what: str) -> float:
    """Seconds from `since` until the condition is true. It is checked every second."""
    for _ in itertools.repeat(None, 180):
        if condition():
            return time.monotonic() - since
        time.sleep(1)
    raise AssertionError(f"waited in vain for {what}")


def followed(operator: Operator, copying: Copying, rate: int, since: float) -> tuple[float, float]:
    """Seconds until all moving brokers have this throttle, and until they copy at that rate."""
    lines = [
        f"{broker}: {side}.replication.throttled.rate={rate} " for broker in (1, 4) for side in ("leader", "follower")
    ]
    with ThreadPoolExecutor(1) as other:
        copied = other.submit(seconds_until, lambda: copying.at(rate), since, "the bytes")
        configured = seconds_until(lambda: all(each in operator.throttles() for each in lines), since, "the throttles")
        return configured, copied.result()


def test_a_new_rate_takes_effect_within_a_minute(operator: Operator) -> None:
    """Within a minute, a batch follows rates from the file, up and down, and one from a new run's variable."""
    operator.create_topic("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2)
    operator.produce("orders", 6, 60 * MEGABYTE)
    execution = {"throttle": f"{SLOW}B/s", "batches": "none"}
    plan = operator.plan({"add_brokers": [{"id": 4, "rack": "r0"}]}, brokers=[1, 2, 3], execution=execution)
    wanted = operator.replicas() | plan.replicas
    rate_file, copying = operator.folder / "rate", Copying(operator, 4)
    given = ("-e", f"kafka_reassign_throttle_file={rate_file}")
    printed: list[str] = []

    def change(name: str, rate: int, since: float) -> None:
        configured, copied = followed(operator, copying, rate, since)
        printed.append(
            f"{name} to {rate / 1e6:.2f} MB/s: brokers configured after {configured:.0f} s, the bytes of the last "
            f"{WINDOW_SECONDS} s follow after {copied:.0f} s at {copying.rate() / 1e6:.2f} MB/s"
        )
        print(printed[-1])  # noqa: T201
        assert configured <= WITHIN_SECONDS
        assert copied <= WITHIN_SECONDS

    with plan.playbooks.playing("apply", *given, delay=10) as running:
        await_move(operator)
        seconds_until(lambda: copying.at(SLOW), time.monotonic(), "the first rate")
        for rate in (FAST, SLOW):
            since = time.monotonic()
            rate_file.write_text(f"{rate}\n")
            change("file", rate, since)
        assert operator.moving()
        running.kill()
    rate_file.unlink()
    with plan.playbooks.playing("apply", "-e", f"kafka_reassign_throttle_bytes_per_sec={FAST}", delay=10) as resumed:
        change("variable, of a new run,", FAST, time.monotonic())
        operator.lift_throttle()
        run = resumed.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)

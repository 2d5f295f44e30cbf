"""A plan that exceeds a limit, or isn't safe, is refused with exit code 3 and the key to change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import plan_documents
import pytest
from clusters import no_racks, spec_of
from folders import ROOT
from jsonschema import Draft202012Validator
from report_documents import GB

from planner.execution import limits_and_safety
from planner.execution.batch_costs_and_risks import Costs, costs
from planner.execution.batch_cutting import Batch
from planner.execution.limits_and_safety import LimitRow, gate_cells, gate_noun
from planner.execution.partition_changes import Step
from planner.model.build_problem import build
from planner.model.cluster import Broker, LogDir
from planner.model.document_fields import SpecLimits
from planner.model.errors import UnsafePlanError
from planner.model.spec import Changes, Execution, Spec
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

# Broker 4 replaces 3, whose 60 bytes it copies from 1 and 2.
ROWS, SIZES = {"x": [(1, 3), (2, 3)], "y": [(1, 2)]}, {"x": [40, 20], "y": [5]}
Pair = tuple[int, int]
NO_ORDER = "; no other order of the batches was found that keeps within it"
REPLACE = Changes(add_brokers=(Broker(4),), replace_brokers=((3, 4),), rebalance="none")


def plan_of(spec: Spec) -> dict[str, Any]:
    """The plan of a spec; the sweep runs in this process."""
    problem = build(spec)
    return plan_documents.planned(spec, problem, run(problem, candidates(problem, replace(spec.sweep, candidates=20))))


def replacement(
    *, disks: Mapping[int, int] | None = None, rates: int = 0, throttle: int | None = None, **rest: Any
) -> Spec:
    """Broker 4 replaces 3; `disks` are the sizes by broker, `rates` the produce rate of each partition of x."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, sizes=SIZES, changes=REPLACE, execution=Execution(throttle), **rest)
    x, y = spec.cluster.topics
    x = replace(x, partitions=tuple(replace(each, bytes_in_per_sec=rates) for each in x.partitions))
    room = disks or {}
    brokers = tuple(replace(each, disk_bytes=room.get(each.id)) for each in spec.cluster.brokers)
    changes = replace(REPLACE, add_brokers=(Broker(4, None, room.get(4)),))
    return replace(spec, cluster=replace(spec.cluster, topics=(x, y), brokers=brokers), changes=changes)


def in_racks(spec: Spec) -> Spec:
    """The spec with brokers 1 and 3 in rack a and the others in rack b."""
    brokers = tuple(replace(each, rack="ab"[each.id % 2 == 0]) for each in spec.cluster.brokers)
    added = tuple(replace(each, rack="b") for each in spec.changes.add_brokers)
    changes = replace(spec.changes, add_brokers=added)
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers), changes=changes, rack_aware=False)


def test_a_plan_with_disks_rates_and_gates_fits_the_schema() -> None:
    """A plan with disks, rates and limits fits the schema, and has each limit."""
    limits = SpecLimits(bytes_moved=60, eta_seconds=99, disk_used_ppm=999_999)
    plan = plan_of(replacement(disks=dict.fromkeys((1, 2, 3, 4), 61), rates=1, throttle=9, limits=limits))
    schema = json.loads((ROOT / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))

    assert [] == [error.message for error in Draft202012Validator(schema).iter_errors(plan)]
    assert ["limits.bytes_moved", "limits.eta", "limits.disk_used"] == [limit["key"] for limit in plan["limits"]]


def refused(spec: Spec) -> list[str]:
    """The lines of the refusal without its heading; the exit code is 3."""
    with pytest.raises(UnsafePlanError) as error:
        plan_of(spec)
    assert 3 == error.value.exit_code
    heading, *lines = str(error.value).splitlines()
    assert heading in (limits_and_safety.EXCEEDS, limits_and_safety.UNSAFE)
    return lines


def limits_of(spec: Spec) -> list[dict[str, Any]]:
    """The limits of a spec's plan."""
    found: list[dict[str, Any]] = plan_of(spec)["limits"]
    return found


def test_a_duration_at_its_limit_passes() -> None:
    """60 bytes to broker 4 at 7 bytes/s take 9 seconds: a limit of 9 s passes, one of 8 s refuses the plan."""
    passed = plan_of(replacement(throttle=7, limits=SpecLimits(eta_seconds=9)))

    assert [{"key": "limits.eta", "limit": 9, "value": 9}] == passed["limits"]
    assert (9, [9]) == (
        passed["execution"]["seconds_at_throttle"],
        [batch["seconds_at_throttle"] for batch in passed["batches"]],
    )
    assert ["limits.eta: the plan comes to 9 s, allowed: at most 8 s"] == refused(
        replacement(throttle=7, limits=SpecLimits(eta_seconds=8))
    )


def test_producers_make_a_plan_take_longer() -> None:
    """Two partitions are written at 2 bytes/s each, so broker 4 catches up at 10 − 4 bytes/s and needs 10 seconds."""
    assert 10 == plan_of(replacement(throttle=10, rates=2))["execution"]["seconds_at_throttle"]


def test_a_throttle_at_the_produce_rate_is_refused() -> None:
    """Broker 4 copies partitions written at 10 bytes/s in all: a throttle of 11 ends after 60 s, one of 10 never."""
    assert 60 == plan_of(replacement(throttle=11, rates=5))["execution"]["seconds_at_throttle"]
    # The leaders 1 and 2 send each write to the old follower 3 and to the new one 4.
    assert [
        "execution.throttle: 10 B/s never lets batch 1 complete, nor 2 other pairs of a broker and a batch: in it, "
        "producers alone write 10 B/s to the partitions that broker 4 copies in; allowed: above 10 B/s (10 bytes/s), "
        "which is enough for all of them"
    ] == refused(replacement(throttle=10, rates=5))


def test_a_throttle_is_refused_without_sizes_too() -> None:
    """A throttle that is too low for the produce rates is refused without sizes too."""
    spec = replacement(throttle=10, rates=5)

    unsized = replace(spec, cluster=replace(spec.cluster, sizes_known=False))
    assert "execution.throttle: 10 B/s never" in refused(unsized)[0]


def test_a_leader_that_sends_more_than_the_throttle_is_named() -> None:
    """Broker 1 sends 4 bytes/s to three followers, so a throttle of 12 bytes/s is refused, with the broker's name."""
    spec = spec_of(no_racks(1, 2, 3), {"x": [(1, 2, 3)]}, changes=REPLACE, execution=Execution(12))
    topic = spec.cluster.topics[0]
    fast = replace(topic, partitions=(replace(topic.partitions[0], bytes_in_per_sec=4),))

    assert [
        "execution.throttle: 12 B/s never lets batch 1 complete: in it, producers alone write 12 B/s to the partitions "
        "that broker 1 leads, once for each follower; allowed: above 12 B/s (12 bytes/s)"
    ] == refused(replace(spec, cluster=replace(spec.cluster, topics=(fast,))))


def test_without_a_throttle_rates_refuse_nothing() -> None:
    """Without a throttle no produce rate refuses a plan."""
    plan = plan_of(replacement(rates=10**15))

    assert (None, [None]) == (
        plan["execution"]["seconds_at_throttle"],
        [batch["seconds_at_throttle"] for batch in plan["batches"]],
    )


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        (SpecLimits(bytes_moved=10**9), "limits.bytes_moved"),
        (SpecLimits(cross_rack_bytes=10**9), "limits.cross_rack_bytes"),
        (SpecLimits(eta_seconds=10**9), "limits.eta"),
        (SpecLimits(disk_used_ppm=10**6), "limits.disk_used"),
        (SpecLimits(bytes_moved=10**9, eta_seconds=1), "limits.bytes_moved and limits.eta"),
    ],
)
@pytest.mark.parametrize(
    ("unsized", "known", "count"),
    [(0, False, "all partitions have"), (1, True, "1 partition has"), (2, True, "2 partitions have")],
)
def test_gates_on_bytes_need_sizes(limits: SpecLimits, named: str, unsized: int, known: bool, count: str) -> None:
    """A limit on bytes, time or disks is refused if any partition has no size, because it can't be judged."""
    spec = in_racks(replacement(throttle=7, disks=dict.fromkeys((1, 2, 3, 4), 10**6), limits=limits))
    with pytest.raises(UnsafePlanError) as error:
        plan_of(replace(spec, cluster=replace(spec.cluster, sizes_known=known, unsized=unsized)))

    assert (
        f"nothing was written: {named} can't be judged, {count} no size; "
        "allowed: sizes for every partition, or no such limit" == str(error.value)
    )


def test_a_duration_needs_a_throttle() -> None:
    """A limit on the duration needs a throttle, in specs made in Python as in those read from files."""
    with pytest.raises(UnsafePlanError, match=r"limits\.eta can't be judged with execution\.throttle: none; allowed"):
        plan_of(replacement(limits=SpecLimits(eta_seconds=9)))


def test_disks_are_a_gate_wherever_they_are_stated() -> None:
    """Stated disks are a limit by themselves: broker 4 gets 60 bytes, so 60 are enough and 59 are refused."""
    disks = {1: 100, 2: 100, 3: 100, 4: 60}
    passed = plan_of(replacement(disks=disks))

    assert [{"key": "limits.disk_used", "limit": 60, "value": 60, "broker": 4}] == passed["limits"]
    assert [(1, 100, 45), (2, 100, 25), (3, 100, 60), (4, 60, 60)] == [
        (broker["id"], broker["disk_bytes"], broker["peak_size_bytes"]) for broker in passed["brokers"]
    ]
    assert [{"id": 4, "peak_size_bytes": 60, "disk_bytes": 60}] == [
        batch["fullest_broker"] for batch in passed["batches"]
    ]
    said = "limits.disk_used: broker 4 holds 60 B in batch 1, allowed: at most 59 B, its capacity.disk"
    assert [f"{said}{NO_ORDER}"] == refused(replacement(disks={1: 50, 2: 50, 3: 100, 4: 59}))


def test_broker_that_a_batch_fills_above_its_share_is_listed() -> None:
    """A broker that exceeds limits.disk_used is named with its bytes; the limit is rounded down to whole bytes."""
    spec = replacement(disks={1: 100, 2: 100, 3: 100, 4: 100}, limits=SpecLimits(disk_used_ppm=445_000))

    said = "limits.disk_used: broker 4 holds 60 B in batch 1, allowed: at most 44 B (44.5 % of capacity.disk, 100 B)"
    assert [f"{said}{NO_ORDER}"] == refused(spec)


def test_broker_above_its_share_today_is_no_reason_to_refuse_its_relief() -> None:
    """Brokers above the limit today don't refuse a plan that makes none of them fuller; each gets a warning."""
    plan = plan_of(replacement(disks={1: 44, 2: 100, 3: 59, 4: 60}))

    assert [
        "broker 1 holds 45 B today, above limits.disk_used (44 B); no batch makes it fuller",
        "broker 3 holds 60 B today, above limits.disk_used (59 B); no batch makes it fuller",
    ] == [warning for warning in plan["warnings"] if "limits.disk_used" in warning]
    assert [{"key": "limits.disk_used", "limit": 60, "value": 60, "broker": 4}] == plan["limits"]


def with_room(spec: Spec, disk_bytes: int) -> Spec:
    """The spec with disks of this size on every broker."""
    brokers = tuple(replace(each, disk_bytes=disk_bytes) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers))


def test_both_copies_count() -> None:
    """Two racks swap a replica of 50 bytes: each broker ends with 50 bytes, but two of them hold 100 meanwhile."""
    spec = spec_of({1: "a", 2: "a", 3: "b", 4: "b"}, {"x": [(1, 2), (3, 4)]}, sizes=50)
    brokers = plan_of(with_room(spec, 100))["brokers"]

    assert [50, 50, 100, 100] == sorted(broker["peak_size_bytes"] for broker in brokers)
    assert [50] * 4 == [broker["after"]["size_bytes"] for broker in brokers]
    assert ["100 B in batch 1, allowed: at most 99 B, its capacity.disk"] * 2 == [
        line.split(" holds ")[1].removesuffix(NO_ORDER) for line in refused(with_room(spec, 99))
    ]


@pytest.mark.parametrize(
    ("cordoned", "to", "expected"),
    [
        (("*",), "any", "(cordoned.log.dirs=*), and the plan copies 1 replica to it"),
        (("/a", "/b"), "/a", "(cordoned.log.dirs=/a,/b), and the plan copies 1 replica to it"),
        (("/b",), "/b", "(cordoned.log.dirs=/b), and the plan copies 1 replica to its log dir /b"),
        (("/b",), "/a", ""),
        (("/b",), "any", ""),  # Kafka chooses the other log dir
        ((), "/b", ""),
    ],
)
@pytest.mark.parametrize("before", [(1, 3), (1, 2)], ids=["from a broker", "from a log dir"])
def test_nothing_is_copied_to_what_is_cordoned(before: Pair, cordoned: tuple[str, ...], to: str, expected: str) -> None:
    """A plan that copies to a cordoned broker or log dir is refused, from another broker or from another log dir."""
    broker = Broker(2, log_dirs=(LogDir("/a"), LogDir("/b")), cordoned_log_dirs=cordoned)
    spec = spec_of(no_racks(1, 3), {"x": [(1, 3)]})
    spec = replace(spec, cluster=replace(spec.cluster, brokers=(*spec.cluster.brokers, broker)))
    moves = Step("x", 0, before, (1, 2), 7, 1, log_dirs_before=("any", "/c"), log_dirs=("any", to))
    found = [*limits_and_safety.unsafe(spec, costs([Batch(1, (moves,), ())], None, {1: 7, 2: 7, 3: 7}, {}, True))]

    # A replica that stays, without a named log dir, isn't copied.
    said = expected if to != "any" or 2 not in before else ""
    assert all("; allowed: changes.rebalance: leaders or none, placement on other" in each for each in found)
    assert [said] * bool(said) == [line.partition("cordoned ")[2].partition("; allowed")[0] for line in found]


def test_all_crossed_gates_are_told_at_once() -> None:
    """All exceeded limits are reported at once."""
    limits = SpecLimits(bytes_moved=59, replicas_moved=1, leaders_changed=0, eta_seconds=1)

    assert ["limits.bytes_moved", "limits.replicas_moved", "limits.eta", "limits.disk_used"] == [
        line.split(":")[0] for line in refused(replacement(throttle=7, disks={4: 50}, limits=limits))
    ]


# The replacement copies both partitions of x from 1 and 3, in rack a, to 4, in rack b. Afterwards the replicas are
# (1, 4), (2, 4), (1, 2): each survives the failure of any broker, but x-1 is offline if rack b fails.
SCORED = {
    "bytes_moved": (60, "60 B", "59 B"),
    "cross_rack_bytes": (60, "60 B", "59 B"),
    "replicas_moved": (2, "2 replicas", "1 replica"),
    "leaders_changed": (1, "1 leader", "0 leaders"),
    "broker_refused": (2, "2 partitions", "1 partition"),
    "rack_offline": (1, "1 partition", "0 partitions"),
    "rack_refused": (3, "3 partitions", "2 partitions"),
}


def fragile(limits: SpecLimits) -> Spec:
    """The replacement in racks; writes need both replicas, and broker 3, which leaves, leads x-1."""
    spec = in_racks(replacement(limits=limits))
    x, y = (replace(topic, config=(("min.insync.replicas", "2"),)) for topic in spec.cluster.topics)
    x = replace(x, partitions=(replace(x.partitions[0], leader=1), replace(x.partitions[1], leader=3)))
    return replace(spec, cluster=replace(spec.cluster, topics=(x, y)))


@pytest.mark.parametrize("name", SCORED)
def test_every_term_that_has_a_gate_passes_at_it_and_is_refused_beyond(name: str) -> None:
    """A plan at a limit passes, and one above it is refused, with both values in the unit that the YAML takes."""
    needed, needs, allowed = SCORED[name]
    passed = plan_of(fragile(SpecLimits(**{name: needed})))
    term = next(term for term in passed["terms"] if term["name"] == name)

    assert [{"key": f"limits.{name}", "limit": needed, "value": needed}] == passed["limits"]
    assert (needed, needed) == (term["plan"], term["limit"])
    assert [f"limits.{name}: the plan comes to {needs}, allowed: at most {allowed}"] == refused(
        fragile(SpecLimits(**{name: needed - 1}))
    )


def test_the_gap_is_a_gate() -> None:
    """limits.gap is in millionths of what the plan copies, rounded up; it is 0 if the plan is proven optimal."""
    winner = dict.fromkeys((*SCORED, "broker_offline", "hours_above_capacity"), 0) | {"replicas_moved": 3}
    spec, costs = replacement(limits=SpecLimits(gap_ppm=333_333)), Costs((), (), None, (), ())

    def gap(moved: int, least: int, replicas: int | None = None) -> int:
        (found,) = limits_and_safety.gates(spec, {**winner, "bytes_moved": moved}, costs, least, replicas)
        assert ("limits.gap", 333_333) == (found.key, found.limit)
        return found.value

    assert [{"key": "limits.gap", "limit": 0, "value": 0}] == limits_of(replacement(limits=SpecLimits(gap_ppm=0)))
    assert (333_334, 0, 0, 1_000_000) == (gap(30, 20), gap(30, 30), gap(0, 0), gap(30, 0))
    assert (333_334, 0) == (gap(0, 0, 2), gap(0, 0, 3))
    assert ["limits.gap: the plan comes to 33.4 %, allowed: at most 33.3333 %"] == limits_and_safety.crossed(
        [LimitRow("limits.gap", 333_333, 333_334)], spec, costs
    )


def test_a_gap_below_a_hundredth_of_a_percent_is_told_as_exactly_as_its_limit() -> None:
    """Small gaps are shown with enough digits to differ from the limit."""
    assert ("0.0006 %", "0.0005 %") == gate_cells("limits.gap", 6, 5, None)


def test_large_amounts_are_told_for_reading_too() -> None:
    """A large amount is shown rounded and exactly."""
    found = [
        LimitRow("limits.bytes_moved", 10**9, 120_823_342),
        LimitRow("limits.cross_rack_bytes", 999, 88_100_000),
        LimitRow("limits.replicas_moved", 1_000, 1_200),
    ]
    assert [
        "limits.cross_rack_bytes: the plan comes to 88.1 MB (88100000 bytes), allowed: at most 999 B",
        "limits.replicas_moved: the plan comes to 1,200 replicas, allowed: at most 1,000 replicas",
    ] == limits_and_safety.crossed(found, replacement(), Costs((), (), None, (), ()))


def test_gates_of_racks_need_racks() -> None:
    """Limits on racks are refused if no broker has a rack, because they can't be judged."""
    limits = SpecLimits(cross_rack_bytes=1, rack_offline=0, rack_refused=0, broker_refused=9)
    with pytest.raises(UnsafePlanError) as error:
        plan_of(replacement(limits=limits))

    assert (
        "nothing was written: limits.cross_rack_bytes and limits.rack_offline and limits.rack_refused can't be "
        "judged, no broker has a rack; allowed: racks, or no such limit" == str(error.value)
    )


def test_without_disks_there_is_no_gate() -> None:
    """Without stated disks there is no limit on disks, but the peaks are in the plan."""
    plan = plan_of(replacement())

    assert [] == plan["limits"]
    assert [(None, 45), (None, 25), (None, 60), (None, 60)] == [
        (broker["disk_bytes"], broker["peak_size_bytes"]) for broker in plan["brokers"]
    ]


def test_unstated_disks_and_unknown_sizes_are_warned_of() -> None:
    """There is a warning if only some brokers state a disk, or if sizes are unknown, but not for different disks."""
    even, unlike = replacement(disks=dict.fromkeys((1, 2, 4), 100)), replacement(disks={1: 100, 2: 200, 4: 100})
    partly = replacement(disks={1: 100, 2: 200})
    blind = replace(even, cluster=replace(even.cluster, sizes_known=False))

    def told(spec: Spec) -> list[str]:
        return [warning for warning in plan_of(spec)["warnings"] if "capacity.disk" in warning]

    assert [] == told(even)
    assert [] == told(unlike)
    assert ["only some brokers state capacity.disk: replicas and bytes are shared equally, not by capacity"] == told(
        partly
    )
    assert ["capacity.disk isn't checked: sizes are unknown"] == told(blind)
    assert [] == limits_of(blind)


def test_gates_are_in_their_own_units() -> None:
    """Each limit is shown in its own unit; a limit on disks also names the broker."""
    rows = {
        "limits.bytes_moved": GB,
        "limits.cross_rack_bytes": 500,
        "limits.eta": 5_400,
        "limits.replicas_moved": 1_200,
        "limits.gap": 5_000,
        "limits.rack_offline": 0,
    }
    shown = [gate_cells(key, value, value, None) for key, value in rows.items()]

    assert [
        ("1.00 GB", "1 GB"),
        *((text, text) for text in ("500 B", "1 h 30 min", "1,200")),
        ("0.50 %", "0.5 %"),
        ("0", "0"),
    ] == shown
    assert ("40.0 GB on broker 3", "45 GB") == gate_cells("limits.disk_used", 40 * GB, 45 * GB, 3)
    assert ["byte", "byte", "s", "replica", "%", "partition"] == [gate_noun(key) for key in rows]

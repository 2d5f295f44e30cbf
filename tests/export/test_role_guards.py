"""The role's module reads Kafka's tools, finds reasons not to go on, and the wait reacts to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from folders import DATA
from role_files import loaded

look, guards = (loaded(f"module_utils/kafka_reassign_{name}") for name in ("output", "guards"))
wait = loaded("action_plugins/kafka_reassign")


def test_brokers_are_read_from_what_kafka_prints() -> None:
    """Live brokers are read with or without a rack or `isFenced`, which Kafka 4.1 added. Other lines are ignored."""
    text = (
        "kafka-1:9092 (id: 1 rack: r0 isFenced: false) -> (\n\tProduce(0): 0 to 13 [usable: 13]\n)\n"
        "kafka-2:9092 (id: 2 rack: null) -> (\n"
        "kafka-3:9092 (id: 3 rack: r1) -> ERROR: org.apache.kafka.common.errors.DisconnectException\n"
    )
    assert {1, 2} == look.live_brokers(text)


def test_partitions_are_read_from_what_a_cluster_printed() -> None:
    """A real cluster's output gives each partition's leader, replicas and ISR. A dead broker is in no ISR."""
    healthy = look.partitions((DATA / "kraft-4.1" / "kafka-topics-describe.txt").read_text())
    broken = look.partitions((DATA / "kraft-4.1" / "kafka-topics-describe-broker-4-down.txt").read_text())

    assert healthy.keys() == broken.keys()
    assert all(set(replicas) == set(isr) for _, replicas, isr in healthy.values())
    assert {4} == {broker for _, replicas, isr in broken.values() for broker in set(replicas) - set(isr)}


def test_what_verify_and_list_print_is_told_apart() -> None:
    """The output of --verify is sorted into moving, elsewhere and reached. --list gives running reassignments."""
    text = (
        "Status of partition reassignment:\n"
        "Reassignment of partition a.b-0 is still in progress.\n"
        "Reassignment of replica a.b-1-4 is still in progress.\n"
        "Reassignment of replica a.b-1-5 is still in progress.\n"
        "Partition e-0 on broker 4 is not being moved from log dir /d1 to /d2.\n"
        "Reassignment of partition c-7 is completed.\n"
        "There is no active reassignment of partition d-1, but replica set is 1,2 rather than 2,3.\n"
    )
    assert ["a.b-0", "a.b-1"] == look.moving(text)
    assert ["d-1 (replicas 1,2)", "e-0 (another log dir)"] == look.elsewhere(text)
    assert ["c-7"] == look.reached(text)
    running = "Current partition reassignments:\norders-0: replicas: 4,1,2. adding: 4. removing: 2.\n"
    assert {"orders-0": [4, 1]} == look.listed(running)
    assert {} == look.listed("No partition reassignments found.\n")


def test_bytes_are_those_of_the_new_replicas_on_their_brokers() -> None:
    """Only bytes of new replicas count, not other partitions on the broker and not replicas that stay."""
    wanted = look.arriving({"a-0": [4, 2], "a-1": [3, 1]}, {"a-0": [1, 2], "a-1": [1, 3]})
    assert {4: {"a-0"}} == wanted
    log_dirs = '{"broker":4,"logDirs":[{"logDir":"/x","error":null,"partitions":[{"partition":"a-0","size":7},'
    text = f'Querying\n{{"version":1,"brokers":[{log_dirs}{{"partition":"b-0","size":9}}]}}]}}]}}\n'
    assert 7 == look.copied_bytes(text, wanted)
    assert None is look.copied_bytes("Querying brokers\n", wanted)


def test_a_replica_in_a_log_dir_that_failed_is_named() -> None:
    """A broker with a failed log dir lists all of its replicas but those in there. A broker without one may be slow."""
    broken = '{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/d2"}'
    whole = '{"partitions":[{"partition":"a-0","size":7}],"error":null,"logDir":"/d1"}'
    text = f'{{"brokers":[{{"broker":4,"logDirs":[{broken},{whole}]}},{{"broker":5,"logDirs":[{whole}]}}]}}\n'
    rows = look.unstored(text, {4: {"a-0", "a-1"}, 5: {"a-1"}})
    assert ["a-1 (broker 4, /d2)"] == rows
    assert "replicas can't be copied, a log dir has failed: a-1 (broker 4, /d2)" == guards.unstored(rows)
    assert guards.unstored(rows * 7).endswith(" and 2 more")
    assert "" == guards.unstored([])


DESCRIBED = {"a-0": (1, [1, 2, 4], [1, 2]), "b-0": (2, [2, 3], [2]), "c-0": (None, [3], []), "d-0": (3, [3, 4], [3, 4])}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, {}),
        ({"expected": [1, 2, 5, 6]}, {"live_brokers": "not live: brokers 5, 6"}),
        ({"known": {"c-0"}}, {"under_replicated": "1 partition under-replicated: b-0"}),
        ({"known": {"b-0"}}, {"offline": "1 partition without a leader: c-0"}),
        ({"known": {"c-0"}, "leaving": [3]}, {}),
        ({"below": ["a-0", "b-0"]}, {"under_min_isr": "1 partition under min.insync.replicas: a-0"}),
        ({"below": ["d-0"]}, {}),
        ({"moved": ["a-0", "x-1", "y-2"]}, {"foreign": "2 partitions reassigned by somebody else: x-1, y-2"}),
    ],
)
def test_what_speaks_against_going_on(given: dict[str, Any], said: dict[str, str]) -> None:
    """Of the batch's own partitions only offline ones and those under min ISR; of others what is new.

    A partition in sync is under min ISR only if min.insync.replicas is above its number of replicas.
    """
    options = {"expected": [1, 2], "leaving": [], "known": {"b-0", "c-0"}, "below": [], "moved": []} | given
    assert said == guards.cluster_reasons(
        {1, 2, 3, 4},
        DESCRIBED,
        options["below"],
        options["moved"],
        options["expected"],
        options["leaving"],
        {"a-0"},
        options["known"],
    )


@pytest.mark.parametrize(
    ("window", "now", "open_"),
    [
        ("22:00-05:00", "2026-11-24T23:30+00:00", True),
        ("22:00-05:00", "2026-11-24T04:59+00:00", True),
        ("22:00-05:00", "2026-11-24T05:00+00:00", False),
        ("09:00-17:00", "2026-11-24T08:59+00:00", False),
        ("22:00-05:00 Europe/Berlin", "2026-11-24T21:30+00:00", True),
        ("22:00-05:00 Europe/Berlin", "2026-07-24T20:30+00:00", True),
        ("22:00-05:00 Europe/Berlin", "2026-11-24T04:30+00:00", False),
    ],
)
def test_a_window_may_pass_midnight_and_has_a_time_zone(window: str, now: str, open_: bool) -> None:
    """A window may include midnight and has a time zone, with summer time."""
    assert "" == wait.check_window(window)
    assert open_ is wait.inside(window, datetime.fromisoformat(now))


@pytest.mark.parametrize("window", ["22-05", "22:00", "25:00-05:00", "22:00-05:00 Mars/Olympus", "22:00-5:00"])
def test_what_is_no_window_is_refused(window: str) -> None:
    """A wrong window is refused with the given value and what is allowed."""
    assert f"'{window}' isn't a window; allowed: such as 22:00-05:00 Europe/Berlin" in wait.check_window(window)


@pytest.mark.parametrize(
    ("reactions", "lag_limits", "window", "said"),
    [
        ({"disk": "hold"}, {"billing": 100, "audit": "7"}, "22:00-05:00", ""),
        (
            {"disk": "stop"},
            {},
            "",
            "kafka_reassign_reactions: disk: stop isn't possible; allowed: batches, command, cordoned, disk,",
        ),
        ({"disc": "hold"}, {}, "", "kafka_reassign_reactions: disc: hold isn't possible"),
        ({}, {"billing": "10k", "audit": -1}, "", "kafka_reassign_lag_limits: billing: 10k, audit: -1 isn't possible;"),
        ({}, {}, "night", "'night' isn't a window"),
    ],
)
def test_settings_are_checked_before_a_run(
    reactions: dict[str, str], lag_limits: dict[str, Any], window: str, said: str
) -> None:
    """With the value seen and what is allowed."""
    found = wait.check_settings(reactions, lag_limits, window)
    assert (said in found, bool(said)) == (True, bool(found))


def test_a_value_that_ansible_cuts_at_a_blank_is_refused() -> None:
    """`-e kafka_reassign_window="22:00-05:00 Europe/Berlin"` would otherwise be these hours in UTC."""
    found = wait.check_settings({}, {}, "22:00-05:00", "Europe/Berlin")
    assert found.startswith("'Europe/Berlin' belongs to no setting: -e NAME=VALUE ends at a space; allowed:")


def test_progress_is_one_line_with_what_is_known() -> None:
    """The line always has partitions. It has bytes, rate and time left if sizes are known."""
    told = wait.progress("Batch 03 of 11", 9, 14, 41_200_000_000, 63_000_000_000, 858, 48_000_000)
    assert "Batch 03 of 11: 9 of 14 partitions, 41.2 GB of 63 GB, 48 MB/s, 8 min left, 14 min so far" == told
    with_later = wait.progress("Batch 03 of 11", 9, 14, 41_200_000_000, 63_000_000_000, 858, 48_000_000, 2_000)
    assert "48 MB/s, 8 min left, 41 min with the batches after it, 14 min so far" in with_later
    assert "Batch 01 of 1: 0 of 2 partitions, 30 s so far" == wait.progress("Batch 01 of 1", 0, 2, None, 0, 30, 0)


class Clock:
    """A clock that advances only during sleep."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


def waited(
    monkeypatch: pytest.MonkeyPatch,
    looks: Sequence[dict[str, Any]],
    run: Any = wait.ActionModule.wait,
    clock: Clock | None = None,
    **given: Any,
) -> tuple[dict[str, Any], list[str], float]:
    """The wait's result, its output, and its duration. The last look is repeated."""
    clock, printed, left = clock or Clock(), [], list(looks)
    monkeypatch.setattr(wait, "time", clock)
    monkeypatch.setattr(wait, "say", printed.append)
    action = wait.ActionModule.__new__(wait.ActionModule)
    action.given = {
        "name": "Batch 01 of 1",
        "target": "t",
        "guard_seconds": 30,
        "hold_seconds": 300,
        "wait_seconds": 3600,
        "delay": 10,
        "planned_bytes": 1000,
    } | given
    action.entries = []
    action.reactions = {**wait.REACTIONS, **given.get("reactions", {})}

    def looked(deep: bool, measure: bool) -> dict[str, Any]:
        found = {"rc": 0, "moving": ["a-0"], "partitions": 2, "elsewhere": [], "copied_bytes": 500, "reasons": {}}
        return found | (left.pop(0) if len(left) > 1 else left[0]) | ({} if deep else {"reasons": {}})

    action.look = looked
    return run(action), printed, clock.now


DEAD = {"reasons": {"live_brokers": "not live: broker 4"}}


def test_a_batch_that_ends_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed poll doesn't end the wait. Progress is printed once a minute."""
    result, printed, seconds = waited(monkeypatch, [{}] * 7 + [{"rc": 1, "moving": []}, {"moving": []}])
    assert (False, 80) == (result.get("failed", False), seconds)
    assert ["Batch 01 of 1: 1 of 2 partitions, 500 B of 1 kB, 8 B/s, 1 min left, 1 min so far"] == printed


def test_the_rate_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate follows a new throttle, and is left out if nothing is copied or if bytes are unknown."""
    looks = [{"copied_bytes": bytes_} for bytes_ in [60] * 7 + [660] * 6 + [660] * 6 + [None] * 6] + [{"moving": []}]
    _, printed, _ = waited(monkeypatch, looks)
    assert ["1 B/s, 16 min left", "10 B/s, 1 min left"] == [", ".join(line.split(", ")[2:4]) for line in printed[:2]]
    assert [
        "Batch 01 of 1: 1 of 2 partitions, 660 B of 1 kB, 3 min so far",
        "Batch 01 of 1: 1 of 2 partitions, 4 min so far",
    ] == printed[2:]


def test_a_broker_that_lags_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that lags is asked up to `second_looks` times, every two seconds. A single look doesn't wait."""
    behind = {"moving": [], "elsewhere": ["a-0"]}
    _, _, seconds = waited(monkeypatch, [behind, behind, {"moving": []}], second_looks=5)
    assert 4 == seconds
    given_up, _, seconds = waited(monkeypatch, [behind], second_looks=5)
    assert (["a-0"], 10) == (given_up["elsewhere"], seconds)
    once, _, seconds = waited(monkeypatch, [{}], once=True)
    assert (["a-0"], 0) == (once["moving"], seconds)


def test_a_held_batch_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The begin and the end of a hold are each reported once. The run goes on if the reason is over in time."""
    result, printed, _ = waited(monkeypatch, [{}] * 3 + [DEAD] * 9 + [{}] * 3 + [{"moving": []}])
    assert not result.get("failed")
    assert [
        "HELD, Batch 01 of 1: not live: broker 4. Replicas keep moving at the throttle; no other batch starts. The run "
        "goes on by itself when this is over; if it isn't in 5 min, the run stops.",
        "GOES ON, Batch 01 of 1, no longer held: not live: broker 4.",
    ] == [line for line in printed if "partitions" not in line]
    _, printed, _ = waited(monkeypatch, [DEAD, DEAD, {}], before=True)
    assert "HELD, Batch 01 of 1: not live: broker 4. Nothing of it is started. The run" in printed[0]


def test_a_log_dir_that_fails_holds_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka never completes a move to a failed log dir, and its broker lives. What was measured counts for a minute."""
    said = "replicas can't be copied, a log dir has failed: a-0 (broker 4, /d2)"
    result, printed, seconds = waited(monkeypatch, [{}] * 6 + [{"unstored": said}] + [{}] * 60)
    assert f"held for 5 min: {said}" == result["msg"]
    assert 60 + 300 <= seconds <= 60 + 360
    assert 1 == sum(f"HELD, Batch 01 of 1: {said}. Replicas keep moving" in line for line in printed)
    mended = [{}] * 6 + [{"unstored": said}] * 6 + [{"unstored": ""}] * 6 + [{"moving": []}]
    result, printed, _ = waited(monkeypatch, mended)
    assert (False, True) == (result.get("failed", False), any("GOES ON" in line for line in printed))


def test_a_hold_may_be_handed_back_to_be_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait returns when a hold begins, so that a task can report it. The next task waits on."""
    result, printed, _ = waited(monkeypatch, [DEAD], return_when_held=True, run=wait.ActionModule.waited)
    assert "not live: broker 4" == result["held"]
    assert [] == [line for line in printed if "ended" in line]


def test_a_wait_that_told_of_a_hold_keeps_its_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next task neither prints the hold again nor waits for it anew, also if only a measurement shows it."""
    said = "replicas can't be copied, a log dir has failed: a-0 (broker 4, /d2)"
    for looks, seconds in (([DEAD], 30), ([{}] * 6 + [{"unstored": said}], 60)):
        first, printed, at = waited(monkeypatch, looks, return_when_held=True)
        assert (seconds, True) == (at, any("HELD, " in line for line in printed))
        then = Clock()
        then.now = at + 5
        result, printed, at = waited(monkeypatch, looks[-1:], clock=then, return_when_held=True, so_far=first["so_far"])
        assert ("held for 5 min", []) == (result["msg"].partition(":")[0], [line for line in printed if "HELD" in line])
        assert seconds + 300 <= at <= seconds + 360
    again, _, _ = waited(monkeypatch, [{}] * 9 + [DEAD], return_when_held=True, so_far={"hold": "x", "held_since": 0})
    assert "not live: broker 4" == again["held"]


def test_a_wait_tells_of_fifty_holds_and_then_goes_on_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each report includes tasks in those of the one before. Ansible would end the run after some 200."""
    last, _, _ = waited(monkeypatch, [DEAD], return_when_held=True, so_far={"reports": 49})
    result, _, _ = waited(monkeypatch, [{}, DEAD], return_when_held=True, so_far={**last["so_far"], "hold": ""})
    assert ("held for 5 min", False) == (result["msg"].partition(":")[0], "held" in result)


def test_a_lag_that_changes_is_no_new_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag is another number at each check. One line says that it holds the run."""
    lags = [f"consumer group billing is {number} records behind, its limit is 60" for number in range(90, 80, -1)]
    looks = [{"reasons": {"lag": said}} for said in lags for _ in range(3)] + [{"moving": []}]
    _, printed, _ = waited(monkeypatch, looks)
    assert 1 == sum("HELD, " in line for line in printed)


def test_a_hold_that_lasts_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops within a minute after the hold, with the reason. The batch isn't canceled by default."""
    result, _, seconds = waited(monkeypatch, [DEAD])
    assert (True, False) == (result["failed"], result["cancel"])
    assert "held for 5 min: not live: broker 4" == result["msg"]
    assert 30 + 300 <= seconds <= 30 + 360


def test_a_question_that_is_never_answered_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the tool never answers, as without an ACL, the run is held and stops, instead of waiting all day."""
    unanswered = {"rc": 1, "moving": [], "stderr": "no file"}
    refused = [{**unanswered, "stderr": f"Error: a.b.DeniedException: at {time}"} for time in range(99)]
    result, printed, _ = waited(monkeypatch, refused)
    assert "held for 5 min: kafka-reassign-partitions --verify fails: DeniedException" == result["msg"]
    assert ["HELD, Batch 01 of 1"] == [line.partition(":")[0] for line in printed]
    assert waited(monkeypatch, [{}, {}, {}, DEAD | unanswered])[0]["msg"].endswith(
        "not live: broker 4; kafka-reassign-partitions --verify fails: no file"
    )
    assert "failed" not in waited(monkeypatch, [{}, {}, {}, unanswered, {"moving": []}])[0]


def test_reactions_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The possible reactions: cancel at once, ignore, or stop after the batch."""
    canceled, _, seconds = waited(monkeypatch, [DEAD], reactions={"live_brokers": "cancel"})
    assert (True, True, "not live: broker 4") == (canceled["failed"], canceled["cancel"], canceled["msg"])
    assert 60 >= seconds
    looks = [DEAD] * 9 + [{"moving": []}]
    ignored, printed, _ = waited(monkeypatch, looks, reactions={"live_brokers": "ignore"})
    assert (False, []) == (ignored.get("failed", False), [line for line in printed if "partitions" not in line])
    finished, printed, _ = waited(monkeypatch, looks, reactions={"live_brokers": "finish"})
    assert not finished.get("failed")
    assert "Batch 01 of 1 goes on to its end, then the run stops: not live: broker 4." in printed


def test_before_a_batch_only_a_reason_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reason, a batch starts at once. A reason to finish is returned, so that the batch isn't started."""
    nothing, _, seconds = waited(monkeypatch, [{"moving": []}], target="")
    assert ([], 0) == (nothing["finish"], seconds)
    stop, _, _ = waited(monkeypatch, [{"reasons": {"stop_file": "the stop file x exists"}}], target="")
    assert ["the stop file x exists"] == stop["finish"]
    none_left, _, _ = waited(monkeypatch, [{}], target="", batches_left=0)
    assert ["this run has started as many batches as it may"] == none_left["finish"]
    late, _, _ = waited(monkeypatch, [{}], target="", valid_until="2026-01-01T00:00:00Z")
    assert ["the plan was valid until 2026-01-01T00:00:00Z"] == late["finish"]
    held, _, seconds = waited(monkeypatch, [DEAD, DEAD, {}], target="", guard_seconds=10)
    assert ([], 20) == (held["finish"], seconds)


def test_nothing_holds_a_batch_that_is_done_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reasons against starting a batch don't matter if it is already done."""
    given = {"before": True, "batches_left": 0}
    done, printed, seconds = waited(monkeypatch, [DEAD | {"pending": []}], **given)
    assert ([], [], 0) == (done["finish"], printed, seconds)
    pending, _, _ = waited(monkeypatch, [{"pending": ["a-0"]}], **given)
    assert ["this run has started as many batches as it may"] == pending["finish"]


def test_a_replica_of_a_later_step_needs_no_log_dir_yet(tmp_path: Path) -> None:
    """What an interrupted run left may move to an earlier step's list. Without a whole answer the last reason stays."""
    broken = '{"partitions":[],"error":"org.apache.kafka.common.errors.KafkaStorageException","logDir":"/d2"}'
    row = '{"partitions": [{"topic": "a", "partition": 0, "replicas": [%s]}]}'
    given = {"tools": {"log_dirs": ["log-dirs"], "reassign": ["reassign"]}, "target": str(tmp_path / "to.json")}
    given["origin"] = str(tmp_path / "from.json")
    (tmp_path / "to.json").write_text(row % "5, 6")
    (tmp_path / "from.json").write_text(row % "1, 2")
    answers = {"log-dirs": f'{{"brokers":[{{"broker":6,"logDirs":[{broken}]}}]}}'}
    module = SimpleNamespace(params=given, run_command=lambda argv, **_: (0, answers[argv[0]], ""))
    asked = loaded("module_utils/kafka_reassign_cluster").Cluster(module)

    told = []
    for adding, kept in (("5", "1"), ("6", "5")):
        answers["reassign"] = f"a-0: replicas: {adding},{kept},2. adding: {adding}. removing: 2.\n"
        told.append(asked.copied({"a-0"})["unstored"])
    assert ["", "replicas can't be copied, a log dir has failed: a-0 (broker 6, /d2)"] == told
    answers["log-dirs"] = "ERROR: The given brokers do not exist\n"
    assert {"copied_bytes": None} == asked.copied({"a-0"})

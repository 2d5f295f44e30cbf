"""Faults while a batch moves, on a real cluster: nothing is lost, and the run tells the operator what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import chain

import pytest
from cluster import CONTROLLER
from faults import MEGABYTE, SLOWLY, assert_unharmed, await_move, await_second_batch, expansion
from operator_at_work import Operator

pytestmark = pytest.mark.kafka


def test_killed_run_is_resumed_by_waiting(operator: Operator) -> None:
    """A killed run leaves the batch moving with a throttle. The next run waits for it, and then clears the throttle."""
    plan = expansion(operator, 5 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY) as killed:
        moving = await_move(operator)
        killed.kill()
    assert moving == operator.moving()
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle that is left")

    with plan.playbooks.playing("apply", *SLOWLY) as resumed:
        operator.await_true(lambda: "Wait for what an interrupted run left" in resumed.output.read_text(), "the wait")
        assert moving == operator.moving()
        operator.lift_throttle()
        run = resumed.wait()
    assert 0 == run.code, run.output
    assert "Start batch" not in run.output
    assert_unharmed(operator, wanted)


@pytest.mark.parametrize("struck", ["destination", "source", "controller"])
def test_process_that_dies_and_comes_back(operator: Operator, struck: str) -> None:
    """If a broker or the controller restarts, the run keeps waiting and applies the plan."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY) as running:
        source = operator.leaders()[await_move(operator)[0]]
        if struck == "controller":
            operator.cluster.kill(CONTROLLER)
            operator.start(CONTROLLER)
        else:
            lost = source if struck == "source" else 4
            operator.lose(lost)
            assert operator.moving()
            operator.start(lost)
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)


def test_deleted_topic(operator: Operator) -> None:
    """The run names a topic that was deleted midway. The other topic moves as planned, and a new plan applies."""
    operator.create_topic("clicks", [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    operator.produce("clicks", 3, 3 * MEGABYTE)
    plan = expansion(operator, 3 * MEGABYTE)
    with plan.playbooks.playing("apply", *SLOWLY) as running:
        moving = await_move(operator)
        gone = [name for name in moving if name.startswith("orders-")]
        assert 0 < len(gone) < len(moving)
        operator.admin.delete_topics(["orders"])["orders"].result()
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert [name for name in gone if f"{name} (gone)" not in run.text] == []
    assert "(gone). Topics of the plan are gone: planner resume plans the rest; to go back, take their" in run.text
    clicks = {name: replicas for name, replicas in plan.replicas.items() if name.startswith("clicks-")}
    assert_unharmed(operator, operator.replicas() | clicks)

    again = operator.plan({"remove_brokers": [4]}, brokers=[1, 2, 3, 4])
    assert 0 == (run := again.playbooks.play("apply")).code, run.output
    assert_unharmed(operator, operator.replicas() | again.replicas)


def test_rollback_in_the_middle_of_a_batch(operator: Operator) -> None:
    """After a kill in the second batch, rollback restores the lists, their order and the leaders. No throttle stays."""
    plan = expansion(operator, 5 * MEGABYTE, moves_per_broker=1)
    before, led = operator.replicas(), operator.leaders()
    with plan.playbooks.playing("apply", *SLOWLY) as killed:
        await_second_batch(operator)
        killed.kill()
    run = plan.playbooks.play("rollback")
    assert 0 == run.code, run.output
    assert "Cancel what the plan still moves" in run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)


def test_a_killed_rollback_is_applied_again_at_another_rate(operator: Operator) -> None:
    """Moves of a killed rollback complete first, because Kafka never completes reversed moves. Then apply works."""
    plan = expansion(operator, 2 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    assert 0 == (run := plan.playbooks.play("apply")).code, run.output
    with plan.playbooks.playing("rollback", *SLOWLY):
        await_move(operator)
    run = plan.playbooks.play("apply")
    assert 0 == run.code, run.output
    assert "The throttle is 100000000 bytes per second from now on." in run.text
    assert_unharmed(operator, wanted)


def test_destination_that_stays_away(operator: Operator) -> None:
    """If the destination dies, the run times out and names what moves. A rollback without that broker works."""
    plan = expansion(operator, 5 * MEGABYTE, moves_per_broker=1)
    before, led = operator.replicas(), operator.leaders()
    with plan.impatient_playbooks.playing("apply", *SLOWLY, "-e", "kafka_reassign_wait_seconds=10") as running:
        moving = await_second_batch(operator)
        operator.lose(4)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Run the playbook again to wait for it, or rollback.yml to go back." in run.text
    assert f"Still moving: {', '.join(moving)}." in run.text
    assert moving == operator.moving()
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle that is left")

    run = plan.impatient_playbooks.play("rollback")
    assert 0 == run.code, run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)


WATCHED = ("-e", "kafka_reassign_guard_seconds=1")


def test_a_broker_that_stays_dies_and_the_plan_is_rolled_back(operator: Operator) -> None:
    """Rollback cancels what moves, and stops before lists with the dead broker. Later it completes."""
    plan = expansion(operator, 5 * MEGABYTE, moves_per_broker=1)
    before, led = operator.replicas(), operator.leaders()
    hold = ("-e", "kafka_reassign_hold_seconds=4")
    with plan.impatient_playbooks.playing("apply", *SLOWLY, *WATCHED, *hold) as running:
        await_second_batch(operator)
        operator.lose(2)
        run = running.wait()
    assert 2 == run.code, run.output
    assert operator.moving()

    run = plan.impatient_playbooks.play("rollback")
    assert 2 == run.code, run.output
    assert "Rolled back as far as possible. The lists of batch 0" in run.text, run.output
    assert "have brokers that aren't live, and Kafka refuses such lists: 2. Nothing" in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)

    operator.start(2)
    operator.await_true(operator.in_sync, "broker 2 to be back")
    assert 0 == (run := plan.playbooks.play("rollback")).code, run.output
    # A rollback elects the leaders that the plan changes. Others that the crash changed are Kafka's own matter.
    path = plan.folder / "ansible/roles/kafka_reassign/files/leaders.json"
    rows = chain(*json.loads(path.read_text())["rollback"].values())
    elected = {name: led[name] for name in ("-".join(row.split()[:2]) for row in rows)}
    operator.await_true(lambda: elected.items() <= operator.leaders().items(), f"leaders {elected}")
    assert_unharmed(operator, before)


def test_destination_that_is_back_within_the_hold(operator: Operator) -> None:
    """If the destination dies, the run is held and says why. Once the broker is back, the run applies the plan."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    with plan.playbooks.playing("apply", *SLOWLY, *WATCHED) as running:
        await_move(operator)
        operator.lose(4)
        held = "HELD, Batch 01 of 1: not live: broker 4"
        operator.await_true(lambda: held in running.text, "the hold")
        operator.start(4)
        operator.await_true(lambda: "GOES ON, Batch 01 of 1" in running.text, "the end of the hold")
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert_unharmed(operator, wanted)


def test_destination_that_is_not_back_within_the_hold(operator: Operator) -> None:
    """With cancel_on_failure, the run cancels the batch after the hold and stops. A plan without the broker works."""
    plan = expansion(operator, 4 * MEGABYTE)
    before = operator.replicas()
    limits = ("-e", "kafka_reassign_hold_seconds=4", "-e", "kafka_reassign_cancel_on_failure=true")
    with plan.impatient_playbooks.playing("apply", *SLOWLY, *WATCHED, *limits) as running:
        await_move(operator)
        operator.lose(4)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Batch 01 isn't complete: held for" in run.text
    assert "not live: broker 4. Its moves were canceled" in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    assert {name: set(lists) for name, lists in before.items()} == {
        name: set(lists) for name, lists in operator.replicas().items()
    }

    again = operator.plan({"add_brokers": [{"id": 5, "rack": "r1"}]}, brokers=[1, 2, 3])
    assert 0 == (run := again.impatient_playbooks.play("apply")).code, run.output
    assert_unharmed(operator, operator.replicas() | again.replicas)


def test_one_of_several_destinations_stays_away(operator: Operator) -> None:
    """Moves to the live broker complete during the hold. The rest is canceled; a new plan avoids the dead broker."""
    for topic in ("orders", "clicks"):
        operator.create_topic(topic, [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2)
        operator.produce(topic, 6, 2 * MEGABYTE)
    changes = {"add_brokers": [{"id": 4, "rack": "r0"}, {"id": 5, "rack": "r1"}]}
    # Without sets, the partitions with the fewest bytes may be the same ones for both brokers.
    sets = {"left": [1, 2, 3, 4], "right": [1, 2, 3, 5]}
    placement = [{"topics": "orders", "brokers": "left"}, {"topics": "clicks", "brokers": "right"}]
    top = {"broker_sets": sets, "placement": placement, "execution": {"throttle": "100MB/s", "batches": "none"}}
    plan = operator.plan(changes, brokers=[1, 2, 3], **top)
    before = operator.replicas()
    to_live = {name: to for name, to in plan.replicas.items() if 4 not in to}
    assert to_live.keys() < plan.replicas.keys()
    assert {5} == {broker for replicas in to_live.values() for broker in replicas} - {1, 2, 3}
    limits = ("-e", "kafka_reassign_hold_seconds=25", "-e", "kafka_reassign_cancel_on_failure=true")
    with plan.impatient_playbooks.playing("apply", *SLOWLY, *WATCHED, *limits) as running:
        await_move(operator)
        operator.lose(4)
        operator.await_true(lambda: "HELD, Batch 01 of 1: not live: broker 4" in running.text, "the hold")
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert "not live: broker 4. Its moves were canceled" in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    reached = operator.replicas()
    assert to_live.items() <= reached.items()
    others = before.keys() - to_live.keys()
    assert {name: set(before[name]) for name in others} == {name: set(reached[name]) for name in others}

    again = operator.plan({"rebalance": "all"}, brokers=[1, 2, 3, 5], execution={"throttle": "100MB/s"})
    assert 0 == (run := again.impatient_playbooks.play("apply")).code, run.output
    assert_unharmed(operator, operator.replicas() | again.replicas)


def test_stop_file_in_the_middle_of_a_batch(operator: Operator) -> None:
    """With a stop file, the batch finishes, and the run stops without a throttle. A later run finishes the plan."""
    plan = expansion(operator, 4 * MEGABYTE, moves_per_broker=1)
    wanted = operator.replicas() | plan.replicas
    stop = operator.folder / "stop"
    given = (*WATCHED, "-e", f"kafka_reassign_stop_file={stop}")
    with plan.playbooks.playing("apply", *SLOWLY, *given) as running:
        await_move(operator)
        stop.touch()
        said = f"then the run stops: the stop file {stop} exists"
        operator.await_true(lambda: said in running.text, "the word on the stop file")
        operator.lift_throttle()
        run = running.wait()
    assert 2 == run.code, run.output
    assert f"Stopped before batch 02: the stop file {stop} exists. Nothing of it was started." in run.text
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)

    stop.unlink()
    assert 0 == (run := plan.playbooks.play("apply", *given)).code, run.output
    assert_unharmed(operator, wanted)


def test_a_consumer_group_falls_behind_in_the_middle_of_a_batch(operator: Operator) -> None:
    """If a consumer group falls behind, the run is held and names it. Once the group has caught up, the run goes on."""
    plan = expansion(operator, 4 * MEGABYTE)
    wanted = operator.replicas() | plan.replicas
    operator.commit("billing", "orders", 6, 4 * MEGABYTE - 10)
    limits = ("-e", json.dumps({"kafka_reassign_lag_limits": {"billing": 60}}))
    with plan.playbooks.playing("apply", *SLOWLY, *WATCHED, *limits) as running:
        await_move(operator)
        operator.produce("orders", 6, 5)
        held = "HELD, Batch 01 of 1: consumer group billing is 90 records behind, its limit is 60. Replicas keep moving"
        operator.await_true(lambda: held in running.text, "the hold")
        assert operator.moving()
        operator.commit("billing", "orders", 6, 4 * MEGABYTE)
        over = "GOES ON, Batch 01 of 1, no longer held: consumer group billing is 90 records behind, its limit is 60."
        operator.await_true(lambda: over in running.text, "the end of the hold")
        operator.lift_throttle()
        run = running.wait()
    assert 0 == run.code, run.output
    assert 1 == run.text.count("HELD, ")
    operator.await_moved(wanted)
    operator.await_equal("", operator.throttles)
    assert {} == operator.lost()


def test_guards_of_the_operators_own(operator: Operator) -> None:
    """Outside of the window, after the allowed number of batches, or if the guard fails, no further batch starts."""
    plan = expansion(operator, moves_per_broker=1)
    wanted, before = operator.replicas() | plan.replicas, operator.replicas()
    hours = [(datetime.now(UTC) + timedelta(hours=ahead)).strftime("%H:%M") for ahead in (2, 4)]
    window = "-".join(hours)
    refused = {
        f"outside the maintenance window {window}": {"kafka_reassign_window": window},
        "the guard command ends with exit code 3: lag": {
            "kafka_reassign_guard_command": ["sh", "-c", "echo lag; exit 3"],
            "kafka_reassign_hold_seconds": 1,
        },
    }
    for said, given in refused.items():
        run = plan.playbooks.play("apply", *WATCHED, "-e", json.dumps(given))
        assert 2 == run.code, run.output
        assert said in run.text
        assert "Nothing of it was started." in run.text
        operator.await_equal(before, operator.replicas)
    run = plan.playbooks.play("apply", "-e", "kafka_reassign_batches_at_most=1")
    assert 2 == run.code, run.output
    assert "Stopped before batch 02: this run has started as many batches as it may." in run.text
    assert 0 == (run := plan.playbooks.play("apply")).code, run.output
    assert_unharmed(operator, wanted)


def test_throttles_of_somebody_else_are_put_back(operator: Operator) -> None:
    """Somebody else's throttles are put back, also after a killed run. A new rate applies during the batch."""
    plan = expansion(operator, 4 * MEGABYTE, moves_per_broker=1)
    operator.create_topic("quiet", [[5, 6]])
    before = {
        ("brokers", "2"): "leader.replication.throttled.rate=777",
        ("brokers", "6"): "follower.replication.throttled.rate=888",
        ("topics", "quiet"): "leader.replication.throttled.replicas=*",
        ("topics", "orders"): "follower.replication.throttled.replicas=[0:1,2:3]",
    }
    for (kind, name), value in before.items():
        options = ("--entity-type", kind, "--entity-name", name, "--alter", "--add-config", value)
        operator.cluster.tool("kafka-configs", *options)
    wanted = operator.replicas() | plan.replicas
    operator.await_true(lambda: 4 == len(operator.throttles().splitlines()), "the throttles from before")
    set_before = operator.throttles()
    rate = operator.folder / "rate"
    given = (*SLOWLY, *WATCHED, "-e", f"kafka_reassign_throttle_file={rate}")
    with plan.playbooks.playing("apply", *given) as killed:
        await_move(operator)
        killed.kill()
    operator.await_true(lambda: "leader.replication.throttled.rate=1 " in operator.throttles(), "the throttle")

    with plan.playbooks.playing("apply", *given) as running:
        operator.await_true(lambda: "An earlier run left its throttles" in running.text, "the record")
        rate.write_text("fast")
        operator.await_true(lambda: "allowed: bytes per second, such as 50000000" in running.text, "the refusal")
        rate.write_text("70000000\n")
        run = running.wait()
    assert 0 == run.code, run.output
    assert "The throttle is 70000000 bytes per second from now on." in run.text
    operator.await_equal(set_before, operator.throttles)
    operator.await_equal(wanted, operator.replicas)
    assert [] == operator.moving()
    assert [] == list((operator.folder / "home" / ".local" / "state" / "kafka_reassign").glob("throttles-*"))
    assert {} == operator.lost()


def test_throttles_are_put_back_on_demand(operator: Operator) -> None:
    """`--tags unthrottle` restores throttles while a batch still moves. It keeps one that somebody changed since."""
    plan = expansion(operator, 4 * MEGABYTE)
    with plan.playbooks.playing("apply", *SLOWLY) as killed:
        await_move(operator)
        killed.kill()
    options = ("--entity-type", "brokers", "--entity-name", 1, "--alter", "--add-config")
    operator.cluster.tool("kafka-configs", *options, "leader.replication.throttled.rate=5")
    run = plan.playbooks.play("apply", "--tags", "unthrottle")
    assert (0, 0) == (run.code, run.changed), run.output
    assert "Somebody else has set leader.replication.throttled.rate=5 on broker 1 meanwhile, which stays." in run.text
    operator.await_equal("1: leader.replication.throttled.rate=5 \n", operator.throttles)
    operator.await_moved(plan.replicas)


def test_cancel_on_failure(operator: Operator) -> None:
    """With cancel_on_failure, a late batch is canceled even if its broker is dead. Apply and rollback work later."""
    plan = expansion(operator, 4 * MEGABYTE)
    before, led = operator.replicas(), operator.leaders()
    limits = ("-e", "kafka_reassign_wait_seconds=5", "-e", "kafka_reassign_cancel_on_failure=true")
    with plan.impatient_playbooks.playing("apply", *SLOWLY, *limits) as running:
        await_move(operator)
        operator.lose(4)
        run = running.wait()
    assert 2 == run.code, run.output
    assert "Its moves were canceled. Run the playbook again to start them anew, or rollback.yml to go back" in run.text
    assert "The run stopped at batch 01: it takes longer than 5 s. Its moves were canceled." in run.text, run.output
    assert "so a throttle of theirs couldn't be put back: broker 4. Once they are live again, run" in run.text, (
        run.output
    )
    assert [] == operator.moving()
    operator.await_equal("", operator.throttles)
    reordered = operator.replicas()
    assert before != reordered
    assert {name: set(lists) for name, lists in before.items()} == {name: set(to) for name, to in reordered.items()}

    operator.start(4)
    operator.await_true(lambda: "rate=1 " in operator.throttles(), "the throttle of broker 4")
    run = plan.playbooks.play("apply")
    assert 0 == run.code, run.output
    operator.await_moved(plan.replicas)
    run = plan.playbooks.play("rollback")
    assert 0 == run.code, run.output
    operator.await_equal(led, operator.leaders)
    assert_unharmed(operator, before)

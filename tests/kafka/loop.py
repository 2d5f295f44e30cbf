"""The loop of every plan on a real cluster: apply, apply again, roll back; and what must be true after each."""

from __future__ import annotations

from dataclasses import dataclass

from operator_at_work import Lists, Operator, Plan


@dataclass(frozen=True)
class State:
    """The replica list, in order, and the leader of every partition."""

    replicas: Lists
    leaders: dict[str, int]

    @staticmethod
    def of(operator: Operator) -> State:
        """The cluster's current state."""
        return State(operator.replicas(), operator.leaders())


def walk(operator: Operator, plan: Plan) -> None:
    """The whole loop: apply, apply again, roll back."""
    before = apply(operator, plan)
    apply_again(operator, plan)
    roll_back(operator, plan, before)


def apply(operator: Operator, plan: Plan, *, checked: bool = False) -> State:
    """Apply a plan, and assert that the cluster is as planned. Return the state from before.

    With `checked`, run `--check` before and after. It changes nothing, and reports a change before and none after.
    """
    before = State.of(operator)
    if checked:
        play(plan, "apply", "--check", changes=True)
        operator.await_equal(before, lambda: State.of(operator))
    play(plan, "apply", changes=True)
    assert_as_planned(operator, plan, before)
    if checked:
        play(plan, "apply", "--check", changes=False)
    return before


def apply_again(operator: Operator, plan: Plan) -> None:
    """Apply a plan again, and assert that nothing changes."""
    applied = State.of(operator)
    play(plan, "apply", changes=False)
    operator.await_equal(applied, lambda: State.of(operator))


def roll_back(operator: Operator, plan: Plan, before: State) -> None:
    """Roll a plan back, and assert that replica lists with their order and leaders are those from before."""
    play(plan, "rollback", changes=True)
    operator.await_equal(before, lambda: State.of(operator))
    assert_well(operator)


def play(plan: Plan, playbook: str, *options: str, changes: bool) -> None:
    """Run a playbook, and assert that it succeeds and changes something or nothing."""
    run = plan.playbooks.play(playbook, *options)
    assert (0, changes) == (run.code, run.changed > 0), run.output


def assert_as_planned(operator: Operator, plan: Plan, before: State) -> None:
    """Assert the plan's replicas, leaders and racks. Partitions that the plan doesn't name are as before."""
    preferred = {name: replicas[0] for name, replicas in plan.replicas.items()}
    planned = State(before.replicas | plan.replicas, before.leaders | preferred)
    operator.await_equal(planned, lambda: State.of(operator))
    operator.await_equal(plan.racks, lambda: {b: rack for b, rack in operator.racks().items() if b in plan.racks})
    assert_well(operator)


def assert_well(operator: Operator) -> None:
    """Assert that every produced record can be consumed, all replicas are in sync, and no throttle is left."""
    assert {} == operator.lost()
    operator.await_true(operator.in_sync, "replicas in sync")
    operator.await_equal("", operator.throttles)

"""The way of every plan on a real cluster: looked at, applied, applied again, rolled back; and what must hold then."""

from __future__ import annotations

from dataclasses import dataclass

from operator_at_work import Lists, Operator, Plan


@dataclass(frozen=True)
class State:
    """Where every partition is, in the order of its replicas, and who leads it."""

    replicas: Lists
    leaders: dict[str, int]

    @staticmethod
    def of(operator: Operator) -> State:
        """The cluster's."""
        return State(operator.replicas(), operator.leaders())


def walk(operator: Operator, plan: Plan) -> None:
    """The whole loop: `apply`, `apply_again`, `roll_back`."""
    before = apply(operator, plan)
    apply_again(operator, plan)
    roll_back(operator, plan, before)


def apply(operator: Operator, plan: Plan, *, checked: bool = False) -> State:
    """Apply a plan: the cluster is the plan's to the last replica. The state from before.

    `checked` asks `--check` too, before and after: it tells of the change, or of none, and makes none.
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
    """Apply a plan that was applied: nothing changes."""
    applied = State.of(operator)
    play(plan, "apply", changes=False)
    operator.await_equal(applied, lambda: State.of(operator))


def roll_back(operator: Operator, plan: Plan, before: State) -> None:
    """Roll a plan back: the replica lists in their old order, and the leaders, whoever led then."""
    play(plan, "rollback", changes=True)
    operator.await_equal(before, lambda: State.of(operator))
    assert_well(operator)


def play(plan: Plan, playbook: str, *options: str, changes: bool) -> None:
    """Run a playbook that succeeds, and changes something or nothing."""
    run = plan.playbooks.play(playbook, *options)
    assert (0, changes) == (run.code, run.changed > 0), run.output


def assert_as_planned(operator: Operator, plan: Plan, before: State) -> None:
    """Require the plan's replicas, leaders and racks, and all that the plan doesn't name as it was."""
    preferred = {name: replicas[0] for name, replicas in plan.replicas.items()}
    planned = State(before.replicas | plan.replicas, before.leaders | preferred)
    operator.await_equal(planned, lambda: State.of(operator))
    operator.await_equal(plan.racks, lambda: {b: rack for b, rack in operator.racks().items() if b in plan.racks})
    assert_well(operator)


def assert_well(operator: Operator) -> None:
    """Require that every record produced is consumed, all replicas are in sync, and no throttle is left behind."""
    assert {} == operator.lost()
    operator.await_true(operator.in_sync, "replicas in sync")
    operator.await_equal("", operator.throttles)

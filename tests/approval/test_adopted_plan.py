"""A reassignment of another tool becomes a plan with a bound, and the plan says how much more than needed it copies."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import brute_force
import pytest
from clusters import balance_of, no_racks, problem_of, spec_of
from folders import ROOT, TESTS
from jsonschema import Draft202012Validator

from planner.approval import adopted_plan, given_reassignment, resumed_plan
from planner.approval.changes_since_plan import ClusterNow
from planner.approval.given_reassignment import GivenReassignment
from planner.cli import one_spec
from planner.inputs.spec import reading
from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker
from planner.model.document_fields import Apart, LeaderRacksRow, SpecLimits
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.problem import Problem
from planner.model.spec import Budget, Changes, Spec
from planner.plan import bound_json, bound_section
from planner.plan.build import Planned, RefusedPlanError
from planner.plan.document import codec
from planner.report import requested
from planner.strategies.optimum import Proposal

CASES = TESTS / "cases"
VALIDATOR = Draft202012Validator(json.loads((ROOT / "schemas" / "plan.schema.json").read_text(encoding="utf-8")))
QUICK = ("leaders-only", "new-topics", "raise-rf", "tp_demo_03", "tp_re_01")
SLOW = ("add-rack", "expand", "log-dirs", "no-racks", "remove-brokers", "tp_re_02")
# The keys that say that a plan was adopted, and from what it was chosen.
ADOPTED = {"adopted", "candidates", "choice", "compared", "pareto", "plan_id", "inputs"}
LISTS = {"x": [(1, 2), (2, 1), (1, 2), (2, 1)], "y": [(1, 2), (2, 1)]}
EXPANDED = Changes(add_brokers=(Broker(3),))


def _given(tmp_path: Path, rows: list[tuple[str, int, list[int]]]) -> GivenReassignment:
    file = tmp_path / "given.json"
    lists = [{"topic": topic, "partition": at, "replicas": brokers} for topic, at, brokers in rows]
    file.write_text(json.dumps({"version": 1, "partitions": lists}))
    return given_reassignment.read(file)


def _adopted(tmp_path: Path, spec: Spec, rows: list[tuple[str, int, list[int]]]) -> Planned:
    return adopted_plan.adopt(_given(tmp_path, rows), spec, "spec.yaml")[0]


def _differing(one: dict, other: dict) -> set[str]:
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_our_own_plan_adopted_gives_our_own_files(name):
    """Our own plan, adopted, gives the same Kafka JSON, batches and tfvars; plan.json differs only in ADOPTED.

    The sweep may have found an optimum with another seed. Then the bound is the same and its proof another one.
    """
    spec = ROOT / "examples" / f"{name}.yaml"
    made, _ = adopted_plan.adopt(given_reassignment.read(CASES / name), reading.load(spec), spec.name)
    files = one_spec.rendered_files(made.plan)

    golden = {path.relative_to(CASES / name).as_posix(): path for path in (CASES / name).rglob("*") if path.is_file()}
    same = [path for path in golden if path.endswith((".json", ".tfvars")) and path not in ("plan.json", "bound.json")]
    assert "reassignment.json" in same
    assert [] == [path for path in same if "ansible/" not in path and golden[path].read_bytes() != files.get(path)]
    own, adopted = json.loads(golden["plan.json"].read_text()), json.loads(files["plan.json"])
    own["bound"].pop("sha256")
    adopted["bound"].pop("sha256")
    assert _differing(own, adopted) <= ADOPTED


@pytest.mark.parametrize("name", ["raise-rf", "tp_re_01"])
def test_our_own_reassignment_json_adopted_gives_it_again(name, tmp_path):
    """Our own reassignment.json is adopted without its plan, and reassignment.json comes out byte for byte the same."""
    spec, own = ROOT / "examples" / f"{name}.yaml", CASES / name / "reassignment.json"
    made, _ = adopted_plan.adopt(given_reassignment.read(own), reading.load(spec), spec.name)

    assert own.read_bytes() == one_spec.rendered_files(made.plan)["reassignment.json"]


def test_the_plan_says_what_it_carries_out(tmp_path):
    """The plan names the file and its format, fits the schema, has a proof that checks, and is compared with others."""
    spec = spec_of(no_racks(1, 2), LISTS, sizes=10, changes=EXPANDED)
    plan, file = _adopted(tmp_path, spec, [("x", 0, [3, 2])])

    assert file is not None
    assert [] == [error.message for error in VALIDATOR.iter_errors(codec.as_json(plan))]
    assert plan.adopted is not None
    assert ("given.json", "a reassignment JSON", 1, 0) == (
        plan.adopted.file, plan.adopted.format, plan.adopted.partitions, plan.adopted.partitions_there
    )  # fmt: skip
    assert [("x", 0, (3, 2))] == [(row.topic, row.partition, row.replicas) for row in plan.partitions]
    assert bound_json.check(plan, file, "bound.json").least <= plan.bound.bytes_moved
    labels = [row.label for row in plan.compared]
    assert ["do nothing", "this plan", adopted_plan.SAME_BALANCE] == labels[:3]
    assert labels[3].startswith("Kafka --generate, best of ")


def test_the_headline_tells_what_is_not_needed(tmp_path):
    """The headline says how many bytes are more than needed, and says nothing if all of them are needed."""
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)] * 3}, sizes=100_000, changes=EXPANDED)
    rows = [("x", 0, [2, 3]), ("x", 1, [3, 1]), ("x", 2, [1, 2])]
    needed = _adopted(tmp_path, spec, rows).plan
    wasteful = spec_of(
        no_racks(1, 2, 4),
        {"x": [(1, 2), (1, 2), (1, 2), (4, 1)]},
        sizes=100_000,
        balance=Balance(disk=Tolerance("none")),
    )
    swapped = _adopted(tmp_path, wasteful, [("x", 0, [4, 2]), ("x", 3, [2, 4])]).plan

    assert "more than needed" not in needed.headline
    assert needed.bound.bytes_moved == needed.adopted.enough_bytes_moved == 200_000
    assert swapped.headline.startswith("Copies 200 kB (2 replicas of 2 partitions), 100 kB more than needed for the")
    assert (100_000, 1) == (swapped.adopted.enough_bytes_moved, swapped.adopted.enough_replicas_moved)


def test_nothing_to_do_is_said_of_the_file(tmp_path):
    """If all partitions are where the file wants them, the headline says that there is nothing to do."""
    plan = _adopted(tmp_path, spec_of(no_racks(1, 2), LISTS), [("x", 0, [1, 2]), ("y", 1, [2, 1])]).plan

    assert "Nothing to do: all that given.json names is as it wants it." == plan.headline
    assert 2 == plan.adopted.partitions_there


def _least_as_even(problem: Problem, spread: int, topic_spread: int) -> int:
    """Tries every plan and returns the fewest bytes of those whose spreads are no larger than these."""
    best = None
    for plan in product(*brute_force.options(problem)):
        cells, _ = brute_force.counts(problem, plan, problem.size_bytes)
        total = cells.sum(axis=0)
        even = (cells.max(axis=1) - cells.min(axis=1)).max() <= topic_spread
        if even and total.max() - total.min() <= spread:
            moved = brute_force.moved(problem, plan)[0]
            best = moved if best is None else min(best, moved)
    assert best is not None
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_the_least_at_its_own_balance_is_that_of_all_plans_tried(seed, tmp_path):
    """On tiny clusters the bound is at most the least of plans that are as even, and equal if spreads are at most 1."""
    draw = random.Random(seed)
    brokers = draw.choice((2, 3))
    racks = no_racks(*range(1, brokers + 1))
    lists = {
        name: [tuple(draw.sample(sorted(racks), draw.choice((1, 2)))) for _ in range(draw.randint(1, 3))]
        for name in ("x", "y")
    }
    sizes = {name: [draw.randint(1, 9) for _ in rows] for name, rows in lists.items()}
    spec = spec_of(
        racks, lists, sizes=sizes, changes=Changes(add_brokers=(Broker(9),)), balance=Balance(disk=Tolerance("none"))
    )
    problem = problem_of(racks, lists, sizes=sizes, changes=spec.changes)
    ids = problem.broker_ids.tolist()
    wanted = [draw.choice(sets) for sets in brute_force.options(problem)]
    named = list(zip(problem.topic_of.tolist(), problem.partition_ids.tolist(), wanted, strict=True))
    rows = [(problem.topic_names[topic], at, [ids[each] for each in chosen]) for topic, at, chosen in named]

    plan = _adopted(tmp_path, spec, rows).plan

    cells, _ = brute_force.counts(problem, wanted, problem.size_bytes)
    spreads = int(cells.sum(axis=0).max() - cells.sum(axis=0).min()), int((cells.max(axis=1) - cells.min(axis=1)).max())
    least = _least_as_even(problem, *(max(1, spread) for spread in spreads))
    copied = brute_force.moved(problem, wanted)[0]
    assert copied == plan.bound.bytes_moved
    assert plan.bound.least_bytes_moved <= least <= copied
    if max(spreads) <= 1:
        assert least == plan.bound.least_bytes_moved
    # It is None if the plan with the fewest bytes spreads its leaders less evenly.
    enough = plan.adopted.enough_bytes_moved
    assert enough is None or least <= enough <= copied


def test_what_is_needed_is_unknown_where_the_fewest_bytes_lead_less_evenly(tmp_path):
    """The bound counts replicas only; its plan would leave two leaders on broker 2, so the needed bytes are None."""
    spec = spec_of(no_racks(1, 2), {"x": [(2,), (1, 2)], "y": [(2,)]}, sizes={"x": [9, 5], "y": [1]},
                   changes=Changes(add_brokers=(Broker(9),)), balance=Balance(disk=Tolerance("none")))  # fmt: skip
    plan = _adopted(tmp_path, spec, [("x", 0, [1]), ("x", 1, [2, 9]), ("y", 0, [9])]).plan

    assert (15, 5, None) == (
        plan.bound.bytes_moved, plan.bound.least_bytes_moved, plan.adopted.enough_bytes_moved
    )  # fmt: skip
    assert "at most 10 B (200 %) above the proven minimum" in plan.headline


def test_a_limit_or_a_budget_that_it_crosses_refuses_it(tmp_path):
    """A reassignment that exceeds a limit or the budget is refused, and the message has both amounts."""
    spec = spec_of(no_racks(1, 2), LISTS, sizes=10, changes=EXPANDED)
    with pytest.raises(UnsafePlanError, match=r"limits\.bytes_moved: the plan comes to 10 B"):
        _adopted(tmp_path, replace(spec, limits=SpecLimits(bytes_moved=9)), [("x", 0, [3, 2])])
    with pytest.raises(UnsafePlanError, match=r"budget\.replicas_moved: the reassignment takes 1, allowed .*: 0"):
        _adopted(tmp_path, replace(spec, budget=Budget(replicas_moved=0)), [("x", 0, [3, 2])])


def test_one_that_fills_a_capped_broker_is_refused_by_its_cap(tmp_path):
    """A reassignment that copies less than keeping the cap takes is refused by the cap, and has a bound it can meet."""
    loose = Balance(*(Tolerance("none"),) * 3)
    sizes = {"t": [12, 12], "u": [1]}
    spec = spec_of(no_racks(1, 2, 3), {"t": [(2, 1), (2, 3)], "u": [(3, 1)]}, sizes=sizes, balance=loose)
    one, two, three = spec.cluster.brokers
    spec = replace(spec, cluster=replace(spec.cluster, brokers=(one, replace(two, max_disk_bytes=20), three)))
    with pytest.raises(RefusedPlanError, match=r"capacity\.max_disk: the plan comes to 25 B on broker 2") as refused:
        _adopted(tmp_path, spec, [("u", 0, [3, 2])])
    assert (1, 0) == (refused.value.plan.bound.bytes_moved, refused.value.plan.bound.least_bytes_moved)


def test_one_that_breaks_a_rule_is_refused(tmp_path):
    """A reassignment that puts two replicas into one rack is refused, if another rack is free."""
    with pytest.raises(InfeasibleError, match="x-0: rack spread"):
        _adopted(tmp_path, spec_of({1: "a", 2: "b", 3: "b"}, LISTS), [("x", 0, [2, 3])])


def test_topics_that_are_apart(tmp_path):
    """The rule `apart` takes its sides from the reassignment; a reassignment that mixes the topics is refused."""
    lists = {"x": [(1, 2), (2, 1)], "y": [(1, 3), (3, 4)]}
    spec = spec_of(no_racks(1, 2, 3, 4), lists, sizes=10, apart=(Apart(("x", "y")),), changes=Changes(rebalance="none"))
    plan = _adopted(tmp_path, spec, [("y", 0, [4, 3])]).plan
    assert (((1, 2), (3, 4)), False, 10) == (
        plan.spec.apart[0].sides,
        plan.spec.apart[0].proven,
        plan.bound.bytes_moved,
    )
    with pytest.raises(InfeasibleError, match="y-1: apart: replicas"):
        _adopted(tmp_path, spec, [("y", 0, [4, 3]), ("y", 1, [3, 2])])


def test_topics_that_are_led_together(tmp_path):
    """With `together`, a reassignment is refused if different brokers lead the partitions with the same number."""
    lists = {"x": [(1, 2), (2, 1)], "y": [(2, 1), (2, 3)]}
    spec = spec_of(no_racks(1, 2, 3), lists, sizes=10, together=(("x", "y"),), changes=Changes(rebalance="none"))
    plan = _adopted(tmp_path, spec, [("y", 0, [1, 2])]).plan
    assert ([("y", 0, "together")], 0) == (
        [(row.topic, row.partition, row.reason) for row in plan.partitions],
        plan.bound.bytes_moved,
    )
    assert requested.together(plan) == "x, y: one leader for each partition number"
    with pytest.raises(InfeasibleError, match="y-1: together: replicas"):
        _adopted(tmp_path, spec, [("y", 0, [1, 2]), ("y", 1, [3, 2])])


def test_topics_that_are_apart_by_rack(tmp_path):
    """With `apart` by rack, the reassignment decides which racks each side has; one that mixes the sides is refused."""
    lists = {"x": [(1, 2), (2, 1)], "y": [(1, 3), (3, 4)]}
    by_rack = (Apart(("x", "y"), by="rack"),)
    spec = spec_of({1: "a", 2: "a", 3: "b", 4: "b"}, lists, sizes=10, apart=by_rack, rack_aware=False)
    plan = _adopted(tmp_path, spec, [("y", 0, [4, 3])]).plan
    assert ((1, 2), (3, 4)) == plan.spec.apart[0].sides
    assert requested.apart(plan).startswith("x in rack a; y in rack b")
    with pytest.raises(InfeasibleError, match=r"y-1: apart: replicas .*no rack with"):
        _adopted(tmp_path, spec, [("y", 0, [4, 3]), ("y", 1, [3, 2])])


def _tight() -> Spec:
    """Caps and leader racks that the search for another plan doesn't keep within the windows asked for."""
    lists = {"t": [(1, 2), (2, 3), (3, 4)], "u": [(5, 2), (1, 2), (5, 4)]}
    spec = spec_of({1: "a", 2: "b", 3: "a", 4: "b", 5: "a"}, lists, sizes={"t": [40, 40, 30], "u": [10, 5, 5]},
                   changes=Changes(demote_brokers=(5,)), leader_racks=(LeaderRacksRow("u", ("b",)),),
                   apart=(Apart(("t", "u"), by="broker_leaders"),))  # fmt: skip
    caps = {3: {"max_leaders": 1}, 4: {"max_replicas": 3}}
    brokers = tuple(replace(each, **caps.get(each.id, {})) for each in spec.cluster.brokers)
    return replace(spec, cluster=replace(spec.cluster, brokers=brokers))


KEPT = [("t", 1, [1, 2]), ("u", 0, [2, 5]), ("u", 1, [2, 1]), ("u", 2, [4, 5])]


def test_one_that_keeps_every_rule_is_adopted_if_no_plan_within_the_targets_is_found(tmp_path):
    """The search for a plan within the windows asked for fails; the one within those that it reaches doesn't."""
    plan = _adopted(tmp_path, _tight(), KEPT).plan
    assert [(1, (1, 2)), (0, (2, 5)), (1, (2, 1)), (2, (4, 5))] == [
        (row.partition, row.replicas) for row in plan.partitions
    ]
    assert (40, 0, "flow") == (plan.bound.bytes_moved, plan.bound.least_bytes_moved, plan.bound.method)


@pytest.mark.parametrize("rebalance", ["all", "racks"])
def test_one_is_adopted_without_a_bound_if_no_other_plan_is_found(rebalance, tmp_path, monkeypatch):
    """Whatever the search for other plans finds, a reassignment that keeps every rule is adopted; limits.gap is not."""

    def none(*_: object) -> Proposal:
        raise InfeasibleError("no choice of leaders among the replicas that are placed keeps max_leaders")

    monkeypatch.setattr(adopted_plan, "prove", none)
    changes = Changes(rebalance=rebalance)
    spec = spec_of({1: "a", 2: "b", 3: "a"}, {"x": [(1, 2), (1, 3)], "y": [(1, 2)]}, sizes=10, changes=changes)
    made = _adopted(tmp_path, spec, [("x", 1, [3, 2])])
    bound, adopted = made.plan.bound, made.plan.adopted
    assert (None, 10, 0, "none", None) == (
        made.bound, bound.bytes_moved, bound.least_bytes_moved, bound.method, adopted.enough_bytes_moved
    )  # fmt: skip
    assert "found none that keeps every rule" in bound.proof
    assert "Copies 10 B (1 replica of 1 partition), the minimum is unknown" in made.plan.headline
    assert adopted_plan.SAME_BALANCE not in [row.label for row in made.plan.compared]
    VALIDATOR.validate(json.loads(one_spec.rendered_files(made.plan)["plan.json"]))
    with pytest.raises(RefusedPlanError, match=r"limits\.gap: the plan comes to 100 %"):
        _adopted(tmp_path, replace(spec, limits=SpecLimits(gap_ppm=100_000)), [("x", 1, [3, 2])])


def test_racks_that_topics_prefer_are_those_of_their_side(tmp_path):
    """y prefers leaders in rack a, but only x may lead there: the reassignment has y led in rack b, and is accepted."""
    lists = {"x": [(1, 3), (2, 4)], "y": [(3, 1), (4, 2)]}
    rules = {"apart": (Apart(("x", "y"), by="rack_leaders"),), "leader_racks": (LeaderRacksRow("y", ("a",)),)}
    spec = spec_of({1: "a", 2: "a", 3: "b", 4: "b"}, lists, sizes=10, **rules)
    plan = _adopted(tmp_path, spec, [("y", 0, [3, 2])]).plan
    assert [((1, 2), (3, 4))] == [rule.sides for rule in plan.spec.apart]
    with pytest.raises(InfeasibleError, match="y-0: apart: replicas"):
        _adopted(tmp_path, spec, [("y", 0, [2, 3])])


def test_made_from_another_state_it_is_adopted_with_a_warning(tmp_path):
    """The file's old replicas aren't today's, so the plan is adopted with a warning."""
    file = tmp_path / "proposals.json"
    row = {"topicPartition": "x-0", "oldLeader": 2, "oldReplicas": [2, 1], "newReplicas": [2, 3]}
    file.write_text(json.dumps({"proposals": [row]}))
    spec = spec_of(no_racks(1, 2), LISTS, changes=EXPANDED)
    (plan, _), _ = adopted_plan.adopt(given_reassignment.read(file), spec, "spec.yaml")

    assert plan.warnings[0].startswith("proposals.json was made from another state: 1 partition had other replicas")


def test_what_it_does_not_name_stays_and_is_counted(tmp_path):
    """Partitions that the file doesn't name stay as they are, without an election, and a warning counts them."""
    spec = spec_of(no_racks(1, 2), LISTS, leaders={"y": [2, 2]}, changes=EXPANDED)
    plan = _adopted(tmp_path, spec, [("x", 0, [3, 2])]).plan

    assert ["x"] == [row.topic for row in plan.partitions]
    assert plan.warnings[0].startswith("1 partition that given.json doesn't name could be")


def test_the_bound_is_for_plans_that_move_what_it_does_not_name(tmp_path):
    """Moving x-0, of 1,000 bytes, is one way to even out; moving y-0, of 1 byte, whose leader isn't the preferred one,
    is another.
    """
    lists = {"x": [(1, 2)], "y": [(1, 2)]}
    spec = spec_of(
        no_racks(1, 2, 3), lists, sizes={"x": [1000], "y": [1]}, leaders={"y": [2]}, balance=balance_of(1, 1, 1)
    )
    plan = _adopted(tmp_path, spec, [("x", 0, [1, 3])]).plan

    assert (1000, 1, 1) == (plan.bound.bytes_moved, plan.bound.least_bytes_moved, plan.adopted.enough_bytes_moved)
    assert plan.adopted.partitions_uneven is None


def test_the_bound_is_for_plans_in_which_uneven_partitions_may_stay(tmp_path):
    """y-0 has both replicas in rack a and isn't named. Another plan moves it, for 1 byte instead of 1,000."""
    lists = {"x": [(4, 2)], "y": [(4, 1)]}
    spec = spec_of({1: "a", 2: "b", 3: "c", 4: "a"}, lists, sizes={"x": [1000], "y": [1]}, balance=balance_of(1, 1, 1))
    planned = _adopted(tmp_path, spec, [("x", 0, [3, 2])])
    plan = planned.plan

    assert ["x"] == [row.topic for row in plan.partitions]
    assert (1000, 1, 1) == (plan.bound.bytes_moved, plan.bound.least_bytes_moved, plan.adopted.partitions_uneven)
    assert bound_section.bounded(plan).endswith("spreads replicas over the racks at least as evenly as today")
    assert planned.bound is not None
    assert 1 == bound_json.check(plan, planned.bound, "bound.json").least


def test_what_rebalance_racks_repairs_may_be_a_part(tmp_path):
    """With `rebalance: racks`, uneven partitions that the file doesn't name stay, with a warning."""
    lists = {"x": [(1, 2), (1, 2)]}
    spec = spec_of({1: "a", 2: "a", 3: "b"}, lists, sizes=10, changes=Changes(rebalance="racks"))
    plan = _adopted(tmp_path, spec, [("x", 0, [1, 3])]).plan

    assert [0] == [row.partition for row in plan.partitions]
    assert plan.warnings[0].startswith("1 partition that given.json doesn't name could be")


def test_it_is_resumed_like_any_plan(tmp_path):
    """An adopted plan can be resumed like any other, and the rest has the same target."""
    spec = spec_of(no_racks(1, 2), LISTS, sizes=10, changes=EXPANDED)
    plan = _adopted(tmp_path, spec, [("x", 0, [3, 2])]).plan
    sizes = {(topic.name, each.id): each.size_bytes for topic in spec.cluster.topics for each in topic.partitions}
    rest = resumed_plan.resume(plan, ClusterNow({topic.name: topic for topic in spec.cluster.topics}, sizes=sizes))

    assert [row.replicas for row in plan.partitions] == [row.replicas for row in rest.partitions]


def test_same_file_same_bytes(tmp_path):
    """Adopting the same file twice gives the same bytes: nothing depends on chance or time."""
    spec = spec_of(no_racks(1, 2), LISTS, sizes=10, changes=EXPANDED)
    rows = [("x", 0, [3, 2])]
    (one, one_rows), (other, other_rows) = (
        adopted_plan.adopt(_given(tmp_path, rows), spec, "spec.yaml") for _ in range(2)
    )

    assert codec.encode(one.plan) == codec.encode(other.plan)
    assert one_rows.equals(other_rows)

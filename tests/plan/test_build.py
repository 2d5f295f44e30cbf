"""The plan document: its structure, its numbers, its limits, and that no change goes unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import plan_documents
import pytest
from clusters import balance_of, no_racks, spec_of, specs
from folders import ROOT
from hypothesis import given
from jsonschema import Draft202012Validator
from msgspec import structs
from plan_documents import plan_id
from properties import examples

from planner.execution import limits_and_safety
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import InputRow, ReplicationFactorRow, SpecLimits
from planner.model.errors import InfeasibleError, StalePlanError, UnsafePlanError
from planner.model.generated_text import canonical_json
from planner.model.spec import BatchRules, Changes, Execution, NewPartitions, Rebalance, Spec, Sweep, TopicFilter
from planner.plan import bound_section
from planner.plan import build as plan_build
from planner.plan.build import validity
from planner.plan.document import codec
from planner.plan.document.request_types import ValiditySection
from planner.strategies.optimum import Proposal
from planner.sweep.candidates import PART, candidates
from planner.sweep.evaluate import run

SCHEMA = json.loads((ROOT / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
ADD_4 = Changes(add_brokers=(Broker(4),))
ROWS = {"x": [(1, 2), (2, 3), (3, 1), (1, 2)], "y": [(1, 2), (1, 3)]}
SIZES = {"x": [10, 20, 30, 40], "y": [5, 6]}


def plan_of(spec: Spec, count: int = 40) -> dict[str, Any]:
    """The plan of a spec, swept in this process."""
    problem = build(spec)
    return plan_documents.planned(
        spec, problem, run(problem, candidates(problem, replace(spec.sweep, candidates=count)))
    )


def expansion(**rest: Any) -> Spec:
    """Three brokers become four."""
    return spec_of(no_racks(1, 2, 3), ROWS, sizes=SIZES, **{"changes": ADD_4, **rest})


def terms(plan: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The values today and with the plan, by term."""
    return {term["name"]: (term["today"], term["plan"]) for term in plan["terms"]}


def test_traffic_of_brokers_racks_and_windows() -> None:
    """With rates, brokers have traffic before and after; all windows are there; the document fits the schema."""
    spec = expansion(balance=balance_of(1, 1, 1, "none", "none", "90%"))
    topics = tuple(
        replace(topic, partitions=tuple(replace(each, bytes_in_per_sec=10) for each in topic.partitions))
        for topic in spec.cluster.topics
    )
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, topics=topics)))

    assert [] == [error.message for error in VALIDATOR.iter_errors(plan)]
    assert [(50, 40), (40, 10), (30, 10), (0, 0)] == [
        (broker["before"]["network_in"], broker["before"]["network_out"]) for broker in plan["brokers"]
    ]
    assert [120, 60] == [sum(each["after"][key] for each in plan["brokers"]) for key in ("network_in", "network_out")]
    assert {"disk": "none", "network_in": "90%", "network_out": "none"}.items() <= plan["balance"]["wanted"].items()


@pytest.mark.slow
def test_unlike_brokers_have_no_limit_of_spread() -> None:
    """Brokers of different capacity have no limit on their spread; how full they are is stated against their share."""
    spec = expansion()
    unlike = tuple(replace(broker, disk_bytes=1000 * broker.id) for broker in spec.cluster.brokers)
    added = replace(ADD_4, add_brokers=(Broker(4, None, 4000),))
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, brokers=unlike), changes=added))
    limits = {term["name"]: (term["limit"], term["unit"]) for term in plan["terms"]}

    assert [(None, "replicas"), (1, "leaders")] == [limits["replica_spread"], limits["leader_spread"]]
    assert (None, "%") == limits["bytes_above_share"]
    assert 1 == next(term["limit"] for term in plan_of(expansion())["terms"] if term["name"] == "replica_spread")


@examples(25)
@given(specs(rebalance=("all", "leaders", "racks", "none")))
def test_fits_the_schema_and_itself(spec: Spec) -> None:
    """Any spec's plan fits the schema; its sections agree with one another; and it is read back as it was written."""
    plan = plan_of(spec)
    assert [] == [error.message for error in VALIDATOR.iter_errors(plan)]
    data = canonical_json(plan).encode()
    assert data == codec.encode(codec.decode(data, "plan.json"))
    moved = sum(
        len(set(part["replicas"]) - set(part["replicas_before"])) * part["size_bytes"] for part in plan["partitions"]
    )
    assert moved == plan["bound"]["bytes_moved"] == sum(topic["bytes_moved"] for topic in plan["topics"])
    assert moved == sum(broker["bytes_in"] for broker in plan["brokers"]) == terms(plan)["bytes_moved"][1]
    assert plan["bound"]["least_bytes_moved"] <= moved
    if plan["candidates"]["winner"]["strategy"] == "optimum" and not spec.changes.replace_brokers:
        assert plan["bound"]["gap_percent"] < 0.001
    for when in ("before", "after"):
        assert sum(broker[when]["replicas"] for broker in plan["brokers"]) >= sum(
            rack[when]["replicas"] for rack in plan["racks"]
        )
    assert all(not any(b["after"].values()) for b in plan["brokers"] if b["role"] == "removed")
    for each in plan["brokers"]:
        assert max(each[when]["size_bytes"] for when in ("before", "after")) <= each["peak_size_bytes"]
    assert 1 == sum(point["chosen"] for point in plan["pareto"])
    assert plan["candidates"]["evaluated"] == sum(plan["candidates"]["by_strategy"].values())


@examples(25)
@given(specs(rebalance=("all", "leaders", "racks", "none")))
def test_batches_applied_are_the_plan(spec: Spec) -> None:
    """All batches one after the other turn today's lists into the plan's, each step starting where the last ended."""
    plan = plan_of(replace(spec, execution=Execution(batches=BatchRules(bytes=8, replicas_per_partition=1))), 2)
    lists = {(t.name, p.id): list(p.replicas) for t in spec.cluster.topics for p in t.partitions}
    for batch in plan["batches"]:
        for step in batch["partitions"]:
            assert lists[step["topic"], step["partition"]] == step["replicas_before"]
            lists[step["topic"], step["partition"]] = step["replicas"]
    for part in plan["partitions"]:
        assert part["replicas"] == lists.pop((part["topic"], part["partition"]))
    kept = {(t.name, p.id): list(p.replicas) for t in spec.cluster.topics for p in t.partitions}
    assert lists == {name: kept[name] for name in lists}


def test_expansion_by_hand() -> None:
    """A new broker gets its share, three of twelve replicas, with the fewest bytes possible."""
    plan = plan_of(expansion(inputs=(InputRow("expand.yaml", "ab" * 32),)))
    roles = {broker["id"]: (broker["role"], broker["after"]["replicas"]) for broker in plan["brokers"]}
    assert {1: ("stays", 3), 2: ("stays", 3), 3: ("stays", 3), 4: ("added", 3)} == roles
    assert (0, plan["bound"]["least_bytes_moved"]) == (plan["bound"]["gap_percent"], plan["bound"]["bytes_moved"])
    assert plan["bound"]["least_replicas_moved"] is None
    assert [{"path": "expand.yaml", "sha256": "ab" * 32}] == plan["inputs"]
    assert ["do nothing", "this plan"] == [row["label"] for row in plan["compared"][:2]]
    assert all(row["label"].startswith("Kafka --generate, ") for row in plan["compared"][2:])
    assert [] == plan["balance"]["relaxed"]


def test_without_sizes_the_bound_is_in_replicas() -> None:
    """Without sizes, the fewest replicas are proven, and there is a warning."""
    spec = spec_of(no_racks(1, 2, 3), ROWS, sizes=0, changes=ADD_4)
    plan = plan_of(replace(spec, cluster=replace(spec.cluster, sizes_known=False)))
    bound = plan["bound"]
    assert (0, 0, 3, 0) == (
        bound["bytes_moved"], bound["least_bytes_moved"], bound["least_replicas_moved"], bound["gap_percent"]
    )  # fmt: skip
    assert any("sizes are unknown" in warning for warning in plan["warnings"])


def test_replacement_without_sizes_has_no_gap() -> None:
    """A replacement moves as few replicas as possible, so the plan has no gap."""
    changes = Changes(add_brokers=(Broker(9),), replace_brokers=((3, 9),))
    plan = plan_of(spec_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3), (3, 1)]}, sizes=0, changes=changes))
    assert (2, 0) == (terms(plan)["replicas_moved"][1], plan["bound"]["gap_percent"])


@pytest.mark.slow
@pytest.mark.parametrize("rebalance", ["leaders", "racks", "none"])
def test_forced_only_plans_move_the_fewest_bytes(rebalance: Rebalance) -> None:
    """If only forced moves are allowed, a more even placement that moves more bytes doesn't win."""
    rows = {"x": [(1, 3, 2), (2,), (2, 1)]}
    change = ReplicationFactorRow("x", 2)
    changes = Changes(remove_brokers=(3,), set_replication_factor=(change,), rebalance=rebalance)
    spec = spec_of(no_racks(1, 2, 3, 4, 5), rows, sizes={"x": [7, 7, 2]}, changes=changes, balance=balance_of(0, 1, 0))
    plan = plan_of(spec, 300)
    assert (7, 7) == (plan["bound"]["bytes_moved"], plan["bound"]["least_bytes_moved"])


def test_winners_without_a_proof_claim_none() -> None:
    """If a placement of Kafka's wins because its leaders are more even, the proof doesn't claim an optimum."""
    rows = {"kept": [(1, 2), (1, 2)], "x": [(1, 2), (1,)]}
    changes = Changes(add_brokers=(Broker(3),), set_replication_factor=(ReplicationFactorRow("x", 1),))
    spec = spec_of(
        no_racks(1, 2),
        rows,
        sizes={"kept": [0, 1], "x": [0, 1]},
        leaders={"kept": [None, 1], "x": [None, 1]},
        changes=changes,
        topics=TopicFilter(exclude=("kept",)),
        balance=balance_of(1, 0, 0, 0),
    )
    bound = plan_of(spec, 60)["bound"]
    assert bound["gap_percent"] < 0.001 or "optimum" not in bound["proof"]


@pytest.mark.slow
@pytest.mark.parametrize(("spread", "searched"), [(2, True), (1, False)])
def test_a_proof_says_what_was_only_searched(spread: int, searched: bool) -> None:
    """If wide windows of topics depend on each other, the proof says that starts were searched, and there is a gap."""
    rows = {"a": [(2,), (1,), (1,), (1,), (2,), (2,)], "b": [(1,), (2,), (2,), (1,), (2,)]}
    sizes = {"a": [69, 70, 88, 13, 25, 73], "b": [71, 90, 94, 34, 85]}
    changes = Changes(add_brokers=(Broker(3),))
    spec = spec_of(no_racks(1, 2), rows, sizes=sizes, changes=changes, balance=balance_of(1, "none", spread))
    bound = plan_of(spec)["bound"]
    assert (searched, searched) == (bound["gap_percent"] > 0, "was searched, without a proof" in bound["proof"])


def test_without_a_proof_nothing_is_said_of_its_starts() -> None:
    """Without a proven minimum, the proof doesn't mention a search of windows' starts."""
    spec = expansion(balance=balance_of("none", "none", 2))
    problem = build(spec)
    proposal = Proposal(problem.replicas)
    row = {"bytes_moved": 9, "replicas_moved": 1, "strategy": "kafka_classic"}
    bound = bound_section.section(spec, problem, row, proposal, None)
    assert "the minimum is unknown" in bound.proof
    assert "searched" not in bound.proof
    part = bound_section.section(spec, problem, {**row, "strategy": PART}, proposal, None)
    assert part.proof.startswith("the minimum is unknown for this step alone: it is a part of a plan")


def test_nothing_to_do() -> None:
    """An even cluster's plan is empty: no partitions, no batches, nothing moved, no gap."""
    plan = plan_of(spec_of(no_racks(1, 2, 3), {"x": [(1, 2), (2, 3), (3, 1)]}))
    assert ([], [], 0, 0) == (
        plan["partitions"], plan["batches"], plan["bound"]["bytes_moved"], plan["bound"]["gap_percent"]
    )  # fmt: skip


def test_today_is_judged_as_it_is() -> None:
    """A leader that isn't the preferred one, or is missing, breaks no rule today; today's leaders are counted."""
    rows = {"kept": [(1, 2), (2, 1)], "x": [(1, 2, 3), (2, 3, 1)]}
    spec = spec_of(
        no_racks(1, 2, 3), rows, leaders={"kept": [2, 2], "x": [1, None]}, topics=TopicFilter(exclude=("kept",))
    )
    plan = plan_of(spec)
    assert 0 == plan["compared"][0]["violations"] == terms(plan)["left_to_change"][0]
    assert (1, 1) == terms(plan)["without_leader"]
    # Today brokers 1, 2 and 3 lead 1, 2 and 0 partitions.
    assert 2 == plan["compared"][0]["leader_spread"]


def test_unforced_leaders_off_the_preferred_broker_break_no_rule_today() -> None:
    """With `rebalance: none`, a leader that isn't the preferred one leaves nothing to change."""
    changes = Changes(rebalance="none")
    plan = plan_of(spec_of(no_racks(1, 2), {"x": [(1, 2)]}, leaders={"x": [2]}, changes=changes))
    assert 0 == terms(plan)["left_to_change"][0]


@pytest.mark.parametrize("kept", [{"changes": Changes(rebalance="none")}, {"topics": TopicFilter(exclude=("x",))}])
def test_leaders_that_nobody_elects_stay_in_all_figures(kept: dict[str, Any]) -> None:
    """A plan without elections has today's leaders everywhere: in terms, brokers, racks, windows and comparison."""
    rows = {"x": [(1, 2), (2, 3), (3, 1)]}
    plan = plan_of(spec_of({1: "a", 2: "b", 3: "c"}, rows, leaders={"x": [2, 3, 3]}, **kept))
    assert ([], []) == (plan["partitions"], plan["batches"])
    assert [(2, 2), (2, 2), (100, 100)] == [
        terms(plan)[name] for name in ("leader_spread", "rack_leaders", "leaders_above_share")
    ]
    assert all(row["before"] == row["after"] for row in (*plan["brokers"], *plan["racks"]))
    assert [("leaders", 2)] == [(each["window"], each["reached"]) for each in plan["balance"]["relaxed"]]
    assert [(2, 0), (2, 0)] == [(each["leader_spread"], each["leaders_changed"]) for each in plan["compared"][:2]]


def test_doing_nothing_elects_nobody_but_a_plan_may_elect_alone() -> None:
    """If only elections are needed, the plan moves no replica and elects two leaders; doing nothing changes none."""
    rows = {"x": [(1, 2), (2, 3), (3, 1)]}
    plan = plan_of(spec_of(no_racks(1, 2, 3), rows, leaders={"x": [2, 3, 3]}))
    assert [0, 1] == [each["partition"] for batch in plan["batches"] for each in batch["elect"]]
    assert [(2, 0), (0, 2)] == [(each["leader_spread"], each["leaders_changed"]) for each in plan["compared"][:2]]


def test_relaxed_windows_are_named() -> None:
    """The plan names each window that can't hold, with the value asked for and the value reached."""
    racks = {1: "a", 2: "b", 3: "b"}
    plan = plan_of(spec_of(racks, {"x": [(1, 2), (1, 3)] * 2}))
    assert [("replicas", None, "1", 2), ("topic_replicas", "x", "1", 2)] == [
        (each["window"], each["topic"], each["wanted"], each["reached"]) for each in plan["balance"]["relaxed"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["bytes_moved", "replicas_moved", "leaders_changed"])
def test_gates(key: str) -> None:
    """A plan at its limit passes; above it, it is refused with the key and the value needed: exit code 3."""
    needed = terms(plan_of(expansion()))[key][1]
    assert needed > 0
    passed = plan_of(expansion(limits=SpecLimits(**{key: needed})))
    assert [{"key": f"limits.{key}", "limit": needed, "value": needed}] == passed["limits"]
    with pytest.raises(UnsafePlanError) as refused:
        plan_of(expansion(limits=SpecLimits(**{key: needed - 1})))
    assert 3 == refused.value.exit_code
    expected = f"limits.{key}: the plan comes to {needed} "
    assert str(refused.value).splitlines()[-1].startswith(expected)


def test_no_valid_candidate() -> None:
    """If every candidate breaks a rule, there is no plan, and the error names the rules."""
    change = Changes(set_replication_factor=(ReplicationFactorRow("x", 1),))
    spec = spec_of(no_racks(1, 2), {"x": [(1, 2)]}, changes=change, config={"x": (("min.insync.replicas", "2"),)})
    with pytest.raises(InfeasibleError, match="no candidate keeps every rule; the best one breaks:\nx-0: repl"):
        plan_of(spec)


@pytest.mark.parametrize(
    "path",
    [
        ("cluster", "name"),
        ("partitions", 0, "replicas", 0),
        ("bound", "bytes_moved"),
        ("batches", 0, "number"),
        ("warnings",),
    ],
    ids=str,
)
def test_tampering_is_seen(path: tuple[Any, ...]) -> None:
    """If any value of a finished plan is changed, its id doesn't fit, and it is refused."""
    plan = json.loads(canonical_json(plan_of(expansion(), 2)))
    *way, last = path
    inner = plan
    for key in way:
        inner = inner[key]
    inner[last] = {int: 99, str: "other", list: ["other"]}[type(inner[last])]
    assert plan_id(plan) != plan["plan_id"]
    with pytest.raises(StalePlanError, match=r"plans/plan\.json: plan_id doesn't fit the content"):
        codec.decode(canonical_json(plan).encode(), "plans/plan.json")


@pytest.mark.slow
def test_id_is_of_the_content() -> None:
    """The id depends on sizes, throttle, balance and seed, but not on the order of keys or the time."""
    plan = plan_of(expansion(), 20)
    assert plan == plan_of(expansion(), 20)
    assert plan["plan_id"] == plan_id(dict(reversed(plan.items())))
    others = [
        spec_of(no_racks(1, 2, 3), ROWS, sizes=7, changes=ADD_4),
        expansion(execution=Execution(throttle_bytes_per_sec=5)),
        expansion(balance=balance_of("50%", 1, 1)),
        expansion(sweep=Sweep(seed=1)),
    ]
    ids = {plan["plan_id"], *(plan_of(other, 20)["plan_id"] for other in others)}
    assert 5 == len(ids)


def test_the_plan_says_from_when_and_until_when() -> None:
    """There is no validity without a capture time, and no end without valid_for."""
    ends = ValiditySection(
        captured_at="2026-11-20T10:00:00Z", valid_for_seconds=86_400, valid_until="2026-11-21T10:00:00Z"
    )

    assert validity(None, None) is None
    assert ends == validity("2026-11-20T11:00:00+01:00", 86_400)
    endless = structs.replace(ends, valid_for_seconds=None, valid_until=None)
    assert endless == validity("2026-11-20T10:00Z", None)


@pytest.mark.slow
def test_what_is_not_safe_stands_apart_from_what_exceeds_a_limit() -> None:
    """A cordon isn't a limit: it has its own heading, with and without exceeded limits."""
    joining = Broker(4, cordoned_log_dirs=("*",))
    spec = expansion(changes=Changes(add_brokers=(joining,), replace_brokers=((3, 4),)))
    with pytest.raises(UnsafePlanError) as only_cordoned:
        plan_of(spec)
    with pytest.raises(plan_build.RefusedPlanError) as both:
        plan_of(replace(spec, limits=SpecLimits(bytes_moved=0)))

    first, cordon = only_cordoned.value.lines
    assert (limits_and_safety.UNSAFE, "changes.replace_brokers: broker 4 is cordoned") == (
        first,
        cordon.partition(" (")[0],
    )
    heading, limit, *rest = both.value.lines
    assert (limits_and_safety.EXCEEDS, "limits.bytes_moved") == (heading, limit.partition(":")[0])
    assert [limits_and_safety.ALSO_UNSAFE, cordon] == rest


def test_new_partitions_fill_disks_up_to_the_limit() -> None:
    """New partitions count with their stated sizes, although no batch copies them: broker 1 has 9 of 100 bytes left."""
    brokers = tuple(Broker(number, disk_bytes=100) for number in (1, 2, 3))
    spec = spec_of(no_racks(1, 2, 3), ROWS, sizes=SIZES)
    spec = replace(spec, cluster=replace(spec.cluster, brokers=brokers))

    def made(size_bytes: int) -> dict[str, Any]:
        changes = Changes(new_partitions=(NewPartitions("new", 0, 1, 3, size_bytes=size_bytes),), rebalance="none")
        return plan_of(replace(spec, changes=changes))

    assert [{"broker": 1, "key": "limits.disk_used", "limit": 100, "value": 100}] == made(9)["limits"]
    with pytest.raises(UnsafePlanError, match="the plan comes to 101 B on broker 1, allowed: at most 100 B"):
        made(10)

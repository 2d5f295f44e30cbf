"""What the words about a plan's bound say: which balance and which rules it covers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plan_documents import Document, typed
from report_documents import small
from test_bound_json import planned, swept
from test_headline import LEFT

from planner.model.balance import Balance, Tolerance
from planner.model.cluster import Broker, Cluster, Partition, Topic
from planner.model.document_fields import Apart, ApartBy
from planner.model.spec import Changes, Spec, Sweep
from planner.plan import bound_json, bound_section, headline


@pytest.mark.parametrize(("by", "of_split"), [("broker", True), ("rack_leaders", False)])
def test_a_split_of_who_leads_is_no_part_of_the_proof(by: ApartBy, of_split: bool) -> None:
    """Rules on leaders only don't limit replicas, so the proof doesn't mention their split."""
    made = planned(Balance())
    assert made.bound is not None
    certificate = bound_json.from_document(json.loads(made.bound))
    said = bound_section.proof(certificate, False, [Apart(("x", "y"), by, ((1,), (2,)))])
    assert of_split == ("for this split of the brokers among topics that are apart" in said)


def test_targets_that_give_way_to_a_disk_are_named() -> None:
    """Broker 1 is too full. Only without the target for disks may its partition go to 4, so the bound is without it."""
    *today, new = (Broker(at, None, room) for at, room in enumerate((629, 629, 1887, 943), 1))
    held = ((1, 646), (3, 1037), (3, 743))
    rows = tuple(Partition(at, (broker,), broker, None, size) for at, (broker, size) in enumerate(held))
    cluster, sweep = Cluster("full", tuple(today), (Topic("t", rows),), sizes_known=True), Sweep(candidates=3)
    for disk, named in (("20%", True), ("none", False)):
        balance = Balance(disk=Tolerance.parse(disk))
        said = swept(Spec(cluster, Changes((new,)), balance=balance, sweep=sweep)).plan.bound.proof
        assert named == ("The windows of disk are wider than asked for, because a disk would" in said)


@pytest.mark.parametrize(("moved", "least", "gap"), [(0, 0, 0.0), (100, 100, 0.0), (100, 99, 1.0), (3, 2, 33.334)])
def test_gap_in_per_cent(moved: int, least: int, gap: float) -> None:
    """The gap is how much more than the bound the plan moves, in per cent of the plan's own bytes."""
    assert gap == bound_section.gap_percent(moved, least)


EXCESS = {"replicas": 3, "least_replicas": 3, "loads": 0, "least_loads": 0, "furthest": []}
RACKS = " and spreads replicas over the racks"


def made_for(disk: str, missed: tuple[str, ...] = (), **bound: Any) -> Document:
    """The small plan, made for another disk target than the one asked for, as `sweep.balance` does."""
    plan = small()
    windows = plan["balance"]["wanted"]
    balance = {"wanted": windows | {"disk": disk}, "asked": windows, "missed": missed, "relaxed": []}
    return plan | {"balance": balance, "bound": plan["bound"] | bound}


def met(**top: Any) -> Document:
    """The small plan with all targets met."""
    plan = small(**top)
    plan["balance"] |= {"missed": [], "relaxed": []}
    return plan


@pytest.mark.parametrize(("least", "share"), [(10, " (1,000 %)"), (9, ""), (0, ""), (110, "")])
def test_a_gap_has_a_percentage_where_that_tells_something(least: int, share: str) -> None:
    """The gap has no percentage above 1,000 %, for example if the bound is a few bytes and a whole partition moves."""
    bound = typed(met(bound=small()["bound"] | {"bytes_moved": 110, "least_bytes_moved": least})).bound
    above = f"at most {110 - least} B{share} above the proven minimum" if least < 110 else "the proven minimum"
    assert (above if least else "the minimum is unknown") == bound_section.gap_to_least(bound)


@pytest.mark.parametrize(
    ("least", "gap", "said"),
    [
        (0, 100.0, "the minimum is unknown"),
        (1, 50.0, "at most 1 replica (100 %) above the proven minimum"),
        (2, 0.0, "the proven minimum"),
    ],
)
def test_a_plan_that_copies_no_bytes_is_compared_by_replicas(least: int, gap: float, said: str) -> None:
    """For partitions without data, the headline and the figures counted again compare replicas."""
    plan = met()
    plan["partitions"] = [{**row, "size_bytes": 0} for row in plan["partitions"]]
    plan["bound"] |= {"bytes_moved": 0, "least_bytes_moved": 0, "least_replicas_moved": least, "gap_percent": gap}
    plan["bound"] |= {"method": "flow", "sha256": "ab" * 32}
    made = typed(plan)
    assert f"Copies 0 B (2 replicas of 2 partitions), {said}; elects" in headline.headline(made)
    again = {path: found for path, _, found in bound_section.recount(made)}
    assert (0, gap) == (again["bound.bytes_moved"], again["bound.gap_percent"])


def test_a_plan_of_another_balance_is_not_of_the_one_asked_for() -> None:
    """A plan for looser targets says so, and its bound is for those targets."""
    plan = typed(made_for("50%", ("disk",)))
    assert bound_section.looser(plan)
    assert "the balance is looser than asked: bytes" == headline.balance_missed(plan)
    assert "the proven minimum at the targets with disk 50%; " in headline.headline(plan)
    assert f"meets the targets with disk 50%{RACKS}" == bound_section.bounded(plan)
    assert not bound_section.looser(typed(small()))


def test_a_narrower_target_than_asked_is_said_too() -> None:
    """A plan for stricter targets than asked for says so, because other plans that meet the targets copy less."""
    plan = typed(made_for("5%"))
    assert "the proven minimum at the targets with disk 5%; " in headline.headline(plan)
    assert f"meets the targets with disk 5%{RACKS}" == bound_section.bounded(plan)


def test_what_is_missed_at_another_balance_is_missed_there() -> None:
    """If a plan misses the targets that it was made for, its bound is for a balance as close to those targets."""
    document = made_for("5%", ("topic_replicas",), excess=EXCESS)
    document["balance"]["relaxed"] = small()["balance"]["relaxed"]
    plan = typed(document)
    assert "the proven minimum for a balance this close to the targets with disk 5%; " in headline.headline(plan)
    assert f"comes as close to the targets with disk 5%{RACKS}" == bound_section.bounded(plan)


def test_an_adopted_plan_is_as_even_as_it_is() -> None:
    """An adopted plan's windows are what it reaches, so its bound is for plans that are as even."""
    adopted = {"file": "a", "sha256": "ab" * 32, "format": "JSON", "partitions": 2, "partitions_there": 0}
    plan = typed(made_for("50%", ("disk",)) | {"adopted": adopted})
    assert "the proven minimum at this looser balance; " in headline.headline(plan)
    assert f"ends as even as this one{RACKS}" == bound_section.bounded(plan)


def test_a_bound_about_unmet_targets_says_so() -> None:
    """If targets are missed, the bound is for plans as close to them; if only disk limits are exceeded, for those."""
    plan = small()
    outside = plan | {"bound": plan["bound"] | {"excess": EXCESS}}
    assert f"comes as close to the targets{RACKS}" == bound_section.bounded(typed(outside))
    outside["balance"]["relaxed"] = []
    assert f"exceeds the disk limits by no more{RACKS}" == bound_section.bounded(typed(outside))
    assert "of the plans that exceed the disk limits least" in headline.headline(typed(outside))


def test_a_bound_about_unmet_targets_in_scenarios_says_so() -> None:
    """If only targets in the scenarios are missed, the bound is for plans that come as close to those."""
    plan = small(scenarios=[{"name": "twice", "feasible": False, "outside": []}], balance={"relaxed": []})
    plan["bound"]["excess"] = EXCESS
    plan["candidates"]["winner"]["scenarios"] = "all"
    assert f"comes as close to the targets in the scenarios{RACKS}" == bound_section.bounded(typed(plan))
    assert "of the plans that come closest to the targets in the scenarios" in headline.headline(typed(plan))


@pytest.mark.parametrize(
    ("by", "kept", "split"),
    [
        ("broker", "and keeps the placement rules, the apart rules and the caps", " for this split of the brokers"),
        ("rack", "and keeps the placement rules, the apart rules and the caps", " for this split of the racks"),
        ("rack_leaders", "and keeps the placement rules and the caps", ""),
    ],
)
def test_rules_are_part_of_what_is_proven(by: str, kept: str, split: str) -> None:
    """The bound's words name placement, apart and caps, because other plans may copy less; not rules on leaders."""
    plan = met()
    plan["spec"] |= {
        "placement": [{"topics": "a", "broker_set": "fast", "brokers": [1], "exclusive": False}],
        "apart": [{"topics": ["a", "b"], "by": by, "sides": [[1, 2], [3, 4]], "proven": False}],
    }
    plan["brokers"][0] |= {"max_replicas": 40}
    assert f"meets the targets, spreads replicas over the racks {kept}" == bound_section.bounded(typed(plan))
    assert split == bound_section.split_phrase(typed(plan))
    assert f"{split} that {bound_section.bounded(typed(plan))}" == bound_section.covered(typed(plan))


@pytest.mark.parametrize(("shut", "named"), [((1,), "broker 1"), ((1, 2), "brokers 1–2")])
def test_cordoned_brokers_are_part_of_what_is_proven(shut: tuple[int, ...], named: str) -> None:
    """The bound's words name cordoned brokers, because a plan that copies to them may copy less."""
    plan = met()
    for broker in plan["brokers"]:
        broker |= {"cordoned": True} if broker["id"] in shut else {}
    expected = f"meets the targets, spreads replicas over the racks and copies nothing to the cordoned {named}"
    assert expected == bound_section.bounded(typed(plan))


def test_racks_as_today_are_part_of_what_is_proven() -> None:
    """With racks as today, the bound is for plans that spread replicas at least as evenly as today."""
    plan = met()
    plan["spec"] |= {"racks_as_today": True}
    assert f"meets the targets{RACKS} at least as evenly as today" == bound_section.bounded(typed(plan))


def test_topics_that_may_not_move_are_part_of_what_is_proven() -> None:
    """The bound is for plans that leave excluded topics alone; it mentions racks only if the rack rule is on."""
    plan = met(rack_aware=False)
    plan["spec"]["topics"] |= {"exclude": ["a"]}
    assert "meets the targets and leaves excluded topics where they are" == bound_section.bounded(typed(plan))


def test_partitions_that_stay_are_part_of_what_is_proven() -> None:
    """The bound's words name partitions that may not change or wait, because plans that change them may copy less."""
    plan = met()
    plan["spec"]["topics"] |= {"on_brokers": [2, 4]}
    only = "changes only partitions on broker 2 and broker 4"
    assert f"meets the targets, spreads replicas over the racks and {only}" == bound_section.bounded(typed(plan))
    step = typed(met(complete=False, unfinished=LEFT))
    does = "ends as even as this one, spreads replicas over the racks and leaves the same 20 partitions for later"
    assert f" of this step that {does}" == bound_section.covered(step)


def test_that_nothing_meets_all_targets_is_said_where_it_is_proven() -> None:
    """It says that no plan meets all targets only if that is proven; else only that no plan tried does."""
    plan = small()
    said = "1 balance target is not met: "
    assert f"{said}no plan tried meets all targets" == headline.balance_missed(typed(plan))
    plan["bound"] |= {"excess": EXCESS | {"least_replicas": 0}}
    assert f"{said}no plan tried meets all targets" == headline.balance_missed(typed(plan))
    plan["bound"] |= {"excess": EXCESS}
    assert f"{said}no plan can meet all targets (proven)" == headline.balance_missed(typed(plan))


def test_brokers_that_cannot_lead_are_the_reason_where_only_leaders_are_uneven() -> None:
    """It names a broker in no ISR, and that no replica moves if none may."""
    plan, said = small(), "1 balance target is not met: "
    plan["brokers"][0]["seems_down"] = True
    assert f"{said}no plan tried meets all targets" == headline.balance_missed(typed(plan))
    plan["balance"]["relaxed"][0]["window"], plan["changes"]["rebalance"] = "leaders", "leaders"
    off = "broker 1 can't lead now (in no ISR)"
    moves = "1 balance target is not met, because no replica moves for balance (rebalance: leaders)"
    assert f"{moves}, and {off}" == headline.balance_missed(typed(plan))
    plan["changes"]["rebalance"] = "all"
    assert f"{said}{off}" == headline.balance_missed(typed(plan))

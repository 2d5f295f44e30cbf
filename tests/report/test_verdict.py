"""What a reviewer decides by: the verdict and the risks, in sentences."""

from __future__ import annotations

from typing import Any

import pytest
from plan_documents import Document, typed
from report_documents import GB, broker, small, term

from planner.report import choice_tables, verdict


def gate(key: str, value: int = 1) -> Document:
    """A row for a limit of 1."""
    return {"key": f"limits.{key}", "limit": 1, "value": value}


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        ([gate("eta")], "Ready to apply: within the limit"),
        ([gate("eta"), gate("gap")], "Ready to apply: within both limits"),
        ([gate("eta")] * 4, "Ready to apply: within all 4 limits"),
        ([gate("eta"), gate("gap", 2)], "Refused: 1 of 2 limits is exceeded (limits.gap: 0.0002 %, at most 0.0001 %)"),
        (
            [gate("a", 2), gate("b", 2)],
            "Refused: 2 of 2 limits are exceeded (limits.a: 2, at most 1; limits.b: 2, at most 1)",
        ),
    ],
)
def test_the_verdict_counts_the_limits(gates: list[Document], said: str) -> None:
    """A limit that is just reached is kept; an exceeded limit is named."""
    plan = small(limits=gates, warnings=[])
    plan["balance"]["relaxed"] = []

    assert f"{said}; balance targets met; no warnings." == verdict.verdict(typed(plan))
    unlimited = verdict.verdict(typed(plan | {"limits": []}))
    assert "Ready to apply: balance targets met; no warnings." == unlimited


@pytest.mark.parametrize(("before", "after", "above"), [(95, 80, ""), (80, 95, ""), (81, 81, "broker 1 stays above")])
def test_a_broker_that_stays_above_its_disk_limit_is_named(before: int, after: int, above: str) -> None:
    """A plan that makes it no fuller isn't refused, so the verdict and the limits say that it stays above."""
    plan = small(limits=[gate("disk_used")], warnings=[])
    plan["spec"]["limits"] = {"disk_used_ppm": 800_000}
    row, held = plan["brokers"][0], {"before": before, "after": after}
    plan["brokers"][0] = row | {"disk_bytes": 100} | {when: row[when] | {"size_bytes": held[when]} for when in held}
    shown = typed(plan)

    assert above == choice_tables.above_disk_limit(shown)
    assert f"within the limit{f', but {above} limits.disk_used' if above else ''};" in verdict.verdict(shown)
    table = choice_tables.limits(shown)
    assert f"kept{f', but {above}' if above else ''}" == table.columns[3].value(table.rows[0])


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (40, 40, "every disk of known size has room"),
        (41, 40, "no disk gets fuller than it may"),
        (41, 41, "no disk gets fuller"),
    ],
)
def test_a_disk_that_is_or_stays_too_full_has_no_room(before: int, after: int, said: str) -> None:
    """If a plan only relieves a disk that is too full, the limit is kept, but the verdict claims no room."""
    plan = small(limits=[gate("disk_used")])
    row, held = plan["brokers"][0], {"before": before, "after": after}
    loads = {when: row[when] | {"size_bytes": size * GB} for when, size in held.items()}
    plan["brokers"][0] = row | {"disk_bytes": 40 * GB} | loads
    for disk_bytes, known in ((None, " of known size"), (10**15, "")):
        plan["brokers"][1:] = [each | {"disk_bytes": disk_bytes} for each in plan["brokers"][1:]]
        assert f"Ready to apply: {said.replace(' of known size', known)}" in verdict.verdict(typed(plan))


def test_the_verdict_says_what_asks_for_a_second_look() -> None:
    """The verdict has missed targets, the number of warnings, and how long the plan is valid."""
    plan = small(validity={"captured_at": "2026-11-21T00:00:00Z", "valid_until": "2026-11-22T00:00:00Z"})

    assert verdict.verdict(typed(plan)).endswith(
        "; 1 warning; valid until 2026-11-22T00:00:00Z. 1 balance target is not met: no plan tried meets all targets."
    )


def risks(**top: Any) -> list[str]:
    """The risks of the small plan with these changes."""
    return list(verdict.risks(typed(small(**top))))


def test_writes_at_risk_are_told_with_their_batches() -> None:
    """Writes at risk are stated for no, some and unknown replicas in sync, with the batches."""
    known = {
        "isr_known": True,
        "under_min_isr": [0, 0],
        "refused_by_failure_today": 0,
        "refused_by_failure": [0, 0],
    }
    one, two = ({"refused_by_failure": [0, most], "refused_by_failure_today": 1} for most in (1, 2))
    unless = "Writes: acks=all keeps working as long as no broker fails; one failure would block it for at most"

    assert "Writes: acks=all keeps working, even if one broker fails meanwhile." == risks(risks=known)[0]
    assert f"{unless} 1 partition (as today)." == risks(risks=known | one)[0]
    assert f"{unless} 2 partitions (today 1)." == risks(risks=known | two)[0]
    assert (
        "Writes: REFUSED with acks=all: 5 partitions under min.insync.replicas in batches 1–2."
        == (risks(risks=known | {"under_min_isr": [2, 3]})[0])
    )
    once = known | {"under_min_isr": [2, 3], "under_min_isr_once": 3}
    assert (
        "Writes: REFUSED with acks=all: 3 partitions under min.insync.replicas in batches 1–2." == risks(risks=once)[0]
    )
    assert (
        "Writes: acks=all keeps working, even if one broker fails meanwhile "
        "(replicas whose state is unknown are assumed to be in sync)." == risks(risks=known | {"isr_known": False})[0]
    )
    waits = [term("safety", "without_leader", "partitions", 1, 1, None)]
    assert risks(risks=known, terms=waits)[0].endswith("; 1 partition without a leader already refuses all writes.")


def test_bytes_between_racks_are_told_with_their_share() -> None:
    """Bytes copied between racks are stated as a share of all bytes copied."""
    terms = [term("movement", "cross_rack_bytes", "bytes", 0, 6 * GB, None)]

    assert "Copied between racks: 6.00 GB of 24.0 GB (25 %)." in risks(terms=terms)
    assert not [line for line in risks(terms=terms, racks=[]) if "racks" in line]


def test_the_worst_failures_are_told_before_and_after() -> None:
    """The worst failures are stated before and after, if they cost anything; else the words say that none does."""
    none = [
        term("resilience", f"{of}_{cost}", "partitions", 0, 0, 0)
        for of in ("broker", "rack")
        for cost in ("offline", "refused")
    ]
    some = [{**none[0], "plan": 2}, {**none[1], "today": 5, "plan": 5}, *none[2:]]

    unharmed = "After the plan, the failure of one {} takes no partition offline and blocks no acks=all writes."
    assert unharmed.format("broker or rack") in risks(terms=none)
    without_racks = [{**each, "rack": None} for each in small()["brokers"]]
    assert unharmed.format("broker") in risks(terms=none, brokers=without_racks)
    worst = "After the plan, if the worst broker fails: 2 partitions offline"
    assert f"{worst} (today 0), 5 refusing acks=all writes (today 5)." in risks(terms=some)
    same = [{**each, "today": each["plan"]} for each in some]
    assert f"{worst}, 5 refusing acks=all writes, as today." in risks(terms=same)


def test_consumer_groups_whose_topics_get_other_leaders_are_counted() -> None:
    """If the plan has consumer groups, those whose topics change leaders are counted, the first few by name."""
    groups = [{"group": f"g{n}", "topics": {"orders": 2}} for n in range(5)] + [{"group": "h", "topics": {"x": 1}}]

    assert "Consumers: 5 of 6 groups read topics whose leaders change: g0, g1, g2 and 2 more." in risks(
        consumers={"groups": groups}
    )
    assert "Consumers: 0 of 1 group read topics whose leaders change." in risks(consumers={"groups": groups[5:]})


def test_a_plan_that_changes_nothing_risks_nothing() -> None:
    """A plan that changes nothing has no risks."""
    assert [] == risks(partitions=[], batches=[])


def test_a_broker_that_is_down_comes_first() -> None:
    """A broker that is down comes first, because playbooks wait for it; later failures are judged with it live."""
    plan = small()
    plan["brokers"][0]["seems_down"] = True
    assert verdict.verdict(typed(plan)).startswith(
        "Ready to apply once broker 1 is live and in sync again: within the limit; "
    )
    none = term("resilience", "broker_offline", "partitions", 0, 0, 0)
    found = risks(terms=[none], brokers=plan["brokers"])
    assert any(line.startswith("After the plan, with broker 1 live again, the failure of one ") for line in found)
    plan["brokers"][0]["role"] = "removed"
    assert verdict.verdict(typed(plan)).startswith("Ready to apply: ")


def test_replicas_out_of_sync_come_first() -> None:
    """The verdict first says that replicas are out of sync, because apply.yml doesn't start before they are in sync."""
    plan = small()
    plan["risks"]["out_of_sync"] = 3
    assert verdict.verdict(typed(plan)).startswith("Ready to apply once all replicas are in sync: within the limit; ")


def test_a_plan_that_is_not_safe_is_refused() -> None:
    """An unsafe plan is refused, whatever its limits say."""
    told = verdict.verdict(typed(small(unsafe=["broker 5 is cordoned"])))
    assert told.startswith("Refused: it can't be applied safely; within the limit; ")


@pytest.mark.parametrize(
    ("money", "said"),
    [
        ((100.0, 103.456), "Traffic between racks will cost 3.46 more a month (100.00 today)."),
        ((100.0, 100.5), ""),  # less than one percent
        ((100.0, 90.0), ""),
        ((0.0, 2.5), "Traffic between racks will cost 2.50 more a month (0.00 today)."),
    ],
)
def test_a_higher_price_is_part_of_the_verdict(money: tuple[float, float], said: str) -> None:
    """A higher price is in the verdict, because nobody asked for it."""
    today, then = ({"replication": 1, "consumers": 1, "money_per_month": each} for each in money)
    plan = small(cross_rack={"fetch_from": "leader", "today": today, "plan": then, "money_once": None})
    told = verdict.verdict(typed(plan))
    assert told.endswith(said) if said else "cost" not in told


def test_a_removed_broker_that_is_down_is_not_to_be_stopped() -> None:
    """A removed broker that is down doesn't need to be stopped; only a rollback needs it."""
    plan = small()
    plan["brokers"][0] = broker(1, "removed", (4, 2), (0, 0))
    assert "can be stopped after verify.yml" in verdict.leaving(typed(plan))
    plan["brokers"][0]["seems_down"] = True
    assert verdict.leaving(typed(plan)) == (
        "broker 1, down today: not needed after verify.yml; rollback.yml needs it running again"
    )


def test_a_harmless_failure_is_told_beside_a_harmful_one() -> None:
    """If a rack's failure does harm, the words still say that a broker's failure doesn't."""
    some = [term("resilience", f"rack_{name}", "partitions", 0, 3, None) for name in ("offline", "refused")]
    none = [term("resilience", f"broker_{name}", "partitions", 0, 0, 0) for name in ("offline", "refused")]
    found = risks(terms=[*none, *some])
    broker_first = "After the plan, the failure of one broker takes no partition offline and blocks no acks=all writes."
    assert broker_first in found
    assert any(line.startswith("After the plan, if the worst rack fails: ") for line in found)


def test_most_replicas_are_those_of_any_batch() -> None:
    """The most replicas include each batch's peak, when old and new replicas both count."""
    plan = small()
    plan["brokers"] = [broker(each, "stays", (3, 1), (3, 1)) for each in (1, 2, 3)]
    step = {"topic": "orders", "partition": 0, "replicas_before": [1, 2], "replicas": [3, 2]}
    batch = plan["batches"][0]
    plan["batches"] = [{**batch, "number": 1, "partitions": [step]}]
    assert verdict.holds_most(typed(plan), "replicas") == (
        "every broker (3) today; broker 3 (4) in batch 1; every broker (3) after"
    )
    plan["batches"] = [{**batch, "number": 1, "partitions": []}]
    assert verdict.holds_most(typed(plan), "replicas") == "every broker (3) today, during the plan and after"
    assert verdict.holds_most(typed(plan), "leaders") == "every broker (1) today and after"

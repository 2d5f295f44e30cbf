"""Sentences about a plan, the same in every output."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_documents import Document, row, typed
from report_documents import GB, broker, huge, small, with_disks

from planner.plan.document.cluster_types import BrokerRow
from planner.plan.document.comparison_types import ComparedRow, ParetoRow, ScenarioRow
from planner.report import sentences
from planner.report.sentences import derived, pace
from planner.scoring.missed_targets import RelaxedRow


def test_scenarios_name_the_brokers_that_fail() -> None:
    """A scenario names missed windows with broker, value and allowed value, and counts those after the third."""
    low = {"window": "network_in", "broker": 3, "value": 1_000, "least": 2_000, "most": 3_000}
    full = {**low, "window": "disk_used", "value": 4 * GB, "most": 3 * GB}

    assert "x × 2: all targets for bytes and traffic are met, and no disk is too full" == sentences.scenario(
        row(ScenarioRow, {"name": "x × 2", "feasible": True})
    )
    assert (
        "x × 2: network in 1.00 kB/s on broker 3 (target: at least 2.00 kB/s); "
        "disk used 4.00 GB on broker 3 (target: at most 3.00 GB)"
        == sentences.scenario(row(ScenarioRow, {"name": "x × 2", "outside": [low, full]}))
    )
    assert sentences.scenario(row(ScenarioRow, {"name": "x", "outside": [low] * 9})).endswith("; and 6 more")


def test_a_row_is_as_asked_or_as_near_as_can_be() -> None:
    """If windows can't hold, a row that keeps the plan's windows is `nearest`; another variant has its own windows."""
    kept = {"balance_kept": True, "variant": "a"}

    def completes(*relaxed: str, **some: object) -> str:
        rows = [{"window": window} for window in relaxed]
        plan = typed(small(balance={"relaxed": rows}, choice={"variant": "a"}))
        return sentences.completes(plan, row(ParetoRow, kept, **some))

    assert "yes" == completes()
    assert "yes" == completes("log_dirs")
    assert "nearest" == completes("log_dirs", "disk")
    assert "not even" == completes("disk", balance_kept=False)
    assert "3 left" == completes("disk", left_to_change=3)
    assert "yes" == completes("disk", variant="b")
    assert "nearest" == completes(variant="b", targets_missed=True)
    assert "nearest" == sentences.completes(typed(small()), row(ComparedRow, {"balance_kept": True}))


def test_with_rebalance_none_only_missed_log_dirs_are_told() -> None:
    """Nothing balances brokers then, but `balance.log_dirs` still holds, and what it misses has a reason."""
    rows = [{"window": "replicas", "why": "not asked"}, {"window": "log_dirs", "why": "a replica is larger"}]
    plan = typed(small(balance={"relaxed": rows}, changes={"rebalance": "none"}))

    assert ("log dirs (a replica is larger)",) == sentences.not_met(plan)


def test_a_target_that_hours_miss_is_told_with_the_worst_of_them() -> None:
    """If only hours miss a target, the worst hour is named; if the mean misses it too, no hour is named."""

    def missed(*hours: tuple[str | None, float]) -> str:
        return sentences.missed_in_hours(
            [row(RelaxedRow, {"window": "network_out", "hour": hour, "reached": found}) for hour, found in hours]
        )

    late, early = ("Monday 20:00", 12.5), ("Monday 09:00", 20.2)
    assert "missed: 20.2 % off share on Monday 09:00" == missed(late, early)
    assert "" == missed(late, (None, 9)) == missed()


def test_disks_are_shown_where_they_are_stated() -> None:
    """If some brokers state a disk, peaks have bytes and a percentage, and brokers without a disk have a dash."""
    document = with_disks()
    document["brokers"][0]["disk_bytes"] = None
    plan, without = typed(document), typed(small())

    assert sentences.states_disks(plan)
    assert ["–", "40.0 GB, 80 %"] == [sentences.broker_peak(row) for row in plan.brokers[:2]]
    assert "40.0 GB, 80 %, broker 3" == sentences.peak_disk(plan.batches[0])
    assert "40.0 GB, broker 3" == sentences.peak_disk(without.batches[0])
    assert not sentences.states_disks(without)


def test_disks_are_not_shown_without_sizes() -> None:
    """Without sizes, no disk is shown."""
    document = with_disks()
    document["cluster"]["sizes_known"] = False
    document["batches"][0]["fullest_broker"] = None
    plan = typed(document)

    assert not sentences.states_disks(plan)
    assert "–" == sentences.peak_disk(plan.batches[0])


def test_points_say_how_they_differ_from_the_plan() -> None:
    """A point says which windows, scenarios or variant differ from the plan's, or its strategy."""
    document = small()
    nothing, this, looser = document["pareto"]
    open_ended = {**looser, "balance": {**looser["balance"], "leaders": "1", "topic_replicas": "none"}}

    def origin(point: Document, **top: object) -> str:
        return sentences.origin(typed({**document, **top}), row(ParetoRow, point))

    assert ["unchanged", "the same targets", "replicas 5%, leaders 5%"] == [
        origin(point) for point in (nothing, this, looser)
    ]
    assert "replicas 5%, topic replicas none" == origin(open_ended)
    balance = {**document["balance"], "asked": {**document["balance"]["wanted"], "disk": "90%"}}
    assert f"the same targets with disk {balance['wanted']['disk']}" == origin(this, balance=balance)
    assert "scenarios all" == origin({**this, "scenarios": "all"}, scenarios=[{"name": "x", "feasible": True}])
    assert "six: unchanged" == origin({**nothing, "variant": "six"}, variants=[{"brokers": 1}])


@given(st.integers(2, 30), st.integers(2, 12))
def test_brokers_shown_are_both_ends_and_those_that_change(brokers: int, at_most: int) -> None:
    """Never more than asked for, sorted by id, with the fullest and the new one among them."""
    given_rows = (broker(n, "added" if n == 5 else "stays", (n, 1), (n * 7 % brokers, 1)) for n in range(brokers))
    rows = [row(BrokerRow, each) for each in given_rows]
    shown = sentences.fullest_and_emptiest(rows, at_most)
    ids = [each.id for each in shown]

    assert min(brokers, at_most) == len(shown)
    assert sorted(ids) == ids
    assert 5 in ids or brokers <= 5
    assert at_most < 4 or max(rows, key=lambda each: (each.after.replicas, -each.id)) in shown


@given(st.integers(1, 60), st.integers(2, 9), st.data())
def test_points_shown_hold_both_ends_and_the_chosen_one(points: int, at_most: int, data: st.DataObject) -> None:
    """In the front's order, never more than asked for."""
    chosen = data.draw(st.integers(0, points - 1))
    rows = [row(ParetoRow, {"candidate": at, "chosen": at == chosen}) for at in range(points)]
    shown = [each.candidate for each in sentences.spread_out(rows, at_most)]

    assert min(points, at_most) == len(shown)
    assert sorted(set(shown)) == shown
    assert chosen in shown
    assert shown[0] == 0
    assert shown[-1] == points - 1 or at_most == 2


@pytest.mark.slow
def test_the_huge_plan_is_huge() -> None:
    """The plan for the tests of size limits has 200,000 partitions."""
    assert 200_000 == len(huge()["partitions"])


def test_the_pace_names_the_throttle() -> None:
    """The pace has the batches' minimum time and the throttle, if a throttle and sizes are known."""
    plan = small()
    free = {"throttle_bytes_per_sec": None}

    assert "2 batches, at least 8 min at 50 MB/s per broker" == pace(typed(plan))
    assert "2 batches, not throttled" == pace(typed(plan | {"execution": free}))
    assert "2 batches, time unknown without sizes; throttled to 50 MB/s per broker" == pace(
        typed(plan | {"cluster": {"sizes_known": False}})
    )
    endless = [{**batch, "seconds_at_throttle": None} for batch in plan["batches"]]
    assert "2 batches; never complete at 50 MB/s per broker" == pace(typed(plan | {"batches": endless}))


def test_a_throttle_reads_as_it_was_written() -> None:
    """A throttle is shown in the unit that it was most likely written in, like limits and budgets."""
    plan = small()
    written = {50 * 2**20: "50 MiB/s", 125_000_000: "125 MB/s", 12_345_678: "12.3 MB/s"}
    for throttle, shown in written.items():
        assert pace(typed(plan | {"execution": plan["execution"] | {"throttle_bytes_per_sec": throttle}})).endswith(
            f" at {shown} per broker"
        )


def test_batches_that_wait_for_a_leader_are_counted() -> None:
    """Batches that wait for a leader are counted, and the time is that of copying all batches."""
    plan = small()
    batches: list[dict[str, Any]] = [*plan["batches"][:1], plan["batches"][1] | {"leaderless": True}]

    assert "2 batches (the last is skipped without leaders), at least 8 min at 50 MB/s per broker" == pace(
        typed(plan | {"batches": batches})
    )


def test_what_is_derived_is_shown_with_its_key() -> None:
    """Derived settings are shown with their keys, as the YAML takes them; there are none if the YAML states all."""
    rows = [
        {"key": "execution.throttle", "value": "50MB/s", "why": "a constant"},
        {"key": "execution.batches.duration", "value": "1h", "why": "a batch"},
    ]
    plan = {"execution": {"derived": rows}}

    assert "execution.throttle: 50MB/s (a constant); execution.batches.duration: 1h (a batch)" == derived(typed(plan))
    assert derived(typed(small())) == ""


def test_reasons_are_counted() -> None:
    """Reasons are counted, the most frequent first."""
    said = "2 partitions to balance replicas or bytes, 1 only to balance leaders"
    assert said == sentences.reasons(typed(small()))


def test_without_targets_partitions_move_for_the_caps_unless_a_rule_chose_them() -> None:
    """Without windows, only caps are a reason to move for balance, unless `sweep.choose` chose a more even plan."""
    plan = small()
    none = {"balance": {"asked": dict.fromkeys(plan["balance"]["asked"], "none")}}
    assert "2 partitions to keep the caps" in sentences.reasons(typed(small(**none)))
    chosen = {"choice": {"rule": "most_even_within_bytes", "value": 1}}
    assert "2 partitions to balance replicas or bytes" in sentences.reasons(typed(small(**none, **chosen)))

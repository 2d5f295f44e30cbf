"""Amounts and sentences for people."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_documents import GB, broker, huge, small, with_disks

from planner.model import formats
from planner.plan import headline
from planner.report import sentences


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (999_999, "1.00 MB"),
        (12_345_678, "12.3 MB"),
        (2**40, "1.10 TB"),
        (-1_500, "-1.50 kB"),
    ],
)
def test_sizes_are_decimal_with_three_digits(size_bytes: int | None, expected: str) -> None:
    """kB, MB, GB, TB in powers of ten, never mixed with KiB; whole bytes below 1 kB."""
    assert expected == formats.size(size_bytes)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0.0, "0 %"),
        (100, "100 %"),
        (2.314, "2.31 %"),
        (56.94, "56.9 %"),
        (1250.4, "1,250 %"),
        (0.001, "< 0.01 %"),
        (-0.001, "> −0.01 %"),
    ],
)
def test_percentages_have_three_digits(value: float | None, expected: str) -> None:
    """What is not nothing is never shown as 0 %."""
    assert expected == formats.percent(value)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3_599, "1 h"),
        (3_725, "1 h 2 min"),
        (90_061, "1 day 1 h"),
        (86_400 * 40, "40 days"),
    ],
)
def test_durations_have_two_units(seconds: int | None, expected: str) -> None:
    """Days are the largest unit: a plan for 40 days should look like one."""
    assert expected == formats.duration(seconds)


def test_amounts_follow_their_unit() -> None:
    """Bytes and percentages carry their unit; counts have it beside them."""
    assert "1.50 GB" == formats.amount(1.5 * GB, "bytes")
    assert "50.0 MB/s" == formats.amount(50_000_000, "bytes/s")
    assert ("9.13 %", "above share") == (formats.amount(9.13, "% above share"), formats.unit_of("% above share"))
    assert ("1,379", "replicas") == (formats.amount(1379, "replicas"), formats.unit_of("replicas"))
    assert "–" == formats.amount(None, "replicas")
    assert "" == formats.unit_of("bytes")


def test_counts_have_a_plural() -> None:
    """1 replica, 2 replicas, 2 batches."""
    assert ["1 replica", "1,200 replicas", "2 batches"] == [
        formats.counted(1, "replica"),
        formats.counted(1200, "replica"),
        formats.counted(2, "batch"),
    ]


@given(st.sets(st.integers(0, 40)))
def test_ranges_name_every_broker_once(brokers: set[int]) -> None:
    """Runs are joined, and reading them back gives the brokers."""
    parts = [part.split("–") for part in formats.ranges(brokers).split(", ") if part]

    assert brokers == {broker for part in parts for broker in range(int(part[0]), int(part[-1]) + 1)}
    assert sum(int(part[-1]) - int(part[0]) + 1 for part in parts) == len(brokers)


def test_control_characters_are_not_shown() -> None:
    """A rack named with an escape code can't paint the terminal, nor break a line."""
    assert "a�[31m�b" == formats.printable("a\x1b[31m\nb")
    assert "abc…" == formats.printable("abcde", 4)


def test_the_headline_compares_with_the_least() -> None:
    """The verdict has what is copied, how many leaders, and the distance from the proven least."""
    plan = small()
    far = {"least_bytes_moved": 20 * GB, "bytes_moved": 24 * GB, "gap_percent": 16.667, "proof": ""}

    assert "Copies 24.0 GB (2 replicas of 2 partitions) and elects 2 leaders: the proven least." == headline.headline(
        plan
    )
    assert ": within 16.7 % of the proven least." in headline.headline(plan | {"bound": far})
    unproven = {**far, "method": "none"}
    assert ": nobody knows how few bytes would do." in headline.headline(plan | {"bound": unproven})


@given(st.integers(1, 10**15), st.integers(0, 10**15))
def test_what_is_within_is_never_too_little(moved: int, least: int) -> None:
    """The gap that the verdict states is rounded up, and by less than a tenth of it but for the smallest."""
    least = min(moved - 1, least)
    bound = {"least_bytes_moved": least, "bytes_moved": moved, "proof": ""}
    said = headline.headline(small() | {"bound": bound}).split("within ")[1].split(" %")[0]
    gap = 100 * (moved - least) / moved

    assert gap <= float(said) * (1 + 1e-12)
    assert float(said) <= gap * 1.1 + 0.001


def test_why_a_plan_was_chosen() -> None:
    """The rule with its numbers, and the variant where it isn't `changes` itself."""
    choice = {"rule": "most_even_within_bytes", "value": 5, "variant": "six", "why": "the most even plan"}

    assert "variant six: the most even plan" == headline.chosen({"choice": choice})
    assert "the most even plan" == headline.chosen({"choice": {**choice, "variant": "changes"}})
    assert "Nothing to do: that is variant six: the most even plan." == headline.headline(
        small(partitions=[], choice=choice)
    )


def test_scenarios_name_the_brokers_that_fail() -> None:
    """Which window on which broker, with what is allowed; those beyond the third are counted."""
    row = {"window": "network_in", "broker": 3, "value": 1_000, "least": 2_000, "most": 3_000}
    full = {**row, "window": "disk_used", "value": 4 * GB, "most": 3 * GB}

    assert "x × 2: every window of bytes and every disk holds" == sentences.scenario(
        {"name": "x × 2", "feasible": True, "outside": []}
    )
    assert (
        "x × 2: network in 1.00 kB/s on broker 3, allowed at least 2.00 kB/s; "
        "disk used 4.00 GB on broker 3, allowed at most 3.00 GB"
        == sentences.scenario({"name": "x × 2", "feasible": False, "outside": [row, full]})
    )
    assert sentences.scenario({"name": "x", "feasible": False, "outside": [row] * 9}).endswith("; and 6 more")


def test_the_headline_without_sizes_or_moves() -> None:
    """No bytes are claimed where sizes are unknown, and no plan is a plan to do nothing."""
    plan = small()
    unknown = {**plan["cluster"], "sizes_known": False}
    reorder = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"][:1]]

    assert "Copies 2 replicas of 2 partitions (sizes unknown) and elects 2 leaders." == headline.headline(
        plan | {"cluster": unknown}
    )
    assert "Copies no data; changes 1 partition and elects 2 leaders." == headline.headline(
        plan | {"partitions": reorder}
    )
    still = plan | {"partitions": []}
    closer = "no allowed move brings the balance asked for any closer"
    assert f"Nothing to do: {closer}." == headline.headline(still)
    assert f"{closer} (rebalance: none)." in headline.headline(still | {"changes": {"rebalance": "none"}})
    even = still | {"balance": {**plan["balance"], "relaxed": []}}
    assert "Nothing to do: the cluster already is as asked." == headline.headline(even)


def test_a_row_is_as_asked_or_as_near_as_can_be() -> None:
    """Where windows can't hold no row is as asked; another variant has windows of its own."""
    plan = small()
    kept = {"left_to_change": 0, "moves_unforced": False, "balance_kept": True}
    plan["balance"]["relaxed"] = []
    assert "yes" == sentences.completes(plan, kept)
    plan["balance"]["relaxed"] = [{"window": "log_dirs"}]
    assert "yes" == sentences.completes(plan, kept)
    plan["balance"]["relaxed"].append({"window": "disk"})
    assert "nearest" == sentences.completes(plan, kept)
    assert "not even" == sentences.completes(plan, kept | {"balance_kept": False})
    assert "3 left" == sentences.completes(plan, kept | {"left_to_change": 3})
    plan["choice"] = {"variant": "a"}
    assert ["nearest", "yes"] == [sentences.completes(plan, kept | {"variant": name}) for name in ("a", "b")]


def test_the_state_counts_what_asks_for_a_look() -> None:
    """Limits, relaxed windows and warnings, each in a few words."""
    plan = small()
    crossed = [{"key": "limits.bytes_moved", "limit": 1, "value": 2}]
    calm = {"limits": [], "warnings": [], "balance": {"wanted": {}, "relaxed": []}}

    assert "Within all limits; 1 balance window relaxed; 1 warning." == headline.state(plan)
    assert "1 limit crossed; 1 balance window relaxed; 1 warning." == headline.state(plan | {"limits": crossed})
    assert "No limits set; balance as asked; no warnings." == headline.state(plan | calm)


def test_disks_are_shown_where_they_are_stated() -> None:
    """Bytes and their share of the disk; a broker without one among others that have one gets a dash."""
    plan = with_disks()
    plan["brokers"][0]["disk_bytes"] = None

    assert sentences.states_disks(plan)
    assert ["–", "40.0 GB, 80 %"] == [sentences.broker_peak(row) for row in plan["brokers"][:2]]
    assert "40.0 GB, 80 %, broker 3" == sentences.peak_disk(plan["batches"][0])
    assert "40.0 GB, broker 3" == sentences.peak_disk(small()["batches"][0])
    assert not sentences.states_disks(small())


def test_disks_are_not_shown_without_sizes() -> None:
    """Nobody knows how full they are."""
    plan = with_disks()
    plan["cluster"]["sizes_known"] = False

    assert not sentences.states_disks(plan)
    assert "–" == sentences.peak_disk({"fullest_broker": None})


def test_wishes_read_as_one_sentence() -> None:
    """Every kind of change; new brokers of one rack together; what is too much is counted."""
    wishes = {
        "add_brokers": [{"id": 7, "rack": "a"}, {"id": 8, "rack": "a"}, {"id": 9}],
        "remove_brokers": [3, 4],
        "replace_brokers": {"10": 11, "9": 12},
        "set_racks": {"5": "c"},
        "set_replication_factor": [{"topics": "orders-*", "replication_factor": 3}],
        "rebalance": "leaders",
    }

    assert (
        "add brokers 7–8 in rack a; add broker 9; remove brokers 3–4; replace broker 9 by 12; replace broker 10 by 11; "
        "set the rack of broker 5 to c; replication factor 3 for orders-*; rebalance: leaders"
        == sentences.wishes(wishes)
    )
    assert "add brokers 7–8 in rack a; and 7 more" == sentences.wishes(wishes, 1)


def test_reasons_are_counted() -> None:
    """Most first."""
    assert "balance replicas 2, balance leaders 1" == sentences.reasons(small())


def test_the_order_of_keys_does_not_show() -> None:
    """A stored plan has its keys sorted; every sentence reads the same as before."""
    plan = small()
    stored = json.loads(json.dumps(plan, sort_keys=True))

    assert [sentences.origin(plan, point) for point in plan["pareto"]] == [
        sentences.origin(stored, point) for point in stored["pareto"]
    ]


def test_points_say_how_they_differ_from_the_plan() -> None:
    """The windows that are others, the scenarios where there are any, the variant before; or the strategy."""
    plan = small()
    nothing, this, looser = plan["pareto"]
    open_ended = {**looser, "balance": {**looser["balance"], "leaders": "1", "topic_replicas": "none"}}
    scenarios = {"scenarios": [{"name": "x", "feasible": True, "outside": []}]}

    assert ["unchanged", "the same windows", "replicas 5%, leaders 5%"] == [
        sentences.origin(plan, point) for point in (nothing, this, looser)
    ]
    assert "replicas 5%, topic replicas none" == sentences.origin(plan, open_ended)
    assert "scenarios all" == sentences.origin(plan | scenarios, {**this, "scenarios": "all"})
    assert "six: unchanged" == sentences.origin(plan | {"variants": [{}]}, {**nothing, "variant": "six"})


@given(st.integers(2, 30), st.integers(2, 12))
def test_brokers_shown_are_both_ends_and_those_that_change(brokers: int, at_most: int) -> None:
    """Never more than asked for, sorted by id, with the fullest and the new one among them."""
    rows = [broker(n, "added" if n == 5 else "stays", (n, 1), (n * 7 % brokers, 1)) for n in range(brokers)]
    shown = sentences.fullest_and_emptiest(rows, at_most)
    ids = [row["id"] for row in shown]

    assert min(brokers, at_most) == len(shown)
    assert sorted(ids) == ids
    assert 5 in ids or brokers <= 5
    assert at_most < 4 or max(rows, key=lambda row: (row["after"]["replicas"], -row["id"])) in shown


@given(st.integers(1, 60), st.integers(2, 9), st.data())
def test_points_shown_hold_both_ends_and_the_chosen_one(points: int, at_most: int, data: st.DataObject) -> None:
    """In the front's order, never more than asked for."""
    chosen = data.draw(st.integers(0, points - 1))
    rows = [{"at": at, "chosen": at == chosen} for at in range(points)]
    shown = [row["at"] for row in sentences.spread_out(rows, at_most)]

    assert min(points, at_most) == len(shown)
    assert sorted(set(shown)) == shown
    assert chosen in shown
    assert shown[0] == 0
    assert shown[-1] == points - 1 or at_most == 2


@pytest.mark.slow
def test_the_huge_plan_is_huge() -> None:
    """The plan that the size bound is tested with has what it promises."""
    assert 200_000 == len(huge()["partitions"])

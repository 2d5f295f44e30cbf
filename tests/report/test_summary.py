"""The first part of every output of a plan: its facts and its measures."""

from __future__ import annotations

import pytest
from plan_documents import Document, typed
from report_documents import GB, broker, small, term, with_disks, with_traffic

from planner.report import summary, terminal

LEFT = {
    "limits": {"bytes_moved": 40 * GB, "replicas_moved": None, "leaders_changed": None},
    "partitions": 2,
    "brokers": [],
    "windows": [],
    "bytes_moved": 5 * GB,
    "replicas_moved": 2,
    "leaders_changed": 0,
    "steps_at_least": 1,
    "too_large": 0,
}


def facts(plan: Document) -> dict[str, str]:
    """The text of each fact, by label."""
    return {label: terminal.line(value) for label, value in summary.facts(typed(plan)).facts}


def measures(plan: Document) -> dict[str, tuple[str, ...]]:
    """Today, plan and limit of each measure, by name."""
    table = summary.measures(typed(plan))
    shown = [[terminal.line(column.value(row)) for column in table.columns] for row in table.rows]
    return {cells[0]: tuple(cell.removeprefix("[bold]").removesuffix("[/]") for cell in cells[1:]) for cells in shown}


def test_the_small_plan_is_told_in_facts() -> None:
    """The facts say what changes, what is proven, which broker is fullest, and how long it takes."""
    told = facts(small())

    assert told["Changes"] == (
        "2 partitions to balance replicas or bytes, 1 only to balance leaders; "
        "most copied: orders-0 1,2 → 4,2; orders-1 2,3 → 2,4"
    )
    assert (
        told["Proof"]
        == "no plan that comes as close to the targets and spreads replicas over the racks copies less than 24.0 GB"
    )
    assert told["Fullest broker"] == (
        "broker 1 (40.0 GB) today; broker 3 (40.0 GB) in batch 1; broker 2 (40.0 GB) after; "
        "disk sizes unknown: free space not checked"
    )
    assert told["Duration"].endswith("; broker 4 receives most, 24.0 GB in all")
    plan = small()
    plan["brokers"][0] |= {"bytes_out": 25 * GB}
    assert facts(plan)["Duration"].endswith("; broker 1 sends most, 25.0 GB in all")
    plan["brokers"][0]["before"] |= {"network_in": 10**6}
    written = " and, within the throttle, what producers write meanwhile"
    assert facts(plan)["Duration"].endswith(f"; broker 1 sends most, 25.0 GB in all{written}")
    plan["execution"]["throttle_bytes_per_sec"] = None
    assert "producers" not in facts(plan)["Duration"]


def test_todays_cluster_has_no_broker_that_only_comes() -> None:
    """A broker that joins doesn't count in today's cluster; the time of the capture is stated if it is known."""
    assert facts(small())["Cluster"] == (
        "orders-eu: 3 brokers in 1 rack (4 afterwards), 10 partitions, 120 GB, capture time unknown: no expiry"
    )
    until = {"captured_at": "2026-11-21T00:00:00Z", "valid_until": None}
    assert facts(small(validity=until))["Cluster"].endswith(", captured 2026-11-21T00:00:00Z")


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ({"method": "none"}, "none: the minimum is unknown"),
        ({"least_bytes_moved": 0}, "none above 0 B: a plan that copies less may exist"),
        ({"method": "target"}, "finishes an approved plan, whose target assignment needs all of these copies"),
        (
            {"excess": {"replicas": 0, "least_replicas": 0, "loads": 1, "least_loads": 1, "furthest": []}},
            "no plan that comes as close to the targets and spreads replicas over the racks copies less than 24.0 GB",
        ),
    ],
)
def test_the_proof_says_what_it_is_about(bound: Document, said: str) -> None:
    """The proof says what it covers: nothing, an approved target, or plans that miss the targets by as much."""
    plan = small()
    assert "Proof" not in facts(plan | {"bound": plan["bound"] | {"bytes_moved": 0, "least_bytes_moved": 0}})
    assert facts(plan | {"bound": plan["bound"] | bound})["Proof"] == said


def test_without_sizes_the_proof_counts_replicas() -> None:
    """Without sizes the proof counts replicas; zero bytes don't make it `nothing is copied`."""
    plan = small()
    unsized = plan | {"cluster": plan["cluster"] | {"sizes_known": False}}
    counted = unsized | {"bound": plan["bound"] | {"bytes_moved": 0, "least_bytes_moved": 0, "least_replicas_moved": 2}}
    said = "no plan that comes as close to the targets and spreads replicas over the racks copies fewer than 2 replicas"
    assert facts(counted)["Proof"] == said
    forced = counted | {"bound": counted["bound"] | {"method": "forced", "least_replicas_moved": None}}
    assert facts(forced)["Proof"] == "only what the changes require is copied"


def test_a_plan_without_rebalancing_is_proven_against_all_plans_of_its_changes() -> None:
    """Without a rebalance the bound ignores the targets, and so does its sentence."""
    plan = small()
    asked = plan | {"changes": plan["changes"] | {"rebalance": "none"}}
    assert facts(asked)["Proof"] == "no plan that makes these changes copies less than 24.0 GB"


def test_a_plan_that_copies_nothing_names_the_new_leaders() -> None:
    """If nothing is copied, the first new leaders are named and no bound is needed; Kafka's tool still copies."""
    plan = small()
    rows = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"]]
    told = facts(plan | {"partitions": rows})
    assert "; new leaders: orders-0 1 → 2; " in told["Changes"]
    assert told["Proof"] == "nothing is copied, so no plan copies less"
    assert told["Kafka's tool"].startswith("--generate would copy 70.0 GB")


def test_kafkas_own_tool_is_told_with_what_it_misses() -> None:
    """Kafka's best placement is shown with what it misses; without one, there is no such fact."""
    plan = small()
    assert "Kafka's tool" not in facts(plan | {"compared": plan["compared"][:2]})
    plan["compared"][2]["label"] = "Kafka --generate, best of 4,900"
    tried, copied, seeds = plan, "--generate would copy 70.0 GB", " (best of 4,900 simulated runs)"
    assert facts(tried)["Kafka's tool"] == f"{copied}, and 1 partition would not be as asked{seeds}"
    tried["compared"][2] |= {"left_to_change": 0, "balance_kept": False}
    assert facts(tried)["Kafka's tool"] == f"{copied} and be less even than this plan{seeds}"
    tried["compared"][2] |= {"moves_unforced": True}
    assert facts(tried)["Kafka's tool"] == f"{copied} and also move replicas that can stay{seeds}"
    tried["compared"][2] |= {"moves_unforced": False}
    step = tried | {"complete": False, "unfinished": LEFT}
    assert facts(step)["Kafka's tool"] == f"{copied} for the whole change and be less even than this step{seeds}"


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((None, None), "counted as empty"),
        ((5, 7), "with their stated sizes"),
        ((5, None), "with their stated sizes, others counted as empty"),
    ],
)
def test_new_partitions_count_with_what_is_stated_of_them(sizes: tuple[int | None, int | None], said: str) -> None:
    """New partitions count with their stated sizes; without a stated size they count as empty, and that is said."""
    new = {"topic": "n", "replicas": [[1, 2]], "replication_factor": 2, "partitions": 1, "replica_assignment": "1:2"}
    plan = small(new_partitions={"topics": [new], "compared": [{"label": "this plan", "placements": 1}]})
    plan["changes"] = plan["changes"] | {
        "create_topics": [{"name": "n", "partitions": 1, "replication_factor": 2, "size": sizes[0]}],
        "add_partitions": [{"topic": "x", "partitions": 9, "size": sizes[1]}],
    }
    assert facts(plan)["Fullest broker"].split("; ")[2].endswith(f" after, new partitions {said}")


def test_the_fullest_are_those_of_the_fullest_disk() -> None:
    """The fullest broker is chosen by percentage if all disks are stated, else by bytes, else by replicas."""
    plan = with_disks()
    plan["brokers"][2]["disk_bytes"] = 40 * GB
    assert facts(plan)["Fullest disk"].startswith("broker 3 (100 % full, 40.0 GB) today; ")
    assert facts(plan)["Fullest disk"].endswith("; broker 3 (97.5 % full, 39.0 GB) after")
    plan["cluster"]["sizes_known"] = False
    assert facts(plan)["Most replicas"] == "every broker (40) today and during the plan; broker 2 (40) after"


def test_the_peak_of_the_disks_is_named() -> None:
    """The peak is a percentage if disks are stated, else bytes."""
    plan = with_disks()
    plan["batches"][1]["fullest_broker"] = {"id": 7, "peak_size_bytes": 30 * GB, "disk_bytes": 33 * GB}

    assert "; broker 7 (90.9 % full, 30.0 GB) in batch 2; " in facts(plan)["Fullest disk"]
    assert "; broker 3 (40.0 GB) in batch 1; " in facts(small())["Fullest broker"]


def test_measures_run_from_the_lowest_broker_to_the_highest() -> None:
    """Measures go from the lowest to the highest broker, without brokers that aren't there at that time."""
    rows = measures(small())

    assert rows["replicas per broker"] == ("40", "2 to 40", "differ by at most 1")
    assert rows["bytes per broker"] == ("40.0 GB", "2.00 to 40.0 GB", "no target")
    assert rows["copied"] == ("", "24.0 GB", "at most 30 GB")
    leaving = small(brokers=[broker(1, "removed", (9, 3), (0, 0)), broker(2, "stays", (9, 3), (18, 6))])
    assert measures(leaving)["replicas per broker"] == ("9", "18", "differ by at most 1")


def test_traffic_is_measured_where_rates_are_known() -> None:
    """Traffic has measures only if rates are known."""
    assert measures(with_traffic())["network in per broker"] == ("60.0 MB/s", "3.00 to 60.0 MB/s", "no target")
    assert not [name for name in measures(small()) if "network" in name]


def test_limits_without_a_measure_have_rows_of_their_own() -> None:
    """Limits on time and disks have rows, in the unit that was written."""
    rows = measures(with_disks())

    assert rows["duration"] == ("", "8 min", "at most 1 h")
    assert rows["fullest disk"] == ("80 %", "80 %", "at most 90 % (default)")


def test_a_window_that_is_missed_says_so() -> None:
    """A missed window is marked beside its target."""
    plan = small()
    plan["balance"] |= {"missed": ["replicas"]}
    assert measures(plan)["replicas per broker"][2] == "differ by at most 1 (missed)"


def test_unlike_fair_shares_are_said() -> None:
    """If fair shares differ, as in small racks, the target states their range instead of one difference."""
    plan = small()
    plan["balance"] |= {"relaxed": [], "missed": []}
    plan["balance"]["wanted"] |= {"disk": "10%"}
    plan["balance"]["asked"] = plan["balance"]["wanted"]
    shares = [("disk", 2 * GB, 39 * GB), ("replicas", 3, 8)]
    plan["balance"]["shares"] = [{"window": name, "least": least, "most": most} for name, least, most in shares]
    found = measures(plan)
    assert found["bytes per broker"][2] == "within 10 % of shares of 2.00 to 39.0 GB"
    assert found["replicas per broker"][2] == "within 1 of shares of 3 to 8"
    plan["balance"]["missed"] = ["replicas"]
    assert measures(plan)["replicas per broker"][2] == "differ by at most 1 (missed, with shares of 3 to 8)"
    plan["balance"]["missed"] = ["replicas", "topic_replicas"]
    for row in plan["brokers"]:
        row["disk_bytes"] = row["id"] * GB
    plan["terms"] = [*plan["terms"], term("fairness", "topic_replica_spread", "replicas", 4, 3, 0)]
    found = measures(plan)
    assert found["replicas per broker"][2] == "within 1 of shares of 3 to 8 (missed)"
    assert found["replicas of one topic"][2] == "within 1 of its share (missed)"
    plan["balance"] |= {"missed": [], "shares": []}
    assert measures(plan)["replicas per broker"][2] == "within 1 of its share", "of disks that are nearly alike"


def test_leaders_alone_are_measured_where_they_alone_may_change() -> None:
    """If only leaders may change, only leaders are measured per broker."""
    plan = small()
    rows = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"]]
    only = plan | {"partitions": rows, "changes": plan["changes"] | {"rebalance": "leaders"}}
    assert [name for name in measures(only) if "per broker" in name] == ["leaders per broker"]


def test_failures_are_measured_where_they_change() -> None:
    """Failures are measured only if their count changes."""
    offline = term("resilience", "broker_offline", "partitions", 1, 0, None)
    still = term("resilience", "rack_offline", "partitions", 1, 1, None)
    rows = measures(small(terms=[offline, still]))

    assert rows["offline if a broker fails"] == ("1", "0", "")
    assert "offline partitions if the worst rack fails" not in rows


def test_a_log_dir_with_an_error_is_outside_no_target() -> None:
    """A log dir with an error has no target, and is never the fullest."""

    def log_dir(path: str, before: int, after: int, error: str | None = None) -> Document:
        load = {"before": {"replicas": 1, "size_bytes": before}, "after": {"replicas": 1, "size_bytes": after}}
        window = {"least_bytes": None, "most_bytes": None} if error else {"least_bytes": 45, "most_bytes": 55}
        return {"path": path, "error": error, "disk_bytes": 100, "bytes_in": 0, "bytes_out": 0, **window, **load}

    dirs = [log_dir("/a", 60, 50), log_dir("/b", 40, 50), log_dir("/c", 9, 9, "KafkaStorageException")]
    moved = {"bytes_moved": 10, "least_bytes_moved": 10}
    brokers = [{"id": 1, "within": True, "log_dirs": dirs, **moved}]
    rest = {"wanted": "10%", "gap_percent": 0.0, "replicas_moved": 1, "left_out": [], "moves": []}

    rows = measures(small(log_dirs={"brokers": brokers, **moved, **rest}))
    asked = measures(small(log_dirs={"brokers": brokers, **moved, **rest}, changes={"rebalance": "none"}))
    assert rows["log dirs outside target"] == asked["log dirs outside target"]

    assert ("2", "0", "0, within 10 % of share") == rows["log dirs outside target"]
    assert ("60 %", "50 %", "") == rows["fullest log dir"]


def test_without_targets_no_balance_is_asked_for() -> None:
    """Without targets, as `planner drain` writes it, the words name the rules or caps instead of a balance."""
    plan = small()
    plan["balance"]["asked"] = dict.fromkeys(plan["balance"]["asked"], "none")
    assert facts(plan)["Asked for"].endswith("; keep the rules (no balance targets)")
    plan["brokers"][0]["max_replicas"] = 9
    assert facts(plan)["Asked for"].endswith("; keep the caps (no balance targets)")


def test_a_tool_that_is_more_even_is_said_to_be() -> None:
    """If the plan misses targets, the worst broker decides which is more even; else keeping the targets decides."""
    plan = small()
    this, kafkas = plan["compared"][1:3]
    assert "this plan" == this["label"]
    this["balance_kept"], kafkas["left_to_change"] = False, 0
    kafkas |= {"balance_kept": False, "imbalance_percent": this["imbalance_percent"] / 2}
    assert " and be more even than this plan" in facts(plan)["Kafka's tool"]
    kafkas["imbalance_percent"] = 2 * this["imbalance_percent"] + 1
    assert " and be less even than this plan" in facts(plan)["Kafka's tool"]
    kafkas["balance_kept"] = True
    assert " and be more even than this plan" in facts(plan)["Kafka's tool"]
    this["balance_kept"] = True
    assert "than this plan" not in facts(plan)["Kafka's tool"]


def test_a_limit_on_failures_counts_partitions() -> None:
    """A limit on failures counts partitions, in the singular or plural."""
    gates = [{"key": f"limits.{of}_offline", "limit": count, "value": 0} for of, count in (("broker", 1), ("rack", 2))]
    rows = measures(small(limits=gates))

    assert ["at most 1 partition", "at most 2 partitions"] == [
        rows[f"offline if a {of} fails"][2] for of in ("broker", "rack")
    ]

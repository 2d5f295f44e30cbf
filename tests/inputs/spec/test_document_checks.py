"""Checks that need only the YAML: brokers, racks, log dirs, limits, variants, scenarios, and validity."""

from __future__ import annotations

from pathlib import Path

from bad_balance_specs import CLASSES, brokers, sweep, variants
from bad_change_specs import CAPACITIES
from bad_cluster_specs import FROM_FILES, SOUND, Case, after, assert_only_finding, each, line
from small_specs import SMALL, spec_of

DISK_USED = "limits: {disk_used: 80%}\n"
NO_SIZES = line(10, "        - {replicas: [2, 3, 1]}", line(9, "        - {replicas: [1, 2, 3]}"))


CASES: list[Case] = [
    # cluster
    ("broker_twice", line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 2}]"), "4:41 cluster.brokers[3].id", "twice"),
    (
        "some_racks",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2}, {id: 3, rack: c}]"),
        "4:31 cluster.brokers[1].rack",
        "broker 2 has no rack, but others have",
    ),
    # where the topics come from
    ("no_topics", "".join(SOUND.splitlines(True)[:4]), "2:1 cluster", "neither state nor topics"),
    (
        "both_sources",
        line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}]\n  state: {assignment: x.txt}"),
        "6:3 cluster.topics",
        "both state and topics",
    ),
    (
        "state_empty",
        line(5, "  state: {}", FROM_FILES),
        "5:3 cluster.state.assignment",
        "is missing",
    ),
    # brokers to add, remove and replace
    (
        "add_known",
        after("changes:\n  add_brokers:\n    - id: 3\n      rack: c\n"),
        "13:7 changes.add_brokers[0].id",
        "3 is a broker of the cluster already; allowed: an id that cluster.brokers doesn't use",
    ),
    (
        "add_twice",
        after("changes: {add_brokers: [{id: 7, rack: a}, {id: 7, rack: b}]}\n"),
        "11:44 changes.add_brokers[1].id",
        "7 is added twice",
    ),
    (
        "add_and_remove",
        after("changes: {add_brokers: [{id: 7, rack: a}], remove_brokers: [7]}\n"),
        "11:26 changes.add_brokers[0].id",
        "7 is removed too",
    ),
    (
        "add_without_rack",
        after("changes: {add_brokers: [{id: 7}]}\n"),
        "11:25 changes.add_brokers[0].rack",
        "broker 7 has no rack, but others have",
    ),
    (
        "remove_unknown",
        after("changes: {remove_brokers: [9]}\n"),
        "11:28 changes.remove_brokers[0]",
        "allowed: 1, 2, 3",
    ),
    (
        "remove_all",
        after("changes: {remove_brokers: [1, 2, 3]}\n"),
        "11:11 changes.remove_brokers",
        "no broker is left",
    ),
    (
        "replace_unknown",
        after("changes: {replace_brokers: {8: 9}}\n"),
        "11:29 changes.replace_brokers.8",
        "8 isn't a broker of the cluster; allowed: 1, 2, 3",
    ),
    (
        "replace_itself",
        after("changes: {replace_brokers: {3: 3}}\n"),
        "11:29 changes.replace_brokers.3",
        "3 leaves the cluster itself",
    ),
    (
        "replace_by_one_that_leaves",
        after("changes: {add_brokers: [{id: 7, rack: a}], remove_brokers: [2], replace_brokers: {3: 2}}\n"),
        "11:83 changes.replace_brokers.3",
        "2 leaves the cluster itself",
    ),
    (
        "replace_and_remove",
        after("changes: {remove_brokers: [3], replace_brokers: {3: 9}}\n"),
        "11:50 changes.replace_brokers.3",
        "3 is removed too",
    ),
    (
        "replace_two_by_one",
        after("changes: {replace_brokers: {2: 9, 3: 9}}\n"),
        "11:35 changes.replace_brokers.3",
        "9 replaces another broker already",
    ),
    (
        "replacement_without_rack",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3}]") + "changes: {replace_brokers: {3: 9}}\n",
        "11:29 changes.replace_brokers.3",
        "broker 9 gets no rack from broker 3",
    ),
    ("rack_of_unknown", after("changes: {set_racks: {9: a}}\n"), "11:23 changes.set_racks.9", "allowed: 1, 2, 3"),
    # disks
    (
        "disk_used_without_disk",
        line(4, CAPACITIES.replace(", capacity: {disk: 2TiB}", "")) + DISK_USED,
        "4:55 cluster.brokers[1].capacity",
        "broker 2 has no capacity.disk, which limits.disk_used needs; allowed: capacity.disk for every broker",
    ),
    (
        "disk_used_with_an_empty_capacity",
        line(4, CAPACITIES.replace("{disk: 2TiB}", "{}")) + DISK_USED,
        "4:72 cluster.brokers[1].capacity",
        "broker 2 has no capacity.disk",
    ),
    (
        "disk_used_without_disk_of_an_added_broker",
        line(4, CAPACITIES) + "changes: {add_brokers: [{id: 7, rack: a}]}\n" + DISK_USED,
        "11:25 changes.add_brokers[0].capacity",
        "broker 7 has no capacity.disk",
    ),
    (
        "disk_used_without_disk_of_a_replacement",
        line(4, CAPACITIES.replace(", capacity: {disk: 2TiB}", ""))
        + "changes: {replace_brokers: {2: 9}}\n"
        + DISK_USED,
        "11:29 changes.replace_brokers.2",
        "broker 9 gets no capacity.disk from broker 2",
    ),
    # log dirs
    (
        "log_dirs_without_sizes",
        line(9, "        - {replicas: [1, 2, 3]}").replace(", size: 12GiB", "") + "balance: {log_dirs: 10%}\n",
        "11:11 balance.log_dirs",
        "'10%' can't be judged without sizes",
    ),
    # capacities and classes
    (
        "class_unknown",
        brokers("{id: 1, rack: a, class: huge}", CLASSES),
        "4:30 cluster.brokers[0].class",
        "'huge' isn't in cluster.broker_classes; allowed: big",
    ),
    (
        "class_without_classes",
        after("changes: {add_brokers: [{id: 7, rack: a, class: big}]}\n"),
        "11:42 changes.add_brokers[0].class",
        "allowed: none, as cluster.broker_classes is empty",
    ),
    (
        "class_and_capacity",
        brokers("{id: 1, rack: a, class: big, capacity: {disk: 1TB}}", CLASSES),
        "4:30 cluster.brokers[0].class",
        "both class and capacity say what the broker can hold; allowed: one of them",
    ),
    # targets for bytes
    (
        "disk_without_sizes",
        NO_SIZES + "balance: {disk: 5%}\n",
        "11:11 balance.disk",
        "'5%' can't be judged without sizes; allowed: sizes for every partition (cluster.state.sizes",
    ),
    (
        "network_in_without_rates",
        after("balance: {network_in: 5%}\n"),
        "11:11 balance.network_in",
        "'5%' can't be judged without rates; allowed: rates (cluster.rates, cluster.load, or bytes_in and bytes_out",
    ),
    (
        "network_in_of_consumers_alone",
        line(9, "        - {replicas: [1, 2, 3], bytes_out: 3MB/s}") + "balance: {network_in: 5%}\n",
        "11:11 balance.network_in",
        "without rates",
    ),
    ("network_out_without_rates", after("balance: {network_out: 5%}\n"), "11:11 balance.network_out", "without rates"),
    (
        "grid_disk_without_sizes",
        NO_SIZES + "sweep: {balance: {disk: [none, 2%]}}\n",
        "11:32 sweep.balance.disk[1]",
        "'2%' can't be judged without sizes",
    ),
    (
        "grid_network_without_rates",
        sweep("balance: {network_out: [2%]}"),
        "11:33 sweep.balance.network_out[0]",
        "'2%' can't be judged without rates",
    ),
    # budget
    (
        "budget_without_sizes",
        NO_SIZES + "budget: {bytes_moved: 1TiB}\n",
        "11:10 budget.bytes_moved",
        "'1TiB' can't be judged without sizes",
    ),
    # aims and choice
    (
        "choose_without_sizes",
        NO_SIZES + "sweep: {choose: {most_even_within_bytes: 1TiB}}\n",
        "11:18 sweep.choose.most_even_within_bytes",
        "'1TiB' can't be judged without sizes",
    ),
    # variants
    (
        "variant_twice",
        variants("    - {name: b, changes: {}}\n    - {name: b, changes: {}}"),
        "14:8 sweep.variants[1].name",
        "'b' is here twice; allowed: a name for each",
    ),
    (
        "variant_called_changes",
        variants("    - {name: changes, changes: {}}"),
        "13:8 sweep.variants[0].name",
        "'changes' is the name of the plan for the key changes; allowed: another name",
    ),
    (
        "variant_removes_unknown",
        variants("    - {name: b, changes: {remove_brokers: [8]}}"),
        "13:44 sweep.variants[0].changes.remove_brokers[0]",
        "8 isn't a broker of the cluster; allowed: 1, 2, 3",
    ),
    (
        "variant_adds_known",
        variants("    - {name: b, changes: {add_brokers: [{id: 3, rack: c}]}}"),
        "13:42 sweep.variants[0].changes.add_brokers[0].id",
        "3 is a broker of the cluster already",
    ),
    (
        "variant_class",
        variants("    - {name: b, changes: {add_brokers: [{id: 7, rack: c, class: big}]}}"),
        "13:58 sweep.variants[0].changes.add_brokers[0].class",
        "'big' isn't in cluster.broker_classes",
    ),
    (
        "variant_moves_what_may_not",
        variants("    - {name: b, changes: {replace_brokers: {1: 9}}}") + "topics: {exclude: [orders]}\n",
        "14:20 topics.exclude[0]",
        "have replicas of topic orders, which may not move; allowed: let them move (in sweep.variants[0].changes)",
    ),
    # scenarios
    (
        "growth_twice",
        sweep('scenarios: {growth: [{topics: "o*", factor: 2}, {topics: "o*", factor: 2.0}]}'),
        "11:57 sweep.scenarios.growth[1].name",
        "'o* × 2' is here twice",
    ),
    (
        "growth_without_sizes",
        NO_SIZES + 'sweep: {scenarios: {growth: [{topics: "o*", factor: 2}]}}\n',
        "11:21 sweep.scenarios.growth",
        "can't be judged without sizes or rates",
    ),
    # durations
    (
        "eta_without_throttle",
        after("limits: {eta: 6h}\nexecution: {throttle: none}\n"),
        "11:10 limits.eta",
        "'6h' can't be judged with execution.throttle: none; allowed: a throttle, or no such limit",
    ),
    # balance, limits, sweep, execution
    (
        "limit_without_size",
        line(9, "        - {replicas: [1, 2, 3]}") + "limits: {cross_rack_bytes: 2TiB}\n",
        "11:10 limits.cross_rack_bytes",
        "'2TiB' can't be judged with 1 partition without a size; allowed: sizes for every partition (",
    ),
    *(
        (
            f"limit_without_racks_{key}",
            line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}]") + f"limits: {{{key}: 0}}\n",
            f"11:10 limits.{key}",
            "0 can't be judged, no broker has a rack; allowed: racks, or no such limit",
        )
        for key in ("cross_rack_bytes", "rack_offline", "rack_refused")
    ),
    # log dirs
    (
        "log_dir_twice",
        line(4, "  brokers: [{id: 1, log_dirs: [/d1, /d1]}, {id: 2}, {id: 3}]"),
        "4:37 cluster.brokers[0].log_dirs[1]",
        "'/d1' is here twice; allowed: each log dir once",
    ),
    (
        "log_dirs_sized_in_part",
        line(4, "  brokers: [{id: 1, log_dirs: [/d1, {path: /d2, size: 1TB}]}, {id: 2}, {id: 3}]"),
        "4:21 cluster.brokers[0].log_dirs",
        "broker 1 states a size for 1 of 2 log dirs; allowed: a size for all, or for none",
    ),
    (
        "log_dirs_of_replicas",
        line(9, "        - {replicas: [1, 2, 3], size: 12GiB, log_dirs: [/d1]}"),
        "9:46 cluster.topics[0].partitions[0].log_dirs",
        "1 log dirs for 3 replicas; allowed: one for each, in order",
    ),
    (
        "log_dirs_unknown",
        after("balance: {log_dirs: 10%}\n"),
        "11:11 balance.log_dirs",
        "'10%' can't be judged: no log dir is known; allowed: log_dirs on brokers",
    ),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)


def test_a_leaving_broker_needs_no_rack(tmp_path: Path) -> None:
    """A broker to be removed needs no rack, because it won't hold replicas."""
    text = SMALL.replace("{id: 3, rack: c}", "{id: 3}") + "changes: {remove_brokers: [3]}\n"
    assert (3,) == spec_of(tmp_path, text).changes.remove_brokers

"""Specs whose wish is wrong, or asks for more than this release does; data for test_spec_bad_input."""

from __future__ import annotations

from bad_cluster_specs import Case, after, line

CAPACITIES = (
    "  brokers: [{id: 1, rack: a, capacity: {disk: 4TiB}}, "
    "{id: 2, rack: b, capacity: {disk: 2TiB}}, {id: 3, rack: c, capacity: {disk: 4TiB}}]"
)
DISK_USED = "limits: {disk_used: 80%}\n"

# As in bad_cluster_specs.
CHANGE_CASES: list[Case] = [
    # brokers that come and go
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
        "add_with_no_log_dir",
        after("changes: {add_brokers: [{id: 7, rack: a, log_dirs: []}]}\n"),
        "11:42 changes.add_brokers[0].log_dirs",
        "an empty list isn't possible here; allowed: at least one item",
    ),
    (
        "remove_unknown",
        after("changes: {remove_brokers: [9]}\n"),
        "11:28 changes.remove_brokers[0]",
        "allowed: 1, 2, 3",
    ),
    (
        "remove_twice",
        after("changes: {add_brokers: [{id: 7, rack: a}], remove_brokers: [3, 3]}\n"),
        "11:64 changes.remove_brokers[1]",
        "3 is here twice",
    ),
    ("remove_scalar", after("changes: {remove_brokers: 3}\n"), "11:11 changes.remove_brokers", "allowed: a list"),
    (
        "remove_too_many",
        after("changes: {remove_brokers: [3]}\n"),
        "11:11 changes.remove_brokers",
        "2 brokers that stay or join are too few for 3 replicas of topic orders",
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
        "replace_key_text",
        after("changes: {replace_brokers: {b3: 9}}\n"),
        "11:29 changes.replace_brokers.b3",
        "'b3' isn't possible here; allowed: a broker's id, such as 4",
    ),
    (
        "replace_value_text",
        after("changes: {replace_brokers: {3: nine}}\n"),
        "11:29 changes.replace_brokers.3",
        "'nine' isn't possible here",
    ),
    (
        "replacement_without_rack",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3}]") + "changes: {replace_brokers: {3: 9}}\n",
        "11:29 changes.replace_brokers.3",
        "broker 9 gets no rack from broker 3",
    ),
    ("rack_of_unknown", after("changes: {set_racks: {9: a}}\n"), "11:23 changes.set_racks.9", "allowed: 1, 2, 3"),
    ("rack_set_to_no", after("changes: {set_racks: {3: no}}\n"), "11:23 changes.set_racks.3", "false (YAML reads"),
    # replication factors
    (
        "factor_too_high",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 4}]}\n"),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "4 replicas need 4 brokers; allowed: at most the 3",
    ),
    (
        "factor_below_min_insync",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n"),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "1 is below min.insync.replicas of orders (2, its own): writes with acks=all would be refused; allowed: 2 or",
    ),
    (
        "factor_below_inherited_min_insync",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n").replace(
            "  topics:\n    - name: orders\n      config: {min.insync.replicas: 2}\n",
            "  config_defaults: {min.insync.replicas: 2}\n  topics:\n    - name: orders\n",
        ),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "1 is below min.insync.replicas of orders (2, inherited from the brokers): writes with acks=all would",
    ),
    (
        "factor_below_min_insync_of_unknown_origin",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 1}]}\n").replace(
            "      config:", "      effective_config:"
        ),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "(2, its own or inherited): writes with acks=all would be refused; allowed: 2 or more; or lower "
        "min.insync.replicas first, kafka-configs.sh --alter --entity-type topics --entity-name orders --add-config "
        "min.insync.replicas=1, or Terraform, and capture the state anew",
    ),
    (
        "config_of_a_change",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 3, min_insync_replicas: 2}]}\n"),
        "11:76 changes.set_replication_factor[0].min_insync_replicas",
        "unknown key; no plan changes the configuration of a topic that exists, min.insync.replicas included: do so "
        "once the plan is carried out, with kafka-configs.sh --alter --entity-type topics --entity-name TOPIC",
    ),
    (
        "configs_as_a_change",
        after("changes: {set_configs: {orders: {retention.ms: 5}}}\n"),
        "11:11 changes.set_configs",
        "no plan changes the configuration of a topic that exists",
    ),
    (
        "factor_zero",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 0}]}\n"),
        "11:53 changes.set_replication_factor[0].replication_factor",
        "from 1 to 32767",
    ),
    (
        "factor_matches_nothing",
        after('changes: {set_replication_factor: [{topics: "order", replication_factor: 2}]}\n'),
        "11:37 changes.set_replication_factor[0].topics",
        "'order' matches no topic; did you mean 'orders'? allowed: a pattern that matches some of orders",
    ),
    (
        "factor_twice",
        after(
            'changes:\n  set_replication_factor:\n    - {topics: "*", replication_factor: 2}\n'
            "    - {topics: orders, replication_factor: 3}\n"
        ),
        "14:24 changes.set_replication_factor[1].replication_factor",
        "3 for orders, which another entry gives 2",
    ),
    (
        "factor_of_excluded",
        after(
            'changes: {set_replication_factor: [{topics: "*", replication_factor: 2}]}\ntopics: {exclude: ["ord*"]}\n'
        ),
        "11:37 changes.set_replication_factor[0].topics",
        "topic orders may not move by the filter in topics",
    ),
    (
        "rebalance_word",
        after("changes: {rebalance: some}\n"),
        "11:11 changes.rebalance",
        "'some' isn't possible here; allowed: all, leaders, none",
    ),
    ("rebalance_no", after("changes: {rebalance: no}\n"), "11:11 changes.rebalance", "allowed: all, leaders, none"),
    # which topics may move
    (
        "include_matches_nothing",
        after("topics: {include: [orders, clicks]}\n"),
        "11:28 topics.include[1]",
        "'clicks' matches no topic",
    ),
    (
        "exclude_matches_nothing",
        after('topics: {exclude: ["ordres"]}\n'),
        "11:20 topics.exclude[0]",
        "'ordres' matches no topic; did you mean 'orders'?",
    ),
    (
        "exclude_in_other_capitals",
        after('topics: {exclude: ["Orders*"]}\n'),
        "11:20 topics.exclude[0]",
        "'Orders*' matches no topic; did you mean 'orders'?",
    ),
    (
        "growth_matches_nothing",
        after("growth: [{topics: orders, per_month: 5%}, {topics: 'log-*', per_month: 1%}]\n"),
        "11:44 growth[1].topics",
        "'log-*' matches no topic; allowed: a pattern that matches some of orders",
    ),
    ("include_empty", after("topics: {include: []}\n"), "11:10 topics.include", "at least one item"),
    (
        "excluded_on_leaving_broker",
        after('changes: {replace_brokers: {3: 9}}\ntopics: {exclude: ["or?ers", "ord*"]}\n'),
        "12:20 topics.exclude[0]",
        "topic orders may not move, with replicas on brokers that leave",
    ),
    ("rack_aware_word", after("rack_aware: false\n"), "11:1 rack_aware", "allowed: enforced, disabled"),
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
    ("disk_used_number", line(4, CAPACITIES) + "limits: {disk_used: 80}\n", "11:10 limits.disk_used", "up to 100%"),
    (
        "disk_used_beyond_the_disk",
        line(4, CAPACITIES) + "limits: {disk_used: 100.5%}\n",
        "11:10 limits.disk_used",
        "'100.5%' isn't possible here; allowed: a percentage above 0% and up to 100%, such as 80%",
    ),
    (
        "disk_used_nothing",
        line(4, CAPACITIES) + "limits: {disk_used: 0.00%}\n",
        "11:10 limits.disk_used",
        "'0.00%' isn't possible here; allowed: a percentage above 0%",
    ),
    (
        "disk_unit",
        line(4, CAPACITIES.replace("2TiB", "2Tb")),
        "4:83 cluster.brokers[1].capacity.disk",
        "'2Tb' has an unknown unit 'Tb'",
    ),
    ("disk_zero", line(4, CAPACITIES.replace("2TiB", "0")), "4:83 cluster.brokers[1].capacity.disk", "0 is below 1"),
    (
        "capacity_typo",
        line(4, CAPACITIES.replace("{disk: 2TiB}", "{disks: 2TiB}")),
        "4:83 cluster.brokers[1].capacity.disks",
        "did you mean 'disk'? allowed: disk, network",
    ),
    # rates
    (
        "rate_matches_nothing",
        line(3, '  name: demo\n  rates: [{topics: "ord*", bytes_in: 1MB/s}, {topics: clicks, bytes_in: 1MB/s}]'),
        "4:47 cluster.rates[1].topics",
        "'clicks' matches no topic; allowed: a pattern that matches some of orders",
    ),
    (
        "rate_unit",
        line(3, '  name: demo\n  rates: [{topics: "*", bytes_in: 20MB}]'),
        "4:25 cluster.rates[0].bytes_in",
        "'20MB' isn't a rate: its unit is 'MB'; allowed: a rate such as 50MB/s",
    ),
    (
        "rate_missing",
        line(3, '  name: demo\n  rates: [{topics: "*"}]'),
        "4:11 cluster.rates[0].bytes_in",
        "is missing; allowed: bytes a second that producers write",
    ),
    (
        "bytes_in_size",
        line(9, "        - {replicas: [1, 2], bytes_in: 3MB}"),
        "9:30 cluster.topics[0].partitions[0].bytes_in",
        "'3MB' isn't a rate",
    ),
    # how long
    (
        "eta_without_throttle",
        after("limits: {eta: 6h}\nexecution: {throttle: none}\n"),
        "11:10 limits.eta",
        "'6h' can't be judged with execution.throttle: none; allowed: a throttle, or no such limit",
    ),
    (
        "eta_rate",
        after("limits: {eta: 6MB/s}\nexecution: {throttle: 1MB/s}\n"),
        "11:10 limits.eta",
        "'6MB/s' isn't a duration: its unit is 'MB/s'; allowed: a duration such as 6h, 90min, 2d",
    ),
    ("eta_clock", after("limits: {eta: 6:30}\n"), "11:10 limits.eta", "'6:30' isn't an amount; allowed: a duration"),
    ("eta_zero", after("limits: {eta: 0min}\n"), "11:10 limits.eta", "'0min' is below 1; allowed: a duration"),
    (
        "eta_broken_throttle",
        after("limits: {eta: 6h}\nexecution: {throttle: 1MB}\n"),
        "12:13 execution.throttle",
        "'1MB' isn't a rate",
    ),
    # balance, limits, sweep, execution
    ("balance_negative", after("balance: {replicas: -1}\n"), "11:11 balance.replicas", "-1 isn't possible here"),
    (
        "balance_blank",
        after("balance: {leaders: 5 %}\n"),
        "11:11 balance.leaders",
        "a percentage or none, such as 1, 5%",
    ),
    ("balance_float", after("balance: {leaders: 1.5}\n"), "11:11 balance.leaders", "1.5 isn't possible here"),
    ("balance_typo", after("balance: {leader: 1}\n"), "11:11 balance.leader", "did you mean 'leaders'?"),
    ("limit_negative", after("limits: {replicas_moved: -1}\n"), "11:10 limits.replicas_moved", "from 0"),
    ("limit_unit", after("limits: {bytes_moved: 2TiB/s}\n"), "11:10 limits.bytes_moved", "'2TiB/s' isn't a size"),
    ("limit_count_text", after("limits: {leaders_changed: 5%}\n"), "11:10 limits.leaders_changed", "a whole number"),
    ("limit_gap_number", after("limits: {gap: 0.5}\n"), "11:10 limits.gap", "from 0% to 100%, such as 0.5%"),
    ("limit_gap_beyond", after("limits: {gap: 100.5%}\n"), "11:10 limits.gap", "a percentage from 0% to 100%"),
    ("limit_worst", after("limits: {worst_rack: 1}\n"), "11:10 limits.worst_rack", "rack_offline, rack_refused, gap"),
    ("limit_rack_negative", after("limits: {rack_offline: -1}\n"), "11:10 limits.rack_offline", "from 0"),
    (
        "limit_without_size",
        line(9, "        - {replicas: [1, 2, 3]}") + "limits: {cross_rack_bytes: 2TiB}\n",
        "11:10 limits.cross_rack_bytes",
        "'2TiB' can't be judged with 1 partition without a size; allowed: sizes for every partition (",
    ),
    *(
        (
            f"limit_without_racks_{key}",
            line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}]") + f"limits: {{{key}: 1}}\n",
            f"11:10 limits.{key}",
            "1 can't be judged, no broker has a rack; allowed: racks, or no such limit",
        )
        for key in ("cross_rack_bytes", "rack_offline", "rack_refused")
    ),
    ("candidates_zero", after("sweep: {candidates: 0}\n"), "11:9 sweep.candidates", "from 2 to"),
    ("seed_text", after("sweep: {seed: lucky}\n"), "11:9 sweep.seed", "'lucky' isn't possible here"),
    ("grid_scalar", after("sweep: {balance: {replicas: 1}}\n"), "11:19 sweep.balance.replicas", "allowed: a list"),
    (
        "grid_value",
        after("sweep: {balance: {replicas: [1, 5, many]}}\n"),
        "11:36 sweep.balance.replicas[2]",
        "'many' isn't possible here",
    ),
    ("throttle_zero", after("execution: {throttle: 0}\n"), "11:13 execution.throttle", "0 is below 1"),
    ("throttle_size", after("execution: {throttle: 50MB}\n"), "11:13 execution.throttle", "'50MB' isn't a rate"),
    ("throttle_bits", after("execution: {throttle: 1Gb/s}\n"), "11:13 execution.throttle", "unknown unit 'Gb/s'"),
    (
        "batch_bytes_zero",
        after("execution: {batches: {bytes: 0MB}}\n"),
        "11:23 execution.batches.bytes",
        "'0MB' is below 1",
    ),
    (
        "batch_moves_zero",
        after("execution: {batches: {moves_per_broker: 0}}\n"),
        "11:23 execution.batches.moves_per_broker",
        "0 isn't possible here; allowed: a whole number from 1, or none",
    ),
    (
        "throttle_off",
        after("execution: {throttle: unlimited}\n"),
        "11:13 execution.throttle",
        "'unlimited' isn't an amount; allowed: a rate such as 50MB/s, 12MiB/s, 1Gbit/s, or a whole number of bytes a "
        "second; or none",
    ),
    (
        "batches_off",
        after("execution: {batches: all}\n"),
        "11:13 execution.batches",
        "'all' isn't possible here; allowed: a mapping with limits, or none",
    ),
    (
        "batch_duration_rate",
        after("execution: {batches: {duration: 1MB/s}}\n"),
        "11:23 execution.batches.duration",
        "'1MB/s' isn't a duration",
    ),
    (
        "batch_elections_text",
        after("execution: {batches: {elections: many}}\n"),
        "11:23 execution.batches.elections",
        "'many' isn't possible here; allowed: a whole number from 1, or none",
    ),
    ("bin_dir", after("execution: {kafka_bin_dir: bin}\n"), "11:13 execution.kafka_bin_dir", "an absolute path"),
    # log dirs
    (
        "log_dir_relative",
        line(4, "  brokers: [{id: 1, log_dirs: [d1]}, {id: 2}, {id: 3}]"),
        "4:32 cluster.brokers[0].log_dirs[0]",
        "'d1' isn't possible here; allowed: an absolute path, or a mapping with path and size",
    ),
    (
        "log_dir_without_path",
        line(4, "  brokers: [{id: 1, log_dirs: [{size: 1TB}]}, {id: 2}, {id: 3}]"),
        "4:32 cluster.brokers[0].log_dirs[0].path",
        "is missing; allowed: the log dir's absolute path",
    ),
    (
        "log_dir_size",
        line(4, "  brokers: [{id: 1, log_dirs: [{path: /d1, size: 0}]}, {id: 2}, {id: 3}]"),
        "4:44 cluster.brokers[0].log_dirs[0].size",
        "0 is below 1; allowed: a size",
    ),
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
    (
        "log_dirs_without_sizes",
        line(9, "        - {replicas: [1, 2, 3]}").replace(", size: 12GiB", "") + "balance: {log_dirs: 10%}\n",
        "11:11 balance.log_dirs",
        "'10%' can't be judged without sizes",
    ),
]

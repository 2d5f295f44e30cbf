"""Specs with wrong changes, or with changes that this release doesn't support: data for test_schema_errors."""

from __future__ import annotations

from bad_cluster_specs import Case, after, line

CAPACITIES = (
    "  brokers: [{id: 1, rack: a, capacity: {disk: 4TiB}}, "
    "{id: 2, rack: b, capacity: {disk: 2TiB}}, {id: 3, rack: c, capacity: {disk: 4TiB}}]"
)

# As in bad_cluster_specs.
CHANGE_CASES: list[Case] = [
    # brokers to add, remove and replace
    (
        "add_with_no_log_dir",
        after("changes: {add_brokers: [{id: 7, rack: a, log_dirs: []}]}\n"),
        "11:42 changes.add_brokers[0].log_dirs",
        "an empty list isn't possible here; allowed: at least one item",
    ),
    (
        "apart_alone",
        after("apart: [[orders]]\n"),
        "11:9 apart[0]",
        "1 item isn't enough; allowed: at least 2 items",
    ),
    (
        "remove_twice",
        after("changes: {add_brokers: [{id: 7, rack: a}], remove_brokers: [3, 3]}\n"),
        "11:64 changes.remove_brokers[1]",
        "3 is here twice",
    ),
    (
        "remove_scalar",
        after("changes: {remove_brokers: 3}\n"),
        "11:11 changes.remove_brokers",
        "3 isn't possible here; allowed: a list; in brackets ([3]) it is one",
    ),
    ("remove_text", after("changes: {remove_brokers: b3}\n"), "11:11 changes.remove_brokers", "allowed: a list"),
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
    ("rack_set_to_no", after("changes: {set_racks: {3: no}}\n"), "11:23 changes.set_racks.3", "false (YAML reads"),
    # replication factors
    (
        "config_of_a_change",
        after("changes: {set_replication_factor: [{topics: orders, replication_factor: 3, min_insync_replicas: 2}]}\n"),
        "11:76 changes.set_replication_factor[0].min_insync_replicas",
        "unknown key; no plan changes the configuration of a topic that exists, min.insync.replicas included: do so "
        "once the plan is applied, with kafka-configs.sh --alter --entity-type topics --entity-name TOPIC",
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
        "rebalance_word",
        after("changes: {rebalance: some}\n"),
        "11:11 changes.rebalance",
        "'some' isn't possible here; allowed: all, leaders, racks, none",
    ),
    ("rebalance_no", after("changes: {rebalance: no}\n"), "11:11 changes.rebalance", "leaders, racks, none"),
    # which topics may move
    ("include_empty", after("topics: {include: []}\n"), "11:10 topics.include", "at least one item"),
    ("rack_aware_word", after("rack_aware: false\n"), "11:1 rack_aware", "allowed: enforced, as_today, disabled"),
    # disks
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
        "rate_unit",
        line(3, '  name: demo\n  rates: [{topics: "*", bytes_in: 20MB}]'),
        "4:25 cluster.rates[0].bytes_in",
        "'20MB' isn't a rate: its unit is 'MB'; allowed: a rate such as 50MB/s",
    ),
    (
        "rate_missing",
        line(3, '  name: demo\n  rates: [{topics: "*"}]'),
        "4:11 cluster.rates[0].bytes_in",
        "is missing; allowed: bytes per second that producers write",
    ),
    (
        "bytes_in_size",
        line(9, "        - {replicas: [1, 2], bytes_in: 3MB}"),
        "9:30 cluster.topics[0].partitions[0].bytes_in",
        "'3MB' isn't a rate",
    ),
    # durations
    (
        "eta_rate",
        after("limits: {eta: 6MB/s}\nexecution: {throttle: 1MB/s}\n"),
        "11:10 limits.eta",
        "'6MB/s' isn't a duration: its unit is 'MB/s'; allowed: a duration such as 6h, 90min, 1 h 30 min, 2d",
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
    (
        "limit_worst",
        after("limits: {worst_rack: 1}\n"),
        "11:10 limits.worst_rack",
        "rack_refused, hours_above_capacity, worst_hour, p99_hour",
    ),
    ("limit_rack_negative", after("limits: {rack_offline: -1}\n"), "11:10 limits.rack_offline", "from 0"),
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
    (
        "throttle_without_a_unit",
        after("execution: {throttle: 50}\n"),
        "11:13 execution.throttle",
        "50 is 50 bytes per second; allowed: a rate with its unit, such as 50MB/s, or none",
    ),
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
        "'unlimited' isn't an amount; allowed: a rate such as 50MB/s, 12MiB/s, 1Gbit/s, or a whole number of bytes per "
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
]

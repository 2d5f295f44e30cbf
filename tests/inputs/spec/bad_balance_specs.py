"""Specs with wrong targets, budgets, capacities or sweeps: data for test_schema_errors."""

from __future__ import annotations

from bad_cluster_specs import Case, after, line

CLASSES = "  broker_classes: {big: {disk: 4TiB, network: 1Gbit/s}}\n"


def brokers(text: str, classes: str = "") -> str:
    """The sound spec with other brokers in line 4 and broker classes in the line below."""
    return line(4, f"  brokers: [{text}, {{id: 2, rack: b}}, {{id: 3, rack: c}}]\n{classes}".rstrip("\n"))


def variants(text: str) -> str:
    """The sound spec with variants, which begin in line 13."""
    return after(f"sweep:\n  variants:\n{text}\n")


def sweep(text: str) -> str:
    """The sound spec with a sweep in line 11."""
    return after(f"sweep: {{{text}}}\n")


# As in bad_cluster_specs.
BALANCE_CASES: list[Case] = [
    # limits of numbers that have a description of their own
    (
        "no_members",
        after("consumers: [{group: g, topics: [t], members: 0}]\n"),
        "11:37 consumers[0].members",
        "0 isn't possible here; allowed: how many members there are, from 1 to 10000, or a list of them",
    ),
    (
        "growth_to_nothing",
        after("growth: [{topics: '*', per_month: -100%}]\n"),
        "11:24 growth[0].per_month",
        "allowed: a percentage above -100% and below 10000%",
    ),
    # capacities and classes
    *(
        (
            f"{key}_without_a_unit",
            brokers(f"{{id: 1, rack: a, capacity: {{{key}: {stated}}}}}"),
            f"4:41 {place}.{key}",
            said,
        )
        for place in ("cluster.brokers[0].capacity",)
        for key, stated, said in (
            ("disk", "500", "500 is 500 B; allowed: with its unit, such as 500GB, or 500B if that is meant"),
            ("max_disk", "'60'", "'60' is 60 B; allowed: with its unit, such as 500GB, or 60B if that is meant"),
            ("network", "999", "999 is 999 B/s; allowed: with its unit, such as 1Gbit/s, or 999B/s if that is meant"),
        )
    ),
    (
        "disk_of_a_class_without_a_unit",
        brokers("{id: 1, rack: a, class: big}", "  broker_classes: {big: {disk: 4}}\n"),
        "5:26 cluster.broker_classes.big.disk",
        "4 is 4 B; allowed: with its unit, such as 500GB",
    ),
    (
        "log_dir_without_a_unit",
        brokers("{id: 1, rack: a, log_dirs: [{path: /d, size: 4}]}"),
        "4:52 cluster.brokers[0].log_dirs[0].size",
        "4 is 4 B; allowed: with its unit, such as 500GB",
    ),
    (
        "budget_without_a_unit",
        after("budget: {bytes_moved: 200}\n"),
        "11:10 budget.bytes_moved",
        "200 is 200 B; allowed: with its unit, such as 500GB",
    ),
    *(
        (f"{key}_without_a_unit", after(text), place, said)
        for key, text, place, said in (
            (
                "eta",
                "limits: {eta: 6}\n",
                "11:10 limits.eta",
                "6 is 6 s; allowed: with its unit, such as 6h, or 6s if that is meant",
            ),
            (
                "duration",
                "execution: {batches: {duration: 30}}\n",
                "11:23 execution.batches.duration",
                "30 is 30 s; allowed: with its unit, such as 6h, or 30s if that is meant",
            ),
        )
    ),
    (
        "valid_for_without_a_unit",
        f"{brokers('{id: 1, rack: a}', '  captured_at: 2026-01-01T00:00:00Z')}valid_for: 7\n",
        "12:1 valid_for",
        "7 is 7 s; allowed: with its unit, such as 6h, or 7s if that is meant",
    ),
    (
        "batch_without_a_unit",
        after("execution: {batches: {bytes: 999999}}\n"),
        "11:23 execution.batches.bytes",
        "999999 is 999999 B; allowed: with its unit, such as 500GB",
    ),
    (
        "capacity_network_zero",
        brokers("{id: 1, rack: a, capacity: {network: 0}}"),
        "4:41 cluster.brokers[0].capacity.network",
        "0 is below 1; allowed: a rate such as 50MB/s",
    ),
    (
        "capacity_network_size",
        after("changes: {add_brokers: [{id: 7, rack: a, capacity: {network: 1Gbit}}]}\n"),
        "11:53 changes.add_brokers[0].capacity.network",
        "'1Gbit' isn't a rate",
    ),
    (
        "class_number",
        brokers("{id: 1, rack: a, class: 7}", CLASSES),
        "4:30 cluster.brokers[0].class",
        "7 isn't possible here",
    ),
    (
        "class_typo",
        brokers("{id: 1, rack: a, class: big}", "  broker_classes: {big: {disks: 4TiB}}\n"),
        "5:26 cluster.broker_classes.big.disks",
        "did you mean 'disk'?",
    ),
    (
        "class_amount",
        brokers("{id: 1, rack: a, class: big}", "  broker_classes: {big: {disk: 4 parsec}}\n"),
        "5:26 cluster.broker_classes.big.disk",
        "unknown unit 'parsec'",
    ),
    (
        "classes_list",
        brokers("{id: 1, rack: a, class: big}", "  broker_classes: [big]\n"),
        "5:3 cluster.broker_classes",
        "a list isn't possible here; allowed: a mapping",
    ),
    # rates
    (
        "bytes_out_size",
        line(9, "        - {replicas: [1, 2, 3], bytes_out: 3MB}"),
        "9:33 cluster.topics[0].partitions[0].bytes_out",
        "'3MB' isn't a rate",
    ),
    # targets for bytes
    (
        "disk_spread",
        after("balance: {disk: 5}\n"),
        "11:11 balance.disk",
        "5 isn't possible here; allowed: a percentage or none, such as 10%, none",
    ),
    (
        "network_blank",
        after("balance: {network_in: 5 %}\n"),
        "11:11 balance.network_in",
        "allowed: a percentage or none",
    ),
    (
        "grid_disk_spread",
        sweep("balance: {disk: [2%, 3]}"),
        "11:30 sweep.balance.disk[1]",
        "allowed: a percentage or none",
    ),
    # budget
    ("budget_unit", after("budget: {bytes_moved: 1TiB/s}\n"), "11:10 budget.bytes_moved", "'1TiB/s' isn't a size"),
    ("budget_negative", after("budget: {replicas_moved: -1}\n"), "11:10 budget.replicas_moved", "from 0"),
    ("budget_share", after("budget: {leaders_changed: 5%}\n"), "11:10 budget.leaders_changed", "a whole number"),
    ("budget_typo", after("budget: {byte_moved: 1TiB}\n"), "11:10 budget.byte_moved", "did you mean 'bytes_moved'?"),
    # aims and choice
    (
        "aim_unknown",
        sweep("aims: [makespan, speed]"),
        "11:26 sweep.aims[1]",
        "'speed' isn't possible here; allowed: leaders_changed, cross_rack_bytes, makespan, peak_disk",
    ),
    ("aim_number", sweep("aims: [1]"), "11:16 sweep.aims[0]", "1 isn't possible here; allowed: leaders_changed,"),
    ("aim_twice", sweep("aims: [makespan, makespan]"), "11:26 sweep.aims[1]", "'makespan' is here twice"),
    (
        "choose_word",
        sweep("choose: cheapest"),
        "11:9 sweep.choose",
        "allowed: asked, or a mapping with one of the rules",
    ),
    (
        "choose_nothing",
        sweep("choose: {}"),
        "11:9 sweep.choose",
        "0 keys aren't possible here; allowed: exactly one of most_even_within_bytes, fewest_bytes_within_imbalance",
    ),
    (
        "choose_both",
        sweep("choose: {most_even_within_bytes: 1TiB, fewest_bytes_within_imbalance: 8%}"),
        "11:9 sweep.choose",
        "2 keys aren't possible here; allowed: exactly one of",
    ),
    (
        "choose_typo",
        sweep("choose: {most_even_within_byte: 1TiB}"),
        "11:18 sweep.choose.most_even_within_byte",
        "did you mean 'most_even_within_bytes'?",
    ),
    (
        "choose_number",
        sweep("choose: {fewest_bytes_within_imbalance: 8}"),
        "11:18 sweep.choose.fewest_bytes_within_imbalance",
        "8 isn't possible here; allowed: a percentage, such as 8%",
    ),
    # variants
    ("variant_nameless", variants("    - {changes: {}}"), "13:7 sweep.variants[0].name", "is missing"),
    ("variant_empty", variants("    - {name: b}"), "13:7 sweep.variants[0].changes", "is missing"),
    ("variant_text", variants("    - b"), "13:7 sweep.variants[0]", "allowed: a mapping"),
    ("variants_text", sweep("variants: b"), "11:9 sweep.variants", "allowed: a list"),
    # scenarios
    (
        "growth_zero",
        sweep('scenarios: {growth: [{topics: "o*", factor: 0}]}'),
        "11:45 sweep.scenarios.growth[0].factor",
        "0 isn't possible here; allowed: a number from 0.001 to 1000000",
    ),
    (
        "growth_rounded_away",
        sweep('scenarios: {growth: [{topics: "o*", factor: 0.0000001}]}'),
        "11:45 sweep.scenarios.growth[0].factor",
        "from 0.001",
    ),
    (
        "growth_huge",
        sweep('scenarios: {growth: [{topics: "o*", factor: 1000001}]}'),
        "11:45 sweep.scenarios.growth[0].factor",
        "from 0.001 to 1000000",
    ),
    (
        "growth_percent",
        sweep('scenarios: {growth: [{topics: "o*", factor: 200%}]}'),
        "11:45 sweep.scenarios.growth[0].factor",
        "'200%' isn't possible here",
    ),
]

"""Checks of broker sets and placement: a fault is refused with both places and with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cluster_specs import after, findings

from planner.inputs.spec.reading import load
from planner.model.document_fields import PlacementRuleRow

# Brokers 1 and 4 are in rack a, 2 in b, 3 in c; orders has 3 replicas of 2 partitions.
FOUR = "changes: {add_brokers: [{id: 4, rack: a}]}\n"


def placed(sets: str, *rules: str, rest: str = FOUR) -> str:
    """A spec with changes in line 11, sets in line 12 and rules from line 14 on."""
    return after(f"{rest}broker_sets: {sets}\nplacement:\n" + "".join(f"  - {rule}\n" for rule in rules))


HOT = "{topics: orders, brokers: hot}"
CASES = [
    (
        "unknown_broker",
        placed("{hot: [1, 2, 3, 9]}", HOT),
        ("12:30 broker_sets.hot[3]", "9 is neither a broker of the cluster nor added; allowed: 1, 2, 3, 4"),
    ),
    (
        "unknown_rack",
        placed("{hot: {rack: aa}}", HOT),
        ("12:21 broker_sets.hot.rack", "no broker that stays or joins has the rack 'aa'", "allowed: a, b, c"),
    ),
    (
        "unknown_class",
        placed("{hot: {class: big}}", HOT),
        ("12:21 broker_sets.hot.class", "has the class 'big'", "allowed: a list of ids, as there is none"),
    ),
    (
        "unknown_set",
        placed("{hot: [1, 2, 3]}", HOT, "{topics: orders, brokers: hott}"),
        ("15:22 placement[1].brokers", "'hott' isn't in broker_sets; did you mean 'hot'", "allowed: hot"),
    ),
    (
        "unused_set",
        placed("{hot: [1, 2, 3], cold: [4]}", HOT),
        ("12:31 broker_sets.cold", "no entry of placement names this set; allowed: sets that placement uses"),
    ),
    (
        "matches_nothing",
        placed("{hot: [1, 2, 3]}", HOT, "{topics: click*, brokers: hot}"),
        ("15:6 placement[1].topics", "'click*' matches no topic", "some of orders"),
    ),
    (
        "two_sets_for_one_topic",
        placed("{hot: [1, 2, 3], cold: [4, 2, 3]}", HOT, '{topics: "*", brokers: cold}'),
        (
            "15:19 placement[1].brokers",
            "topic orders would be on 'cold', and on 'hot' by placement[0] (14:5)",
            "allowed: one set for each topic",
        ),
    ),
    (
        "exclusive_sets_overlap",
        placed(
            "{hot: [1, 2, 3], cold: [4, 2, 3]}",
            "{topics: orders, brokers: hot, exclusive: true}",
            "{topics: new, brokers: cold}",
            rest="changes: {add_brokers: [{id: 4, rack: a}], "
            "create_topics: [{name: new, partitions: 1, replication_factor: 3}]}\n",
        ),
        (
            "15:19 placement[1].brokers",
            "'cold' and 'hot' have broker 2, 3 in common, and placement[0] (14:5) keeps 'hot' for its own topics",
            "allowed: sets without a common broker, or exclusive: false",
        ),
    ),
    (
        "too_small_for_the_factor",
        placed("{hot: [1, 2]}", HOT),
        (
            "14:22 placement[0].brokers",
            "'hot', broker_sets.hot (12:15), has 2 of the brokers that stay or join, too few for 3 replicas",
            "allowed: 3 brokers or more",
        ),
    ),
    (
        "too_few_racks",
        placed("{hot: [1, 2, 4]}", HOT),
        (
            "14:22 placement[0].brokers",
            "'hot', broker_sets.hot (12:15), has brokers in 2 of 3 racks, too few for the rack rule and 3 replicas",
            "allowed: brokers in 3 racks or more, or rack_aware: disabled",
        ),
    ),
    (
        "too_little_left_by_an_exclusive_set",
        placed(
            "{hot: [2, 3]}",
            "{topics: new, brokers: hot, exclusive: true}",
            rest="changes: {create_topics: [{name: new, partitions: 1, replication_factor: 2}]}\n",
        ),
        (
            "14:33 placement[0].exclusive",
            "'hot', broker_sets.hot (12:15), leaves all other topics 1 of the brokers that stay or join, too few for 3",
            "allowed: 3 brokers or more",
        ),
    ),
    (
        "fixed_topics_elsewhere",
        placed("{hot: [4, 2, 3]}", HOT, rest=f"{FOUR.rstrip()}\n") + "topics: {exclude: [orders]}\n",
        (
            "14:22 placement[0].brokers",
            "topic orders may not move by topics.exclude[0] (15:20), with replicas on brokers that this",
            "allowed: let them move, or a pattern that doesn't match them",
        ),
    ),
    (
        "a_word_for_a_set",
        placed("{hot: some}", HOT),
        ("12:15 broker_sets.hot", "allowed: a list of brokers' ids, or a mapping with class or rack"),
    ),
]


@pytest.mark.parametrize(("text", "parts"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_fault_has_both_places_and_what_is_allowed(text: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    """One fault gives one finding, before planning starts."""
    (found,) = findings(tmp_path, text)
    place = f"{found.place.line}:{found.place.column} {found.key}"
    assert parts[0] == place
    for part in parts[1:]:
        assert part in found.message


@pytest.mark.parametrize(
    ("written", "ids"), [("[3, 2, 1]", {1, 2, 3}), ("{class: big}", {1, 2, 3, 4}), ("{rack: a}", {1, 4})]
)
def test_a_set_is_a_list_a_class_or_a_rack(written: str, ids: set[int], tmp_path: Path) -> None:
    """A set is read from ids, a class or a rack; it includes brokers that join, and replacements of the class."""
    path = tmp_path / "spec.yaml"
    path.write_text(
        "version: 1\n"
        "cluster:\n"
        "  name: demo\n"
        "  broker_classes: {big: {disk: 1TiB}}\n"
        "  brokers: [{id: 1, rack: a, class: big}, {id: 2, rack: b, class: big}, {id: 5, rack: b}]\n"
        "  topics: [{name: orders, partitions: [{replicas: [1]}]}]\n"
        "changes: {replace_brokers: {2: 3}, add_brokers: [{id: 4, rack: a, class: big}]}\n"
        f"broker_sets: {{hot: {written}}}\n"
        'placement: [{topics: "*", brokers: hot, exclusive: yes}]\n',
        encoding="utf-8",
    )
    (rule,) = load(path).placement
    assert PlacementRuleRow("*", "hot", rule.brokers, exclusive=True) == rule
    assert ids == set(rule.brokers)

"""Reassignments of other tools: what is read from each format, and what is refused, with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clusters import ids_of, no_racks, spec_of
from folders import ROOT

from planner.approval import adopted_plan, given_reassignment
from planner.approval.given_reassignment import GivenReassignment
from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.errors import ImportStateError, InfeasibleError
from planner.model.file_reading import UnreadableError
from planner.model.spec import Changes, NewPartitions, TopicFilter

RACKS = {1: "a", 2: "b", 3: "a", 4: "b"}
LISTS = {"x": [(1, 2), (3, 2), (1, 4)], "y": [(2,)]}
ONE = '{"version":1,"partitions":[{"topic":"x","partition":0,"replicas":[3,4]}]}'


def _read(tmp_path: Path, text: str) -> GivenReassignment:
    file = tmp_path / "given"
    file.write_text(text)
    return given_reassignment.read(file)


def _refused(tmp_path: Path, rows: list[tuple[str, int, list[int]]], **changes) -> str:
    """The message that refuses a reassignment; its partitions are one a line, from line 2 on."""
    lines = [json.dumps({"topic": topic, "partition": at, "replicas": brokers}) for topic, at, brokers in rows]
    given = _read(tmp_path, '{"partitions": [\n' + ",\n".join(lines) + "\n]}")
    with pytest.raises((ImportStateError, InfeasibleError)) as refused:
        adopted_plan.place(given, build(spec_of(RACKS, LISTS, **changes)), "spec.yaml")
    return str(refused.value).replace(given.file, "FILE")


def _lists(given: GivenReassignment) -> dict[tuple[str, int], tuple[int, ...]]:
    return {(each.topic, each.partition.id): each.partition.replicas for each in given.targets}


def test_a_reassignment_json_names_its_partitions(tmp_path):
    """The JSON that Kafka's tool takes, written by hand or by topicmappr."""
    given = _read(tmp_path, ONE)

    assert ({("x", 0): (3, 4)}, {}) == (_lists(given), given.replicas_before)
    assert ("given", "a reassignment JSON") == (given.name, given.title)


@pytest.mark.parametrize("text", [ONE[:-1] + ',"proposals":[]}', '{"proposals":[],' + ONE[1:]])
def test_an_empty_list_of_proposals_beside_partitions_is_refused_too(tmp_path, text):
    """Two lists are two targets, as in Cruise Control's file; a topic of this name is none."""
    with pytest.raises(ImportStateError, match="given:1:1: partitions: is beside proposals; allowed: one of the two"):
        _read(tmp_path, text)
    assert {("proposals", 0): (3, 4)} == _lists(_read(tmp_path, ONE.replace('"x"', '"proposals"')))


def test_of_what_generate_prints_the_proposed_assignment_is_wanted(tmp_path):
    """The proposed assignment is the target, the current one what was found."""
    before = ONE.replace("[3,4]", "[1,2]")
    text = f"Current partition replica assignment\n{before}\n\nProposed partition reassignment configuration\n{ONE}\n"
    given = _read(tmp_path, text)

    assert ({("x", 0): (3, 4)}, {("x", 0): (1, 2)}) == (_lists(given), given.replicas_before)


def test_what_execute_prints_has_no_target(tmp_path):
    """`--execute` prints the current assignment only, so its output is refused."""
    with pytest.raises(ImportStateError, match="given:1:1: no 'Proposed partition reassignment configuration'"):
        _read(tmp_path, f"Current partition replica assignment\n{ONE}\n\nSave this to use as …\n")


def test_of_proposals_the_new_replicas_are_wanted(tmp_path):
    """In Cruise Control's proposals the new replicas are the target; both ways to name a partition are read."""
    named = {"topic": "x", "partition": 0}
    rows = [
        {"topicPartition": named, "oldLeader": 1, "oldReplicas": [1, 2], "newReplicas": [3, 4]},
        {"topicPartition": "x-1", "oldLeader": 3, "oldReplicas": [3, 2], "newReplicas": [1, 2]},
    ]
    given = _read(tmp_path, json.dumps({"proposals": rows, "version": 1}))

    assert {("x", 0): (3, 4), ("x", 1): (1, 2)} == _lists(given)
    assert {("x", 0): (1, 2), ("x", 1): (3, 2)} == given.replicas_before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "given:1:1: not a reassignment: the file is empty; allowed: a reassignment JSON, what kafka-"),
        ("[1, 2]", "given:1:1: not a reassignment: the file begins with '[1, 2]'"),
        (
            '{"partitions": [\n{"topic": "x", "partition": "0", "replicas": [1]}]}',
            "given:2:1: partitions[0].partition:",
        ),
        ('{"partitions": [\n{"topic": "x", "partition": 0, "replicas": "1"}]}', "given:2:1: partitions[0].replicas:"),
        (f"{ONE}\n{ONE}", "given:2:1: something follows the JSON"),
        ('{"proposals": [], "oldReplicas": 1}', "given:1:1: proposals: no proposals; allowed:"),
        (
            '{"proposals": [\n{"topicPartition": "x-0", "oldLeader": 1, "oldReplicas": [1], "newReplicas": []}]}',
            "given:2:1: proposals[0].newReplicas: [] aren't replicas",
        ),
    ],
)
def test_faults_of_a_file_have_places(tmp_path, text, message):
    """File, line, column, key, value, and what is allowed."""
    with pytest.raises(ImportStateError) as refused:
        _read(tmp_path, text)

    assert message in str(refused.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    """A missing file is an error with the system's reason."""
    with pytest.raises(UnreadableError, match="No such file"):
        given_reassignment.read(tmp_path / "absent.json")


def test_a_plan_of_ours_wants_what_it_changes_and_creates():
    """A plan of ours is read from its folder or its plan.json: the partitions that it changes and creates."""
    folder = ROOT / "tests" / "cases" / "new-topics"
    given, plan = given_reassignment.read(folder), json.loads((folder / "plan.json").read_text())

    created = sum(len(topic["replicas"]) for topic in plan["new_partitions"]["topics"])
    assert len(plan["partitions"]) + created == len(given.targets)
    assert "new-topics/plan.json" == given.name
    assert given.targets == given_reassignment.read(folder / "plan.json").targets


def test_what_the_cluster_does_not_have_is_refused_all_at_once(tmp_path):
    """Unknown topics, partitions and brokers, duplicates and impossible lists are all reported at once."""
    said = _refused(tmp_path, [("z", 0, [1]), ("x", 7, [1, 2]), ("x", 0, [1, 9]), ("y", 0, [2]), ("y", 0, []),
                               ("x", 1, [1, 1])])  # fmt: skip

    assert [
        "FILE:2:1: partitions[0]: topic 'z' isn't in the spec's cluster; allowed: its topics",
        "FILE:3:1: partitions[1]: partition 7 of x doesn't exist; allowed: 0 to 2",
        "FILE:4:1: partitions[2].replicas: broker 9 isn't in the spec's cluster; allowed: 1–4",
        "FILE:6:1: partitions[4]: has no replicas; allowed: at least one broker",
        "FILE:6:1: partitions[4]: partition 0 of y is here twice, first at FILE:5:1; allowed: once",
        "FILE:7:1: partitions[5]: broker 1 is 2 times in replicas; allowed: once",
    ] == said.splitlines()


def test_what_breaks_a_hard_rule_is_refused_with_place_value_and_what_is_allowed(tmp_path):
    """Wrong racks and replication factors are refused with line, value and what is allowed."""
    said = _refused(tmp_path, [("x", 0, [1, 3]), ("x", 1, [3, 2, 1]), ("x", 2, [1])])

    assert [
        "FILE can't be adopted, it breaks rules of spec.yaml:",
        "FILE:2:1: x-0: rack spread: replicas [1, 3]; allowed: spread over racks as evenly as the brokers let it",
        "FILE:3:1: x-1: replication factor: replicas [3, 2, 1]; allowed: exactly 2 replicas",
        "FILE:4:1: x-2: replication factor: replicas [1]; allowed: exactly 2 replicas",
    ] == said.splitlines()


def test_topics_that_the_spec_excludes_stay(tmp_path):
    """A move of a topic that the spec excludes is refused."""
    said = _refused(tmp_path, [("y", 0, [4])], topics=TopicFilter(("*",), ("y",)))

    assert "FILE:2:1: y-0: partition that stays: replicas [4]; allowed: today's [2]" in said


def test_unforced_moves_are_refused_where_the_spec_forbids_them(tmp_path):
    """With `rebalance: none`, a move that nothing forces is refused."""
    said = _refused(tmp_path, [("y", 0, [4])], changes=Changes(rebalance="none"))

    assert "y-0: unforced move: replicas [4]; allowed: today's [2] (changes.rebalance: none)" in said


def test_a_broker_that_leaves_must_be_empty(tmp_path):
    """A partition that would stay on a removed broker is refused; if the file doesn't name it, the spec is named."""
    said = _refused(tmp_path, [("x", 0, [1, 4]), ("x", 1, [3, 2])], changes=Changes(remove_brokers=(2,)))

    assert "FILE:3:1: x-1: live brokers: replicas [3, 2]; allowed: brokers that stay, [1, 3, 4]" in said
    assert "spec.yaml: y-0: FILE doesn't name it, so it stays: live brokers: replicas [2]" in said


def test_what_is_not_named_stays_even_if_its_racks_are_uneven_today(tmp_path):
    """A partition that isn't named is held: it doesn't move, although its racks are uneven, and gets no election."""
    spec = spec_of(RACKS, {"x": [(1, 3), (1, 2), (3, 2)]}, leaders={"x": [3, 2, 3]})
    given = _read(tmp_path, ONE.replace('"partition":0', '"partition":2'))
    placed = adopted_plan.place(given, build(spec), "spec.yaml")

    assert [[1, 3], [1, 2], [3, 4]] == ids_of(placed.problem, placed.assignment)
    assert ([False, False, True], [True, True, False]) == (placed.is_named.tolist(), placed.is_held.tolist())
    assert [False, False, True] == placed.problem.movable.tolist()


def test_partitions_to_be_made_must_be_named(tmp_path):
    """The file must say where new partitions go; without that it is refused."""
    new = Changes(new_partitions=(NewPartitions("n", 0, 1, 2),), add_brokers=(Broker(5, "a"),))
    given = _read(tmp_path, ONE)
    with pytest.raises(InfeasibleError, match=r"n-0: .*replication factor: replicas \[\]; allowed: exactly 2"):
        adopted_plan.place(given, build(spec_of(RACKS, LISTS, changes=new)), "spec.yaml")

    named = _read(
        tmp_path, ONE.replace('"partitions":[', '"partitions":[{"topic":"n","partition":0,"replicas":[5,4]},')
    )
    placed = adopted_plan.place(named, build(spec_of(RACKS, LISTS, changes=new)), "spec.yaml")
    assert [5, 4] == ids_of(placed.problem, placed.assignment)[0]


def test_without_racks_any_brokers_will_do(tmp_path):
    """If brokers have no racks, there is no rack rule."""
    given = _read(tmp_path, ONE.replace("[3,4]", "[3,1]"))
    placed = adopted_plan.place(given, build(spec_of(no_racks(1, 2, 3, 4), LISTS)), "spec.yaml")

    assert [3, 1] == ids_of(placed.problem, placed.assignment)[0]

"""The plan's section on new partitions, and what the rest of the plan says about them."""

from __future__ import annotations

import json

import plan_documents
import pytest
from clusters import no_racks, spec_of
from jsonschema import Draft202012Validator
from plan_documents import typed

from planner.export import templated_files
from planner.model import build_problem
from planner.model.cluster import Broker
from planner.model.file_reading import resource
from planner.model.spec import Changes, NewPartitions, Spec, Sweep
from planner.plan import headline, new_partitions_section
from planner.report import markdown
from planner.sweep.candidates import candidates
from planner.sweep.evaluate import run

ROWS = {"t": [[1, 2], [2, 1]], "u": [[3, 4]]}
NEW = NewPartitions("n", 0, 3, 2, (("min.insync.replicas", "2"),))
MORE = NewPartitions("t", 2, 4, 2)


def spec(*new: NewPartitions, **rest: object) -> Spec:
    """Four brokers, two topics, and new partitions."""
    changes = Changes(new_partitions=new, **({"rebalance": "none"} | rest))
    return spec_of(no_racks(1, 2, 3, 4), ROWS, changes=changes, sweep=Sweep(candidates=30))


def planned(requested: Spec) -> dict:
    """The plan of a spec, as it is stored."""
    problem = build_problem.build(requested)
    return json.loads(
        json.dumps(plan_documents.planned(requested, problem, run(problem, candidates(problem, requested.sweep))))
    )


@pytest.fixture(scope="module")
def plan() -> dict:
    """A plan that creates a topic and adds partitions to another one."""
    return planned(spec(NEW, MORE))


def test_topics_are_told_as_kafkas_tools_take_them(plan):
    """The lists are as Kafka's tools take them: today's partitions come first if a topic grows."""
    grown, created = sorted(plan["new_partitions"]["topics"], key=lambda topic: topic["topic"], reverse=True)

    assert ("t", 2, 4, 2, {}) == tuple(
        grown[key] for key in ("topic", "partitions_before", "partitions", "replication_factor", "config")
    )
    assert grown["replica_assignment"].startswith("1:2,2:1,")
    assert grown["replica_assignment"] == "1:2,2:1," + ",".join(":".join(map(str, row)) for row in grown["replicas"])
    assert (0, 3, {"min.insync.replicas": "2"}) == (
        created["partitions_before"],
        created["partitions"],
        created["config"],
    )
    assert created["replica_assignment"] == ",".join(":".join(map(str, row)) for row in created["replicas"])


def test_schema(plan):
    """The document fits the schema, with and without new partitions."""
    validator = Draft202012Validator(json.loads(resource("schemas", "plan.schema.json").read_text()))

    assert [] == list(validator.iter_errors(plan))
    without = planned(spec(set_replication_factor=(), rebalance="all"))
    assert (None, []) == (without["new_partitions"], list(validator.iter_errors(without)))


def test_nothing_else_of_the_plan_holds_them(plan):
    """New partitions aren't in the rest of the plan: no reassignment, no batch, no rollback, nothing copied."""
    files = templated_files.files(typed(plan))

    assert ([], [], 0) == (plan["partitions"], plan["batches"], plan["bound"]["bytes_moved"])
    for name in ("reassignment.json", "rollback.json", "preferred-replica.json"):
        assert [] == json.loads(files[name])["partitions"]


def test_changes_topics_and_terms(plan):
    """Changes are as in the YAML, topics have their new numbers, and new partitions don't count as unsafe today."""
    assert [{"name": "n", "partitions": 3, "replication_factor": 2, "config": {"min.insync.replicas": "2"}}] == plan[
        "changes"
    ]["create_topics"]
    assert [{"topic": "t", "partitions": 4}] == plan["changes"]["add_partitions"]
    topics = {topic["name"]: topic for topic in plan["topics"]}
    assert {"n": (3, []), "t": (4, [2]), "u": (1, [2])} == {
        name: (topic["partitions"], topic["replication_factor_before"]) for name, topic in topics.items()
    }
    unsafe = {term["name"]: (term["today"], term["plan"]) for term in plan["terms"] if term["group"] != "movement"}
    assert (0, 0) == unsafe["without_leader"] == unsafe["under_min_insync"]
    assert "1 topic with more partitions: keys map to other partitions then, for good" in plan["warnings"]


def test_files_for_terraform_and_the_playbook(plan):
    """Terraform's variables have the new topic and number of partitions; the role's file has kafka-topics' options."""
    files = templated_files.files(typed(plan))
    variables = json.loads(files["terraform/kafka_topics.auto.tfvars.json"])["kafka_topics"]
    made = json.loads(files["new-partitions.json"])

    assert {"config": {"min.insync.replicas": "2"}, "partitions": 3, "replication_factor": 2} == variables["n"]
    assert 4 == variables["t"]["partitions"]
    assert ["--config", "min.insync.replicas=2"] == made["n"]["config_options"]
    assert {"2", "3"} == set(made["t"]["replicas"])
    assert files["new-partitions.json"] == files["ansible/roles/kafka_reassign/files/new-partitions.json"]


def test_kafkas_rules_stand_beside(plan):
    """After the plan come the best and the median of both of Kafka's rules, none with a smaller spread."""
    compared = plan["new_partitions"]["compared"]
    labels = ["this plan", *(f"Kafka's {rule} rule, {pick} of 200" for rule, pick in _RULES)]

    assert labels == [row["label"] for row in compared]
    assert all(compared[0]["replica_spread"] <= row["replica_spread"] for row in compared)
    assert all(compared[0]["leader_spread"] <= row["leader_spread"] for row in compared)


_RULES = [(rule, pick) for rule in ("classic", "striped") for pick in ("best", "median")]


def test_kafka_places_more_partitions_one_way():
    """If a topic grows, the classic rule draws nothing: start and shift follow from the topic's first leader."""
    requested = spec(MORE)
    section = planned(requested)["new_partitions"]

    assert {"label": "Kafka's classic rule", "placements": 1} == {
        key: section["compared"][1][key] for key in ("label", "placements")
    }


def test_classic_rule_by_hand():
    """Partition 2 of t starts at partition 0's leader, as with AdminUtils' start index 0 and shift 0."""
    requested = spec(MORE)
    problem = build_problem.build(requested)
    asked = list(requested.changes.new_partitions)
    board = new_partitions_section.Board.of(problem, build_problem.today(problem), asked)

    assert [{"t": [(3, 4), (4, 1)]}] == list(new_partitions_section.classic(board, {"t": [(1, 2), (2, 1)]}, 5))


def test_who_leads_what_exists_counts_not_who_should():
    """The leader spread counts current leaders that no election changes, here and in the terms."""
    rows, led = {"t": [[1, 2], [2, 1], [1, 2], [2, 1]]}, {"t": [2, 2, 2, 2]}
    requested = Changes(new_partitions=(NewPartitions("n", 0, 1, 1),), rebalance="none")
    found = planned(spec_of(no_racks(1, 2), rows, leaders=led, changes=requested, sweep=Sweep(candidates=30)))
    spread = next(term["plan"] for term in found["terms"] if term["name"] == "leader_spread")

    # Broker 2 leads four partitions, broker 1 leads the new one.
    assert 3 == found["new_partitions"]["compared"][0]["leader_spread"] == spread


def test_report_says_what_is_made_and_that_it_stays(plan):
    """The report has the new topics and every list, and says that a rollback keeps them."""
    text = markdown.report(typed(plan))

    assert (
        "Creates 5 partitions (10 replicas) in 1 new topic and 1 existing topic. Existing replicas don't move." in text
    )
    assert "| `n` | 0 → 3 | 2 | `min.insync.replicas=2` |" in text
    assert "the rollback playbook keep them" in text
    lists = plan["new_partitions"]["topics"][1]["replica_assignment"].removeprefix("1:2,2:1,")
    assert f"| `t` | 2 | `{lists}` |" in text


def test_headline_beside_moves():
    """The headline has new partitions first, then moves."""
    plan = planned(spec(NEW, add_brokers=(Broker(5),), rebalance="all"))

    assert headline.headline(typed(plan)).startswith("Creates 3 partitions (6 replicas) in 1 new topic. Copies ")
    assert typed(plan).has_something_to_do


def test_plans_without_them_say_nothing_of_them():
    """A plan without new partitions has no file, section or sentence about them."""
    plan = planned(spec(add_brokers=(Broker(5),), rebalance="all"))

    assert "new-partitions.json" not in templated_files.files(typed(plan))
    assert "New partitions" not in markdown.report(typed(plan))
    assert headline.headline(typed(plan)).startswith("Copies ")

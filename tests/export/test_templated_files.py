"""plan.json → files: Kafka's exact formats, rollback as the inverse, and names that stay text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from plan_documents import Document, change, document, typed

from planner.export import templated_files
from planner.model.file_reading import resource
from planner.model.generated_text import canonical_json, kafka_replica_lists

ROLE = "ansible/roles/kafka_reassign"

MOVE = change("orders", 0, [1, 2, 9], [4, 2, 3])
FIRST_STEP = change("orders", 0, [1, 2, 9], [1, 2, 3])
SECOND_STEP = change("orders", 0, [1, 2, 3], [4, 2, 3])
REORDER = change("orders", 1, [2, 3, 1], [3, 2, 1])
NEW_FACTOR = change("refunds", 0, [3, 1], [3, 1, 4])
ELECTION = change("users", 7, [2, 3], [2, 3], leader=3)

NASTY = 'a"b: {{ x }} [[ y ]] [% z %] \n- {"k": 1}\t\\ \u2028 # é 😀 \x85\x00 !unsafe {% raw %} {# c #} ${d}'

names = st.text(min_size=1) | st.just(NASTY)
brokers = st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True)
changes = st.lists(
    st.builds(change, names, st.integers(0, 3), brokers, brokers, st.none() | st.integers(0, 99)),
    unique_by=lambda entry: (entry["topic"], entry["partition"]),
    max_size=6,
)


class _AnsibleLoader(yaml.SafeLoader):
    """Reads `!unsafe` as Ansible does: as text that is never a template."""


_AnsibleLoader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def written(plan: Document) -> dict[str, bytes]:
    """The files that are made from a document."""
    return templated_files.files(typed(plan))


def _lists(content: bytes) -> dict[tuple[str, int], list[int]]:
    return {(row["topic"], row["partition"]): row["replicas"] for row in json.loads(content)["partitions"]}


def _ansible_yaml(content: bytes) -> Any:
    return yaml.load(content, _AnsibleLoader)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """A plan of two batches: first steps, then the rest with an election that moves nothing."""
    plan = document([MOVE, REORDER, NEW_FACTOR, ELECTION], [[FIRST_STEP, NEW_FACTOR], [SECOND_STEP, REORDER, ELECTION]])
    return written(plan)


EXACT = {
    "reassignment.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[4,2,3]},
 {"topic":"orders","partition":1,"replicas":[3,2,1]},
 {"topic":"refunds","partition":0,"replicas":[3,1,4]}
]}
""",
    "rollback.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[1,2,9]},
 {"topic":"orders","partition":1,"replicas":[2,3,1]},
 {"topic":"refunds","partition":0,"replicas":[3,1]}
]}
""",
    "preferred-replica.json": """{"partitions":[
 {"topic":"orders","partition":0},
 {"topic":"orders","partition":1},
 {"topic":"users","partition":7}
]}
""",
    "topics-to-move.json": """{"version":1,"topics":[
 {"topic":"orders"},
 {"topic":"refunds"}
]}
""",
    "batches/01/reassignment.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[1,2,3]},
 {"topic":"refunds","partition":0,"replicas":[3,1,4]}
]}
""",
    "batches/01/rollback.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[1,2,9]},
 {"topic":"refunds","partition":0,"replicas":[3,1]}
]}
""",
    "batches/02/reassignment.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[4,2,3]},
 {"topic":"orders","partition":1,"replicas":[3,2,1]}
]}
""",
    "batches/02/rollback.json": """{"version":1,"partitions":[
 {"topic":"orders","partition":0,"replicas":[1,2,3]},
 {"topic":"orders","partition":1,"replicas":[2,3,1]}
]}
""",
    "batches/02/preferred-replica.json": """{"partitions":[
 {"topic":"orders","partition":0},
 {"topic":"orders","partition":1},
 {"topic":"users","partition":7}
]}
""",
}


def test_every_json_for_kafka_is_exact(files: Mapping[str, bytes]) -> None:
    """Kafka's formats, one row a line, no empty file. A partition that only changes its leader is only in elections."""
    kafka = {
        path: content.decode() for path, content in files.items() if path.split("/")[0] not in ("ansible", "terraform")
    }
    assert EXACT == kafka


def test_terraform_variables_are_exact() -> None:
    """The variables have topics with one replication factor after the plan, without Kafka's own topics."""
    internal = change("__consumer_offsets", 0, [1, 2], [3, 2])
    assert """{
 "kafka_topics": {
  "refunds": {
   "config": {
    "retention.ms": "3600000"
   },
   "partitions": 1,
   "replication_factor": 3
  }
 }
}
""" == written(document([NEW_FACTOR, internal]))["terraform/kafka_topics.auto.tfvars.json"].decode()


@pytest.mark.parametrize(
    ("repaired", "expected"),
    [(change("mixed", 0, [1, 2], [1, 2, 3]), ["mixed"]), (change("mixed", 0, [1, 2], [4, 2]), [])],
)
def test_terraform_leaves_out_mixed_factors(repaired: Document, expected: list[str]) -> None:
    """A topic whose partitions still differ in replication factor is left out. One that becomes uniform is in."""
    plan = document([repaired])
    plan["topics"][0] |= {
        "replication_factor_before": [2, 3],
        "replication_factor": 3 if expected else None,
        "partitions": 2,
    }
    variables = written(plan)["terraform/kafka_topics.auto.tfvars.json"]
    assert expected == list(json.loads(variables)["kafka_topics"])


def test_plan_without_changes_is_rendered() -> None:
    """The files of the whole plan exist with empty lists, and there is no batch."""
    files = written(document([]))
    assert '{"version":1,"partitions":[]}\n' == files["reassignment.json"].decode() == files["rollback.json"].decode()
    assert '{"partitions":[]}\n' == files["preferred-replica.json"].decode()
    assert '{"version":1,"topics":[]}\n' == files["topics-to-move.json"].decode()
    assert [] == [path for path in files if "batches/" in path]
    assert [] == _ansible_yaml(files[f"{ROLE}/vars/main/plan.yml"])["kafka_reassign_batches"]


def test_batch_folders_sort_in_order_of_execution() -> None:
    """From a hundred batches on, folder names have three digits."""
    steps = [change("t", p, [1], [2]) for p in range(100)]
    files = written(document(steps, [[step] for step in steps]))
    folders = list(dict.fromkeys(path.split("/")[1] for path in files if path.startswith("batches/")))
    assert [f"{number:03}" for number in range(1, 101)] == folders


def test_role_knows_counts_and_digests(files: Mapping[str, bytes]) -> None:
    """The role's variables have the plan's counts, and the SHA-256 of each of the role's files."""
    values = _ansible_yaml(files[f"{ROLE}/vars/main/plan.yml"])
    assert [("01", 2), ("02", 2)] == [(b["number"], b["partitions"]) for b in values["kafka_reassign_batches"]]
    assert [(0, 0), (3, 2)] == [tuple(b["elections"].values()) for b in values["kafka_reassign_batches"]]
    assert 3 == values["kafka_reassign_partitions"]
    assert {"apply": 3, "rollback": 2} == values["kafka_reassign_elections"]
    assert 1 == values["kafka_reassign_unpreferred"]
    assert {"apply": [1, 2, 3, 4], "rollback": [1, 2, 3, 9]} == values["kafka_reassign_brokers"]
    assert {"apply": [9], "rollback": [4]} == values["kafka_reassign_leaving"]
    assert dict.fromkeys((1, 2, 3, 4, 9), "a") == values["kafka_reassign_racks"]
    copies = {path.removeprefix(f"{ROLE}/files/"): content for path, content in files.items() if "/files/" in path}
    assert {path: hashlib.sha256(copies[path]).hexdigest() for path in copies} == values["kafka_reassign_digests"]
    assert [] == [path for path, content in copies.items() if files.get(path, content) != content]


def test_leader_that_was_not_preferred_comes_back(files: Mapping[str, bytes]) -> None:
    """A rollback has three files for it: the old leader first in the list, an election, and the old order."""
    folder = f"{ROLE}/files/unpreferred"
    assert {("users", 7): [3, 2]} == _lists(files[f"{folder}-first.json"])
    assert {("users", 7): [2, 3]} == _lists(files[f"{folder}-back.json"])
    assert [{"topic": "users", "partition": 7}] == json.loads(files[f"{folder}-elect.json"])["partitions"]


def test_no_such_files_where_all_led_were_preferred() -> None:
    """If all leaders were preferred, these files don't exist, because Kafka refuses empty lists."""
    assert [] == [path for path in written(document([MOVE])) if "unpreferred-" in path]


def test_batch_in_one_step_is_not_stepwise() -> None:
    """A batch isn't stepwise if none of its partitions is in another batch."""
    summary = _ansible_yaml(written(document([MOVE]))[f"{ROLE}/vars/main/plan.yml"])["kafka_reassign_batches"]
    assert [False] == [batch["stepwise"] for batch in summary]


def test_the_role_says_what_is_derived() -> None:
    """The role has each derived setting with its key, and mentions them beside the throttle."""
    rows = [{"key": "execution.throttle", "value": "50MB/s", "why": "a constant"}]
    plan = document([MOVE])
    files = written(plan | {"execution": plan["execution"] | {"derived": rows}})
    assert rows == _ansible_yaml(files[f"{ROLE}/vars/main/plan.yml"])["kafka_reassign_derived"]
    assert b"kafka_reassign_derived" in files[f"{ROLE}/defaults/main.yml"]
    assert b"kafka_reassign_derived" not in written(plan)[f"{ROLE}/defaults/main.yml"]


def test_settings_of_the_role(files: Mapping[str, bytes]) -> None:
    """Folder, addresses and throttle come from the plan."""
    values = _ansible_yaml(files[f"{ROLE}/defaults/main.yml"])
    assert "/opt/kafka/bin" == values["kafka_reassign_bin_dir"]
    assert ["kafka-1:9092", "kafka-2:9092"] == values["kafka_reassign_bootstrap_servers"]
    assert 50_000_000 == values["kafka_reassign_throttle_bytes_per_sec"]


def test_no_throttle_is_zero() -> None:
    """A plan without a throttle gives the role 0."""
    plan = document([MOVE], execution={"throttle_bytes_per_sec": None, "kafka_bin_dir": "/k"})
    assert 0 == _ansible_yaml(written(plan)[f"{ROLE}/defaults/main.yml"])["kafka_reassign_throttle_bytes_per_sec"]


def test_every_file_ends_in_one_newline_and_none_holds_our_delimiters(files: Mapping[str, bytes]) -> None:
    """Files end as tools expect, and no template delimiter of ours is left."""
    texts = {path: content.decode() for path, content in files.items()}
    assert [] == [path for path, text in texts.items() if not re.search(r"[^\n]\n\Z", text)]
    assert [] == [path for path, text in texts.items() if re.search(r"\[%|%\]|\[\[|\]\]", text.replace(" ", ""))]
    assert [] == [path for path in texts if path.endswith(".j2")]


@given(changes)
def test_rollback_undoes_reassignment(entries: list[Document]) -> None:
    """Applying the reassignment and then the rollback to the origin gives the origin, order of replicas included."""
    files = written(document(entries))
    origin = {(e["topic"], e["partition"]): e["replicas_before"] for e in entries}
    applied = origin | _lists(files["reassignment.json"])
    assert {(e["topic"], e["partition"]): e["replicas"] for e in entries} == applied
    assert origin == applied | _lists(files["rollback.json"])


@given(st.lists(brokers, min_size=2, max_size=5))
def test_batches_in_order_are_the_plan_and_undone_in_reverse(path: list[list[int]]) -> None:
    """Each batch's files lead one step on, and its own rollback one step back."""
    steps = [change("t", 0, before, after) for before, after in pairwise(path)]
    files = written(document([change("t", 0, path[0], path[-1])], [[step] for step in steps]))
    there = [_lists(files[name])["t", 0] for name in files if re.fullmatch(r"batches/\d+/reassignment.json", name)]
    back = [_lists(files[name])["t", 0] for name in files if re.fullmatch(r"batches/\d+/rollback.json", name)]
    distinct = [step for step in steps if step["replicas"] != step["replicas_before"]]
    assert [step["replicas"] for step in distinct] == there
    assert [step["replicas_before"] for step in distinct] == back


@given(changes)
def test_same_plan_same_bytes(entries: list[Document]) -> None:
    """Rendering has no state, and reads a plan from its JSON as it does one in memory."""
    plan = document(entries)
    files = written(plan)
    assert list(files.items()) == list(written(json.loads(canonical_json(plan))).items())
    assert sorted(files) == list(files)


@given(changes, names, names)
def test_names_survive_unchanged(entries: list[Document], name: str, folder: str) -> None:
    """Whatever a topic, a cluster, an address or a folder is called, every parser reads back just that."""
    plan = document(
        entries,
        cluster={"name": name, "bootstrap_servers": [name, folder], "sizes_known": True},
        execution={"throttle_bytes_per_sec": None, "kafka_bin_dir": folder},
    )
    files = written(plan)
    topics = {entry["topic"] for entry in entries if entry["replicas"] != entry["replicas_before"]}
    assert topics == {row["topic"] for row in json.loads(files["topics-to-move.json"])["topics"]}
    assert topics == {topic for topic, _ in _lists(files["reassignment.json"])}
    values = _ansible_yaml(files[f"{ROLE}/defaults/main.yml"])
    assert [name, folder] == values["kafka_reassign_bootstrap_servers"]
    assert folder == values["kafka_reassign_bin_dir"]


def test_canonical_json_is_exact() -> None:
    """Keys sorted, one space a level, letters as they are, final newline; no NaN."""
    assert '{\n "a": [\n  1\n ],\n "é": null\n}\n' == canonical_json({"é": None, "a": [1]})
    with pytest.raises(ValueError, match="Out of range float"):
        canonical_json(float("nan"))


def test_replica_lists_of_nothing_are_nothing() -> None:
    """Without rows there is no text."""
    assert "" == kafka_replica_lists([])


def test_plan_fits_its_schema() -> None:
    """The documents of these tests fit the schema, and one with an unknown key doesn't."""
    schema = json.loads(resource("schemas", "plan.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    plan = document([MOVE, REORDER, NEW_FACTOR, ELECTION], [[FIRST_STEP, NEW_FACTOR], [SECOND_STEP, REORDER, ELECTION]])
    assert [] == [error.message for error in validator.iter_errors(plan)]
    assert ["Additional properties are not allowed ('surprise' was unexpected)"] == [
        error.message for error in validator.iter_errors(plan | {"surprise": 1})
    ]


def test_schema_describes_every_property() -> None:
    """Each property has a description, and each object lists its allowed keys."""
    schema = json.loads(resource("schemas", "plan.schema.json").read_text())
    nodes = list(_nodes(schema))
    assert 100 < sum(len(node.get("properties", {})) for node in nodes)
    assert [] == [
        name for node in nodes for name, value in node.get("properties", {}).items() if not value["description"]
    ]
    assert [] == [node for node in nodes if node.get("type") == "object" and "additionalProperties" not in node]


def _nodes(value: Any) -> Iterator[Document]:
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nodes(child)

"""`planner external` speaks Terraform's protocol on stdin and stdout."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from folders import ROOT
from plan_documents import Document, change, document, typed

from planner.cli.commands import commands
from planner.cli.main import main
from planner.export import terraform_data_source
from planner.plan.document.cluster_types import THROTTLE_CONFIGS

CASE = ROOT / "tests" / "cases" / "raise-rf"


def ask(query: Any) -> Result:
    """Run the command with a query on stdin."""
    text = query if isinstance(query, str) else json.dumps(query)
    return CliRunner().invoke(commands, ["external"], input=text, standalone_mode=False)


def test_the_answer_is_a_flat_object_of_strings() -> None:
    """The answer's values are strings, as Terraform requires. Structures are JSON inside of them."""
    ran = ask({"plan": str(CASE)})
    answer = json.loads(ran.stdout)
    plan = json.loads((CASE / "plan.json").read_text())

    assert {str} == {type(value) for value in answer.values()}
    assert (plan["plan_id"], str(len(plan["partitions"]))) == (answer["plan_id"], answer["partitions_changed"])
    assert ("true", str(plan["bound"]["bytes_moved"])) == (answer["has_changes"], answer["bytes_moved"])
    tfvars = json.loads((CASE / "terraform" / "kafka_topics.auto.tfvars.json").read_text())
    assert tfvars["kafka_topics"] == json.loads(answer["kafka_topics"])


def test_topics_that_the_plan_creates_are_told() -> None:
    """Terraform has to import created topics. A topic that only gets more partitions is already in its state."""
    case = ROOT / "tests" / "cases" / "new-topics"
    rows = json.loads((case / "plan.json").read_text())["new_partitions"]["topics"]
    created = json.loads(json.loads(ask({"plan": str(case)}).stdout)["created_topics"])

    assert sorted(row["topic"] for row in rows if not row["partitions_before"]) == created != []
    assert "[]" == json.loads(ask({"plan": str(CASE)}).stdout)["created_topics"]


def test_the_file_itself_is_taken_too() -> None:
    """The query may name a plan.json or its folder."""
    assert ask({"plan": str(CASE)}).stdout == ask({"plan": str(CASE / "plan.json")}).stdout


def test_unknown_sizes_are_no_number() -> None:
    """If sizes are unknown, bytes_moved is empty instead of 0."""
    plan = document([change("x", 0, [1], [2])])
    plan["cluster"]["sizes_known"] = False

    assert "" == terraform_data_source.described(typed(plan))["bytes_moved"]


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A copy of an example with its plan and all of the plan's inputs."""
    shutil.copy(ROOT / "examples" / "raise-rf.yaml", tmp_path)
    shutil.copytree(ROOT / "examples" / "state", tmp_path / "state")
    shutil.copytree(CASE, tmp_path / "raise-rf.plan")
    return tmp_path / "raise-rf.yaml"


def test_the_plan_of_a_spec_is_the_one_beside_it(planned: Path) -> None:
    """For a spec, the answer is that of its plan, if all inputs are unchanged."""
    assert ask({"plan": str(CASE)}).stdout == ask({"spec": str(planned)}).stdout


def changed_spec(spec: Path) -> None:
    """Add a comment."""
    spec.write_text(spec.read_text() + "# later\n")


def lost_state(spec: Path) -> None:
    """Delete the state."""
    shutil.rmtree(spec.parent / "state")


@pytest.mark.parametrize(
    ("change", "said"), [(changed_spec, "changed since the plan was made"), (lost_state, "No such")]
)
def test_a_plan_of_what_changed_since_is_refused(change: Callable[[Path], None], said: str, planned: Path) -> None:
    """A changed or missing input is refused with the reason."""
    change(planned)
    ran = ask({"spec": str(planned)})

    assert "" == ran.stdout
    assert said in str(ran.exception)


@pytest.mark.parametrize("exists", [True, False])
def test_a_plan_of_another_spec_is_refused(exists: bool, planned: Path) -> None:
    """A folder that was copied has the other spec's plan, whose inputs may all be there."""
    other = planned.with_name("other.yaml")
    shutil.copytree(planned.with_suffix(".plan"), other.with_suffix(".plan"))
    if exists:
        shutil.copy(planned, other)
    ran = ask({"spec": str(other)})

    assert "" == ran.stdout
    assert f"{other}: {other.with_suffix('.plan')} wasn't made from it, but from raise-rf.yaml, " in str(ran.exception)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "stdin: can't be read as a query"),
        ("[]", "stdin: [] is asked for"),
        ({}, "stdin: nothing is asked for"),
        ({"plan": "a", "spec": "b"}, "stdin: plan, spec is asked for"),
        ({"plans": "a"}, "stdin: plans is asked for"),
        ({"plan": 3}, "stdin: plan: 3 isn't a path"),
        ({"plan": ""}, 'stdin: plan: "" isn\'t a path'),
        ({"plan": "/nowhere"}, "can't be read as a plan"),
    ],
)
def test_other_queries_are_refused(query: Any, said: str) -> None:
    """The error has what was asked and what is allowed."""
    ran = ask(query)

    assert "" == ran.stdout
    assert said in str(ran.exception)


def test_errors_are_on_stderr_with_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """Terraform shows stderr if the exit code is 1."""
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    with pytest.raises(SystemExit) as ended:
        main(["external"])
    captured = capsys.readouterr()

    assert (1, "") == (ended.value.code, captured.out)
    assert captured.err.startswith("planner: stdin: nothing is asked for; allowed: ")


def topic(name: str, before: list[int], after: int | None, **config: str) -> Document:
    """A topic of plan.json."""
    return {
        "name": name,
        "partitions": 2,
        "replication_factor_before": before,
        "replication_factor": after,
        "config": config,
        "partitions_changed": 0,
        "replicas_moved": 0,
        "bytes_moved": 0,
    }


def test_tfvars_have_factors_partitions_and_no_throttle() -> None:
    """The tfvars have no topics of Kafka's own, none with mixed or stepwise factors, and no throttle configs."""
    throttled = dict.fromkeys(THROTTLE_CONFIGS, "0:1") | {"retention.ms": "1"}
    raised = [change("raised", 0, [1], [1, 2]), change("mended", 0, [1], [1, 2])]
    plan = document(raised) | {
        "topics": [
            topic("raised", [1], 2, **throttled),
            topic("mended", [1, 2], 2),
            topic("mixed", [1, 2], None),
            topic("stepwise", [1], None),
            topic("__consumer_offsets", [3], 3),
        ]
    }

    assert {
        "raised": {"partitions": 2, "replication_factor": 2, "config": {"retention.ms": "1"}},
        "mended": {"partitions": 2, "replication_factor": 2, "config": {}},
    } == typed(plan).declared_topics


def test_a_configuration_of_unknown_origin_is_null() -> None:
    """If inherited values are unknown, so are a topic's own. An empty config would remove existing settings."""
    plan = document([change("raised", 0, [1], [1, 2])])
    known = topic("known", [2], 2, **{"retention.ms": "1"})
    plan["topics"] = [known, topic("unknown", [2], 2) | {"effective_config": {"min.insync.replicas": "2"}}]
    told = json.loads(terraform_data_source.described(typed(plan))["kafka_topics"])

    assert {"known": {"retention.ms": "1"}, "unknown": None} == {name: each["config"] for name, each in told.items()}

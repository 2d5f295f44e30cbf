"""examples/terraform can be parsed, and the real Terraform runs the parts that need no downloaded provider."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import hcl2
import hostile
import pytest
from folders import ROOT
from hcl2.utils import SerializationOptions
from plan_documents import change, document, typed

from planner.export import templated_files
from planner.plan.document.cluster_types import THROTTLE_CONFIGS

EXAMPLE = ROOT / "examples" / "terraform"
FILES = sorted([*EXAMPLE.rglob("*.tf"), *EXAMPLE.rglob("*.hcl")])


def parsed(path: Path) -> dict[str, Any]:
    """A file as the parser reads it, with strings without quotes."""
    options = SerializationOptions(strip_string_quotes=True, explicit_blocks=False)
    found: dict[str, Any] = hcl2.loads(path.read_text(encoding="utf-8"), serialization_options=options)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_is_hcl(path: Path) -> None:
    """A maintained parser reads every file."""
    assert parsed(path)


@pytest.mark.slow
def test_the_variable_takes_the_tfvars_of_every_golden_plan() -> None:
    """The variable is named kafka_topics, and every golden topic has exactly the fields of its type."""
    (variables,) = parsed(EXAMPLE / "variables.tf")["variable"][2:]
    fields = {"partitions", "replication_factor", "config"}
    found = [
        topic
        for path in (ROOT / "tests" / "cases").glob("*/terraform/kafka_topics.auto.tfvars.json")
        for topic in json.loads(path.read_text())["kafka_topics"].values()
    ]

    assert ["kafka_topics"] == list(variables)
    assert all(field in variables["kafka_topics"]["type"] for field in fields)
    assert {frozenset(fields)} == {frozenset(topic) for topic in found}


@pytest.mark.slow
def test_throttles_are_ignored() -> None:
    """The module ignores exactly the throttle configs that the report names."""
    (lifecycle,) = parsed(EXAMPLE / "main.tf")["resource"][0]["kafka_topic"]["this"]["lifecycle"]

    assert [f'config["{key}"]' for key in THROTTLE_CONFIGS] == [
        str(each).strip("${}") for each in lifecycle["ignore_changes"]
    ]


def terraform(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the real Terraform, without this machine's configuration and without a check for newer versions."""
    (folder / "empty.tfrc").write_text("")
    surroundings = os.environ | {"TF_CLI_CONFIG_FILE": str(folder / "empty.tfrc"), "CHECKPOINT_DISABLE": "1"}
    command = ["terraform", f"-chdir={folder}", *words]
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example to run in."""
    shutil.copytree(EXAMPLE, tmp_path / "terraform")
    return tmp_path / "terraform"


@pytest.mark.terraform
def test_values_are_text_to_terraform(tmp_path: Path) -> None:
    """Templates in a config stay text in a plan's variables: the real Terraform returns them unchanged."""
    planned = document([change("a", 0, [1], [2])])
    templates = ('${file("/etc/passwd")}', "%{ if true }x%{ endif }", "$${x}", *hostile.strings(tmp_path / "canary"))
    planned["topics"][0]["config"] = {f"c.{number}": text for number, text in enumerate(templates)}
    path = "terraform/kafka_topics.auto.tfvars.json"
    (tmp_path / Path(path).name).write_bytes(templated_files.files(typed(planned))[path])
    (tmp_path / "main.tf").write_text(
        'variable "kafka_topics" { type = map(any) }\noutput "topics" { value = var.kafka_topics }\n'
    )
    applied = terraform(tmp_path, "apply", "-auto-approve", "-no-color")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    shown = json.loads(terraform(tmp_path, "output", "-json").stdout)
    assert planned["topics"][0]["config"] == shown["topics"]["value"]["a"]["config"]
    assert not (tmp_path / "canary").exists()


@pytest.mark.terraform
def test_terraform_finds_nothing_to_format(example: Path) -> None:
    """The files are formatted as Terraform's own formatter does."""
    ran = terraform(example, "fmt", "-check", "-recursive", "-diff")

    assert (0, "") == (ran.returncode, ran.stdout)


@pytest.mark.terraform
def test_the_part_without_providers_is_valid_and_passes_its_own_tests(example: Path) -> None:
    """The module `agreed` is valid. Its own tests show that it refuses tfvars that differ from the plan."""
    module = example / "agreed"
    ran = [terraform(module, *words) for words in (("init", "-input=false"), ("validate",), ("test", "-no-color"))]

    assert [0, 0, 0] == [each.returncode for each in ran], ran[-1].stdout
    assert "10 passed, 0 failed." in ran[-1].stdout


@pytest.mark.terraform
def test_the_part_without_providers_takes_what_planner_external_says(example: Path) -> None:
    """A golden plan's answer and tfvars agree. With one old replication factor they don't, and the topic is named."""
    from planner.export.terraform_data_source import described
    from planner.plan.plan_file import read

    case = ROOT / "tests" / "cases" / "raise-rf"
    tfvars = json.loads((case / "terraform" / "kafka_topics.auto.tfvars.json").read_text())
    module = example / "agreed"
    terraform(module, "init", "-input=false")

    def planned(kafka_topics: Any) -> subprocess.CompletedProcess[str]:
        values = {"plan": described(read(case)), "kafka_topics": kafka_topics}
        (module / "terraform.tfvars.json").write_text(json.dumps(values))
        return terraform(module, "plan", "-no-color", "-input=false")

    agreed = planned(tfvars["kafka_topics"])
    name = next(iter(tfvars["kafka_topics"]))
    old = {**tfvars["kafka_topics"], name: {**tfvars["kafka_topics"][name], "replication_factor": 1}}
    refused = planned(old)

    assert (0, 1) == (agreed.returncode, refused.returncode), agreed.stderr
    assert f"{name}: not declared as plan" in refused.stderr.replace("\n│ ", " ")


RESOURCE = """\
variable "config" { type = map(string) }
resource "terraform_data" "topic" {
  input = var.config
  %s
}
"""


@pytest.mark.terraform
def test_the_rule_ignores_a_throttle_and_nothing_else(tmp_path: Path) -> None:
    """Tests the module's own rule on Terraform's built-in resource, which needs no provider."""
    rule = (EXAMPLE / "main.tf").read_text().split("ignore_changes = [")[1].split("]\n  }")[0]
    throttled = {"retention.ms": "1", **dict.fromkeys(THROTTLE_CONFIGS, "0:1")}

    def ran(words: tuple[str, ...], config: dict[str, str], lifecycle: str) -> int:
        (tmp_path / "main.tf").write_text(RESOURCE % lifecycle)
        (tmp_path / "terraform.tfvars.json").write_text(json.dumps({"config": config}))
        return terraform(tmp_path, *words, "-input=false").returncode

    ignoring = f"lifecycle {{\n ignore_changes = [{rule.replace('config[', 'input[')}]\n }}"
    plan = ("plan", "-detailed-exitcode")
    assert 0 == ran(("init",), throttled, "")
    assert 0 == ran(("apply", "-auto-approve"), throttled, "")
    assert 2 == ran(plan, {"retention.ms": "1"}, "")
    assert 0 == ran(plan, {"retention.ms": "1"}, ignoring)
    assert 2 == ran(plan, {"retention.ms": "2"}, ignoring)

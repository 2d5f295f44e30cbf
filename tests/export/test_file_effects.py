"""What a file in a plan's folder could do, and whose it is."""

from __future__ import annotations

import pytest

from planner.export import kafka_files
from planner.export.folder_check import INVENTORY, effect, is_operators


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ansible/group_vars/all/x.yml", "Ansible variables: kafka_reassign_bin_dir chooses which programs run"),
        ("ansible/inventory/host_vars/admin-1.yml", "Ansible variables"),
        ("ansible/inventory/aws_ec2.yml", "the machine that the commands run on"),
        ("ansible/roles/x/defaults/main/y.yml", "default variables of the role"),
        ("ansible/roles/kafka_reassign/templates/x", "part of an Ansible role"),
        ("terraform/zz.auto.tfvars.json", "Terraform variables: a later file outranks the plan's"),
        ("terraform/terraform.tfstate", "Terraform's state"),
        ("terraform/terraform.tfstate.backup", "Terraform's state"),
        ("terraform/.terraform/providers/x", "providers and modules that Terraform runs"),
        ("terraform/.terraform.lock.hcl", "which providers Terraform accepts"),
        ("terraform/override.tf.json", "Terraform configuration"),
    ],
)
def test_each_kind_of_file_says_what_it_could_do(path: str, said: str) -> None:
    """In a phrase; see also what `planner check` prints."""
    assert effect(path).startswith(said)


def test_what_nothing_reads_does_nothing() -> None:
    """Pages, plots, notes."""
    assert ["", "", ""] == [effect(path) for path in ("report.md", "plots/front.svg", "terraform/notes.txt")]


def test_an_executable_file_in_an_inventory_is_run() -> None:
    """Nowhere else does the bit matter to Ansible."""
    assert effect("ansible/inventory/x", executable=True).startswith("an executable file in an inventory")
    assert effect("ansible/inventory/x") == effect("ansible/inventory/x", executable=False)


def test_of_the_planners_own_files_only_the_inventory_may_be_edited() -> None:
    """What the templates hold besides is the plan's."""
    shipped = [f"ansible/{path.removesuffix('.j2')}" for path in kafka_files.template_paths("ansible")]

    assert [INVENTORY] == [path for path in shipped if is_operators(path, added=False)]


def test_beside_terraforms_variables_everything_added_is_the_operators() -> None:
    """The plan's own file there isn't."""
    assert is_operators("terraform/main.tf", added=True)
    assert not is_operators("terraform/kafka_topics.auto.tfvars.json", added=False)

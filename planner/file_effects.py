"""What a file in a plan's folder could do that no plan wrote there: to programs, to Kafka, to the machine that runs it.

A plan's folder holds what the planner made, and what belongs to the operator: an inventory, variables, what Terraform
keeps. The first has to be as it was made. The second can't be judged, and it is no less able to run a program.
"""

from __future__ import annotations

import re

# The one file of the operator's places that the planner writes itself: an example, to be edited.
INVENTORY = "ansible/inventory/hosts.yml"
# Inventories and their variables; and what Terraform reads and keeps beside the variables that the plan wrote.
_PLACES = ("ansible/inventory/", "ansible/group_vars/", "ansible/host_vars/")
_ADDED_PLACES = ("terraform/",)

_VARIABLES = (
    "Ansible variables: kafka_reassign_bin_dir chooses which programs run, kafka_reassign_bootstrap_servers which "
    "cluster they change, and a template in any value can run a program on the Ansible host"
)
_HOSTS = (
    "the machine that the commands run on and how Ansible reaches it; an inventory plugin or a template in any value "
    "can run a program on the Ansible host"
)
_CODE = "Python code that Ansible loads and runs on the Ansible host or on the admin host"

# The first pattern that a path matches says what the file could do.
_EFFECTS = tuple(
    (re.compile(pattern), effect)
    for pattern, effect in (
        (r"ansible/(inventory/)?(group_vars|host_vars)(/.*)?", _VARIABLES),
        (r"ansible/inventory(/.*)?", _HOSTS),
        (r"(ansible|terraform)", "everything below it comes from elsewhere"),
        (r"ansible/ansible\.cfg", "Ansible's settings: they choose roles, plugins, inventory and connection"),
        (r"ansible/collections(/.*)?", "Ansible collections: plugins and roles that Ansible loads"),
        (r"ansible/(.*/)?(\w+_plugins|library|module_utils|plugins)(/.*)?", _CODE),
        (r"ansible/roles/[^/]+/vars(/.*)?", "variables of the role: Ansible loads every file of vars/main/"),
        (r"ansible/roles/[^/]+/defaults(/.*)?", "default variables of the role: Ansible loads all of defaults/main/"),
        (r"ansible/roles/[^/]+/meta(/.*)?", "the role's dependencies: roles that run before it"),
        (r"ansible/roles/[^/]+/(tasks|handlers)(/.*)?", "tasks, which run whatever they name"),
        (r"ansible/roles/kafka_reassign/files(/.*)?", "a file that the role can hand to Kafka's tools"),
        (r"ansible/roles(/.*)?", "part of an Ansible role, which runs whatever it names"),
        (r"ansible/[^/]+\.ya?ml", "a playbook, which runs whatever it names"),
        (r"terraform/\.terraform(/.*)?", "providers and modules that Terraform runs"),
        (r"terraform/.*\.tfstate(\..*)?", "Terraform's state: what it believes to exist, secrets included"),
        (r"terraform/.*\.tfvars(\.json)?", "Terraform variables: a later file outranks the plan's"),
        (r"terraform/.*\.tf(\.json)?", "Terraform configuration: what it changes, and programs that it runs"),
        (r"terraform/\.terraform\.lock\.hcl", "which providers Terraform accepts"),
        (r"batches/.*|[^/]+\.json", "a file that could be handed to Kafka's tools by hand"),
    )
)


def effect(path: str, *, executable: bool = False) -> str:
    """What a file at a path of a plan's folder could do, in a phrase; empty where nothing reads it."""
    if executable and path.startswith("ansible/inventory/"):
        return "an executable file in an inventory: Ansible runs it on the Ansible host"
    return next((found for pattern, found in _EFFECTS if pattern.fullmatch(path)), "")


def is_operators(path: str, *, added: bool) -> bool:
    """True where a file, changed or `added`, is the operator's own."""
    in_place = f"{path}/".startswith(_PLACES)
    return in_place or (added and f"{path}/".startswith(_ADDED_PLACES))

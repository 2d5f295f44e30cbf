"""Places that repeat the role's settings and its module's options agree with each other."""

from __future__ import annotations

import ast
import re
import sys
from typing import Any

import pytest
import yaml
from folders import ROOT
from role_files import ROLE, loaded

RESTART = ROOT / "templates" / "restart"

module, wait = loaded("library/kafka_reassign"), loaded("action_plugins/kafka_reassign")
settings = loaded("action_plugins/kafka_reassign_files")

SPECS = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]
PAGE = (ROOT / "docs" / "apply.md").read_text()
TYPES = {str: "str", bool: "bool", int: "int", list: "list", dict: "dict"}


def defaults() -> dict[str, Any]:
    """The settings of a plan's role, by name."""
    cases = ROOT / "tests" / "cases" / "expand" / "ansible" / "roles" / "kafka_reassign" / "defaults" / "main.yml"
    return yaml.safe_load(cases.read_text().replace("!unsafe ", ""))


def test_the_modules_documentation_has_its_options() -> None:
    """The module's documentation has each option's type, elements, choices, default, and whether it is required."""
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert {
        name: {key: value for key, value in option.items() if key != "description"}
        for name, option in documented.items()
    } == module.argument_spec()


def test_what_the_plugin_asks_the_module_can_answer() -> None:
    """The plugin's own arguments aren't options of the module, and the module allows every question of the tasks."""
    assert set() == wait._OWN & module.argument_spec().keys()
    texts = [path.read_text() for folder in (ROLE, RESTART) for path in folder.rglob("*.yml")]
    asked = {ask for text in texts for ask in re.findall(r"^\s+ask: (\w+)$", text, re.MULTILINE)}
    # The plugin alone asks to measure, and `look` is the default.
    assert asked == set(module.argument_spec()["ask"]["choices"]) - {"look", "measure"}


def test_the_roles_specification_has_its_settings() -> None:
    """The role's specification has each setting with its default's type, and both entry points are the same."""
    given = defaults()
    del given["kafka_reassign_expected_brokers"]  # an expression, which Ansible makes a list
    options = SPECS["main"]["options"]
    assert options == SPECS["verify"]["options"]
    assert {name: TYPES[type(value)] for name, value in given.items()} == {
        name: option["type"] for name, option in options.items() if name != "kafka_reassign_expected_brokers"
    }


def test_every_number_is_judged_before_a_run() -> None:
    """The plugin judges each number of the roles. restart.yml itself judges the step to continue with."""
    restarts = yaml.safe_load((RESTART / "roles/kafka_reassign/meta/argument_specs.yml").read_text())["argument_specs"]
    options = SPECS["main"]["options"] | restarts["main"]["options"]
    numbers = {name for name, option in options.items() if option["type"] == "int"}
    assert {*settings._COUNTS, settings._THROTTLE, "kafka_reassign_from_step"} == numbers


@pytest.mark.parametrize(("value", "possible"), [(0, True), ("30\n", True), (-5, False), (None, False), ("1.5", False)])
def test_a_number_that_cannot_be_is_refused(value: object, possible: bool) -> None:
    """A batch would be started before a negative delay or an empty value fails, and be left moving."""
    name = "kafka_reassign_verify_delay"
    told = [] if possible else [f"{name} is '{value}'; allowed: a whole number, 0 or more"]
    assert told == [*settings.impossible({name: value})]


def test_the_page_names_every_setting() -> None:
    """The page's table has every setting except for the direction, which the playbooks set."""
    table = PAGE.partition("## Settings")[2]
    assert {"kafka_reassign_direction"} == {name for name in defaults() if f"`{name}`" not in table}
    named = set(re.findall(r"`(kafka_reassign_\w+)`", table))
    assert set() == named - defaults().keys()


def test_the_page_has_every_guard_and_its_reaction() -> None:
    """The page's table has every guard with the plugin's default reaction."""
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\w+) \|$", PAGE, re.MULTILINE)
    assert wait.REACTIONS == dict(rows)


def test_what_runs_on_the_admin_host_is_python_3_8() -> None:
    """The role's files there parse as Python 3.8, and import only the standard library, Ansible and each other."""
    files = [*(ROLE / "library").glob("*.py"), *(ROLE / "module_utils").glob("*.py")]
    assert 1 < len(files)
    for file in files:
        tree = ast.parse(file.read_text(), feature_version=(3, 8))
        imported = {
            name.partition(".")[0]
            for node in ast.walk(tree)
            for name in (
                [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert set() == imported - sys.stdlib_module_names - {"ansible"}, file

"""Compares the plan's files with their digests, and the names of the operator's settings with the role's settings."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.vars import load_extra_vars

_PREFIX = "kafka_reassign_"
_NAME, _OPTION = re.compile(_PREFIX + r"\w+"), re.compile(rf"^ +({_PREFIX}\w+):", re.MULTILINE)
# An inventory variable at least this similar to a setting is misspelled. Other variables may be another playbook's.
_ALIKE = 0.85
_MAPPINGS = ("kafka_reassign_environment", "kafka_reassign_reactions", "kafka_reassign_lag_limits")


def altered(digests, folders):
    """Yield each path of `digests`, {relative path: SHA-256}, whose file in one of the folders has another digest.

    The first folder must have all files. The other folders hold copies for people to read, which may be absent.
    """
    for path, digest in digests.items():
        files = [Path(folders[0], path), *(file for each in folders[1:] if (file := Path(each, path)).exists())]
        if any(not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest for file in files):
            yield path


def named(role, pattern, name=_NAME):
    """The names of all variables in the role's files that match the pattern."""
    return {each for file in role.glob(pattern) for each in name.findall(file.read_text())}


def misspelled(names, settings, alike):
    """The first of these names that is a misspelled setting, and that setting; None if there is none.

    `alike` is the similarity, from 0 to 1, from which on a name counts as a misspelled setting.
    """
    short = sorted(each[len(_PREFIX) :] for each in settings)
    for name in sorted(names):
        if near := difflib.get_close_matches(name[len(_PREFIX) :], short, 1, alike):
            return name, _PREFIX + near[0]
    return None


class ActionModule(ActionBase):
    """Checks files and settings on the host that runs Ansible, before the role uses the admin host."""

    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        """Return the `altered` files, and the `missing` files of the operator's tasks. Fail if a setting is wrong."""
        result = super().run(tmp, task_vars)
        playbooks, role = (Path(task_vars[key]) for key in ("playbook_dir", "role_path"))
        settings = named(role, "meta/*.yml", _OPTION)
        known = settings | named(role, "vars/*/*.yml")
        typed = {each for each in load_extra_vars(self._loader) if each.startswith(_PREFIX)}
        if plans := sorted(typed & known - settings):
            # Ansible prefers -e to the variables of a role, so something other than what was approved would run.
            said = f"-e {plans[0]}: it isn't a setting; the plan and the role set it"
            raise AnsibleActionFail(f"{said}; allowed: the settings in {role.name}/defaults. Nothing was started")
        others = {each for each in task_vars if each.startswith(_PREFIX)} - typed
        for where, names, alike in (("-e ", typed, 0), ("", others - named(role, "tasks/*.yml"), _ALIKE)):
            if found := misspelled(names - known, settings, alike):
                said = f"{where}{found[0]}: there is no such setting; the nearest is {found[1]}. Nothing was started"
                raise AnsibleActionFail(said)
        for name in _MAPPINGS:
            # Ansible accepts `key=value` as a mapping when it checks a role's arguments, but the value stays a string.
            if not isinstance(value := self._templar.template(task_vars.get(name, {})), Mapping):
                raise AnsibleActionFail(
                    f"{name} is '{value}'; allowed: -e '{{\"{name}\": {{…}}}}'. Nothing was started"
                )
        given = self._task.args
        hooks = [each for each in given["hooks"] if each and not (playbooks / each).exists()]
        return {
            **result,
            "altered": [*altered(given["digests"], [role / "files", playbooks.parent])],
            "missing": hooks,
        }

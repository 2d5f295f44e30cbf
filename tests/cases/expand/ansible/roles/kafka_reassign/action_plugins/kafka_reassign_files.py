"""Compares the plan's files with their digests, and the operator's settings with those that there are."""

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
_NAME = re.compile(_PREFIX + r"\w+")
# A variable of the inventory that is so much like a setting is a misspelled one. Others may be another playbook's.
_ALIKE = 0.85
_MAPPINGS = ("kafka_reassign_environment", "kafka_reassign_reactions", "kafka_reassign_lag_limits")


def altered(digests, folders):
    """Relative paths of `digests`, {path: SHA-256}, whose file in one of the folders has another digest.

    The first folder must have all of them. The others hold copies for people to read, and may be absent.
    """
    for path, digest in digests.items():
        files = [Path(folders[0], path), *(file for each in folders[1:] if (file := Path(each, path)).exists())]
        if any(not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != digest for file in files):
            yield path


def named(role, *patterns):
    """The variables that the role's files of these patterns name."""
    return {each for pattern in patterns for file in role.glob(pattern) for each in _NAME.findall(file.read_text())}


def misspelled(names, settings, alike):
    """The first of these names that is a setting's but for its spelling, and that setting; else None.

    `alike`: how much of the name has to be the setting's, from 0 to 1.
    """
    short = sorted(each[len(_PREFIX) :] for each in settings)
    for name in sorted(names):
        if near := difflib.get_close_matches(name[len(_PREFIX) :], short, 1, alike):
            return name, _PREFIX + near[0]
    return None


class ActionModule(ActionBase):
    """Runs the task that comes before all others, on the host of Ansible itself."""

    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        """Files that aren't the reviewed ones, and files with the operator's tasks that are missing."""
        result = super().run(tmp, task_vars)
        playbooks, role = (Path(task_vars[key]) for key in ("playbook_dir", "role_path"))
        settings, known = named(role, "meta/*.yml"), named(role, "meta/*.yml", "vars/*/*.yml")
        typed = {each for each in load_extra_vars(self._loader) if each.startswith(_PREFIX)}
        others = {each for each in task_vars if each.startswith(_PREFIX)} - typed
        for where, names, alike in (("-e ", typed, 0), ("", others - named(role, "tasks/*.yml"), _ALIKE)):
            if found := misspelled(names - known, settings, alike):
                said = f"{where}{found[0]}: there is no such setting; the nearest is {found[1]}. Nothing was started"
                raise AnsibleActionFail(said)
        for name in _MAPPINGS:
            # Ansible takes `key=value` for a mapping where it checks a role's arguments, and then leaves it a text.
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

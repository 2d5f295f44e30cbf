"""Compares files with their digests before they are used, and the names of the operator's settings with the role's."""

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
# With a misspelled tag, Ansible would do nothing and end well, or do what was to be skipped.
_TAGS = ("precheck", "create", "reassign", "elect", "unthrottle")
_MAPPINGS = ("kafka_reassign_environment", "kafka_reassign_reactions", "kafka_reassign_lag_limits")
# Nobody would notice that these are elsewhere: a stop file that stops nothing, throttles that no later run restores.
_PATHS = ("kafka_reassign_stop_file", "kafka_reassign_throttle_file", "kafka_reassign_journal_dir")
_DIRECTION, _THROTTLE = "kafka_reassign_direction", "kafka_reassign_throttle_bytes_per_sec"
# A run would fail at one of these only after it has started a batch, or would take it for another value.
_COUNTS = ("kafka_reassign_wait_seconds", "kafka_reassign_verify_delay", "kafka_reassign_guard_seconds")
_COUNTS += ("kafka_reassign_hold_seconds", "kafka_reassign_batches_at_most")
_JUDGED = (*_PATHS, _THROTTLE, *_MAPPINGS, *_COUNTS)


def impossible(values):
    """A sentence on each setting, {name: value}, that isn't possible although its type is right for Ansible."""
    for name, value in values.items():
        if name in _PATHS and value and not str(value).startswith("/"):
            yield f"{name} is '{value}'; allowed: an absolute path"
        elif name == _THROTTLE and not re.fullmatch("-?[0-9]+", str(value)):
            yield f"{name} is '{value}'; allowed: a whole number of bytes per second, or 0 for no throttle"
        elif name in _COUNTS and not re.fullmatch("[0-9]+", str(value).strip()):
            yield f"{name} is '{value}'; allowed: a whole number, 0 or more"
        elif name in _MAPPINGS and not isinstance(value, Mapping):
            # Ansible accepts `key=value` as a mapping when it checks a role's arguments, but the value stays a string.
            yield f"{name} is '{value}'; allowed: -e '{{\"{name}\": {{…}}}}'"


def reviewed(file, digest):
    """The file's content; None if there is no such file, or if its SHA-256 is another one."""
    content = file.read_bytes() if file.is_file() else None
    return content if content is not None and hashlib.sha256(content).hexdigest() == digest else None


def altered(digests, folders):
    """Yield each path of `digests`, {relative path: SHA-256}, whose file in one of the folders has another digest.

    The first folder must have all files. The other folders hold copies for people to read, which may be absent.
    """
    for path, digest in digests.items():
        files = [Path(folders[0], path), *(file for each in folders[1:] if (file := Path(each, path)).exists())]
        if any(reviewed(file, digest) is None for file in files):
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
    """Checks files and settings on the host that runs Ansible, and copies files of the role to the admin host.

    A run takes hours, and the folder may be replaced meanwhile. So the role reads each file here, where the content
    that is compared with the digest is the content that is used.
    """

    def run(self, tmp=None, task_vars=None):
        """Copy the files of `copies` to `folder`, or judge the `tags`. Without these, check all files and settings."""
        result, given = super().run(tmp, task_vars), self._task.args
        if "tags" in given:
            return {**result, **self.judge(given["tags"])}
        return {**result, **(self.copy(task_vars) if "copies" in given else self.check(task_vars))}

    def judge(self, tags):
        """Fail if one of these tags, of --tags and --skip-tags, is a misspelled tag of the role."""
        for tag in tags:
            near = difflib.get_close_matches(tag.lower(), _TAGS, 1, _ALIKE)
            if near and tag not in _TAGS:
                raise AnsibleActionFail(f"there is no tag {tag}; the nearest is {near[0]}. Nothing was started")
        return {"changed": False}

    def content(self, role, path):
        """The content of one of the role's files, as text. Fail if it isn't the file that was reviewed."""
        if (content := reviewed(role / "files" / path, self._task.args["digests"].get(path))) is None:
            said = f"{path} isn't the file that was planned and reviewed: it was changed after the run had begun"
            raise AnsibleActionFail(f"{said}, so it isn't used. Put the reviewed files back")
        return content.decode()

    def copy(self, task_vars):
        """Copy files to a folder of the admin host, without subfolders: `a/b.json` becomes `a-b.json`."""
        task, given = self._task.copy(), self._task.args
        shared = {"loader": self._loader, "templar": self._templar, "shared_loader_obj": self._shared_loader_obj}
        for path in given["copies"]:
            content = self.content(Path(task_vars["role_path"]), path)
            task.args = {"content": content, "dest": f"{given['folder']}/{path.replace('/', '-')}", "mode": "0600"}
            copying = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy", task=task, connection=self._connection, play_context=self._play_context, **shared
            )
            if (copied := copying.run(task_vars=task_vars)).get("failed"):
                return copied
        return {"changed": False}

    def check(self, task_vars):
        """Return the `altered` files, the `missing` files of the operator's tasks, and the `texts` of some files.

        Fail if a setting is wrong.
        """
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
        direction = task_vars.get(_DIRECTION)
        if (own := self._task.get_vars().get(_DIRECTION, direction)) != direction:
            said = f"-e {_DIRECTION}={direction}: this playbook's direction is {own}"
            raise AnsibleActionFail(f"{said}; allowed: only for verify.yml. Nothing was started")
        values = {name: self._templar.template(value) for name, value in task_vars.items() if name in _JUDGED}
        if said := next(impossible(values), ""):
            raise AnsibleActionFail(f"{said}. Nothing was started")
        given = self._task.args
        changed = [*altered(given["digests"], [role / "files", playbooks.parent])]
        unchanged = given["digests"].keys() - set(changed)
        return {
            "altered": changed,
            "missing": [each for each in given["hooks"] if each and not (playbooks / each).exists()],
            "texts": {path: self.content(role, path) for path in given["texts"] if path in unchanged},
        }

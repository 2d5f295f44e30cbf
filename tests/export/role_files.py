"""Loads the role's Python files, which Ansible runs, from the templates."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from folders import ROOT

ROLE = ROOT / "templates" / "ansible" / "roles" / "kafka_reassign"


# In the order in which they import each other.
_MODULE_UTILS = ("output", "guards", "cluster", "journal", "throttles", "cordons", "changes", "options")


def loaded(path: str) -> ModuleType:
    """The module of one of the role's files, such as `action_plugins/kafka_reassign`."""
    for each in _MODULE_UTILS:
        name = f"ansible.module_utils.kafka_reassign_{each}"
        if name not in sys.modules:
            sys.modules[name] = _executed(name, f"module_utils/kafka_reassign_{each}")
    known = f"ansible.{path.replace('/', '.')}"
    return sys.modules[known] if known in sys.modules else _executed(f"role_{path.replace('/', '_')}", path)


def _executed(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROLE / f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # So that no __pycache__ appears among the templates.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = kept
    return module

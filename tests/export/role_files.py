"""The Python files of the role, which Ansible runs: loaded as they lie among the templates."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from folders import ROOT

ROLE = ROOT / "templates" / "ansible" / "roles" / "kafka_reassign"


def loaded(path: str) -> ModuleType:
    """A file of the role, such as `action_plugins/kafka_reassign`."""
    spec = importlib.util.spec_from_file_location(f"role_{path.replace('/', '_')}", ROLE / f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # No __pycache__ among the templates.
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = kept
    return module

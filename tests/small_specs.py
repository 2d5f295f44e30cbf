"""A small sound spec in YAML, and a function that reads a spec from text."""

from __future__ import annotations

from pathlib import Path

from planner.inputs.spec.reading import load
from planner.model.spec import Spec

SMALL = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]
  topics:
    - name: orders
      partitions: [{replicas: [1, 2]}, {replicas: [2, 3]}]
"""


def spec_of(folder: Path, text: str) -> Spec:
    """The spec that is read from the text."""
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)

"""The door of the input side: one YAML file, and the state files it names, as a `Spec`.

This is the only module of the input side that opens files; everything that it calls takes text and gives values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from planner.errors import Finding, Place, SpecError
from planner.importers import read_placed_assignment, read_sizes
from planner.importers.entries import Assignment
from planner.model import InputFile, Spec
from planner.spec_build import Sizes, build_spec, inline_assignment, inline_sizes, with_sizes
from planner.spec_rules import rule_findings, source_findings
from planner.spec_schema import schema_findings
from planner.yaml_source import Document, decode, read_yaml

T = TypeVar("T")


@dataclass(frozen=True)
class _Topics:
    """Today's topics, None where they can't be read, and what was wrong with them."""

    assignment: Assignment | None
    sizes: Sizes = field(default_factory=Sizes)
    inputs: tuple[InputFile, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class _StateFile(Generic[T]):
    """One state file's content, None where there is none or it can't be read, and what was wrong with it."""

    value: T | None
    inputs: tuple[InputFile, ...] = ()
    findings: tuple[Finding, ...] = ()


def load(path: Path) -> Spec:
    """The spec in a YAML file. SpecError carries everything that is wrong with it and its state files, in one pass.

    Nothing is written. Places name the files as `path` does; state files are found beside it.
    """
    file = path.as_posix()
    data = _read(path, Finding(Place(file), "", ""))
    document = read_yaml(decode(data, file), file)
    refused, unsupported = schema_findings(document)
    unreadable = {finding.key for finding in document.findings}
    refused = [finding for finding in refused if finding.key not in unreadable]
    broken = [*document.findings, *refused, *source_findings(document)]
    topics = _topics(document, path.parent, broken)
    # What stands inside a key that isn't acted on can't mislead a rule.
    ignored = tuple(f"{finding.key}{mark}" for finding in unsupported for mark in ".[")
    misleading = [finding for finding in broken if not finding.key.startswith(ignored)]
    findings = [*broken, *unsupported, *topics.findings, *rule_findings(document, topics.assignment, misleading)]
    if findings or topics.assignment is None:
        raise SpecError(findings)
    inputs = (InputFile(path.name, _sha256(data)), *topics.inputs)
    return build_spec(document, topics.assignment, topics.sizes, inputs)


def _topics(document: Document, folder: Path, broken: list[Finding]) -> _Topics:
    """Today's topics from wherever the document has them."""
    bad_keys = tuple(finding.key for finding in broken)
    if any(key == "cluster" or key.startswith(("cluster.topics", "cluster.state")) for key in bad_keys):
        return _Topics(None)
    if document.get("cluster", "topics"):
        return _Topics(inline_assignment(document), inline_sizes(document))
    return _state(document, folder) if document.get("cluster", "state") else _Topics(None)


def _state(document: Document, folder: Path) -> _Topics:
    """The state files; both are read, so that the faults of both are found."""
    assignment = _state_file(document, folder, "assignment", read_placed_assignment)
    sizes = _state_file(document, folder, "sizes", read_sizes)
    findings = (*assignment.findings, *sizes.findings)
    if assignment.value is None or findings or sizes.value is None:
        return _Topics(assignment.value, inputs=assignment.inputs, findings=findings)
    return _sized(document, assignment.value, sizes.value, assignment.inputs + sizes.inputs)


def _state_file(document: Document, folder: Path, key: str, parse: Callable[[str, str], T]) -> _StateFile[T]:
    """What a key of `cluster.state` names; nothing where it isn't there."""
    written = document.get("cluster", "state", key)
    if written is None:
        return _StateFile(None)
    file = (folder / written).as_posix()
    try:
        data = _read(folder / written, document.finding(("cluster", "state", key), ""))
        return _StateFile(parse(decode(data, file), file), (InputFile(written, _sha256(data)),))
    except SpecError as error:
        return _StateFile(None, findings=error.findings)


def _sized(
    document: Document, assignment: Assignment, sizes: dict[tuple[str, int], int], inputs: tuple[InputFile, ...]
) -> _Topics:
    """The assignment with its sizes; a file without any of its partitions is of another cluster."""
    findings: tuple[Finding, ...] = ()
    unsized = sum((entry.topic, entry.partition.id) not in sizes for entry in assignment.entries)
    if unsized == len(assignment.entries):
        message = f"{document.get('cluster', 'state', 'sizes')!r} has none of the assignment's partitions"
        allowed = "the sizes of the same cluster"
        findings = (document.finding(("cluster", "state", "sizes"), f"{message}; allowed: {allowed}"),)
    return _Topics(with_sizes(assignment, sizes), Sizes(True, unsized), inputs, findings)


def _read(path: Path, where: Finding) -> bytes:
    """A file's bytes; SpecError at the place that names the file."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{path.as_posix()!r} can't be read: {reason}; allowed: a readable file"
        raise SpecError([Finding(where.place, where.key, message)]) from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

"""Everything the planner refuses, as exceptions whose text is one paragraph for the operator.

The command line prints a `PlannerError` without a traceback and exits with its `exit_code`;
any other exception is a defect of ours and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """Where in a file the user wrote something. `line` and `column` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that is wrong with the input: where, which key, what was seen, what is allowed."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


class PlannerError(Exception):
    """Base of everything that is the input's or the surroundings' fault, not ours."""

    exit_code = 1


class SpecError(PlannerError):
    """The YAML, or a file it names, is wrong. Carries every finding of one pass, sorted by place."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(set(findings)))
        super().__init__("\n".join(str(finding) for finding in self.findings))


class ImportStateError(SpecError):
    """A state file printed by Kafka's tools can't be read as such. Carries every finding, with its line."""


class InfeasibleError(PlannerError):
    """No assignment can satisfy the hard rules (replication factor, racks, brokers) that were asked for."""


class UnsafePlanError(PlannerError):
    """A gate in `limits` was crossed, a disk would overflow, or the throttle can't work; nothing was written."""

    exit_code = 3


class StalePlanError(PlannerError):
    """The cluster, or a file of the plan, is no longer what the plan was made from."""


class SetupError(PlannerError):
    """Something outside the planner is missing: Java, Spark, a writable folder."""

"""Everything the planner refuses, as exceptions whose text is one paragraph for the operator.

The command line prints a `PlannerError` without a traceback and exits with its `exit_code`;
any other exception is a defect of ours and keeps its traceback.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


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


# A terminal holds so many; who mends these sees whether the others are of the same kind.
MOST_SHOWN = 100


def capped(lines: Sequence[object]) -> list[str]:
    """The first hundred lines, and how many more there are."""
    more = len(lines) - MOST_SHOWN
    return [*map(str, lines[:MOST_SHOWN]), *([f"… and {more:,} more"] if more > 0 else [])]


# The environment variable that shows where an error comes from: `planner --debug` sets it for all that it starts.
DEBUG = "PLANNER_DEBUG"


class PlannerError(Exception):
    """Base of everything that is the input's or the surroundings' fault, not ours.

    A line each: a line break within one comes from a name that it repeats, and isn't printed as such.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's workers send errors back; not every kind of them is made of its lines.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SpecError(PlannerError):
    """The YAML, or a file it names, is wrong. Carries every finding of one pass, sorted by place."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        # As findings compare themselves, in a tenth of the time.
        self.findings = tuple(
            sorted(
                set(findings),
                key=lambda each: (each.place.file, each.place.line, each.place.column, each.key, each.message),
            )
        )
        super().__init__(*capped(self.findings))


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


_MOST = 3

# Beyond, only names that begin or end alike are compared: a comparison takes some microseconds.
_MANY = 2_000

_GLOB = str.maketrans("", "", "*?[]!")


def one_line(error: Exception) -> str:
    """What an error of a library says, on one line."""
    return " ".join(str(error).split())[:200]


def did_you_mean(word: str, known: Collection[str], most: int = _MOST) -> str:
    """`did you mean 'logs'? `, with a blank at its end, or nothing where no known name is close.

    Capitals don't count, nor do the signs of a shell-style pattern.
    """
    bare = word.translate(_GLOB).lower()
    if not bare:
        return ""
    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    candidates: Collection[str] = by_lower
    if len(by_lower) > _MANY:
        candidates = [name for name in by_lower if name[:2] == bare[:2] or name[-2:] == bare[-2:]][:_MANY]
    close = [by_lower[name] for name in get_close_matches(bare, candidates, n=most)]
    close = close or sorted(name for lower, name in by_lower.items() if bare in lower)[:most]
    return f"did you mean {' or '.join(map(repr, close))}? " if close else ""

"""The exceptions for everything that the planner refuses. Their text is one paragraph for the operator.

The command line prints a `PlannerError` without a traceback and exits with its `exit_code`.
Any other exception is a bug of the planner: one line says so, and `--debug` shows the traceback.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, order=True, slots=True)
class Place:
    """A place in a file that the user wrote. `line` and `column` count from 1; 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, order=True)
class Finding:
    """One error in the input: its place, the key, and a message with the value seen and what is allowed."""

    place: Place
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


# About as many lines as a terminal keeps, and enough to see whether the rest are of the same kind.
MOST_SHOWN = 100


def capped(lines: Sequence[object]) -> list[str]:
    """The first hundred lines, and how many more there are."""
    more = len(lines) - MOST_SHOWN
    return [*map(str, lines[:MOST_SHOWN]), *([f"… and {more:,} more"] if more > 0 else [])]


# If this environment variable is set, errors show their traceback. `planner --debug` sets it for its processes too.
DEBUG = "PLANNER_DEBUG"


class PlannerError(Exception):
    """Base of all errors that the input or the environment causes, not the planner.

    Each argument is one line. A line break within one comes from a name in the message, and is replaced for printing.
    """

    exit_code = 1

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def __reduce__(self) -> tuple[object, ...]:
        # Spark's workers pickle errors, and not every subclass takes its lines as arguments.
        return type(self).__new__, (type(self), *self.args), self.__dict__


class SpecError(PlannerError):
    """The YAML, or a file it names, is wrong. Holds every finding of one pass, sorted by place."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        # The same order as that of the dataclass, in a tenth of the time.
        self.findings = tuple(
            sorted(
                set(findings),
                key=lambda each: (each.place.file, each.place.line, each.place.column, each.key, each.message),
            )
        )
        super().__init__(*capped(self.findings))


class ImportStateError(SpecError):
    """A state file can't be read as the output of Kafka's tools. Holds every finding, with its line."""


class InfeasibleError(PlannerError):
    """No assignment can satisfy the hard rules (replication factor, racks, brokers) that were asked for."""


class UnsafePlanError(PlannerError):
    """The plan exceeds one of the `limits`, a disk would overflow, or the throttle can't work. Nothing was written."""

    exit_code = 3


class StalePlanError(PlannerError):
    """The cluster, or a file of the plan, has changed since the plan was made."""


class SetupError(PlannerError):
    """Something outside the planner is missing: Java, Spark, a writable folder."""


_MOST = 3

# With more names than this, only those with the same first or last two letters are compared, to save time.
_MANY = 2_000

_GLOB = str.maketrans("", "", "*?[]!")


def one_line(error: Exception) -> str:
    """The message of a library's error, on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def did_you_mean(word: str, names: Collection[str], most: int = _MOST) -> str:
    """`did you mean 'logs'? `, with a space at its end; empty if no known name is close.

    Case and the characters of shell-style patterns are ignored.
    """
    bare = word.translate(_GLOB).lower()
    if not bare:
        return ""
    by_lower: dict[str, str] = {}
    for name in names:
        by_lower.setdefault(name.lower(), name)
    candidates: Collection[str] = by_lower
    if len(by_lower) > _MANY:
        candidates = [name for name in by_lower if name[:2] == bare[:2] or name[-2:] == bare[-2:]][:_MANY]
    close = [by_lower[name] for name in get_close_matches(bare, candidates, n=most)]
    close = close or sorted(name for lower, name in by_lower.items() if bare in lower)[:most]
    return f"did you mean {' or '.join(map(repr, close))}? " if close else ""

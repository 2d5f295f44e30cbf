"""How even: tolerances, one a count or load, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Literal, Self


def exact(number: float) -> str:
    """The shortest text that is read as the same number again, without an exponent: `5`, `0.5`, `33.33333`."""
    return f"{Decimal(str(number)):f}".removesuffix(".0")


# Between a part and its goal, where a tolerance is written.
_WAY = "% of the way to "


@dataclass(frozen=True)
class Tolerance:
    """How even a count must be over the brokers.

    `spread`: largest minus smallest at most `value`; `percent`: each broker within ±`value` % of its fair share;
    `none`: not asked for. Written `1`, `5%`, `none`, in the YAML and in a candidate's row alike; a row is read again to
    make its plan, so that nothing may be lost. `part`, in rows within a budget alone: each broker goes `value` % of the
    way from what it holds today to what `goal` says. Written `25% of the way to 10%`.
    """

    kind: Literal["spread", "percent", "none", "part"]
    value: float = 0
    goal: Self | None = None

    @classmethod
    def parse(cls, text: str | int) -> Self:
        """`1`, `"1"`, `"2.5%"`, `"none"` or `"25% of the way to 10%"`; ValueError for anything else."""
        part, way, word = str(text).strip().rpartition(_WAY)
        if way:
            return cls("part", float(part), cls.parse(word))
        if word == "none":
            return cls("none")
        if word.endswith("%"):
            return cls("percent", float(word[:-1]))
        return cls("spread", int(word))

    def __str__(self) -> str:
        match self.kind:
            case "none":
                return "none"
            case "percent":
                return f"{exact(self.value)}%"
            case "part":
                return f"{exact(self.value)}{_WAY}{self.goal}"
            case _:
                return f"{int(self.value)}"


NO_TOLERANCE = Tolerance("none")
SPREAD_1 = Tolerance("spread", 1)


@dataclass(frozen=True)
class Balance:
    """The windows asked for: one a count, and those of bytes and traffic, which are percentages.

    `network_in` is what a broker's replicas are written, as a leader or a follower alike; `network_out` what its
    leaders send to followers and consumers.
    """

    replicas: Tolerance = SPREAD_1
    leaders: Tolerance = SPREAD_1
    topic_replicas: Tolerance = SPREAD_1
    topic_leaders: Tolerance = NO_TOLERANCE
    disk: Tolerance = NO_TOLERANCE
    network_in: Tolerance = NO_TOLERANCE
    network_out: Tolerance = NO_TOLERANCE


# The windows of a balance, and those of bytes and traffic, in the order of `broker_loads.loads`.
WINDOWS = tuple(each.name for each in fields(Balance))
ByteWindow = Literal["disk", "network_in", "network_out"]
BYTE_WINDOWS: tuple[ByteWindow, ...] = ("disk", "network_in", "network_out")

# What a sweep tries besides the balance asked for, by the names of a `Balance`; nothing at all: a grid of our own.
BalanceGrid = Mapping[str, tuple[Tolerance, ...]]

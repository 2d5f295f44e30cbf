"""How even the brokers must be: one tolerance for each count or load."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Literal, Self


def exact(number: float) -> str:
    """The shortest text without an exponent that reads back as the same number: `5`, `0.5`, `33.33333`."""
    return f"{Decimal(str(number)):f}".removesuffix(".0")


# In a written tolerance, these words stand between the part and its goal.
_WAY = "% of the way to "


@dataclass(frozen=True)
class Tolerance:
    """How even a count must be over the brokers.

    `spread`: largest minus smallest at most `value`; `percent`: each broker within ±`value` % of its fair share;
    `none`: not asked for. The YAML and a candidate's row both write `1`, `5%`, `none`. A row is read again to make its
    plan, so its text must keep the exact value. `part` occurs only in rows within a budget: each broker goes
    `value` % of the way from what it holds today to what `goal` says. Written `25% of the way to 10%`.
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
    """The windows asked for: one for each count, and percentages for bytes and traffic.

    `network_in` is the bytes/s written to a broker's replicas, both leaders and followers. `network_out` is the bytes/s
    that its leaders send to followers and consumers.
    """

    replicas: Tolerance = SPREAD_1
    leaders: Tolerance = SPREAD_1
    topic_replicas: Tolerance = SPREAD_1
    topic_leaders: Tolerance = NO_TOLERANCE
    disk: Tolerance = NO_TOLERANCE
    network_in: Tolerance = NO_TOLERANCE
    network_out: Tolerance = NO_TOLERANCE


# The windows of a balance; and only those of bytes and traffic, in the order of `broker_loads.loads`.
WINDOWS = tuple(each.name for each in fields(Balance))
ByteWindow = Literal["disk", "network_in", "network_out"]
BYTE_WINDOWS: tuple[ByteWindow, ...] = ("disk", "network_in", "network_out")

# What a sweep tries besides the balance asked for, by the field names of `Balance`. Empty: the default grid.
BalanceGrid = Mapping[str, tuple[Tolerance, ...]]

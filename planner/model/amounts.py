"""Reads amounts with units ("4TiB", "50MB/s", "6h") as whole bytes, bytes per second, or seconds; and moments in UTC.

It has its own small unit registry, because a general one reads `5mb` as millibits and may take `1 min` for bytes. This
one knows bits, bytes, seconds to days, and the SI and binary prefixes from kilo on.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal

import pint

AmountKind = Literal["bytes", "bytes/s", "seconds"]

LARGEST = 2**63 - 1
EXAMPLES: dict[AmountKind, str] = {
    "bytes": "a size such as 4TiB, 12GiB, 500 GB, 64KiB, or a whole number of bytes",
    "bytes/s": "a rate such as 50MB/s, 12MiB/s, 1Gbit/s, or a whole number of bytes per second",
    "seconds": "a duration such as 6h, 90min, 1 h 30 min, 2d, or a whole number of seconds",
}

_TARGETS: dict[AmountKind, str] = {"bytes": "byte", "bytes/s": "byte / second", "seconds": "second"}
_NOUNS: dict[AmountKind, str] = {"bytes": "size", "bytes/s": "rate", "seconds": "duration"}
_ONES: dict[AmountKind, str] = {"bytes": "byte", "bytes/s": "byte", "seconds": "second"}
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
_AMOUNT = re.compile(rf"({_NUMBER}) *([A-Za-z]+(?:/[A-Za-z]+)?)?", re.ASCII)
# Durations as the planner prints them: `3 h 16 min`.
_PARTS = re.compile(rf"(?:{_NUMBER} *[A-Za-z]+ *){{2,4}}", re.ASCII)
_PREFIXES = ("kilo k Ki kibi", "mega M Mi mebi", "giga G Gi gibi", "tera T Ti tebi", "peta P Pi pebi", "exa E Ei exbi")
_UNITS = (
    "bit = [information]",
    "byte = 8 * bit = B",
    "second = [time] = s = sec",
    "minute = 60 * second = min",
    "hour = 3600 * second = h",
    "day = 86400 * second = d",
)


class AmountError(ValueError):
    """The text isn't an amount of the wanted kind. The message ends with what is allowed."""


@lru_cache(maxsize=1)
def _quantity() -> Callable[[Fraction, str], pint.Quantity[Fraction]]:
    """The constructor of our registry's quantities. Magnitudes are fractions, so that no digit is lost."""
    registry: pint.UnitRegistry[Fraction] = pint.UnitRegistry(None, non_int_type=Fraction)
    for power, names in enumerate(_PREFIXES, start=1):
        si, si_symbol, binary_symbol, binary = names.split()
        also = " = K-" if si_symbol == "k" else ""  # KB is what most people write for kB
        registry.define(f"{si}- = {1000**power} = {si_symbol}-{also}")
        registry.define(f"{binary}- = {1024**power} = {binary_symbol}-")
    for unit in _UNITS:
        registry.define(unit)
    return registry.Quantity


@lru_cache(maxsize=256)
def _factor(unit: str, kind: AmountKind) -> Fraction:
    """Bytes, bytes per second, or seconds in one unit. Cached, because pint is slow and a spec repeats its units."""
    return Fraction(_quantity()(Fraction(1), unit).to(_TARGETS[kind]).magnitude)


def parse_amount(value: int | str, kind: AmountKind, least: int = 0) -> int:
    """`value` in whole bytes, bytes per second, or seconds. A bare number is already in that unit.

    Fractions are rounded, half to even. AmountError if a positive amount rounds to 0, if the amount is below `least` or
    above 2^63 - 1, or if `value` isn't an amount.
    """
    if isinstance(value, int):
        return _in_range(value, value, kind, least)
    text = value.strip()
    if not (_AMOUNT.fullmatch(text) or (kind == "seconds" and _PARTS.fullmatch(text))):
        raise _refused(value, kind)
    exact = sum(_magnitude(value, Fraction(number), unit, kind) for number, unit in _AMOUNT.findall(text))
    rounded = round(exact)
    if exact and not rounded:
        raise AmountError(f"{value!r} is less than one {_ONES[kind]}; allowed: {EXAMPLES[kind]}")
    return _in_range(value, rounded, kind, least)


# A bare number below this for a disk, a network or throttle, or a duration lacks its unit: at 1000 bytes/s, 1 GB takes
# 11 days.
LEAST_BYTES, LEAST_BYTES_PER_SEC, LEAST_SECONDS = 1_000_000, 1000, 3600


def lacks_unit(value: int | str, least: int) -> bool:
    """True for a bare number from 1 to below `least`. `500B` is accepted because it has a unit, and 0 needs none."""
    bare = str(value).strip()
    return bare.isascii() and bare.isdecimal() and 0 < int(bare) < least


# A size in bytes, a rate in bytes per second, a duration in seconds.
parse_bytes = partial(parse_amount, kind="bytes")
parse_bytes_per_sec = partial(parse_amount, kind="bytes/s")
parse_seconds = partial(parse_amount, kind="seconds")


def unless_none(value: Any, parse: Callable[[Any], int]) -> int | None:
    """A value of the YAML as `parse` reads it; None if the value is missing or `none`."""
    return None if value is None or value == "none" else parse(value)


def _magnitude(value: str, number: Fraction, unit: str, kind: AmountKind) -> Fraction:
    if not unit:
        if number.denominator != 1:
            raise _refused(value, kind)
        return number
    try:
        return number * _factor(unit, kind)
    except (pint.UndefinedUnitError, ValueError):  # pint reads `nan` as a number; Fraction can't hold it
        raise AmountError(f"{value!r} has an unknown unit {unit!r}; allowed: {EXAMPLES[kind]}") from None
    except pint.DimensionalityError:
        problem = f"{value!r} isn't a {_NOUNS[kind]}: its unit is {unit!r}"
        raise AmountError(f"{problem}; allowed: {EXAMPLES[kind]}") from None


def _in_range(value: int | str, amount: int, kind: AmountKind, least: int) -> int:
    if amount < least:
        raise AmountError(f"{value!r} is below {least}; allowed: {EXAMPLES[kind]}")
    if amount > LARGEST:
        raise AmountError(f"{value!r} is more than 2^63 - 1 {_ONES[kind]}s; allowed: {EXAMPLES[kind]}")
    return amount


def _refused(value: str, kind: AmountKind) -> AmountError:
    return AmountError(f"{value!r} isn't an amount; allowed: {EXAMPLES[kind]}")


MOMENT_ALLOWED = "a date and time with its zone, such as 2026-11-20T10:00:00Z or 2026-11-20T11:00:00+01:00"


def parse_moment(text: str) -> datetime:
    """A moment in UTC, in whole seconds; ValueError if the text isn't an ISO 8601 date and time with a zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or len(text) <= len("2026-11-20"):
        raise ValueError(f"{text!r} has no zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def moment_text(moment: datetime) -> str:
    """A moment as plans and playbooks write it, `2026-11-20T10:00:00Z`. These texts sort in the order of time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def valid_until(captured_at: str, valid_for_seconds: int | None) -> str | None:
    """The moment when a plan made from a state expires; None if it never expires.

    `captured_at` is an input, so that the plan is the same whenever it is made. Only `planner check` and the playbook
    read the clock.
    """
    if valid_for_seconds is None:
        return None
    return moment_text(parse_moment(captured_at) + timedelta(seconds=valid_for_seconds))

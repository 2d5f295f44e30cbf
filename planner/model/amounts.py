"""Amounts with units ("4TiB", "50MB/s", "6h") to whole bytes, bytes per second, or seconds; and moments in UTC.

The units are a small table of our own, of bits, bytes and a few times, with the SI and binary prefixes from kilo on: a
library of units reads `5mb` as millibits.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import prod
from typing import Any, Literal

AmountKind = Literal["bytes", "bytes/s", "seconds"]

LARGEST = 2**63 - 1
EXAMPLES: dict[AmountKind, str] = {
    "bytes": "a size such as 4TiB, 12GiB, 500 GB, 64KiB, or a whole number of bytes",
    "bytes/s": "a rate such as 50MB/s, 12MiB/s, 1Gbit/s, or a whole number of bytes a second",
    "seconds": "a duration such as 6h, 90min, 1 h 30 min, 2d, or a whole number of seconds",
}

_BASES: dict[AmountKind, tuple[str, ...]] = {"bytes": ("byte",), "bytes/s": ("byte", "second"), "seconds": ("second",)}
_NOUNS: dict[AmountKind, str] = {"bytes": "size", "bytes/s": "rate", "seconds": "duration"}
_ONES: dict[AmountKind, str] = {"bytes": "byte", "bytes/s": "byte", "seconds": "second"}
_NUMBER = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
_AMOUNT = re.compile(rf"({_NUMBER}) *([A-Za-z]+(?:/[A-Za-z]+)?)?", re.ASCII)
# As durations are printed: `3 h 16 min`.
_PARTS = re.compile(rf"(?:{_NUMBER} *[A-Za-z]+ *){{2,4}}", re.ASCII)
_DECIMAL = ("kilo k K", "mega M", "giga G", "tera T", "peta P", "exa E")  # KB is what most people write for kB
_BINARY = ("kibi Ki", "mebi Mi", "gibi Gi", "tebi Ti", "pebi Pi", "exbi Ei")
_PREFIXES = {"": 1} | {
    prefix: base**power
    for base, all_names in ((1000, _DECIMAL), (1024, _BINARY))
    for power, names in enumerate(all_names, start=1)
    for prefix in names.split()
}
# What each unit is of, and how many of that; whole names and longer symbols have a plural.
_UNITS: Mapping[str, tuple[str, Fraction]] = {
    f"{prefix}{name}{plural}": (base, times * amount)
    for names, base, amount in (
        ("bit", "byte", Fraction(1, 8)),
        ("byte B", "byte", Fraction(1)),
        ("second sec s", "second", Fraction(1)),
        ("minute min", "second", Fraction(60)),
        ("hour h", "second", Fraction(3600)),
        ("day d", "second", Fraction(86_400)),
    )
    for name in names.split()
    for prefix, times in _PREFIXES.items()
    for plural in (("", "s") if len(name) > 1 else ("",))
}


class AmountError(ValueError):
    """A text that isn't an amount of the wanted kind; the message ends with what is allowed."""


def parse_amount(value: int | str, kind: AmountKind, least: int = 0) -> int:
    """`value` in whole bytes, bytes per second, or seconds; a bare number is one already.

    A fraction of one is rounded, half to even, but never down to nothing. Raises AmountError for anything else,
    below `least` or beyond 2^63 - 1.
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


# Less than this of a disk, a network or a throttle is a number whose unit is missing: 1 GB would take eleven days.
LEAST_BYTES, LEAST_BYTES_PER_SEC = 1_000_000, 1000


def lacks_unit(value: int | str, least: int) -> bool:
    """True for a bare number from 1 to below `least`; `500B` says that it is meant, and 0 needs no unit."""
    bare = str(value).strip()
    return bare.isascii() and bare.isdecimal() and 0 < int(bare) < least


def parse_bytes(value: int | str) -> int:
    """A size in bytes; see `parse_amount`."""
    return parse_amount(value, "bytes")


def parse_bytes_per_sec(value: int | str) -> int:
    """A rate in bytes per second; see `parse_amount`."""
    return parse_amount(value, "bytes/s")


def parse_seconds(value: int | str) -> int:
    """A duration in seconds; see `parse_amount`."""
    return parse_amount(value, "seconds")


def unless_none(value: Any, parse: Callable[[Any], int]) -> int | None:
    """What `parse` reads in a value of the YAML; None for one that isn't stated, and for `none`."""
    return None if value is None or value == "none" else parse(value)


def _magnitude(value: str, number: Fraction, unit: str, kind: AmountKind) -> Fraction:
    if not unit:
        if number.denominator != 1:
            raise _refused(value, kind)
        return number
    words = unit.split("/")
    if not _UNITS.keys() >= {*words}:
        raise AmountError(f"{value!r} has an unknown unit {unit!r}; allowed: {EXAMPLES[kind]}")
    bases, (amount, *per) = zip(*(_UNITS[word] for word in words), strict=True)
    if bases != _BASES[kind]:
        wrong = f"{value!r} isn't a {_NOUNS[kind]}: its unit is {unit!r}"
        raise AmountError(f"{wrong}; allowed: {EXAMPLES[kind]}")
    return number * amount / prod(per)


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
    """A moment in UTC, whole seconds; ValueError for anything but a date and time of ISO 8601 with its zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or len(text) <= len("2026-11-20"):
        raise ValueError(f"{text!r} has no zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def moment_text(moment: datetime) -> str:
    """A moment as plans and playbooks have it, `2026-11-20T10:00:00Z`: later ones sort behind earlier ones."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def valid_until(captured_at: str, valid_for_seconds: int | None) -> str | None:
    """The moment from which a plan of a state isn't valid any more; None where it always is.

    `captured_at` is an input, so that a plan says the same whenever it is made. Only `planner check` and the playbook
    read the clock.
    """
    if valid_for_seconds is None:
        return None
    return moment_text(parse_moment(captured_at) + timedelta(seconds=valid_for_seconds))

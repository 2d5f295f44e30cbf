"""Sizes beside those that somebody wrote: a limit reads as it was written, and what it is held against alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.figures import amount, size


def stated(size_bytes: int) -> str:
    """A size that somebody wrote, in the unit that it was most likely written in: `20 GiB`, `300 MB`, `12 B`."""
    found = [_whole(size_bytes, power, name) for base in _PREFIXES for power, name in base]
    return min((each for each in found if each), key=len, default=None) or size(size_bytes)


def limit_of(term: Mapping[str, Any]) -> str:
    """A term's limit, which somebody wrote: in the unit that it was written in where it is one of bytes."""
    limit = term["limit"]
    return stated(limit) if term["unit"] == "bytes" and limit is not None else amount(limit, term["unit"])


def beside(size_bytes: int, other: int) -> str:
    """A size in units of the kind that `other` is stated in: `17.2 GiB` beside `20 GiB`, else as `size`."""
    if "iB" not in stated(other) or abs(size_bytes) < 1024:
        return size(size_bytes)
    power, name = next((power, name) for power, name in reversed(_BINARY) if abs(size_bytes) >= power)
    value = size_bytes / power
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"


_DECIMAL = tuple((1000**power, f"{prefix}B") for power, prefix in enumerate(("k", "M", "G", "T", "P", "E"), start=1))
_BINARY = tuple((1024**power, f"{prefix}iB") for power, prefix in enumerate("KMGTPE", start=1))
_PREFIXES = (_DECIMAL, _BINARY)


def _whole(size_bytes: int, power: int, name: str) -> str:
    """The size in this unit where that takes at most two digits behind the point, else nothing."""
    hundredths, rest = divmod(100 * size_bytes, power)
    if rest or not 100 <= hundredths < 102_400:
        return ""
    return f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + f" {name}"


def exactly(size_bytes: int) -> str:
    """A size for reading, and as the YAML takes it: `88.1 MB (88100000 bytes)`, `60 B`."""
    return size(size_bytes) if abs(size_bytes) < 1000 else f"{size(size_bytes)} ({size_bytes} bytes)"

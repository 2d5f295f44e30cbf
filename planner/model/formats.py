"""Numbers, sizes, times and names as people read them.

Sizes are decimal (1 GB = 10⁹ bytes) with three significant digits throughout. Nothing here knows Markdown or a
terminal: the caller escapes texts from the cluster for its output format.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import humanize

UNKNOWN = "–"
_MINUTE, _DAY = 60, 86_400
# Beyond this, an exact number is of no use, and dates overflow.
_ENDLESS = 100 * 365 * _DAY
_DECIMAL = tuple((1000**power, f"{prefix}B") for power, prefix in enumerate("kMGTPE", start=1))
_BINARY = tuple((1024**power, f"{prefix}iB") for power, prefix in enumerate("KMGTPE", start=1))

T = TypeVar("T")


def size(size_bytes: int | None) -> str:
    """`123 GB`, `1.50 kB`, `12 B`; `–` for None."""
    if size_bytes is None:
        return UNKNOWN
    return f"{size_bytes} B" if abs(size_bytes) < 1000 else humanize.metric(size_bytes, "B")


def number(value: float) -> str:
    """A number with commas between thousands, and at most two decimals."""
    return humanize.intcomma(value) if value == int(value) else humanize.intcomma(float(value), 2)


def counted(value: int, noun: str) -> str:
    """`1 replica`, `1,200 replicas`, `2 batches`; `noun` is singular."""
    ending = "" if value == 1 else "es" if noun.endswith(("ch", "ss")) else "s"
    return f"{number(value)} {noun}{ending}"


def first_names(names: Sequence[str], shown: int = 3) -> str:
    """The first names, and the number of the others: `a, b, c and 12 more`."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown:,} more" if len(names) > shown else "")


def first_lines(lines: Sequence[T], shown: int, noun: str = "") -> list[T | str]:
    """The first lines, and a last line with the number of the others: `and 12 more`, or `and 12 more topics`."""
    extra = len(lines) - shown
    more_text = counted(extra, f"more {noun}") if noun else f"{extra:,} more"
    return [*lines[:shown], *([f"and {more_text}"] if extra > 0 else [])]


def percent(value: float | None) -> str:
    """Three significant digits: `0 %`, `2.31 %`, `56.9 %`, `1,250 %`; `–` for None."""
    if value is None:
        return UNKNOWN
    if 0 < abs(value) < 0.005:
        return "< 0.01 %" if value > 0 else "> −0.01 %"
    digits = 0 if value == int(value) or abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} %"


def duration(seconds: int | None) -> str:
    """The two largest units, `1 h 2 min`; days are the largest one; `–` for None."""
    if seconds is None:
        return UNKNOWN
    if seconds > _ENDLESS:
        return f"more than {_ENDLESS // (365 * _DAY)} years"
    smallest = "hours" if seconds >= _DAY else "minutes" if seconds >= 10 * _MINUTE else "seconds"
    words = humanize.precisedelta(seconds, minimum_unit=smallest, suppress=("months", "years"), format="%0.0f")
    parts = words.replace(" and ", " ").replace(",", "").split()
    short = {"hour": "h", "hours": "h", "minute": "min", "minutes": "min", "second": "s", "seconds": "s"}
    return " ".join(short.get(part, part) for part in parts)


def amount(value: float | None, unit: str) -> str:
    """A term's value: bytes like `size`, `%` and `% …` like `percent`, otherwise a bare number; `–` for None."""
    if value is None:
        return UNKNOWN
    match unit:
        case "bytes":
            return size(round(value))
        case "bytes/s":
            return f"{size(round(value))}/s"
        case _:
            return percent(value) if unit.startswith("%") else number(value)


def unit_of(unit: str) -> str:
    """The unit to print beside `amount`; empty if `amount` includes it."""
    return "" if unit in ("bytes", "bytes/s") else unit.removeprefix("%").strip()


def arrow(before: str, after: str) -> str:
    """`63 → 54`, or only `63` if nothing changes."""
    return before if before == after else f"{before} → {after}"


def ranges(ids: Iterable[int]) -> str:
    """Broker ids, with consecutive ids joined: `1–4, 7`."""
    runs: list[list[int]] = []
    for broker in sorted(set(ids)):
        if not runs or runs[-1][1] != broker - 1:
            runs.append([broker, broker])
        runs[-1][1] = broker
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in runs)


def replica_list(replicas: Iterable[int]) -> str:
    """A replica list as Kafka's tools print it: `1,2,3`."""
    return ",".join(map(str, replicas))


def replica_assignment(lists: Iterable[Sequence[int]]) -> str:
    """Replica lists as `kafka-topics --replica-assignment` takes them: `0:1,1:0,0:1`, a comma between partitions."""
    return ",".join(":".join(map(str, replicas)) for replicas in lists)


def brokers(ids: Iterable[int]) -> str:
    """`broker 4`, or `brokers 1–3, 7`."""
    distinct = set(ids)
    return f"{'broker' if len(distinct) == 1 else 'brokers'} {ranges(distinct)}"


def enumerated(parts: Sequence[str]) -> str:
    """`a`, `a and b`, or `a, b and c`; at least one part."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def printable(text: str, at_most: int = 250) -> str:
    """`text` on one line without control characters (racks may have escape codes), cut to `at_most` characters."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: at_most + 1])
    return shown if len(shown) <= at_most else shown[: at_most - 1] + "…"


def words(identifier: str) -> str:
    """`replica_spread` as `replica spread`."""
    return printable(identifier.replace("_", " "))


# Terms whose names in plan.json aren't clear to a reader.
_TERMS = {
    "left_to_change": "must still change",
    "under_min_insync": "fewer replicas than min ISR",
    "rack_spread_broken": "not spread over racks",
    "on_one_rack": "on one rack only",
    "broker_offline": "offline, a broker fails",
    "broker_refused": "no writes, a broker fails",
    "rack_offline": "offline, a rack fails",
    "rack_refused": "no writes, a rack fails",
    "rack_leaders": "most leaders on a rack",
    "bytes_moved": "bytes copied",
    "least_bytes_moved": "proven minimum",
    "cross_rack_bytes": "copied between racks",
    "peak_disk": "peak disk, all at once",
    "replicas_moved": "replicas copied",
    "windows_relaxed": "targets not met",
    "gap": "above the proven minimum",
}


def term_name(identifier: str) -> str:
    """A term of a plan as people read it: `broker_offline` as `offline, a broker fails`."""
    return _TERMS.get(identifier, words(identifier))


def above_bound(moved: int, least: int | None) -> float | None:
    """How far `moved` is above a bound, in percent of it; None without a bound, or if only the bound is 0."""
    if least is None or moved == least:
        return None if least is None else 0.0
    return 100 * (moved - least) / least if least else None


def gap_shown(value: float | None) -> str:
    """A gap in percent like `percent`, but rounded up, so that it is the same everywhere and never too small."""
    if value is None or value < 0.01:
        return percent(value)
    digits = 2 if value < 10 else 1 if value < 100 else 0
    # First rounded to six digits, so that float errors don't round a whole number up.
    return percent(math.ceil(round(value * 10**digits, 6)) / 10**digits)


def as_stated(size_bytes: int) -> str:
    """A size from the YAML, in the unit that its author most likely used: `20 GiB`, `300 MB`, `12 B`."""
    candidates = []
    for power, name in (*_DECIMAL, *_BINARY):
        hundredths, remainder = divmod(100 * size_bytes, power)
        # The unit fits if the value has at most two decimals.
        if not remainder and 100 <= hundredths < 102_400:
            candidates.append(f"{hundredths / 100:.2f}".rstrip("0").rstrip(".") + f" {name}")
    return min(candidates, key=len, default=size(size_bytes))


def size_like(size_bytes: int, stated_bytes: int) -> str:
    """A size in binary units if `stated_bytes` are stated in them (`17.2 GiB` beside `20 GiB`), else like `size`."""
    if "iB" not in as_stated(stated_bytes) or abs(size_bytes) < 1024:
        return size(size_bytes)
    power, name = next((power, name) for power, name in reversed(_BINARY) if abs(size_bytes) >= power)
    value = size_bytes / power
    return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {name}"


def size_and_bytes(size_bytes: int) -> str:
    """A size for people, and the exact one for the YAML: `88.1 MB (88100000 bytes)`, `60 B`."""
    return size(size_bytes) if abs(size_bytes) < 1000 else f"{size(size_bytes)} ({size_bytes} bytes)"

"""The brokers that the sources of a state have seen, with their racks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from planner.errors import Finding, ImportStateError
from planner.importers.entries import LARGEST_ID
from planner.importers.parts import BrokerSeen, StatePart
from planner.model import Broker

# As `text` in the schema of the YAML.
_SIGN = r"[^\s\x00-\x1f\x7f\ud800-\udfff]"
ALLOWED_TEXT = "1 to 200 characters, no control characters, no blanks around them"
TEXT = re.compile(rf"{_SIGN}(?:(?:{_SIGN}| ){{0,198}}{_SIGN})?")


def brokers_seen(parts: Iterable[StatePart]) -> tuple[tuple[BrokerSeen, ...], tuple[str, ...]]:
    """Each broker once, by id, as the source of the highest rank says; and what others say of its rack.

    ImportStateError for a rack that can't be written down: Kafka takes any text.
    """
    seen: dict[int, BrokerSeen] = {}
    notes: list[str] = []
    wrong: list[Finding] = []
    for part in sorted(parts, key=lambda part: part.rank):
        for broker in part.brokers:
            if broker.rack is not None and not TEXT.fullmatch(broker.rack):
                wrong.append(
                    Finding(broker.place, "rack", f"{broker.rack[:60]!r} isn't usable; allowed: {ALLOWED_TEXT}")
                )
            if not 0 <= broker.id <= LARGEST_ID:
                message = f"broker {broker.id} can't exist; allowed: ids from 0 to {LARGEST_ID}"
                wrong.append(Finding(broker.place, "", message))
            first = seen.setdefault(broker.id, replace(broker, source=part.file))
            if first.rack != broker.rack:
                notes.append(
                    f"broker {broker.id} is in rack {_named(broker.rack)} by {part.file}, in rack "
                    f"{_named(first.rack)} by {first.source}, which counts"
                )
    if wrong:
        raise ImportStateError(wrong)
    return tuple(seen[number] for number in sorted(seen)), tuple(notes)


def broker_notes(listed: Sequence[Broker], seen: Sequence[BrokerSeen]) -> Iterator[str]:
    """How the brokers of the YAML differ from those that are registered; nothing where no source tells those."""
    racks = {broker.id: broker.rack for broker in listed}
    for broker in seen:
        if broker.id not in racks:
            yield f"broker {broker.id} is live by {broker.source}, but isn't in cluster.brokers: it gets no replica"
        elif broker.rack != racks[broker.id]:
            yield (
                f"broker {broker.id} is in rack {_named(broker.rack)} by {broker.source}, in rack "
                f"{_named(racks[broker.id])} by cluster.brokers, which counts"
            )
    live = {broker.id for broker in seen}
    for number in racks if seen else ():
        if number not in live:
            yield f"broker {number} of cluster.brokers isn't among the live ones of {seen[0].source}"


def _named(rack: str | None) -> str:
    return "none" if rack is None else repr(rack)

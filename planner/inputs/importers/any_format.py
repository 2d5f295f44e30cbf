"""State files of Kafka's own tools, and of others', text in and values out; the format is told from the content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from planner.inputs.importers import (
    broker_versions,
    configs_describe,
    cruise_control,
    log_dirs_describe,
    reassign_partitions,
    terraform_show,
    topics_describe,
    znodes,
)
from planner.inputs.importers.state_parts import StatePart
from planner.model.errors import Finding, ImportStateError, Place

# So much of a text tells its format; what a terminal or a logger printed may stand above.
HEAD_CHARACTERS = 65_536

Expected = Literal["state", "assignment", "sizes"]

_ASSIGNMENT = (
    "the output of kafka-topics --describe or kafka-reassign-partitions (--generate, --execute), a reassignment JSON, "
    "a znode, a replica assignment such as 0:1,1:0, Cruise Control's kafka_cluster_state"
)
_ALLOWED: dict[Expected, str] = {
    "assignment": _ASSIGNMENT,
    "sizes": f"the output of {log_dirs_describe.TITLE}",
    "state": f"{_ASSIGNMENT} or proposals, the output of {log_dirs_describe.TITLE}, {configs_describe.TITLE}, "
    "kafka-broker-api-versions or kafka-reassign-partitions --list, a topics-to-move JSON, terraform show -json",
}


def is_read_by_line(head: str) -> bool:
    """True where a text that begins so is read line by line, by `read_lines`."""
    return topics_describe.recognises(head) and not head.lstrip().startswith("{")


def read_lines(lines: Iterable[str], file: str) -> StatePart:
    """What `kafka-topics --describe` printed, in lines without their ends."""
    return topics_describe.read_part(lines, file)


def read_part(text: str, file: str, topic: str | None = None, expected: Expected = "state") -> StatePart:
    """What a text of any known format says; `topic` for formats that don't name theirs.

    ImportStateError where the format isn't known, or not one of those expected, with all that are; and for each fault.
    """
    if is_read_by_line(text[:HEAD_CHARACTERS]):
        return require(read_lines(text.split("\n"), file), expected)
    for recognises, read in _READERS:
        if recognises(text):
            return require(read(text, file, topic), expected)
    raise _unknown(file, expected)


def require(part: StatePart, expected: Expected) -> StatePart:
    """The part, where it says what is expected of it: an assignment, sizes, or anything. Else ImportStateError."""
    if (expected == "assignment" and not part.entries) or (expected == "sizes" and part.sizes is None):
        raise _unknown(part.file, expected)
    return part


def _unknown(file: str, expected: Expected) -> ImportStateError:
    message = f"no {expected} in a known format; allowed: {_ALLOWED[expected]}"
    return ImportStateError([Finding(Place(file, 1, 1), "", message)])


_Reader = Callable[[str, str, str | None], StatePart]


def _unnamed(read: Callable[[str, str], StatePart]) -> _Reader:
    """A reader of a format that names its topics itself."""
    return lambda text, file, _: read(text, file)


# The order matters where a format's mark may be inside another one: the most specific marks come first.
_READERS: tuple[tuple[Callable[[str], bool], _Reader], ...] = (
    (terraform_show.recognises, _unnamed(terraform_show.read_part)),
    (cruise_control.recognises, _unnamed(cruise_control.read_part)),
    (log_dirs_describe.recognises, _unnamed(log_dirs_describe.read_part)),
    (reassign_partitions.is_list, _unnamed(reassign_partitions.read_list)),
    (configs_describe.recognises, _unnamed(configs_describe.read_part)),
    (broker_versions.recognises, _unnamed(broker_versions.read_part)),
    (reassign_partitions.is_topics_to_move, _unnamed(reassign_partitions.read_topics_to_move)),
    (znodes.recognises, znodes.read_part),
    (reassign_partitions.is_reassignment, _unnamed(reassign_partitions.read_reassignment)),
    (reassign_partitions.is_replica_assignment, reassign_partitions.read_replica_assignment),
)

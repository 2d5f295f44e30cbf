"""What `kafka-reassign-partitions --list` prints: the reassignments that run now.

`topic-0: replicas: 1,2,4,3. adding: 4. removing: 3.`, a line a partition, or that there are none.
Source: `org.apache.kafka.tools.reassign.ReassignPartitionsCommand`, `curReassignmentsToString`.
"""

from __future__ import annotations

import re

from planner.inputs.importers.state_parts import Rank, RunningReassignment, StatePart
from planner.model.errors import Finding, ImportStateError, Place

TITLE = "kafka-reassign-partitions --list"
_NONE = "No partition reassignments found."
_SOME = "Current partition reassignments:"
_IDS = r"[0-9]{1,10}(?:,[0-9]{1,10})*"
_LINE = re.compile(
    rf"(\S+)-([0-9]{{1,10}}): replicas: ({_IDS})\.(?: adding: ({_IDS})\.)?(?: removing: ({_IDS})\.)?", re.ASCII
)


def recognises(text: str) -> bool:
    """True where the tool's heading, or its word for none, is among the first lines."""
    return any(words in text[:4000] for words in (_NONE, _SOME))


def read_part(text: str, file: str) -> StatePart:
    """The partitions that are being reassigned, none included. ImportStateError names each bad line."""
    moving: list[RunningReassignment] = []
    findings: list[Finding] = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.strip()
        if not words or words in (_NONE, _SOME):
            continue
        place = Place(file, number, len(line) - len(line.lstrip()) + 1)
        match = _LINE.fullmatch(words)
        if match:
            moving.append(_moving(match, place))
        else:
            seen = words if len(words) <= 60 else f"{words[:57]}..."
            findings.append(Finding(place, "", f"{seen!r} isn't a reassignment; allowed: what {TITLE} prints"))
    if findings:
        raise ImportStateError(findings)
    return StatePart(TITLE, file, Rank.CLUSTER, moving=tuple(moving))


def _moving(match: re.Match[str], place: Place) -> RunningReassignment:
    replicas, adding, removing = (tuple(map(int, text.split(","))) if text else () for text in match.groups()[2:])
    return RunningReassignment(place, match[1], int(match[2]), adding, removing, replicas, f"{match[1]}-{match[2]}")

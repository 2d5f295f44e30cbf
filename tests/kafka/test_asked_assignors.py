"""Kafka's own assignors give the answers with which the quick tests compare this project's.

`ServerAssignors.java` draws groups at random, the same ones each time, and prints what the broker's classes assign. Its
output is tests/data/server-assignments.json. `ClientAssignors.java` is given the groups of
tests/data/consumer-assignments*.json, and prints what the classes of Kafka's clients assign.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from folders import ROOT
from tools import JDK, lacking

pytestmark = pytest.mark.kafka
GROUPS = 75
DATA = ROOT / "tests" / "data"


@pytest.fixture(scope="module")
def ask(folder_with_jars: Callable[[str], Path]) -> Callable[..., str]:
    """Runs a Java program with Kafka's classes: what it prints."""
    if not JDK.is_here():
        lacking(JDK.lack)
    classes = f"{folder_with_jars('assignors') / 'libs'}/*"

    def ran(name: str, *arguments: str, given: str = "") -> str:
        asked = ["java", "-cp", classes, str(Path(__file__).with_name(name)), *arguments]
        return subprocess.run(asked, input=given, capture_output=True, text=True, check=True).stdout

    return ran


def test_kafkas_classes_still_give_the_vectors(ask: Callable[..., str]) -> None:
    """Kafka's classes give exactly the committed answers."""
    assert (DATA / "server-assignments.json").read_text() == ask("ServerAssignors.java", str(GROUPS))


class Question(NamedTuple):
    """A group: partitions (`t0-1`) with the racks of their replicas, and members with their racks and topics.

    `owned` are the partitions that each member owns before; `answer` are those that it has afterwards.
    """

    assignor: str
    partitions: Mapping[str, list[str]]
    racks: Mapping[str, str]
    topics: Mapping[str, list[str]]
    owned: Mapping[str, list[str]]
    answer: Mapping[str, list[str]]

    def line(self) -> str:
        """The question as ClientAssignors.java reads it."""
        members = (
            "|".join((each, self.racks.get(each, ""), "+".join(topics), "+".join(self.owned.get(each, ()))))
            for each, topics in self.topics.items()
        )
        partitions = (f"{name}={'+'.join(racks)}" for name, racks in self.partitions.items())
        return "\t".join((self.assignor, ",".join(partitions), ",".join(members)))


def vectors(name: str) -> list[dict[str, Any]]:
    """The groups of a file."""
    found: list[dict[str, Any]] = json.loads((DATA / name).read_text())
    return found


def without_racks(assignor: str, topics: Mapping[str, int], members: Any, owned: Any, answer: Any) -> Question:
    """A group whose members and partitions have no racks."""
    partitions = {f"{topic}-{number}": list[str]() for topic, count in topics.items() for number in range(count)}
    before, after = ({each: [f"{t}-{n}" for t, n in held] for each, held in of.items()} for of in (owned, answer))
    return Question(assignor, partitions, {}, members, before, after)


def questions() -> Iterator[Question]:
    """Every group of every file with an answer of Kafka's clients."""
    for of in vectors("consumer-assignments.json"):
        members = of["subscriptions"]
        for assignor in ("range", "roundrobin", "sticky"):
            yield without_racks(assignor, of["topics"], members, {}, of[assignor])
        if of["sticky_after_leave"] is not None:
            left = {each: topics for each, topics in members.items() if each != of["member_leaves"]}
            yield without_racks("sticky", of["topics"], left, of["sticky"], of["sticky_after_leave"])
    for of in vectors("consumer-assignments-after-changes.json"):
        yield without_racks("sticky", of["topics"], of["subscriptions"], {}, of["sticky"])
        yield without_racks("sticky", of["topics_after"], of["subscriptions_after"], of["sticky"], of["sticky_after"])
    for of in vectors("consumer-assignments-with-racks.json"):
        for assignor, members, owned in (
            ("range", of["members"], {}),
            ("sticky", of["members"], {}),
            ("sticky", of["members_after"], of["sticky"]),
        ):
            racks, topics = ({each: stated[key] for each, stated in members.items()} for key in ("rack", "topics"))
            answer = of["sticky_after" if owned else assignor]
            yield Question(assignor, of["racks"], racks, topics, owned, answer)


def test_kafkas_clients_still_give_the_vectors(ask: Callable[..., str]) -> None:
    """The classes of Kafka's clients give each member the partitions that the files say."""
    asked = list(questions())
    printed = ask("ClientAssignors.java", given="".join(each.line() + "\n" for each in asked)).splitlines()

    assert len(asked) == len(printed)
    for question, line in zip(asked, printed, strict=True):
        members = dict(each.split("=") for each in line.split(","))
        found = {each: sorted(filter(None, held.split("+"))) for each, held in members.items()}
        assert {each: sorted(held) for each, held in question.answer.items()} == found, question

"""The document of `planner consumers` for people: as text and as Markdown, bounded, with names that are no markup."""

from __future__ import annotations

from io import StringIO

from clusters import no_racks, spec_of
from msgspec import structs
from rich.console import Console

from planner.model.spec import ConsumerGroup, ConsumerMember, Growth
from planner.report import markdown, terminal
from planner.whatif.consumers import consumers_sweep
from planner.whatif.consumers.consumers_summary import ConsumersQuestion, document
from planner.whatif.consumers.consumers_view import view
from planner.whatif.consumers.group_loads import loads, resolve

SPEC = spec_of(no_racks(1), {"a_b": [[1]] * 4}, sizes={"a_b": [4, 2, 1, 1]})


def groups(members=2):
    """A group whose members read the topic."""
    listed = tuple(ConsumerMember(f"m|{number:02}", ("*",)) for number in range(members))
    return resolve([ConsumerGroup("g*", "range", listed)], SPEC.cluster.topics)


def told(members=2, **more):
    """The document of the group."""
    return document(ConsumersQuestion(SPEC, groups(members), more.pop("grown", {}), **more))


def text(found):
    """The document as a program reads it from the terminal."""
    console = Console(file=StringIO(), width=1000)
    terminal.show(view(found), console)
    return console.file.getvalue()


def test_a_groups_sentences():
    """How even it is, and that nothing makes it rebalance."""
    page = " ".join(text(told()).split())

    assert "g*: range, 2 members, 4 partitions of 1 topic" in page
    assert "2 partitions a member; 2 B to 6 B each, the most 50 % above its share." in page
    assert "The spec's changes don't make it rebalance." in page
    assert "3 members without any partition: more members than partitions to read." in text(told(7))


def test_names_are_no_markup():
    """On a terminal they are as they are, in Markdown they are code, and no cell ends within one."""
    assert "m|00" in text(told())
    page = markdown.render(view(told()))
    assert "`g*`" in page
    assert "| `m\\|00` | 2 | 6 B | `a_b` 0–1 |" in page


def test_members_and_events_of_a_large_group_are_bounded():
    """The rest of the members is counted; of those that leave the costliest are shown."""
    page = text(told(40))

    assert "8 members left out here" in page
    assert 12 == page.count(" leaves")


def test_keys_and_the_sweep_are_sections_of_their_own():
    """Only where they are asked for."""
    assert "Least spread" not in text(told())
    weights = loads(SPEC.cluster.topics, "bytes")
    study = consumers_sweep.study(groups(), weights, [Growth("more", "a*", 3.0)])
    scores = consumers_sweep.evaluate(study, consumers_sweep.rows(groups()).to_pylist())
    asked = told(grown={"a_b": 8}, keys=("k",))
    found = structs.replace(asked, sweep=consumers_sweep.summary(study, scores))
    page = " ".join(text(found).split())

    assert "a_b from 4 to 8 partitions: 50 % of all keys go to another partition" in page
    assert "Key k " in page
    assert "Least spread of 9 combinations: 2 members with cooperative-sticky" in page

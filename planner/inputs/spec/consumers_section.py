"""`consumers`: the consumer groups that `planner consumers` looks at, from the YAML to values, and its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.inputs.importers.state_parts import Assignment
from planner.inputs.yaml_source import Document, Path
from planner.model.errors import Finding, did_you_mean
from planner.model.spec import ConsumerGroup, ConsumerMember, DescribedGroup

_MEMBERS_SHOWN = 10

Described = Mapping[str, Sequence[DescribedGroup]]


def groups(document: Document, described: Described) -> tuple[ConsumerGroup, ...]:
    """`consumers`, in the file's order; subscriptions are still patterns. `described`: state files' groups, by path."""
    return tuple(_group(item, described) for item in document.get("consumers") or ())


def _group(item: Mapping[str, Any], described: Described) -> ConsumerGroup:
    listed, shared = item.get("members", ()), tuple(item.get("topics", ()))
    if isinstance(listed, int):
        width = len(str(listed))
        listed = [{"id": f"consumer-{number:0{width}}"} for number in range(1, listed + 1)]
    members = tuple(ConsumerMember(each["id"], tuple(each.get("topics", shared)), each.get("rack")) for each in listed)
    found = next((one for one in described.get(item.get("state", ""), ()) if one.name == item["group"]), None)
    return ConsumerGroup(item["group"], item.get("assignor", ""), members, found)


def state_files_of_groups(document: Document) -> Iterator[tuple[Path, str]]:
    """The state files that groups name, each once, with the key that names it first."""
    seen: set[str] = set()
    for at, item in enumerate(document.get("consumers") or ()):
        if (file := item.get("state")) is not None and file not in seen:
            seen.add(file)
            yield ("consumers", at, "state"), file


def group_findings(document: Document, _: Assignment) -> Iterator[Finding]:
    """Groups and members once each, and each member with topics."""
    names: set[str] = set()
    for at, item in enumerate(document.get("consumers") or ()):
        path: Path = ("consumers", at)
        if item["group"] in names:
            yield document.finding((*path, "group"), f"{item['group']!r} is here twice; allowed: each group once")
        names.add(item["group"])
        if "members" not in item and "state" not in item:
            yield document.finding(path, "has neither members nor state; allowed: at least one of them")
        yield from _member_findings(document, path, item)


def described_findings(document: Document, described: Described, assignment: Assignment) -> Iterator[Finding]:
    """Groups that aren't in their state files, and partitions in those that the cluster doesn't have.

    Of files that couldn't be read, which `described` lacks, nothing is said.
    """
    counts = {topic.name: len(topic.partitions) for topic in assignment.topics}
    for at, item in enumerate(document.get("consumers") or ()):
        path: Path = ("consumers", at)
        groups = described.get(item.get("state", ""))
        if groups is None:
            continue
        found = next((one for one in groups if one.name == item["group"]), None)
        if found is None:
            listed = ", ".join(one.name for one in groups)
            guess = did_you_mean(item["group"], [one.name for one in groups])
            message = f"{item['group']!r} isn't in {item['state']!r}; {guess}allowed: {listed}"
            yield document.finding((*path, "group"), message)
            continue
        yield from _undescribed(document, path, item, found)
        owned = [(member, *each) for member, held in found.members.items() for each in held]
        for member, topic, partition in owned:
            if partition >= counts.get(topic, 0):
                message = f"{member!r} of {item['state']!r} owns {topic}-{partition}, which the cluster doesn't have"
                yield document.finding((*path, "state"), f"{message}; allowed: groups of the same cluster")


def _undescribed(document: Document, path: Path, item: Mapping[str, Any], found: DescribedGroup) -> Iterator[Finding]:
    """Members that are declared, but not in the state file of their group: nothing would be done with them."""
    members = item.get("members", ())
    for number, member in enumerate(() if isinstance(members, int) else members):
        if member["id"] not in found.members:
            listed = ", ".join(sorted(found.members)[:_MEMBERS_SHOWN])
            guess = did_you_mean(member["id"], found.members)
            message = f"{member['id']!r} isn't a member in {item['state']!r}; {guess}allowed: members such as {listed}"
            yield document.finding((*path, "members", number, "id"), message)


def _member_findings(document: Document, path: Path, item: Mapping[str, Any]) -> Iterator[Finding]:
    members = item.get("members", ())
    if isinstance(members, int):
        if "topics" not in item:
            yield document.finding(path, "has a number of members and no topics; allowed: topics that all of them read")
        return
    ids: set[str] = set()
    for number, member in enumerate(members):
        if member["id"] in ids:
            where = (*path, "members", number, "id")
            yield document.finding(where, f"{member['id']!r} is here twice; allowed: each member once")
        ids.add(member["id"])
        if "topics" not in member and "topics" not in item:
            message = "has no topics, nor has its group; allowed: topics of the member, or of the group"
            yield document.finding((*path, "members", number), message)


def patterns(document: Document) -> Iterator[tuple[Path, str]]:
    """Every pattern of every group, with its path."""
    for at, item in enumerate(document.get("consumers") or ()):
        yield from _patterns(("consumers", at), item)


def _patterns(path: Path, item: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Every pattern of a group, with its path."""
    for at, pattern in enumerate(item.get("topics", ())):
        yield (*path, "topics", at), pattern
    members = item.get("members", ())
    for number, member in enumerate(() if isinstance(members, int) else members):
        for at, pattern in enumerate(member.get("topics", ())):
            yield (*path, "members", number, "topics", at), pattern

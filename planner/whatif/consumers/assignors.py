"""Who owns which partition in a consumer group: Kafka's assignors, and a user's own.

The door is `assign`. Topics are names with their partition counts, members are their ids. Which rack a member reads in
doesn't count here: Kafka's assignors look at racks only to choose among equally even assignments (KIP-881).
"""

from __future__ import annotations

import importlib
import re
import sys
from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from itertools import cycle
from pathlib import Path
from types import ModuleType

from planner.model.errors import PlannerError
from planner.model.spec import ConsumerGroup
from planner.strategies.java_random import hash_map_order, utf16_key
from planner.whatif.consumers import sticky_assignors

TopicPartition = tuple[str, int]
Owned = Mapping[str, Sequence[TopicPartition]]
Ownership = dict[str, list[TopicPartition]]
Assignor = Callable[[dict[str, int], dict[str, list[str]], dict[str, list[TopicPartition]]], Owned]

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def assign(
    assignor: str,
    topics: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    owned: Owned | None = None,
) -> Ownership:
    """Each member's partitions, (topic, partition), under one of ASSIGNORS or a user's own `module:function`.

    `topics` are partition counts, `subscriptions` the topics of each member; topics that nobody subscribes to, or that
    have no count, are nobody's. `owned` is what members own now, which the sticky assignors keep where they can: a
    partition that two members claim counts for neither. `cooperative-sticky` gives the owners at its end: in the first
    of its two rounds, what moves between members is nobody's. A user's own function gets the three mappings and gives
    one as this does. PlannerError for an assignor that there isn't, and for what it gives where that can't be.

    Source: Kafka 4.1, RangeAssignor, RoundRobinAssignor, AbstractStickyAssignor (KIP-54, KIP-429).
    """
    wanted = {topic for listed in subscriptions.values() for topic in listed}
    counts = {topic: count for topic, count in topics.items() if topic in wanted}
    members = {member: sorted(set(listed) & counts.keys(), key=utf16_key) for member, listed in subscriptions.items()}
    match assignor:
        case "range":
            return _range(counts, members)
        case "roundrobin":
            return _round_robin(counts, members)
        case "sticky" | "cooperative-sticky":
            return sticky_assignors.assign(counts, members, owned or {})
    return _own(load(assignor), counts, members, owned or {}, assignor)


def load(assignor: str) -> Assignor:
    """The function that `module:function` names; PlannerError where there is none."""
    module, _, name = assignor.partition(":")
    allowed = f"allowed: {', '.join(ASSIGNORS)}, or module:function of your own"
    if not _OWN.fullmatch(assignor):
        raise PlannerError(f"assignor {assignor!r} isn't known; {allowed}")
    try:
        function: Assignor = getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's own module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise PlannerError(f"assignor {assignor!r} can't be loaded: {reason}; {allowed}") from error
    return function


def _by_topic(members: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The members that subscribe to each topic, in the order of their ids."""
    subscribers: defaultdict[str, list[str]] = defaultdict(list)
    for member in sorted(members, key=utf16_key):
        for topic in members[member]:
            subscribers[topic].append(member)
    return subscribers


def _range(counts: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> Ownership:
    """Each topic in ranges of neighbours; what doesn't divide goes to the first members."""
    owners: Ownership = {member: [] for member in members}
    subscribers = _by_topic(members)
    # Kafka goes through its hash map of topics, which shows only in the order of each member's list.
    for topic in hash_map_order(list(counts)):
        assert topic is not None
        first, readers = 0, subscribers[topic]
        for number, member in enumerate(readers):
            length = counts[topic] // len(readers) + (number < counts[topic] % len(readers))
            owners[member] += [(topic, partition) for partition in range(first, first + length)]
            first += length
    return owners


def _round_robin(counts: Mapping[str, int], members: Mapping[str, Sequence[str]]) -> Ownership:
    """All partitions, topic by topic, dealt to the members in turn; who doesn't subscribe is passed over."""
    owners: Ownership = {member: [] for member in members}
    turns = cycle(sorted(members, key=utf16_key))
    for topic in sorted(counts, key=utf16_key):
        for partition in range(counts[topic]):
            member = next(each for each in turns if topic in members[each])
            owners[member].append((topic, partition))
    return owners


def _own(
    function: Assignor, counts: dict[str, int], members: dict[str, list[str]], owned: Owned, assignor: str
) -> Ownership:
    """What a user's own assignor gives, checked: each partition has one owner, who subscribes to its topic."""
    given = function(dict(counts), dict(members), {member: list(held) for member, held in owned.items()})
    allowed = "allowed: each partition once, with a member that subscribes to its topic"
    left = {(topic, partition) for topic, count in counts.items() for partition in range(count)}
    owners: Ownership = {member: [] for member in members}
    for member, held in given.items():
        for topic, partition in held:
            if (topic, partition) not in left or topic not in members.get(member, ()):
                raise PlannerError(f"assignor {assignor!r} gives {topic}-{partition} to {member!r}; {allowed}")
            left.remove((topic, partition))
            insort(owners[member], (topic, partition))
    if left:
        topic, partition = min(left)
        raise PlannerError(f"assignor {assignor!r} gives {topic}-{partition} to nobody; {allowed}")
    return owners


@contextmanager
def importable(folder: Path, groups: Iterable[ConsumerGroup]) -> Iterator[None]:
    """The modules that the groups' assignors name (`module:function`) can be imported from `folder` meanwhile.

    What is installed has precedence. The folder isn't on `sys.path`: a library that looks for an optional package of
    its own, as pandas does for numexpr, would run whatever lies there under that name.
    """
    finder = _Named(folder, tuple(group.assignor.partition(":")[0] for group in groups if ":" in group.assignor))
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # Another spec of the same run may have a module of the same name.
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.found]:
            del sys.modules[name]


class _Named:
    """Finds the top packages of the named modules in one folder, and remembers which it found."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self.folder = folder
        self.names = {module.partition(".")[0] for module in modules}
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What `sys.meta_path` asks for; modules within a package are found by the package."""
        if name not in self.names:
            return None
        spec = PathFinder.find_spec(name, [str(self.folder)], target)
        if spec is not None:
            self.found.add(name)
        return spec

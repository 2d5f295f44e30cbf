"""Who owns which partition in a consumer group: Kafka's assignors, and a user's own function.

The entry point is `assign`. Topics are given as names with partition counts, members as ids. A member's rack doesn't
matter here, because Kafka's assignors use racks only to choose among equally even assignments (KIP-881).
"""

import importlib
import re
import sys
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder
from itertools import combinations, cycle
from pathlib import Path
from types import ModuleType

from planner.model.cluster import PartitionKey
from planner.model.errors import PlannerError
from planner.model.spec import ConsumerGroup
from planner.strategies.java_random import hash_map_order, utf16_key
from planner.whatif import server_assignors
from planner.whatif.server_assignors import ServerGroup

Owned = Mapping[str, Sequence[PartitionKey]]
Ownership = dict[str, list[PartitionKey]]
Assignor = Callable[[dict[str, int], dict[str, list[str]], dict[str, list[PartitionKey]]], Owned]

# The first run in the broker (group.protocol=consumer), where `server-range` is `range`; others in clients (classic).
SERVER_ASSIGNORS = ("uniform", "server-range")
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", *SERVER_ASSIGNORS)
# The assignor of share groups, whose members may own the same partition.
SHARE_ASSIGNOR = "simple"
_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def assign(
    assignor: str,
    topics: Mapping[str, int],
    subscriptions: Mapping[str, Sequence[str]],
    owned: Owned | None = None,
    *,
    topic_ids: Mapping[str, str] | None = None,
    instances: Mapping[str, str] | None = None,
) -> Ownership:
    """Each member's partitions, (topic, partition), under one of ASSIGNORS, `simple`, or a user's `module:function`.

    `topics` are partition counts, `subscriptions` the topics of each member. Topics without a subscriber or without a
    count are left out. `owned` is what members own now; the sticky assignors keep it if they can, but a partition that
    two members claim counts for neither. `cooperative-sticky` gives the owners at its end: in the first of its two
    rounds, nobody owns what moves between members. A user's own function gets the three mappings and returns one like
    this function's. PlannerError for an unknown assignor, and for an invalid result of a user's own.

    Only the broker's assignors use `topic_ids` (`kafka-topics --describe`). Only `range`, `roundrobin` and
    `server-range` use `instances`, the `group.instance.id` of static members. Source: Kafka 4.1, RangeAssignor,
    RoundRobinAssignor, AbstractStickyAssignor (KIP-54, KIP-429); for the broker's, Kafka 4.3 (KIP-848, KIP-932).
    """
    wanted = {topic for listed in subscriptions.values() for topic in listed}
    counts = {topic: count for topic, count in topics.items() if topic in wanted}
    members = {member: sorted(set(listed) & counts.keys(), key=utf16_key) for member, listed in subscriptions.items()}
    static = instances or {}
    # Static members come first (AbstractPartitionAssignor.MemberInfo).
    order = sorted(members, key=lambda each: (each not in static, utf16_key(static.get(each, each))))
    match assignor:
        case "range" | "server-range":
            return _range(counts, members, order)
        case "roundrobin":
            return _round_robin(counts, members, order)
        case "sticky" | "cooperative-sticky":
            return _sticky(counts, members, _undisputed(members, owned or {}))
        case "uniform":
            held = _undisputed(members, owned or {})
            return server_assignors.uniform(ServerGroup(counts, members, held, topic_ids or {}))
        case "simple":
            return server_assignors.simple(ServerGroup(counts, members, owned or {}, topic_ids or {}))
    return _own(load(assignor), counts, members, owned or {}, assignor)


def load(assignor: str) -> Assignor:
    """The function that `module:function` names; PlannerError if there is none."""
    module, _, name = assignor.partition(":")
    allowed = f"allowed: {', '.join(ASSIGNORS)}, {SHARE_ASSIGNOR}, or module:function of your own"
    if not _OWN.fullmatch(assignor):
        raise PlannerError(f"assignor {assignor!r} isn't known; {allowed}")
    try:
        # Only the result goes to stdout, so that --format json stays JSON whatever a user's own module prints.
        with redirect_stdout(sys.stderr):
            function: Assignor = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a user's own module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise PlannerError(f"assignor {assignor!r} can't be loaded: {reason}; {allowed}") from error
    return function


def _range(counts: Mapping[str, int], members: Mapping[str, Sequence[str]], order: Iterable[str]) -> Ownership:
    """Each topic in ranges of neighbors; if the partitions can't be divided evenly, the first members get one more."""
    subscribers: defaultdict[str, list[str]] = defaultdict(list)
    for member in order:
        for topic in members[member]:
            subscribers[topic].append(member)
    owners: Ownership = {member: [] for member in members}
    # Kafka iterates over its hash map of topics, which affects only the order of each member's list.
    for read in hash_map_order(counts):
        assert read is not None
        first, readers = 0, subscribers[read]
        for number, member in enumerate(readers):
            length = counts[read] // len(readers) + (number < counts[read] % len(readers))
            owners[member] += [(read, partition) for partition in range(first, first + length)]
            first += length
    return owners


def _round_robin(counts: Mapping[str, int], members: Mapping[str, Sequence[str]], order: Iterable[str]) -> Ownership:
    """All partitions, topic by topic, to the members in turn; skips members that don't subscribe to the topic."""
    owners: Ownership = {member: [] for member in members}
    turns = cycle(order)
    for topic in sorted(counts, key=utf16_key):
        for partition in range(counts[topic]):
            member = next(each for each in turns if topic in members[each])
            owners[member].append((topic, partition))
    return owners


def _own(
    function: Assignor, counts: dict[str, int], members: dict[str, list[str]], owned: Owned, assignor: str
) -> Ownership:
    """The checked result of a user's own assignor: each partition has one owner, who subscribes to its topic."""
    try:
        with redirect_stdout(sys.stderr):  # as in `load`
            given = function(dict(counts), dict(members), {member: list(held) for member, held in owned.items()})
            pairs = [(member, topic, partition) for member, held in given.items() for topic, partition in held]
    except (Exception, SystemExit) as error:  # a user's own function may raise anything, and give anything
        reason = f"{type(error).__name__}: {error}"
        takes = "allowed: a function of topics, subscriptions and owned that gives each member its partitions"
        raise PlannerError(f"assignor {assignor!r} doesn't assign: {reason}; {takes}") from error
    allowed = "allowed: each partition once, with a member that subscribes to its topic"
    left = {(topic, partition) for topic, count in counts.items() for partition in range(count)}
    owners: Ownership = {member: [] for member in members}
    for member, topic, partition in pairs:
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
    """Makes the modules of the groups' assignors (`module:function`) importable from `folder` within the context.

    Installed modules have precedence. The folder isn't on `sys.path`, because a library that looks for an optional
    package (as pandas does for numexpr) would run any file of this name there.
    """
    finder = _Named(folder, tuple(group.assignor.partition(":")[0] for group in groups if ":" in group.assignor))
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # Another spec of the same run may have a module with the same name.
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.found]:
            del sys.modules[name]


class _Named:
    """Finds the top-level packages of the named modules in one folder, and remembers which it found."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self.folder = folder
        self.names = {module.partition(".")[0] for module in modules}
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by `sys.meta_path`; a package finds its own modules."""
        if name not in self.names:
            return None
        spec = PathFinder.find_spec(name, [str(self.folder)], target)
        if spec is not None:
            self.found.add(name)
        return spec


def _undisputed(members: Iterable[str], owned: Owned) -> dict[str, set[PartitionKey]]:
    """What each member owns, without the partitions that two members claim."""
    claims = Counter(partition for member in members for partition in set(owned.get(member, ())))
    return {member: {each for each in owned.get(member, ()) if claims[each] == 1} for member in members}


def _sticky(
    counts: Mapping[str, int], members: Mapping[str, Sequence[str]], owned: Mapping[str, Iterable[PartitionKey]]
) -> Ownership:
    """As even as the subscriptions allow, with as few moves as possible; each member's partitions are sorted.

    What is `owned` today counts only if member and partition still exist and the member subscribes to the topic.
    Source: Kafka 4.1, AbstractStickyAssignor (KIP-54, KIP-341).
    """
    kept = dict[str, list[PartitionKey]]()
    for member in sorted(members, key=utf16_key):
        held = [each for each in owned[member] if 0 <= each[1] < counts.get(each[0], 0)]
        # What a member keeps of several topics are its first partitions of each, not its first topics.
        kept[member] = sorted(held, key=lambda each: _key(each)[::-1])
    if len({frozenset(topics) for topics in members.values()}) <= 1:
        return _alike(counts, kept)
    general = _General(counts, members, kept)
    general.balance()
    return {member: sorted(general.owners[member], key=_key) for member in members}


def _key(partition: PartitionKey) -> tuple[bytes, int]:
    return utf16_key(partition[0]), partition[1]


def _alike(counts: Mapping[str, int], kept: Mapping[str, Sequence[PartitionKey]]) -> Ownership:
    """The sticky assignment of members that all subscribe to the same topics.

    Shares differ by at most one; members that own enough get the larger ones first. The rest is dealt out in turn.
    """
    partitions = [(topic, number) for topic in sorted(counts, key=utf16_key) for number in range(counts[topic])]
    least, larger = divmod(len(partitions), max(len(kept), 1))
    owners: Ownership = {}
    for member, held in kept.items():
        most = least + 1 if larger > 0 and len(held) > least else least
        larger -= most > least
        owners[member] = list(held[:most])
    taken = {each for held in owners.values() for each in held}
    rest = iter([each for each in partitions if each not in taken])
    while short := [member for member, held in owners.items() if len(held) < least]:
        for member in short:
            owners[member].append(next(rest))
    full = [member for member, held in owners.items() if len(held) == least]
    for member, partition in zip(full[:larger], rest, strict=True):
        owners[member].append(partition)
    return {member: sorted(held, key=_key) for member, held in owners.items()}


class _General:
    """The sticky assignment of members with different subscriptions, changed one move at a time.

    Partitions move from members with more to members with fewer, as long as a move makes two members more equal.
    """

    def __init__(
        self, counts: Mapping[str, int], members: Mapping[str, Sequence[str]], kept: Mapping[str, list[PartitionKey]]
    ) -> None:
        self.counts = counts
        self.subscribers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member in kept:
            for topic in members[member]:
                self.subscribers[topic].append(member)
        # Topics with few subscribers come first.
        topics = sorted(counts, key=lambda topic: (len(self.subscribers[topic]), utf16_key(topic)))
        self.partitions = [(topic, number) for topic in topics for number in range(counts[topic])]
        self.owners = {member: {each for each in held if each[0] in members[member]} for member, held in kept.items()}
        self.members = members
        # If a member lost partitions with an ended subscription, all partitions may move at once.
        self.revoking = any(len(self.owners[member]) < len(held) for member, held in kept.items())
        self.owner = {each: member for member, held in self.owners.items() for each in held}
        self.moved: dict[PartitionKey, tuple[str, str]] = {}
        self.moves: defaultdict[tuple[str, str, str], dict[PartitionKey, None]] = defaultdict(dict)

    def balance(self) -> None:
        """Assigns partitions without an owner, then evens out; undoes moves that don't make the group more even."""
        fresh = not any(self.owners.values())
        unowned = [each for each in self.partitions if each not in self.owner and self.subscribers[each[0]]]
        for partition in unowned:
            self._give(partition, self._least(partition[0], self.owners))
        movable = [each for each in self.partitions if len(self.subscribers[each[0]]) > 1]
        before, owner_before = {member: set(held) for member, held in self.owners.items()}, dict(self.owner)
        members = {member: None for member in self.owners if self._takes_part(member)}
        if not self.revoking:
            self._even([each for each in unowned if len(self.subscribers[each[0]]) > 1], members)
        moved = self._even(movable, members) and not fresh
        if moved and _unevenness(self.owners, members) >= _unevenness(before, members):
            self.owners, self.owner = before, owner_before

    def _least(self, topic: str, members: Collection[str]) -> str:
        """The subscriber with the fewest partitions; of several, the first by id."""
        return min((m for m in self.subscribers[topic] if m in members), key=lambda member: len(self.owners[member]))

    def _takes_part(self, member: str) -> bool:
        """True if a member can give or get a partition."""
        if len(self.owners[member]) < sum(self.counts[topic] for topic in self.members[member]):
            return True
        return any(len(self.subscribers[topic]) > 1 for topic, _ in self.owners[member])

    def _even(self, partitions: Sequence[PartitionKey], members: Collection[str]) -> bool:
        """Moves partitions to members with at least two fewer until there are none; True if any moved."""
        moved_any, again = False, bool(partitions)
        while again:
            again = False
            for partition in partitions:
                count = len(self.owners[self.owner[partition]])
                target = self._least(partition[0], members)
                if count > len(self.owners[target]) + 1:
                    self._move(partition, target)
                    moved_any = again = True
        return moved_any

    def _move(self, partition: PartitionKey, target: str) -> None:
        """Moves a partition of the topic from its owner to the target; prefers one that moved the other way before."""
        topic, source = partition[0], self.owner[partition]
        origin = self.moved[partition][0] if partition in self.moved else source
        back = self.moves.get((topic, target, origin))
        actual = next(iter(back)) if back else partition
        source = self.owner[actual]
        self.owners[source].remove(actual)
        self._record(actual, source, target)
        self._give(actual, target)

    def _record(self, partition: PartitionKey, source: str, target: str) -> None:
        """Remembers where a partition came from; a partition that came back has not moved."""
        if partition in self.moved:
            origin, last = self.moved.pop(partition)
            del self.moves[partition[0], origin, last][partition]
            source = origin
        if source != target:
            self.moved[partition] = source, target
            self.moves[partition[0], source, target][partition] = None

    def _give(self, partition: PartitionKey, member: str) -> None:
        self.owners[member].add(partition)
        self.owner[partition] = member


def _unevenness(owners: Mapping[str, Collection[PartitionKey]], members: Collection[str]) -> int:
    """The sum, over all pairs of members, of the difference in their numbers of partitions."""
    return sum(abs(len(owners[one]) - len(owners[other])) for one, other in combinations(members, 2))

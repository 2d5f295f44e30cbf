"""Decides whether a plan still fits the cluster as it is now.

Each partition of the plan must have the replicas that the plan was made from, or those of one of the plan's steps. The
Ansible role checks the same lists (`ansible_vars.states`) before it starts (`precheck.yml`). Differences outside the
plan are only reported, unless they keep the role from starting or would leave replicas on brokers that leave.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import chain

from planner.approval.changes_since_plan import ClusterNow
from planner.export import ansible_vars
from planner.model.cluster import ANY, Partition, PartitionKey, Topic, keyed_partitions, partition_name
from planner.model.formats import counted, printable, replica_list
from planner.plan.document.partition_types import NewPartitionsRow, PartitionRow
from planner.plan.document.plan_types import Plan


class Standing(Enum):
    """Where a partition of a plan is: on the replica list of a step, on such a list in another order, or elsewhere."""

    FOUND = "as the plan found {them}"
    UNDER_WAY = "on {their} way"
    THERE = "as the plan wants {them}"
    REORDERED = "in another order"
    ELSEWHERE = "elsewhere"
    GONE = "gone"


@dataclass(frozen=True)
class Difference:
    """One difference between the plan and the cluster; if it `refuses`, the plan must not be carried out."""

    kind: str
    subject: str
    message: str
    refuses: bool = True

    def __str__(self) -> str:
        return f"{printable(self.subject)}: {printable(self.message)}"


@dataclass(frozen=True)
class Fit:
    """How a plan fits a cluster: all differences, and the progress of each partition.

    `brokers_known` is False if no source says which brokers are live, and in which racks.
    """

    differences: tuple[Difference, ...]
    standings: Mapping[PartitionKey, Standing]
    moving: int
    brokers_known: bool

    @property
    def stale(self) -> tuple[Difference, ...]:
        """The differences because of which the plan is refused."""
        return tuple(each for each in self.differences if each.refuses)

    @property
    def notes(self) -> tuple[Difference, ...]:
        """The differences that are only reported."""
        return tuple(each for each in self.differences if not each.refuses)

    @property
    def resumable(self) -> bool:
        """False if a broker of the plan isn't live, lacks a log dir, or is in another rack: then `resume` refuses."""
        return not any(each.kind in ("broker", "log_dir", "rack") for each in self.stale)

    def progress(self) -> str:
        """A phrase: how many partitions of the plan are in which standing."""
        counts = Counter(self.standings.values())
        one, many = {"them": "it", "their": "its"}, {"them": "them", "their": "their"}
        texts = {each: each.value.format_map(one if counts[each] == 1 else many) for each in Standing if counts[each]}
        running = f"; {counted(self.moving, 'partition')} being reassigned by the plan now" if self.moving else ""
        total = counted(len(self.standings), "partition")
        if len(texts) == 1:
            return f"{'all ' if len(self.standings) > 1 else ''}{total} {next(iter(texts.values()))}{running}"
        parts = ", ".join(f"{counts[standing]:,} {words}" for standing, words in texts.items())
        return f"{total}: {parts}{running}" if parts else "nothing"


def fit(plan: Plan, now: ClusterNow) -> Fit:
    """Compares a plan with the cluster as it is now."""
    compared = PlanOnCluster(plan, now)
    conflicts = (Difference("sources", "the state", each, refuses=False) for each in now.disagreements)
    differences = chain(
        conflicts,
        broker_differences(compared),
        _partitions(compared),
        _new_partitions(compared),
        _topics(compared),
        _out_of_sync(compared),
    )
    return Fit(tuple(differences), compared.standings, compared.moving, now.racks is not None)


@dataclass(frozen=True)
class PlanOnCluster:
    """A plan and the cluster as it is now."""

    plan: Plan
    now: ClusterNow

    @cached_property
    def rows(self) -> dict[PartitionKey, PartitionRow]:
        """The plan's partitions."""
        return {row.key: row for row in self.plan.partitions}

    @cached_property
    def states(self) -> dict[PartitionKey, list[tuple[int, ...]]]:
        """The replica lists that each partition passes through; a single one if its list doesn't change."""
        passed = ansible_vars.states(self.plan)
        return {key: passed.get(key, [row.replicas]) for key, row in self.rows.items()}

    @cached_property
    def new_by_topic(self) -> dict[str, NewPartitionsRow]:
        """The new partitions, by topic."""
        return {topic.topic: topic for topic in self.plan.new_topics}

    @cached_property
    def leaving(self) -> frozenset[int]:
        """Brokers that the plan removes; a first step may not empty them yet."""
        return frozenset(ansible_vars.leaving(self.plan)["apply"])

    @cached_property
    def log_dir_of(self) -> dict[tuple[str, int, int], str]:
        """The log dir of each replica, by topic, partition and broker, if known; without replicas that are moving."""
        replicas = self.now.log_dirs.replicas
        return {(each.topic, each.partition, each.broker): each.path for each in replicas if not each.moving}

    @cached_property
    def standings(self) -> dict[PartitionKey, Standing]:
        """The standing of each of the plan's partitions."""
        return {key: self._standing(key) for key in self.rows}

    @property
    def moving(self) -> int:
        """How many partitions are being reassigned by the plan."""
        return sum(self.is_by_plan(key) for key in self.now.moving)

    def partition(self, key: PartitionKey) -> Partition | None:
        """A partition as it is now; None if it doesn't exist, or if its topic is about to be deleted."""
        topic = self.now.topics.get(key[0])
        if topic is None or topic.deleting or key[1] >= len(topic.partitions):
            return None
        return topic.partitions[key[1]]

    def lost_topic(self, name: str) -> bool:
        """True if a topic that was to get more partitions doesn't exist any more, or is about to be deleted."""
        topic = self.now.topics.get(name)
        return self.new_by_topic[name].partitions_before > 0 and (topic is None or topic.deleting)

    def is_by_plan(self, key: PartitionKey) -> bool:
        """True if a partition is on, or is being reassigned to, the brokers of one of the plan's steps."""
        partition, states = self.partition(key), self.states.get(key, [])
        return partition is not None and any(set(partition.replicas) == set(replicas) for replicas in states)

    def _standing(self, key: PartitionKey) -> Standing:
        today, states = self.partition(key), self.states[key]
        if today is None:
            return Standing.GONE
        if today.replicas not in states:
            return Standing.REORDERED if self.is_by_plan(key) else Standing.ELSEWHERE
        if key in self.now.moving:
            return Standing.UNDER_WAY
        if today.replicas == states[-1] and (today.replicas != states[0] or self._as_planned(self.rows[key], today)):
            return Standing.THERE
        return Standing.FOUND if today.replicas == states[0] else Standing.UNDER_WAY

    def _as_planned(self, row: PartitionRow, partition: Partition) -> bool:
        """For a replica list that doesn't change: True if the leader and the log dirs are as planned."""
        dirs = zip(row.replicas, row.log_dirs or (), strict=False)
        moved = all(path in (ANY, self.log_dir_of.get((*row.key, broker))) for broker, path in dirs)
        return moved and (row.reason == "balance_log_dirs" or partition.leader == row.replicas[0])


def lists_path(states: Iterable[tuple[int, ...]]) -> str:
    """The distinct replica lists that a partition passes through, in a message: `1,2 → 1,2,3 → 2,3`."""
    return " → ".join(dict.fromkeys(map(replica_list, states)))


def broker_differences(compared: PlanOnCluster) -> Iterator[Difference]:
    """Brokers of the plan that lack a log dir, aren't live or are in another rack, and brokers unknown to the plan."""
    usable = {
        broker: {each.path for each in dirs if each.error is None} for broker, dirs in compared.now.log_dirs.brokers
    }
    for broker, paths in ansible_vars.log_dirs(compared.plan).get("apply", {}).items():
        for path in sorted(set(paths) - usable.get(broker, set(paths))):
            yield Difference("log_dir", f"broker {broker}", f"has no usable log dir {path}; the plan counts on it")
    racks = compared.now.racks
    if racks is None:
        return
    for broker in ansible_vars.staying(compared.plan)["apply"]:
        if broker not in racks:
            yield Difference("broker", f"broker {broker}", "isn't live; the plan counts on it")
    for broker, rack in ansible_vars.racks(compared.plan).items():
        if broker in racks and racks[broker] != rack:
            rack_text = "no rack" if racks[broker] is None else f"rack {racks[broker]}"
            yield Difference("rack", f"broker {broker}", f"is in {rack_text}; the plan counts on rack {rack}")
    for broker in sorted(racks.keys() - {broker.id for broker in compared.plan.brokers}):
        yield Difference("broker", f"broker {broker}", "is new; the plan doesn't know it", refuses=False)


def _partitions(compared: PlanOnCluster) -> Iterator[Difference]:
    """Partitions that others reassign; the plan's that are elsewhere, reordered, or unmoved with another leader."""
    for key in sorted(compared.now.moving):
        if not compared.is_by_plan(key):
            target = f" to {replica_list(partition.replicas)}" if (partition := compared.partition(key)) else ""
            yield Difference("reassignment", partition_name(*key), f"is being reassigned{target}, but not by the plan")
    for key, standing in compared.standings.items():
        partition, name = compared.partition(key), partition_name(*key)
        if partition is None or (key in compared.now.moving and not compared.is_by_plan(key)):
            continue
        replicas, states, was = replica_list(partition.replicas), compared.states[key], compared.rows[key].leader_before
        if standing is Standing.ELSEWHERE:
            yield Difference(
                "replicas", name, f"has replicas {replicas}; the plan was made from {replica_list(states[0])}"
            )
        elif standing is Standing.REORDERED:
            lists = lists_path(states)
            yield Difference("order", name, f"has its replicas in the order {replicas}; the plan's lists are {lists}")
        elif standing is Standing.FOUND and partition.leader != was:
            now, before = ("nobody" if leader is None else f"broker {leader}" for leader in (partition.leader, was))
            yield Difference("leader", name, f"is led by {now}, not by {before}", refuses=False)


def _new_partitions(compared: PlanOnCluster) -> Iterator[Difference]:
    """Topics to get new partitions, if they are neither as before the plan nor as planned."""
    for name, new in compared.new_by_topic.items():
        topic = compared.now.topics.get(name)
        if standing_of_new(new, topic) is None:
            count = len(topic.partitions) if topic else 0
            planned = f"planned from {new.partitions_before} to {new.partitions}"
            difference = "with other replicas than planned" if count == new.partitions else planned
            yield Difference("new partitions", name, f"has {counted(count, 'partition')}, {difference}")


def standing_of_new(new: NewPartitionsRow, topic: Topic | None) -> Standing | None:
    """FOUND if a topic's new partitions are still to be created, THERE if they are as planned, else None."""
    partitions = topic.partitions if topic else ()
    if len(partitions) == new.partitions_before:
        return Standing.FOUND
    is_as_planned = tuple(each.replicas for each in partitions[new.partitions_before :]) == new.replicas
    return Standing.THERE if is_as_planned else None


def _topics(compared: PlanOnCluster) -> Iterator[Difference]:
    """Topics that are gone, are new, or have another number of partitions than the plan knows."""
    plan_topics = {topic.name: topic for topic in compared.plan.topics}
    planned = Counter(topic for topic, _ in compared.rows)
    for name, topic in plan_topics.items():
        if name in compared.new_by_topic and name not in planned:
            continue
        today = compared.now.topics.get(name)
        if today is None or today.deleting:
            reason = "is gone" if today is None else "is marked for deletion"
            in_plan = f"; the plan has {counted(planned[name], 'partition')} of it" if planned[name] else ""
            yield Difference("topic", name, reason + in_plan, refuses=bool(planned[name]))
        elif name not in compared.new_by_topic and len(today.partitions) != topic.partitions:
            count, before, factor = len(today.partitions), topic.partitions, topic.replication_factor
            stranded = _left_behind(compared, today, before)
            # If a plan leaves a topic with different replication factors, it doesn't change the whole topic.
            resized = factor is not None and set(topic.replication_factor_before) != {factor}
            unresized = f"; those keep another replication factor than {factor}" if resized and count > before else ""
            message = f"has {counted(count, 'partition')}, {before:,} when the plan was made{stranded or unresized}"
            yield Difference("partitions", name, message, refuses=count < before or bool(stranded) or resized)
    for name in sorted(compared.now.topics.keys() - plan_topics.keys()):
        stranded = _left_behind(compared, compared.now.topics[name], 0)
        yield Difference("topic", name, f"is new{stranded}", refuses=bool(stranded))


def _left_behind(compared: PlanOnCluster, topic: Topic, first: int) -> str:
    """A phrase on the partitions from `first` on that are on brokers that the plan removes; empty if none are."""
    brokers = {broker for each in topic.partitions[first:] for broker in each.replicas if broker in compared.leaving}
    names = ", ".join(f"broker {each}" for each in sorted(brokers))
    return f"; it has replicas on {names}, which the change removes" if brokers else ""


def _out_of_sync(compared: PlanOnCluster) -> Iterator[Difference]:
    """Partitions with replicas out of sync, as the role checks. Replicas on brokers that leave may be out of sync, and
    so may partitions that had no leader when the plan was made: their batches wait.
    """
    waiting = {name for names in ansible_vars.leaderless(compared.plan).values() for name in names}
    for key, each in keyed_partitions(compared.now.topics.values()):
        if each.isr is None or len(each.isr) == len(each.replicas):
            continue
        if (name := partition_name(*key)) not in waiting and set(each.replicas) - set(each.isr) - compared.leaving:
            in_sync = replica_list(each.isr) or "none"
            message = f"has replicas {replica_list(each.replicas)}, in sync: {in_sync}; wait for the others"
            yield Difference("isr", name, message)

"""The order in which to restart brokers, rack by rack, and what each step refuses or puts at risk.

The brokers of a rack restart together. If that makes a partition refuse writes with acks=all, lose its leader or get an
out-of-sync one, they restart in as few steps as first fit finds. No order avoids what a single broker causes, so it is
announced. Every step is judged twice: from today's cluster, and with all replicas in sync, as they are before each
step. Source: `kafka.cluster.Partition.appendRecordsToLeader` (NotEnoughReplicasException), KIP-966.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from planner import __version__
from planner.model.cluster import CONFIGS_UNKNOWN, MIN_INSYNC, brokers_down, in_force, keyed_partitions, partition_name
from planner.model.file_reading import digest
from planner.model.formats import counted, first_lines, first_names, ranges, replica_list
from planner.model.generated_text import canonical_json
from planner.model.problem import BoolArray, LongArray, Problem
from planner.model.spec import Spec
from planner.plan.document.plan_types import (
    RESTART_VERSION,
    Partitions,
    RestartDocument,
    RestartStepRow,
    TopicPartitions,
)
from planner.report.view import Column, Joined, Lines, Name, Sentence, Table, Value, View, ViewSection, visible
from planner.whatif.cluster_states import FACTS, Outcome, PartitionStates, outcome, stages
from planner.whatif.failures_report import Subject, notes

_TOPICS_SHOWN, _PARTITIONS_SHOWN = 5, 6
_LONGEST = 400
# What a step of several brokers must not do to any partition, and how it is worded.
_HARMS = {"offline": "have no leader", "unclean": "be led by a replica out of sync", "writes_refused": "refuse writes"}


def document(spec: Spec, at_most: int | None = None) -> RestartDocument:
    """The steps to restart every broker of a spec, from today's cluster; at most `at_most` brokers in each."""
    subject, cluster = Subject.of(spec, None), spec.cluster
    # If configurations are listed without min.insync.replicas, it is Kafka's default, 1.
    is_listed = CONFIGS_UNKNOWN not in cluster.notes and len(spec.inputs) > 1
    topics = () if is_listed else sorted(cluster.topics, key=lambda each: each.name)
    unstated = tuple(each.name for each in topics if MIN_INSYNC not in in_force(each, cluster.config_defaults))
    problem = subject.problem
    today = next(iter(stages(subject.spec, problem, ()))).first
    judge = RestartJudge(problem, today, np.isin(np.array(problem.topic_names), unstated)[problem.topic_of])
    return RestartDocument(
        format_version=RESTART_VERSION,
        planner_version=__version__,
        restart_id="",
        cluster=cluster.name,
        bootstrap_servers=cluster.bootstrap_servers,
        kafka_bin_dir=spec.execution.kafka_bin_dir,
        inputs=spec.inputs,
        at_most=at_most,
        partitions=problem.rows,
        states_sha256=digest(states(spec)),
        min_insync_unknown=unstated,
        leaderless=judge._by_topic(np.flatnonzero(today.leaders < 0)),
        steps=tuple(judge.row(number, *group) for number, group in enumerate(judge.groups(at_most), start=1)),
        notes=tuple(_notes(subject, judge, unstated)),
    ).identified()


def states(spec: Spec) -> bytes:
    """The role's states.json: each partition's replica list today, as Kafka's tools print it."""
    rows = keyed_partitions(spec.cluster.topics)
    return canonical_json({partition_name(*key): [replica_list(each.replicas)] for key, each in rows}).encode()


def _notes(subject: Subject, judge: "RestartJudge", unstated: Sequence[str]) -> Iterator[str]:
    """What isn't known, what is wrong today, and what the steps don't cover."""
    if unstated:
        yield (
            f"{MIN_INSYNC} of {counted(len(unstated), 'topic')} is unknown: Kafka's default, 1, is assumed, and "
            "brokers that share a partition of theirs don't restart together; state it in cluster.config_defaults, or "
            "add the output of kafka-configs --describe --all"
        )
    refused = int(judge.today[:, FACTS.index("writes_refused")].sum())
    if refused:
        yield f"{counted(refused, 'partition')} can't be written with acks=all today, whatever restarts"
    yield from (note for _, note in brokers_down(part for _, part in keyed_partitions(subject.spec.cluster.topics)))
    yield from notes(subject)
    yield (
        "controllers that aren't brokers aren't in these steps: restart them one at a time, the active one last; where "
        "brokers are controllers too, use --at-most 1"
    )


@dataclass(frozen=True, eq=False)
class RestartJudge:
    """Effects of restarts on partitions (N,); `unstated` (N,): min.insync.replicas is unknown. Brokers are indices."""

    problem: Problem
    rows: PartitionStates
    unstated: BoolArray

    @cached_property
    def today(self) -> LongArray:
        """(N, len(FACTS)): the facts while no broker restarts."""
        return outcome(self.rows, np.zeros(self.rows.replicas.shape, dtype=bool)).facts

    @cached_property
    def in_sync(self) -> "RestartJudge":
        """The same partitions with all replicas in sync, which the playbook waits for before each step."""
        leaders = np.where(self.rows.leaders < 0, self.rows.replicas[:, 0], self.rows.leaders)
        return replace(self, rows=replace(self.rows, in_sync=self.rows.holding, leaders=leaders))

    @cached_property
    def of_broker(self) -> Sequence[LongArray]:
        """The partitions of each broker, ascending; a step can change only these, so it is judged only by them."""
        slots = np.argsort(self.rows.replicas, axis=None, kind="stable")
        starts = np.searchsorted(self.rows.replicas.ravel()[slots], np.arange(len(self.problem.broker_ids) + 1))
        replica_rows = slots // self.rows.replicas.shape[1]
        return [np.sort(replica_rows[first:last]) for first, last in pairwise(starts)]

    def groups(self, at_most: int | None) -> Iterator[tuple[list[int], str | None]]:
        """The brokers of each step, and why a rack's brokers are apart; brokers without a rack come last."""
        ids, racks = self.problem.broker_ids, self.problem.broker_racks
        for rack in range(len(self.problem.rack_names)):
            brokers = sorted(np.flatnonzero(racks == rack).tolist(), key=ids.__getitem__)
            yield from self._split_rack(brokers, at_most or len(ids))
        for broker in sorted(np.flatnonzero(racks < 0).tolist(), key=ids.__getitem__):
            yield [broker], "a broker without a rack restarts alone"

    def _split_rack(self, brokers: Sequence[int], at_most: int) -> Iterator[tuple[list[int], str | None]]:
        """A rack's brokers in as few steps as first fit finds, in the order of their ids."""
        if not self.harm(brokers) and 0 < len(brokers) <= at_most:
            yield [*brokers], None
            return
        shared_steps, single_steps = list[tuple[list[int], str | None]](), list[tuple[list[int], str | None]]()
        for broker in brokers:
            if own_harm := self.harm([broker]):
                single_steps.append(([broker], f"alone: {own_harm}"))
                continue
            reason = None
            for group, _ in shared_steps:
                others, is_full = ranges(self.problem.broker_ids[group].tolist()), len(group) == at_most
                harm = f"--at-most {at_most} keeps it apart from {others}" if is_full else self.harm([*group, broker])
                if not harm:
                    group.append(broker)
                    break
                reason = reason or (harm if is_full else f"not with {others}: {harm}")
            else:
                shared_steps.append(([broker], reason))
        yield from sorted([*shared_steps, *single_steps], key=lambda step: self.problem.broker_ids[step[0][0]])

    def harm(self, brokers: Sequence[int]) -> str:
        """New harm to a partition if these brokers are down together; empty if there is none."""
        rows, harmed = self.partitions(brokers), self._harmed(brokers)
        for name, effect in _HARMS.items():
            if len(hit_rows := np.flatnonzero(harmed[name])):
                return f"{self._name(int(rows[hit_rows[0]]))} would {effect}"
        # All replicas are in sync before each step, also those that aren't today.
        is_shared = np.isin(self.rows.replicas[rows], brokers).sum(axis=1) > 1
        shared_rows = np.flatnonzero(self.unstated[rows] & is_shared)
        return f"{self._name(int(rows[shared_rows[0]]))} may refuse writes" if len(shared_rows) else ""

    def row(self, number: int, brokers: Sequence[int], apart: str | None) -> RestartStepRow:
        """The effects of a step on its partitions."""
        rows, harmed = self.partitions(brokers), self._harmed(brokers)
        one_more, leaders = self._one_failure_from(brokers), self.rows.leaders[rows]
        moved = self._without(brokers)[0].facts[:, FACTS.index("leaders_moved")]
        is_led = np.isin(leaders, brokers)
        is_preferred = is_led & (leaders == self.rows.replicas[rows, 0])
        has_others = (self.rows.replicas[rows] >= 0).sum(axis=1) > 1
        rack = int(self.problem.broker_racks[brokers[0]])
        return RestartStepRow(
            number=number,
            rack=self.problem.rack_names[rack] if rack >= 0 else None,
            brokers=tuple(sorted(self.problem.broker_ids[[*brokers]].tolist())),
            apart=apart,
            leaders_moved=int(moved.sum()),
            writes_refused=self._by_topic(rows[harmed["writes_refused"]]),
            offline=self._by_topic(rows[harmed["offline"]]),
            unclean=self._by_topic(rows[harmed["unclean"]]),
            one_from_refused=self._by_topic(rows[one_more["writes_refused"] & ~harmed["writes_refused"]]),
            one_from_offline=self._by_topic(rows[one_more["offline"] & ~harmed["offline"]]),
            elect=self._by_topic(rows[is_preferred & has_others]),
            left_with_others=int((is_led & ~is_preferred & has_others).sum()),
        )

    def _harmed(self, brokers: Sequence[int]) -> dict[str, BoolArray]:
        """Which partitions of these brokers get each harm without them: today, or with all replicas in sync."""
        rows = self.partitions(brokers)
        worse = [judge._without(brokers)[0].facts > judge.today[rows] for judge in (self, self.in_sync)]
        return {name: np.logical_or(*worse)[:, FACTS.index(name)] for name in _HARMS}

    def _one_failure_from(self, brokers: Sequence[int]) -> dict[str, BoolArray]:
        """Which partitions of these brokers one more failure harms: today, or with all replicas in sync."""
        results = [judge._without(brokers) for judge in (self, self.in_sync)]
        refused = [is_felt & result.scarce for result, is_felt in results]
        offline = [is_felt & (result.facts[:, FACTS.index("at_risk")] > 0) for result, is_felt in results]
        return {"writes_refused": np.logical_or(*refused), "offline": np.logical_or(*offline)}

    def _without(self, brokers: Sequence[int]) -> tuple[Outcome, BoolArray]:
        """The outcome for the partitions of these brokers without them, and whether a replica in sync restarts."""
        states = self.rows.take(self.partitions(brokers))
        failed = np.isin(states.replicas, brokers)
        is_felt: BoolArray = np.any(failed & states.in_sync, axis=1)
        return outcome(states, failed), is_felt

    def partitions(self, brokers: Sequence[int]) -> LongArray:
        """(n,): the partitions with a replica on one of these brokers, ascending."""
        return np.unique(np.concatenate([self.of_broker[each] for each in brokers]))

    def _name(self, row: int) -> str:
        return f"{self.problem.topic_names[self.problem.topic_of[row]]}-{self.problem.partition_ids[row]}"

    def _by_topic(self, rows: LongArray) -> Partitions:
        """Partitions by topic, sorted by name."""
        keys = zip(self.problem.topic_of[rows].tolist(), self.problem.partition_ids[rows].tolist(), strict=True)
        return tuple(
            TopicPartitions(topic=self.problem.topic_names[topic], partitions=tuple(number for _, number in group))
            for topic, group in groupby(sorted(keys), key=lambda key: key[0])
        )


def view(document: RestartDocument) -> View:
    """The order, the effects of each step, and the topics that are affected."""
    brokers = sum(len(step.brokers) for step in document.steps)
    scope = f"{counted(len(document.steps), 'step')} to restart {counted(brokers, 'broker')}, one rack after another"
    blocks = visible(
        Lines((Sentence(f"{scope}: {_verdict(document)}", _LONGEST),), bulleted=False),
        _table(document),
        Lines(tuple(_effect_sentences(document))),
        Lines(document.notes, quiet=True),
    )
    return View(f"{document.cluster}: restart", (ViewSection("", blocks),))


def _verdict(document: RestartDocument) -> str:
    """Whether a producer with acks=all notices the restart, in a phrase."""
    if not document.refusing:
        caveat = ", as far as min.insync.replicas is known" if document.min_insync_unknown else ""
        return f"no partition refuses writes with acks=all or is without a leader{caveat}"
    steps = ranges(step.number for step in document.refusing)
    lost = ", or lose records" if any(step.unclean for step in document.steps) else ""
    # A partition without a leader has no replica that could take writes, whatever min.insync.replicas is.
    only_refused = any(_count(step.writes_refused) > _count(step.offline) for step in document.steps)
    lower = "; where only writes are refused, so would a lower min.insync.replicas" if only_refused else ""
    return (
        f"partitions refuse writes with acks=all or have no leader{lost} in "
        f"{'step' if len(document.refusing) == 1 else 'steps'} {steps}; more replicas in sync would avoid it{lower}"
    )


def _count(partitions: Partitions) -> int:
    return sum(len(each.partitions) for each in partitions)


def _table(document: RestartDocument) -> Table[RestartStepRow]:
    column = Column[RestartStepRow]
    columns = (
        column("Step", lambda step: step.number),
        column("Rack", lambda step: None if step.rack is None else Name(step.rack, 30), numeric=False),
        column("Brokers", lambda step: Sentence(ranges(step.brokers), 60), numeric=False),
        column("Leaders\nmoved", lambda step: step.leaders_moved),
        column("Writes\nrefused", lambda step: _count(step.writes_refused)),
        column("No\nleader", lambda step: _count(step.offline)),
        column("One failure from refusing", lambda step: _count(step.one_from_refused), narrow="one from\nrefusing"),
        column("One failure from no leader", lambda step: _count(step.one_from_offline), narrow="one from\nno leader"),
    )
    return Table("step", document.steps, columns)


def _effect_sentences(document: RestartDocument) -> Iterator[Value]:
    """The effects of each step with the first partitions, why brokers are apart, and which leaders don't return."""
    for step in document.steps:
        offline = {name for each in step.offline for name in each.names}
        for partitions, effect, told_names in (
            (step.offline, "no leader", set[str]()),
            (step.writes_refused, "writes with acks=all refused", offline),
            (step.unclean, "led by a replica out of sync, so that records are lost", set[str]()),
        ):
            topics = list[Value]()
            for each in partitions:
                pairs = zip(each.partitions, each.names, strict=True)
                ids = [number for number, name in pairs if name not in told_names]
                if ids:
                    listed = first_names([*map(str, ids)], _PARTITIONS_SHOWN)
                    topics.append(Joined((Name(each.topic, 60), f" {listed}")))
            if topics:
                shown = Joined(tuple(first_lines(topics, _TOPICS_SHOWN, "topic")), "; ")
                yield Joined((f"step {step.number}, {effect}: ", shown))
        if step.apart and step not in document.refusing:  # else its refused writes say why it is alone
            yield Sentence(f"step {step.number}, broker {step.brokers[0]}: {step.apart}", _LONGEST)
    not_preferred = sum(step.left_with_others for step in document.steps)
    if not_preferred:
        yield (
            f"{counted(not_preferred, 'partition')} not led by the preferred leader today: no election makes "
            "today's leader lead again after its restart"
        )

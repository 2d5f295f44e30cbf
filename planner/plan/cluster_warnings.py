"""The plan's warnings about the cluster: unknown sizes, lagging replicas, brokers that are down, topics at min ISR.

These aren't faults of the plan, but many decide whether it can be carried out, so reviewers see them before approval.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from planner.model.build_problem import brokers_after, build, topics_after
from planner.model.cluster import (
    PartitionChange,
    PartitionKey,
    a_few,
    brokers_down,
    in_force,
    keyed_partitions,
    partition_name,
    possible_reassignments,
)
from planner.model.document_fields import LEADERS
from planner.model.formats import brokers, counted, first_names
from planner.model.problem import BoolArray, IntArray, Problem, badly_led, led_by_several, misplaced
from planner.model.spec import Spec
from planner.model.together import with_slots
from planner.scoring import broker_loads

_NO_RACKS = (
    "no broker has a rack, so replicas aren't spread over racks; if brokers have racks, add them in cluster.brokers"
)

_NO_SIZES = (
    "sizes are unknown (no cluster.state.sizes): replicas are counted, not bytes, "
    "and whether disks have room isn't checked"
)


def warnings(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """What an operator should know before approving: faults and gaps of the state, then conditions of the cluster."""
    grown = sum(1 for new in spec.changes.new_partitions if new.first)
    mixed = sum(1 for topic in spec.cluster.topics if len({len(part.replicas) for part in topic.partitions}) > 1)
    deleting = sum(topic.deleting for topic in spec.cluster.topics)
    excluded = [topic.name for topic in spec.cluster.topics if not topic.deleting and not spec.topics.moves(topic.name)]
    targets = _staying(problem)
    staying = [broker for broker in spec.all_brokers if broker.id in targets]
    disks, networks = {each.disk_bytes for each in staying}, {each.network_bytes_per_sec for each in staying}
    harm = "more bytes move" if any(each.adding and not each.size_bytes for each in changed) else "brokers hold more"
    conditions = [
        (not spec.cluster.sizes_known, _NO_SIZES),
        (
            spec.cluster.unsized,
            f"{counted(spec.cluster.unsized, 'partition')} without a size, counted as empty: {harm} than the plan says",
        ),
        (grown, f"{counted(grown, 'topic')} with more partitions: keys map to other partitions then, for good"),
        (mixed, f"{counted(mixed, 'topic')} with unlike replication factors within the topic"),
        (
            excluded,
            f"{counted(len(excluded), 'topic')} excluded by the YAML's topics key ({first_names(excluded)}): "
            "not moved, but counted for the balance",
        ),
        (deleting, f"{counted(deleting, 'topic')} marked for deletion: kept as is, and counted"),
        (not problem.racks_matter and problem.rack_aware, _NO_RACKS),
        (
            None in disks and disks != {None},
            "only some brokers state capacity.disk: replicas and bytes are shared equally, not by capacity",
        ),
        (
            None in networks and networks != {None},
            "only some brokers state capacity.network: leaders and traffic are shared equally",
        ),
        (disks != {None} and not spec.cluster.sizes_known, "capacity.disk isn't checked: sizes are unknown"),
    ]
    yield from _of_brokers(spec, problem, changed)
    yield from _under_replicated(spec, problem, changed)
    yield from (text for applies, text in conditions if applies)
    yield from at_min_isr(spec, problem)
    yield from copied_without_need(problem, changed)
    yield from _cluster_conditions(spec, problem, changed)
    yield from (*spec.cluster.notes, *spec.cluster.outgrown)


def _staying(problem: Problem) -> set[int]:
    return set(problem.broker_ids[problem.targets].tolist())


def _of_brokers(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """Racks that differ only in capital letters; brokers that get no new replica, whose log dirs Kafka chooses, or that
    get fewer replicas than they replace.
    """
    racks, staying = defaultdict[str, set[str]](set), _staying(problem)
    for rack in (each.rack or "" for each in brokers_after(spec) if each.id in staying):
        racks[rack.casefold()].add(rack)
    for spellings in (sorted(racks[each]) for each in sorted(racks) if len(racks[each]) > 1):
        yield f"racks {first_names(spellings)} differ only in capital letters, and count as different racks"
    cordoned = [] if problem.cordoned is None else problem.broker_ids[problem.cordoned & problem.targets].tolist()
    if cordoned:
        yield (
            f"{brokers(cordoned)} {'is' if len(cordoned) == 1 else 'are'} cordoned (cordoned.log.dirs): "
            "no new replica goes there, and the other brokers share the rest"
        )
    arriving = {broker for change in changed for broker in change.adding}
    several = [each.id for each in spec.all_brokers if each.id in arriving and len(each.log_dirs) > 1]
    if several and spec.log_dirs.kind == "none":
        yield (
            f"log_dirs of {brokers(several)} aren't planned (no balance.log_dirs): Kafka puts each new replica into "
            "the log dir with the fewest partitions, however full it is"
        )
    # With other moves allowed, replicas go where balance wants them.
    for old, new in spec.changes.replace_brokers if spec.changes.rebalance == "none" else ():
        leaving = [each for each in changed if old in each.before and old not in each.after]
        if others := sum(new in each.before or new not in each.after for each in leaving):
            yield (
                f"{others} of the {counted(len(leaving), 'replica')} of broker {old} go to other brokers than {new}: "
                f"{new} has a replica of the partition today, or a rule (racks, placement, apart, caps) keeps it away"
            )


def _under_replicated(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    if waits := out_of_sync(spec, problem, changed):
        yield (
            f"{counted(waits, 'partition')} under-replicated: apply.yml starts only once all their replicas are in "
            "sync, or with -e kafka_reassign_allow_under_replicated=true"
        )
    staying = _staying(problem)
    with_leader = [part for topic in spec.cluster.topics for part in topic.partitions if part.leader is not None]
    lagging = [{*part.replicas}.difference(part.isr) for part in with_leader if part.isr is not None]
    if emptied := sum(bool(brokers) and brokers.isdisjoint(staying) for brokers in lagging):
        number = counted(emptied, "partition")
        yield f"{number} under-replicated, only on brokers that the plan empties: apply.yml doesn't wait for these"


def out_of_sync(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> int:
    """How many under-replicated partitions keep apply.yml from starting, if it runs on today's cluster.

    Not counted: partitions that lack only replicas on brokers that leave, and changed partitions without a leader,
    because these wait in separate batches.
    """
    waiting, staying = {each.key for each in changed}, _staying(problem)
    return sum(
        part.isr is not None
        and bool({*part.replicas}.intersection(staying).difference(part.isr))
        and (part.leader is not None or key not in waiting)
        for key, part in keyed_partitions(spec.cluster.topics)
    )


def of_assignment(spec: Spec, problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Faults that an assignment (P, W) keeps: crowded new topics, demoted leaders, rules that partitions without a
    leader break, replicas on forbidden brokers, and more leaders than `max_leaders` in place of brokers in no ISR.
    """
    yield from crowded(problem, assignment)
    yield from led_by_demoted(spec, problem, assignment)
    yield from not_led_as_asked(spec, problem, assignment)
    yield from led_elsewhere(spec, problem, assignment)
    yield from not_led_while_down(spec, problem, assignment)
    misplaced_rows = misplaced(problem, assignment) & ~problem.movable & ~problem.waits
    reason = "on brokers that placement or apart forbids: topics.on_brokers keeps them there"
    yield from _row_warnings(problem, misplaced_rows, reason)
    yield from preferred_above_caps(problem, assignment)
    not_in_sync, caps = problem.out_of_sync, problem.caps
    if not_in_sync is not None and caps is not None and (not_in_sync := not_in_sync & problem.targets).any():
        leaders = broker_loads.leaders_after(problem, assignment)
        above = problem.targets & (np.bincount(leaders[leaders >= 0], minlength=len(not_in_sync)) > caps[1])
        if above.any():
            over, down = (brokers(problem.broker_ids[each].tolist()) for each in (above, not_in_sync))
            yield f"above max_leaders: {over}, while {down} can't lead (in no ISR); plan again once all is in sync"


def preferred_above_caps(problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Brokers that lead no more than `max_leaders` after an assignment (P, W), and are preferred leader of more."""
    if problem.caps is None:
        return
    leaders = (broker_loads.leaders_after(problem, assignment), assignment[:, 0])
    counts = [np.bincount(each[each >= 0], minlength=len(problem.targets)) for each in leaders]
    above = np.flatnonzero(problem.targets & (counts[0] <= problem.caps[1]) & (counts[1] > problem.caps[1]))
    if len(above):
        index, names = above[0], brokers(problem.broker_ids[above].tolist())
        yield (
            f"{names}: preferred leader of more partitions than max_leaders (broker {problem.broker_ids[index]}: "
            f"{counts[1][index]}, at most {problem.caps[1, index]}), and not leading all; if Kafka elects preferred "
            "leaders, the cap is exceeded; to reorder them, plan with rebalance: leaders"
        )


def led_by_demoted(spec: Spec, problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Partitions that brokers of `changes.demote_brokers` lead even after an assignment (P, W)."""
    demoted = np.isin(problem.broker_ids, spec.changes.demote_brokers)
    only_demoted = np.where(assignment >= 0, demoted[assignment], True).all(axis=1)
    leaders = broker_loads.leaders_after(problem, assignment)
    names = f"demoted {a_few(list(map(str, spec.changes.demote_brokers)), 'broker')}"
    only_text = f"with replicas only on {names}: still led there, and offline while that is down"
    other_text = f"still led by {names}: they stay as they are, or no other of their replicas is in sync"
    yield from _row_warnings(problem, only_demoted, only_text)
    yield from _row_warnings(problem, ~only_demoted & (leaders >= 0) & demoted[leaders], other_text)


def not_led_as_asked(spec: Spec, problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Partitions without a leader that keep their preferred leader, although `together`, `changes.demote_brokers` or
    `leader_racks` asks for another one: such partitions change only if they are forced to.
    """
    is_included = np.array([spec.topics.moves(name) for name in problem.topic_names], dtype=bool)[problem.topic_of]
    is_kept = (problem.leaders < 0) & ~problem.is_new & ~problem.movable & is_included
    # The slots with these partitions, and the ranks of leaders even if other replicas can't be elected today.
    all_movable = replace(problem, movable=problem.movable | is_kept, out_of_sync=None)
    all_movable = with_slots(all_movable, spec.together, topics_after(spec))
    badly, demoted = badly_led(all_movable, assignment), np.isin(problem.broker_ids, spec.changes.demote_brokers)
    for rows, rule in (
        (led_by_several(all_movable, assignment), "together"),
        (badly & demoted[assignment[:, 0]], "changes.demote_brokers"),
        (badly & ~demoted[assignment[:, 0]], "leader_racks"),
    ):
        reason = f"without a leader, so not led as {rule} asks: plan again once a replica in sync is back"
        yield from _row_warnings(problem, rows & is_kept, reason)


def led_elsewhere(spec: Spec, problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Partitions with a replica in a rack that `leader_racks` prefers, where `apart` lets other topics lead."""
    if spec.leader_racks and any(rule.by.endswith(LEADERS) for rule in spec.apart):
        without_apart = replace(problem, leader_ranks=build(replace(spec, apart=())).leader_ranks)
        rows = badly_led(without_apart, assignment) & ~badly_led(problem, assignment)
        reason = "not led in the rack that leader_racks prefers: apart leaves it to other topics"
        yield from _row_warnings(problem, rows, reason)


def not_led_while_down(spec: Spec, problem: Problem, assignment: IntArray) -> Iterator[str]:
    """Partitions whose replicas in the rack that `leader_racks` prefers are on brokers in no ISR, so others lead."""
    not_in_sync = problem.out_of_sync
    if not_in_sync is None or not spec.leader_racks:
        return
    rows = badly_led(replace(problem, out_of_sync=None), assignment) & ~badly_led(problem, assignment)
    rows &= (
        problem.movable & ~problem.waits & ~np.isin(problem.broker_ids[assignment[:, 0]], spec.changes.demote_brokers)
    )
    down = brokers(problem.broker_ids[not_in_sync & np.isin(np.arange(len(not_in_sync)), assignment[rows])].tolist())
    reason = f"while {down} can't lead (in no ISR); plan again once all is in sync"
    yield from _row_warnings(problem, rows, f"not led in the rack that leader_racks prefers, {reason}")


def crowded(problem: Problem, assignment: IntArray) -> Iterator[str]:
    """New topics with a broker that gets more than twice its even share of replicas: the emptiest brokers get most."""
    topics = np.unique(problem.topic_of[problem.is_new & (problem.partition_ids == 0)])
    counts = broker_loads.counts_by_group(problem, assignment, problem.topic_of, len(problem.topic_names))[topics]
    usable = problem.allowed_targets
    brokers = np.full(len(topics), counts.shape[1]) if usable is None else usable[topics].sum(axis=1)
    most, even_share = counts.max(axis=1, initial=0), -(-counts.sum(axis=1) // brokers)
    if (indices := np.flatnonzero(most > 2 * even_share)).size:
        worst = indices[np.argmax((most - 2 * even_share)[indices])]
        name, broker = problem.topic_names[topics[worst]], problem.broker_ids[problem.targets][counts[worst].argmax()]
        yield (
            f"{counted(len(indices), 'new topic')} on few brokers, the emptiest: of {name}, broker {broker} holds "
            f"{counted(int(most[worst]), 'replica')}, with an even spread {even_share[worst]} at most"
        )


def copied_without_need(problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """Partitions without a leader of which the plan copies more replicas than their broker or factor makes it copy."""
    keys, rows = list[PartitionKey](), problem.row_of
    for each in (change for change in changed if change.leader_before is None and change.before and change.adding):
        usable = problem.targets
        if problem.allowed is not None:
            usable = usable & problem.allowed[problem.topic_of[rows[each.key]]]
        staying = np.isin(each.before, problem.broker_ids[usable]).sum()
        if len(each.adding) > max(len(each.after) - staying, 0):
            keys.append(each.key)
    if keys:
        hint = "; to keep all that can stay, plan with changes.rebalance: none" if problem.rebalance == "all" else ""
        yield f"{_names(keys)} without a leader: more replicas are copied than must be, for balance or a rule{hint}"


_REFUSED = "writes with acks=all are refused"
_ONE_DOWN = f"while one of their brokers is down, {_REFUSED}"


def at_min_isr(spec: Spec, problem: Problem) -> Iterator[str]:
    """A sentence for each way in which topics end with `min.insync.replicas` replicas or fewer, with some names.

    Topics with one replica whose `min.insync.replicas` is 1 count only if the plan takes the other replicas away.
    """
    before = (problem.replicas >= 0).sum(axis=1)
    after, least, is_new = problem.replication_factors, problem.min_insync, problem.is_new
    equal, several = after == least, least > 1
    lowered, raised, kept = (rows & ~is_new for rows in (after < before, after > before, after == before))
    deleting = {topic.name for topic in spec.cluster.topics if topic.deleting}
    deleted = np.array([name in deleting for name in problem.topic_names], dtype=bool)[problem.topic_of]
    staying = kept & ~deleted
    for rows, state in (
        (equal & several & lowered, "lowered to as many replicas as min.insync.replicas"),
        (equal & several & raised, "raised only to min.insync.replicas"),
        (equal & several & is_new, "with new partitions of as many replicas as min.insync.replicas"),
        (equal & several & staying, "kept with as many replicas as min.insync.replicas"),
    ):
        yield from _topic_warnings(problem, rows, state, _ONE_DOWN)
    yield from _topic_warnings(
        problem, equal & ~several & lowered, "lowered to one replica", "offline while its broker is down"
    )
    fewer = "kept with fewer replicas than min.insync.replicas"
    yield from _topic_warnings(problem, (after < least) & staying, fewer, f"{_ONE_DOWN}; before Kafka 3.7, always")


def _topic_warnings(problem: Problem, rows: BoolArray, state: str, harm: str) -> Iterator[str]:
    if names := [problem.topic_names[topic] for topic in np.unique(problem.topic_of[rows]).tolist()]:
        yield f"{counted(len(names), 'topic')} {state} ({first_names(names)}): {harm}"


# Kafka's setting for a topic whose older segments are in remote storage (KIP-405).
_TIERED = ("remote.storage.enable", "true")


def _cluster_conditions(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Iterator[str]:
    """A sentence for each unusual condition of today's cluster, with the first few names."""
    topics = spec.cluster.topics
    leaving = {broker.id for broker in spec.cluster.brokers} - _staying(problem)
    for broker, sentence in brokers_down(part for _, part in keyed_partitions(topics)):
        needs = "apply.yml starts only once it is live: start it, or remove or replace it in changes"
        emptied = "the plan empties it, and rollback.yml can put nothing back on it while it is down"
        yield f"{sentence}; {emptied if broker in leaving else needs}"
    if lagging := _led_out_of_sync(spec, problem, changed):
        only_then = "wait until it is, or it isn't elected"
        yield f"{_names(lagging)} with a new preferred leader that isn't in sync today: {only_then}"
    yield from possible_reassignments(topics)
    leaderless = [key for key, part in keyed_partitions(topics) if part.leader is None]
    moved = {each.key for each in changed}
    if staying := [name for name in leaderless if name not in moved]:
        yield f"{_names(staying)} without a leader today: there is nothing to copy from, so nothing moves"
    if moving := [name for name in leaderless if name in moved]:
        yield (
            f"{_names(moving)} without a leader: nothing to copy from until a replica in sync is back; "
            f"apply.yml skips {'its batch' if len(moving) == 1 else 'their batches'} until then; run it again"
        )
    if problem.racks_matter:
        racks = len(set(problem.broker_racks[problem.targets].tolist()))
        above = int((problem.replication_factors > racks).sum())
        if racks == 1:
            yield "all brokers are in one rack: replicas can't be spread over racks, and its failure takes all of them"
        elif above:
            yield (
                f"{counted(above, 'partition')} with more replicas than there are racks ({racks}): "
                "some racks hold several of a partition, until there are more racks or fewer replicas"
            )
    if tiered := sum(_TIERED in in_force(topic, spec.cluster.config_defaults).items() for topic in topics):
        yield f"{counted(tiered, 'topic')} with tiered storage: only the data on brokers' disks is counted and moved"


def _led_out_of_sync(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> list[PartitionKey]:
    """Partitions whose new leader is a replica out of sync on a live broker, for example on a failed log dir."""
    down_ids = set() if problem.out_of_sync is None else set(problem.broker_ids[problem.out_of_sync].tolist())
    new_leaders = {each.key: each.after[0] for each in changed if each.elects}
    return [
        key
        for key, part in keyed_partitions(spec.cluster.topics)
        if part.isr is not None
        and part.leader is not None
        and (leader := new_leaders.get(key)) in part.replicas
        and leader not in (*part.isr, *down_ids)
    ]


def _row_warnings(problem: Problem, rows: BoolArray | np.bool, text: str) -> Iterator[str]:
    """What is to be said of these rows (P,), which are named first; nothing if there are none."""
    if rows.any():
        keys = problem.partition_keys
        yield f"{_names([keys[row] for row in np.flatnonzero(rows).tolist()])} {text}"


def _names(partitions: Sequence[PartitionKey]) -> str:
    """How many partitions, with the names of the first three."""
    return f"{counted(len(partitions), 'partition')} ({first_names([partition_name(*key) for key in partitions])})"

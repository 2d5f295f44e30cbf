"""Compares a cluster with a plan: where partitions are, and why a run must not begin or go on. Pure functions."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

from itertools import permutations

# The most names in a sentence, and in a guard's reason, because several guards may give theirs at once.
_NAMED, _FEW = 10, 5
_STEP = ", another step of the plan"
_GONE = (
    "If topics were deleted, planner resume plans the rest, and planner restart makes new steps; to go back, take "
    "their partitions out of rollback.json and give it to planner adopt. Kafka doesn't show topics that the tools' "
    "user may not Describe"
)


def offline(described):
    """Partitions without a leader."""
    return sorted(name for name, (leader, _, _) in described.items() if leader is None)


def cluster_reasons(live, described, under_min_isr, active, expected, leaving, own, known):
    """Reasons not to go on, {guard: a sentence without its full stop}.

    The batch's `own` partitions may be out of sync, because new replicas are until they have caught up.
    """
    dead = sorted(set(expected) - live)
    behind = sorted(
        name
        for name, (leader, replicas, isr) in described.items()
        if leader is not None and set(replicas) - set(isr) - set(leaving) - set(dead) and name not in own
    )
    # Kafka's tool also lists partitions that are in sync, if min.insync.replicas is above their number of replicas.
    below = sorted({*out_of_sync(described)} & {*under_min_isr} - {*known})
    found = {
        "live_brokers": f"not live: broker{'s' if len(dead) > 1 else ''} {', '.join(map(str, dead))}" if dead else "",
        "offline": _few([name for name in offline(described) if name not in known], "without a leader"),
        "under_min_isr": _few(below, "under min.insync.replicas"),
        "under_replicated": _few([name for name in behind if name not in known], "under-replicated"),
        "foreign": _few([name for name in active if name not in own], "reassigned by somebody else"),
    }
    return {guard: said for guard, said in found.items() if said}


def out_of_sync(described):
    """Partitions with a replica out of sync."""
    return sorted(name for name, (_, replicas, isr) in described.items() if set(replicas) - set(isr))


def standing(target, origin, described, active, misplaced, states):
    """A batch's partitions by where they are: `done`, `pending`, `moving`, or `strangers`, which are anywhere else.

    A partition on the right brokers in another order is pending: a canceled reassignment leaves this. A partition that
    moves to none of the plan's lists is a stranger, because no run of this plan has started that move. One at another
    step of the plan is a stranger to this batch, too, because the batch would move it back.
    """
    found = {"done": [], "pending": [], "moving": [], "strangers": []}
    for name, wanted in sorted(target.items()):
        replicas = described[name][1] if name in described else None
        if name in active and foreign({name: active[name]}, states):
            found["strangers"].append(f"{name} (somebody else moves it to {_text(active[name])})")
        elif name in active:
            found["moving"].append(name)
        elif replicas == wanted and name not in misplaced:
            found["done"].append(name)
        elif replicas is not None and sorted(replicas) in (sorted(wanted), sorted(origin[name])):
            found["pending"].append(name)
        else:
            step = _STEP if replicas in states.get(name, []) else ""
            found["strangers"].append(
                name + (" (gone)" if replicas is None else f" (replicas {_text(replicas)}{step})")
            )
    return found


def absent(expected, racks, planned_racks):
    """A sentence on brokers that aren't live or aren't in their planned rack; else an empty one."""
    missing = sorted(set(expected) - set(racks))
    if missing:
        one = len(missing) == 1
        named = f"broker{'' if one else 's'} {', '.join(map(str, missing))}"
        them = "it" if one else "them"
        return f"Not live: {named}. Nothing was started; start {them}, or make a new plan without {them}."
    elsewhere = [
        f"broker {broker} in {rack}, planned for {planned_racks[str(broker)]}"
        for broker, rack in racks.items()
        if planned_racks.get(str(broker), rack) != rack
    ]
    said = _sentence(
        "Brokers aren't in the racks that the plan has for them. Nothing was started; make a new plan from the "
        "cluster as it is now. They are",
        elsewhere,
    )
    return said + _beyond_ascii((planned_racks.get(str(broker), rack), rack) for broker, rack in racks.items())


def unusable_dirs(planned, usable):
    """A sentence on the plan's log dirs, {broker: paths}, that aren't usable; else an empty one."""
    missing = [
        (broker, path)
        for broker, paths in planned.items()
        for path in sorted(set(paths) - set(usable.get(int(broker), ())))
    ]
    said = _sentence(
        "Log dirs of the plan aren't there, or have an error. Nothing was started; repair them, or make a new plan "
        "from the cluster as it is now; to go back, write any for them in rollback.json and give it to planner adopt. "
        "They are",
        [f"{path} of broker {broker}" for broker, path in missing],
    )
    return said + _beyond_ascii((path, shown) for broker, path in missing for shown in usable.get(int(broker), ()))


def _beyond_ascii(pairs):
    """What to do if names that are planned and printed differ only in letters beyond ASCII; else an empty text.

    Java prints ? for them where the session on the admin host has no locale, as under cron or over some connections.
    """
    hidden = any(planned != shown and planned.encode("ascii", "replace").decode() == shown for planned, shown in pairs)
    told = "Kafka's tools print ? for letters beyond ASCII there: set LC_ALL to C.UTF-8 in kafka_reassign_environment"
    return f". {told}" if hidden else ""


def foreign(running, states):
    """A sentence on running reassignments, {partition: its list afterwards}, that aren't a step of the plan."""
    rows = [name for name, to in running.items() if sorted(to) not in map(sorted, states.get(name, []))]
    return _sentence("Reassignments that aren't this plan's are running. Nothing was started. The partitions are", rows)


def never_complete(names):
    """A sentence on reassignments that were reversed while they ran; else an empty one."""
    return _sentence(
        "Kafka never completes reassignments that were reversed while they ran: a replica is to be added and "
        "removed. Nothing was started; rollback.yml, or kafka-reassign-partitions.sh --cancel, cancels them. The "
        "partitions are",
        names,
    )


def strangers(states, described, active, any_order):
    """A sentence on partitions whose list is neither a step of the plan nor the result of a canceled step.

    `any_order` ignores the order of brokers.
    """
    rows = []
    for name in sorted(set(states) - set(active)):
        replicas = described[name][1] if name in described else None
        if replicas is None:
            rows.append(f"{name} (gone)")
        elif replicas not in states[name] and not (
            _canceled(replicas, states[name]) or (any_order and sorted(replicas) in map(sorted, states[name]))
        ):
            rows.append(f"{name} (replicas {_text(replicas)}, planned from {_text(states[name][0])})")
    first = "roll back what was applied after it first, or " if any_order else ""
    said = _counted(
        rows,
        ("isn't", "aren't"),
        f"as the plan was made from. Nothing was started; {first}make a new plan from the cluster as it is now",
    )
    return said + (f". {_GONE}" if any(row.endswith("(gone)") for row in rows) else "")


def made_otherwise(topics):
    """A sentence on topics that have the new partitions, but not as planned."""
    return _sentence(
        "Partitions that the plan wants to make are there with other replicas, or in another number. Nothing was "
        "started; make a new plan from the cluster as it is now. The topics are",
        topics,
    )


def without_leader(described, states, waiting):
    """A sentence on partitions that lost their leader since the plan was made; `waiting` had none then."""
    rows = sorted(name for name in states if name in described and described[name][0] is None and name not in waiting)
    return _counted(
        rows,
        ("has lost its", "have lost their"),
        "leader since the plan was made. Nothing was started; start a broker that has a replica in sync, or make a "
        "plan of what is left (planner resume)",
    )


def kept_on_dead(described, running, states, live, waiting):
    """A sentence on partitions with a broker that isn't live in a later list. Kafka's tool refuses such lists."""
    rows = []
    for name in sorted(set(states) - waiting):
        now = sorted(running.get(name) or described[name][1])
        reached = next((at for at, each in enumerate(states[name]) if sorted(each) == now), 0)
        dead = sorted({broker for each in states[name][reached + 1 :] for broker in each} - set(live))
        rows += [f"{name} (broker {_text(dead)})"] if dead else []
    return _counted(
        rows,
        ("keeps", "keep"),
        "a broker that isn't live until a later batch, and Kafka refuses such lists. Nothing was started; start it, or "
        "capture the state again and make a new plan (planner resume)",
    )


def dead_targets(target, pending, live):
    """Brokers that aren't live in the target lists of `pending` partitions. Kafka's tool refuses such lists."""
    return sorted({broker for name in pending for broker in target[name]} - live)


def behind(described, adding, leaving, waiting):
    """A sentence on replicas out of sync, except those being copied and those on brokers that leave."""
    rows = [
        f"{name} (replicas {_text(replicas)}, in sync {_text(isr)})"
        for name, (_, replicas, isr) in described.items()
        if set(replicas) - set(isr) - set(leaving) - set(adding.get(name, ())) and name not in waiting
    ]
    return _counted(
        rows,
        ("is", "are"),
        "under-replicated. Nothing was started; wait until they are in sync, or set "
        "kafka_reassign_allow_under_replicated",
    )


def held(described, leaving):
    """Partitions with a replica on one of these brokers, with their lists."""
    rows = sorted(name for name, (_, replicas, _) in described.items() if set(replicas) & set(leaving))
    return [f"{name} (replicas {_text(described[name][1])})" for name in rows]


def stay_behind(rows):
    """A sentence on partitions that a rollback leaves on brokers that the plan added; else an empty one."""
    said = "Brokers that the plan added aren't empty. Don't stop them before a new plan removes them. They have"
    return f"{_sentence(said, rows)}{' and others' if rows[_NAMED:] else ''}." if rows else ""


def no_majority(voters, stopped):
    """A phrase on stopped brokers if the remaining controllers are no majority; else an empty one."""
    both = sorted(set(voters) & set(stopped))
    if 2 * (len(voters) - len(both)) > len(voters) or not both:
        return ""
    return (
        f"broker {_text(both)} {'is' if len(both) == 1 else 'are'} {len(both)} of the {len(voters)} controllers, and "
        "the others are no majority: without one no leader is elected"
    )


def controllers(voters, leaving):
    """A sentence on brokers that leave and are also controllers, or an empty one."""
    both = sorted(set(voters) & set(leaving))
    if said := no_majority(voters, leaving):
        return f"Don't stop them yet: {said}. Give their place to other controllers first."
    spare = len(voters) - len(both) - (len(voters) // 2 + 1)
    return (
        f"Broker {_text(both)} {'is' if len(both) == 1 else 'are'} {len(both)} of the {len(voters)} controllers: once "
        f"stopped, {spare or 'none'} of the others may fail. Give that place to another controller first."
        if both
        else ""
    )


def cordoned(rows, described, cordons, applied):
    """A phrase on what is cordoned, {broker: log dirs}, of what these rows of a reassignment file add replicas to.

    Kafka refuses a cordoned log dir that a row names, after it has started other moves. It would copy to a cordoned
    broker, which a rollback may do.
    """
    found = set()
    for row in rows:
        there = described[f"{row['topic']}-{row['partition']}"][1]
        for at, broker in enumerate(row["replicas"]):
            path, dirs = row["log_dirs"][at] if "log_dirs" in row else "any", cordons.get(str(broker), "").split(",")
            if path in dirs:
                found.add(f"log dir {path} of broker {broker}")
            elif "*" in dirs and (path != "any" or (applied and broker not in there)):
                found.add(f"broker {broker}")
    said = f"{', '.join(sorted(found))} {'are' if len(found) > 1 else 'is'} cordoned"
    return f"{said}, and the batch would add replicas there" if found else ""


def overfull(used, limits):
    """A phrase on brokers that hold more bytes than they may, or an empty one."""
    said = []
    for broker, limit in sorted(limits.items(), key=lambda each: int(each[0])):
        held, (unit, unit_bytes) = used.get(int(broker), 0), ("GB", 1e9) if limit >= 1e9 else ("MB", 1e6)
        if held > limit:
            amounts = [f"{size / unit_bytes:,.1f} {unit}" for size in (held, limit)]
            said.append(f"broker {broker} holds {amounts[0]}, its limit is {amounts[1]}")
    return ", ".join(said)


def unstored(rows):
    """A phrase on replicas that can't be copied because their log dir has failed; else an empty one."""
    more = f" and {len(rows) - _FEW} more" if len(rows) > _FEW else ""
    return f"replicas can't be copied, a log dir has failed: {'; '.join(rows[:_FEW])}{more}" if rows else ""


def lagging(lags, limits):
    """A phrase on consumer groups that are behind their limits, or whose lag is unknown; else an empty one."""
    found = []
    for group, limit in sorted(limits.items()):
        if lags[group] is None:
            found.append(f"the lag of consumer group {group} is unknown")
        elif lags[group] > int(limit):
            found.append(f"consumer group {group} is {lags[group]} records behind, its limit is {limit}")
    return ", ".join(found)


def new_partitions(new, described):
    """Topics whose new partitions aren't made yet, and topics that have other replicas or another number of them."""
    found = {"unmade": [], "made_otherwise": []}
    for topic, wanted in new.items():
        there = {
            name.rpartition("-")[2]: _text(replicas)
            for name, (_, replicas, _) in described.items()
            if name.rpartition("-")[0] == topic
        }
        alike = all(there.get(number) == replicas for number, replicas in wanted["replicas"].items())
        if len(there) == wanted["partitions_before"]:
            found["unmade"].append(topic)
        elif not alike or len(there) != wanted["partitions"]:
            found["made_otherwise"].append(topic)
    return found


def refusing(scarce, described, down, least):
    """Partitions that refuse writes with acks=all, or have no leader, without the brokers `down`.

    `scarce` are the partitions that have as many replicas in sync as min.insync.replicas, by topic `least` (else 1).
    Since Kafka 3.7, a partition with fewer replicas than that refuses writes unless all of them are in sync.
    """
    fewer = {name for name, (_, _, isr) in scarce.items() if down & set(isr)}
    # Kafka lists only those that have none to spare. A partition with one to spare may lose two.
    for name, (_, replicas, isr) in described.items():
        if len(set(isr) - down) < min(least.get(name.rpartition("-")[0], 1), len(replicas)) <= len(isr):
            fewer.add(name)
    return fewer | {name for name, (_, _, isr) in described.items() if isr and not set(isr) - down}


def led_by(described, brokers):
    """`broker partition` for each partition that one of these leads now, and another broker once these have stopped."""
    return sorted(
        f"{leader} {name}" for name, (leader, _, isr) in described.items() if leader in brokers and set(isr) - brokers
    )


def leading(described):
    """The leader of each partition in the format of the plan's leaders.json: `topic number leader`."""
    return {f"{name.rpartition('-')[0]} {name.rpartition('-')[2]} {row[0]}" for name, row in described.items()}


def _canceled(replicas, steps):
    """True if a canceled move from one step to the next, or back, leaves this list.

    A running move has the brokers of its end first. After a cancel, brokers that stay are before the others.
    """
    pairs = [pair for at in range(len(steps)) for pair in permutations(steps[at : at + 2], 2)]
    for origin, end in pairs:
        stay = [broker for broker in end if broker in origin]
        if replicas[: len(stay)] == stay and sorted(replicas) == sorted(origin):
            return True
    return False


def _sentence(head, rows):
    return f"{head} {', '.join(rows[:_NAMED])}" if rows else ""


def _counted(rows, verbs, rest):
    """A sentence on partitions with the verb for one of them or for several."""
    one = len(rows) == 1
    who = "1 partition" if one else f"{len(rows)} partitions"
    return _sentence(f"{who} {verbs[0 if one else 1]} {rest}. {'It is' if one else 'They are'}", rows)


def _text(replicas):
    return ",".join(map(str, replicas))


def _few(names, what):
    if not names:
        return ""
    shown = ", ".join(names[:_FEW]) + (", ..." if len(names) > _FEW else "")
    return f"{len(names)} {'partition' if len(names) == 1 else 'partitions'} {what}: {shown}"

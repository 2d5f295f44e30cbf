"""Sentences for a reviewer's decision: the verdict, the fullest and busiest brokers, the risks, traffic between racks.

Plain text: the code that prints it escapes names from the cluster.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Literal

from planner.execution.limits_and_safety import bound_of
from planner.model import formats
from planner.model.formats import amount, counted, number, percent, size
from planner.plan import headline
from planner.plan.document.cluster_types import BrokerRow
from planner.plan.document.partition_types import FullestBroker
from planner.plan.document.plan_types import Plan
from planner.report import choice_tables, sentences

_GROUPS_NAMED = 3
_DOMAINS = ("broker", "rack")


def verdict(plan: Plan) -> str:
    """Whether the plan can be applied, and what needs a second look; the first sentence of every output."""
    lead = "Ready to apply as a first step" if plan.unfinished else "Ready to apply"
    if down_ids := plan.brokers_down:
        lead += f" once {formats.brokers(down_ids)} {'is' if len(down_ids) == 1 else 'are'} live and in sync again"
    elif plan.risks.out_of_sync:
        lead += " once all replicas are in sync"
    if waiting := sum(row.leader_before is None for row in plan.partitions):
        lead += f", except for {counted(waiting, 'partition')} without a leader"
    if plan.refused:
        lead = "Refused"
    elif not plan.has_something_to_do:
        lead = "Nothing to apply"
    met = headline.balance_met(plan)
    parts = [
        *(["it can't be applied safely"] if plan.unsafe else []),
        *_limits(plan),
        *([met] if met else []),
        counted(len(plan.warnings), "warning") if plan.warnings else "no warnings",
        *([f"valid until {plan.valid_until}"] if plan.valid_until and not plan.refused else []),
    ]
    # Missed targets and the like get separate sentences, because they are no reason not to apply the plan.
    missed = [headline.balance_missed(plan), *headline.racks(plan), headline.costs_more(plan)]
    first = f"{lead}{'; ' if waiting else ': '}{'; '.join(parts)}."
    return " ".join([first, *(f"{each[0].upper()}{each[1:]}." for each in missed if each)])


def _limits(plan: Plan) -> Iterator[str]:
    """Whether the limits are kept; nothing if there are none."""
    gates = plan.limits
    crossed = [gate for gate in gates if gate.crossed]
    if crossed:
        verb = "is" if len(crossed) == 1 else "are"
        amounts = ((gate.key, *choice_tables.limit_amounts(plan, gate)) for gate in crossed)
        crossed_text = "; ".join(f"{key}: {needed}, {bound_of(key)} {allowed}" for key, needed, allowed in amounts)
        yield f"{len(crossed)} of {counted(len(gates), 'limit')} {verb} exceeded ({crossed_text})"
    elif set_gates := [gate for gate in gates if gate.key != "limits.disk_used" or plan.spec.limits.disk_used_ppm]:
        kept_texts = {1: "within the limit", 2: "within both limits"}
        above = choice_tables.above_disk_limit(plan)
        remark = f", but {above} limits.disk_used" if above else ""
        yield f"{kept_texts.get(len(set_gates), f'within all {len(set_gates)} limits')}{remark}"
    elif gates:
        # The default limit is a disk's size. A disk that is above its limit today may stay so.
        sizes = ((max(row.before.size_bytes, row.after.size_bytes), row.disk_bytes) for row in plan.brokers)
        is_over = any(size_bytes > disk_bytes for size_bytes, disk_bytes in sizes if disk_bytes is not None)
        some_unknown = any(row.disk_bytes is None and row.role != "removed" for row in plan.brokers)
        known_text = " of known size" if some_unknown else ""
        yield "no disk gets fuller than it may" if is_over else f"every disk{known_text} has room"


def risks(plan: Plan) -> Iterator[str]:
    """A sentence for each risk while the plan runs or after it, even if it is harmless."""
    if plan.partitions:
        yield f"Writes: {writes(plan)}."
        crossing, moved = plan.terms_by_name.get("cross_rack_bytes"), plan.bound.bytes_moved
        if plan.racks and moved and crossing and crossing.plan is not None and plan.cluster.sizes_known:
            share = percent(100 * crossing.plan / moved)
            yield f"Copied between racks: {size(int(crossing.plan))} of {size(moved)} ({share})."
        if plan.consumers is not None:
            groups = plan.consumers.groups
            moved_topics = {row.topic for row in plan.partitions if row.leader_before != row.replicas[0]}
            affected = [formats.printable(each.group, 60) for each in groups if moved_topics & each.topics.keys()]
            names = f": {formats.first_names(affected, _GROUPS_NAMED)}" if affected else ""
            share_text = f"{number(len(affected))} of {counted(len(groups), 'group')}"
            yield f"Consumers: {share_text} read topics whose leaders change{names}."
    yield from failures(plan)


def writes(plan: Plan) -> str:
    """Whether any batch makes partitions refuse writes, without a full stop."""
    risk_figures = plan.risks
    isr_note = "" if risk_figures.isr_known else " (replicas whose state is unknown are assumed to be in sync)"
    refused = [(batch, count) for batch, count in zip(plan.batches, risk_figures.under_min_isr, strict=False) if count]
    # Partitions without a leader refuse all writes even before the plan; those that change are in separate batches.
    waiting = sum(count for batch, count in refused if batch.leaderless)
    leaderless = plan.terms_by_name.get("without_leader")
    leaderless_count = max(waiting, round(leaderless.plan or 0) if leaderless else 0)
    if leaderless_count:
        refuses = "refuses" if leaderless_count == 1 else "refuse"
        isr_note += f"; {counted(leaderless_count, 'partition')} without a leader already {refuses} all writes"
    batches = [batch.number for batch, _ in refused if not batch.leaderless]
    if batches:
        where = f"{'batch' if len(batches) == 1 else 'batches'} {formats.ranges(batches)}"
        total = counted(risk_figures.under_min_isr_once or sum(count for _, count in refused) - waiting, "partition")
        return f"REFUSED with acks=all: {total} under min.insync.replicas in {where}{isr_note}"
    worst, today = max(risk_figures.refused_by_failure, default=0), risk_figures.refused_by_failure_today
    if not worst:
        return f"acks=all keeps working, even if one broker fails meanwhile{isr_note}"
    compared = "as today" if worst == today else f"today {number(today)}"
    blocked = counted(worst, "other partition" if leaderless_count else "partition")
    failure = f"one failure would block it for at most {blocked} ({compared})"
    return f"acks=all keeps working as long as no broker fails; {failure}{isr_note}"


def failures(plan: Plan) -> Iterator[str]:
    """A sentence on the worst failure of a broker, and one on the worst failure of a rack, after the plan."""
    terms = plan.terms_by_name
    by_domain = [
        (domain, [terms[key] for key in (f"{domain}_offline", f"{domain}_refused") if key in terms])
        for domain in _DOMAINS
    ]
    # Without anything to apply, the figures differ from today's only if the YAML alone changes them, as with set_racks.
    applies = plan.has_something_to_do
    after = (
        "After the plan,"
        if applies or any(a.plan != a.today for _, domain_terms in by_domain for a in domain_terms)
        else "Today,"
    )
    if applies and (down := plan.brokers_down):
        after += f" with {formats.brokers(down)} live again,"
    racks = any(row.rack is not None for row in plan.brokers)
    harmful = {
        domain: domain_terms
        for domain, domain_terms in by_domain
        if any(term.today or term.plan for term in domain_terms)
    }
    harmless = [domain for domain in _DOMAINS if domain not in harmful and (domain == "broker" or racks)]
    if harmless and any(domain_terms for _, domain_terms in by_domain):
        domains = " or ".join(harmless)
        yield f"{after} the failure of one {domains} takes no partition offline and blocks no acks=all writes."
    words = {"offline": "offline", "refused": "refusing acks=all writes"}
    for domain, domain_terms in harmful.items():
        # `1 partition offline, 2 refusing acks=all writes, as today`; with today's numbers if the plan changes one.
        unchanged = all(term.plan == term.today for term in domain_terms)
        parts = [
            f"{amount(term.plan, term.unit) if index else counted(round(term.plan or 0), 'partition')} "
            f"{words[term.name.rpartition('_')[2]]}{'' if unchanged else f' (today {amount(term.today, term.unit)})'}"
            for index, term in enumerate(domain_terms)
        ]
        as_today = ", as today" if unchanged and after != "Today," else ""
        yield f"{after} if the worst {domain} fails: {', '.join(parts)}{as_today}."


def leaving(plan: Plan) -> str:
    """Whether the brokers that leave can be stopped afterwards."""
    removed = [broker for broker in plan.brokers if broker.role == "removed"]
    if not removed or plan.refused:
        return ""
    holding = [broker.id for broker in removed if broker.after.replicas]
    ids = holding or [broker.id for broker in removed]
    who = formats.brokers(ids)
    if holding:
        return f"{who}: NOT empty afterwards, don't stop {'it' if len(ids) == 1 else 'them'} yet"
    leaderless = [row for row in plan.partitions if row.leader_before is None]
    if waiting := [row for row in leaderless if not {*row.replicas_before}.isdisjoint(ids)]:
        first = formats.printable(waiting[0].name, 60)
        kept = f"{counted(len(waiting), 'partition')} without a leader ({first}{', …' if len(waiting) > 1 else ''})"
        return f"{who}: keep {'its' if len(ids) == 1 else 'their'} data, {kept} can't be copied until a replica is back"
    needs = "needs it" if len(ids) == 1 else "needs them"
    if all(broker.seems_down for broker in removed):
        return f"{who}, down today: not needed after verify.yml; rollback.yml {needs} running again"
    return f"{who}: empty afterwards, can be stopped after verify.yml; rollback.yml {needs} running"


def holds_most(plan: Plan, measure: Literal["replicas", "leaders"]) -> str:
    """The broker with most replicas or leaders, today and afterwards; for replicas also during the batches."""
    texts = list[str]()
    for side in ("before", "after"):
        counts = {broker.id: getattr(getattr(broker, side), measure) for broker in plan.brokers}
        most = max(counts.values(), default=0)
        ids = [broker for broker, count in counts.items() if count == most]
        others = f" and {counted(len(ids) - 1, 'other')}" if len(ids) > 1 else ""
        present_ids = [row.id for row in plan.brokers if row.role != ("added" if side == "before" else "removed")]
        holder = "every broker" if len(ids) == len(present_ids) > 1 else f"broker {ids[0]}{others}" if ids else ""
        texts.append(f"{holder} ({number(most)})" if ids else "")
    today, after = texts
    peak_text, batches = "", plan.batches if measure == "replicas" else ()
    replica_counts = Counter({broker.id: broker.before.replicas for broker in plan.brokers})
    most = max(replica_counts.values(), default=0)
    for batch in batches:
        replica_counts.update(broker for row in batch.partitions for broker in row.added)
        fullest, count = max(replica_counts.items(), key=lambda row: (row[1], -row[0]))
        if count > most:
            peak_text, most = f"; broker {fullest} ({number(count)}) in batch {batch.number}", count
        replica_counts.subtract(broker for row in batch.partitions for broker in row.dropped)
    if peak_text:
        return f"{today} today{peak_text}; {after} after"
    if today == after:
        return f"{today} today, during the plan and after" if batches else f"{today} today and after"
    return f"{today} today and during the plan; {after} after" if batches else f"{today} today; {after} after"


def by_disk(plan: Plan) -> bool:
    """True if every broker states a disk; then brokers are ranked by percent of the disk, else by bytes."""
    return all(broker.disk_bytes for broker in plan.brokers)


def fullest(plan: Plan) -> str:
    """The fullest broker today, in any batch, and afterwards: by percent of its disk if all disks are stated."""
    if not plan.cluster.sizes_known:
        return holds_most(plan, "replicas")
    ranks_by_disk = by_disk(plan)
    unknown_text = ""
    dirs = [each for broker in plan.log_dirs.brokers for each in broker.log_dirs] if plan.log_dirs else []
    dirs_known = bool(dirs) and all(each.disk_bytes or each.error for each in dirs)
    fills = plan.replicas_copied or dirs or plan.new_partitions
    if fills and not ranks_by_disk and not dirs_known:
        some = "some " if any(broker.disk_bytes for broker in plan.brokers) else ""
        unknown_text = f"; {some}disk sizes unknown: free space not checked"

    def fullest_on(side: str) -> str:
        def fullness(broker: BrokerRow) -> float:
            size_bytes: int = getattr(broker, side).size_bytes
            return size_bytes / broker.disk_bytes if ranks_by_disk and broker.disk_bytes else size_bytes

        row = max(plan.brokers, key=lambda broker: (fullness(broker), -broker.id))
        return f"broker {row.id} ({_held_text(plan, getattr(row, side).size_bytes, row.disk_bytes)})"

    today, after = fullest_on("before"), fullest_on("after")
    during, batch = _peak(plan)
    # New partitions are empty when they are created, and count with the size that the YAML states, if any.
    sized = [bool(row.size) for row in plan.changes.create_topics]
    sized += [bool(row.size) for row in plan.changes.add_partitions]
    counting = "with their stated sizes" if any(sized) else "counted as empty"
    counting += ", others counted as empty" if any(sized) and not all(sized) else ""
    after_text = f"after, new partitions {counting}" if plan.new_topics else "after"
    during = during or (today if plan.new_topics else after)
    times = {today: ["today"]}
    times.setdefault(during, []).append("during the plan" if during in (today, after) else f"in batch {batch}")
    times.setdefault(after, []).append(after_text)
    # The fullest broker and its bytes are the same at all times.
    if len(times) == 1:
        return f"{today} today{', during the plan' if plan.partitions else ''} and after{unknown_text}"
    return "; ".join(f"{holder} {' and '.join(when)}" for holder, when in times.items()) + unknown_text


def _peak(plan: Plan) -> tuple[str, int]:
    """The fullest broker of any batch, by percent of its disk if stated, and the batch's number; empty if unknown."""
    rows = [(batch.fullest_broker, batch.number) for batch in plan.batches if batch.fullest_broker]

    def fullness(row: FullestBroker) -> tuple[bool, float]:
        disk_bytes, size_bytes = row.disk_bytes, row.peak_size_bytes
        return bool(disk_bytes), size_bytes / disk_bytes if disk_bytes else size_bytes

    if not rows:
        return "", 0
    row, batch = max(rows, key=lambda each: fullness(each[0]))
    return f"broker {row.id} ({_held_text(plan, row.peak_size_bytes, row.disk_bytes)})", batch


def _held_text(plan: Plan, size_bytes: int, disk_bytes: int | None) -> str:
    """Bytes and, if the disk is known, how full it is; the percentage comes first if brokers are ranked by it."""
    if disk_bytes and by_disk(plan):
        return f"{percent(100 * size_bytes / disk_bytes)} full, {size(size_bytes)}"
    return sentences.disk(size_bytes, disk_bytes) + (" of its disk" if disk_bytes is not None else "")


def busiest(plan: Plan) -> str:
    """The broker that receives or sends most, because the duration depends on it; mentions producers if throttled."""
    if not plan.cluster.sizes_known or not plan.bound.bytes_moved:
        return ""
    receiver = max(plan.brokers, key=lambda broker: broker.bytes_in)
    sender = max(plan.brokers, key=lambda broker: broker.bytes_out)
    # KIP-73: the throttle also counts what producers write to moving partitions.
    counts_producers = plan.execution.throttle_bytes_per_sec and any(row.before.network_in for row in plan.brokers)
    written = " and, within the throttle, what producers write meanwhile" if counts_producers else ""
    if sender.bytes_out > receiver.bytes_in:
        return f"; broker {sender.id} sends most, {size(sender.bytes_out)} in all{written}"
    return f"; broker {receiver.id} receives most, {size(receiver.bytes_in)} in all{written}"


def cross_rack(plan: Plan, *, stated: bool = False) -> tuple[str, ...]:
    """The traffic between racks, today and with the plan, and its cost. If consumers don't read at the leader, also
    says which other figures count their reads at the leader.

    With `stated`, empty unless the YAML states a price or where consumers are.
    """
    traffic = plan.cross_rack
    if traffic is None or (stated and traffic.plan.consumers is None and traffic.plan.money_per_month is None):
        return ()
    parts = [f"replication {size(traffic.today.replication)} → {size(traffic.plan.replication)} an hour"]
    if traffic.today.consumers is not None and traffic.plan.consumers is not None:
        near = " (from the nearest replica)" if traffic.fetch_from == "nearest replica" else ""
        parts.append(f"consumers{near} {size(traffic.today.consumers)} → {size(traffic.plan.consumers)} an hour")
    if traffic.today.money_per_month is not None and traffic.plan.money_per_month is not None:
        scope = "" if traffic.today.consumers is not None else " without consumers' reads"
        today, planned = (_money(each.money_per_month or 0) for each in (traffic.today, traffic.plan))
        parts.append(f"cost {today} → {planned} a month{scope}, in the currency of prices")
    if traffic.money_once is not None:
        parts.append(f"{_money(traffic.money_once)} once for the copies")
    lines = (f"from rack to rack, today → plan: {'; '.join(parts)}",)
    if traffic.fetch_from == "leader":
        return lines
    too = ", the hours planned for" if plan.hours and plan.hours.planned else ""
    hours = "" if plan.hours is None else "; for the hours of the week, they count where they are served"
    return *lines, f"reads count at the leader for balance.network_out{too} and network out per broker{hours}"


def _money(amount: float) -> str:
    return "< 0.01" if 0 < amount < 0.01 else f"{amount:,.2f}"

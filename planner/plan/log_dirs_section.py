"""The plan's section on log dirs: each one before and after, the moves inside brokers, and their proven minimum.

Also the terms, the missed windows and the warnings that log dirs add to the plan's other sections.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from planner.execution.batch_cutting import Batch
from planner.execution.log_dir_placement import BrokerDirs, DirPlan
from planner.model.document_fields import LogDirRow
from planner.model.formats import brokers, counted, size
from planner.plan.bound_section import gap_percent
from planner.plan.document.cluster_types import LeftOutRow, LogDirsBrokerRow, LogDirsSection
from planner.plan.document.comparison_types import TermRow
from planner.plan.score_terms import term
from planner.scoring.missed_targets import RelaxedRow

_SHOWN = 3


def section(planned: DirPlan | None) -> LogDirsSection | None:
    """The key `log_dirs` of plan.json; None if the YAML doesn't ask for log dirs."""
    if planned is None:
        return None
    moved = sum(each.packed.bytes_moved for each in planned.brokers)
    least = sum(each.packed.least_bytes_moved for each in planned.brokers)
    return LogDirsSection(
        wanted=str(planned.wanted),
        bytes_moved=moved,
        least_bytes_moved=least,
        gap_percent=gap_percent(moved, least),
        replicas_moved=len(planned.moves),
        brokers=tuple(
            LogDirsBrokerRow(
                id=each.broker,
                bytes_moved=each.packed.bytes_moved,
                least_bytes_moved=each.packed.least_bytes_moved,
                within=each.packed.outside_bytes == 0,
                log_dirs=each.dirs,
            )
            for each in planned.brokers
        ),
        left_out=tuple(LeftOutRow(id=broker, why=reason) for broker, reason in planned.left_out),
        moves=planned.moves,
    )


def relaxed(planned: DirPlan | None) -> Iterator[RelaxedRow]:
    """A row of `balance.relaxed` for each broker with log dirs outside their windows: the farthest from its share."""
    if planned is None:
        return
    for each in (broker for broker in planned.brokers if broker.packed.outside_bytes):
        shares = _shares(each)
        total = sum(row.after.size_bytes for row, _ in shares)
        percent, row = max(
            (
                (round(100 * abs(size_bytes - share * total) / (share * total), 3), row)
                for row, share in shares
                if not (row.least_bytes or 0) <= (size_bytes := row.after.size_bytes) <= (row.most_bytes or 0)
            ),
            key=lambda outside: outside[0],
        )
        proof = "no packing comes nearer" if each.packed.nearest else "none nearer was found"
        yield RelaxedRow(
            window="log_dirs",
            topic=None,
            wanted=str(planned.wanted),
            reached=percent,
            why=f"log dir {row.path} of broker {each.broker} holds {row.after.size_bytes} bytes, allowed "
            f"{row.least_bytes} to {row.most_bytes}; the broker's largest replica has {each.largest_bytes}, "
            f"and {proof}",
        )


def with_terms(terms: Sequence[TermRow], planned: DirPlan | None) -> tuple[TermRow, ...]:
    """The plan's terms; if log dirs are planned, `fairness` and `movement` each end with a term on log dirs."""
    if planned is None:
        return tuple(terms)
    now, then = _fullest_above_share(planned, "before"), _fullest_above_share(planned, "after")
    moved = sum(each.packed.bytes_moved for each in planned.brokers)
    of_dirs = (
        term("fairness", "fullest_log_dir", "% above share", (now, now, then)),
        term("movement", "bytes_inside_brokers", "bytes", (0, 0, moved)),
    )
    groups = list(dict.fromkeys(each.group for each in terms))
    return tuple(sorted([*terms, *of_dirs], key=lambda each: groups.index(each.group)))


def warnings(planned: DirPlan | None) -> Iterator[str]:
    """Brokers and replicas that aren't part of the packing, with the reason."""
    if planned is None:
        return
    for reason in dict.fromkeys(reason for _, reason in planned.left_out):
        ids = [broker for broker, each in planned.left_out if each == reason]
        others = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        yield f"log dirs of {brokers(ids[:_SHOWN])}{others} aren't planned: {reason}; Kafka chooses there"
    if unplaced := {each.broker: each.unplaced for each in planned.brokers if each.unplaced}:
        yield (
            f"{counted(sum(unplaced.values()), 'replica')} on {brokers(unplaced)}: in no log dir that answered, or "
            "with too long a name to move between log dirs; counted in no log dir"
        )
    if moving := sum(each.moving for each in planned.brokers):
        yield (
            f"{counted(moving, 'replica')} already moving between log dirs: counted in the new log dir, and left alone"
        )


def overfull(planned: DirPlan | None, batches: Sequence[Batch]) -> Iterator[str]:
    """A line for each log dir without room for the replicas that arrive in a batch; it names the first such batch.

    Both copies exist until a batch is complete, so arriving replicas need room before others are deleted.
    """
    if planned is None:
        return
    room = {(each.broker, path): free for each in planned.brokers for path, free in each.room.items()}
    sizes = {(row.topic, row.partition, row.broker): row.size_bytes for row in planned.moves}
    for batch in batches:
        arriving, leaving = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
        for step in batch.steps:
            for counter, replicas, dirs in (
                (arriving, step.after, step.log_dirs),
                (leaving, step.before, step.log_dirs_before),
            ):
                for broker, path in zip(replicas, dirs, strict=False):
                    counter[broker, path] += sizes.get((*step.key, broker), step.size_bytes)
        for broker, path in sorted(place for place in room if arriving[place] > room[place]):
            yield (
                f"balance.log_dirs: log dir {path} of broker {broker} gets {size(arriving[broker, path])} in batch "
                f"{batch.number}, and has room for {size(room.pop((broker, path)))} then; allowed: smaller batches "
                "(execution.batches), or a looser balance.log_dirs"
            )
        room = {place: free + leaving[place] - arriving[place] for place, free in room.items()}


def _shares(each: BrokerDirs) -> list[tuple[LogDirRow, float]]:
    """The log dirs without an error, each with its share (0 to 1) of all bytes in them."""
    usable = [row for row in each.dirs if row.error is None]
    sizes = [row.disk_bytes for row in usable]
    weights = [size or 1 for size in sizes] if all(sizes) else [1] * len(usable)
    return [(row, weight / sum(weights)) for row, weight in zip(usable, weights, strict=True)]


def _fullest_above_share(planned: DirPlan, state: Literal["before", "after"]) -> float:
    """How far the fullest log dir of any broker is above its share, in percent of the share."""
    above = [0.0]
    for each in planned.brokers:
        sizes = [(getattr(row, state).size_bytes, share) for row, share in _shares(each)]
        total = sum(size for size, _ in sizes)
        above += [100 * (size / (share * total) - 1) for size, share in sizes if share * total]
    return round(max(above), 2)

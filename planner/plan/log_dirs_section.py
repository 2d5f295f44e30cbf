"""What plan.json says of log dirs: each before and after, what moves inside brokers, and how few bytes would do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from planner.execution.log_dir_placement import BrokerDirs, DirPlan, DirState
from planner.model.spec import Spec
from planner.plan.bound_file import gap_percent
from planner.plan.document.cluster_types import (
    LeftOutRow,
    LogDirLoad,
    LogDirMoveRow,
    LogDirRow,
    LogDirsBrokerRow,
    LogDirsSection,
)
from planner.plan.document.term_types import RelaxedRow, TermRow

_SHOWN = 3


def section(planned: DirPlan | None) -> LogDirsSection | None:
    """The key `log_dirs` of plan.json; None where they aren't asked for."""
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
        brokers=tuple(map(_broker, planned.brokers)),
        left_out=tuple(LeftOutRow(id=broker, why=why) for broker, why in planned.left_out),
        moves=tuple(
            LogDirMoveRow(
                topic=move.topic,
                partition=move.partition,
                broker=move.broker,
                log_dir_before=move.before,
                log_dir=move.after,
                size_bytes=move.size_bytes,
            )
            for move in planned.moves
        ),
    )


def relaxed(planned: DirPlan | None) -> list[RelaxedRow]:
    """A row of `balance.relaxed` for each broker whose log dirs aren't all within their windows."""
    if planned is None:
        return []
    found = ((each, _worst(each)) for each in planned.brokers)
    return [
        RelaxedRow(
            window="log_dirs", topic=None, wanted=str(planned.wanted), reached=worst[0], why=_why(each, worst[1])
        )
        for each, worst in found
        if worst is not None
    ]


def with_terms(terms: Sequence[TermRow], planned: DirPlan | None) -> tuple[TermRow, ...]:
    """The terms, and behind those of their groups the fullest log dir and what moves inside brokers, where asked."""
    groups = list(dict.fromkeys(term.group for term in terms))
    both = [*terms, *(_terms(planned) if planned else ())]
    return tuple(sorted(both, key=lambda term: groups.index(term.group)))


def _terms(planned: DirPlan) -> Iterator[TermRow]:
    now, then = _unevenness(planned, after=False), _unevenness(planned, after=True)
    yield TermRow(
        group="fairness",
        name="fullest_log_dir",
        unit="% above share",
        today=now,
        if_nothing_moves=now,
        plan=then,
        limit=None,
        meaning="how far the fullest log dir is above its share",
    )
    yield TermRow(
        group="movement",
        name="bytes_inside_brokers",
        unit="bytes",
        today=0,
        if_nothing_moves=0,
        plan=sum(each.packed.bytes_moved for each in planned.brokers),
        limit=None,
        meaning="bytes that brokers move between their log dirs, not over the network",
    )


def warnings(spec: Spec, planned: DirPlan | None) -> list[str]:
    """Log dirs with an error, brokers left out, and log dirs that may run full."""
    if planned is None:
        return []
    return [*_broken(spec, planned), *_unplanned(planned), *_tight(planned)]


def _broken(spec: Spec, planned: DirPlan) -> Iterator[str]:
    targets = {each.broker for each in planned.brokers} | {broker for broker, _ in planned.left_out}
    for broker, dirs in spec.cluster.log_dirs.brokers:
        for log_dir in dirs:
            if log_dir.error is not None and broker in targets:
                yield f"log dir {log_dir.path} of broker {broker} has an error ({log_dir.error}) and gets nothing"


def _unplanned(planned: DirPlan) -> Iterator[str]:
    for why, count in Counter(why for _, why in planned.left_out).items():
        ids = [str(broker) for broker, each in planned.left_out if each == why]
        more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
        yield f"log dirs of broker {', '.join(ids[:_SHOWN])}{more} aren't planned: {why}; Kafka chooses there"
    unplaced = {each.broker: each.unplaced for each in planned.brokers if each.unplaced}
    if unplaced:
        yield (
            f"{sum(unplaced.values())} replicas on brokers {', '.join(map(str, unplaced))} are in no log dir that "
            "answered, or have too long a name to move between log dirs; they count in none"
        )
    moving = sum(each.moving for each in planned.brokers)
    if moving:
        yield f"{moving} replicas are on their way between log dirs today; each counts where it goes, and isn't moved"


def _tight(planned: DirPlan) -> Iterator[str]:
    """Both copies exist until a move is complete, so what comes needs room before anything goes."""
    for each in planned.brokers:
        for state in each.dirs:
            free, disk = state.dir.free_bytes, state.dir.disk_bytes
            room = free if free is not None else None if disk is None else max(disk - state.before.size_bytes, 0)
            if room is not None and state.bytes_in > room:
                yield (
                    f"log dir {state.dir.path} of broker {each.broker} gets {state.bytes_in} bytes, "
                    f"and has room for {room} before anything leaves it"
                )


def _broker(each: BrokerDirs) -> LogDirsBrokerRow:
    packed = each.packed
    return LogDirsBrokerRow(
        id=each.broker,
        bytes_moved=packed.bytes_moved,
        least_bytes_moved=packed.least_bytes_moved,
        within=packed.outside_bytes == 0,
        log_dirs=tuple(map(_state, each.dirs)),
    )


def _state(state: DirState) -> LogDirRow:
    least, most = (None, None) if state.window is None else state.window
    return LogDirRow(
        path=state.dir.path,
        error=state.dir.error,
        disk_bytes=state.dir.disk_bytes,
        least_bytes=least,
        most_bytes=most,
        before=LogDirLoad(replicas=state.before.replicas, size_bytes=state.before.size_bytes),
        after=LogDirLoad(replicas=state.after.replicas, size_bytes=state.after.size_bytes),
        bytes_in=state.bytes_in,
        bytes_out=state.bytes_out,
    )


def _shares(each: BrokerDirs) -> list[tuple[DirState, float]]:
    """The log dirs that may be used, each with its share of the bytes that lie in them afterwards."""
    usable = [state for state in each.dirs if state.window is not None]
    sizes = [state.dir.disk_bytes for state in usable]
    weights = [size or 1 for size in sizes] if all(sizes) else [1] * len(usable)
    return [(state, weight / sum(weights)) for state, weight in zip(usable, weights, strict=True)]


def _worst(each: BrokerDirs) -> tuple[float, DirState] | None:
    """The log dir farthest outside its window, and how far from its share, in per cent of that; None where none is."""
    if not each.packed.outside_bytes:
        return None
    total = sum(state.after.size_bytes for state in each.dirs if state.window is not None)
    found = [
        (round(100 * abs(state.after.size_bytes - share * total) / (share * total), 3), state)
        for state, share in _shares(each)
        if state.window is not None and not state.window[0] <= state.after.size_bytes <= state.window[1]
    ]
    return max(found, key=lambda pair: pair[0])


def _why(each: BrokerDirs, state: DirState) -> str:
    """What was reached, what was allowed, and what is in the way."""
    least, most = state.window or (0, 0)
    where = f"log dir {state.dir.path} of broker {each.broker}"
    held = f"holds {state.after.size_bytes} bytes, allowed {least} to {most}"
    proof = "no packing comes nearer" if each.packed.nearest else "none nearer was found"
    return f"{where} {held}; the broker's largest replica has {each.largest_bytes}, and {proof}"


def _unevenness(planned: DirPlan, *, after: bool) -> float:
    """How far the fullest log dir of any broker is above its share, in per cent of it."""
    most = 0.0
    for each in planned.brokers:
        held = [(state.after if after else state.before).size_bytes for state, _ in _shares(each)]
        shares = [share * sum(held) for _, share in _shares(each)]
        most = max([most, *(100 * (size / share - 1) for size, share in zip(held, shares, strict=True) if share)])
    return round(most, 2)

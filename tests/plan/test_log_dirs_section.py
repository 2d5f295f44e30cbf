"""What the plan says about log dirs: the section, the terms, the missed windows and the warnings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from msgspec import structs
from plan_documents import row

from planner.execution.batch_cutting import Batch
from planner.execution.log_dir_packing import Packed
from planner.execution.log_dir_placement import BrokerDirs, DirPlan
from planner.execution.partition_changes import Step
from planner.model.balance import Tolerance
from planner.model.document_fields import LogDirLoad, LogDirMoveRow, LogDirRow
from planner.plan import log_dirs_section
from planner.plan.document.comparison_types import TermRow

# Broker 1 moves 30 of 100 bytes from /a, which should have 45 to 55, to /b; /c has an error.
A = row(LogDirRow, {"path": "/a", "disk_bytes": None, "least_bytes": 45, "most_bytes": 55})
A = structs.replace(A, error=None, before=LogDirLoad(3, 100), after=LogDirLoad(2, 70), bytes_in=0, bytes_out=30)
B = structs.replace(A, path="/b", disk_bytes=200, before=LogDirLoad(0, 0), after=LogDirLoad(1, 30), bytes_in=30)
B = structs.replace(B, bytes_out=0)
C = structs.replace(A, path="/c", error="KafkaStorageException", before=LogDirLoad(1, 9), after=LogDirLoad(1, 9))
C = structs.replace(C, least_bytes=None, most_bytes=None, bytes_out=0)
PACKED = Packed(np.array([0, 0, 1]), bytes_moved=30, least_bytes_moved=24, outside_bytes=15, nearest=True)
ONE = BrokerDirs(1, (A, B, C), {"/b": 20}, PACKED, largest_bytes=40, unplaced=2, moving=1)
PLAN = DirPlan(
    Tolerance.parse("10%"),
    (ONE,),
    ((2, "no answer"), (3, "no answer")),
    (LogDirMoveRow("t", 0, 1, "/a", "/b", 30),),
    {},
    {},
)


def test_without_log_dirs_nothing_is_said() -> None:
    """Without log dirs there is no section, window or warning, and the terms don't change."""
    term = row(TermRow, {"group": "safety"})
    assert None is log_dirs_section.section(None)
    assert [] == [*log_dirs_section.relaxed(None), *log_dirs_section.warnings(None)]
    assert (term,) == log_dirs_section.with_terms([term], None)


def test_the_section_has_each_log_dir_before_and_after() -> None:
    """Each log dir has bytes before and after and a window, unless it has an error; the moves have their gap."""
    found = log_dirs_section.section(PLAN)
    assert found is not None
    assert ("10%", 30, 24, 20.0, 1) == (
        found.wanted,
        found.bytes_moved,
        found.least_bytes_moved,
        found.gap_percent,
        found.replicas_moved,
    )
    (broker,) = found.brokers
    assert (1, False) == (broker.id, broker.within)
    assert [("/a", 100, 70, 45), ("/b", 0, 30, 45), ("/c", 9, 9, None)] == [
        (each.path, each.before.size_bytes, each.after.size_bytes, each.least_bytes) for each in broker.log_dirs
    ]
    assert [(2, "no answer"), (3, "no answer")] == [(each.id, each.why) for each in found.left_out]
    assert [("t", 0, 1, "/a", "/b", 30)] == [
        (each.topic, each.partition, each.broker, each.log_dir_before, each.log_dir, each.size_bytes)
        for each in found.moves
    ]


def test_the_log_dir_farthest_outside_of_its_window_is_named() -> None:
    """/a has 70 of 100 bytes in two log dirs, 40 % off its share. A broker within its windows isn't named."""
    (missed,) = log_dirs_section.relaxed(PLAN)
    assert ("log_dirs", None, "10%", 40.0) == (missed.window, missed.topic, missed.wanted, missed.reached)
    assert missed.why == (
        "log dir /a of broker 1 holds 70 bytes, allowed 45 to 55; "
        "the broker's largest replica has 40, and no packing comes nearer"
    )
    within = replace(ONE, packed=replace(PACKED, outside_bytes=0))
    assert [] == list(log_dirs_section.relaxed(replace(PLAN, brokers=(within,))))


def test_each_term_stands_at_the_end_of_its_group() -> None:
    """Each term is the last of its group: the fullest log dir is 100 % above its share today, and 40 % after."""
    terms = [row(TermRow, {"group": group, "name": group}) for group in ("fairness", "safety", "movement")]
    found = log_dirs_section.with_terms(terms, PLAN)
    names = ["fairness", "fullest_log_dir", "safety", "movement", "bytes_inside_brokers"]
    assert names == [term.name for term in found]
    assert [(100.0, 40.0), (0, 30)] == [(found[at].today, found[at].plan) for at in (1, 4)]


def test_warnings_name_what_is_not_planned() -> None:
    """Warnings name brokers that didn't answer, replicas in no log dir, and replicas that are already moving."""
    assert [
        "log dirs of brokers 2–3 aren't planned: no answer; Kafka chooses there",
        "2 replicas on broker 1: in no log dir that answered, or with too long a name to move between log dirs; "
        "counted in no log dir",
        "1 replica already moving between log dirs: counted in the new log dir, and left alone",
    ] == list(log_dirs_section.warnings(PLAN))


def inside(number: int, partition: int, before: str, after: str, size_bytes: int) -> Batch:
    """A batch that moves a replica of broker 1 between two of its log dirs."""
    step = Step("t", partition, (1,), (1,), size_bytes, 1, log_dirs_before=(before,), log_dirs=(after,))
    return Batch(number, (step,), ())


def test_no_batch_fills_a_log_dir_above_its_room() -> None:
    """/b has room for 20 bytes: it gets 30 only if a batch before has taken 10 away, not the same batch."""
    come, go = inside(1, 0, "/a", "/b", 30), inside(1, 1, "/b", "/a", 10)
    refused = (
        "balance.log_dirs: log dir /b of broker 1 gets 30 B in batch 1, and has room for 20 B then; allowed: smaller "
        "batches (execution.batches), or a looser balance.log_dirs"
    )
    assert [] == list(log_dirs_section.overfull(PLAN, [go, replace(come, number=2)]))
    assert [refused] == list(log_dirs_section.overfull(PLAN, [replace(come, steps=(*come.steps, *go.steps))]))
    assert [refused] == list(log_dirs_section.overfull(PLAN, [come, replace(come, number=2)]))
    assert [] == list(log_dirs_section.overfull(None, [come]))

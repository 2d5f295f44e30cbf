"""Topics that a plan leaves with no more replicas than `min.insync.replicas`, in sentences: among the plan's warnings.

With as many replicas as that, writes with acks=all are refused as soon as one of their brokers is down, be it for a
restart. With fewer they are refused always; a plan that would do that itself is refused before.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.figures import counted
from planner.model import BoolArray, Problem, Spec

_REFUSED = "writes with acks=all are refused"
_ONE_DOWN = f"while one of their brokers is down, {_REFUSED}"


def warnings(spec: Spec, problem: Problem) -> Iterator[str]:
    """A sentence for each way in which a plan leaves topics so, with the first few of them.

    Topics with one replica whose `min.insync.replicas` is 1 count where the plan takes the others away.
    """
    before = (problem.replicas >= 0).sum(axis=1)
    after, least, new = problem.replication_factors, problem.min_insync, problem.is_new
    equal, several = after == least, least > 1
    lowered, raised, kept = (rows & ~new for rows in (after < before, after > before, after == before))
    staying = kept & ~_deleted(spec, problem)
    for rows, what in (
        (equal & several & lowered, "lowered to as many replicas as min.insync.replicas"),
        (equal & several & raised, "raised to as many replicas as min.insync.replicas, and no more"),
        (equal & several & new, "with new partitions of as many replicas as min.insync.replicas"),
        (equal & several & staying, "kept with as many replicas as min.insync.replicas"),
    ):
        yield from _told(problem, rows, what, _ONE_DOWN)
    yield from _told(problem, equal & ~several & lowered, "lowered to one replica", "offline while its broker is down")
    fewer = "kept with fewer replicas than min.insync.replicas"
    yield from _told(problem, (after < least) & staying, fewer, f"{_REFUSED}, today and after the plan")


def _deleted(spec: Spec, problem: Problem) -> BoolArray:
    """(P,): True for the partitions of topics that are marked for deletion."""
    names = {topic.name for topic in spec.cluster.topics if topic.deleting}
    return np.array([name in names for name in problem.topic_names], dtype=bool)[problem.topic_of]


def _told(problem: Problem, rows: BoolArray, what: str, harm: str) -> Iterator[str]:
    names = [problem.topic_names[topic] for topic in np.unique(problem.topic_of[rows]).tolist()]
    if names:
        some = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        yield f"{counted(len(names), 'topic')} {what} ({some}): {harm}"

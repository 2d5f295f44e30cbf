"""When racks matter to a problem, and which of its partitions are new."""

from __future__ import annotations

from clusters import no_racks, problem_of

from planner.model.build_problem import today
from planner.model.spec import Changes, NewPartitions


def test_racks_matter_only_where_all_have_one() -> None:
    """Racks matter if each broker that stays has a rack, and rack_aware is enforced."""
    rows = {"x": [(1,)]}
    assert problem_of({1: "a", 2: "b"}, rows).racks_matter
    assert not problem_of({1: "a", 2: "b"}, rows, rack_aware=False).racks_matter
    assert not problem_of(no_racks(1, 2), rows).racks_matter
    assert not problem_of({1: "a", 2: None}, rows).racks_matter
    assert problem_of({1: "a", 2: None}, rows, changes=Changes(remove_brokers=(2,))).racks_matter


def test_partitions_to_be_made_are_new() -> None:
    """Partitions to be made are new, have no replicas today, and widen the arrays if needed."""
    changes = Changes(new_partitions=(NewPartitions("x", 1, 3, 2),))
    problem = problem_of(no_racks(1, 2), {"x": [(1,)]}, changes=changes)
    assert [False, True, True] == problem.is_new.tolist()
    assert (2, [[0, -1], [-1, -1], [-1, -1]]) == (problem.width, today(problem).tolist())

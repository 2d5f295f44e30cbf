"""How many consumers, and which assignor: evaluates each combination for a group, today and in each scenario.

A row is a group, an assignor and a number of members that all read all of the group's topics. It has the same values
wherever it is computed: in this process or on a Spark worker.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from fractions import Fraction
from itertools import groupby, product
from operator import itemgetter
from typing import Any, Self

from planner.model.cluster import PartitionKey
from planner.model.document_fields import Section
from planner.model.spec import Growth
from planner.whatif import assignors
from planner.whatif.assignors import ASSIGNORS, SHARE_ASSIGNOR
from planner.whatif.group_events_and_keys import Group, spread

TODAY = "today"
# The assignors, sorted by how little they move when members come and go; those that move least come first.
_MOVING_LEAST = ("cooperative-sticky", "uniform", "sticky", "roundrobin", "server-range", "range")
# For members that start together, these give the same as cooperative-sticky and range.
_ALIKE = ("sticky", "server-range")

# A combination: the number of the `group`, the `assignor`, and the number of `members`; with its score also the other
# fields of `SweptCombination`.
MembersRow = Mapping[str, Any]


@dataclass(frozen=True)
class ConsumersStudy:
    """The inputs of the rows: each group's partition counts and topic ids, and the partitions' loads in each scenario.

    `scenarios[0]` is today; `loads` has one mapping per scenario.
    """

    groups: tuple[tuple[str, Mapping[str, int], Mapping[str, str]], ...]
    scenarios: tuple[str, ...]
    loads: tuple[Mapping[PartitionKey, int], ...]


def study(groups: Sequence[Group], loads: Mapping[PartitionKey, int], growth: Sequence[Growth]) -> ConsumersStudy:
    """The study of some groups; each scenario multiplies the loads of topics that match its pattern, rounded."""
    scenario_loads = [dict(loads)]
    for each in growth:
        factor = Fraction(each.factor)
        scenario_loads.append(
            {key: round(load * factor) if fnmatchcase(key[0], each.topics) else load for key, load in loads.items()}
        )
    names = (TODAY, *(each.name for each in growth))
    group_topics = tuple((group.name, dict(group.counts), dict(group.topic_ids)) for group in groups)
    return ConsumersStudy(group_topics, names, tuple(scenario_loads))


def rows(groups: Sequence[Group], fewest: int | None = None, most: int | None = None) -> list[MembersRow]:
    """Every combination, by group: by default from two members to twice the current number.

    At most as many members as partitions, because more would have nothing to read; in share groups, they share some.
    """
    combinations = list[MembersRow]()
    for index, group in enumerate(groups):
        names = [each for each in (*ASSIGNORS, group.assignor) if each not in _ALIKE or group.assignor == each]
        most_members = most or max(2 * len(group.members), 2)
        if group.assignor == SHARE_ASSIGNOR:
            names = [SHARE_ASSIGNOR]
        else:
            most_members = min(sum(group.counts.values()), most_members)
        members = range(min(fewest or 2, most_members), most_members + 1)
        pairs = product(dict.fromkeys(names), members)
        combinations += [{"group": index, "assignor": assignor, "members": count} for assignor, count in pairs]
    return combinations


def evaluate(study: ConsumersStudy, row: MembersRow) -> MembersRow:
    """The combination with its score."""
    (_, topics, topic_ids), count = study.groups[row["group"]], row["members"]
    members = {f"consumer-{number:0{len(str(count))}}": list(topics) for number in range(1, count + 1)}
    owners = assignors.assign(row["assignor"], topics, members, topic_ids=topic_ids)
    spreads = [spread(owners, loads) for loads in study.loads]
    widest = [each.most_load - each.fewest_load for each in spreads]
    widest_index = widest.index(max(widest))
    shares = [each.most_load * count / each.total_load - 1 for each in spreads if each.total_load]
    return {
        **row,
        "most_partitions": spreads[widest_index].most_partitions,
        "fewest_partitions": spreads[widest_index].fewest_partitions,
        "widest_spread": widest[widest_index],
        "widest_in": widest_index,
        "most_load": max(each.most_load for each in spreads),
        "above_share_percent": round(100 * max(shares, default=0.0), 3),
    }


class SweptCombination(Section, frozen=True, kw_only=True):
    """So many members with an assignor: the widest spread of loads over all scenarios, and which scenario has it."""

    assignor: str
    members: int
    most_partitions: int
    fewest_partitions: int
    widest_spread: int
    widest_in: int
    most_load: int
    above_share_percent: float


class SweptGroup(Section, frozen=True, kw_only=True):
    """The best combination for a group, and the best for every number of members."""

    group: str
    tried: int
    best: SweptCombination
    by_members: tuple[SweptCombination, ...]

    @classmethod
    def of(cls, name: str, combinations: Sequence[SweptCombination]) -> Self:
        """One group's combinations, sorted by spread, then by members, then by how little the assignor moves later."""

        def order(row: SweptCombination) -> tuple[int, int, int, str]:
            rank = _MOVING_LEAST.index(row.assignor) if row.assignor in _MOVING_LEAST else len(_MOVING_LEAST)
            return row.widest_spread, row.members, rank, row.assignor

        ranked = sorted(combinations, key=order)
        by_members = {each.members: each for each in reversed(ranked)}
        best_rows = tuple(by_members[members] for members in sorted(by_members))
        return cls(group=name, tried=len(ranked), best=ranked[0], by_members=best_rows)


class ConsumersSweep(Section, frozen=True, kw_only=True):
    """What the sweep found for each group, in these scenarios."""

    scenarios: tuple[str, ...]
    groups: tuple[SweptGroup, ...]


def summary(study: ConsumersStudy, scores: Iterable[MembersRow]) -> ConsumersSweep:
    """The combinations with their scores, by group, as a part of the report."""
    fields = SweptCombination.__struct_fields__
    groups = list[SweptGroup]()
    for index, rows in groupby(scores, key=itemgetter("group")):
        combinations = [SweptCombination(**{name: row[name] for name in fields}) for row in rows]
        groups.append(SweptGroup.of(study.groups[index][0], combinations))
    return ConsumersSweep(scenarios=study.scenarios, groups=tuple(groups))

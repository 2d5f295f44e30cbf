"""Measures how time and memory grow with the cluster, on generated clusters from a thousand replicas to 2.8 million.

Each cluster grows by 23 to 50 % of its brokers, is planned for even counts, and is measured in a separate process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

from benchmarks import cases, peers
from benchmarks.apart import apart
from benchmarks.cases import Recipe
from benchmarks.measure import Solved, solve
from benchmarks.table import Entries, Figures, gap, gigabytes, head, megabytes, row
from planner.scoring.windows import windows
from planner.strategies import leaders

SEED = "public"
# Brokers and racks before, brokers and racks after, topics, partitions per topic, replication factor; sizes are random.
RECIPES = {
    "1 thousand": Recipe(6, 3, 9, 3, 28, 12, 3, None, 1.0),
    "10 thousand": Recipe(18, 3, 24, 3, 133, 25, 3, None, 1.0),
    "100 thousand": Recipe(48, 6, 60, 6, 667, 50, 3, None, 1.0),
    "300 thousand": Recipe(78, 6, 96, 6, 1350, 75, 3, None, 1.0),
    "huge": cases.RECIPES["huge"],
    "2.8 million": Recipe(170, 5, 215, 5, 8000, 118, 3, None, 1.0),
}
POINTS = tuple(RECIPES)

_COLUMNS = (
    "replicas",
    "partitions × RF",
    "topics",
    "brokers",
    "GB moved",
    "gap",
    "spread: replicas / leaders / topic",
    "build s",
    "solve s",
    "of which leaders s",
    "check s",
    "sum s",
    "µs a replica",
    "peak memory MB",
)


@dataclass(frozen=True)
class Point:
    """One planned cluster of the curve: its size, its plan, and the plan's time and memory.

    Seconds are wall time. `leaders_seconds` is for the part of `solve` that chooses leaders, run once more by itself.
    """

    point: str
    replicas: int
    partitions: int
    replication_factor: int
    topics: int
    brokers_before: int
    brokers_after: int
    bytes_moved: int
    least_bytes: int
    violations: int
    spreads: tuple[int, int, int]
    build_seconds: float
    solve_seconds: float
    leaders_seconds: float
    check_seconds: float
    peak_bytes: int

    @property
    def seconds(self) -> float:
        """Seconds from the spec to the checked plan."""
        return self.build_seconds + self.solve_seconds + self.check_seconds


def entries(points: Sequence[str] = POINTS) -> Entries:
    """The curve's Markdown, each line as soon as it is measured."""
    yield from (f"## Scale, seed `{SEED}`", "", *head(_COLUMNS))
    for name in points:
        point = apart(measure, name, RECIPES[name])
        yield Figures("scale", {**asdict(point), "seconds": point.seconds})
        yield row(_cells(point))
    fast, regular = peers.reported_minutes()
    yield from (
        "",
        "Even replicas, leaders and topics, each within one; sums are from the spec to the checked plan. Users of "
        f"Cruise Control report {fast} to {regular} minutes for a plan of 215 brokers and 2.8 million replicas.",
    )


def measure(name: str, recipe: Recipe) -> Point:
    """Make the cluster, plan it in this process, and choose its leaders once more."""
    spec = cases.to_spec(cases.from_recipe(name, recipe, SEED))
    solved = solve(spec)
    problem, plan = solved.problem, solved.plan
    return Point(
        point=name,
        replicas=int(problem.replication_factors.sum()),
        partitions=problem.rows,
        replication_factor=recipe.replication_factor,
        topics=len(problem.topic_names),
        brokers_before=recipe.brokers_before,
        brokers_after=recipe.brokers_after,
        bytes_moved=plan.bytes_moved,
        least_bytes=solved.least_bytes,
        violations=plan.violations,
        spreads=(plan.replica_spread, plan.leader_spread, plan.topic_spread),
        build_seconds=solved.build_seconds,
        solve_seconds=solved.solve_seconds,
        leaders_seconds=_leaders_seconds(solved),
        check_seconds=solved.check_seconds,
        peak_bytes=solved.peak_bytes,
    )


def _leaders_seconds(solved: Solved) -> float:
    target_windows = windows(solved.problem, solved.problem.balance)
    started = perf_counter()
    leaders.choose_leaders(solved.problem, solved.assignment, target_windows)
    return perf_counter() - started


def _cells(point: Point) -> tuple[str, ...]:
    return (
        f"{point.replicas:,}",
        f"{point.partitions:,} × {point.replication_factor}",
        f"{point.topics:,}",
        f"{point.brokers_before} → {point.brokers_after}",
        gigabytes(point.bytes_moved),
        gap(point.bytes_moved, point.least_bytes),
        " / ".join(f"{spread:,}" for spread in point.spreads),
        f"{point.build_seconds:.2f}",
        f"{point.solve_seconds:.2f}",
        f"{point.leaders_seconds:.2f}",
        f"{point.check_seconds:.2f}",
        f"{point.seconds:.2f}",
        f"{point.seconds / point.replicas * 1e6:.1f}",
        megabytes(point.peak_bytes),
    )

"""Programs of common brokers: what they copy and prove, against every plan of tiny clusters, and on larger ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress, product

import numpy as np
import pytest
from brute_force import as_plan, moved, options, which_keep
from clusters import balance_of, no_racks, spec_of

from planner.model.build_problem import build
from planner.model.cluster import Broker
from planner.model.document_fields import LeaderRacksRow, PlacementRuleRow
from planner.model.problem import Problem, led_by_several
from planner.model.spec import Changes, Spec, TopicFilter
from planner.plan import bound_json
from planner.scoring import independent_check
from planner.scoring.score import ScoringBasis, score
from planner.scoring.windows import windows
from planner.strategies import work_limits
from planner.strategies.flow.placement_network import Layout, lay_out
from planner.strategies.lagrangian_bound import lower_bound
from planner.strategies.load_windows import common_leader_program
from planner.strategies.load_windows.attempts_at_prices import facts_of
from planner.strategies.load_windows.byte_loads import byte_loads
from planner.strategies.load_windows.common_leader_program import CommonLeaderProgram, slots_of, with_slots
from planner.strategies.load_windows.lp_relaxation import Fits
from planner.strategies.optimum import Proposal, solve

NAMES = ("orders", "clicks")


def tiny(rng: np.random.Generator) -> Spec:
    """Two topics of one or two partitions with two replicas, on four or five brokers of one to three racks."""
    racks = {broker: "abc"[broker % int(rng.integers(1, 4))] for broker in range(1, int(rng.integers(5, 7)))}
    count, disk = int(rng.integers(1, 3)), ("none", "30%", "60%")[int(rng.integers(3))]
    lists = {name: [rng.choice(list(racks), 2, replace=False).tolist() for _ in range(count)] for name in NAMES}
    sizes = {name: rng.integers(1, 50, count).tolist() for name in NAMES}
    spread = int(rng.integers(1, 3))
    return spec_of(
        racks, lists, sizes=sizes, together=(NAMES,), balance=balance_of(spread, "none", "none", "none", disk)
    )


def uneven(seed: int, **of_spec: object) -> Spec:
    """Nine brokers in three racks with 60 partitions of unlike sizes; two of the five topics are led together."""
    rng = np.random.default_rng(seed)
    racks: dict[int, str | None] = {broker: "abc"[broker % 3] for broker in range(1, 10)}
    lists = {
        name: [[int(rng.integers(3)) * 3 + 1 + (at + of) % 3 for of in range(3)] for at in range(12)]
        for name in (*NAMES, "users", "events", "logs")
    }
    sizes = {name: (rng.lognormal(10, 1) * rng.uniform(0.5, 1.5, 12)).astype(int).tolist() for name in lists}
    balance = balance_of(1, 1, 1, "none", "10%")
    return spec_of(racks, lists, sizes=sizes, together=(NAMES,), **{"balance": balance, **of_spec})


def planned(spec: Spec) -> tuple[Problem, Proposal, int]:
    """The plan of a spec, which is checked to keep the rule and every target, and what it copies."""
    problem = build(spec)
    solution = solve(problem, problem.balance, certify=True)
    assert () == independent_check.check(problem, solution.assignment)
    assert not led_by_several(problem, solution.assignment).any()
    scores = score(ScoringBasis.of(problem), solution.assignment)
    return problem, solution, int(scores.bytes_moved[0]) if not scores.excess[0] else -1


def program_of(spec: Spec, *, asked: bool = True) -> tuple[Layout, CommonLeaderProgram | None]:
    """The layout of a spec, and its program."""
    problem = build(spec)
    layout, wanted = lay_out(problem, 0, 1024), windows(problem, problem.balance)
    loads = byte_loads(problem, layout, wanted)
    return layout, CommonLeaderProgram.of(problem, layout, wanted, loads, exactly=asked)


@pytest.mark.parametrize(
    "cases", [15, pytest.param(150, marks=pytest.mark.slow), pytest.param(3000, marks=pytest.mark.long)]
)
def test_no_plan_within_the_targets_copies_less(cases: int) -> None:
    """Against all plans with common brokers: no bound is above the least, and nearly every plan copies the least."""
    rng, found = np.random.default_rng(17), []
    for _ in range(cases):
        spec = tiny(rng)
        problem, solution, copied = planned(spec)
        choices = options(problem)
        slots = [np.flatnonzero(problem.slot_of == slot).tolist() for slot in set(problem.slot_of.tolist())]
        within = compress(
            product(*choices), which_keep(problem, windows(problem, problem.balance), choices, problem.balance)
        )
        every = [plan for plan in within if all(set.intersection(*(set(plan[row]) for row in rows)) for rows in slots)]
        if every and copied >= 0:
            best = min(moved(problem, plan)[0] for plan in every)
            assert solution.least_bytes <= best <= copied, spec
            found.append((copied == best, solution.least_bytes == copied))
    optimal, proven = np.mean(found, axis=0)
    assert optimal >= 0.98
    assert proven >= 0.7


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of_topics", ["none", pytest.param(1, marks=pytest.mark.slow)])
def test_targets_of_bytes_are_met_close_to_the_bound(
    seed: int, of_topics: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 60 partitions the plan copies less than without programs, its bound is higher, and it can be read back."""
    spec = uneven(seed, balance=balance_of(1, 1, 1, of_topics, "10%"))
    _, solution, copied = planned(spec)
    assert solution.certificate is not None
    assert solution.certificate.facts.together is not None
    assert 0 <= copied - solution.least_bytes <= (0.05 if of_topics == "none" else 0.1) * copied
    again = bound_json.from_document(bound_json.to_document(solution.certificate))
    assert lower_bound(again) == solution.least_bytes
    monkeypatch.setattr(common_leader_program, "TOGETHER_COLUMNS", (0, 0))
    _, other, more = planned(spec)
    assert more < 0 or copied < more
    assert other.least_bytes <= solution.least_bytes


@pytest.mark.parametrize("simplex", [pytest.param(0, marks=pytest.mark.slow), 100_000])
def test_what_the_linear_program_splits_is_decided_alone(simplex: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On clusters too large to decide everything, by either method, the plan is somewhat further from the bound."""
    monkeypatch.setattr(common_leader_program, "TOGETHER_WHOLE", (0, 0))
    monkeypatch.setattr(common_leader_program, "TOGETHER_SIMPLEX_COLUMNS", simplex)
    _, solution, copied = planned(uneven(1))
    assert 0 <= copied - solution.least_bytes <= 0.15 * copied


def test_a_bound_that_takes_too_long_does_not_know_of_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, the bound is that of plans without the rule; a lower limit is for ranks of leaders."""
    spec = uneven(1, changes=Changes(demote_brokers=(1,), rebalance="all"))
    problem = build(spec)
    layout = lay_out(problem, 0, 1024)
    about = facts_of(problem, layout, byte_loads(problem, layout, windows(problem, problem.balance)))
    tries = 24 * 9**2
    known = []
    for most in (20 * tries, 20 * tries - 1, tries - 1):
        monkeypatch.setattr(common_leader_program, "TOGETHER_CELLS", most)
        found = with_slots(problem, layout, about)
        known.append((found.together is not None, found.leader_ranks is not None))
    assert [(True, True), (True, False), (False, False)] == known
    assert planned(spec)[1].least_bytes >= 0


def test_the_bound_knows_who_may_lead() -> None:
    """Broker 1 has both partitions and is to be demoted: one replica has to move for a common broker that may lead."""
    lists = {"orders": [(1, 2)], "clicks": [(1, 3)]}
    changes = Changes(demote_brokers=(1,), rebalance="none")
    sizes = {"orders": [7], "clicks": [5]}
    problem, solution, _ = planned(
        spec_of(no_racks(1, 2, 3, 4), lists, sizes=sizes, together=(NAMES,), changes=changes)
    )
    assert moved(problem, as_plan(solution.assignment))[0] == solution.least_bytes == 5


def test_rows_alone_in_their_slot_are_in_none() -> None:
    """If one topic may not move, its partitions aren't in the layout, and the other's partitions share no slot."""
    spec = uneven(1, topics=TopicFilter(exclude=("clicks",)))
    layout, program = program_of(spec)
    assert {-1} == set(slots_of(build(spec), layout).tolist())
    assert program is None
    layout, program = program_of(uneven(1))
    assert [-1] * 36 + sorted([*range(12)] * 2) == sorted(slots_of(build(uneven(1)), layout).tolist())
    assert program is not None


def test_a_slot_stays_where_a_third_topic_that_may_not_move_is_led() -> None:
    """The broker that leads the excluded topic's partition leads the two others."""
    lists = {"orders": [(1, 2)], "clicks": [(2, 3)], "users": [(3, 1)]}
    spec = spec_of(
        no_racks(1, 2, 3, 4),
        lists,
        together=((*NAMES, "users"),),
        topics=TopicFilter(exclude=("users",)),
        balance=balance_of("none", "none", "none"),
    )
    problem, solution, copied = planned(spec)
    assert {2} == set(solution.assignment[:, 0].tolist())
    assert copied == problem.size_bytes[list(problem.topic_names).index("orders")]


def test_common_brokers_keep_rules_on_leaders_and_placement() -> None:
    """The common broker is one that may lead: none that is to be demoted, is down or that a topic may not use."""
    lists = {"orders": [(1, 2), (1, 2)], "clicks": [(1, 3), (1, 3)]}
    spec = spec_of(no_racks(1, 2, 3, 4), lists, together=(NAMES,), balance=balance_of("none", "none", "none"))
    demoted = replace(spec, changes=Changes(demote_brokers=(1,), rebalance="all"))
    sets = (PlacementRuleRow("clicks", "set", (1, 3, 4), exclusive=False),)
    for each in (demoted, replace(demoted, placement=sets)):
        _, solution, _ = planned(each)
        assert 0 not in solution.assignment[:, 0].tolist()


def test_no_replica_moves_to_get_a_common_broker_into_a_preferred_rack() -> None:
    """Without a replica in rack a, partitions are led elsewhere: the smallest moves; with one, that rack's leads."""
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    lists = {"orders": [(2,), (1, 2)], "clicks": [(3,), (3, 2)]}
    spec = spec_of(
        racks,
        lists,
        sizes={"orders": [10, 10], "clicks": [1, 2]},
        together=(NAMES,),
        leader_racks=(LeaderRacksRow("*", ("a",)),),
        balance=balance_of("none", "none", "none"),
    )
    _, solution, copied = planned(spec)
    assert 1 + 2 == copied
    leaders = [racks[broker + 1] for broker in solution.assignment[:, 0].tolist()]
    assert ["b", "a", "b", "a"] == leaders


def test_no_program_where_only_what_must_moves_or_for_other_balances_of_large_clusters() -> None:
    """Other balances than the one asked for get programs of fewer columns; `rebalance: none` and new brokers' none."""
    assert program_of(uneven(1, changes=Changes(rebalance="none")))[1] is None
    assert program_of(uneven(1, changes=Changes(add_brokers=(Broker(20, "a"),))))[1] is not None
    most = work_limits.TOGETHER_COLUMNS
    assert most[1] < most[0]
    assert program_of(uneven(1), asked=False)[1] is not None


def test_targets_that_no_placement_meets_have_no_prices() -> None:
    """One broker would lead six partitions, where three are the most; and a program may have no solution at all."""
    lists = {f"t{at}": [(1 + at % 3, 1 + (at + 1) % 3)] for at in range(6)}
    layout, program = program_of(spec_of(no_racks(1, 2, 3), lists, together=(("t*",),), balance=balance_of()))
    assert program is not None
    wanted = windows(program.problem, program.problem.balance)
    fits = Fits.of(layout, wanted, byte_loads(program.problem, layout, wanted))
    assert program.cheapest() is None
    assert program.prices(fits) is not None
    none = replace(program, program=replace(program.program, most=np.zeros_like(program.program.most)))
    assert none.prices(fits) is None


def test_a_program_that_takes_too_many_steps_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No prices and no placement: common brokers are then chosen one after the other."""
    monkeypatch.setattr(common_leader_program, "TOGETHER_WHOLE", (0, 0))
    monkeypatch.setattr(common_leader_program, "TOGETHER_STEPS", 0)
    spec = uneven(1)
    layout, program = program_of(spec)
    assert program is not None
    wanted = windows(program.problem, program.problem.balance)
    assert program.prices(Fits.of(layout, wanted, byte_loads(program.problem, layout, wanted))) is None
    assert program.cheapest() is None
    assert planned(spec)[1].certificate is not None

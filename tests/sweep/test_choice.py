"""The row that each rule chooses from tables made by hand, and the error if no row keeps a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from clusters import no_racks, spec_of

from planner.model.build_problem import build
from planner.model.document_fields import SpecLimits
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.spec import AIMS, Budget, Choice, Rebalance, Spec, Sweep
from planner.strategies.optimum import UNKNOWN
from planner.sweep.budget_steps import TERMS
from planner.sweep.candidates import PART, candidates
from planner.sweep.choice import BASE, Swept, choose, rule_of, rule_text
from planner.sweep.evaluate import run
from planner.sweep.sweep_result import SCORE_COLUMNS, SCORE_SCHEMA, result

NUMBERS = dict.fromkeys(SCORE_COLUMNS, 0)
WORDS = {name: "none" for name, kind in zip(SCORE_SCHEMA.names, SCORE_SCHEMA.types, strict=True) if kind == pa.string()}


def spec(rule: Choice | None = None, budget: Budget | None = None, aims: tuple[str, ...] = AIMS) -> Spec:
    """Any spec with a rule and a budget."""
    made = spec_of(no_racks(1, 2), {"x": [(1,), (2,)]}, sizes=10)
    return replace(made, sweep=Sweep(choice=rule or Choice(), aims=aims), budget=budget or Budget())


def plan(moved: int = 0, imbalance: int = 0, **rest: int | str) -> Mapping[str, Any]:
    """A proven row of the optimum with these bytes moved, and this imbalance in ppm."""
    return {"strategy": "optimum", "bytes_moved": moved, "imbalance_ppm": imbalance, **rest}


def swept(asked: Spec, *rows: Mapping[str, Any], name: str = BASE) -> Swept:
    """An alternative with these rows, numbered in order."""
    filled = [
        {**dict.fromkeys(SCORE_SCHEMA.names, -1), **NUMBERS, **WORDS, **row, "candidate": at}
        for at, row in enumerate(rows)
    ]
    problem = build(asked)
    return Swept(name, asked, problem, result(problem, pa.Table.from_pylist(filled, schema=SCORE_SCHEMA)))


def taken(asked: Spec, *rows: Mapping[str, Any]) -> int:
    """The number of the row that is chosen."""
    return int(choose([swept(asked, *rows)]).row["candidate"])


def test_as_asked() -> None:
    """Valid rows first, then proven ones, least excess, fewest bytes; a more even row doesn't win before those."""
    rows = [plan(9, 5), plan(8, 9), plan(1, 0, violations=1), plan(1, 0, excess=1), plan(1, 0, unproven=1)]
    assert 1 == taken(spec(), *rows)


def test_aims_settle_what_is_left() -> None:
    """With equal bytes, the aims decide in their order."""
    rows = [plan(8, leaders_changed=2, peak_disk_ppm=1), plan(8, leaders_changed=1, peak_disk_ppm=2)]
    assert [1, 0] == [taken(spec(aims=aims), *rows) for aims in (AIMS, ("peak_disk",))]


def test_a_budget_is_what_asked_means_where_there_is_one() -> None:
    """With any budget, even of nothing, `asked` becomes `within_budget`; other rules stay."""
    assert ["asked", "within_budget", "within_budget"] == [
        rule_of(spec(budget=each)).rule for each in (Budget(), Budget(bytes_moved=0), Budget(leaders_changed=3))
    ]
    fixed = Choice("most_even_within_bytes", 7)
    assert fixed == rule_of(spec(fixed, Budget(bytes_moved=0)))


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(bytes_moved=100), 0),
        (Budget(bytes_moved=99), 2),
        (Budget(replicas_moved=2), 2),
        (Budget(bytes_moved=99, leaders_changed=1), 3),
        (Budget(bytes_moved=900), 1),
    ],
)
def test_the_most_even_within_the_budget(budget: Budget, expected: int) -> None:
    """The plan that was asked for if it is within the budget; else of the others least excess, then the most even."""
    rows = [
        plan(100, 0, replicas_moved=3, leaders_changed=2),
        plan(900, 0, replicas_moved=9, leaders_changed=9, excess=1),
        plan(50, 5, replicas_moved=2, leaders_changed=2, excess=3),
        plan(20, 7, replicas_moved=1, leaders_changed=1, excess=3),
        plan(10, 7, replicas_moved=1, leaders_changed=1, excess=9),
    ]
    assert expected == taken(spec(budget=budget), *rows)


def test_a_part_of_what_was_asked_for_comes_before_plans_that_are_more_even_for_now() -> None:
    """If it spends what the budget limits, and no bound is asked for: a part of a plan has none."""
    part = plan(40, 90, strategy=PART, excess=9, leaders_changed=3, unproven=1, least_bytes=-1)
    rows = [plan(0, 99, strategy="unchanged", excess=9), plan(900), part, plan(50, 5, excess=3)]
    budget = spec(budget=Budget(bytes_moved=60))
    assert [2, 3] == [taken(each, *rows) for each in (budget, replace(budget, limits=SpecLimits(gap_ppm=1)))]
    assert 3 == taken(replace(budget, limits=SpecLimits(gap_ppm=1)), *rows[:2], {**part, "excess": 1}, rows[3])
    assert 3 == taken(budget, *rows[:2], {**part, "bytes_moved": 0}, rows[3])
    assert choose([swept(budget, *rows)]).reason.startswith("the part of the whole change that the budget pays for: ")


def test_rules_of_bytes_and_of_evenness() -> None:
    """The most even row within some bytes, the fewest bytes within some imbalance, exact to a byte and a millionth."""
    rows = [plan(100, 0), plan(50, 5), plan(20, 7), plan(21, 7)]
    assert [1, 2] == [taken(spec(Choice("most_even_within_bytes", most)), *rows) for most in (50, 49)]
    assert [1, 2] == [taken(spec(Choice("fewest_bytes_within_imbalance", most)), *rows) for most in (6, 7)]


def test_fewest_bytes_without_sizes_are_the_fewest_replicas() -> None:
    """Without sizes the fewest replicas are chosen, whatever the excess, and the sentence says replicas."""
    asked = spec(Choice("fewest_bytes_within_imbalance", 600_000))
    unsized = replace(asked, cluster=replace(asked.cluster, sizes_known=False))
    rows = [
        plan(0, 500_000, replicas_moved=2, excess=9, unproven=1),
        plan(0, 0, replicas_moved=4),
        plan(0, 700_000, excess=12),
    ]
    assert 0 == taken(unsized, *rows)
    assert "the fewest replicas with no broker more than 60 % above its share: 2 replicas, no broker is more than" in (
        choose([swept(unsized, *rows)]).reason
    )


def test_what_has_no_proof_is_taken_from_the_front_alone() -> None:
    """A placement of Kafka's without a proof is chosen only if no proven plan beats it."""
    kafka = {"strategy": "kafka_classic", "least_bytes": UNKNOWN, "unproven": 1}
    rule = spec(Choice("most_even_within_bytes", 60))
    assert 1 == taken(rule, plan(50, 5), plan(60, 4, **kafka))
    assert 0 == taken(rule, plan(50, 5), plan(60, 5, **kafka))
    assert 0 == taken(spec(budget=Budget(bytes_moved=60)), plan(50, 5, excess=3), plan(60, 5, **kafka))


@pytest.mark.parametrize(("rebalance", "expected"), [("all", 1), ("leaders", 0), ("racks", 0), ("none", 0)])
def test_what_moves_more_than_it_must_is_chosen_only_if_all_may_move(rebalance: Rebalance, expected: int) -> None:
    """Kafka's placements also move replicas that can stay, so without `rebalance: all` none of them is chosen."""
    asked = spec(Choice("most_even_within_bytes", 60))
    asked = replace(asked, changes=replace(asked.changes, rebalance=rebalance))
    assert expected == taken(asked, plan(50, 5), plan(60, 4, strategy="round_robin", least_bytes=UNKNOWN, unproven=1))


def test_changes_comes_first_and_variants_are_beside_it() -> None:
    """`asked` takes the plan of changes, however cheap a variant is; other rules compare all alternatives."""
    dear, cheap = [plan(100, 9)], [plan(1, 0)]
    both = [swept(spec(), *dear), swept(spec(), *cheap, name="b")]
    of_all = spec(Choice("most_even_within_bytes", 1000))
    rule = [swept(of_all, *dear), swept(of_all, *cheap, name="b")]
    assert [0, 1] == [choose(both).row_index, choose(rule).row_index]
    assert "its variants are for comparison" in choose(both).reason
    assert "of 2 alternatives" in choose(rule).reason
    assert 1 == choose([swept(spec(), *dear, name="a"), swept(spec(), *cheap, name="b")]).row_index


def test_of_variants_the_nearest_to_the_targets_is_chosen() -> None:
    """Without `changes`, the variant that misses the targets least is chosen, then the cheapest; the reason says so."""
    near, cheap = plan(100, excess=1), plan(1, excess=2)
    found = choose([swept(spec(), cheap, name="a"), swept(spec(), near, name="b")])
    assert (1, "the nearest of 2 alternatives to the balance asked for: copies 100 B") == (
        found.row_index,
        found.reason,
    )
    found = choose([swept(spec(), near, name="a"), swept(spec(), {**cheap, "excess": 1}, name="b")])
    assert (1, "the fewest bytes at the balance asked for: 1 B of 2 alternatives") == (found.row_index, found.reason)


def test_equal_alternatives_are_told_apart_by_their_order() -> None:
    """If alternatives are equal, the first one in the file is chosen."""
    assert 0 == choose([swept(spec(), plan(5), name="a"), swept(spec(), plan(5), name="b")]).row_index


def test_why_says_the_numbers() -> None:
    """The reason has the bytes, or replicas without sizes, and how full the fullest broker is."""
    row = plan(50, 20_000, replicas_moved=3)
    rules = (None, Choice("most_even_within_bytes", 60), Choice("fewest_bytes_within_imbalance", 30_000))
    assert [
        "the fewest bytes at the balance asked for: 50 B",
        "the most even plan tried that copies at most 60 B (sweep.choose): copies 50 B, "
        "no broker is more than 2 % above its share of replicas (by capacity, racks ignored)",
        "the fewest bytes with no broker more than 3 % above its share: 50 B, "
        "no broker is more than 2 % above its share of replicas (by capacity, racks ignored)",
    ] == [choose([swept(spec(rule), row)]).reason for rule in rules]
    budget = spec(budget=Budget(replicas_moved=3))
    assert (
        "the most even plan tried within the budget: copies 50 B, "
        "no broker is more than 2 % above its share of replicas (by capacity, racks ignored)"
        == (choose([swept(budget, row)]).reason)
    )
    unsized = replace(budget, cluster=replace(budget.cluster, sizes_known=False))
    assert "within the budget: copies 3 replicas, " in choose([swept(unsized, row)]).reason


def test_rules_that_nothing_keeps() -> None:
    """If no row keeps a rule, the error has the key, the value and the minimum: exit code 3."""
    with pytest.raises(UnsafePlanError, match=r"most_even_within_bytes: 5 B is below .*; allowed: at least 20 B"):
        choose([swept(spec(Choice("most_even_within_bytes", 5)), plan(50, 1), plan(20, 2))])
    with pytest.raises(UnsafePlanError, match=r"imbalance: 1 % is below .*; allowed: at least 2.0001%"):
        choose([swept(spec(Choice("fewest_bytes_within_imbalance", 10_000)), plan(50, 20_001), plan(20, 30_000))])


def test_a_budget_holds_whatever_the_rule() -> None:
    """Other rules choose among the plans within the budget; if there are none, the error is about the budget."""
    rows = [plan(100, 0, replicas_moved=9), plan(50, 5, replicas_moved=4), plan(20, 70_000, replicas_moved=2)]
    budget = Budget(replicas_moved=4)
    assert 1 == taken(spec(Choice("most_even_within_bytes", 100), budget), *rows)
    assert 2 == taken(spec(Choice("fewest_bytes_within_imbalance", 70_000), budget), *rows)
    with pytest.raises(UnsafePlanError, match=r"imbalance: 0 % is below .*; allowed: at least 0.0005%"):
        choose([swept(spec(Choice("fewest_bytes_within_imbalance", 0), budget), *rows)])
    with pytest.raises(UnsafePlanError, match=r"budget.replicas_moved: in these plans the changes take at least 2"):
        choose([swept(spec(Choice("most_even_within_bytes", 100), Budget(replicas_moved=1)), *rows)])


def test_what_is_allowed_is_not_rounded() -> None:
    """The value in the error isn't rounded, so that a plan keeps it."""
    with pytest.raises(UnsafePlanError, match=r"allowed: at least 2000.1234%"):
        choose([swept(spec(Choice("fewest_bytes_within_imbalance", 1)), plan(50, 20_001_234))])


@pytest.mark.parametrize("order", [("drain", "grow"), ("grow", "drain")])
def test_a_variant_that_the_budget_cannot_pay_for_leaves_the_others(order: tuple[str, str]) -> None:
    """With variants only, one that the budget can't pay for loses, wherever it is in the file."""
    asked, rows = spec(budget=Budget(bytes_moved=5)), {"drain": [plan(10)], "grow": [plan(0, 9)]}
    chosen = choose([swept(asked, *rows[name], name=name) for name in order])
    assert ("grow", 0) == (order[chosen.row_index], chosen.row["bytes_moved"])
    assert "no plan within the budget" == chosen.best[order.index("drain")].why_not


def test_a_budget_that_no_alternative_keeps_within() -> None:
    """The error has the least that any valid alternative takes, with its name; invalid ones don't count."""
    asked = spec(budget=Budget(bytes_moved=5, leaders_changed=1))
    rows = {"a": plan(9, leaders_changed=3), "b": plan(7, leaders_changed=4), "c": plan(1, violations=1)}
    with pytest.raises(UnsafePlanError) as refused:
        choose([swept(asked, row, name=name) for name, row in rows.items()])
    assert [
        "nothing was written: none of 3 candidates is within the budget; raise it:",
        "budget.bytes_moved: in these plans the alternatives take at least 7 B (b); the budget allows 5 B",
        "budget.leaders_changed: in these plans the alternatives take at least 3 (a); the budget allows 1",
    ] == str(refused.value).splitlines()
    with pytest.raises(UnsafePlanError, match=r"take at least 9 B; the budget allows 5 B"):
        choose([swept(asked, rows["a"]), swept(asked, plan(0), name="b")])
    broken = [swept(asked, rows["c"], name=name) for name in ("a", "b")]
    assert 0 == choose(broken).row_index


def test_a_term_that_is_within_the_budget_need_not_be_raised() -> None:
    """Only the terms that every plan exceeds are named, or all if each is kept by some plan, but not by the same."""
    asked, said = spec(budget=Budget(bytes_moved=5, leaders_changed=1)), []
    for least in (5, 6):
        with pytest.raises(UnsafePlanError) as refused:
            choose([swept(asked, plan(9), name="a"), swept(asked, plan(least, leaders_changed=3), name="b")])
        said.append([line.split(":")[0] for line in str(refused.value).splitlines()[1:]])
    assert [["budget.bytes_moved", "budget.leaders_changed"], ["budget.bytes_moved"]] == said


def test_another_rule_asks_all_alternatives_what_the_budget_takes() -> None:
    """Even if the first alternative has no valid plan, the error says what the others take."""
    asked = spec(Choice("most_even_within_bytes", 100), Budget(replicas_moved=1))
    tried = [swept(asked, plan(violations=1)), swept(asked, plan(9, replicas_moved=3), name="b")]
    with pytest.raises(UnsafePlanError, match=r"the alternatives take at least 3 \(b\); the budget allows 1"):
        choose(tried)


def test_no_valid_plan_of_changes() -> None:
    """If changes has no valid plan, the error names variants that have one; if none has one, the best row is kept."""
    broken, sound = [plan(violations=1)], [plan(1)]
    with pytest.raises(InfeasibleError, match="variants that have a valid plan: b;"):
        choose([swept(spec(), *broken), swept(spec(), *sound, name="b")])
    chosen = choose([swept(spec(), *broken)])
    assert [(0, "no candidate keeps every rule")] == [(chosen.row_index, each.why_not) for each in chosen.best]
    rule = spec(Choice("most_even_within_bytes", 1000))
    assert 0 == choose([swept(rule, *broken), swept(rule, *broken, name="b")]).row_index


def test_the_rule_in_words() -> None:
    """The rule's words have every aim once, in the order of use."""
    text = rule_text(("makespan",))
    assert (
        "bytes copied, bytes of the busiest broker, leaders changed, partitions touched, unevenness of copying, cross-"
        in text
    )
    assert {"bytes_moved", "replicas_moved", "leaders_changed"} == set(TERMS)


def test_doing_nothing_is_no_plan_where_caps_cant_be_kept() -> None:
    """If doing nothing is valid and no solved plan keeps a cap on leaders, there is an error."""
    capped = spec()
    brokers = tuple(replace(broker, max_leaders=2) for broker in capped.cluster.brokers)
    capped = replace(capped, cluster=replace(capped.cluster, brokers=brokers))
    with pytest.raises(InfeasibleError, match="no plan was found that keeps max_leaders"):
        choose([swept(capped, plan(strategy="unchanged"), plan(9, violations=3))])


def test_the_third_broker_leads_what_two_may_not() -> None:
    """A cap on leaders alone is kept like one on replicas too: two brokers get two of twelve each."""
    spec = spec_of(no_racks(1, 2, 3), {"t": [(1,)] * 12})
    for caps in ({"max_leaders": 2}, {"max_leaders": 2, "max_replicas": 2}):
        few = tuple(replace(broker, **caps) if broker.id > 1 else broker for broker in spec.cluster.brokers)
        problem = build(capped := replace(spec, cluster=replace(spec.cluster, brokers=few)))
        tried = [Swept(BASE, capped, problem, run(problem, candidates(problem, Sweep(candidates=30))))]
        assert 8 == choose(tried).row["replicas_max"]

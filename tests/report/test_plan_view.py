"""The sections of the reports: the same order in all of them, and no section without content."""

from __future__ import annotations

from plan_documents import Document, document, typed
from report_documents import small, with_alternatives

from planner.report import plan_view, plot_movement, terminal
from planner.report.view import Facts, Lines, Table


def test_sections_stand_in_the_order_of_reading() -> None:
    """What was asked for and what is wrong come first; the plots' numbers are there only if they are asked for."""
    plan = typed(small())
    without = [section.name for section in plan_view.sections(plan)]
    every = [section.name for section in plan_view.sections(plan, plot_movement.movement(plan))]

    assert [
        "facts",
        "warnings",
        "gates",
        "risks",
        "commands",
        "racks",
        "brokers",
        "batches",
        "front",
        "others",
        "every-term",
        "found",
    ] == without
    assert ["movement", "held"] == [name for name in every if name not in without]


def test_nothing_to_show_is_no_section() -> None:
    """Without moves, front or warnings there are no sections for them."""
    plan = typed(document([]))
    found = plan_view.sections(plan, plot_movement.movement(plan))

    assert not {"warnings", "movement", "held", "front"} & {section.name for section in found}
    assert all(section.blocks for section in found)


def test_the_rollback_copies_back_only_what_the_plan_removes() -> None:
    """The rollback copies back only replicas that the plan removes; a plan that only reorders removes none."""

    def rollback(plan: Document) -> str:
        section = next(each for each in plan_view.sections(typed(plan)) if each.name == "commands")
        (lines,) = section.blocks
        assert isinstance(lines, Lines)
        return terminal.line(lines.lines[-1])

    plan = small()
    assert rollback(plan).endswith("old replica list and leader; it copies 24.0 GB (2 replicas) at most.")
    reordered = [{**row, "replicas": row["replicas_before"][::-1]} for row in plan["partitions"]]
    assert rollback(plan | {"partitions": reordered}).endswith("old replica list and leader; it copies nothing.")


def test_what_only_some_plans_have() -> None:
    """Variants and scenarios have sections if the plan has them."""
    found = {section.name: section for section in plan_view.sections(typed(with_alternatives()))}

    assert isinstance(found["variants-and-plans"].blocks[0], Table)
    (scenarios,) = found["scenarios"].blocks
    assert isinstance(scenarios, Lines)
    assert 2 == len(scenarios.lines)


def test_facts_without_an_answer_are_left_out() -> None:
    """A fact without a value is left out, for example defaults if the YAML states everything."""
    (facts,) = plan_view.sections(typed(small()))[-1].blocks
    assert isinstance(facts, Facts)

    assert ["Chosen", "Proof of the least", "Searched", "The winner"] == [label for label, _ in facts.facts]

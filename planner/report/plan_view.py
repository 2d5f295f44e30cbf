"""plan.json → the sections that report.md and report.html show; the terminal takes the same tables in its own order."""

from __future__ import annotations

from planner.model import formats
from planner.plan import headline
from planner.plan.bound_file import LONGEST_PROOF
from planner.plan.document.plan_types import Plan
from planner.report import choice_tables, cluster_tables, sentences, verdict
from planner.report.plot_values import Movement
from planner.report.view import Facts, Joined, Lines, Name, Section, Sentence, Value, told

# Where everything is that the plan's screens and reports leave out.
SOURCE = "plan.json"
_LONGEST_FACT = 1_000
_NEW_PARTITIONS = (
    "They are made before anything is reassigned, and copy no data. ",
    " and the rollback playbook leave them: Kafka can't take partitions away, and deleting a topic deletes its data.",
)


def sections(plan: Plan, moved: Movement | None = None) -> tuple[Section, ...]:
    """Every section but topics and partitions, in reading order; none that has nothing to show.

    With `moved`, the numbers of plots, also who sends what to whom when.
    """
    new = (Lines((Joined((_NEW_PARTITIONS[0], Name("rollback.json"), _NEW_PARTITIONS[1])),), bulleted=False),)
    every = (
        Section("In short", (_facts(plan),), "facts"),
        Section("Warnings", told(Lines(plan.warnings, "warning")), "warnings"),
        Section("Limits and balance", told(choice_tables.limits(plan), choice_tables.relaxed(plan)), "gates"),
        Section("Risks", told(Lines(tuple(verdict.risks(plan)), "risk")), "risks"),
        Section("Racks", told(cluster_tables.racks(plan)), "racks", plot="racks"),
        Section("Brokers", told(cluster_tables.brokers(plan)), "brokers", plot="brokers"),
        *_movement(plan, moved),
        Section("Pareto front", told(choice_tables.front(plan)), "front", plot="front"),
        Section("Variants", told(choice_tables.variants(plan)), "variants-and-plans"),
        Section("In the scenarios", told(_scenarios(plan)), "scenarios"),
        Section(
            "New partitions",
            told(
                cluster_tables.new_partitions(plan),
                *(new if plan.new_topics else ()),
                choice_tables.placed_new(plan),
                cluster_tables.new_lists(plan),
            ),
            "new",
        ),
        Section("Log dirs", told(cluster_tables.log_dirs(plan), cluster_tables.log_dir_moves(plan)), "of-log-dirs"),
        Section(
            "Every term, and the alternatives",
            told(choice_tables.terms(plan), choice_tables.compared(plan)),
            "terms-and-alternatives",
        ),
    )
    return tuple(section for section in every if section.blocks)


def _movement(plan: Plan, moved: Movement | None) -> tuple[Section, ...]:
    """The batches, and where anything is copied who sends what to whom when."""
    batches = told(cluster_tables.batches(plan))
    if moved is None or not moved.copied.any():
        return (Section("Batches", batches, "batches"),)
    return (
        Section("Movement", told(cluster_tables.copied_pairs(plan, moved)), "movement", plot="movement"),
        Section("Batches", (*batches, cluster_tables.copies(plan, moved)), "batches", plot="batches"),
        Section("Disk meanwhile", told(cluster_tables.held(plan, moved)), "held", plot="held"),
    )


def _scenarios(plan: Plan) -> Lines:
    return Lines(tuple(map(sentences.scenario, plan.scenarios)), "scenario")


def _facts(plan: Plan) -> Facts:
    """What was asked for and how the plan was found, a label and a sentence each."""
    derived = sentences.derived_why(plan)
    of_proof = "Proof, of this step alone" if headline.first_step(plan) else "Proof of the least"
    every: tuple[tuple[str, Value], ...] = (
        ("Asked for", Sentence(sentences.wishes(plan.changes), 600)),
        ("Partitions by reason", sentences.reasons(plan)),
        ("How even", verdict.evenness(plan)),
        ("Runs in", sentences.pace(plan)),
        ("By default, as the YAML doesn't say", Sentence(derived, _LONGEST_FACT) if derived else ""),
        ("Chosen", headline.chosen(plan)),
        (of_proof, Sentence(plan.bound.proof.rstrip("."), LONGEST_PROOF)),
        ("Searched", sentences.searched(plan)),
        ("The winner", formats.printable(plan.candidates.rule.rstrip("."), _LONGEST_FACT)),
    )
    return Facts(tuple((label, value) for label, value in every if value))

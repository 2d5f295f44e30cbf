"""Plans with batches during which brokers fail, and the rows of a study of failures."""

from __future__ import annotations

from planner.execution import batch_costs_and_risks, batch_cutting
from planner.execution.partition_changes import changes
from planner.model.build_problem import brokers_after, build
from planner.model.spec import BatchRules
from planner.plan.cluster_sections import batch_rows
from planner.sweep.candidates import STRATEGIES, Candidate
from planner.whatif import failure_simulation

NO_LIMITS = BatchRules()


def planned(spec, rules=NO_LIMITS):
    """A spec's problem, and the batches of its optimum."""
    problem = build(spec)
    assignment = STRATEGIES["optimum"](problem, Candidate("optimum", balance=problem.balance)).assignment
    racks = {broker.id: broker.rack for broker in brokers_after(spec) if broker.rack is not None}
    split = batch_cutting.split(changes(problem, assignment), rules, racks)
    held = dict.fromkeys(problem.broker_ids.tolist(), 0)
    return problem, batch_rows(batch_costs_and_risks.costs(split, None, held, {}, False))


def rows_of(spec, problem, steps, kinds, most=1000):
    """The rows of a study by (kind, failed, state)."""
    wanted = failure_simulation.all_scenarios(problem, kinds, most, 0)
    asked = failure_simulation.questions(failure_simulation.study(spec, problem, steps, wanted), wanted)
    table = failure_simulation.join_rows(each() for each in asked)
    return {(row["of"], row["failed"], row["state"]): row for row in table.to_pylist()}

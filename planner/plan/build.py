"""Builds the plan document. All output for people and tools is rendered from it.

`planned` builds it from the alternatives of a spec and the results of their sweeps. Its id is the SHA-256 of its own
canonical JSON, so that any change shows.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from planner import __version__
from planner.execution import (
    batch_costs_and_risks,
    batch_cutting,
    limits_and_safety,
    log_dir_placement,
    throttle_and_batch_defaults,
)
from planner.execution.batch_costs_and_risks import Costs
from planner.execution.limits_and_safety import LimitRow
from planner.execution.partition_changes import changes
from planner.model import amounts
from planner.model.balance import WINDOWS, Balance
from planner.model.build_problem import brokers_after, today
from planner.model.cluster import PartitionChange, keyed_partitions
from planner.model.errors import InfeasibleError, UnsafePlanError
from planner.model.problem import IntArray, Problem
from planner.model.spec import Spec
from planner.plan import (
    bound_json,
    bound_section,
    budget_section,
    cluster_sections,
    cluster_warnings,
    comparison_sections,
    headline,
    log_dirs_section,
    new_partitions_section,
    score_terms,
    traffic_sections,
)
from planner.plan.document import codec
from planner.plan.document.cluster_types import BrokerRow, ClusterSection
from planner.plan.document.comparison_types import BalanceSection, BalanceWindows, BoundSection, ScenarioRow, TermRow
from planner.plan.document.partition_types import ExecutionSection
from planner.plan.document.plan_types import Plan
from planner.plan.document.request_types import SpecSection, SpecTopics, ValiditySection
from planner.scoring import growth_scenarios, independent_check
from planner.scoring.broker_loads import MEASURES, leaders_after, on_all_brokers
from planner.scoring.missed_targets import relaxed_of_mode, unlike_shares
from planner.scoring.score import digest
from planner.strategies.optimum import Proposal
from planner.sweep import apart_sides, choice
from planner.sweep.candidates import STRATEGIES, of_row, prove
from planner.sweep.choice import Chosen, Row, Swept
from planner.sweep.evaluate import planned_for


class RefusedPlanError(UnsafePlanError):
    """The plan crosses a limit or isn't safe. The error carries it, so that people see it; nothing is written."""

    def __init__(self, plan: Plan, *lines: str) -> None:
        super().__init__(*lines)
        self.plan = plan


class Planned(NamedTuple):
    """A plan, and the file that proves its bound; None without a proof."""

    plan: Plan
    bound: bytes | None


def planned(sweeps: Sequence[Swept]) -> Planned:
    """The plan that `sweep.choose` picks from all alternatives (at least one), made again and checked again.

    RefusedPlanError if the plan crosses a limit or isn't safe; InfeasibleError if no candidate is valid.
    """
    chosen = choice.choose(sweeps)
    problem, winner = sweeps[chosen.row_index].problem, chosen.row
    known_proposal = sweeps[chosen.row_index].result.proposals.get(winner["candidate"])
    proposal = known_proposal or prove(planned_for(problem, winner["scenarios"]), of_row(winner))
    if digest(proposal.assignment) != winner["digest"]:
        raise AssertionError(f"candidate {winner['candidate']} was made differently the second time")
    if violations := independent_check.check(problem, proposal.assignment):
        STRATEGIES["optimum"](problem, of_row(winner))  # raises with the reason if no plan exists
        raise InfeasibleError("no candidate keeps every rule; the best one breaks:", *map(str, violations))
    return plan_of_choice(sweeps, chosen, proposal)


def plan_of_choice(sweeps: Sequence[Swept], chosen: Chosen, proposal: Proposal) -> Planned:
    """The plan of the chosen row; `proposal` is the row's proposal, already checked.

    RefusedPlanError if it crosses a limit of `limits` or isn't safe (see `limits_and_safety`).
    """
    spec, problem, winner = sweeps[chosen.row_index].spec, sweeps[chosen.row_index].problem, chosen.row
    file = None if proposal.certificate is None else bound_json.encoded(proposal.certificate)
    full = comparison_sections.whole_problem(spec, problem)
    budget = budget_section.section(spec, problem, proposal.assignment, winner)
    # A plan of the front is judged by the windows that it was made for; in scenarios, as in the sweep, by those asked.
    problem = replace(problem, balance=of_row(winner).balance)
    dirs = log_dir_placement.plan(spec, problem, proposal.assignment)
    changed = _with_rates(spec, log_dir_placement.with_log_dirs(changes(problem, proposal.assignment), dirs, problem))
    execution = throttle_and_batch_defaults.with_defaults(spec, problem, proposal.assignment, changed)
    spec = replace(spec, execution=execution, apart=apart_sides.as_planned(spec, problem, winner["scenarios"]))
    sweeps = [replace(each, spec=replace(each.spec, execution=execution)) for each in sweeps]
    costs, leaders = costed(spec, problem, changed), leaders_after(problem, proposal.assignment)
    bound = bound_section.section(spec, problem, winner, proposal, file)
    sections = outcome_sections(spec, problem, proposal.assignment, changed, costs)
    unfinished = budget_section.unfinished(problem, full, proposal.assignment, budget)
    terms = score_terms.terms(spec, replace(full, balance=spec.balance), proposal.assignment, leaders, bool(changed))
    plan = Plan(
        **request_sections(spec),
        complete=unfinished is None,
        unfinished=unfinished,
        **sections,
        balance=_balance(spec, problem, proposal, dirs),
        log_dirs=log_dirs_section.section(dirs),
        hours=traffic_sections.hours(spec, problem, proposal.assignment, sweeps[chosen.row_index].result),
        cross_rack=traffic_sections.cross_rack(spec, problem, proposal.assignment, winner["cross_rack_bytes"]),
        terms=log_dirs_section.with_terms(terms, dirs),
        bound=bound,
        **comparison_sections.sections(sweeps, chosen, proposal),
        budget=budget,
        scenarios=_scenarios(replace(problem, balance=sweeps[chosen.row_index].problem.balance), proposal.assignment),
        limits=limits(spec, winner, terms, costs, bound, sections["brokers"], first_step=unfinished is not None),
        warnings=(
            *log_dirs_section.warnings(dirs),
            *cluster_warnings.warnings(spec, problem, changed),
            *cluster_warnings.of_assignment(spec, problem, proposal.assignment),
            *limits_and_safety.overfull_today(spec, costs),
            *batch_costs_and_risks.warnings(spec, costs.batches),
        ),
    )
    return Planned(within_limits(finish(plan), spec, costs, dirs), file)


def finish(plan: Plan) -> Plan:
    """The plan with its headline and its id, made from all other sections; PlannerError if a value is too large."""
    return codec.identified(structs.replace(plan, headline=headline.first_line(plan)))


def limits(
    spec: Spec,
    winner: Row,
    terms: Sequence[TermRow],
    costs: Costs,
    bound: BoundSection,
    brokers: Sequence[BrokerRow],
    *,
    first_step: bool,
) -> tuple[LimitRow, ...]:
    """The `limits` of plan.json, crossed ones included; UnsafePlanError if one can't be judged.

    `capacity.max_disk` has a row for each of the `brokers` above its cap; if none is, one for the nearest to its cap.
    A `first_step` need not keep these caps yet.
    """
    row = {**winner, **score_terms.failures(terms)}
    rows = limits_and_safety.gates(spec, row, costs, bound.least_bytes_moved, bound.least_replicas_moved)
    # New partitions fill a disk after the last batch, with the sizes that the YAML states.
    fuller = [
        LimitRow("limits.disk_used", spec.limits.on_disk(row.disk_bytes), row.after.size_bytes, row.id)
        for row in brokers
        if row.disk_bytes is not None and spec.cluster.sizes_known and row.after.size_bytes > row.peak_size_bytes
    ]
    if fuller:
        disks = [row for row in rows if row.key == "limits.disk_used"]
        rows = [row for row in rows if row not in disks]
        rows.append(max((*disks, *fuller), key=lambda row: row.value / row.limit))
    caps = [
        LimitRow(key="capacity.max_disk", limit=row.max_disk_bytes, value=row.after.size_bytes, broker=row.id)
        for row in brokers
        if row.max_disk_bytes is not None and row.role != "removed" and not first_step
    ]
    caps.sort(key=lambda row: (-row.value / row.limit, row.broker))
    return (*rows, *([row for row in caps if row.crossed] or caps[:1]))


def within_limits(plan: Plan, spec: Spec, costs: Costs, dirs: log_dir_placement.DirPlan | None = None) -> Plan:
    """The plan, if it crosses no limit and is safe to apply; else RefusedPlanError."""
    lines = limits_and_safety.crossed(plan.limits, spec, costs)
    unsafe = (*limits_and_safety.unsafe(spec, costs), *log_dirs_section.overfull(dirs, costs.batches))
    if not lines and not unsafe:
        return plan
    message = [limits_and_safety.EXCEEDS, *lines] if lines else []
    if unsafe:
        message += [limits_and_safety.ALSO_UNSAFE if lines else limits_and_safety.UNSAFE, *unsafe]
    raise RefusedPlanError(structs.replace(plan, unsafe=unsafe or None), *message)


def _scenarios(problem: Problem, assignment: IntArray) -> tuple[ScenarioRow, ...]:
    """A row for each of `sweep.scenarios`. The busiest hours have none: they are part of the balance asked for."""
    scenarios = [each for each in growth_scenarios.scenarios(problem) if not each.of_hour]
    outside = [(each.name, tuple(growth_scenarios.brokers_outside(each, assignment))) for each in scenarios]
    return tuple(ScenarioRow(name=name, feasible=not rows, outside=rows) for name, rows in outside)


def outcome_sections(
    spec: Spec, problem: Problem, assignment: IntArray, changed: Sequence[PartitionChange], costs: Costs
) -> dict[str, Any]:
    """By name, the sections on the cluster after an assignment (P, W), and on how its changes are carried out.

    `costs` are those of the changes, in batches.
    """
    brokers = cluster_sections.brokers(spec, problem, assignment, costs)
    refused = batch_costs_and_risks.refused_writes(spec, costs.batches)
    return {
        "brokers": brokers,
        "racks": cluster_sections.racks(spec, brokers),
        "topics": cluster_sections.topics(spec, problem, assignment, changed),
        "partitions": cluster_sections.partition_rows(changed),
        "new_partitions": new_partitions_section.section(spec, problem, assignment),
        "risks": structs.replace(refused, out_of_sync=cluster_warnings.out_of_sync(spec, problem, changed) or None),
        "execution": ExecutionSection(
            throttle_bytes_per_sec=spec.execution.throttle_bytes_per_sec,
            seconds_at_throttle=costs.total_seconds,
            kafka_bin_dir=spec.execution.kafka_bin_dir,
            batches=spec.execution.batches,
            derived=spec.execution.derived,
        ),
        "batches": cluster_sections.batch_rows(costs),
    }


def request_sections(spec: Spec) -> dict[str, Any]:
    """By name, the sections on what the plan is made from. `finish` sets the headline and the id."""
    moved_brokers = dict(spec.changes.set_racks)
    return {
        "format_version": codec.FORMAT_VERSION,
        "plan_id": "",
        "planner_version": __version__,
        "headline": "",
        "cluster": ClusterSection(
            name=spec.cluster.name,
            bootstrap_servers=spec.cluster.bootstrap_servers,
            sizes_known=spec.cluster.sizes_known,
            partitions_without_size=spec.cluster.unsized or None,
            config_defaults=dict(spec.cluster.config_defaults) or None,
        ),
        "state": cluster_sections.state(spec.cluster.topics, sizes_known=spec.cluster.sizes_known),
        "inputs": spec.inputs,
        "validity": validity(spec.captured_at, spec.valid_for_seconds),
        "changes": cluster_sections.changes(spec.changes),
        "spec": SpecSection(
            topics=SpecTopics(**asdict(spec.topics) | {"on_brokers": spec.topics.on_brokers or None}),
            survive=spec.resilience,
            aims=spec.sweep.aims,
            limits=spec.limits,
            placement=spec.placement or None,
            leader_racks=spec.leader_racks or None,
            apart=spec.apart or None,
            together=spec.together or None,
            racks_as_today=spec.racks_as_today or None,
            racks_before={str(each.id): each.rack for each in spec.cluster.brokers if each.id in moved_brokers} or None,
            **traffic_sections.spec_fields(spec),
        ),
        "rack_aware": spec.rack_aware,
    }


def validity(captured_at: str | None, valid_for_seconds: int | None) -> ValiditySection | None:
    """The `validity` of plan.json; None if the YAML doesn't say when the state was captured."""
    if captured_at is None:
        return None
    return ValiditySection(
        captured_at=amounts.moment_text(amounts.parse_moment(captured_at)),
        valid_for_seconds=valid_for_seconds,
        valid_until=amounts.valid_until(captured_at, valid_for_seconds),
    )


def _balance(
    spec: Spec, problem: Problem, proposal: Proposal, dirs: log_dir_placement.DirPlan | None
) -> BalanceSection:
    """The windows asked for, those that the plan was made for, and the missed ones: of brokers, then of log dirs."""
    as_asked = over_brokers = relaxed_of_mode(problem, proposal.assignment)
    if problem.balance != spec.balance:
        as_asked = relaxed_of_mode(replace(problem, balance=spec.balance), proposal.assignment)
    return BalanceSection(
        asked=_windows(spec.balance),
        missed=tuple(sorted({each.window for each in as_asked})),
        wanted=_windows(problem.balance),
        relaxed=(*over_brokers, *log_dirs_section.relaxed(dirs)),
        shares=tuple(unlike_shares(problem)) or None,
    )


def _windows(balance: Balance) -> BalanceWindows:
    return BalanceWindows(**{window: str(getattr(balance, window)) for window in WINDOWS})


def _with_rates(spec: Spec, changed: Sequence[PartitionChange]) -> tuple[PartitionChange, ...]:
    """The changes, each with the rate at which producers write to its partition."""
    partitions = keyed_partitions(spec.cluster.topics)
    rates = {key: each.bytes_in_per_sec for key, each in partitions if each.bytes_in_per_sec}
    if not rates:
        return tuple(changed)
    return tuple(replace(each, bytes_in_per_sec=rates.get(each.key, 0)) for each in changed)


def costed(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Costs:
    """The changes cut into batches, with the costs of each; reordered if a disk would get too full."""
    execution, racks = spec.execution, {b.id: b.rack for b in brokers_after(spec) if b.rack is not None}
    measured = on_all_brokers(problem, today(problem), problem.leaders)[MEASURES.index("size_bytes")]
    held_bytes = dict(zip(problem.broker_ids.tolist(), measured.tolist(), strict=True))
    cost = partial(
        batch_costs_and_risks.costs,
        throttle_bytes_per_sec=execution.throttle_bytes_per_sec,
        held_bytes=held_bytes,
        disk_bytes={each.id: each.disk_bytes for each in spec.all_brokers if each.disk_bytes is not None},
        sizes_known=spec.cluster.sizes_known,
    )
    batches = batch_cutting.split(changed, execution.batches, racks)
    costs = cost(batches if execution.throttle_bytes_per_sec is None else batch_cutting.listable(batches))
    if not (spec.cluster.sizes_known and limits_and_safety.filled_above(spec, costs)):
        return costs
    most_bytes = limits_and_safety.most_on_disks(spec, costs.peaks, held_bytes)
    return cost(batch_cutting.within_disks(costs.batches, held_bytes, most_bytes))

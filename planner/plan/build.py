"""The plan document: everything that people and tools see is rendered from it.

`planned` makes it from the alternatives of a spec and the results of their sweeps. Its sections are plain data until
`finished` makes a `Plan` of them, which checks every value; its id is the SHA-256 of its own canonical JSON, so any
change to it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from msgspec import structs

from planner import __version__
from planner.execution import batch_costs, batch_cutting, batch_defaults, failure_risks, gates, log_dir_placement
from planner.execution.batch_costs import Costs
from planner.execution.change_reasons import changes
from planner.model import expiry
from planner.model.balance import Balance
from planner.model.build_problem import brokers_after
from planner.model.errors import InfeasibleError
from planner.model.partition_changes import PartitionChange
from planner.model.problem import Problem
from planner.model.spec import Spec
from planner.plan import (
    bound_file,
    brokers_and_topics,
    budget_spent,
    changed_partitions,
    headline,
    log_dirs_section,
    new_partitions,
    pareto_front,
    state_fingerprint,
    terms,
)
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.scoring import growth_scenarios, independent_check
from planner.scoring.broker_loads import leaders_after
from planner.scoring.missed_windows import Relaxed, relaxed
from planner.scoring.score import ScoringBasis, digest
from planner.strategies.catalog import Proposal, prove
from planner.sweep import choice
from planner.sweep.candidates import KNOBS, of_row
from planner.sweep.evaluate import SweepResult, planned_for
from planner.sweep.variants import BASE, Swept


class Planned(NamedTuple):
    """A plan, and the file that proves its bound where it has one."""

    plan: Plan
    bound: bytes | None

    @property
    def document(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return codec.as_json(self.plan)


def planned(tried: Sequence[Swept]) -> Planned:
    """The plan that `sweep.choose` asks for of all alternatives (at least one), made again and judged again.

    UnsafePlanError where the winner crosses a gate of `limits` or the throttle can't work; InfeasibleError where no
    candidate is valid. Either way there is no plan.
    """
    chosen = choice.choose(tried)
    spec, problem, winner = tried[chosen.at].spec, tried[chosen.at].problem, chosen.row
    candidate = of_row(winner)
    proposal = prove(planned_for(problem, winner["scenarios"]), candidate)
    file = None if proposal.certificate is None else bound_file.encoded(proposal.certificate)
    _judge(problem, winner, proposal)
    asked_for = pareto_front.asked_of(spec, problem)
    of_budget = budget_spent.section(spec, problem, proposal.assignment, winner)
    # A plan of the front is judged by the windows that it was made for.
    problem = replace(problem, balance=candidate.balance)
    dirs = log_dir_placement.plan(spec, problem, proposal.assignment)
    changed = _with_rates(spec, log_dir_placement.told(changes(problem, proposal.assignment), dirs, problem))
    spec = replace(spec, execution=batch_defaults.settled(spec, problem, proposal.assignment, changed))
    tried = [replace(each, spec=replace(each.spec, execution=spec.execution)) for each in tried]
    costs = costed(spec, problem, changed)
    bound = _bound(problem, winner, proposal, file)
    limits = _within_limits(spec, winner, costs, bound)
    body = {
        **asked(spec),
        **budget_spent.unfinished(problem, asked_for, proposal.assignment, of_budget),
        "brokers": brokers_and_topics.brokers(spec, problem, proposal.assignment, costs.peaks),
        "racks": brokers_and_topics.racks(spec, problem, proposal.assignment),
        "topics": brokers_and_topics.topics(spec, problem, proposal.assignment),
        "partitions": changed_partitions.partition_rows(changed),
        "new_partitions": new_partitions.section(spec, problem, proposal.assignment),
        "balance": _balance(spec, problem, proposal, dirs),
        **log_dirs_section.section(dirs),
        "terms": _terms(spec, problem, proposal, dirs),
        "bound": bound,
        **pareto_front.sections(tried, chosen, proposal),
        "budget": of_budget,
        "scenarios": growth_scenarios.documents(problem, proposal.assignment),
        "limits": limits,
        "risks": failure_risks.section(spec, costs.batches),
        "warnings": _warnings(spec, problem, changed, costs, dirs),
        "execution": execution(spec, costs),
        "batches": changed_partitions.batch_rows(costs),
    }
    return Planned(finished(body), file)


def document(spec: Spec, problem: Problem, result: SweepResult) -> dict[str, Any]:
    """The plan document alone, of a spec without variants; see `planned`."""
    return planned([Swept(BASE, spec, problem, result)]).document


def finished(body: dict[str, Any]) -> Plan:
    """A plan with its headline and its id, of all its other sections."""
    plan = codec.made(body)
    return codec.identified(structs.replace(plan, headline=headline.first_line(plan)))


def _judge(problem: Problem, winner: Mapping[str, Any], proposal: Proposal) -> None:
    """The winner as rebuilt is the winner as scored, and the independent check has nothing against it."""
    if digest(proposal.assignment) != winner["digest"]:
        raise AssertionError(f"candidate {winner['candidate']} was made differently the second time")
    violations = independent_check.check(problem, proposal.assignment)
    if violations:
        raise InfeasibleError("no candidate keeps every rule; the best one breaks:", *map(str, violations))


def _within_limits(
    spec: Spec, winner: Mapping[str, Any], costs: Costs, bound: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The `limits` of plan.json; UnsafePlanError where one is crossed."""
    found = gates.gates(spec, winner, costs, bound)
    gates.refuse(spec, found, costs)
    return found


def asked(spec: Spec) -> dict[str, Any]:
    """What the plan was made from."""
    return {
        "format_version": codec.FORMAT_VERSION,
        "planner_version": __version__,
        "cluster": _cluster(spec),
        "state": state_fingerprint.section(spec.cluster.topics, sizes_known=spec.cluster.sizes_known),
        "inputs": [asdict(file) for file in spec.inputs],
        **expiry.section(spec.captured_at, spec.valid_for_seconds),
        "changes": brokers_and_topics.changes(spec.changes),
        "spec": {
            "topics": asdict(spec.topics),
            "survive": spec.resilience,
            "aims": spec.sweep.aims,
            "limits": asdict(spec.limits),
        },
        "rack_aware": spec.rack_aware,
    }


def _terms(
    spec: Spec, problem: Problem, proposal: Proposal, dirs: log_dir_placement.DirPlan | None
) -> list[dict[str, Any]]:
    asked_for = replace(pareto_front.asked_of(spec, problem), balance=spec.balance)
    led = leaders_after(problem, proposal.assignment)
    return log_dirs_section.with_terms(terms.terms(spec, asked_for, proposal.assignment, led), dirs)


def _balance(
    spec: Spec, problem: Problem, proposal: Proposal, dirs: log_dir_placement.DirPlan | None
) -> dict[str, Any]:
    """The windows that the plan was made for, those asked for, and which of each it is outside of: over the brokers,
    then over their log dirs.
    """
    over_brokers = _asked_windows(problem, relaxed(ScoringBasis.of(problem), proposal.assignment))
    as_asked = over_brokers
    if problem.balance != spec.balance:
        at_first = replace(problem, balance=spec.balance)
        as_asked = _asked_windows(problem, relaxed(ScoringBasis.of(at_first), proposal.assignment))
    return {
        "asked": _knobs(spec.balance),
        "missed": sorted({each.window for each in as_asked}),
        "wanted": _knobs(problem.balance),
        "relaxed": [*(asdict(window) for window in over_brokers), *log_dirs_section.relaxed(dirs)],
    }


def _asked_windows(problem: Problem, found: Iterable[Relaxed]) -> list[Relaxed]:
    """Those that the mode asks about: where only leaders may change, nothing is asked of replicas and their bytes."""
    of_leaders = problem.rebalance == "leaders" and not problem.forced.any()
    return [each for each in found if not of_leaders or each.window in _OF_LEADERS]


_OF_LEADERS = ("leaders", "topic_leaders", "network_out")


def _knobs(balance: Balance) -> dict[str, str]:
    return {knob: str(getattr(balance, knob)) for knob in KNOBS}


def _warnings(
    spec: Spec,
    problem: Problem,
    changed: Sequence[PartitionChange],
    costs: Costs,
    dirs: log_dir_placement.DirPlan | None,
) -> list[str]:
    """What an operator should know before approving."""
    return [
        *brokers_and_topics.warnings(spec, problem, changed),
        *gates.overfull_today(spec, costs),
        *failure_risks.warnings(spec, costs.batches),
        *log_dirs_section.warnings(spec, dirs),
    ]


def _cluster(spec: Spec) -> dict[str, Any]:
    return {
        "name": spec.cluster.name,
        "bootstrap_servers": list(spec.cluster.bootstrap_servers),
        "sizes_known": spec.cluster.sizes_known,
        **({"partitions_without_size": spec.cluster.unsized} if spec.cluster.unsized else {}),
        **({"config_defaults": dict(spec.cluster.config_defaults)} if spec.cluster.config_defaults else {}),
    }


def _with_rates(spec: Spec, changed: Sequence[PartitionChange]) -> tuple[PartitionChange, ...]:
    """The changes with what producers write to each partition."""
    partitions = ((topic.name, partition) for topic in spec.cluster.topics for partition in topic.partitions)
    rates = {(name, each.id): each.bytes_in_per_sec for name, each in partitions if each.bytes_in_per_sec}
    if not rates:
        return tuple(changed)
    return tuple(replace(each, bytes_in_per_sec=rates.get((each.topic, each.partition), 0)) for each in changed)


def costed(spec: Spec, problem: Problem, changed: Sequence[PartitionChange]) -> Costs:
    """The changes in batches, with what those cost."""
    execution, racks = spec.execution, {b.id: b.rack for b in brokers_after(spec) if b.rack is not None}
    return batch_costs.costs(
        batch_cutting.split(changed, execution.batches, racks),
        execution.throttle_bytes_per_sec,
        brokers_and_topics.held_bytes(problem),
        {
            broker.id: broker.disk_bytes
            for broker in brokers_and_topics.known_brokers(spec)
            if broker.disk_bytes is not None
        },
        spec.cluster.sizes_known,
    )


def execution(spec: Spec, costs: Costs) -> dict[str, Any]:
    """The `execution` of plan.json."""
    return {
        "throttle_bytes_per_sec": spec.execution.throttle_bytes_per_sec,
        "seconds_at_throttle": costs.total_seconds,
        "kafka_bin_dir": spec.execution.kafka_bin_dir,
        "batches": asdict(spec.execution.batches),
        "derived": [asdict(each) for each in spec.execution.derived],
    }


_UNPROVEN = "nobody knows how few bytes would do: the plan is a placement of Kafka's own, chosen from the front"


def _bound(problem: Problem, winner: Mapping[str, Any], proposal: Proposal, file: bytes | None) -> dict[str, Any]:
    """The least that any plan could move; doing nothing needs no proof."""
    certificate, moved, replicas = proposal.certificate, winner["bytes_moved"], winner["replicas_moved"]
    least, least_replicas = max(proposal.least_bytes, 0), proposal.least_replicas
    forced_only = problem.rebalance != "all"
    method, excess = bound_file.method(certificate, forced_only), bound_file.excess(certificate)
    in_replicas = least_replicas >= 0 and not moved
    return {
        "bytes_moved": moved,
        "least_bytes_moved": least,
        "least_replicas_moved": least_replicas if least_replicas >= 0 else None,
        "gap_percent": bound_file.gap_percent(replicas, least_replicas)
        if in_replicas
        else bound_file.gap_percent(moved, least),
        "method": method,
        "proof": _UNPROVEN if moved and certificate is None else bound_file.proof(certificate, forced_only),
        "sha256": None if file is None else bound_file.sha256(file),
        **({} if excess is None else {"excess": excess}),
    }

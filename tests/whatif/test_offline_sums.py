"""Sums over sets of brokers, against looking at every partition."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import specs
from failure_studies import planned
from hypothesis import given
from hypothesis import strategies as st

from planner.model.spec import BatchRules
from planner.whatif import failure_rows
from planner.whatif.cluster_states import outcome, stages, worse
from planner.whatif.failing_brokers import Scenarios, scenarios
from planner.whatif.offline_sums import failed_slots


def counted(stage, found: Scenarios, failed):
    """The facts of a stage summed over all partitions, each looked at."""
    facts = outcome(stage.first, failed_slots(stage.first.replicas, found.domains, failed))
    other = outcome(stage.second, failed_slots(stage.second.replicas, found.domains, failed))
    return worse(facts.facts, other.facts).sum(axis=0), facts


@pytest.mark.slow
@given(specs(rebalance=("all", "none")), st.sampled_from(("brokers", "racks", "pairs", "3")))
def test_tables_say_what_every_partition_says(spec, kind):
    """Counts and loads of every scenario and stage are those of looking at each partition."""
    problem, steps = planned(spec, BatchRules(moves_per_broker=1))
    if kind == "3" and len(problem.broker_ids) < 3:
        return
    found = scenarios(problem, kind, 1000, 0)
    study = failure_rows.study(spec, problem, steps, [found])
    states = list(stages(spec, problem, steps))
    by_state = {name: number for number, name in enumerate(study.names)}
    assert len(states) == len(study.names)
    if not len(found.sets):
        return
    raw = list(failure_rows._states(study, found, found.sets))
    for stage in states:
        state = raw[by_state[stage.name]]
        for number, failed in enumerate(found.sets):
            expected, facts = counted(stage, found, failed)
            assert expected.tolist() == state.facts[number].tolist()
            led = np.bincount(facts.leaders[facts.leaders >= 0], minlength=len(problem.broker_ids))
            assert led.max(initial=0) == max(int(state.most[number, 0]), 0)

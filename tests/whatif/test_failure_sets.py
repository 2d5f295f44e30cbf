"""Sets of brokers that fail together: all sets or seeded samples; sums against looking at every partition."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import no_racks, spec_of, specs
from failure_studies import planned
from hypothesis import given
from hypothesis import strategies as st

from planner.model.build_problem import build
from planner.model.spec import BatchRules
from planner.whatif import failure_simulation
from planner.whatif.cluster_states import FACTS, outcome, stages, worse
from planner.whatif.failure_sets import FailureSets, failed_slots, scenarios


def test_draws_are_seeded_sets_with_a_stated_confidence():
    """Above the limit, sets are drawn, the same for a seed; about 3 / n bounds the share of worse sets."""
    spec = spec_of(no_racks(*range(40)), {"t": [[1, 2, 3]]})
    problem = build(spec)
    found, again, other = (scenarios(problem, "4", 3000, seed) for seed in (0, 0, 1))

    assert found.drawn
    assert (3000, 4) == found.sets.shape
    assert (np.diff(found.sets, axis=1) > 0).all()
    assert found.sets.tolist() == again.sets.tolist() != other.sets.tolist()
    assert pytest.approx(1 - 0.05 ** (1 / 3000)) == found.worse_at_most
    counts = np.bincount(found.sets.ravel(), minlength=40)
    assert counts.min() > 200
    assert counts.max() < 400
    assert 0.0 == scenarios(problem, "2", 1000, 0).worse_at_most


def counted(stage, found: FailureSets, failed):
    """The facts of a stage, summed by looking at every partition."""
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
    study = failure_simulation.study(spec, problem, steps, [found])
    states = list(stages(spec, problem, steps))
    by_state = {name: number for number, name in enumerate(study.names)}
    assert len(states) == len(study.names)
    if not len(found.sets):
        return
    raw = list(failure_simulation._states(study, found, found.sets))
    for stage in states:
        state = raw[by_state[stage.name]]
        for number, failed in enumerate(found.sets):
            expected, facts = counted(stage, found, failed)
            assert expected.tolist() == [state.columns[name][number] for name in FACTS]
            led = np.bincount(facts.leaders[facts.leaders >= 0], minlength=len(problem.broker_ids))
            assert led.max(initial=0) == max(int(state.columns["leaders_most"][number]), 0)

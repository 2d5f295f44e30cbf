"""Which brokers fail together: all sets, or seeded draws."""

from __future__ import annotations

import numpy as np
import pytest
from clusters import no_racks, spec_of

from planner.model.build_problem import build
from planner.whatif.failing_brokers import scenarios


def test_draws_are_seeded_sets_with_a_stated_confidence():
    """Beyond the budget sets are drawn, the same each time; about 3 / n bounds the share of worse ones."""
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

"""The benchmark of possible clusters: their number is right, and any number of workers gives the same rows."""

from __future__ import annotations

import pytest

from benchmarks import sizes
from planner.whatif import sizing


@pytest.mark.slow
def test_there_are_two_thousand_clusters_of_five_thousand_partitions() -> None:
    """Today's brokers have no class, so each class gives clusters with today's brokers and without them."""
    spec = sizes.spec()
    assert 2000 == len(sizing.combinations(spec))
    assert 5000 == sum(len(topic.partitions) for topic in spec.cluster.topics)


@pytest.mark.spark
def test_a_few_clusters_are_sized() -> None:
    """Spark gives the same rows as this process, and seconds and memory are measured."""
    spec = sizes.spec(60)
    wanted = sizing.combinations(spec)[::251]

    run = sizes.apart(sizes.through_spark, spec, wanted, 1)

    assert [each() for each in sizing.questions(spec, wanted)] == list(run.rows)
    assert 0 < run.session_seconds < run.seconds
    assert 0 < run.chain_seconds <= run.cpu_seconds
    assert run.worker_peak_bytes > 20_000_000

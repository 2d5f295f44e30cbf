"""The newest tools work with brokers of an older release, which refuse the tools' latest options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import install, running
from operator_at_work import Operator

pytestmark = [pytest.mark.kafka, pytest.mark.long]

OLDER = "3.9.1"  # the release that docs/apply.md names


def test_newest_tools_on_older_brokers(folder_with_jars: Callable[[str], Path], tmp_path: Path) -> None:
    """A plan applies and rolls back: other replication factors, a broker that leaves, throttles and elections."""
    newest = install(folder_with_jars("newest"))
    with running(tmp_path / "older", {1: "r0", 2: "r1", 3: "r2", 4: "r0"}, OLDER) as cluster:
        operator = Operator(cluster, tmp_path)
        operator.create_topic("orders", [[4, 2, 3], [2, 3, 4], [3, 4, 2]])
        operator.create_topic("refunds", [[1, 2], [2, 3], [3, 4]])
        operator.produce("orders", 3, 300)
        before, leaders = operator.replicas(), operator.leaders()
        changes = {
            "remove_brokers": [4],
            "set_replication_factor": [{"topics": "refunds", "replication_factor": 3}],
        }
        execution = {"throttle": "100MB/s", "batches": {"moves_per_broker": 2}, "kafka_bin_dir": str(newest)}
        plan = operator.plan(changes, execution=execution)
        # Since Kafka 4.3, the election tool takes the properties with another option.
        (client := tmp_path / "client.properties").touch()
        for playbook, wanted in (
            ("apply", before | plan.replicas),
            ("verify", before | plan.replicas),
            ("rollback", before),
        ):
            run = plan.playbooks.play(playbook, "-e", f"kafka_reassign_command_config={client}")
            assert 0 == run.code, run.output
            operator.await_equal(wanted, operator.replicas)
            operator.await_equal("", operator.throttles)
        operator.await_equal(leaders, operator.leaders)
        assert {} == operator.lost()

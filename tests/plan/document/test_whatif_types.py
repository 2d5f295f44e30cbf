"""Keys of the studies that Python's names can't have, and what a plan leaves out of them."""

from __future__ import annotations

import msgspec
import pytest
from plan_documents import row

from planner.plan.document.whatif_types import BrokerClassRow, FailureKindRow, GrowthOptionRow, PartitionCountRow


def test_a_class_of_brokers_has_the_key_class() -> None:
    """A word that Python keeps for itself."""
    assert {"class": "large", "at_least": 2} == msgspec.to_builtins(BrokerClassRow(broker_class="large", at_least=2))
    assert "large" == row(GrowthOptionRow, {"class": "large"}).broker_class


def test_a_plan_has_no_keys_that_somebody_asked_about() -> None:
    """They are data of messages, which `planner consumers` shows and a plan doesn't store."""
    values = {"topic": "t", "before": 2, "after": 3, "keys_moved_percent": 66.7}
    assert () == msgspec.convert({**values, "keys": []}, PartitionCountRow).keys
    with pytest.raises(msgspec.ValidationError, match="keys"):
        msgspec.convert({**values, "keys": ["alice"]}, PartitionCountRow)


@pytest.mark.parametrize("of", ["brokers", "racks", "pairs", "3"])
def test_kinds_of_failures(of: str) -> None:
    """Single brokers and racks, pairs, or any number of brokers; nothing else."""
    assert of == row(FailureKindRow, {"of": of}).of
    with pytest.raises(msgspec.ValidationError, match="of"):
        row(FailureKindRow, {"of": f"{of}!"})

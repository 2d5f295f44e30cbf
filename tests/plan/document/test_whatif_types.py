"""Keys of the studies with names that Python reserves, and keys that a plan leaves out."""

from __future__ import annotations

import msgspec
import pytest
from plan_documents import row

from planner.plan.document.whatif_types import BrokerClassRow, FailureKindRow, GrowthOptionRow, PartitionCountRow


def test_a_class_of_brokers_has_the_key_class() -> None:
    """A class of brokers has the key `class`, which is a reserved word in Python."""
    assert {"class": "large", "at_least": 2} == msgspec.to_builtins(BrokerClassRow(broker_class="large", at_least=2))
    assert "large" == row(GrowthOptionRow, {"class": "large"}).broker_class


def test_a_plan_has_no_keys_that_somebody_asked_about() -> None:
    """A plan has no keys of messages, because they are data that only `planner consumers` shows."""
    values = {"topic": "t", "before": 2, "after": 3, "keys_moved_percent": 66.7}
    assert () == msgspec.convert({**values, "keys": []}, PartitionCountRow).keys
    with pytest.raises(msgspec.ValidationError, match="keys"):
        msgspec.convert({**values, "keys": ["alice"]}, PartitionCountRow)


@pytest.mark.parametrize("of", ["brokers", "racks", "pairs", "3"])
def test_kinds_of_failures(of: str) -> None:
    """Kinds of failures are brokers, racks, pairs, or a number of brokers; other texts are refused."""
    assert of == row(FailureKindRow, {"of": of}).of
    with pytest.raises(msgspec.ValidationError, match="of"):
        row(FailureKindRow, {"of": f"{of}!"})

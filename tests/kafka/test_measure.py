"""What the plan says of its costs, held to the brokers' disks."""

from __future__ import annotations

import pytest
from measure import BYTES_WITHIN, copied, expansion, move, produce, stored
from operator_at_work import Operator

pytestmark = pytest.mark.kafka


def test_bytes_copied(operator: Operator) -> None:
    """Each broker copies the bytes that the plan says, give or take a few percent."""
    produce(operator, 10**7)
    operator.capture()
    plan = operator.whatif(expansion(operator))
    before = stored(operator)
    move(operator, plan)

    planned = {broker["id"]: broker["bytes_in"] for broker in plan.document["brokers"]}
    within = BYTES_WITHIN / 100
    assert 0 < planned[4]
    assert pytest.approx(planned, rel=within) == copied(before, stored(operator))

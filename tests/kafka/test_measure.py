"""The plan's costs match the brokers' disks and what a run measures."""

from __future__ import annotations

import pytest
from measure import BYTES_WITHIN, copied, expansion, move, produce, stored
from operator_at_work import Operator

from planner.report import run_journal

pytestmark = pytest.mark.kafka


def test_bytes_copied(operator: Operator) -> None:
    """Brokers copy the bytes that the plan says, within a few percent."""
    produce(operator, 10**7)
    operator.capture()
    plan = operator.whatif(expansion(operator))
    before = stored(operator)
    move(operator, plan)

    planned = {broker["id"]: broker["bytes_in"] for broker in plan.document["brokers"]}
    within = BYTES_WITHIN / 100
    assert 0 < planned[4]
    assert pytest.approx(planned, rel=within) == copied(before, stored(operator))


def test_the_end_of_a_run_says_bytes_and_time(operator: Operator) -> None:
    """A run ends with the bytes and time of its batches, printed with -s. Bytes are as planned within a few percent."""
    produce(operator, 3 * 10**7)
    operator.capture()
    plan = operator.whatif(expansion(operator, throttle="1MB/s", batches={"bytes": "15MB"}))
    run = plan.playbooks.play("apply")
    assert 0 == run.code, run.output
    [end] = [line for line in run.output.splitlines() if line.startswith("The run ended after")]
    [journal] = operator.folder.rglob("*-apply-*.jsonl")
    entries = run_journal.entries(journal.read_bytes(), journal.name)
    assert end in [entry.said for entry in entries]
    figures = [entry.figures for entry in entries if entry.figures]
    assert len(plan.document["batches"]) == len(figures)
    for each in figures:
        assert pytest.approx(each.planned_bytes, rel=BYTES_WITHIN / 100) == each.copied_bytes
    print(end)  # noqa: T201

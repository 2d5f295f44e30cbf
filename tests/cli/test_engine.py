"""Whether a command computes locally or on Spark."""

from __future__ import annotations

import pytest

from planner.cli.engine import EngineOptions, uses_spark
from planner.model.errors import SetupError


@pytest.mark.parametrize("otherwise", [True, False])
def test_a_command_has_its_own_rule(otherwise: bool) -> None:
    """Without --engine a command's own rule decides."""
    assert otherwise == uses_spark(EngineOptions(), otherwise=otherwise)
    assert uses_spark(EngineOptions(engine="spark"), otherwise=otherwise)
    assert not uses_spark(EngineOptions(engine="local"), otherwise=otherwise)


@pytest.mark.parametrize(
    "options", [EngineOptions(master="local[2]"), EngineOptions(remote="sc://h"), EngineOptions(partitions=3)]
)
def test_an_option_of_sparks_asks_for_spark(options: EngineOptions) -> None:
    """Each Spark option selects Spark."""
    assert uses_spark(options, otherwise=False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (EngineOptions("local", master="yarn"), "--master is Spark's; allowed: --engine spark, or leave it out"),
        (EngineOptions("local", partitions=2), "--partitions is Spark's; allowed: --engine spark, or leave it out"),
        (EngineOptions(master="yarn", remote="sc://h"), "--master and --remote exclude each other; allowed: one of"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: EngineOptions, said: str) -> None:
    """Options that exclude each other are refused."""
    with pytest.raises(SetupError, match=said):
        uses_spark(options, otherwise=True)

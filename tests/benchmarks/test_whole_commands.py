"""Whole commands on large cases: the files describe the case, and the command plans that case."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cases, whole_commands
from benchmarks.table import Figures
from planner.inputs.spec import reading
from planner.model.errors import SetupError


def test_the_files_say_what_the_case_is(tmp_path: Path) -> None:
    """The files have the case's brokers, partitions, leaders, sizes and changes."""
    case = cases.make("expand-small")
    read, made = reading.load(whole_commands.write(case, tmp_path, "5%")), cases.to_spec(case)
    assert made.cluster.brokers == read.cluster.brokers
    assert made.changes.add_brokers == read.changes.add_brokers
    assert [
        (topic.name, [(each.id, each.replicas, each.leader, each.size_bytes) for each in topic.partitions])
        for topic in made.cluster.topics
    ] == [
        (topic.name, [(each.id, each.replicas, each.leader, each.size_bytes) for each in topic.partitions])
        for topic in read.cluster.topics
    ]
    assert "5%" == str(read.balance.disk)


@pytest.mark.slow
def test_a_command_is_measured_from_its_files_to_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are the command's time and memory, and its plan's bytes. A failing command ends the benchmark."""
    monkeypatch.setattr(whole_commands, "COMMANDS", {"expand-small": None})
    options = ("--engine", "local", "--candidates", "20")
    found = [each for each in whole_commands.entries(("expand-small",), options) if isinstance(each, Figures)]
    (ran,) = (each.values for each in found)
    assert ("expand-small", 20, 189_000_000_000) == (ran["case"], ran["candidates"], ran["bytes_moved"])
    assert min(ran["seconds"], ran["cpu_seconds"]) > 0.1
    assert ran["peak_bytes"] > 20_000_000
    with pytest.raises(SetupError, match=r"planner whatif .* ended with 1"):
        whole_commands.run("expand-small", None, ("--engine", "local", "--master", "local"))


@pytest.mark.spark
def test_a_fleet_is_measured_on_both_engines() -> None:
    """The driver's memory is measured on both engines. Workers have memory on Spark only, if they work at all."""
    found = [each.values for each in whole_commands.fleet_entries(4) if isinstance(each, Figures)]
    assert [(4, "spark"), (4, "local")] == [(ran["specs"], ran["engine"]) for ran in found]
    assert found[1]["worker_peak_bytes"] < 20_000_000
    for ran in found:
        assert ran["driver_peak_bytes"] > 20_000_000
        assert min(ran["seconds"], ran["cpu_seconds"]) > 0.1

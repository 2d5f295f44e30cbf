"""Gates from the YAML to the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.cli.main import main

SPEC = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, capacity: {disk: 4TiB}}, {id: 2, capacity: {disk: 4TiB}}]
  rates: [{topics: "*", bytes_in: 30MB/s}]
  topics:
    - {name: clicks, partitions: [{replicas: [1], size: 1TB}, {replicas: [2], size: 1TB}]}
changes: {add_brokers: [{id: 3, capacity: {disk: 4TiB}}], replace_brokers: {2: 3}, rebalance: none}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("execution: {throttle: 15MB/s}", "execution.throttle: 15 MB/s never lets batch 1 complete"),
        (
            "limits: {eta: 2h}\nexecution: {throttle: 100MB/s}",
            "limits.eta: the plan needs 3 h 16 min (11765 s), allowed: at most 2 h",
        ),
        (
            "limits: {disk_used: 20%}",
            "limits.disk_used: broker 3 holds 1.00 TB (1000000000000 bytes) in batch 1, allowed: at most",
        ),
    ],
    ids=["throttle", "eta", "disk_used"],
)
def test_the_command_exits_3_and_writes_nothing(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the YAML to the exit code: stdout is empty, stderr names the key, and no folder is made."""
    (tmp_path / "s.yaml").write_text(f"{SPEC}{text}\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(tmp_path / "s.yaml"), "--engine", "local", "--candidates", "20"])
    captured = capsys.readouterr()

    assert (3, "") == (ended.value.code, captured.out)
    assert said in captured.err
    assert ["s.yaml"] == [path.name for path in tmp_path.iterdir()]


def test_the_command_plans_within_its_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same spec with room enough: 1 TB at 100 − 15 MB/s takes 3 h 16 min on disks of 4 TiB."""
    text = "limits: {eta: 4h, disk_used: 25%}\nexecution: {throttle: 100MB/s}\n"
    (tmp_path / "s.yaml").write_text(SPEC + text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(tmp_path / "s.yaml"), "--engine", "local", "--candidates", "20"])
    captured = capsys.readouterr()

    assert (0, "") == (ended.value.code, captured.err)
    shown = " ".join(captured.out.split())
    assert "1 batch, at least 3 h 16 min at 100 MB/s per broker (your throttle)" in shown
    assert "eta 3 h 16 min 4 h disk used 931 GiB on broker 1 1 TiB" in shown

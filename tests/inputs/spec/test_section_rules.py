"""Rules of one section of a spec: log dirs, limits, reports and how long a plan is valid."""

from __future__ import annotations

from pathlib import Path

from bad_cluster_specs import Case, after, assert_only_finding, each, line

CASES: list[Case] = [
    # how long
    (
        "eta_without_throttle",
        after("limits: {eta: 6h}\nexecution: {throttle: none}\n"),
        "11:10 limits.eta",
        "'6h' can't be judged with execution.throttle: none; allowed: a throttle, or no such limit",
    ),
    # balance, limits, sweep, execution
    (
        "limit_without_size",
        line(9, "        - {replicas: [1, 2, 3]}") + "limits: {cross_rack_bytes: 2TiB}\n",
        "11:10 limits.cross_rack_bytes",
        "'2TiB' can't be judged with 1 partition without a size; allowed: sizes for every partition (",
    ),
    *(
        (
            f"limit_without_racks_{key}",
            line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}]") + f"limits: {{{key}: 1}}\n",
            f"11:10 limits.{key}",
            "1 can't be judged, no broker has a rack; allowed: racks, or no such limit",
        )
        for key in ("cross_rack_bytes", "rack_offline", "rack_refused")
    ),
    # log dirs
    (
        "log_dir_twice",
        line(4, "  brokers: [{id: 1, log_dirs: [/d1, /d1]}, {id: 2}, {id: 3}]"),
        "4:37 cluster.brokers[0].log_dirs[1]",
        "'/d1' is here twice; allowed: each log dir once",
    ),
    (
        "log_dirs_sized_in_part",
        line(4, "  brokers: [{id: 1, log_dirs: [/d1, {path: /d2, size: 1TB}]}, {id: 2}, {id: 3}]"),
        "4:21 cluster.brokers[0].log_dirs",
        "broker 1 states a size for 1 of 2 log dirs; allowed: a size for all, or for none",
    ),
    (
        "log_dirs_of_replicas",
        line(9, "        - {replicas: [1, 2, 3], size: 12GiB, log_dirs: [/d1]}"),
        "9:46 cluster.topics[0].partitions[0].log_dirs",
        "1 log dirs for 3 replicas; allowed: one for each, in order",
    ),
    (
        "log_dirs_unknown",
        after("balance: {log_dirs: 10%}\n"),
        "11:11 balance.log_dirs",
        "'10%' can't be judged: no log dir is known; allowed: log_dirs on brokers",
    ),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)

"""`planner resume` of a plan with a load profile, traffic and prices: all of them are kept, or a warning says so."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from folders import ROOT

from planner.approval.changes_since_plan import ClusterNow, with_load
from planner.approval.remaining_changes import with_traffic
from planner.cli.commands import commands
from planner.inputs.spec import reading
from planner.model.document_fields import StatedRateRow
from planner.model.errors import PlannerError, SetupError, StalePlanError
from planner.plan import plan_file
from planner.plan.build import RefusedPlanError
from planner.plan.document.plan_types import Plan

EXAMPLES = ROOT / "examples"
LOAD = EXAMPLES / "load" / "load.parquet"

Resume = Callable[..., Plan]


def run(*arguments: object) -> None:
    """Runs a command and raises its errors."""
    ended = CliRunner().invoke(commands, [str(each) for each in arguments], standalone_mode=False)
    if ended.exception:
        raise ended.exception


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an example's spec, state and plan; the spec has a growth and a limit on the worst hour."""
    root = tmp_path_factory.mktemp("resumed")
    for name in ("state", "load"):
        shutil.copytree(EXAMPLES / name, root / name)
    spec = root / "hours.yaml"
    text = (EXAMPLES / "busiest-hours.yaml").read_text(encoding="utf-8")
    spec.write_text(f"{text}growth: [{{topics: orders, per_month: 50%}}]\nlimits: {{worst_hour: 7MB/s}}\n")
    run("whatif", spec, "--engine", "local", "--candidates", 3, "--out", root / "whole.plan")
    return root


@pytest.fixture
def resume(site: Path, tmp_path: Path) -> Resume:
    """Runs `planner resume` on the plan before its first batch, with more arguments, and reads the rest."""

    def resumed(*arguments: object, plan: Path = site / "whole.plan") -> Plan:
        out = tmp_path / "rest.plan"
        run("resume", plan, "--state", site / "state" / "six-brokers", "--out", out, *arguments)
        return plan_file.read(out)

    return resumed


@pytest.mark.slow
def test_with_the_profile_all_of_it_is_judged_again(site: Path, resume: Resume, tmp_path: Path) -> None:
    """With `--load`, hours, growth, traffic between racks, money and limits are the plan's, also if resumed twice."""
    whole, rest = plan_file.read(site / "whole.plan"), resume("--load", LOAD)
    assert whole.hours is not None
    assert rest.hours is not None
    assert (whole.hours.today, whole.hours.plan) == (rest.hours.today, rest.hours.plan)
    assert (whole.hours.months, whole.hours.brokers) == (rest.hours.months, rest.hours.brokers)
    # The target is fixed, so the rest isn't planned for any hours.
    assert ((), None) == (rest.hours.planned, rest.hours.of_mean)
    assert 500_000 == (rest.spec.growth_ppm or {})["orders"]
    assert whole.cross_rack is not None
    assert whole.cross_rack.plan.money_per_month
    assert (whole.cross_rack, whole.spec, whole.limits) == (rest.cross_rack, rest.spec, rest.limits)
    assert ["load.parquet"] == [each.path for each in rest.inputs if "load" in each.path]
    assert not any("traffic" in line for line in rest.warnings)

    first = shutil.move(tmp_path / "rest.plan", tmp_path / "first.plan")
    again = resume("--load", LOAD, plan=first)
    assert (rest.hours, rest.cross_rack, rest.spec) == (again.hours, again.cross_rack, again.spec)


@pytest.mark.slow
def test_what_is_left_is_forecast_from_where_the_plan_was(site: Path) -> None:
    """The rest is forecast from the end of the profile's history; a rate that the YAML states is today's rate."""
    spec, whole = reading.load(site / "hours.yaml"), plan_file.read(site / "whole.plan")
    now = with_load(ClusterNow({topic.name: topic for topic in spec.cluster.topics}), LOAD)

    assert "orders" in spec.growth.at_end
    assert spec.growth.at_end == with_traffic(spec, whole, now).growth.at_end
    stated = replace(spec, cluster=replace(spec.cluster, rates=(StatedRateRow("*", None, 1, 1),)))
    assert {} == with_traffic(stated, whole, now).growth.at_end


@pytest.mark.slow
def test_without_the_profile_a_limit_on_hours_cannot_be_judged(site: Path, resume: Resume, tmp_path: Path) -> None:
    """Without `--load`, a plan with a limit on hours is refused; without such a limit there is a warning."""
    with pytest.raises(StalePlanError, match=r"limits on hours of the week.*allowed: --load with the profile"):
        resume()
    spec = site / "unlimited.yaml"
    spec.write_text((site / "hours.yaml").read_text().replace("limits: {worst_hour: 7MB/s}\n", ""))
    run("whatif", spec, "--engine", "local", "--candidates", 3, "--out", tmp_path / "unlimited.plan")
    rest = resume(plan=tmp_path / "unlimited.plan")
    assert (None, None) == (rest.hours, rest.cross_rack)
    assert any("traffic isn't judged again, as the approved plan's was; --load takes" in line for line in rest.warnings)
    # The shares and prices of the YAML are kept for the next resumption.
    assert plan_file.read(tmp_path / "unlimited.plan").spec.traffic == rest.spec.traffic is not None


@pytest.mark.slow
def test_the_limit_is_judged_again(site: Path, resume: Resume, tmp_path: Path) -> None:
    """If reads have doubled meanwhile, the rest exceeds the limit on the worst hour and is refused."""
    rows = pq.read_table(LOAD)
    at = rows.schema.get_field_index("hours_out")
    doubled = [
        None if hours is None else [2 * each if each else each for each in hours]
        for hours in rows["hours_out"].to_pylist()
    ]
    pq.write_table(
        rows.set_column(at, rows.field(at), pa.array(doubled, rows.field(at).type)), tmp_path / "more.parquet"
    )
    with pytest.raises(
        RefusedPlanError, match=r"limits\.worst_hour: the plan comes to .* MB/s .*, allowed: at most 7 MB/s"
    ):
        resume("--load", tmp_path / "more.parquet")


@pytest.mark.slow
def test_a_profile_of_another_cluster_is_refused(resume: Resume, tmp_path: Path) -> None:
    """A profile of another cluster, a file that isn't a profile, and a missing file are refused."""
    with pytest.raises(PlannerError, match="no load profile of version 1"):
        resume("--load", EXAMPLES / "load" / "history.parquet")
    with pytest.raises(PlannerError, match="No such file"):
        resume("--load", tmp_path / "none.parquet")
    rows = pq.read_table(LOAD)
    names = [f"other-{name}" for name in rows["topic"].to_pylist()]
    pq.write_table(rows.set_column(0, rows.field(0), pa.array(names, rows.field(0).type)), tmp_path / "other.parquet")
    with pytest.raises(SetupError, match=r"--load: .* has none of the cluster's partitions; allowed: a profile of the"):
        resume("--load", tmp_path / "other.parquet")


@pytest.mark.slow
def test_adopted_and_relieving_plans_read_the_spec(site: Path, tmp_path: Path) -> None:
    """Plans of `planner adopt` and `planner drain` have the spec's hours, limits, traffic and prices too."""
    run("adopt", site / "whole.plan", site / "hours.yaml", "--out", tmp_path / "adopted.plan")
    whole, adopted = (plan_file.read(path) for path in (site / "whole.plan", tmp_path / "adopted.plan"))
    assert whole.hours is not None
    assert adopted.hours is not None
    assert (whole.hours.plan, whole.hours.months, whole.limits) == (
        adopted.hours.plan,
        adopted.hours.months,
        adopted.limits,
    )
    assert whole.cross_rack == adopted.cross_rack
    spec = site / "drained.yaml"
    spec.write_text((site / "hours.yaml").read_text().replace("worst_hour: 7MB/s", "worst_hour: 10MB/s"))
    run("drain", spec, "--broker", 1, "--for", "disk=6MB", "-o", site / "relieve.yaml")
    drained = plan_file.read(site / "relieve.plan")
    assert drained.hours is not None
    assert drained.cross_rack is not None
    assert drained.cross_rack.plan.money_per_month
    assert [("limits.worst_hour", 10_000_000)] == [
        (row.key, row.limit) for row in drained.limits if row.key.startswith("limits.")
    ]


TYPED = """version: 1
cluster:
  name: typed
  bootstrap_servers: [kafka-1:9092]
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}]
  state: {assignment: topics.txt}
  rates:
    - {topics: "or*", bytes_in: 10MB/s, bytes_out: 20MB/s}
    - {topics: "*", bytes_in: 1MB/s}
changes:
  add_brokers: [{id: 3, rack: b}]
  create_topics: [{name: made, partitions: 2, replication_factor: 1, bytes_in: 2MB/s}]
  add_partitions: [{topic: orders, partitions: 4}]
balance: {network_in: 20%}
traffic: {consumers: {a: 100%}}
"""


def described(lists: dict[str, list[tuple[int, ...]]]) -> str:
    """What kafka-topics --describe prints for topics with these replicas."""
    lines = []
    for name, rows in lists.items():
        lines.append(f"Topic: {name}\tPartitionCount: {len(rows)}\tReplicationFactor: {len(rows[0])}\tConfigs: ")
        for number, brokers in enumerate(rows):
            text = ",".join(map(str, brokers))
            lines.append(f"\tTopic: {name}\tPartition: {number}\tLeader: {brokers[0]}\tReplicas: {text}\tIsr: {text}")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_rates_of_the_yaml_are_kept(tmp_path: Path) -> None:
    """The rest keeps the YAML's rates; new partitions keep theirs once they are made, and the loads are the plan's."""
    today = {"orders": [(1, 2), (1, 2), (1, 2)], "small": [(2, 1)]}
    (tmp_path / "topics.txt").write_text(described(today))
    (tmp_path / "typed.yaml").write_text(TYPED)
    run("whatif", tmp_path / "typed.yaml", "--engine", "local", "--candidates", 3, "--out", tmp_path / "whole.plan")
    whole = plan_file.read(tmp_path / "whole.plan")
    assert [("or*", None, 10_000_000, 20_000_000), ("*", None, 1_000_000, None)] == [
        (row.topics, row.partition, row.bytes_in_per_sec, row.bytes_out_per_sec) for row in whole.spec.rates or ()
    ]

    def rest(lists: dict[str, list[tuple[int, ...]]], out: str, plan: str = "whole.plan") -> Plan:
        (tmp_path / "now.txt").write_text(described(lists))
        run("resume", tmp_path / plan, "--state", tmp_path / "now.txt", "--out", tmp_path / out)
        return plan_file.read(tmp_path / out)

    first = rest(today, "first.plan")
    assert (whole.spec, whole.cross_rack) == (first.spec, first.cross_rack)
    assert [row.after for row in whole.brokers] == [row.after for row in first.brokers]
    assert [row.before for row in whole.brokers] == [row.before for row in first.brokers]
    assert not any("rates" in line for line in first.warnings)

    # The new partitions are made, and everything else is where it was.
    made = {new.topic: [*today.get(new.topic, ()), *new.replicas] for new in whole.new_topics}
    for plan in ("whole.plan", "first.plan"):
        second = rest(today | made, "second.plan", plan)
        assert [row.after for row in whole.brokers] == [row.after for row in second.brokers]
        expected = [("made", number, 2_000_000, 0) for number in (0, 1)]
        expected += [
            ("orders", number, 10_000_000 // 3 + (number < 1), 20_000_000 // 3 + (number < 2)) for number in range(3)
        ]
        assert [*expected, ("orders", 3, 0, 0)] == [
            (row.topics, row.partition, row.bytes_in_per_sec, row.bytes_out_per_sec)
            for row in (second.spec.rates or ())[2:]
        ]
    third = rest(today | made, "third.plan", "second.plan")
    assert second.spec == third.spec

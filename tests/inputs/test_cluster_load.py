"""A load profile gives a cluster the sizes, rates and growth that the YAML doesn't state, if it fits the cluster."""

from __future__ import annotations

from math import log
from pathlib import Path

import pyarrow as pa
import pytest
from load_samples import MONDAY, rows_of, sample_batch

from planner.inputs import cluster_load, load_profile_file, load_profile_statistics
from planner.inputs.spec import reading
from planner.model.errors import SpecError
from planner.model.growth_forecast import at_history_end
from planner.model.load_history import HistoryFacts, Span
from planner.model.spec import Choice, Rate
from planner.whatif import brokers_for_growth

SPAN = Span(MONDAY, MONDAY + 28 * 24)
SPEC = """\
version: 1
cluster:
  name: n
  load: load.parquet
  brokers: [{{id: 1}}, {{id: 2}}]
  {rates}
  topics:
    - name: orders
      partitions: [{{replicas: [1, 2]{first}}}, {{replicas: [2, 1]}}]
    - name: idle
      partitions: [{{replicas: [1, 2]}}]
balance: {{replicas: 1, leaders: 1, network_in: 50%}}
"""


def profile(folder: Path, topic: str = "orders", size: int = 1000, span: Span = SPAN) -> None:
    """Writes a profile: producers write 1 MB/s to partition 0 and 3 MB/s to partition 1, and both double in a month."""
    samples = []
    for hour in range(span.hours):
        at, grown = (MONDAY + hour) * 3600, 2 ** (hour / (365.25 * 2))
        samples += [(topic, 0, at, round(1e6 * grown), 50, size), (topic, 1, at, round(3e6 * grown), 60, 3 * size)]
    rows = rows_of(list(load_profile_statistics.blocks([sample_batch(*samples)], span)), span)
    (folder / "load.parquet").write_bytes(load_profile_file.encoded(pa.Table.from_batches([rows]), HistoryFacts(span)))


def spec(folder: Path, rates: str = "", first: str = "") -> Path:
    """Writes the YAML beside its profile."""
    path = folder / "s.yaml"
    path.write_text(SPEC.format(rates=rates, first=first))
    return path


def test_sizes_rates_and_growth_come_from_the_profile(tmp_path: Path) -> None:
    """Sizes, rates and growth come from the profile; a partition missing there is idle without a size, with a note."""
    profile(tmp_path)

    found = reading.load(spec(tmp_path))

    idle, orders = found.cluster.topics
    assert [1000, 3000] == [each.size_bytes for each in orders.partitions]
    assert [50, 60] == [each.bytes_out_per_sec for each in orders.partitions]
    first, second = (each.bytes_in_per_sec for each in orders.partitions)
    assert second == pytest.approx(3 * first, rel=1e-5)
    assert (0, 0) == (idle.partitions[0].size_bytes, idle.partitions[0].bytes_in_per_sec)
    assert (True, 1) == (found.cluster.sizes_known, found.cluster.unsized)
    assert ["cluster.load doesn't have 1 partition: they count as idle where the YAML says nothing"] == [
        note for note in found.cluster.notes if "cluster.load" in note
    ]
    assert any("% faster (orders): planner growth, planner size and months" in note for note in found.cluster.outgrown)
    (rate,) = found.growth.rates
    assert "orders" == rate.topics
    assert rate.ppm == pytest.approx(1_000_000, rel=0.01)
    months = 28 * 24 / 730.5
    assert found.growth.at_end == {"orders": pytest.approx(1e6 * months * log(2) / (1 - 0.5**months), rel=0.01)}
    assert ["s.yaml", "load.parquet"] == [each.path for each in found.inputs]


def test_a_topic_that_began_in_the_history_can_be_forecast(tmp_path: Path) -> None:
    """A topic that is written 2,000 times as fast in its second week grows a hundredfold each month, no more."""
    span, rows = Span(MONDAY, MONDAY + 15 * 24), []
    for hour in range(span.hours):
        rows += [("orders", at, (MONDAY + hour) * 3600, 1000 * (2000 if hour >= 168 else 1), 50, 9000) for at in (0, 1)]
    made = rows_of(list(load_profile_statistics.blocks([sample_batch(*rows)], span)), span)
    assert min(made["growth_per_month"].to_pylist()) > 1e12
    (tmp_path / "load.parquet").write_bytes(
        load_profile_file.encoded(pa.Table.from_batches([made]), HistoryFacts(span))
    )

    found = reading.load(spec(tmp_path))

    assert [Rate("orders", 99_000_000)] == [*found.growth.rates]
    cases = brokers_for_growth.cases(found, 120)
    sizes = cases[0].forecast.sizes(120)
    assert ((sizes >= 0) & (sizes < 2**62)).all()


def test_what_the_yaml_states_takes_precedence(tmp_path: Path) -> None:
    """Rates, sizes and growth that the YAML states count before those of the profile."""
    profile(tmp_path)
    path = spec(tmp_path, rates="rates: [{topics: orders, bytes_in: 10MB/s}]", first=", bytes_in: 1MB/s, size: 5kB")
    path.write_text(path.read_text() + "growth: [{topics: orders, per_month: 1%}]\n")

    found = reading.load(path)

    orders = found.cluster.topics[1]
    assert [1_000_000, 5_000_000] == [each.bytes_in_per_sec for each in orders.partitions]
    assert [50, 60] == [each.bytes_out_per_sec for each in orders.partitions]
    assert 5000 == orders.partitions[0].size_bytes
    assert Rate("orders", 10_000) == found.growth.rates[0]
    now, then = orders.partitions, at_history_end(found).cluster.topics[1].partitions
    assert [each.bytes_in_per_sec for each in now] == [each.bytes_in_per_sec for each in then], "stated: that of today"
    grown = found.growth.at_end["orders"] / 1e6
    assert [round(50 * grown), round(60 * grown)] == [each.bytes_out_per_sec for each in then], "a mean of the profile"
    one = reading.load(spec(tmp_path, first=", bytes_in: 1MB/s"))
    ended, times = at_history_end(one).cluster.topics[1], one.growth.at_end["orders"] / 1e6
    own, of_means = (each.bytes_in_per_sec for each in ended.partitions)
    assert 1_000_000 == own, "of one partition, too; the topic's others stay means"
    assert of_means == pytest.approx(times * one.cluster.topics[1].partitions[1].bytes_in_per_sec)
    assert [round(times * 50), round(times * 60)] == [each.bytes_out_per_sec for each in ended.partitions]
    idle = reading.load(spec(tmp_path, rates="rates: [{topics: orders, bytes_in: 1MB/s, bytes_out: 0B/s}]"))
    assert [0, 0] == [each.bytes_out_per_sec for each in idle.cluster.topics[1].partitions]
    assert {} == idle.growth.at_end


def test_means_that_the_yaml_replaces_are_not_outgrown(tmp_path: Path) -> None:
    """Only topics planned by the profile's means can outgrow these, not those whose rates the YAML states."""
    profile(tmp_path)
    stated = reading.load(spec(tmp_path, rates="rates: [{topics: orders, bytes_in: 10MB/s, bytes_out: 1MB/s}]"))
    assert () == stated.cluster.outgrown
    assert reading.load(spec(tmp_path, first=", bytes_in: 1MB/s")).cluster.outgrown, "the other partition has its mean"


def test_a_topic_that_appeared_later_has_less_of_a_history(tmp_path: Path) -> None:
    """If a topic has samples for half of the history only, its mean is that of the last half."""
    profile(tmp_path)
    rows, about = load_profile_file.decoded((tmp_path / "load.parquet").read_bytes(), "load.parquet")
    half = rows.set_column(rows.schema.get_field_index("coverage"), "coverage", pa.array([0.5] * len(rows)))

    whole, later = (cluster_load.cluster_load(each, about).at_end["orders"] for each in (rows, half))
    assert 1_000_000 < later < whole
    assert later == pytest.approx(1_000_000 + (whole - 1_000_000) / 2, rel=0.05)


@pytest.mark.parametrize(
    ("topic", "size", "first", "why"),
    [
        ("other", 1000, "", "has none of the cluster's partitions; allowed: a profile of the same cluster"),
        ("orders", 1000, ", size: 1024kB", "has sizes that are 1/1024 of those of the cluster's state"),
        ("orders", 8000, ", size: 1kB", "has sizes that are 8 times those of the cluster's state, as if one"),
    ],
)
def test_a_profile_that_does_not_fit_is_refused(tmp_path: Path, topic: str, size: int, first: str, why: str) -> None:
    """A profile of another cluster, or with other sizes, is refused at the key `cluster.load`."""
    profile(tmp_path, topic, size)

    with pytest.raises(SpecError) as caught:
        reading.load(spec(tmp_path, first=first))
    (line,) = str(caught.value).splitlines()
    assert f"s.yaml:4:3: cluster.load: 'load.parquet' {why}" in line


def refused(path: Path) -> list[str]:
    """The errors of a YAML, one a line."""
    with pytest.raises(SpecError) as caught:
        reading.load(path)
    return str(caught.value).splitlines()


def at_busiest_hours(path: Path) -> Path:
    """Asks for the busiest hours in the YAML."""
    path.write_text(path.read_text().replace("network_in: 50%}", "network_in: 50%, at: busiest hours}"))
    return path


def test_the_hours_of_the_week_are_read_where_they_are_asked_for(tmp_path: Path) -> None:
    """Hours are always read to judge plans; with `at: busiest hours` plans are also made for them."""
    profile(tmp_path)
    known = reading.load(spec(tmp_path)).week
    assert known is not None
    assert not known.planned_for

    week = reading.load(at_busiest_hours(spec(tmp_path))).week

    assert week is not None
    assert {("orders", 0): 0, ("orders", 1): 1} == dict(week.rows)
    assert (2, 2, 168) == week.hours.shape
    # Partition 1 gets three times as much in each hour, and as much is read, within the seven bits that hours keep.
    assert week.hours[0, 1] == pytest.approx(3 * week.hours[0, 0], rel=0.02)
    assert week.hours[1, 0] == pytest.approx(50, rel=0.01)


def test_a_profile_of_less_than_a_week_has_no_busiest_hours(tmp_path: Path) -> None:
    """With less than a week of history, busiest hours are refused, with the number of hours that are missing."""
    span = Span(MONDAY, MONDAY + 100)
    batch = sample_batch(*(("orders", 0, (MONDAY + hour) * 3600, 100, 50, 1000) for hour in range(100)))
    rows = rows_of(list(load_profile_statistics.blocks([batch], span)), span)
    (tmp_path / "load.parquet").write_bytes(
        load_profile_file.encoded(pa.Table.from_batches([rows]), HistoryFacts(span))
    )

    (line,) = refused(at_busiest_hours(spec(tmp_path)))

    assert line.endswith(
        "s.yaml:4:3: cluster.load: 'load.parquet' lacks 68 of the 168 hours of the week, which balance.at needs; "
        "allowed: a profile of a week or more of history, or there: mean"
    )


def test_busiest_hours_need_a_profile_and_traffic(tmp_path: Path) -> None:
    """Busiest hours without a profile and without a target for traffic are refused with both reasons."""
    path = at_busiest_hours(spec(tmp_path))
    path.write_text(path.read_text().replace("  load: load.parquet\n", "").replace("network_in: 50%, ", ""))

    first, second = refused(path)

    assert "balance.at: 'busiest hours' can't be judged without a load profile; allowed: with cluster.load, or" in first
    assert "balance.at: 'busiest hours' needs a target for traffic; allowed: together with network_in or" in second


RULES = {
    "choose: {lowest_worst_hour_within_bytes: 1GB}": Choice("lowest_worst_hour_within_bytes", 10**9),
    "choose: {fewest_bytes_within_worst_hour: 2MB/s}": Choice("fewest_bytes_within_worst_hour", 2 * 10**6),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules_of_hours_are_read_and_need_a_profile(tmp_path: Path, rule: str) -> None:
    """A rule on hours is read with its amount in bytes or bytes/s, and refused without a profile."""
    profile(tmp_path)
    path = spec(tmp_path)
    path.write_text(f"{path.read_text()}sweep: {{{rule}}}\n")
    assert RULES[rule] == reading.load(path).sweep.choice

    path.write_text(path.read_text().replace("  load: load.parquet\n", "").replace("network_in: 50%", "disk: none"))
    (line,) = refused(path)
    assert f"sweep.choose.{RULES[rule].rule}: " in line
    assert "can't be judged without a load profile; allowed: with cluster.load, or another rule" in line


@pytest.mark.parametrize("key", ["worst_hour", "p99_hour"])
def test_the_traffic_of_an_hour_is_limited_by_a_rate(tmp_path: Path, key: str) -> None:
    """A limit on hours is read in bytes/s; a size is refused, and so is a limit without a profile."""
    profile(tmp_path)
    path = spec(tmp_path)
    plain = path.read_text()
    path.write_text(f"{plain}limits: {{{key}: 2MB/s}}\n")
    assert 2 * 10**6 == getattr(reading.load(path).limits, f"{key}_bytes_per_sec")

    path.write_text(f"{plain}limits: {{{key}: 2MB}}\n")
    (line,) = refused(path)
    assert f"limits.{key}: '2MB' isn't a rate: its unit is 'MB'; allowed: a rate such as" in line

    path.write_text(path.read_text().replace("2MB", "2MB/s").replace("  load: load.parquet\n", ""))
    path.write_text(path.read_text().replace("network_in: 50%", "disk: none"))
    (line,) = refused(path)
    assert f"limits.{key}: '2MB/s' can't be judged without a load profile; allowed: with cluster.load, or no" in line


def test_hours_above_capacity_are_limited_where_every_broker_states_its_network(tmp_path: Path) -> None:
    """The limit is a count; each broker without capacity.network is refused by name."""
    profile(tmp_path)
    path = spec(tmp_path)
    path.write_text(f"{path.read_text()}limits: {{hours_above_capacity: 3}}\n")
    (first, second) = refused(path)
    assert "broker 1 has no capacity.network, which limits.hours_above_capacity needs; allowed: capacity.net" in first
    assert "broker 2 has no capacity.network" in second

    path.write_text(
        path.read_text().replace("}, {id: 2}", ", capacity: {network: 1B/s}}, {id: 2, capacity: {network: 2B/s}}")
    )
    assert 3 == reading.load(path).limits.hours_above_capacity


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file or directory"), (b"PAR1", "can't be read as a load profile")],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, content: bytes | None, why: str) -> None:
    """A missing file, or a file that isn't a profile, is refused at the key `cluster.load`."""
    if content is not None:
        (tmp_path / "load.parquet").write_bytes(content)

    with pytest.raises(SpecError, match=rf"s\.yaml:4:3: cluster\.load: .*{why}"):
        reading.load(spec(tmp_path))


MONTHS = {
    "limits: {months_until_full: 9}": "limits.months_until_full: 9",
    "sweep: {choose: {fewest_bytes_lasting_months: 9}}": "sweep.choose.fewest_bytes_lasting_months: 9",
    "sweep: {choose: {most_months_within_bytes: 9B}}": "sweep.choose.most_months_within_bytes: '9B'",
}


@pytest.mark.parametrize("written", MONTHS)
def test_what_goes_by_months_needs_growth_and_every_disk(tmp_path: Path, written: str) -> None:
    """Rules on months need every broker's disk, and growth from the profile or the YAML; otherwise they are refused."""
    profile(tmp_path)
    path, key = spec(tmp_path), MONTHS[written]
    sized = path.read_text().replace("[1, 2]", "[1, 2], size: 1").replace("[2, 1]", "[2, 1], size: 1")
    path.write_text(f"{sized}{written}\n")
    (line,) = refused(path)
    assert f"{key} can't be judged without capacity.disk of brokers 1, 2; allowed: capacity.disk for every" in line

    with_disks = path.read_text().replace("{id: 1}", "{id: 1, capacity: {disk: 1GB}}")
    path.write_text(with_disks.replace("{id: 2}", "{id: 2, capacity: {disk: 1GB}}"))
    assert_nine_months_or_bytes(path)

    profile(tmp_path, span=Span(MONDAY, MONDAY + 5 * 24))
    (line,) = refused(path)
    named = key.partition(":")[0]
    assert f"says nothing of growth, which {named} needs; allowed: more than two weeks of history, or growth" in line

    bare = path.read_text().replace("  load: load.parquet\n", "").replace("network_in: 50%", "disk: none")
    path.write_text(bare)
    (line,) = refused(path)
    assert f"{key} can't be judged without growth; allowed: growth, or cluster.load, or leave it out" in line

    path.write_text(f"{bare}growth: [{{topics: '*', per_month: 3%}}]\n")
    assert_nine_months_or_bytes(path)


def assert_nine_months_or_bytes(path: Path) -> None:
    """Checks that the 9 of the rule or the limit was read."""
    found = reading.load(path)
    assert 9 == (found.limits.months_until_full or found.sweep.choice.value)

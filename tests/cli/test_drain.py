"""`planner drain` from start to end: the spec and plan it writes, the fewest bytes, and what it refuses."""

from __future__ import annotations

import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from clusters import spec_of
from folders import ROOT
from hypothesis import given
from hypothesis import strategies as st

from planner.cli.commands import commands
from planner.cli.main import main
from planner.inputs.spec.reading import load
from planner.model.balance import NO_TOLERANCE, Balance
from planner.model.build_problem import build
from planner.model.errors import SetupError
from planner.plan import plan_file
from planner.strategies import optimum

ONLY_BYTES = Balance(NO_TOLERANCE, NO_TOLERANCE, NO_TOLERANCE)


@pytest.fixture
def spec(tmp_path):
    """A copy of the example's spec and of its state."""
    shutil.copytree(ROOT / "examples" / "state", tmp_path / "state")
    return Path(shutil.copy(ROOT / "examples" / "expand.yaml", tmp_path))


def drain(spec, *arguments):
    """What `planner drain` prints on stdout; its errors are raised."""
    ended = CliRunner().invoke(commands, ["drain", str(spec), *arguments], standalone_mode=False)
    if ended.exception:
        raise ended.exception
    return ended.stdout


@pytest.mark.slow
def test_a_broker_is_relieved_with_the_fewest_bytes_and_nothing_else_changes(spec, tmp_path):
    """The asked amount is freed, with less than 0.1 MB more; only replicas of broker 4 move."""
    shown = drain(spec, "--broker", "4", "--for", "disk=6MB")
    plan = plan_file.read(tmp_path / "expand-drain-4.plan")
    broker = {each.id: each for each in plan.brokers}[4]
    freed = broker.before.size_bytes - broker.after.size_bytes

    assert 6_000_000 <= freed == sum(each.bytes_in for each in plan.brokers) < 6_100_000
    assert {4} == {broker for row in plan.partitions for broker in set(row.replicas_before) - set(row.replicas)}
    assert not plan.changes.add_brokers
    assert "at most 59.9 MB on broker 4" in shown
    assert 59_853_928 == broker.max_disk_bytes


def test_a_file_that_the_spec_is_read_from_is_no_output(spec, tmp_path):
    """An input file can't be the output, and stays unchanged."""
    (tmp_path / "sizes.txt").write_bytes((tmp_path / "state" / "six-brokers" / "log-dirs.txt").read_bytes())
    spec.write_text(spec.read_text().replace("state/six-brokers/log-dirs.txt", "sizes.txt"))
    before = (tmp_path / "sizes.txt").read_bytes()
    with pytest.raises(SetupError, match=r"sizes.txt is read, and would be changed; allowed: a file elsewhere"):
        drain(spec, "--broker", "4", "--for", "disk=6MB", "-o", str(tmp_path / "sizes.txt"))
    assert before == (tmp_path / "sizes.txt").read_bytes()


@pytest.mark.slow
def test_the_spec_that_is_written_gives_the_same_plan(spec, tmp_path):
    """The written spec gives the same plan; it keeps rules and limits, but neither changes nor balance."""
    drain(spec, "--broker", "4", "--for", "disk=6MB", "-o", str(tmp_path / "relieve.yaml"), "--format", "json")
    written = yaml.safe_load((tmp_path / "relieve.yaml").read_text())
    ended = CliRunner().invoke(
        commands, ["whatif", str(tmp_path / "relieve.yaml"), "--engine", "local", "--out", str(tmp_path / "again.plan")]
    )

    assert 0 == ended.exit_code, ended.stderr
    assert {"rebalance": "all"} == written["changes"]
    assert {"bytes_moved": "300MB", "leaders_changed": 60} == written["limits"]
    assert [None] * 3 + [{"max_disk": "59853928B"}] + [None] * 2 == [
        each.get("capacity") for each in written["cluster"]["brokers"]
    ]
    assert (tmp_path / "relieve.plan" / "plan.json").read_bytes() == (
        tmp_path / "again.plan" / "plan.json"
    ).read_bytes()


@pytest.mark.slow
def test_a_capacity_of_a_class_stays(spec, tmp_path):
    """The broker's class is replaced by its capacity and a cap, because the cap is for this broker only."""
    text = spec.read_text().replace("  brokers:\n", "  broker_classes: {big: {disk: 1GB}}\n  brokers:\n")
    spec.write_text(text.replace("{id: 4, rack: r0}", "{id: 4, rack: r0, class: big}"))
    drain(spec, "--broker", "4", "--for", "disk=6MB")

    capacity = {each.id: each for each in load(tmp_path / "expand-drain-4.yaml").cluster.brokers}[4]
    assert (1_000_000_000, 59_853_928) == (capacity.disk_bytes, capacity.max_disk_bytes)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 40))
def test_what_is_copied_is_less_than_a_partition_above_the_least(sizes, freed):
    """Of single replicas, the least is the smallest sum of partitions that frees as much; the bound isn't above it."""
    every = [sum(chosen) for count in range(1, len(sizes) + 1) for chosen in combinations(sizes, count)]
    if sum(sizes) <= freed:
        return
    spec = spec_of({1: None, 2: None}, {"t": [[1]] * len(sizes)}, sizes={"t": sizes}, balance=ONLY_BYTES)
    problem = build(spec)
    problem.disk_limit_bytes[0] = sum(sizes) - freed
    solved = optimum.solve(problem, ONLY_BYTES)
    copied = int(problem.size_bytes[solved.assignment[:, 0] == 1].sum())

    least = min(each for each in every if each >= freed)
    assert solved.least_bytes <= least <= copied < least + max(sizes)


@pytest.mark.parametrize("freed", [1, 9_000, 30_000_000])
def test_an_amount_far_below_a_partition_copies_the_smallest_that_may_leave(freed):
    """A small amount moves the smallest partition that is allowed to leave, although larger ones could too."""
    lists = [[2, 1], [2, 3], [2, 3], [1, 2], [3, 1], [2, 1], [1, 3], [1, 3]]
    sizes = [20_159, 23_751, 26_714, 23_402, 2_138, 18_075, 25_789, 11_900]
    spec = spec_of(
        {1: None, 2: None, 3: None}, {"t": lists}, sizes={"t": [each * 10**6 for each in sizes]}, balance=ONLY_BYTES
    )
    problem = build(spec)
    held = sum(size for size, row in zip(problem.size_bytes.tolist(), lists, strict=True) if 1 in row)
    problem.disk_limit_bytes[0] = held - freed
    solved = optimum.solve(problem, ONLY_BYTES)

    assert [4] == (solved.assignment != problem.replicas).any(axis=1).nonzero()[0].tolist()
    assert {0} == set(problem.replicas[4].tolist()) - set(solved.assignment[4].tolist())


def test_few_large_partitions_move_instead_of_hundreds_of_small_ones():
    """Of 600 partitions of 10 kB to 30 GB, a few free 40 GB as closely as all of the small ones together."""
    sizes = [int(10_000 * 1.025**number) for number in range(600)]
    lists = [[1 + number % 2, 2 - number % 2] for number in range(600)]
    spec = spec_of({1: None, 2: None, 3: None, 4: None}, {"t": lists}, sizes={"t": sizes}, balance=ONLY_BYTES)
    problem, freed = build(spec), 40_000_000_000
    problem.disk_limit_bytes[0] = sum(sizes) - freed
    solved = optimum.solve(problem, ONLY_BYTES)
    moved = (np.sort(solved.assignment) != np.sort(problem.replicas)).any(axis=1)

    assert freed <= int(problem.size_bytes[moved].sum()) <= freed * 1.00001
    assert moved.sum() < 15


STRAYED = """\
version: 1
cluster:
  name: small
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: a}, {id: 4, rack: b}]
  topics:
    - name: t
      partitions:
        - {replicas: [1, 2], leader: 2, size: 10MB}
        - {replicas: [1, 2], size: 7MB}
        - {replicas: [1, 4], size: 3MB}
        - {replicas: [3, 4], leader: 4, size: 5MB}
        - {replicas: [2, 4], size: 5MB}
"""


@pytest.mark.slow
def test_what_is_not_on_the_broker_stays_as_it_is(tmp_path):
    """Partitions on other brokers stay, although they break the rack rule or aren't led by their preferred leader."""
    (tmp_path / "small.yaml").write_text(STRAYED)
    drain(tmp_path / "small.yaml", "--broker", "1", "--for", "disk=3MB")
    plan = plan_file.read(tmp_path / "small-drain-1.plan")

    assert {0, 2} == {row.partition for row in plan.partitions}
    assert 3_000_000 == sum(each.bytes_in for each in plan.brokers)
    assert (1,) == plan.spec.topics.on_brokers


@pytest.mark.slow
def test_what_somebody_has_worked_on_is_not_replaced(tmp_path):
    """A written spec that was edited isn't replaced; an unedited one is, also for another amount."""
    (tmp_path / "small.yaml").write_text(STRAYED)
    out = tmp_path / "small-drain-1.yaml"
    for amount in ("disk=3MB", "disk=9MB"):
        drain(tmp_path / "small.yaml", "--broker", "1", "--for", amount)
    made, plan = out.read_text(), (tmp_path / "small-drain-1.plan" / "plan.json").read_bytes()

    for mine in (
        made.replace("11000000B", "12000000B"),
        f"# Mine.\n{made}",
        made.replace("by planner", "by me"),
        "x\n",
    ):
        out.write_text(mine)
        with pytest.raises(SetupError, match=r"small-drain-1.yaml: isn't what planner drain --broker 1 of .*small"):
            drain(tmp_path / "small.yaml", "--broker", "1", "--for", "disk=3MB")
        assert mine == out.read_text() != made
        assert plan == (tmp_path / "small-drain-1.plan" / "plan.json").read_bytes()


def test_brokers_of_the_filter_are_known(tmp_path, capsys):
    """An unknown broker in topics.on_brokers is refused with its line, key and value."""
    (tmp_path / "small.yaml").write_text(STRAYED + "topics: {on_brokers: [1, 9]}\n")
    with pytest.raises(SystemExit):
        main(["validate", str(tmp_path / "small.yaml")])

    assert "small.yaml:13:26: topics.on_brokers[1]: 9 isn't in cluster.brokers; allowed: 1, 2, 3, 4" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("capacity", "most"), [("disk: 15MB", 14_999_999), ("max_disk: 12MB", 12_000_000), ("disk: 40MB", 19_000_000)]
)
def test_the_brokers_own_limit_stays(tmp_path, capacity, most):
    """A broker above its disk, or above its own max_disk, is relieved below it, though --for asks for less."""
    path = tmp_path / "full.yaml"
    path.write_text(
        f"version: 1\ncluster:\n  name: full\n  brokers: [{{id: 1, capacity: {{{capacity}}}}}, {{id: 2}}, {{id: 3}}]\n"
        "  topics: [{name: t, partitions: [{replicas: [1, 2], size: 10MB}, {replicas: [2, 1], size: 10MB}]}]\n"
    )
    drain(path, "--broker", "1", "--for", "disk=1MB")

    assert f"max_disk: {most}B" in (tmp_path / "full-drain-1.yaml").read_text()


def test_a_cap_that_cannot_be_kept_is_refused(tmp_path, capsys):
    """If no replica can leave the broker, the plan is shown and refused, and nothing is written."""
    path = tmp_path / "full.yaml"
    path.write_text(
        "version: 1\ncluster:\n  name: full\n  brokers: [{id: 1}, {id: 2}]\n"
        "  topics: [{name: t, partitions: [{replicas: [1, 2], size: 10MB}, {replicas: [2, 1], size: 10MB}]}]\n"
    )
    with pytest.raises(SystemExit) as ended:
        main(["drain", str(path), "--broker", "1", "--for", "disk=5MB"])
    captured = capsys.readouterr()

    assert 3 == ended.value.code
    assert "capacity.max_disk: the plan comes to 20.0 MB" in captured.err
    assert " on broker 1 (20000000 bytes), allowed: at most 15 MB" in captured.err
    assert captured.out.startswith("Refused: 1 of 1 limit is exceeded (capacity.max_disk: ")
    assert "Nothing to do: no plan tried brings each broker within its caps." in captured.out
    assert captured.err.count("written") == 1
    assert ["full.yaml"] == [each.name for each in tmp_path.iterdir()]

    (tmp_path / "mine.yaml").write_text("as it was\n")
    with pytest.raises(SystemExit):
        main(["drain", str(path), "--broker", "1", "--for", "disk=5MB", "-o", str(tmp_path / "mine.yaml")])
    assert "as it was\n" == (tmp_path / "mine.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--broker 9 --for disk=6MB", "--broker 9: isn't in cluster.brokers of expand.yaml; allowed: 1, 2, 3, 4, 5, 6"),
        ("--broker 4 --for 6MB", "--for 6MB: isn't an amount to free; allowed: disk= and a size, such as disk=200GB"),
        ("--broker 4 --for disk=much", "--for disk=much: isn't an amount to free; allowed: disk= and a size"),
        ("--broker 4 --for disk=200", "--for disk=200: isn't an amount to free; allowed: disk= and a size, such as"),
        ("--broker 4 --for disk=0", "--for disk=0: isn't an amount to free; allowed: disk= and a size"),
        (
            "--broker 4 --for disk=1GB",
            "--for disk=1GB: broker 4 holds 65.9 MB (65853928 bytes); allowed: less than that. To empty it, "
            "changes.remove_brokers: [4]",
        ),
        ("--broker 4 --for disk=6MB -o ../x.yaml", "--output ../x.yaml: isn't beside expand.yaml, whose paths are"),
        ("--broker 4 --for disk=6MB -o expand.yaml", "--output expand.yaml: expand.yaml is read, and would"),
    ],
)
def test_what_makes_no_sense_is_refused(spec, arguments, said, capsys, monkeypatch):
    """A wrong option is refused with its value and what is allowed, and nothing is written."""
    monkeypatch.chdir(spec.parent)
    with pytest.raises(SystemExit) as ended:
        main(["drain", "expand.yaml", *arguments.split()])

    assert 1 == ended.value.code
    assert said in " ".join(capsys.readouterr().err.split())
    assert ["expand.yaml", "state"] == sorted(each.name for each in spec.parent.iterdir())


def test_a_spec_without_sizes_is_refused(spec, capsys):
    """Without sizes the command is refused, because what a move frees is unknown."""
    lines = [line for line in spec.read_text().splitlines(True) if "sizes:" not in line and "limits:" not in line]
    spec.write_text("".join(lines))
    with pytest.raises(SystemExit) as ended:
        main(["drain", str(spec), "--broker", "4", "--for", "disk=6MB"])

    assert 1 == ended.value.code
    assert "expand.yaml: no size of a partition is known; allowed: cluster.state.sizes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        (
            "{disk: 50MB, max_disk: 60MB}",
            "capacity.max_disk: '60MB' has no effect beside ",
        ),
        ("{max_disk: many}", "capacity.max_disk: 'many'"),
    ],
)
def test_a_max_disk_that_makes_no_sense(spec, capacity, said, capsys):
    """A max_disk without an effect, or without a size, is refused with its line, key and what is allowed."""
    spec.write_text(spec.read_text().replace("{id: 4, rack: r0}", f"{{id: 4, rack: r0, capacity: {capacity}}}"))
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(spec)])

    err = capsys.readouterr().err
    assert 1 == ended.value.code
    assert "expand.yaml:10:" in err
    assert said in err
    assert "allowed: " in err

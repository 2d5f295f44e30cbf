"""Reading a spec with its state files: all faults are found at once, each with its place, and nothing is written."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from bad_balance_specs import CLASSES
from bad_change_specs import CAPACITIES
from bad_cluster_specs import FROM_FILES, Case, after, assert_only_finding, each, findings, line, summary
from bad_state_files import DESCRIBE, LOG_DIRS, MOVING, STATE_CASES
from folders import DATA, EXAMPLES
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from small_specs import spec_of

from planner.inputs.spec.reading import load
from planner.model import file_reading
from planner.model.errors import SetupError, SpecError
from planner.model.file_reading import resource


def test_a_plan_is_no_spec(tmp_path: Path) -> None:
    """JSON is YAML too, but each key of a plan.json would be an unknown one."""
    (tmp_path / "plan.json").write_text('{"format_version": "2.0", "plan_id": "1a2b"}')
    with pytest.raises(SpecError, match=r"plan\.json:1:1: is a plan; allowed: the YAML file that it was made from$"):
        load(tmp_path / "plan.json")


def test_state_files_lie_beside_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the YAML, not to the working directory, and are recorded as written, with digests."""
    shutil.copytree(DATA / "kraft-4.1", tmp_path / "specs" / "state")
    text = (
        "version: 1\ncluster:\n  name: demo\n"
        "  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}, {id: 5}, {id: 6}]\n"
        "  state: {assignment: state/kafka-topics-describe.txt, sizes: state/kafka-log-dirs-describe.txt}\n"
    )
    (tmp_path / "specs" / "spec.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    spec = load(Path("specs/spec.yaml"))
    written = ["spec.yaml", "state/kafka-topics-describe.txt", "state/kafka-log-dirs-describe.txt"]
    digests = [hashlib.sha256((tmp_path / "specs" / name).read_bytes()).hexdigest() for name in written]
    assert list(zip(written, digests, strict=True)) == [(each.path, each.sha256) for each in spec.inputs]
    assert spec.cluster.sizes_known
    assert 90 == sum(row.size_bytes > 0 for topic in spec.cluster.topics for row in topic.partitions)


def test_state_without_sizes_has_unknown_sizes(tmp_path: Path) -> None:
    """Without a file of sizes, sizes are unknown and 0."""
    shutil.copy(DATA / "zookeeper-3.9" / "kafka-topics-describe.txt", tmp_path / "d.txt")
    text = (
        "version: 1\ncluster:\n  name: demo\n  brokers: [{id: 0}, {id: 1}, {id: 2}, {id: 3}]\n"
        "  state: {assignment: d.txt}\n"
    )
    spec = spec_of(tmp_path, text)
    assert not spec.cluster.sizes_known
    assert {0} == {row.size_bytes for topic in spec.cluster.topics for row in topic.partitions}


def test_cordoned_log_dirs_are_read_unless_the_yaml_states_them(tmp_path: Path) -> None:
    """Cordons come from kafka-configs, unless the YAML states them; a replacement inherits none. Variants have them."""
    shutil.copy(DATA / "zookeeper-3.9" / "kafka-topics-describe.txt", tmp_path / "d.txt")
    (tmp_path / "b.txt").write_text(
        "".join(
            f"Dynamic configs for broker {broker} are:\n  cordoned.log.dirs={dirs} sensitive=false synonyms={{}}\n"
            for broker, dirs in ((1, "*"), (2, "/d1,/d2"), (7, "*"), (10, "*"))
        ),
        encoding="utf-8",
    )
    text = (
        "version: 1\ncluster:\n  name: demo\n"
        '  brokers: [{id: 0}, {id: 1}, {id: 2, cordoned_log_dirs: ["/d3"]}, {id: 3}]\n'
        "  state: {files: [d.txt, b.txt]}\nchanges: {add_brokers: [{id: 7}, {id: 8}], replace_brokers: {1: 9, 3: 10}}\n"
        "sweep: {variants: [{name: other, changes: {add_brokers: [{id: 7}], replace_brokers: {3: 10}}}]}\n"
    )
    spec = spec_of(tmp_path, text)
    assert [(), ("*",), ("/d3",), ()] == [broker.cordoned_log_dirs for broker in spec.cluster.brokers]
    joining = [(broker.id, broker.cordoned_log_dirs) for broker in spec.changes.add_brokers]
    assert [(7, ("*",)), (8, ()), (9, ()), (10, ("*",))] == joining
    assert [("*",), ("*",)] == [each.cordoned_log_dirs for each in spec.sweep.variants[0].changes.add_brokers]


def test_a_filter_that_is_no_mapping_is_a_finding_beside_topics_to_move(tmp_path: Path) -> None:
    """A `topics` that is a list is a finding, although a topics-to-move file adds to it."""
    shutil.copy(DATA / "zookeeper-3.9" / "kafka-topics-describe.txt", tmp_path / "d.txt")
    (tmp_path / "m.json").write_text('{"version":1,"topics":[{"topic":"orders"}]}', encoding="utf-8")
    text = (
        "version: 1\ncluster:\n  name: demo\n  brokers: [{id: 0}, {id: 1}, {id: 2}, {id: 3}]\n"
        "  state: {files: [d.txt, m.json]}\ntopics: [orders]\n"
    )
    (found,) = findings(tmp_path, text)
    assert ("topics", "a list isn't possible here; allowed: a mapping") == (found.key, found.message)


def test_resources_that_are_not_shipped_are_a_setup_error() -> None:
    """A missing resource is an error that names the file."""
    assert "schemas" == resource("schemas").name
    with pytest.raises(SetupError, match=r"schemas/gone\.json isn't part of this installation"):
        resource("schemas", "gone.json")


CASES: list[Case] = [
    # where the topics come from
    (
        "state_gone",
        line(5, "  state: {assignment: gone.txt}", FROM_FILES),
        "5:11 cluster.state.assignment",
        "can't be read: No such file or directory",
    ),
    (
        "state_folder",
        line(5, "  state: {assignment: .}", FROM_FILES),
        "5:11 cluster.state.assignment",
        "can't be read: Is a directory",
    ),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)


@pytest.mark.parametrize(
    ("describe", "log_dirs", "where", "part"), [case[1:] for case in STATE_CASES], ids=[case[0] for case in STATE_CASES]
)
def test_each_fault_of_a_state_file_has_its_place(
    describe: str, log_dirs: str, where: str, part: str, tmp_path: Path
) -> None:
    """One fault in a state file gives one finding, at its line in that file."""
    (tmp_path / "describe.txt").write_text(describe, encoding="utf-8")
    (tmp_path / "log-dirs.txt").write_text(log_dirs, encoding="utf-8")
    found = findings(tmp_path, FROM_FILES)
    assert [where] == summary(found, tmp_path)
    assert part in found[0].message


def test_a_state_file_that_is_not_utf8_names_its_line(tmp_path: Path) -> None:
    """A byte that isn't UTF-8 is a finding at its line in the state file."""
    (tmp_path / "describe.txt").write_bytes(DESCRIBE.encode() + b"\xff")
    (tmp_path / "log-dirs.txt").write_text(LOG_DIRS, encoding="utf-8")
    assert ["describe.txt:4:1 cluster.state.assignment"] == summary(findings(tmp_path, FROM_FILES), tmp_path)


def test_a_spec_that_is_not_there_names_the_file(tmp_path: Path) -> None:
    """A missing YAML file is an error that names it."""
    with pytest.raises(SpecError, match=r"gone\.yaml: .*can't be read: No such file or directory"):
        load(tmp_path / "gone.yaml")


def test_everything_is_found_in_one_pass(tmp_path: Path) -> None:
    """Faults of schema, units, keys, duplicates, brokers and patterns are found at once, sorted by place."""
    text = line(4, "  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]") + (
        "changes:\n  remove_brokers: [8]\n  set_replication_factor: [{topics: gone, replication_factor: 9}]\n"
        "limits: {bytes_moved: 1 parsec, replica_moved: 4}\nsweep: {seed: yes}\nversion: 1\n"
    )
    expected = [
        "s.yaml:12:20 changes.remove_brokers[0]",
        "s.yaml:13:29 changes.set_replication_factor[0].topics",
        "s.yaml:14:10 limits.bytes_moved",
        "s.yaml:14:33 limits.replica_moved",
        "s.yaml:15:9 sweep.seed",
        "s.yaml:16:1 version",
    ]
    assert expected == summary(findings(tmp_path, text), tmp_path)


def test_faults_of_both_state_files_are_found_in_one_pass(tmp_path: Path) -> None:
    """Faults of the YAML, the assignment and the sizes are found at once."""
    (tmp_path / "describe.txt").write_text(line(3, MOVING, DESCRIBE), encoding="utf-8")
    (tmp_path / "log-dirs.txt").write_text("{}", encoding="utf-8")
    found = findings(tmp_path, FROM_FILES + "limits: {bytes_moved: x}\n")
    keys = [
        "describe.txt:3:2",
        "log-dirs.txt:1:1 cluster.state.sizes",
        "s.yaml:6:10 limits.bytes_moved",
    ]
    assert keys == summary(found, tmp_path)


def test_the_message_reads_as_a_line_of_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message is one line with place, key, value and what is allowed; the path is as it was given."""
    (tmp_path / "examples").mkdir()
    text = after("changes:\n  add_brokers:\n    - id: 3\n      rack: c\n")
    (tmp_path / "examples" / "expand.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as caught:
        load(Path("examples/expand.yaml"))
    expected = (
        "examples/expand.yaml:13:7: changes.add_brokers[0].id: 3 is a broker of the cluster already; "
        "allowed: an id that cluster.brokers doesn't use"
    )
    assert expected == str(caught.value)


def test_nothing_is_written(tmp_path: Path) -> None:
    """A refused spec leaves no files behind."""
    findings(tmp_path, after("limits: {bytes_moved: x}\n"))
    assert ["s.yaml"] == [path.name for path in tmp_path.iterdir()]


@examples(150)
@given(
    at=st.integers(0, 3000),
    cut=st.integers(0, 12),
    text=st.sampled_from(
        ["", "null", "[]", "{}", "-1", "yes", "'", "\n", "!!set", "&a ", "*a", ": ", "1.5", "~", "<<", "é"]
    ),
)
def test_a_damaged_spec_is_refused_or_read_but_never_crashes(at: int, cut: int, text: str) -> None:
    """Any few characters replaced by others give a spec or a SpecError, whose findings all have a place."""
    sound = line(4, f"{CAPACITIES}\n{CLASSES}  rates: [{{topics: 'o*', bytes_in: 3MB/s, bytes_out: 1}}]") + (
        "changes:\n  add_brokers: [{id: 7, rack: a, capacity: {disk: 1TB}}]\n"
        "  replace_brokers: {3: 9}\n  set_racks: {1: b}\n"
        "  set_replication_factor: [{topics: 'o*', replication_factor: 2}]\n"
        "topics: {include: ['*']}\nbalance: {replicas: 5%}\nlimits: {bytes_moved: 1TiB, eta: 6h, disk_used: 80%}\n"
        "budget: {bytes_moved: 1TiB}\n"
        "sweep:\n  choose: {most_even_within_bytes: 1TiB}\n  balance: {leaders: [1, none], disk: [2%]}\n"
        "  variants: [{name: b, changes: {add_brokers: [{id: 7, rack: a, class: big}], remove_brokers: [1]}}]\n"
        "  scenarios: {growth: [{topics: 'o*', factor: 2.5}]}\nexecution: {throttle: 50MB/s, batches: {bytes: 1GiB}}\n"
    )
    at %= len(sound)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_text(sound[:at] + text + sound[at + cut :], encoding="utf-8")
        try:
            places = [(1, 1) for _ in load(path).inputs]
        except SpecError as error:
            places = [(finding.place.line, finding.place.column) for finding in error.findings]
    assert places
    assert all(place_line >= 1 and column >= 1 for place_line, column in places)


def test_each_state_file_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and log dirs of one file are of one moment, even if the file changes meanwhile."""
    opened = list[str]()

    def read_bytes(path: Path, *given: Any, **named: Any) -> bytes:
        opened.append(path.name)
        return original(path, *given, **named)

    original = file_reading.read_bytes
    monkeypatch.setattr(file_reading, "read_bytes", read_bytes)
    assert load(EXAMPLES / "log-dirs.yaml").cluster.log_dirs.replicas
    assert sorted(set(opened)) == sorted(opened)

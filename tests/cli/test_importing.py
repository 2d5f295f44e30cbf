"""`planner import` as a command: what it writes, prints and refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from folders import DATA

from planner.cli.main import main
from planner.inputs.spec.reading import load

KRAFT = DATA / "kraft-4.1"
DESCRIBE = "Topic: a\tPartitionCount: 1\tConfigs: \n\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
MARK = "# Written by planner import"


def command(*arguments: str | Path) -> int:
    """Runs `planner import` and returns the exit code."""
    with pytest.raises(SystemExit) as caught:
        main(["import", *map(str, arguments)])
    return int(caught.value.code or 0)


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A file with the description of one topic."""
    (tmp_path / "d.txt").write_text(DESCRIBE, encoding="utf-8")
    return tmp_path / "d.txt"


def test_the_default_is_written_if_brokers_would_show_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A topic that shows no min.insync.replicas inherits none, so the YAML states Kafka's default."""
    found = []
    for text in (DESCRIBE, DESCRIBE.replace("Topic: a\tPartitionC", "Topic: a\tTopicId: x\tPartitionC", 1)):
        (tmp_path / "d.txt").write_text(text, encoding="utf-8")
        assert 0 == command(tmp_path / "d.txt")
        found.append(yaml.safe_load(capsys.readouterr().out)["cluster"].get("config_defaults"))
    assert [None, {"min.insync.replicas": "1"}] == found


def test_stdout_is_a_sound_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o a valid spec goes to stdout, with all partitions and sizes, and notes go to stderr."""
    down = (KRAFT / "kafka-topics-describe-broker-4-down.txt", KRAFT / "kafka-log-dirs-describe-broker-4-down.txt")
    assert 0 == command(*down, "--name", "orders-eu")
    out, err = capsys.readouterr()
    assert out.startswith(MARK)
    (tmp_path / "s.yaml").write_text(out, encoding="utf-8")
    cluster = load(tmp_path / "s.yaml").cluster
    assert ("orders-eu", 6, 91, 0) == (
        cluster.name,
        len(cluster.brokers),
        sum(len(topic.partitions) for topic in cluster.topics),
        cluster.unsized,
    )
    assert [
        "found 6 brokers without racks, 6 topics, 91 partitions, 402 MB",
        "note: partitions audit.log-0, audit.log-2, audit.log-4 and 34 more under-replicated",
        "note: 15 of 91 partitions not led by their preferred leaders",
        "note: broker 4 is in no ISR of its 37 replicas: it seems to be down",
        "note: racks are unknown: add them to cluster.brokers, or the output of kafka-broker-api-versions",
        "note: unknown whether topics have their own min.insync.replicas (6 topics) or inherit it: the tfvars leave "
        "these topics' configs out; add the output of kafka-configs --describe --entity-type topics --all, which says "
        "so",
    ] == err.splitlines()


def test_a_file_is_written_whole(described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o writes the file, also over an earlier import, and leaves no other files behind."""
    out = tmp_path / "new" / "cluster.yaml"
    out.parent.mkdir()
    for _ in range(2):
        assert 0 == command(described, "-o", out)
        assert f"{out}\n" == capsys.readouterr().out
    assert [out] == list(out.parent.iterdir())
    assert {"a"} == {topic["name"] for topic in yaml.safe_load(out.read_text(encoding="utf-8"))["cluster"]["topics"]}


def test_a_note_with_long_paths_ends_with_what_counts(
    described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note with long paths isn't cut before its end."""
    other = tmp_path / ("folder" * 30) / "describe.txt"
    other.parent.mkdir()
    other.write_text(described.read_text(encoding="utf-8").replace("Replicas: 1,2", "Replicas: 2,1"), encoding="utf-8")
    assert 0 == command(described, other)
    assert f": {described} counts\n" in capsys.readouterr().err


def test_what_someone_wrote_is_not_replaced(
    described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that somebody wrote or edited isn't replaced."""
    out = tmp_path / "mine.yaml"
    assert 0 == command(described, "-o", out)
    for mine in ("version: 1\n", out.read_text(encoding="utf-8") + "changes: {remove_brokers: [1]}\n"):
        out.write_text(mine, encoding="utf-8")
        assert 1 == command(described, "-o", out)
        assert "mine.yaml: isn't what planner import wrote; allowed: a new file" in capsys.readouterr().err
        assert mine == out.read_text(encoding="utf-8")


def test_large_states_are_written_beside_the_yaml(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A large state is written into files beside the YAML; a folder with other files is refused."""
    monkeypatch.setattr("planner.inputs.state.spec_writer.MOST_INLINE", 0)
    out, state = tmp_path / "c.yaml", tmp_path / "c.state"
    for _ in range(2):
        assert 0 == command(described, "-o", out)
    assert ["SHA256SUMS", "topics-describe.txt"] == sorted(path.name for path in state.iterdir())
    assert 0 == command(state)
    assert {"assignment": "c.state/topics-describe.txt"} == yaml.safe_load(out.read_text())["cluster"]["state"]
    assert (1, 2) == load(out).cluster.topics[0].partitions[0].replicas
    (state / "notes.txt").write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert 0 == command(described)
    assert "note: 1 partitions make a YAML that takes long to read: with --output they" in capsys.readouterr().err
    assert 1 == command(described, "-o", out)
    assert "c.state: wasn't written by planner import" in capsys.readouterr().err
    assert "mine" == (state / "notes.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("read", ["c.state/topics-describe.txt", "other.txt"])
def test_captures_in_the_folder_beside_the_yaml_are_not_replaced(
    read: str, described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder with the same file names may hold the operator's own captures, or files that were edited since."""
    monkeypatch.setattr("planner.inputs.state.spec_writer.MOST_INLINE", 0)
    out, state = tmp_path / "c.yaml", tmp_path / "c.state"
    state.mkdir()
    for path in ("c.state/topics-describe.txt", "other.txt"):
        (tmp_path / path).write_text(f"{described.read_text()}\n")
    captured = (state / "topics-describe.txt").read_text()
    for _ in range(2):
        assert 1 == command(tmp_path / read, "-o", out)
        said = "c.state: wasn't written by planner import, or was changed since; allowed: another name than c.yaml"
        assert said in capsys.readouterr().err
        assert (False, captured) == (out.exists(), (state / "topics-describe.txt").read_text())
        (state / "SHA256SUMS").write_text(f"{'0' * 64}  topics-describe.txt\n")


def test_an_empty_name_of_the_output_is_one_error(described: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As with an unset variable of a shell."""
    assert 1 == command(described, "-o", "")
    assert "--output has no file name; allowed: a file" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_error(described: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that can't be written is one error without a traceback."""
    assert 1 == command(described, "-o", "/proc/nowhere/c.yaml")
    assert "can't be written: No such file or directory" in capsys.readouterr().err


def test_terraform_and_topics_to_move_add_the_wish(
    described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Terraform's topics become changes, and topics to move become the filter."""
    topic = '{"name":"a","partitions":3,"replication_factor":1,"config":{}}'
    new = '{"name":"new","partitions":2,"replication_factor":2,"config":{"retention.ms":"5"}}'
    rows = ",".join(f'{{"mode":"managed","type":"kafka_topic","values":{each}}}' for each in (topic, new))
    (tmp_path / "t.json").write_text(
        f'{{"format_version":"1.0","terraform_version":"1","values":{{"root_module":{{"resources":[{rows}]}}}}}}'
    )
    (tmp_path / "m.json").write_text('{"version":1,"topics":[{"topic":"a"}]}')
    assert 0 == command(described, tmp_path / "t.json", tmp_path / "m.json")
    written = yaml.safe_load(capsys.readouterr().out)
    assert {
        "set_replication_factor": [{"topics": "a", "replication_factor": 1}],
        "add_partitions": [{"topic": "a", "partitions": 3}],
        "create_topics": [
            {"name": "new", "partitions": 2, "replication_factor": 2, "config": {"retention.ms": "5"}}
        ],
    } == written["changes"]  # fmt: skip
    assert {"include": ["a"]} == written["topics"]


def test_brokers_of_msk_are_written_whole(described: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """MSK brokers are written with racks, disks and profile; a spec with Express brokers is refused with the reason."""
    zones = [{"mode": "data", "type": "aws_subnet", "values": {"id": "s", "availability_zone_id": "euw1-az1"}}]
    nodes = [{"broker_id": number, "client_subnet": "s"} for number in range(10)]
    listed = {"mode": "data", "type": "aws_msk_broker_nodes", "values": {"cluster_arn": "a", "node_info_list": nodes}}
    for instance, refused in (("kafka.m5.large", False), ("kafka.x9.huge", False), ("express.m7g.large", True)):
        group = {"instance_type": instance, "storage_info": [{"ebs_storage_info": [{"volume_size": 100}]}]}
        values = {"arn": "a", "number_of_broker_nodes": 10, "broker_node_group_info": [group]}
        cluster = {"mode": "managed", "type": "aws_msk_cluster", "values": values}
        module = {"root_module": {"resources": [cluster, listed, *zones]}}
        shown = {"format_version": "1.0", "terraform_version": "1.11.4", "values": module}
        (tmp_path / "tf.json").write_text(json.dumps(shown))
        out = tmp_path / f"{instance}.yaml"
        with pytest.raises(SystemExit) as ended:
            main(["import", str(described), str(tmp_path / "tf.json"), "-o", str(out)])
        assert (0, {}) == (ended.value.code, {}), capsys.readouterr().err
        written = yaml.safe_load(out.read_text())["cluster"]
        brokers = [{"id": number, "rack": "euw1-az1", "capacity": {"disk": 100 << 30}} for number in range(10)]
        assert brokers == written["brokers"]
        told = capsys.readouterr().err
        unknown = instance == "kafka.x9.huge"
        assert unknown == ("no cap on replicas is published for msk.x9.huge: cluster.profile is left out" in told)
        assert (None if unknown else f"msk.{instance.removeprefix('kafka.')}") == written.get("profile")
        with pytest.raises(SystemExit) as ended:
            main(["validate", str(out)])
        assert refused == ("MSK places the replicas of Express brokers itself" in capsys.readouterr().err)
        assert refused == bool(ended.value.code)


def test_a_pipe_is_read(described: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe is read, as from the shell's <(kafka-topics --describe)."""
    read, write = os.pipe()
    os.write(write, DESCRIBE.encode())
    os.close(write)
    assert 0 == command(f"/dev/fd/{read}")
    os.close(read)
    assert "- {replicas: [1, 2], isr: [1, 2]}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to import; allowed: files, --bootstrap-servers, or both"),
        (("{}", "--command-config", "x"), "--command-config is for --bootstrap-servers"),
        (("{}", "--name", " x"), "--name ' x' can't be used; allowed: 1 to 200 characters"),
        (("{}", "-o", "{}"), "is read, and would be changed; allowed: a file elsewhere"),
        (("{}", "--topic", "x"), "--topic x: each file names its topics; allowed: leave it out"),
        (("gone.txt",), "'gone.txt' can't be read: No such file or directory; allowed: a readable file"),
        (("/dev/null",), "'/dev/null' isn't a regular file"),
        (("x" * 5000,), "can't be read: File name too long; allowed: a readable file"),
        (
            ("--bootstrap-servers", "h:1,kafka-2"),
            "--bootstrap-servers: 'kafka-2' isn't an address with a port; allowed: HOST:PORT, or several with commas",
        ),
        (("--bootstrap-servers", "h:1", "--command-config", "gone"), "'gone' can't be read: No such file or directory"),
    ],
)
def test_each_misuse_is_one_error(
    arguments: tuple[str, ...], message: str, described: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what is allowed instead."""
    assert 1 == command(*(each.format(described) for each in arguments))
    assert message in capsys.readouterr().err


def test_every_fault_of_every_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The faults of all files are reported at once, with their places."""
    (tmp_path / "a").write_text("hello")
    (tmp_path / "b").write_text("Topic: x\n")
    assert 1 == command(tmp_path / "a", tmp_path / "b")
    err = capsys.readouterr().err
    assert "a:1:1: no state in a known format" in err
    assert "b:1:1: 'Topic: x' isn't a topic or a partition" in err


def test_names_write_nothing_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escape codes in a refused name are shown as text, not sent to the terminal."""
    (tmp_path / "d").write_text(DESCRIBE.replace("Topic: a", "Topic: a\x1b[2J"), encoding="utf-8")
    assert 1 == command(tmp_path / "d")
    refusal = capsys.readouterr().err
    assert "\x1b" not in refusal
    assert "can't be a topic's name" in refusal

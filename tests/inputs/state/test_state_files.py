"""State files: folders, encodings, pipes and links, formats, and `cluster.state.files` of a spec."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from folders import capture
from state_texts import read_topics

from planner.inputs.spec.reading import load
from planner.inputs.state.state_files import files_in, read_file, read_part
from planner.model.cluster import CONFIGS_UNKNOWN
from planner.model.errors import ImportStateError, SpecError
from planner.model.file_reading import UnreadableError
from planner.model.spec import Spec

DESCRIBE = "Topic: a\tPartitionCount: 1\tConfigs: \n\tTopic: a\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
SIZES = '{"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","partitions":[{"partition":"a-0","size":7}]}]}]}'


def spec(folder: Path, state: str, more: str = "", **files: str) -> Spec:
    """A spec with this state, and files with these names beside it."""
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    path = folder / "s.yaml"
    brokers = "[{id: 1, rack: x}, {id: 2, rack: y}]"
    path.write_text(
        f"version: 1\ncluster:\n  name: n\n  brokers: {brokers}\n  state: {state}\n{more}", encoding="utf-8"
    )
    return load(path)


def test_a_folder_is_all_its_files(tmp_path: Path) -> None:
    """A folder means all of its files, sorted by path, except those of version control and file managers."""
    for name in ("b", "a/2", "a/10", ".git/x", "a/.DS_Store", "a/.gitkeep", "a/.hidden", ".topic/x"):
        (tmp_path / "f" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "f" / name).write_text("x")
    (tmp_path / "f" / "c").symlink_to("b")
    found = [path.relative_to(tmp_path / "f").as_posix() for path in files_in(tmp_path / "f")]
    assert [".topic/x", "a/.hidden", "a/10", "a/2", "b", "c"] == found


@pytest.mark.parametrize("goal", ["..", "gone/..", "/"])
def test_a_link_to_a_folder_is_refused(goal: str, tmp_path: Path) -> None:
    """A link to a folder is refused: if it were left out, a part of the state could be missing."""
    spec_folder = tmp_path / "x"
    spec_folder.mkdir()
    (spec_folder / "gone").mkdir()
    (spec_folder / "st" / "a").mkdir(parents=True)
    (spec_folder / "st" / "a" / "d").write_text(DESCRIBE)
    (spec_folder / "st" / "b").symlink_to(spec_folder / goal, target_is_directory=True)
    with pytest.raises(SpecError, match=r"s\.yaml:5:19: cluster\.state\.files\[0\]: '.*/st/b' is a link to a folder"):
        spec(spec_folder, "{files: [st]}")


def test_links_that_lead_nowhere_or_in_a_ring_are_refused(tmp_path: Path) -> None:
    """Broken and circular links are refused with the system's reason."""
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    for name, reason in (("gone", "No such file"), ("ring", "Too many levels of symbolic links")):
        with pytest.raises(UnreadableError, match=f"{name}' can't be read: {reason}"):
            read_file(tmp_path / name, name)


def test_a_folder_that_can_not_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that can't be listed is refused, not skipped. The test replaces scandir, because root may list all."""
    (tmp_path / "st" / "a").mkdir(parents=True)
    (tmp_path / "st" / "b").mkdir()
    (tmp_path / "st" / "a" / "d").write_text(DESCRIBE)
    listed = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(UnreadableError, match=r"/st/b' can't be read: Permission denied"):
        files_in(tmp_path / "st")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """A file name that isn't UTF-8 is refused, because plans name their input files in UTF-8."""
    folder = tmp_path / "st"
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/d\xff.txt")).write_text(DESCRIBE)
    with pytest.raises(UnreadableError, match="isn't a name in UTF-8; allowed: rename the file"):
        files_in(folder)


def test_a_file_beyond_its_limit_is_refused_unread(tmp_path: Path) -> None:
    """A file above the size limit is refused before it is read; the test's sparse file of 10 GB takes no disk space."""
    with (tmp_path / "d").open("wb") as file:
        file.truncate(10**10)
    with pytest.raises(UnreadableError, match="has 10,000,000,000 bytes; allowed: at most 1,073,741,824 bytes for a"):
        read_file(tmp_path / "d", "d")


def test_a_compressed_file_is_named(tmp_path: Path) -> None:
    """A compressed file is refused with its format."""
    (tmp_path / "d").write_bytes(gzip.compress(DESCRIBE.encode()))
    with pytest.raises(UnreadableError, match="is compressed with gzip; allowed: the text itself"):
        read_file(tmp_path / "d", "d")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """An empty folder is refused, because a state without topics would be a mistake."""
    with pytest.raises(UnreadableError, match="is an empty folder"):
        files_in(tmp_path)


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends_do_not_matter(bom: bytes, end: str, tmp_path: Path) -> None:
    """A byte order mark and Windows line ends are accepted."""
    (tmp_path / "d").write_bytes(bom + DESCRIBE.replace("\n", end).encode())
    (entry,) = read_file(tmp_path / "d", "d").entries
    assert ((1, 2), 2) == (entry.partition.replicas, entry.place.line)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf_16_is_named(encoding: str, tmp_path: Path) -> None:
    """UTF-16, which PowerShell's `>` writes, is refused with that reason."""
    (tmp_path / "d").write_bytes((b"" if encoding == "utf-16" else b"\xfe\xff") + DESCRIBE.encode(encoding))
    with pytest.raises(ImportStateError, match="the file is in UTF-16, as Windows' PowerShell writes it"):
        read_file(tmp_path / "d", "d")


def test_lines_longer_than_the_head_are_read_whole(tmp_path: Path) -> None:
    """The format is detected from the file's first part; a file longer than that is still read whole."""
    topics = [DESCRIBE.replace("Topic: a", f"Topic: topic-number-{number}") for number in range(9_000)]
    (tmp_path / "d").write_text("".join(topics), encoding="utf-8")
    part = read_file(tmp_path / "d", "d")
    assert 9_000 == len(part.entries)
    assert [2, 18_000] == [part.entries[0].place.line, part.entries[-1].place.line]


def test_a_bad_byte_has_its_line(tmp_path: Path) -> None:
    """A byte that isn't UTF-8 is refused with its line, also far down in the file."""
    topics = [DESCRIBE.replace("Topic: a", f"Topic: topic-number-{number}") for number in range(9_000)]
    (tmp_path / "d").write_bytes("".join(topics).encode() + b"\tTo\xffpic")
    with pytest.raises(ImportStateError, match=r"d:18001:4: byte 0xff isn't UTF-8"):
        read_file(tmp_path / "d", "d")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe is refused, because reading it might never end."""
    os.mkfifo(tmp_path / "p")
    with pytest.raises(UnreadableError, match="isn't a regular file"):
        read_file(tmp_path / "p", "p")


def test_a_spec_takes_files_of_any_format(tmp_path: Path) -> None:
    """Assignment and sizes are recognized by their content, and both files are inputs of the plan."""
    read = spec(tmp_path, "{files: [one, two]}", "balance: {disk: 5%}\n", one=SIZES, two=DESCRIBE)
    assert (True, 7) == (read.cluster.sizes_known, read.cluster.topics[0].partitions[0].size_bytes)
    assert ["s.yaml", "one", "two"] == [each.path for each in read.inputs]


def test_a_spec_takes_a_folder_of_znodes(tmp_path: Path) -> None:
    """A folder of znodes is read; brokers that differ from the YAML give notes with their file."""
    topic = '{"version":1,"partitions":{"0":[1,2]}}'
    broker = '{"host":"h","port":1,"version":5,"rack":"%s"}'
    files = {
        "zk__brokers__topics__a__data": topic,
        "zk__brokers__ids__1": broker % "x",
        "zk__brokers__ids__2": broker % "z",
        "zk__brokers__ids__3": broker % "x",
    }
    read = spec(tmp_path, "{files: [zk]}", **files)
    assert (1, 2) == read.cluster.topics[0].partitions[0].replicas
    assert (
        "broker 2 is in rack 'z' by zk/brokers/ids/2, in rack 'y' by cluster.brokers, which counts",
        "broker 3 is live by zk/brokers/ids/3, but isn't in cluster.brokers: it gets no replica",
        CONFIGS_UNKNOWN,
    ) == read.cluster.notes


def test_brokers_that_join_may_be_live_already(tmp_path: Path) -> None:
    """A broker that joins may be live already; a note says if its rack differs from `changes`."""
    racks = {1: "x", 2: "y", 3: "x", 4: "x"}
    live = "".join(f"h:{broker} (id: {broker} rack: {rack}) -> (\n)\n" for broker, rack in racks.items())
    changes = "changes: {add_brokers: [{id: 3, rack: x}, {id: 4, rack: y}, {id: 5, rack: y}]}\n"
    read = spec(tmp_path, "{files: [live, one]}", changes, live=live, one=DESCRIBE)
    assert ("broker 4 is in rack 'x' by live, in rack 'y' by changes, which counts",) == read.cluster.notes


def test_a_spec_names_the_topic_of_a_replica_assignment(tmp_path: Path) -> None:
    """`file` and `topic` together name the topic of a replica assignment."""
    read = spec(tmp_path, "{files: [{file: m, topic: t}]}", m="1:2,2:1")
    assert [(1, 2), (2, 1)] == [row.replicas for row in read.cluster.topics[0].partitions]


def test_topics_to_move_restrict_a_spec(tmp_path: Path) -> None:
    """A topics-to-move file restricts the topics, unless the YAML has its own `topics`."""
    topics = DESCRIBE + DESCRIBE.replace("Topic: a", "Topic: b")
    files = {"d": topics, "m": '{"topics":[{"topic":"b"}]}'}
    assert ("b",) == spec(tmp_path, "{files: [d, m]}", **files).topics.include
    assert ("a",) == spec(tmp_path, "{files: [d, m]}", "topics: {include: [a]}\n", **files).topics.include


def test_a_reassignment_is_planned_from_its_target_when_asked(tmp_path: Path) -> None:
    """With `reassigning: target` the plan starts from the target and has a note; otherwise it is refused."""
    moving = DESCRIBE.replace("1,2\tIsr: 1,2", "2,1,3\tIsr: 1,3\tAdding Replicas: 2\tRemoving Replicas: 3")
    read = spec(tmp_path, "{assignment: d, reassigning: target}", d=moving)
    assert (2, 1) == read.cluster.topics[0].partitions[0].replicas
    assert (
        "1 partition is being reassigned: the plan starts from the target; run apply.yml once that is reached",
    ) == read.cluster.notes
    with pytest.raises(SpecError, match=r"d:2:2: partition 0 of a is being reassigned \(Adding Replicas: 2\)"):
        spec(tmp_path, "{assignment: d}", d=moving)


@pytest.mark.parametrize(
    ("state", "where", "message"),
    [
        ("{files: []}", "cluster.state.files", "an empty list isn't possible here"),
        ("{files: [5]}", "cluster.state.files[0]", "5 isn't possible here; allowed: a path relative to this file"),
        ("{files: [/etc/passwd]}", "cluster.state.files[0]", "isn't possible here; allowed: a path relative"),
        ("{files: [{topic: a}]}", "cluster.state.files[0].file", "is missing"),
        ("{files: [d, gone]}", "cluster.state.files[1]", "can't be read: No such file or directory"),
        ("{files: [d, dir]}", "cluster.state.files[1]", "is an empty folder"),
        ("{assignment: d, reassigning: maybe}", "cluster.state.reassigning", "allowed: refuse, target"),
        ("{sizes: l}", "cluster.state.assignment", "is missing; allowed: what kafka-topics --describe prints, here or"),
        ("{files: [l]}", "", "no source says where replicas are"),
        ("{files: [d, other]}", "cluster.state.sizes", "none of the files has any of the assignment's partitions"),
    ],
)
def test_bad_states_are_named(state: str, where: str, message: str, tmp_path: Path) -> None:
    """An invalid state is refused with its key in the YAML."""
    (tmp_path / "dir").mkdir()
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, state, d=DESCRIBE, l=SIZES, other=SIZES.replace("a-0", "b-0"))
    assert [where] == [finding.key for finding in caught.value.findings]
    assert message in caught.value.findings[0].message


def test_topics_being_deleted_stay(tmp_path: Path) -> None:
    """A topic marked for deletion can't move, so a broker with its replicas can't be removed."""
    deleting = DESCRIBE.replace("Configs: ", "Configs: \tMarkedForDeletion: true")
    assert spec(tmp_path, "{assignment: d}", d=deleting).cluster.topics[0].deleting
    with pytest.raises(
        SpecError, match=r"changes\.remove_brokers.*topic a marked for deletion, with replicas on brokers"
    ):
        spec(
            tmp_path, "{assignment: d}", "changes: {remove_brokers: [1], add_brokers: [{id: 3, rack: x}]}\n", d=deleting
        )


def test_the_format_is_told_from_the_content() -> None:
    """The format is detected from the content, not from the file's name."""
    described = read_topics(capture("kraft-4.1/kafka-topics-describe.txt"), "x")
    generated = read_topics(capture("kraft-4.1/kafka-reassign-partitions-generate.txt"), "x")
    assert [topic.name for topic in described] == [topic.name for topic in generated]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"brokers": []}', "\x00", '{"version":1,"partitions":[]}'])
def test_unknown_formats_name_the_file_and_what_is_known(text: str) -> None:
    """An unknown format is refused with the file's name and what is allowed."""
    with pytest.raises(
        ImportStateError, match=r"^f:1:1: no assignment in a known format: the file [^;]*; allowed: .*describe"
    ):
        read_topics(text, "f")
    with pytest.raises(
        ImportStateError, match=r"^f:1:1: no sizes in a known format: the file [^;]*; allowed: .*kafka-log-dirs"
    ):
        read_part(text, "f", expected="sizes")

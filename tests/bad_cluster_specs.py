"""Specs with a fault in the file itself or in the description of the cluster. test_schema_errors tests each one."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.inputs.spec.reading import load
from planner.model.errors import Finding, SpecError

Case = tuple[str, str | bytes, str, str]

SOUND = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]
  topics:
    - name: orders
      config: {min.insync.replicas: 2}
      partitions:
        - {replicas: [1, 2, 3], size: 12GiB}
        - {replicas: [2, 3, 1], size: 12GiB}
"""

FROM_FILES = """\
version: 1
cluster:
  name: demo
  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 4}, {id: 5}, {id: 6}]
  state: {assignment: describe.txt, sizes: log-dirs.txt}
"""


def after(text: str) -> str:
    """The sound spec, followed by more text from line 11 on."""
    return SOUND + text


def line(number: int, text: str, base: str = SOUND) -> str:
    """The base with one line changed."""
    lines = base.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


def findings(folder: Path, text: str | bytes) -> tuple[Finding, ...]:
    """The findings with which load() refuses a spec."""
    path = folder / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError) as caught:
        load(path)
    return caught.value.findings


def summary(found: tuple[Finding, ...], folder: Path) -> list[str]:
    """`file:line:column key` of each finding, the file without its folder."""
    return [f"{finding.place} {finding.key}".replace(f"{folder.as_posix()}/", "").strip() for finding in found]


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrizes a test over the cases, with the cases' names as ids."""
    return pytest.mark.parametrize(
        ("text", "where", "part"), [case[1:] for case in cases], ids=[case[0] for case in cases]
    )


def assert_only_finding(folder: Path, text: str | bytes, where: str, part: str) -> None:
    """Assert that the spec's one fault gives one finding, with its line, its column and its key."""
    found = findings(folder, text)
    assert [f"s.yaml:{where}".rstrip(":")] == summary(found, folder)
    assert part in found[0].message


# name, spec, "line:column key" of the only finding, a part of its message
CLUSTER_CASES: list[Case] = [
    # version and top level
    ("version_missing", SOUND.removeprefix("version: 1\n"), "1:1 version", "is missing; allowed: 1 (version"),
    ("version_2", line(1, "version: 2"), "1:1 version", "2 isn't possible here; allowed: 1"),
    ("unknown_top_key", after("change: {}\n"), "11:1 change", "did you mean 'changes'?"),
    ("top_key_in_capitals", after("BALANCE: {}\n"), "11:1 BALANCE", "did you mean 'balance'?"),
    ("key_nobody_means", after("xyzzy: {}\n"), "11:1 xyzzy", "unknown key; allowed: version, cluster"),
    ("cluster_missing", "version: 1\n", "1:1 cluster", "is missing"),
    ("cluster_list", "version: 1\ncluster: []\n", "2:1 cluster", "a list isn't possible here; allowed: a mapping"),
    ("changes_empty", after("changes:\n"), "11:1 changes", "has no value; allowed: a mapping"),
    # cluster
    ("name_missing", line(3, "  bootstrap_servers: []"), "2:1 cluster.name", "is missing"),
    ("name_number", line(3, "  name: 7"), "3:3 cluster.name", 'in quotes ("7") it is text'),
    ("name_line_break", line(3, '  name: "a\\n"'), "3:3 cluster.name", "without blanks around it"),
    ("name_empty", line(3, '  name: ""'), "3:3 cluster.name", "text of 1 to 200 characters"),
    (
        "server_without_port",
        line(3, "  name: demo\n  bootstrap_servers: [kafka-1]"),
        "4:23 cluster.bootstrap_servers[0]",
        "allowed: host:port, such as kafka-1:9092",
    ),
    *(
        (
            f"server_{name}",
            line(3, f"  name: demo\n  bootstrap_servers: ['{server}']"),
            "4:23 cluster.bootstrap_servers[0]",
            f"'{server}' isn't possible here; allowed: host:port, such as kafka-1:9092",
        )
        for name, server in (
            ("template_header", "#jinja2:9092"),
            ("option", "--help:9092"),
            ("empty_label", "a..b:9092"),
            ("braces", "{{x}}:9092"),
            ("shell", "$(id):9092"),
            ("no_such_port", "kafka-1:65536"),
            ("port_0", "kafka-1:0"),
        )
    ),
    ("no_brokers", line(4, "  brokers: []"), "4:3 cluster.brokers", "allowed: at least one item"),
    ("broker_bare", line(4, "  brokers: [1, {id: 2}, {id: 3}]"), "4:13 cluster.brokers[0]", "allowed: a mapping"),
    ("id_missing", line(4, "  brokers: [{rack: a}]"), "4:13 cluster.brokers[0].id", "is missing"),
    ("id_text", line(4, '  brokers: [{id: "1"}]'), "4:14 cluster.brokers[0].id", "'1' isn't possible here"),
    ("id_float", line(4, "  brokers: [{id: 1.0}]"), "4:14 cluster.brokers[0].id", "1.0 isn't possible here"),
    ("id_no", line(4, "  brokers: [{id: no}]"), "4:14 cluster.brokers[0].id", "YAML reads yes, no, on and off"),
    ("id_negative", line(4, "  brokers: [{id: -1}]"), "4:14 cluster.brokers[0].id", "from 0 to 2147483647"),
    ("id_too_large", line(4, "  brokers: [{id: 2147483648}]"), "4:14 cluster.brokers[0].id", "from 0 to 2147483647"),
    ("id_octal", line(4, "  brokers: [{id: 010}]"), "4:14 cluster.brokers[0].id", "'010' isn't possible here"),
    ("id_sexagesimal", line(4, "  brokers: [{id: 1:30}]"), "4:14 cluster.brokers[0].id", "'1:30' isn't possible"),
    ("id_nan", line(4, "  brokers: [{id: .nan}]"), "4:14 cluster.brokers[0].id", "'.nan' isn't possible here"),
    ("rack_on", line(4, "  brokers: [{id: 1, rack: on}]"), "4:21 cluster.brokers[0].rack", "quote them"),
    ("rack_number", line(4, "  brokers: [{id: 1, rack: 1}]"), "4:21 cluster.brokers[0].rack", 'in quotes ("1")'),
    ("rack_typo", line(4, "  brokers: [{id: 1, rak: a}]"), "4:21 cluster.brokers[0].rak", "did you mean 'rack'?"),
    # where the topics come from
    (
        "state_absolute",
        line(5, "  state: {assignment: /x.txt}", FROM_FILES),
        "5:11 cluster.state.assignment",
        "a path relative to this file",
    ),
    # inline topics
    ("topics_empty", "".join(SOUND.splitlines(True)[:4]) + "  topics: []\n", "5:3 cluster.topics", "at least one"),
    ("topic_name_blank", line(6, "    - name: or ders"), "6:7 cluster.topics[0].name", "1 to 249 of the characters"),
    ("topic_name_dots", line(6, '    - name: ".."'), "6:7 cluster.topics[0].name", "1 to 249 of the characters"),
    ("topic_name_yes", line(6, "    - name: yes"), "6:7 cluster.topics[0].name", "true (YAML reads yes"),
    (
        "config_list",
        line(7, "      config: {cleanup.policy: [compact]}"),
        "7:16 cluster.topics[0].config['cleanup.policy']",
        "a list isn't possible here",
    ),
    ("config_key", line(7, "      config: {a b: 1}"), "7:16 cluster.topics[0].config['a b']", "such as min.insync"),
    (
        "no_partitions",
        "".join(SOUND.splitlines(True)[:7]) + "      partitions: []\n",
        "8:7 cluster.topics[0].partitions",
        "at least one item",
    ),
    ("replicas_missing", line(9, "        - {size: 1MB}"), "9:11 cluster.topics[0].partitions[0].replicas", "missing"),
    (
        "replicas_empty",
        line(9, "        - {replicas: []}"),
        "9:12 cluster.topics[0].partitions[0].replicas",
        "at least one item",
    ),
    (
        "replica_twice",
        line(9, "        - {replicas: [1, 2, 1]}"),
        "9:29 cluster.topics[0].partitions[0].replicas[2]",
        "1 is here twice",
    ),
    (
        "leader_minus_1",
        line(9, "        - {replicas: [1, 2], leader: -1}"),
        "9:30 cluster.topics[0].partitions[0].leader",
        "allowed: a broker's id or none",
    ),
    (
        "explicit_partition_id",
        line(9, "        - {partition: 0, replicas: [1, 2]}"),
        "9:12 cluster.topics[0].partitions[0].partition",
        "unknown key",
    ),
    (
        "size_millibits",
        line(9, "        - {replicas: [1, 2], size: 5mb}"),
        "9:30 cluster.topics[0].partitions[0].size",
        "'5mb' has an unknown unit 'mb'; allowed: a size such as 4TiB",
    ),
    (
        "size_rate",
        line(9, "        - {replicas: [1, 2], size: 5MB/s}"),
        "9:30 cluster.topics[0].partitions[0].size",
        "'5MB/s' isn't a size",
    ),
    (
        "size_negative",
        line(9, "        - {replicas: [1, 2], size: -5}"),
        "9:30 cluster.topics[0].partitions[0].size",
        "-5 is below 0",
    ),
    (
        "size_float",
        line(9, "        - {replicas: [1, 2], size: 1.5}"),
        "9:30 cluster.topics[0].partitions[0].size",
        "1.5 isn't possible here; allowed: a size, such as 12GiB",
    ),
    (
        "size_beyond_64_bits",
        line(9, "        - {replicas: [1, 2], size: 9EiB}"),
        "9:30 cluster.topics[0].partitions[0].size",
        "more than 2^63 - 1 bytes",
    ),
]

"""Specs whose file, or whose description of the cluster, is wrong; data for test_spec_bad_input."""

from __future__ import annotations

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
    """The sound spec with more text from line 11 on."""
    return SOUND + text


def line(number: int, text: str, base: str = SOUND) -> str:
    """The base with one line changed."""
    lines = base.splitlines()
    lines[number - 1] = text
    return "\n".join(lines) + "\n"


NESTED = "a: " + "[" * 60 + "]" * 60
BOMB = "".join(
    f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]\n" if level else "l0: &l0 [x]\n" for level in range(7)
)

# name, spec, "line:column key" of the only finding, a part of its message
CLUSTER_CASES: list[Case] = [
    # the file as a whole
    ("empty", "", "", "the file is empty"),
    ("comments_only", "# nothing\n", "", "the file is empty"),
    ("two_documents", "version: 1\n---\nversion: 1\n", "2:1", "not YAML: expected a single document"),
    ("top_level_list", "- version: 1\n", "1:1", "a list isn't a specification"),
    ("top_level_text", "hello\n", "1:1", "'hello' isn't a specification"),
    ("top_level_null", "null\n", "1:1", "nothing isn't a specification"),
    ("unclosed_bracket", "version: 1\ncluster: [1, 2\n", "3:1", "not YAML"),
    ("tab_indent", "version: 1\ncluster:\n\tname: x\n", "3:1", "not YAML"),
    ("bare_star", after("topics: {include: [*]}\n"), "11:21", "not YAML: while scanning an alias"),
    ("unknown_alias", after("topics: *gone\n"), "11:9", "undefined alias 'gone'"),
    ("not_utf8", b"version: 1\n# caf\xe9\n", "2:6", "byte 0xe9 isn't UTF-8"),
    ("utf16", "version: 1\n".encode("utf-16"), "1:1", "isn't UTF-8"),
    ("control_character", "version: 1\nx: \x07\n", "2:4", "character 7 isn't allowed"),
    ("half_a_character", line(3, '  name: "\\ud83d"'), "3:9 cluster.name", r"'\ud83d' has half a character"),
    ("alias_loop", "version: &a [*a]\n", "1:10", "contains its own alias"),
    ("alias_bomb", BOMB, "1:1", "aliases make"),
    ("nested", NESTED, "1:44", "nested too deeply"),
    ("nested_beyond_the_parser", "a: " + "[" * 5000 + "]" * 5000, "", "nested too deeply"),
    ("python_tag", after("limits: !!python/object:os.system {}\n"), "11:9 limits", "isn't allowed; leave the tag out"),
    ("list_as_key", after("limits: {[1, 2]: 3}\n"), "11:10 limits", "a key can't be a mapping or a list"),
    ("duplicate_key", after("version: 1\n"), "11:1 version", "is here twice; the first is in line 1"),
    ("duplicate_inner_key", line(3, "  name: a\n  name: b"), "4:3 cluster.name", "the first is in line 3"),
    # version and top level
    ("version_missing", SOUND.removeprefix("version: 1\n"), "1:1 version", "is missing"),
    ("version_2", line(1, "version: 2"), "1:1 version", "2 isn't possible here; allowed: 1"),
    ("unknown_top_key", after("change: {}\n"), "11:1 change", "did you mean 'changes'?"),
    ("top_key_in_capitals", after("BALANCE: {}\n"), "11:1 BALANCE", "did you mean 'balance'?"),
    ("key_nobody_means", after("xyzzy: {}\n"), "11:1 xyzzy", "unknown key; allowed: version, cluster"),
    ("cluster_missing", "version: 1\n", "1:1 cluster", "is missing"),
    ("cluster_list", "version: 1\ncluster: []\n", "2:1 cluster", "a list isn't possible here; allowed: a mapping"),
    ("changes_empty", after("changes:\n"), "11:1 changes", "nothing isn't possible here; allowed: a mapping"),
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
    ("broker_twice", line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}, {id: 2}]"), "4:41 cluster.brokers[3].id", "twice"),
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
    (
        "some_racks",
        line(4, "  brokers: [{id: 1, rack: a}, {id: 2}, {id: 3, rack: c}]"),
        "4:31 cluster.brokers[1].rack",
        "broker 2 has no rack, but others have",
    ),
    # where the topics come from
    ("no_topics", "".join(SOUND.splitlines(True)[:4]), "2:1 cluster", "neither state nor topics"),
    (
        "both_sources",
        line(4, "  brokers: [{id: 1}, {id: 2}, {id: 3}]\n  state: {assignment: x.txt}"),
        "6:3 cluster.topics",
        "both state and topics",
    ),
    (
        "state_empty",
        line(5, "  state: {}", FROM_FILES),
        "5:3 cluster.state.assignment",
        "is missing",
    ),
    (
        "state_absolute",
        line(5, "  state: {assignment: /x.txt}", FROM_FILES),
        "5:11 cluster.state.assignment",
        "a path relative to this file",
    ),
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
    # inline topics
    ("topics_empty", "".join(SOUND.splitlines(True)[:4]) + "  topics: []\n", "5:3 cluster.topics", "at least one"),
    ("topic_name_blank", line(6, "    - name: or ders"), "6:7 cluster.topics[0].name", "1 to 249 of the characters"),
    ("topic_name_dots", line(6, '    - name: ".."'), "6:7 cluster.topics[0].name", "1 to 249 of the characters"),
    ("topic_name_yes", line(6, "    - name: yes"), "6:7 cluster.topics[0].name", "true (YAML reads yes"),
    (
        "topic_twice",
        after("    - {name: orders, partitions: [{replicas: [1]}]}\n"),
        "11:8 cluster.topics[1].name",
        "'orders' is here twice",
    ),
    (
        "config_list",
        line(7, "      config: {cleanup.policy: [compact]}"),
        "7:16 cluster.topics[0].config['cleanup.policy']",
        "a list isn't possible here",
    ),
    ("config_key", line(7, "      config: {a b: 1}"), "7:16 cluster.topics[0].config['a b']", "such as min.insync"),
    *(
        (
            f"config_mistyped_{wrong}",
            line(7, f"      config: {{{wrong}: 2}}"),
            f"7:16 cluster.topics[0].config['{wrong}']",
            f"Kafka has no topic configuration of this name; did you mean '{meant}'?",
        )
        for wrong, meant in (
            ("min.insync.replica", "min.insync.replicas"),
            ("min.insync_replicas", "min.insync.replicas"),
            ("Retention.ms", "retention.ms"),
            ("log.segment.bytes", "segment.bytes"),
        )
    ),
    (
        "min_insync_text",
        line(7, "      config: {min.insync.replicas: two}"),
        "7:16 cluster.topics[0].config['min.insync.replicas']",
        "min.insync.replicas is 'two'; allowed: a whole number from 1",
    ),
    (
        "min_insync_0",
        line(7, "      config: {min.insync.replicas: 0}"),
        "7:16 cluster.topics[0].config['min.insync.replicas']",
        "min.insync.replicas is '0'",
    ),
    (
        "retention_with_unit",
        line(7, "      config: {retention.ms: 7d}"),
        "7:16 cluster.topics[0].config['retention.ms']",
        "retention.ms is '7d'; allowed: a whole number from -1",
    ),
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
        "replica_unknown",
        line(9, "        - {replicas: [1, 2, 9]}"),
        "9:11 cluster.topics[0].partitions[0]",
        "has a replica on broker 9, which isn't in cluster.brokers; allowed: 1, 2, 3",
    ),
    (
        "leader_elsewhere",
        line(9, "        - {replicas: [1, 2], leader: 3}"),
        "9:11 cluster.topics[0].partitions[0]",
        "leader 3 isn't a replica; allowed: none, 1, 2",
    ),
    (
        "leader_minus_1",
        line(9, "        - {replicas: [1, 2], leader: -1}"),
        "9:30 cluster.topics[0].partitions[0].leader",
        "allowed: a broker's id or none",
    ),
    (
        "isr_elsewhere",
        line(9, "        - {replicas: [1, 2], isr: [1, 3]}"),
        "9:11 cluster.topics[0].partitions[0]",
        "broker 3 of the ISR isn't a replica",
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
    (
        "sizes_beyond_64_bits",
        line(9, "        - {replicas: [1, 2], size: 7EiB}"),
        "5:3 cluster.topics",
        "all replicas together have",
    ),
]

"""Every supported Ansible reads a plan full of hostile strings. They come back unchanged, and none is run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import hostile
import pytest
from plan_documents import Document, change, document, new_partitions, typed
from playbooks import Playbooks
from test_ansible import staged

from planner.export import ansible_vars, output_folder, templated_files

pytestmark = pytest.mark.ansible

# The role's variables with strings from outside, by the planner's names for them.
FOREIGN = {
    "kafka_bin_dir": "kafka_reassign_bin_dir",
    "bootstrap_servers": "kafka_reassign_bootstrap_servers",
    "racks_of_broker": "kafka_reassign_racks",
    "log_dirs": "kafka_reassign_log_dirs",
}

ARGV = """\
import json, pathlib, sys
pathlib.Path(__file__).with_name("argv.json").write_text(json.dumps(sys.argv[1:]))
"""

READ_BACK = """\
- name: Read the role's files
  kafka_reassign_files:
    digests: "{{ kafka_reassign_digests }}"
    hooks: []
    texts: [new-partitions.json]
  register: kafka_reassign_files_found
- name: Write all variables to a file
  ansible.builtin.copy:
    content: "{{ {VALUES} | to_json }}"
    dest: "{{ answers }}/values.json"
    mode: "0600"
- name: Give them to a command
  ansible.builtin.command:
    argv: >-
      {{ [answers ~ '/argv.py', kafka_reassign_bin_dir ~ '/x', kafka_reassign_bootstrap_servers | join(',')]
      + kafka_reassign_bootstrap_servers + kafka_reassign_new['n'].config_options
      + kafka_reassign_log_dirs.apply.values() | map('first') | list }}
    expand_argument_vars: false
- name: Loop over {{ kafka_reassign_racks.values() | join(', ') }}
  ansible.builtin.debug:
    msg: "rack {{ item }}"
  loop: "{{ kafka_reassign_racks.values() | list }}"
  loop_control:
    label: "{{ item }}"
- name: Fail with them
  ansible.builtin.assert:
    that: kafka_reassign_found | length == 0
    fail_msg: "They are {{ kafka_reassign_found | join(', ') }}"
  vars:
    kafka_reassign_found: >-
      {% set found = namespace(rows=[]) -%}
      {% for broker, rack in kafka_reassign_racks.items() -%}
      {% set found.rows = found.rows + ['broker ' ~ broker ~ ' in ' ~ rack] -%}
      {% endfor -%}
      {{ found.rows }}
"""
PLAY = """\
- name: Read everything back
  hosts: kafka_admin
  gather_facts: false
  tasks:
    - name: Read everything back
      ansible.builtin.import_role:
        name: kafka_reassign
        tasks_from: read_back
"""


@dataclass(frozen=True)
class Given:
    """The hostile strings, and the file that each would create if it ran."""

    canary: Path
    strings: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The strings that a program can get as arguments. An argument can't contain NUL."""
        return tuple(text for text in self.strings if "\0" not in text)

    @property
    def printed(self) -> tuple[str, ...]:
        """The strings that Kafka's tools could print within a line."""
        return tuple(text for text in self.strings if text.strip() and not set(text) & set(map(chr, range(32))))


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    """The test's strings. At the end of the test, none of them has run."""
    canary = tmp_path / "canary"
    yield Given(canary, hostile.strings(canary))
    assert not canary.exists()


def plan(racks: tuple[str, ...], words: tuple[str, ...], servers: tuple[str, ...], bin_dir: str) -> Document:
    """A plan with one broker for each rack. Each word is a log dir and a config of a new topic."""
    moves = [
        change("a", number, [1], [number + 1]) | {"log_dirs": [path], "log_dirs_before": [path]}
        for number, path in enumerate(filter(None, words))  # because a plan's log dir is never empty
    ]
    configs = {f"c.{number}": word for number, word in enumerate(words)}
    new = {
        "topic": "n", "partitions_before": 0, "partitions": 1, "replication_factor": 1, "config": configs,
        "replicas": [[1]], "replica_assignment": "1",
    }  # fmt: skip
    made = document(
        moves,
        cluster={"name": racks[0], "bootstrap_servers": list(servers), "sizes_known": True},
        execution={"throttle_bytes_per_sec": None, "kafka_bin_dir": bin_dir},
        new_partitions=new_partitions(new),
    )
    broker = made["brokers"][0]
    return made | {"brokers": [{**broker, "id": number, "rack": rack} for number, rack in enumerate(racks, start=1)]}


def test_every_variable_is_read_back_as_it_is(given: Given, programs: Path, tmp_path: Path) -> None:
    """The strings come back unchanged as values, as arguments, and through loops, names and messages."""
    planned = plan(given.strings, given.arguments, given.arguments, given.strings[0])
    output_folder.write(tmp_path / "out", templated_files.files(typed(planned)))
    playbooks = Playbooks(tmp_path / "out" / "ansible", tmp_path / "home", programs)
    (playbooks.folder / "read_back.yml").write_text(PLAY)
    asked = ", ".join(f"'{name}': {variable}" for name, variable in FOREIGN.items())
    tasks = playbooks.folder / "roles" / "kafka_reassign" / "tasks" / "read_back.yml"
    tasks.write_text(READ_BACK.replace("VALUES", asked))
    program = tmp_path / "argv.py"
    program.write_text(f"#!{sys.executable}\n{ARGV}")
    program.chmod(0o755)

    run = playbooks.play("read_back", "-e", f"answers={tmp_path}")

    assert "They are broker 1 in" in run.text, run.output
    wanted = ansible_vars.values(typed(planned))
    assert json.loads(json.dumps(_foreign(wanted))) == json.loads((tmp_path / "values.json").read_text())
    options = json.loads((tmp_path / "out" / "new-partitions.json").read_text())["n"]["config_options"]
    dirs = [path for paths in wanted["log_dirs"]["apply"].values() for path in paths]
    servers = wanted["bootstrap_servers"]
    argv = [f"{given.strings[0]}/x", ",".join(servers), *servers, *options, *dirs]
    assert argv == json.loads((tmp_path / "argv.json").read_text())


def _foreign(values: Document) -> Document:
    """The role's values, in the form in which the play writes them."""
    return {name: values[name] for name in ("kafka_bin_dir", "bootstrap_servers", "racks_of_broker", "log_dirs")}


def test_playbook_hands_every_string_on_as_it_is(given: Given, programs: Path, tmp_path: Path) -> None:
    """The checks pass if brokers print the plan's racks and log dirs, and the topic is created with its configs."""
    servers = ("kafka-1:9092", "[::1]:9092")
    site = staged(tmp_path, lambda bin_dir: plan(given.printed, given.printed, servers, str(bin_dir)))
    racks = {str(number): rack for number, rack in enumerate(given.printed, start=1)}
    paths = {str(number): [path] for number, path in enumerate(given.printed, start=1)}
    paths["1"] = list(given.printed)
    partitions = {f"a-{number}": {"replicas": [1], "leader": 1} for number in range(len(given.printed))}
    site.set_cluster(brokers=[int(broker) for broker in racks], racks=racks, log_dirs=paths, partitions=partitions)
    playbooks = replace(site.playbooks, programs=programs)

    run = playbooks.play("apply", "--tags", "precheck,create")

    assert (0, 1) == (run.code, run.changed), run.output
    [created] = [call for call in site.cluster["arguments"] if "--create" in call]
    configs = [word for number, text in enumerate(given.printed) for word in ("--config", f"c.{number}={text}")]
    assert sorted(configs) == sorted(created[created.index("--config") :])
    site.set_cluster(racks=racks | {"1": f"{given.printed[0]}!"})
    other = playbooks.play("apply", "--check")
    assert 2 == other.code, other.output
    assert "Brokers aren't in the racks that the plan has for them" in other.text

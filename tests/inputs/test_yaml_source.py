"""Reads YAML with the place of each value, and refuses what can't be read, or isn't safe, with its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from bad_cluster_specs import Case, after, assert_only_finding, each, findings, line, summary
from small_specs import SMALL, spec_of

from planner.inputs import yaml_source
from planner.model.errors import SpecError

NESTED = "a: " + "[" * 60 + "]" * 60
BOMB = "".join(
    f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]\n" if level else "l0: &l0 [x]\n" for level in range(7)
)


CASES: list[Case] = [
    # the file as a whole
    ("empty", "", "", "the file is empty"),
    ("comments_only", "# nothing\n", "", "the file is empty"),
    ("two_documents", "version: 1\n---\nversion: 1\n", "2:1", "not YAML: expected a single document"),
    ("top_level_list", "- version: 1\n", "1:1", "a list isn't a specification"),
    ("top_level_text", "hello\n", "1:1", "'hello' isn't a specification"),
    ("top_level_null", "null\n", "1:1", "nothing isn't a specification"),
    ("unclosed_bracket", "version: 1\ncluster: [1, 2\n", "3:1", "not YAML"),
    ("tab_indent", "version: 1\ncluster:\n\tname: x\n", "3:1", "cannot start any token; allowed: spaces"),
    (
        "conflict",
        "version: 1\n<<<<<<< HEAD\na: 1\n=======\n",
        "2:1",
        "'<<<<<<< HEAD' begins a merge conflict; allowed:",
    ),
    ("bare_star", after("topics: {include: [*]}\n"), "11:21", "not YAML: while scanning an alias"),
    ("unknown_alias", after("topics: *gone\n"), "11:9", "undefined alias 'gone'"),
    ("not_utf8", b"version: 1\n# caf\xe9\n", "2:6", "byte 0xe9 isn't UTF-8"),
    (
        "utf16",
        "version: 1\n".encode("utf-16"),
        "1:1",
        "the file is in UTF-16, as Windows' PowerShell writes it; allowed: text in UTF-8",
    ),
    ("control_character", "version: 1\nx: \x07\n", "2:4", "character 7 isn't allowed"),
    ("half_a_character", line(3, '  name: "\\ud83d"'), "3:9 cluster.name", r"'\ud83d' has half a character"),
    ("alias_loop", "version: &a [*a]\n", "1:10", "contains its own alias"),
    ("alias_bomb", BOMB, "1:1", "aliases make"),
    ("nested", NESTED, "1:44", "nested too deeply"),
    ("nested_beyond_the_parser", "a: " + "[" * 5000 + "]" * 5000, "", "nested too deeply"),
    ("python_tag", after("limits: !!python/object:os.system {}\n"), "11:9 limits", "isn't allowed; leave the tag out"),
    ("list_as_key", after("limits: {[1, 2]: 3}\n"), "11:10 limits", "a key can't be a mapping or a list"),
    ("merge_key", line(3, "  name: a\n  <<: {}"), "4:3 cluster['<<']", "merge keys aren't read; allowed: the keys"),
    ("duplicate_key", after("version: 1\n"), "11:1 version", "is here twice; the first is in line 1"),
    ("duplicate_inner_key", line(3, "  name: a\n  name: b"), "4:3 cluster.name", "the first is in line 3"),
]


@each(CASES)
def test_each_fault_has_its_place_key_and_message(text: str | bytes, where: str, part: str, tmp_path: Path) -> None:
    """One fault gives one finding, at its line and column, with its key."""
    assert_only_finding(tmp_path, text, where, part)


def test_a_bad_byte_behind_a_byte_order_mark_has_its_place(tmp_path: Path) -> None:
    """The column of an invalid byte doesn't count a byte order mark."""
    assert ["s.yaml:1:3"] == summary(findings(tmp_path, b"\xef\xbb\xbfab\xff"), tmp_path)
    assert ["s.yaml:1:1"] == summary(findings(tmp_path, b"\xef\xbb\xbf\xff"), tmp_path)


def test_aliases_are_values_like_others(tmp_path: Path) -> None:
    """Anchors and aliases are accepted, in flow style too."""
    text = SMALL.replace("[{replicas: [1, 2]}, {replicas: [2, 3]}]", "[&p {replicas: [1, 2]}, *p]")
    assert 2 == len(spec_of(tmp_path, text).cluster.topics[0].partitions)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    """A byte order mark, which Windows editors write, is skipped."""
    assert "demo" == spec_of(tmp_path, "\ufeff" + SMALL).cluster.name


# What libyaml accepts or reads differently from PyYAML.
UNLIKE = ["{a?b: 1}", "x:\ty", "{a: !, b: 1}", "[!1 x]", "a: |#\n  b", "b: 1\n\ufeffa: 1", 'a: "\\ud83d"']
ALIKE = [
    "a: é😀b\nc: [1, 'x', \"\\u00e9\"]",
    "a: &x {b: 1}\nc: [*x, *x]",
    "%YAML 1.1\n---\na: 'x\n  y'\n...",
    "{id: , b: 1}",
]
EXAMPLES = sorted(Path("examples").rglob("*.yaml"))


def _read(text: str) -> yaml_source.Document | str:
    try:
        return yaml_source.read_yaml(text, "s.yaml")
    except SpecError as error:
        return str(error)


@pytest.mark.parametrize("source", [*UNLIKE, *ALIKE, *EXAMPLES], ids=str)
def test_the_quick_reader_reads_as_pyyaml_does(source: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """libyaml and PyYAML give the same values, lines and columns, or the same error."""
    text = source.read_text() if isinstance(source, Path) else source
    read = _read(text)
    monkeypatch.setattr(yaml_source, "_READ_OTHERWISE", re.compile(""))
    assert _read(text) == read


def test_large_files_are_read_by_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files are read by libyaml, because PyYAML's scanner takes twenty seconds for 92,000 partitions."""
    monkeypatch.delattr(yaml, "SafeLoader")
    assert {"a": [1, "b:2"]} == yaml_source.read_yaml("a: [1, b:2]", "s.yaml").value

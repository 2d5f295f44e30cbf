"""Generated text: the only Jinja environment, and the functions that quote every value from a cluster.

Topic names, cluster names and addresses are data that others wrote. Each function returns text that its format's
parser reads back as exactly the given value. For Markdown, it is text without any markup.

A YAML file that a command writes begins with a digest, so that the command recognizes its own file.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import jinja2
import yaml
from yaml.resolver import Resolver

from planner.model.file_reading import digest, resource
from planner.model.formats import UNKNOWN, printable, replica_list

_tag_of: Callable[..., str] = Resolver().resolve

# Characters that control a terminal or are invisible: DEL, C1, and those that turn, join or separate text. Python's own
# tables would change with each version. Every format that the planner writes escapes C0 characters.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")

# Long enough for the longest topic name; a rack or a sentence may be of any length.
_LONGEST_NAME = 250
_LONGEST_TEXT = 300

# With the digest, a command replaces only files that it wrote and that nobody has edited since.
_DIGEST = "# SHA-256 of all below: "

# Markdown, HTML or GitHub could read these as markup. `@` would notify a user who has the name of a rack.
_AT_SIGN = "@<!-- -->"
_MARKUP = re.compile(r"[\\`*_{}\[\]#|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": _AT_SIGN}


def canonical_json(value: Any) -> str:
    """`value` as JSON for a file, always in this form: keys sorted, indent 1, final newline.

    ValueError for NaN and infinity, which JSON doesn't have.
    """
    return json_text(value, indent=1) + "\n"


def json_text(value: Any, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """`value` as JSON: keys sorted, letters as they are, control and invisible characters as `\\u` escapes.

    ValueError for NaN and infinity, which JSON doesn't have.
    """
    text = json.dumps(value, sort_keys=True, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return escaped(text)  # JSON has these characters only within strings


def escaped(text: str) -> str:
    """`text` with control and invisible characters as JSON's `\\u` escapes, all others as they are."""
    return _UNSEEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def page(text: str) -> str:
    """Lines for a terminal or a comment, with control and invisible characters replaced by `�`."""
    return _UNSEEN.sub("�", _CONTROL.sub("�", text))


def yaml_scalar(text: str) -> str:
    """`text` as a double-quoted YAML scalar on one line, with escapes for control and invisible characters."""
    scalar = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).rstrip("\n")
    return _UNSEEN.sub(lambda match: f"\\U{ord(match[0]):08x}", scalar)


def yaml_text(text: str) -> str:
    """`text` as a double-quoted YAML scalar that Ansible never evaluates as a template.

    It is tagged `!unsafe`, with one exception: ansible-core 2.19 and later read a tagged scalar as if it had no quotes,
    so that `!unsafe "1"` is a number. So text that YAML would not read as a string without quotes has no tag. Such text
    can't be a template: it is a number, a date, a truth value, null, `<<`, `=` or a single `!`, `&` or `*`.
    """
    scalar = yaml_scalar(text)
    reads_as_string = _tag_of(yaml.ScalarNode, text, (True, False)) == Resolver.DEFAULT_SCALAR_TAG
    return f"!unsafe {scalar}" if reads_as_string else scalar


def kafka_replica_lists(partitions: Iterable[tuple[str, int, Iterable[int], Sequence[str]]]) -> str:
    """(topic, partition, broker ids, log dirs) as the rows of Kafka's reassignment JSON, without the brackets.

    Each row is one line. A row without log dirs doesn't name any.
    """
    names = _QuotedNames()
    rows = []
    for topic, partition, replicas, log_dirs in partitions:
        dirs = f',"log_dirs":[{",".join(names[path] for path in log_dirs)}]' if log_dirs else ""
        brokers = replica_list(replicas)
        rows.append(f' {{"topic":{names[topic]},"partition":{partition},"replicas":[{brokers}]{dirs}}}')
    return ",\n".join(rows)


def kafka_partitions(partitions: Iterable[tuple[str, int]]) -> str:
    """(topic, partition) as the rows of Kafka's leader election JSON, one per line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]},"partition":{partition}}}' for topic, partition in partitions)


def kafka_topics(topics: Iterable[str]) -> str:
    """Topic names as the rows of Kafka's topics-to-move JSON, one per line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]}}}' for topic in topics)


def markdown_text(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A sentence or a name for Markdown text or a table cell, with all markup escaped."""
    escaped = "".join(_ENTITIES.get(character, character) for character in printable(value, at_most))
    return _MARKUP.sub(r"\\\g<0>", escaped.replace(_AT_SIGN, "\0")).replace("\0", _AT_SIGN)


def markdown_code(name: str, at_most: int = _LONGEST_NAME) -> str:
    """A name as a code span for a table cell. Tables need pipes escaped even inside code."""
    shown = printable(name, at_most).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else UNKNOWN


FILTERS: Mapping[str, Any] = {
    function.__name__: function
    for function in (canonical_json, yaml_text, kafka_replica_lists, kafka_partitions, kafka_topics)
}


class _QuotedNames(dict[str, str]):
    """Maps a name or path to its JSON string, quoted once: a plan has a million rows and a few thousand names."""

    def __missing__(self, name: str) -> str:
        self[name] = quoted = json_text(name)
        return quoted


@cache
def environment() -> jinja2.Environment:
    """The only Jinja environment. It has special delimiters, because the playbooks that it writes contain Jinja too."""
    environment = jinja2.Environment(
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        loader=jinja2.FileSystemLoader(resource("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(FILTERS)
    return environment


def is_as_written(content: bytes, title: str) -> bool:
    """True if the content is byte for byte what the command wrote under this title."""
    body = content.split(b"\n", 2)[-1].decode(errors="replace")
    return content == with_digest(title, body).encode()


def with_digest(title: str, body: str) -> str:
    """A YAML file with its title and digest, so that `is_as_written` recognizes it."""
    return f"# {title}\n{_DIGEST}{digest(body.encode())}\n{body}"

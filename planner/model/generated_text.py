"""Generated text: the one Jinja environment, and the functions through which every value from a cluster gets into it.

Topic names, cluster names and addresses are data that others wrote. Each function returns text that its format's
parser reads back as exactly the value given; for Markdown, which people read, as text without any markup.

A YAML that a command writes begins with a digest, so that the command knows it again.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import jinja2
import yaml
from yaml.resolver import Resolver

from planner.model.file_reading import resource
from planner.model.formats import UNKNOWN, printable, replica_list

_tag_of: Callable[..., str] = Resolver().resolve

# Characters that a terminal obeys or that nobody sees: DEL, C1 and what turns, joins or separates text. A list of our
# own, since Python's tables grow with each version. C0 characters are escaped by every format that we write.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f]")

# Long enough for the longest topic name; a rack or a sentence may be of any length.
_LONGEST_NAME = 250
_LONGEST_TEXT = 300

# So that a command replaces what it wrote and nobody has worked on since, and nothing else.
_DIGEST = "# SHA-256 of all below: "

# What Markdown, HTML or a forge could take for markup. `@` would notify whoever bears a rack's name.
_AT_SIGN = "@<!-- -->"
_MARKUP = re.compile(r"[\\`*_{}\[\]#|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": _AT_SIGN}


def canonical_json(value: Any) -> str:
    """The one way to write `value` as JSON on disk: keys sorted, indent 1, final newline.

    ValueError for NaN and infinity, which JSON doesn't have.
    """
    return json_text(value, indent=1) + "\n"


def json_text(value: Any, indent: int | None = None, separators: tuple[str, str] | None = None) -> str:
    """`value` as JSON: keys sorted, letters as they are, control and invisible characters as `\\u` escapes.

    ValueError for NaN and infinity, which JSON doesn't have.
    """
    text = json.dumps(value, sort_keys=True, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
    return escaped(text)  # outside of its strings JSON has none of them


def escaped(text: str) -> str:
    """`text` with control and invisible characters as JSON's `\\u` escapes, all others as they are."""
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def page(text: str) -> str:
    """A page of lines for a terminal or a comment: without control characters, and nothing in it turns text around."""
    return _UNSEEN.sub("�", _CONTROL.sub("�", text))


def yaml_scalar(text: str) -> str:
    """`text` as a double-quoted YAML scalar on one line, with escapes for control and invisible characters."""
    scalar = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).rstrip("\n")
    return _UNSEEN.sub(lambda found: f"\\U{ord(found[0]):08x}", scalar)


def yaml_text(text: str) -> str:
    """`text` as a double-quoted YAML scalar that no Ansible takes for a template, whatever it looks like.

    It is tagged `!unsafe`, with one exception: ansible-core 2.19 and later read a tagged scalar as if it had no quotes,
    so that `!unsafe "1"` is a number. What YAML would read as anything but a string goes without the tag. None of it
    can be a template: it is a number, a date, a truth value, null, `<<`, `=` or a single `!`, `&` or `*`.
    """
    scalar = yaml_scalar(text)
    reads_as_string = _tag_of(yaml.ScalarNode, text, (True, False)) == Resolver.DEFAULT_SCALAR_TAG
    return f"!unsafe {scalar}" if reads_as_string else scalar


def kafka_replica_lists(partitions: Iterable[tuple[str, int, Iterable[int], Sequence[str]]]) -> str:
    """(topic, partition, broker ids, log dirs) as the rows of Kafka's reassignment JSON, without the brackets.

    One row a line; where there are no log dirs the row doesn't name any.
    """
    names = _QuotedNames()
    rows = []
    for topic, partition, replicas, log_dirs in partitions:
        dirs = f',"log_dirs":[{",".join(names[path] for path in log_dirs)}]' if log_dirs else ""
        brokers = replica_list(replicas)
        rows.append(f' {{"topic":{names[topic]},"partition":{partition},"replicas":[{brokers}]{dirs}}}')
    return ",\n".join(rows)


def kafka_partitions(partitions: Iterable[tuple[str, int]]) -> str:
    """(topic, partition) as the rows of Kafka's leader election JSON, one a line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]},"partition":{partition}}}' for topic, partition in partitions)


def kafka_topics(topics: Iterable[str]) -> str:
    """Topic names as the rows of Kafka's topics-to-move JSON, one a line, without the brackets."""
    names = _QuotedNames()
    return ",\n".join(f' {{"topic":{names[topic]}}}' for topic in topics)


def markdown_text(value: str, at_most: int = _LONGEST_TEXT) -> str:
    """A sentence or a name for Markdown's running text or table cell: nothing in it is markup any more."""
    escaped = "".join(_ENTITIES.get(character, character) for character in printable(value, at_most))
    return _MARKUP.sub(r"\\\g<0>", escaped.replace(_AT_SIGN, "\0")).replace("\0", _AT_SIGN)


def markdown_code(name: str, at_most: int = _LONGEST_NAME) -> str:
    """A name as a code span for a table cell; pipes are escaped there even inside code."""
    shown = printable(name, at_most).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else UNKNOWN


FILTERS: Mapping[str, Any] = {
    function.__name__: function
    for function in (canonical_json, yaml_text, kafka_replica_lists, kafka_partitions, kafka_topics)
}


class _QuotedNames(dict[str, str]):
    """Name or path → JSON string, quoted once: a plan has a million rows and a few thousand names."""

    def __missing__(self, name: str) -> str:
        self[name] = quoted = json_text(name)
        return quoted


@cache
def environment() -> jinja2.Environment:
    """The one Jinja environment. Its delimiters are its own, since the playbooks it writes hold Jinja themselves."""
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
    """Whether this is what the command of this title wrote, to the last byte."""
    body = content.split(b"\n", 2)[-1].decode(errors="replace")
    return content == with_digest(title, body).encode()


def with_digest(title: str, body: str) -> str:
    """A YAML file under its title and digest, by which `is_as_written` knows it."""
    return f"# {title}\n{_DIGEST}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"

"""A YAML text as plain values, with the place of every key.

PyYAML's nodes have a line and a column, but its constructed values don't, so the values are made here from the nodes.
Octal and sexagesimal numbers stay text, because YAML 1.1 reads them differently from how they look. Repeated keys and
aliases that grow without bound are refused.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from planner.inputs.importers.state_parts import place_of
from planner.inputs.importers.state_parts import shown as cut
from planner.model.errors import Finding, Place, SpecError

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # a PyYAML without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

Path = tuple[str | int, ...]
# The error in the value at a path.
PathFinding = tuple[Path, str]

DEEPEST = 40
ALIAS_GROWTH = 10
ALIAS_ALLOWANCE = 10_000

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {_TAG + name for name in ("str", "timestamp", "value")}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,99})", re.ASCII)
_FLOAT = re.compile(r"[-+]?[0-9]{1,99}\.[0-9]{0,99}", re.ASCII)
# An escape like "\ud83d" makes one, and no UTF-8 file can hold it.
_SURROGATE = re.compile("[\ud800-\udfff]")
_TRUE = {"yes", "true", "on"}
# If a text has one of these, libyaml may accept what PyYAML refuses, or count columns differently.
_READ_OTHERWISE = re.compile("[\t!?|>\ufeff]")
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True)
class Document:
    """A YAML file's values: mappings (keys are text, as written), lists, text, int, float, bool, None.

    `places` has, for each path, where its key (in a mapping) or its item (in a list) begins. `moved` is a path and the
    path where its value is written; both empty if no value is moved (see `instead`).
    """

    file: str
    value: Any
    places: Mapping[Path, Place]
    findings: tuple[Finding, ...]
    moved: tuple[Path, Path] = ((), ())

    def instead(self, path: Path, source: Path) -> Self:
        """The document with the value at `source` in place of the one at `path`, a top-level key.

        Places and keys in findings are those of the file: a path under `path` becomes one under `source`.
        """
        return replace(self, value={**self.value, path[0]: self.get(*source)}, moved=(path, source))

    def path_in_file(self, path: Path) -> Path:
        """The path in the file for a path of this document."""
        target, source = self.moved
        return source + path[len(target) :] if target and path[: len(target)] == target else path

    def get(self, *path: str | int) -> Any:
        """The value at a path, None if there is none."""
        value = self.value
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return None
        return value

    def items(self, *path: str | int) -> Iterator[tuple[Path, Any]]:
        """The path and value of each item of the list at a path; empty if there is no list."""
        values = self.get(*path)
        for index, item in enumerate(values if isinstance(values, list) else ()):
            yield (*path, index), item

    def place(self, path: Path) -> Place:
        """The place of a path, or of its closest ancestor that exists."""
        path = self.path_in_file(path)
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file))

    def finding(self, path: Path, message: str) -> Finding:
        """A finding about the value at a path."""
        return Finding(self.place(path), key_text(self.path_in_file(path)), message)

    def with_places(self, findings: Iterable[PathFinding | Finding]) -> Iterator[Finding]:
        """Findings with places: pairs of path and message get the path's place, complete findings stay as they are."""
        return (each if isinstance(each, Finding) else self.finding(*each) for each in findings)


def key_text(path: Path) -> str:
    """A path as people read it: `changes.add_brokers[0].id`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{step!r}]"
    return text


def shown(value: object) -> str:
    """A short form of a value for a message, with a hint if YAML may have read it differently than meant."""
    match value:
        case bool():
            hint = "YAML reads yes, no, on and off as booleans too; quote them where they are names"
            return f"{str(value).lower()} ({hint})"
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case _:
            return cut(value)


def decode(data: bytes, file: str) -> str:
    """The text of a file in UTF-8, with or without a byte order mark; SpecError names the first bad byte."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        message = "the file is in UTF-16, as Windows' PowerShell writes it; allowed: text in UTF-8"
        raise SpecError([Finding(Place(file, 1, 1), "", message)])
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8")
        message = f"byte 0x{data[error.start]:02x} isn't UTF-8; allowed: text in UTF-8"
        raise SpecError([Finding(place_of(good, len(good), file), "", message)]) from None


def read_yaml(text: str, file: str) -> Document:
    """The document in a YAML text. SpecError if it can't be read at all; other errors are in its `findings`."""
    root = _compose(text, file)
    reader = _NodeReader(file)
    reader.check_growth(root)
    value = reader.value(root, ())
    if not isinstance(value, dict):
        message = f"{shown(value)} isn't a specification; allowed: a mapping with the keys version and cluster"
        raise SpecError([*reader.findings, Finding(_place(file, root), "", message)])
    return Document(file, value, reader.places, tuple(reader.findings))


class _QuickLoader(Composer, _Loader):
    """Makes nodes from libyaml's events, ten times faster. libyaml's own composer crashes on deep nesting."""

    def __init__(self, text: str) -> None:
        _Loader.__init__(self, text)
        Composer.__init__(self)


def _compose(text: str, file: str) -> Node:
    if not _READ_OTHERWISE.search(text):
        # If this fails, PyYAML below gives the error message.
        with suppress(yaml.YAMLError, UnicodeError, RecursionError):
            if (node := yaml.compose(text, Loader=_QuickLoader)) is not None:
                return node
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        if conflict := re.search(r"^(<{7}(?: [^\r\n]*)?)\r?$", text, re.MULTILINE):
            message = (
                f"{conflict[1][:60]!r} begins a merge conflict; allowed: one of its two sides, without the markers"
            )
            raise SpecError([Finding(place_of(text, conflict.start(), file), "", message)]) from None
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        # YAML allows no tabs at the beginning of a line.
        spaces = "; allowed: spaces" if "'\\t'" in problem else ""
        raise SpecError([Finding(place, "", f"not YAML: {problem}{spaces}")]) from None
    except yaml.reader.ReaderError as error:
        message = f"not YAML: character {error.character!r} isn't allowed"
        raise SpecError([Finding(place_of(text, error.position, file), "", message)]) from None
    except RecursionError:
        raise SpecError([Finding(Place(file), "", f"nested too deeply; allowed: {DEEPEST} levels")]) from None
    if root is None:
        raise SpecError([Finding(Place(file), "", "the file is empty; allowed: at least version and cluster")])
    return root


def _place(file: str, node: Node) -> Place:
    return Place(file, node.start_mark.line + 1, node.start_mark.column + 1)


class _NodeReader:
    """Makes values in one pass over the nodes, and collects places and findings."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[Path, Place] = {}
        self.findings: list[Finding] = []
        self.sizes: dict[int, int] = {}

    def refuse(self, node: Node, path: Path, message: str) -> None:
        self.findings.append(Finding(_place(self.file, node), key_text(path), message))

    def check_growth(self, root: Node) -> None:
        """Refuses aliases that contain themselves or multiply the file's values too much, and too deep nesting."""
        total = self._size(root, ())
        if total > ALIAS_GROWTH * len(self.sizes) + ALIAS_ALLOWANCE:
            message = f"aliases make {len(self.sizes)} values into {total}; allowed: ten times the values written"
            raise SpecError([Finding(_place(self.file, root), "", message)])

    def _size(self, node: Node, above: tuple[int, ...]) -> int:
        """The number of values under a node, with aliases counted each time they are used."""
        if id(node) in above:
            raise SpecError([Finding(_place(self.file, node), "", "this anchor's value contains its own alias")])
        if len(above) > DEEPEST:
            raise SpecError([Finding(_place(self.file, node), "", f"nested too deeply; allowed: {DEEPEST} levels")])
        if id(node) not in self.sizes:
            inside: Iterable[Node] = node.value if isinstance(node, SequenceNode) else ()
            if isinstance(node, MappingNode):
                inside = chain.from_iterable(node.value)
            self.sizes[id(node)] = 1 + sum(self._size(child, (*above, id(node))) for child in inside)
        return self.sizes[id(node)]

    def value(self, node: Node, path: Path) -> Any:
        self.places.setdefault(path, _place(self.file, node))
        match node:
            case MappingNode() if node.tag == _TAG + "map":
                return self._mapping(node, path)
            case SequenceNode() if node.tag == _TAG + "seq":
                return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
            case ScalarNode():
                return self._scalar(node, path)
        self.refuse(node, path, f"tag {node.tag} isn't allowed; leave the tag out")
        return None

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, item in node.value:
            if not isinstance(key, ScalarNode):
                self.refuse(key, path, "a key can't be a mapping or a list; allowed: text or a number")
                continue
            if key.tag == _TAG + "merge":
                message = (
                    "merge keys aren't read; allowed: the keys themselves, or an alias of a whole value (key: *name)"
                )
                self.refuse(key, (*path, key.value), message)
                continue
            inner = (*path, key.value)
            if key.value in values:
                earlier = self.places[inner]
                message = f"the key {key.value!r} is here twice; the first is in line {earlier.line}; allowed: once"
                self.refuse(key, inner, message)
                continue
            self.places[inner] = _place(self.file, key)
            values[key.value] = self.value(item, inner)
        return values

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text: str = node.value
        if _SURROGATE.search(text):
            self.refuse(node, path, f"{shown(text)} has half a character; allowed: \\U and 8 digits for a whole one")
            return None
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return text.lower() in _TRUE
            case "int":
                return int(text) if _INTEGER.fullmatch(text) else text
            case "float":
                return float(text) if _FLOAT.fullmatch(text) else text
        if node.tag not in _TEXT_TAGS:
            self.refuse(node, path, f"tag {node.tag} isn't allowed; leave the tag out")
        return text

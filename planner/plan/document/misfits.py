"""Why a JSON value isn't a plan: where, what is there, and what is allowed.

The codec's library refuses what doesn't fit, but its messages name neither the value nor the key of a mapping. So a
value that it refused is held against the same types once more, here, for the sake of one good sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec import ValidationError, convert
from msgspec import inspect as types

from planner.model.quoting import json_text
from planner.plan.document.field_types import LARGEST
from planner.plan.document.plan_types import Plan

_SHOWN_CHARACTERS = 60
_PYTHON: Mapping[type[types.Type], tuple[str, type | tuple[type, ...]]] = {
    types.StructType: ("object", dict),
    types.DictType: ("object", dict),
    types.VarTupleType: ("array", list),
    types.StrType: ("string", str),
    types.LiteralType: ("string", str),
    types.BoolType: ("boolean", bool),
    types.IntType: ("integer", int),
    types.FloatType: ("number", float),
    types.NoneType: ("null", type(None)),
}


class Misfit(NamedTuple):
    """What doesn't fit: where (`$.batches[3].elect`), the value seen, and what is allowed."""

    path: str
    seen: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.path} is {self.seen}; allowed: {self.allowed}"


def misfits(value: Any) -> Iterator[Misfit]:
    """Everything of a JSON value that keeps it from being a plan, in the order of the types."""
    return _misfits(value, _plan(), "$")


@cache
def _plan() -> types.Type:
    return types.type_info(Plan)


def _misfits(value: Any, kind: types.Type, path: str) -> Iterator[Misfit]:
    kind = _bare(kind)
    members = [_bare(each) for each in kind.types] if isinstance(kind, types.UnionType) else [kind]
    found = next((each for each in members if _is_a(value, each)), None)
    match found:
        case None:
            yield Misfit(path, shown(value), " or ".join(dict.fromkeys(map(_name, members))))
        case types.StructType():
            yield from _in_object(value, found, path)
        case types.DictType(key_type=key_type, value_type=value_type):
            for key, each in value.items():
                yield from _misfits(key, key_type, f"{path}.{_shown_key(key)}")
                yield from _misfits(each, value_type, f"{path}.{_shown_key(key)}")
        case types.VarTupleType():
            yield from _in_array(value, found, path)
        case _:
            if allowed := _refused(value, found):
                yield Misfit(path, shown(value), allowed)


def _in_array(value: list[Any], kind: types.VarTupleType, path: str) -> Iterator[Misfit]:
    if allowed := _outside(len(value), kind.min_length, kind.max_length):
        yield Misfit(path, shown(value), f"{allowed} items")
    for at, each in enumerate(value):
        if not _is_sound_row(each, kind.item_type):
            yield from _misfits(each, kind.item_type, f"{path}[{at}]")


def _is_sound_row(value: Any, kind: types.Type) -> bool:
    """Whether a row of a table is as its class says: found out at once, since there may be a million of them."""
    if not isinstance(kind, types.StructType):
        return False
    try:
        convert(value, kind.cls)
    except ValidationError:
        return False
    return True


def _refused(value: Any, kind: types.Type) -> str | None:
    """What is allowed in the place of a value of the right type; None where that is."""
    match kind:
        case types.StrType(pattern=str(pattern)):
            return None if re.search(pattern, value) else f"text that matches {pattern}"
        case types.StrType(min_length=least, max_length=most):
            allowed = _outside(len(value), least, most)
            return allowed and f"{allowed} characters"
        case types.LiteralType(values=values):
            return None if value in values else _name(kind)
        case types.IntType(ge=least, le=most) | types.FloatType(ge=least, le=most):
            return _outside(value, least, most)
    return None


def _name(kind: types.Type) -> str:
    return ", ".join(map(str, kind.values)) if isinstance(kind, types.LiteralType) else _PYTHON[type(kind)][0]


def _bare(kind: types.Type) -> types.Type:
    return kind.type if isinstance(kind, types.Metadata) else kind


def _is_a(value: Any, kind: types.Type) -> bool:
    # True and False are numbers in Python.
    return isinstance(value, _PYTHON[type(kind)][1]) and (isinstance(value, bool) is isinstance(kind, types.BoolType))


def _in_object(value: dict[str, Any], kind: types.StructType, path: str) -> Iterator[Misfit]:
    known = {field.encode_name: field for field in kind.fields}
    for key in value:
        if key not in known:
            yield Misfit(f"{path}.{_shown_key(key)}", "unknown", ", ".join(known))
    for key, field in known.items():
        if key in value and value[key] is None and not field.required:
            yield Misfit(f"{path}.{key}", "null", f"{_described(field)}, or no such key")
        elif key in value:
            yield from _misfits(value[key], field.type, f"{path}.{key}")
        elif field.required:
            yield Misfit(f"{path}.{key}", "missing", _described(field))


def _outside(value: float, least: float | None, most: float | None) -> str | None:
    """What is allowed where a number, or a length, is below the least or above the most that it may be."""
    if most is not None and abs(value) > most >= LARGEST:
        return "numbers of at most 64 bits"
    if least is not None and value < least:
        return f"at least {least:g}"
    if most is not None and value > most:
        return f"at most {most:.0f}"
    return None


def _described(field: types.Field) -> str:
    kind = field.type
    more = kind.extra_json_schema if isinstance(kind, types.Metadata) else None
    text = str((more or {}).get("description", "another value")).rstrip(".")
    return text[:1].lower() + text[1:]


def shown(value: Any) -> str:
    """A value as a message shows it: as JSON, and cut where it is long."""
    text = json_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _shown_key(key: str) -> str:
    text = shown(key)
    return text[1:-1] if text.endswith('"') else text[1:]

"""The one way between a plan and the bytes of plan.json, and from the bytes of restart.json to a restart.

It writes the bytes of `generated_text.canonical_json`: keys sorted, indent 1. It reads a plan that fits the types and
has the id of its content, and refuses everything else in one sentence: the file, the JSON path, the value, what is
allowed.
msgspec's own messages name neither the value nor the key of a mapping, so a refused value is compared with the types
once more here, for the sake of that sentence.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect as types

from planner.model.document_fields import LARGEST, Section
from planner.model.errors import PlannerError, StalePlanError
from planner.model.file_reading import json_value
from planner.model.generated_text import escaped, json_text
from planner.plan.document import plan_types
from planner.plan.document.plan_types import Plan, RestartDocument

FORMAT_VERSION: Final = "2.0"

_DECODER = msgspec.json.Decoder(Plan)
_TYPE_INFO = cache(types.type_info)
_NO_ID = "0" * 64
_ID = b'\n "plan_id"'
# Small and large numbers with a fraction: the library writes 1e16 and 0.00001 where Python writes 1e+16 and 1e-05. No
# text ends a line as they do, since its quote stands there.
_EXPONENT = re.compile(rb"e-?[0-9]+,?\n")
_FLOAT = re.compile(rb"(?<= )-?(?:0\.0000[0-9]*|[0-9]+(?:\.[0-9]+)?e-?[0-9]+)(?=,?\n)")
_BEYOND_ASCII = re.compile("[^\x00-\x7e]+")

_SHOWN_CHARACTERS = 60
# What JSON calls each type, and how Python reads it.
JSON_TYPES: Mapping[type[types.Type], tuple[str, type | tuple[type, ...]]] = {
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


def encode(plan: Plan) -> bytes:
    """The canonical bytes; ValueError if they aren't read back as this plan: msgspec checks types only on reading."""
    data = _written(plan)
    if _DECODER.decode(data) != plan:
        raise ValueError("a value of the plan isn't as its type says")
    return data


def decode(data: bytes, source: str) -> Plan:
    """The plan in a file's bytes; PlannerError, which names the file as `source`, if they aren't a plan."""
    try:
        plan = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise _refusal(data, source, str(error)) from None
    written = _written(plan)
    if written != data:  # else no key can be there twice or left out
        _require_distinct_keys(data, source)
        if next(misfits(json.loads(data)), None):
            raise _refusal(data, source, "")
    if plan.plan_id != _id_of(written):
        raise StalePlanError(f"{source}: plan_id doesn't fit the content: the plan was changed after it was made")
    return plan


def decode_restart(data: bytes, source: str) -> RestartDocument:
    """The restart in a file's bytes; PlannerError, which names the file as `source`, if they aren't one as made."""
    try:
        restart = msgspec.json.decode(data, type=RestartDocument)
    except (ValueError, RecursionError) as error:
        raise _refusal(data, source, str(error), RestartDocument) from None
    if restart != restart.identified() or restart.encoded() != data:
        raise StalePlanError(f"{source}: restart_id doesn't fit the content: the restart was changed after it was made")
    return restart


def as_json(section: Section) -> dict[str, Any]:
    """A plan, or a section of one, as JSON values."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(section))
    return document


def identified(plan: Plan) -> Plan:
    """The plan with its id, the SHA-256 of its canonical JSON without the id; PlannerError for an impossible value."""
    unidentified = msgspec.structs.replace(plan, plan_id=_NO_ID)
    data = _written(unidentified)
    try:
        _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise PlannerError(f"the plan can't be written: {next(misfits(json.loads(data)), error)}") from error
    return msgspec.structs.replace(unidentified, plan_id=_id_of(data))


def _id_of(written: bytes) -> str:
    start = written.index(_ID) + 1
    digest = hashlib.sha256(memoryview(written)[:start])
    digest.update(memoryview(written)[written.index(b"\n", start) + 1 :])
    return digest.hexdigest()


def _written(plan: Plan) -> bytes:
    data = msgspec.json.format(msgspec.json.encode(plan, order="sorted"), indent=1) + b"\n"
    if b"0.0000" in data or _EXPONENT.search(data):
        data = _FLOAT.sub(lambda match: repr(float(match[0])).encode(), data)
    if not data.isascii() or b"\x7f" in data:
        # Outside of its strings JSON has none of these characters.
        data = _BEYOND_ASCII.sub(lambda match: escaped(match[0]), data.decode()).encode()
    return data


def _refusal(data: bytes, source: str, said: str, kind: type[Section] = Plan) -> PlannerError:
    """Why this planner doesn't read bytes as a plan or a restart, in the most helpful sentence that can be said."""
    what, known, maker = "plan", FORMAT_VERSION, "whatif"
    if kind is RestartDocument:
        what, known, maker = "restart", plan_types.RESTART_VERSION, "restart"
    try:
        value = json_value(data)
    except ValueError as error:
        return PlannerError(f"{source}: can't be read as a {what}: {error}; allowed: a {what}.json as it was made")
    if not isinstance(value, dict):
        return StalePlanError(f"{source}: isn't a {what}; allowed: the {what}.json of a {what}'s folder")
    version = value.get("format_version")
    if version == known:
        wrong = str(next(misfits(value, kind), said))
    elif not isinstance(version, str) or not re.fullmatch(r"[0-9]{1,6}\.[0-9]{1,6}", version):
        wrong = f"format_version is {shown(version)}; allowed: {known}"
    elif tuple(map(int, version.split("."))) > tuple(map(int, known.split("."))):
        wrong = f"was made by a newer planner (format {version}); install the release that made the {what}"
    else:
        wrong = f"was made by an earlier planner (format {version}); make the {what} again with planner {maker}"
    return StalePlanError(f"{source}: {wrong}")


def _require_distinct_keys(data: bytes, source: str) -> None:
    """StalePlanError for a key that an object has twice: a reviewer may read one value, and a program the other."""

    def checked(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StalePlanError(f"{source}: an object has the key {shown(key)} twice; allowed: once")
            seen.add(key)

    json.loads(data, object_pairs_hook=checked)


class _Misfit(NamedTuple):
    """What doesn't fit: where (`$.batches[3].elect`), the value seen, and what is allowed."""

    path: str
    seen: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.path} is {self.seen}; allowed: {self.allowed}"


def misfits(value: Any, kind: type[Section] = Plan) -> Iterator[_Misfit]:
    """All the reasons why a JSON value isn't a plan, or of another class, in the order of the types."""
    return _misfits(value, _TYPE_INFO(kind), "$")


def _misfits(value: Any, kind: types.Type, path: str) -> Iterator[_Misfit]:
    kind = _bare(kind)
    members = [_bare(each) for each in kind.types] if isinstance(kind, types.UnionType) else [kind]
    # True and False are numbers in Python.
    alike = (each for each in members if isinstance(value, bool) is isinstance(each, types.BoolType))
    member = next((each for each in alike if isinstance(value, JSON_TYPES[type(each)][1])), None)
    match member:
        case None:
            yield _Misfit(path, shown(value), " or ".join(dict.fromkeys(map(_name, members))))
        case types.StructType():
            yield from _in_object(value, member, path)
        case types.DictType(key_type=key_type, value_type=value_type):
            for key, each in value.items():
                yield from _misfits(key, key_type, f"{path}.{_shown_key(key)}")
                yield from _misfits(each, value_type, f"{path}.{_shown_key(key)}")
        case types.VarTupleType(item_type=item_type, min_length=least, max_length=most):
            if allowed := _outside(len(value), least, most):
                yield _Misfit(path, shown(value), f"{allowed} items")
            rows = (row for row in enumerate(value) if not _is_sound_row(row[1], item_type))
            for at, each in rows:
                yield from _misfits(each, item_type, f"{path}[{at}]")
        case _:
            if allowed := _refused(value, member):
                yield _Misfit(path, shown(value), allowed)


def _is_sound_row(value: Any, kind: types.Type) -> bool:
    """True if a row fits its class; the library checks it, since there may be a million rows."""
    if not isinstance(kind, types.StructType):
        return False
    try:
        msgspec.convert(value, kind.cls)
    except msgspec.ValidationError:
        return False
    return True


def _refused(value: Any, kind: types.Type) -> str | None:
    """What is allowed instead of a value of the right type; None if the value is allowed."""
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
    return ", ".join(map(str, kind.values)) if isinstance(kind, types.LiteralType) else JSON_TYPES[type(kind)][0]


def _bare(kind: types.Type) -> types.Type:
    bare = kind.type if isinstance(kind, types.Metadata) else kind
    if isinstance(bare, types.EnumType):
        return types.LiteralType(tuple(sorted(each.value for each in bare.cls)))
    return bare


def _in_object(value: dict[str, Any], kind: types.StructType, path: str) -> Iterator[_Misfit]:
    known = {field.encode_name: field for field in kind.fields}
    for key in value:
        if key not in known:
            yield _Misfit(f"{path}.{_shown_key(key)}", "unknown", ", ".join(known))
    for key, field in known.items():
        required = is_required(field, kind)
        if key in value and value[key] is None and not required:
            yield _Misfit(f"{path}.{key}", "null", f"{_described(field)}, or no such key")
        elif key in value:
            yield from _misfits(value[key], field.type, f"{path}.{key}")
        elif required:
            yield _Misfit(f"{path}.{key}", "missing", _described(field))


def is_required(field: types.Field, kind: types.StructType) -> bool:
    """True if a key of an object may not be left out (see `Section`)."""
    return field.required or not kind.cls.__struct_config__.omit_defaults


def _outside(value: float, least: float | None, most: float | None) -> str | None:
    """What is allowed instead of a number or a length below `least` or above `most`; None if it is within."""
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
    """A value in a message: as JSON, cut if it is long."""
    text = json_text(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _shown_key(key: str) -> str:
    text = shown(key)
    return text[1:-1] if text.endswith('"') else text[1:]

"""Makes the JSON Schemas of plan.json and restart.json from the types. Their tests write them with --update-goldens.

Each class becomes a definition with its docstring. A class that may be null is written in place instead.
"""

import inspect
import json
from typing import Any

from folders import ROOT
from msgspec import NODEFAULT
from msgspec import inspect as types

from planner.model.document_fields import LARGEST, Section
from planner.plan.document.codec import JSON_TYPES, is_required
from planner.plan.document.plan_types import Plan, RestartDocument

# Definitions that keep the names they have always had in the file.
_NAMES = {"Apart": "ApartRow", "BatchRules": "BatchLimits", "Budget": "BudgetLimits", "RackTraffic": "TrafficRow"}
_SCHEMAS = ROOT / "schemas"
FILE, RESTART_FILE = _SCHEMAS / "plan.schema.json", _SCHEMAS / "restart.schema.json"


def written(document: type[Section] = Plan) -> bytes:
    """The content of the schema's file. The same types give the same bytes."""
    return (json.dumps(schema(document), indent=1, ensure_ascii=False) + "\n").encode()


def schema(document: type[Section] = Plan) -> dict[str, Any]:
    """The schema of plan.json or restart.json."""
    described = types.type_info(document)
    assert isinstance(described, types.StructType)
    definitions: dict[str, Any] = {}
    whole = _object(described, definitions)
    title = "restart.json" if document is RestartDocument else "plan.json"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return {**head, **whole, "$defs": dict(sorted(definitions.items()))}


def _object(kind: types.StructType, definitions: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": " ".join((inspect.getdoc(kind.cls) or "").split()),
        "type": "object",
        "properties": {
            field.encode_name: _value(field.type if is_required(field, kind) else left_out(field), definitions)
            for field in kind.fields
        },
        "required": [field.encode_name for field in kind.fields if is_required(field, kind)],
        "additionalProperties": False,
    }


def left_out(field: types.Field) -> types.Type:
    """The type of an optional key's value, which is never null."""
    assert field.default is None or field.default is NODEFAULT
    return _without_null(field.type)


def _without_null(kind: types.Type) -> types.Type:
    match kind:
        case types.Metadata(type=inner):
            return types.Metadata(_without_null(inner), kind.extra_json_schema)
        case types.UnionType(types=members):
            kept = tuple(each for each in members if not isinstance(each, types.NoneType))
            return kept[0] if len(kept) == 1 else types.UnionType(kept)
    return kind


def _value(kind: types.Type, definitions: dict[str, Any]) -> dict[str, Any]:
    """A value's schema. The classes that it needs are added to `definitions`."""
    match kind:
        case types.Metadata(type=inner, extra_json_schema=more):
            return {**_value(inner, definitions), **(more or {})}
        case types.StructType(cls=cls):
            name = _NAMES.get(cls.__name__, cls.__name__)
            if name not in definitions:
                definitions[name] = {}  # a placeholder: no class holds itself, but two may hold a third
                definitions[name] = _object(kind, definitions)
            return {"$ref": f"#/$defs/{name}"}
        case types.EnumType(cls=cls):
            return _value(types.LiteralType(tuple(sorted(cls))), definitions)
        case types.UnionType(types=members):
            return _union(members, definitions)
    return {"type": JSON_TYPES[type(kind)][0], **_allowed(kind, definitions)}


def _union(members: tuple[types.Type, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value or null, or of a number with or without a fraction."""
    merged: dict[str, Any] = {}
    names = []
    for each in members:
        found = _object(each, definitions) if isinstance(each, types.StructType) else _value(each, definitions)
        names.append(found.pop("type"))
        merged |= found
    if "number" in names:
        names.remove("integer")
    return {"type": names[0] if len(names) == 1 else names, **merged}


def _allowed(kind: types.Type, definitions: dict[str, Any]) -> dict[str, Any]:
    """The limits on a value of a type. The limit of 64 bits for numbers isn't stated."""
    found: dict[str, Any] = {}
    match kind:
        case types.IntType(ge=least, le=most) | types.FloatType(ge=least, le=most):
            limits = {"minimum": least, "maximum": most}
            found = {key: int(value) for key, value in limits.items() if value is not None and abs(value) < LARGEST}
        case types.StrType(pattern=pattern, min_length=least):
            found = {"pattern": pattern, "minLength": least}
        case types.LiteralType(values=values):
            found = {"enum": list(values)}
        case types.VarTupleType(item_type=item, min_length=least, max_length=most):
            found = {"items": _value(item, definitions), "minItems": least, "maxItems": most}
        case types.DictType(key_type=key, value_type=value):
            names = _value(key, definitions)
            found = {
                "propertyNames": names if "pattern" in names else None,
                "additionalProperties": _value(value, definitions),
            }
    return {key: value for key, value in found.items() if value is not None}

"""Makes the reference pages of docs/ from the JSON Schemas: one table for each mapping, in the schema's order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import yaml
from docs_pages import ROOT

from planner.inputs.spec.schema_errors import allowed
from planner.model.file_reading import resource

Schema = Mapping[str, Any]

_YAML_INTRO = """# Every key of the YAML

Use this to look up a key. [recipes.md](recipes.md) starts from the task instead.

## An annotated example

This is [examples/annotated/every-section.yaml](../examples/annotated/every-section.yaml):

```yaml
{example}```

The tables below are made from [schemas/spec.schema.json](../schemas/spec.schema.json), the same file that
`planner validate` checks against. An editor that supports JSON Schema completes and explains the keys while you write.
A name that ends in `[]` is an item of a list; one that ends in `{{}}` is a value under a key of your own. Keys in
**bold** are required.
"""
_PLAN_INTRO = """# plan.json

Use this to read a plan with a program. All other files of a plan are generated from this one. The page is made from
[schemas/plan.schema.json](../schemas/plan.schema.json). A name that ends in `[]` is an item of a list; one that ends in
`{}` is a value under a key of its own. Keys in **bold** are always present.
"""


def spec_page() -> str:
    """The content of docs/yaml.md."""
    example = (ROOT / "examples" / "annotated" / "every-section.yaml").read_text(encoding="utf-8")
    return _page("spec.schema.json", _YAML_INTRO.format(example=example))


def plan_page() -> str:
    """The content of docs/plan-json.md."""
    return _page("plan.schema.json", _PLAN_INTRO)


def _page(name: str, intro: str) -> str:
    schema = json.loads(resource("schemas", name).read_text(encoding="utf-8"))
    return intro + "".join(_mapping("", schema, schema, {}))


def _mapping(path: str, schema: Schema, whole: Schema, told: dict[str, str]) -> Iterator[str]:
    """A mapping's table, then the tables of the mappings inside it. `told` has the path of each table so far."""
    keys = json.dumps(schema["properties"])
    if keys in told:
        yield f"\n## {path}\n\n{schema['description']} Keys as in `{told[keys]}`.\n"
        return
    told[keys] = path
    described = f"\n{schema['description']}\n" if path else ""
    yield f"\n## {path or 'Top level'}\n{described}\n| key | value | default | what it is |\n|---|---|---|---|\n"
    inner = []
    for key, written in schema["properties"].items():
        value = _resolved(written, whole)
        bold = f"**`{key}`**" if key in schema.get("required", ()) else f"`{key}`"
        default = f"`{_yaml_text(value['default'])}`" if value.get("default") not in (None, [], {}) else ""
        yield f"| {bold} | {_cell(_value(value, whole))} | {_cell(default)} | {_cell(value['description'])} |\n"
        inner.append((f"{path}.{key}".lstrip("."), value))
    for child, value in inner:
        for name, found in _mappings(child, value, whole):
            yield from _mapping(name, found, whole, told)


def _mappings(path: str, value: Schema, whole: Schema) -> Iterator[tuple[str, Schema]]:
    """The mappings with defined keys inside a value: the value, a list's items, or the values of free keys."""
    if "properties" in value:
        yield path, value
    if "items" in value:
        yield from _mappings(f"{path}[]", _resolved(value["items"], whole), whole)
    if isinstance(value.get("additionalProperties"), Mapping):
        yield from _mappings(f"{path}{{}}", _resolved(value["additionalProperties"], whole), whole)


def _resolved(value: Schema, whole: Schema) -> Schema:
    """The value with its reference resolved. The value's own keys win."""
    if "$ref" not in value:
        return value
    found = reduce(lambda part, key: part[key], value["$ref"].removeprefix("#/").split("/"), whole)
    return {**_resolved(found, whole), **{key: said for key, said in value.items() if key != "$ref"}}


def _value(value: Schema, whole: Schema) -> str:
    """The allowed values, in the words of the program's own messages."""
    if "items" in value and value.get("type") == "array":
        return f"a list: {_value(_resolved(value['items'], whole), whole)}"
    if value.get("type") == "object":
        return "a mapping"
    return allowed(value)


def _yaml_text(value: Any) -> str:
    return yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("\n").removesuffix("\n...")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")

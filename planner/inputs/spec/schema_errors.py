"""Checks the YAML by its JSON Schema, and reports each error in a sentence with its place.

`schemas/spec.schema.json` is the only list of keys, with allowed values and units. JSON Schema has no units, so the
schema has its own keywords: `x-unit`, and `x-or-none` if `none` is allowed instead of an amount.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator

from planner.inputs.yaml_source import Document, Path, PathFinding, shown
from planner.model.amounts import AmountError, parse_amount
from planner.model.cluster import TOPIC_CONFIGS
from planner.model.errors import MOST_SHOWN, Finding, did_you_mean
from planner.model.file_reading import resource
from planner.model.formats import counted

_TYPE_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def schema_findings(document: Document) -> Iterator[Finding]:
    """The findings of the schema."""
    for error in _validator().iter_errors(document.value):
        of_key = (error.instance,) if "propertyNames" in error.absolute_schema_path else ()
        path = (*error.absolute_path, *of_key)
        yield from document.with_places(_TELLERS[str(error.validator)](path, error))


@lru_cache(maxsize=1)
def _validator() -> Validator:
    schema = json.loads(resource("schemas", "spec.schema.json").read_text(encoding="utf-8"))
    # In JSON Schema, 1.0 is an integer, but a broker id of 1.0 must be a mistake.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    checks = {"pattern": _check_pattern, "uniqueItems": _check_unique, "x-unit": _check_unit}
    extended: Callable[[Any], Validator] = validators.extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, validators=checks, type_checker=types
    )
    return extended(schema)


def _check_pattern(_: Validator, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    # Python's $ also matches before a last line break. That of ECMAScript, which JSON Schema uses, doesn't.
    if isinstance(value, str) and (value.endswith("\n") or not re.search(pattern, value)):
        yield ValidationError(f"{value!r} doesn't match {pattern}")


def _check_unit(_: Validator, kind: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    or_none = schema.get("x-or-none", False)
    if type(value) is int or (isinstance(value, str) and not (or_none and value == "none")):
        try:
            parse_amount(value, kind, schema.get("minimum", 0))
        except AmountError as error:
            yield ValidationError(f"{error}; or none" if or_none else str(error))


def _check_unique(_: Validator, is_unique: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    # In one pass, because jsonschema's own check compares every two items if they can't be sorted.
    if is_unique and isinstance(value, list) and len({_as_key(item) for item in value}) < len(value):
        yield ValidationError("some items are equal")


def _as_key(item: Any) -> str:
    """A key that is equal for equal values of a YAML."""
    return json.dumps(item, sort_keys=True)


# Reports a ValidationError and its path. Its `instance`, a value or a key, doesn't satisfy its `schema`.
_Teller = Callable[[Path, Any], Iterator[PathFinding]]
_TELLERS: dict[str, _Teller] = {}


def _tells(*keywords: str) -> Callable[[_Teller], _Teller]:
    """A decorator for the function that reports errors of these schema keywords."""

    def add(teller: _Teller) -> _Teller:
        _TELLERS.update(dict.fromkeys(keywords, teller))
        return teller

    return add


@_tells("x-unit")
def _tell_message(path: Path, error: Any) -> Iterator[PathFinding]:
    yield path, error.message


@_tells("type", "enum", "const", "pattern", "minimum", "maximum")
def _tell_value(path: Path, error: Any) -> Iterator[PathFinding]:
    """Reports a value or key of the wrong type, out of range, or that doesn't match the pattern."""
    if "x-unit" in error.schema and error.validator != "type":
        return  # x-unit reports it, in bytes
    if "enum" in error.schema and error.validator == "type":
        return  # enum reports it, with the allowed values
    quoted, value = "", error.instance
    if error.validator == "type" and type(value) in (int, float) and error.schema["type"] == "string":
        # The value may be allowed as text.
        fits = re.search(error.schema.get("pattern", ""), str(value))
        quoted = f'; in quotes ("{value}") it is text' if fits else ""
    elif error.schema.get("type") == "array" and isinstance(value, (str, int)) and len(str(value)) < 60:
        fits_as_list = _validator().evolve(schema=error.schema).is_valid([value])
        quoted = f"; in brackets ({json.dumps([value], ensure_ascii=False)}) it is one" if fits_as_list else ""
    problem = "has no value" if value is None else f"{shown(value)} isn't possible here"
    yield path, f"{problem}; allowed: {allowed(error.schema)}{quoted}"


@_tells("additionalProperties")
def _tell_unknown_keys(path: Path, error: Any) -> Iterator[PathFinding]:
    known_keys = list(error.schema["properties"])
    unknown_keys = [key for key in error.instance if key not in known_keys]
    for number, key in enumerate(unknown_keys):
        # Later findings are only counted, so they need no guess.
        guess = did_you_mean(key, known_keys, most=1) if number < MOST_SHOWN else ""
        # The key means a topic's configuration, in any spelling: `min_insync_replicas`, `retention.ms`, `set_config`.
        of_config = "config" in key or "isr" in re.split("[._-]", key) or key.replace("_", ".") in TOPIC_CONFIGS
        if of_config and "changes" in path:
            guess = f"{_ELSEWHERE}; "
        yield (*path, key), f"unknown key; {guess}allowed: {', '.join(known_keys)}"


_ELSEWHERE = (
    "no plan changes the configuration of a topic that exists, min.insync.replicas included: do so once the plan is "
    "applied, with kafka-configs.sh --alter --entity-type topics --entity-name TOPIC --add-config KEY=VALUE, or "
    "Terraform"
)


@_tells("required")
def _tell_missing_keys(path: Path, error: Any) -> Iterator[PathFinding]:
    for key in error.schema["required"]:
        if key not in error.instance:
            key_schema = error.schema["properties"][key]
            described = key_schema["description"][:1].lower() + key_schema["description"][1:].rstrip(".")
            allowed = f"{key_schema['const']} ({described})" if "const" in key_schema else described
            yield (*path, key), f"is missing; allowed: {allowed}"


@_tells("minProperties", "maxProperties")
def _tell_one_of(path: Path, error: Any) -> Iterator[PathFinding]:
    if "properties" not in error.schema:  # a mapping with free keys
        yield path, "an empty mapping isn't possible here; allowed: at least one key"
        return
    allowed = f"exactly one of {', '.join(error.schema['properties'])}"
    yield path, f"{len(error.instance)} keys aren't possible here; allowed: {allowed}"


@_tells("minItems")
def _tell_empty_list(path: Path, error: Any) -> Iterator[PathFinding]:
    least = error.schema["minItems"]
    many = "at least one item" if least == 1 else f"at least {least} items"
    amount = counted(len(error.instance), "item") if error.instance else "an empty list"
    yield path, f"{amount} isn't {'enough' if error.instance else 'possible here'}; allowed: {many}"


@_tells("uniqueItems")
def _tell_duplicates(path: Path, error: Any) -> Iterator[PathFinding]:
    seen: set[str] = set()
    for number, item in enumerate(error.instance):
        if (key := _as_key(item)) in seen:
            yield (*path, number), f"{shown(item)} is here twice; allowed: each once"
        seen.add(key)


def allowed(schema: Any) -> str:
    """A schema's allowed values in words, for messages and the reference pages."""
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(schema["enum"])
    types = schema["type"]
    words = " or ".join(_TYPE_WORDS[name] for name in ([types] if isinstance(types, str) else types))
    words += f" from {schema['minimum']}" if "minimum" in schema else ""
    words += f" to {schema['maximum']}" if "maximum" in schema else ""
    examples = ", ".join(str(example) for example in schema.get("examples", ()))
    return str(schema.get("title", words)) + (f", such as {examples}" if examples else "")

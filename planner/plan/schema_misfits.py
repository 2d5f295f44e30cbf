"""A plan document against `schemas/plan.schema.json`: each misfit with its JSON path, the value seen, and what may be.

A plan of a million replicas has long lists of rows that are all alike. Of such a list the schema judges the first row
of every shape (which keys, with values of which types); judging each row would take minutes, and whether a single
value was changed is told by the plan's id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator

from planner.model.file_reading import resource

# Lists up to this length are judged row by row.
_SHORT = 200
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Misfit:
    """What doesn't fit: where (`$.batches[3].elect`), the value seen, and what is allowed."""

    path: str
    seen: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.path} is {self.seen}; allowed: {self.allowed}"


def misfits(plan: Any, *, older: bool = False, newer: bool = False) -> Iterator[Misfit]:
    """Everything of a document that the schema refuses, in the document's order.

    An `older` minor version of the format may lack keys, a `newer` one may have more: neither is a misfit.
    """
    thinned = _Thinned()
    passed = ({"required"} if older else set()) | ({"additionalProperties"} if newer else set())
    errors = _validator().iter_errors(thinned.of(plan, ()))
    for error in sorted(errors, key=lambda each: [str(step) for step in each.absolute_path]):
        if error.validator not in passed:
            yield _misfit(error, thinned)


@lru_cache(maxsize=1)
def _validator() -> Validator:
    schema = json.loads(resource("schemas", "plan.schema.json").read_text(encoding="utf-8"))
    return Draft202012Validator(schema)


@dataclass(frozen=True)
class _Thinned:
    """Copies of a document whose long lists have one row of every shape; `kept`: the numbers of the rows, by path."""

    kept: dict[tuple[str | int, ...], list[int]] = field(default_factory=dict)

    def of(self, value: Any, path: tuple[str | int, ...]) -> Any:
        """The value at a path, thinned."""
        if isinstance(value, dict):
            return {key: self.of(each, (*path, key)) for key, each in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) > _SHORT:
            first: dict[Any, int] = {}
            for at, each in enumerate(value):
                first.setdefault(_shape(each), at)
            self.kept[path] = list(first.values())
            value = [value[at] for at in first.values()]
        return [self.of(each, (*path, at)) for at, each in enumerate(value)]

    def written(self, path: tuple[str | int, ...]) -> str:
        """A path of the copy as it is in the document."""
        text = "$"
        for at, step in enumerate(path):
            if isinstance(step, int):
                text += f"[{self.kept.get(path[:at], range(step + 1))[step]}]"
            else:
                text += f".{step}"
        return text


def _shape(value: Any) -> Any:
    """Equal for values that the schema judges alike, but for what stands in their texts and how large numbers are."""
    if isinstance(value, dict):
        return tuple((key, _shape(each)) for key, each in value.items())
    if isinstance(value, list):
        return frozenset(map(_shape, value)), not value
    negative = isinstance(value, int | float) and value < 0
    return type(value), negative, value == ""


def _misfit(error: ValidationError, thinned: _Thinned) -> Misfit:
    path, instance = thinned.written(tuple(error.absolute_path)), _any(error.instance)
    wanted, schema = _any(error.validator_value), _any(error.schema)
    match error.validator:
        case "required":
            missing = next(key for key in wanted if key not in instance)
            return Misfit(f"{path}.{missing}", "missing", _described(schema["properties"][missing]))
        case "additionalProperties":
            known = schema.get("properties", {})
            extra = next(key for key in instance if key not in known)
            return Misfit(f"{path}.{extra}", "unknown", ", ".join(known))
        case _:
            return Misfit(path, _seen(error.instance), _allowed(error))


def _any(value: Any) -> Any:
    """A part of the schema, which for jsonschema's types may be unset; of an error that was found it never is."""
    return value


def _seen(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _allowed(error: ValidationError) -> str:
    """What the keyword that was broken asks for, in words."""
    wanted = _any(error.validator_value)
    match error.validator:
        case "type":
            return " or ".join([wanted] if isinstance(wanted, str) else wanted)
        case "enum":
            return ", ".join(map(str, wanted))
        case "pattern":
            return f"text that matches {wanted}"
        case "minimum":
            return f"at least {wanted}"
        case "minItems" | "minLength":
            return f"at least {wanted} of them"
        case "uniqueItems":
            return "each once"
        case _:
            return _described(error.schema)


def _described(schema: Any) -> str:
    text = str(schema.get("description", "another value")).rstrip(".")
    return text[:1].lower() + text[1:]

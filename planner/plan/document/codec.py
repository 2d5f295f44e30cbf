"""The one way between a plan and the bytes of plan.json.

Written are the bytes of `quoting.canonical_json`: keys sorted, indent 1. Read is what fits the types and whose id is
its content's; everything else is one sentence with the file, the JSON path, the value seen and what is allowed.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final

import msgspec

from planner.model.errors import PlannerError, StalePlanError
from planner.model.file_reading import json_value
from planner.model.quoting import escaped
from planner.plan.document.field_types import Section
from planner.plan.document.misfits import misfits, shown
from planner.plan.document.plan_types import Plan

FORMAT_VERSION: Final = "2.0"

_DECODER = msgspec.json.Decoder(Plan)
_NO_ID = "0" * 64
_ID = b'\n "plan_id"'
# Small and large numbers with a fraction: the library writes 1e16 and 0.00001 where Python writes 1e+16 and 1e-05. No
# text ends a line as they do, since its quote stands there.
_EXPONENT = re.compile(rb"e-?[0-9]+,?\n")
_FLOAT = re.compile(rb"(?<= )-?(?:0\.0000[0-9]*|[0-9]+(?:\.[0-9]+)?e-?[0-9]+)(?=,?\n)")
_BEYOND_ASCII = re.compile("[^\x00-\x7e]+")


def encode(plan: Plan) -> bytes:
    """The canonical bytes of a plan; ValueError where they wouldn't be read back as this plan.

    The types are only checked when something is read, so this is where a value that can't be is found: not a number,
    a negative size, a list for a tuple.
    """
    data = _written(plan)
    if _DECODER.decode(data) != plan:
        raise ValueError("a value of the plan isn't as its type says")
    return data


def decode(data: bytes, source: str) -> Plan:
    """The plan in the bytes of a file; PlannerError, naming the file as `source`, where there is none."""
    try:
        plan = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise _refusal(data, source, str(error)) from None
    written = _written(plan)
    if written != data:  # else no key can be there twice
        _require_distinct_keys(data, source)
    if plan.plan_id != _id_of(written):
        raise StalePlanError(f"{source}: plan_id doesn't fit the content: the plan was changed after it was made")
    return plan


def as_json(section: Section) -> dict[str, Any]:
    """A plan, or a section of one, as JSON values."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(section))
    return document


def identified(plan: Plan) -> Plan:
    """The plan with its id: SHA-256 of its canonical JSON without the id; PlannerError for a value that none may have.

    A type is checked when something is read, so what is written is read here, too.
    """
    made = msgspec.structs.replace(plan, plan_id=_NO_ID)
    data = _written(made)
    try:
        _DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise PlannerError(f"the plan can't be written: {next(misfits(json.loads(data)), error)}") from error
    return msgspec.structs.replace(made, plan_id=_id_of(data))


def _id_of(written: bytes) -> str:
    start = written.index(_ID) + 1
    digest = hashlib.sha256(memoryview(written)[:start])
    digest.update(memoryview(written)[written.index(b"\n", start) + 1 :])
    return digest.hexdigest()


def _written(plan: Plan) -> bytes:
    data = msgspec.json.format(msgspec.json.encode(plan, order="sorted"), indent=1) + b"\n"
    if b"0.0000" in data or _EXPONENT.search(data):
        data = _FLOAT.sub(lambda found: repr(float(found[0])).encode(), data)
    if not data.isascii() or b"\x7f" in data:
        # Outside of its strings JSON has none of these characters.
        data = _BEYOND_ASCII.sub(lambda found: escaped(found[0]), data.decode()).encode()
    return data


def _refusal(data: bytes, source: str, said: str) -> PlannerError:
    """Why bytes aren't a plan that we read, as the most helpful sentence there is."""
    try:
        value = json_value(data)
    except ValueError as error:
        return PlannerError(f"{source}: can't be read as a plan: {error}; allowed: a plan.json as it was made")
    if not isinstance(value, dict):
        return StalePlanError(f"{source}: isn't a plan; allowed: the plan.json of a plan's folder")
    wrong = _of_another_format(value.get("format_version")) or next(misfits(value), said)
    return StalePlanError(f"{source}: {wrong}")


def _of_another_format(version: Any) -> str | None:
    if version == FORMAT_VERSION:
        return None
    if not isinstance(version, str) or not re.fullmatch(r"[0-9]{1,6}\.[0-9]{1,6}", version):
        return f"format_version is {shown(version)}; allowed: {FORMAT_VERSION}"
    if tuple(map(int, version.split("."))) > tuple(map(int, FORMAT_VERSION.split("."))):
        return f"was made by a newer planner (format {version}); install the release that made the plan"
    return f"was made by an earlier planner (format {version}); make the plan again with planner whatif"


def _require_distinct_keys(data: bytes, source: str) -> None:
    """StalePlanError for a key that an object has twice: a reviewer reads the one, a program the other."""

    def checked(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise StalePlanError(f"{source}: an object has the key {shown(key)} twice; allowed: once")
            seen.add(key)

    json.loads(data, object_pairs_hook=checked)

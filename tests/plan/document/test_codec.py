"""The codec of plan.json: the same bytes after reading and writing, and one sentence if a file is no plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from golden_plans import GOLDEN, changed, golden
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import structs
from plan_documents import typed, with_id
from plan_schemas import schema

from planner.model.errors import PlannerError
from planner.model.file_reading import json_value
from planner.model.generated_text import canonical_json
from planner.plan.document.codec import as_json, decode, encode, identified, misfits
from planner.plan.document.plan_types import Plan

SMALL = golden(min(GOLDEN, key=lambda path: path.stat().st_size))
WITH_EVERYTHING = golden(max(GOLDEN, key=lambda path: path.stat().st_size))
VALIDATOR = Draft202012Validator(schema())
AS_IT_WAS = "allowed: a plan.json as it was made"

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, -1, 0, 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab"), inner))


def plan(document: Any = None) -> Plan:
    """The plan from its JSON, with the id added."""
    return decode(canonical_json(with_id(document or SMALL)).encode(), "plan.json")


def refusal(data: bytes) -> str:
    """The codec's message when it refuses these bytes."""
    with pytest.raises(PlannerError) as refused:
        decode(data, "p/plan.json")
    assert str(refused.value).startswith("p/plan.json: ")
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix("p/plan.json: ")


def read_or_refused(data: bytes) -> Plan | str:
    """The plan in these bytes, or the codec's message; any other exception fails the test."""
    try:
        return decode(data, "p/plan.json")
    except PlannerError as error:
        return str(error)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every path in a JSON value, without the root."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield (*path, key)
        yield from paths(each, (*path, key))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_golden_plans_go_there_and_back(path: Path) -> None:
    """Reading and writing a golden plan gives the same bytes and the same id."""
    data = canonical_json(golden(path)).encode()

    read = decode(data, path.as_posix())

    assert data == encode(read)
    assert read == identified(structs.replace(read, plan_id="0" * 64))


@given(st.floats(allow_nan=False, min_value=-(2.0**63), max_value=2.0**63), st.text(st.characters(codec="utf-8")))
def test_numbers_and_texts_are_written_as_everywhere(number: float, text: str) -> None:
    """As Python writes them, with escapes for what nobody sees."""
    document = changed(changed(SMALL, ("terms", 0, "today"), number), ("cluster", "name"), text)
    document = with_id(changed(document, ("topics", 0, "config"), {text: text, "b\u202e": "\x7f", "c": "1e-5"}))
    data = canonical_json(document).encode()

    assert data == encode(decode(data, "plan.json"))


@pytest.mark.parametrize("number", [1e16, -1e16, 1e-05, -0.00001234, 1e-4, 1.5e-7, 5e-324, 0.0, -0.0, 123456789.125])
def test_rare_numbers_are_written_as_everywhere(number: float) -> None:
    """Numbers that msgspec writes differently are written like Python's, too."""
    data = canonical_json(with_id(changed(SMALL, ("terms", 0, "today"), number))).encode()

    assert data == encode(decode(data, "plan.json"))


@pytest.mark.parametrize("layout", [{"indent": 4}, {"separators": (",", ":")}, {"ensure_ascii": True}], ids=str)
def test_another_layout_of_the_same_plan_is_read(layout: dict[str, Any]) -> None:
    """A plan with another layout, for example from an editor, is read as the same plan."""
    assert plan(WITH_EVERYTHING) == decode(json.dumps(WITH_EVERYTHING, **layout).encode(), "plan.json")


@given(st.data())
def test_a_wrong_value_is_refused_where_the_schema_refuses_it(data: st.DataObject) -> None:
    """In one sentence; what fits is read and written again as it was."""
    path = data.draw(st.sampled_from(list(paths(SMALL))))
    document = with_id(changed(SMALL, path, data.draw(values | st.just(...))))
    raw = canonical_json(document).encode()

    found = read_or_refused(raw)

    if isinstance(found, Plan):
        assert raw == encode(found)
        assert VALIDATOR.is_valid(document) or _only_repeats(document)
    else:
        assert not VALIDATOR.is_valid(document) or "64 bits" in found


def _only_repeats(document: Any) -> bool:
    """True if the only error is a list with duplicates, which the types can't express."""
    return {"uniqueItems"} == {error.validator for error in VALIDATOR.iter_errors(document)}


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_refused_in_a_sentence(data: bytes) -> None:
    """Nothing but the planner's own error."""
    refusal(data)


@given(st.integers(min_value=0), st.binary(max_size=6), st.integers(min_value=0, max_value=9))
def test_broken_bytes_of_a_plan_are_refused_or_the_same_plan(at: int, put: bytes, gone: int) -> None:
    """Wherever a byte is lost or put."""
    data = canonical_json(SMALL).encode()
    at %= len(data)
    found = read_or_refused(data[:at] + put + data[at + gone :])

    assert isinstance(found, str) or found == plan()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "can't be read as a plan: line 1, column 1: Expecting value; "),
        (b"\xff", "can't be read as a plan: byte 0xff at 0 isn't UTF-8; "),
        (b'{"a": NaN}', "can't be read as a plan: NaN isn't a number in JSON; "),
        (b'{"a": 1e999}', "can't be read as a plan: 1e999 is too large a number; "),
        (b'{"a": "\\ud800"}', "can't be read as a plan: a text in it has half a character, such as \\ud800; "),
        (b'{"a": ' + b"9" * 5_000 + b"}", "can't be read as a plan: a number has thousands of digits; "),
        (b'{"a": ' + b"[" * 100_000, "can't be read as a plan: it is nested too deeply; "),
    ],
)
def test_what_is_no_json_is_told(data: bytes, said: str) -> None:
    """Content that isn't JSON is refused with the reason."""
    assert said + AS_IT_WAS == refusal(data)


@pytest.mark.parametrize("data", [b"[]", b"3", b"null", b'"plan"'])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    """JSON that isn't an object is refused."""
    assert "isn't a plan; allowed: the plan.json of a plan's folder" == refusal(data)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.5", "was made by an earlier planner (format 1.5); make the plan again with planner whatif"),
        ("2.1", "was made by a newer planner (format 2.1); install the release that made the plan"),
        ("10.0", "was made by a newer planner (format 10.0); install the release that made the plan"),
        ("2", 'format_version is "2"; allowed: 2.0'),
        (1.5, "format_version is 1.5; allowed: 2.0"),
        (None, "format_version is null; allowed: 2.0"),
    ],
)
def test_other_formats_are_refused_in_a_sentence(version: Any, said: str) -> None:
    """Older formats, newer formats and invalid versions are each refused with their own sentence."""
    assert said == refusal(canonical_json(with_id(SMALL | {"format_version": version})).encode())


def test_a_changed_plan_is_refused() -> None:
    """A plan that was changed is refused, because its id doesn't fit its content."""
    data = canonical_json(SMALL | {"headline": "Copies nothing."}).encode()

    assert "plan_id doesn't fit the content: the plan was changed after it was made" == refusal(data)


def test_a_null_that_is_left_out_is_refused() -> None:
    """A key that must be there may not be left out, even if its default is the value that the id was made with."""
    batches = SMALL["execution"]["batches"]
    left = {**SMALL, "execution": {**SMALL["execution"], "batches": {**batches, "bytes": ...}}}
    del left["execution"]["batches"]["bytes"]

    assert None is batches["bytes"]
    assert refusal(canonical_json(left).encode()).startswith("$.execution.batches.bytes is missing; allowed: ")


def test_a_key_that_is_there_twice_is_refused() -> None:
    """A duplicate key is refused even with equal values, because a reviewer and a program could read different ones."""
    data = canonical_json(SMALL).encode()

    assert 'an object has the key "rack_aware" twice; allowed: once' == refusal(
        data.replace(b' "rack_aware": ', b' "rack_aware": false,\n "rack_aware": ')
    )


@pytest.mark.parametrize(
    "wrong", [float("nan"), float("inf"), "5", [5]], ids=["not a number", "infinity", "a text", "a list"]
)
def test_a_plan_that_could_not_be_read_is_never_written(wrong: Any) -> None:
    """A plan with values that can't be read is never written, although the types alone allow building it."""
    made = plan()
    term = structs.replace(made.terms[0], today=wrong)

    with pytest.raises(ValueError, match=r"as its type says|Expected"):
        encode(structs.replace(made, terms=(term, *made.terms[1:])))


def test_a_plan_cannot_be_changed() -> None:
    """A plan is immutable."""
    with pytest.raises(AttributeError):
        plan().headline = "Copies nothing."  # type: ignore[misc]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_a_document_becomes_a_plan_and_a_document_again(path: Path) -> None:
    """A document becomes a plan and the same document again, with the id of its content."""
    document = golden(path)

    assert document == as_json(identified(typed({**document, "plan_id": "0" * 64})))


def test_a_document_with_a_value_that_no_plan_has_is_refused() -> None:
    """A value that no plan can have is refused with its path, before anything is written."""
    made = plan()
    with pytest.raises(PlannerError) as refused:
        identified(structs.replace(made, partitions=(structs.replace(made.partitions[0], size_bytes=2**63),)))

    assert str(refused.value) == (
        f"the plan can't be written: $.partitions[0].size_bytes is {2**63}; allowed: numbers of at most 64 bits"
    )


def test_what_can_be_read_as_json_stays_the_same_value() -> None:
    """The codec and the rest of the planner read the same values from a plan."""
    assert WITH_EVERYTHING == json_value(encode(plan(WITH_EVERYTHING)))


EXPAND = golden(next(path for path in GOLDEN if path.parent.name == "expand"))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("partitions", 0, "replicas", 1), "4", '$.partitions[0].replicas[1] is "4"; allowed: integer'),
        (("partitions", 0, "replicas", 1), True, "$.partitions[0].replicas[1] is true; allowed: integer"),
        (("partitions", 0, "replicas", 1), 1.0, "$.partitions[0].replicas[1] is 1.0; allowed: integer"),
        (("partitions", 0, "replicas"), [], "$.partitions[0].replicas is []; allowed: at least 1 items"),
        (("partitions", 0, "partition"), -1, "$.partitions[0].partition is -1; allowed: at least 0"),
        (("partitions", 0, "topic"), "", '$.partitions[0].topic is ""; allowed: at least 1 characters'),
        (("brokers", 0, "id"), 2**31, "$.brokers[0].id is 2147483648; allowed: at most 2147483647"),
        (
            ("partitions", 0, "size_bytes"),
            2**63,
            "$.partitions[0].size_bytes is 9223372036854775808; allowed: numbers of at most 64 bits",
        ),
        (("terms", 0, "plan"), "1", '$.terms[0].plan is "1"; allowed: integer or number or null'),
        (("terms", 0, "plan"), 1e300, "$.terms[0].plan is 1e+300; allowed: numbers of at most 64 bits"),
        (("partitions", 0, "size_bytes"), ..., "$.partitions[0].size_bytes is missing; allowed: bytes of one replica"),
        (
            ("execution", "batches", "bytes"),
            ...,
            "$.execution.batches.bytes is missing; allowed: bytes that a batch copies",
        ),
        (("partitions", 0, "reason"), "why", '$.partitions[0].reason is "why"; allowed: balance_leaders, balance_log_'),
        (("rack_aware",), "yes", '$.rack_aware is "yes"; allowed: boolean'),
        (("changes", "rebalance"), "some", '$.changes.rebalance is "some"; allowed: all, leaders, none, racks'),
        (("bound", "sha256"), "ab", '$.bound.sha256 is "ab"; allowed: text that matches ^[0-9a-f]{64}$'),
        (("changes", "set_racks"), {"x": "a"}, '$.changes.set_racks.x is "x"; allowed: text that matches ^[0-9]+$'),
        (("topics", 0, "config"), {"retention.ms": 1}, "$.topics[0].config.retention.ms is 1; allowed: string"),
        (("limits",), {"a": 1}, '$.limits is {"a": 1}; allowed: array'),
        (("resumes",), None, "$.resumes is null; allowed: the interrupted plan that this one finishes; only in such a"),
        (("cluster", "x\n\u202e"), 1, r"$.cluster.x\n\u202e is unknown; allowed: name, bootstrap_servers, sizes_known"),
    ],
)
def test_a_misfit_says_where_what_and_what_may_be(path: tuple[Any, ...], value: Any, said: str) -> None:
    """A misfit has the path, the value as JSON, and what is allowed."""
    (found,) = misfits(changed(EXPAND, path, value))

    assert str(found).startswith(said)


def test_long_values_and_names_are_cut() -> None:
    """Long values and names are cut, so that people can read the message."""
    found = [*misfits(EXPAND | {"headline": ["x" * 1_000], "y" * 1_000: 1})]

    assert 2 == len(found)
    assert all(len(each.path) < 80 and len(each.seen) < 80 for each in found)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.parent.name)
def test_no_misfit_is_found_in_a_plan(path: Any) -> None:
    """Golden plans have no misfits."""
    assert [] == [*misfits(golden(path))]

"""`planner show` of plans and journals, and what it refuses; tests/approval has `diff`, `check` and `resume`."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from folders import EXAMPLES, TESTS
from plan_documents import typed

from planner.cli import one_spec
from planner.export import folder_check
from planner.plan.document import codec

JOURNAL = (
    '{"event": "run", "said": "A run began.", "time": "2026-11-24T08:00:00Z"}\n'
    '{"event": "end", "said": "Batch 01 of 1 ended.", "time": "2026-11-24T08:01:00Z", "figures": {"batch": "01", '
    '"seconds": 60, "planned_seconds": 50, "copied_bytes": 2000000, "planned_bytes": 2000000}}\n'
)


@pytest.fixture
def whatif(planner, tmp_path):
    """Plans a spec with few candidates, in this process, into the folder `plan`."""

    def run(spec) -> None:
        options = ("--engine", "local", "--candidates", 20, "--out", tmp_path / "plan")
        assert 0 == planner("whatif", spec, *options).code

    return run


@pytest.mark.slow
def test_show_prints_the_plan_again_in_each_format(whatif, planner, tmp_path):
    """`show` prints a plan as text, JSON and Markdown; JSON is plan.json, verbose Markdown is report.md."""
    whatif(EXAMPLES / "expand.yaml")
    folder = tmp_path / "plan"

    document = json.loads(planner("show", folder, "--format", "json").out)

    assert json.loads((folder / "plan.json").read_text()) == document
    report = (folder / "report.md").read_text()
    assert report == planner("show", folder, "--format", "markdown", "--verbose").out
    assert planner("show", folder, "--format", "markdown").out.splitlines()[:5] == report.splitlines()[:5]
    assert 2 == len(planner("show", folder, "-q").out.splitlines())
    assert 0 == planner("show", folder / "plan.json").code


@pytest.mark.slow
def test_a_plan_that_was_edited_is_refused(whatif, planner, tmp_path):
    """A plan.json with one changed value is refused, because its plan_id no longer fits."""
    whatif(EXAMPLES / "expand.yaml")
    file = tmp_path / "plan" / "plan.json"
    file.write_text(file.read_text().replace('"rebalance": "all"', '"rebalance": "none"'))

    ran = planner("show", file)

    assert 1 == ran.code
    assert "changed after it was made" in ran.err


def test_a_journal_is_shown_with_planned_and_measured_figures(planner, tmp_path):
    """A journal is shown as text with planned and measured figures, and as JSON with its lines."""
    journal = tmp_path / "run.jsonl"
    journal.write_text(JOURNAL)
    ran = planner("show", "--journal", journal)
    assert (0, "") == (ran.code, ran.err)
    assert "2026-11-24T08:00:00Z  A run began.\n" in ran.out
    assert "Planned and measured" in ran.out
    found = json.loads(planner("show", "--journal", journal, "--format", "json").out)
    assert [json.loads(line) for line in JOURNAL.splitlines()] == found["entries"]


@pytest.mark.parametrize("arguments", [(), ("expand.plan", "--journal", "run.jsonl")])
def test_show_takes_a_plan_or_a_journal(planner, arguments):
    """`show` takes either a plan or a journal; neither and both are refused."""
    ran = planner("show", *arguments)
    assert (1, True) == (ran.code, "show takes a PLAN or --journal FILE, one of them" in ran.err)


def test_a_bound_is_checked_where_something_is_copied(planner):
    """A plan that only elects leaders has no prices to verify, and passes."""
    elects = planner("check", TESTS / "cases" / "leaders-only" / "plan.json", "--bound")
    assert 0 == elects.code
    assert "it copies nothing between brokers, and no plan copies less" in elects.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (("bound", "bytes_moved"), 100, "$.bound.bytes_moved is 100; counted again from $.partitions: 1"),
        (("bound", "gap_percent"), 99.5, "$.bound.gap_percent is 99.5; counted again from $.partitions: 0."),
        (("headline",), "Copies nothing.", "$.headline is 'Copies nothing.'; the plan's sections say 'Copies 1"),
        (("limits", 0, "value"), 100, "$.limits[0].value is 100; counted again from $.partitions: 1"),
    ],
)
def test_figures_that_the_partitions_do_not_give_are_refused(whatif, planner, tmp_path, place, value, told):
    """`check --bound` counts again what the plan states: bytes, gap, headline and the values of limits."""
    whatif(EXAMPLES / "expand.yaml")
    folder = tmp_path / "plan"
    document = json.loads((folder / "plan.json").read_text())
    *parents, last = place
    at = document
    for key in parents:
        at = at[key]
    at[last] = value
    forged = codec.identified(typed(document))
    files = one_spec.rendered_files(forged)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    kept = {name: (folder / name).read_bytes() for name in ("bound.json", "candidates.parquet")}
    digests = {name: sha256(content).hexdigest() for name, content in {**files, **kept}.items()}
    (folder / "SHA256SUMS").write_bytes(folder_check.sums(digests))
    assert 0 == planner("check", folder).code
    ran = planner("check", folder, "--bound")
    assert 1 == ran.code
    assert told in ran.err

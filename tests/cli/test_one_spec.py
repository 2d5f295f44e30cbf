"""`report` puts sections into plan.json and report.md; they are limited in size, and rendered from the plan alone."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from folders import DATA
from jsonschema import Draft202012Validator
from plan_documents import plan_id, typed
from report_documents import huge, small
from rich.console import Console

from planner.cli import one_spec, whatif_fleet
from planner.inputs.spec import reading
from planner.model import build_problem
from planner.model.errors import SpecError
from planner.model.file_reading import resource
from planner.plan.document import codec
from planner.report import markdown
from planner.report.view import Column, Lines, Table, View, ViewSection
from planner.strategies import optimum
from planner.strategies.work_limits import LITTLE_WORK
from planner.whatif import brokers_for_growth as growth

CLUSTER = """
version: 1
cluster:
  name: c
  brokers: [{id: 1, rack: a, capacity: {disk: 90GB}}, {id: 2, rack: b, capacity: {disk: 90GB}}]
  topics:
    - name: orders
      partitions:
        - {replicas: [1, 2], size: 20GB}
        - {replicas: [1, 2], size: 20GB}
    - name: audit
      partitions: [{replicas: [1], size: 1GB}]
changes: {add_brokers: [{id: 3, rack: b, capacity: {disk: 90GB}}]}
growth: [{topics: "*", per_month: 10%}]
consumers: [{group: billing, topics: [orders], members: [{id: m-1, rack: a}, {id: m-2, rack: b}]}]
"""
ALL = "report: {failures: [brokers, racks, 2], growth: {months: 6}, consumers: true}\n"


def planned(folder: Path, asked: str = ALL, cluster: str = CLUSTER) -> dict:
    """The plan of a spec in this folder, as a JSON value."""
    path = folder / "spec.yaml"
    path.write_text(cluster + asked)
    options = whatif_fleet.WhatifOptions(candidates=20, engine="local")
    plan = whatif_fleet.whatif(path, options, Console(file=io.StringIO())).plan
    return json.loads(codec.encode(plan))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a spec that asks for all sections, and its plan."""
    made = tmp_path_factory.mktemp("told")
    planned(made)
    return made


@pytest.fixture(scope="module")
def plan(folder):
    """The plan in that folder."""
    return json.loads((folder / "spec.plan" / "plan.json").read_bytes())


def command(folder, *words):
    """What a command prints for the spec as JSON."""
    from click.testing import CliRunner

    from planner.cli.commands import commands

    ended = CliRunner().invoke(commands, [*words, str(folder / "spec.yaml"), "--format", "json", "--engine", "local"])
    return json.loads(ended.stdout)


@pytest.mark.slow
def test_nothing_is_told_that_is_not_asked_for(tmp_path):
    """Apart from its sections, `report` changes only the plan's inputs and id. With months: 12 the candidates look as
    far ahead as they do by default.
    """
    plan, silent = (planned(tmp_path, asked) for asked in (ALL.replace("months: 6", "months: 12"), ""))
    told = ("failures", "growth", "consumers", "plan_id", "inputs")

    assert set() == silent.keys() & {"failures", "growth", "consumers"}
    assert {key: value for key, value in plan.items() if key not in told} == {
        key: value for key, value in silent.items() if key not in told
    }


@pytest.mark.slow
def test_the_document_fits_the_schema_and_its_id(plan):
    """The plan with all three sections fits the schema, and its id is the hash of its content."""
    schema = json.loads(resource("schemas", "plan.schema.json").read_text(encoding="utf-8"))

    assert [] == list(Draft202012Validator(schema).iter_errors(plan))
    assert plan_id(plan) == plan["plan_id"]


def test_failures_are_those_of_the_command(folder, plan):
    """The section on failures has the command's numbers, today and as planned, without the batches."""
    shown = command(folder, "failures", "--of", "brokers", "--of", "racks", "--of", "2")
    for each in shown["scenarios"]:
        each["states"] = [state for state in each["states"] if state["state"] in ("today", "planned")]

    assert {key: shown[key] for key in plan["failures"]} == plan["failures"]
    assert {"brokers", "racks", "2"} == {kind["of"] for kind in plan["failures"]["kinds"]}


@pytest.mark.slow
def test_growth_is_that_of_the_plan_itself(folder, plan):
    """Today's growth is that of the command; the planned growth is that of the plan's own assignment."""
    shown = command(folder, "growth", "--months", "6")
    held = {each["id"]: each["after"]["size_bytes"] for each in plan["brokers"]}
    problem = growth.cases(reading.load(folder / "spec.yaml"), 0)[0].forecast.problem
    now = build_problem.with_replica_lists(problem, typed(plan).replica_lists)

    assert [each["today"] for each in shown["brokers"]] == [each["today"] for each in plan["growth"]["brokers"]]
    grown = {each["id"]: each["planned"]["size_bytes"] for each in plan["growth"]["brokers"]}
    assert pytest.approx({broker: size * 1.1**6 for broker, size in held.items()}, rel=1e-6) == grown
    assert 2 * 2 + 1 == int((now >= 0).sum())


def test_consumers_are_those_of_the_command_with_the_plan(folder, plan):
    """The section on consumers is that of the command with this plan, which may move partitions between racks."""
    shown = command(folder, "consumers", "--plan", str(folder / "spec.plan"))

    assert {key: shown[key] for key in plan["consumers"]} == plan["consumers"]


@pytest.mark.slow
def test_topics_that_get_partitions_are_told_without_keys(tmp_path):
    """Topics with more partitions are shown without keys, because keys are only asked about on the command line."""
    grown = CLUSTER.replace("{add_brokers", "{add_partitions: [{topic: orders, partitions: 4}], add_brokers")
    (count,) = planned(tmp_path, cluster=grown)["consumers"]["partition_counts"]

    assert ("orders", 2, 4, []) == tuple(count[key] for key in ("topic", "before", "after", "keys"))


def test_the_report_folds_them_in(folder, plan):
    """report.md has the sections in this order, and rendering the plan again gives the same bytes."""
    markdown = (folder / "spec.plan" / "report.md").read_text(encoding="utf-8")
    headings = [line for line in markdown.splitlines() if line.startswith("<summary>")]
    told = ("What breaks", "How long", "Consumers")

    assert [
        "<summary>What breaks if brokers fail (brokers, racks, any 2)</summary>",
        "<summary>How long the cluster lasts (6 months)</summary>",
        "<summary>Consumers (1 group)</summary>",
    ] == [each for each in headings if each.removeprefix("<summary>").startswith(told)]
    assert markdown == one_spec.rendered_files(typed(plan))["report.md"].decode()
    assert "\n# " not in markdown.partition("<summary>")[2]


@pytest.mark.slow
def test_more_brokers_are_only_tried_where_the_plan_does_not_last(tmp_path, plan):
    """Options with more brokers are tried only if the plan doesn't last the months."""
    growing = planned(tmp_path, ALL, CLUSTER.replace("10%", "25%"))

    assert [None, []] == [plan["growth"]["assignments"][1]["month"], plan["growth"]["options"]]
    assert growing["growth"]["assignments"][1]["month"] is not None
    assert growing["growth"]["options"]


@pytest.mark.slow
def test_a_variant_is_told_of_where_it_is_chosen(tmp_path):
    """If a variant is chosen, failures and growth are those of the variant's brokers."""
    variants = (
        "sweep: {choose: {most_even_within_bytes: 1TB}, variants: [{name: two more, changes: {add_brokers: "
        "[{id: 3, rack: a}, {id: 4, rack: b}]}}]}\n"
    )
    made = planned(tmp_path, ALL + variants, CLUSTER.replace("changes:", "# "))

    assert "two more" == made["choice"]["variant"]
    assert [1, 2, 3, 4] == [each["id"] for each in made["growth"]["brokers"]]
    assert 6 == next(kind["possible"] for kind in made["failures"]["kinds"] if kind["of"] == "2")


def test_new_partitions_have_their_place(tmp_path):
    """New partitions are in the planned assignment, and a note says that failures don't count them."""
    new = "changes: {create_topics: [{name: refunds, partitions: 3, replication_factor: 2, size: 1GB}]}\n"
    made = planned(tmp_path, ALL, CLUSTER.replace("changes:", "# ") + new)
    sizes = {each["topic"]: each["size_bytes"] for each in made["growth"]["topics"]}
    total = sum(each["planned"]["size_bytes"] for each in made["growth"]["brokers"])

    assert 3 * 10**9 == sizes["refunds"]
    assert pytest.approx((81 + 6) * 10**9 * 1.1**6, rel=1e-6) == total
    assert "new partitions of the plan aren't counted" in made["failures"]["notes"]


@pytest.mark.slow
def test_an_assignor_of_ones_own_is_found_beside_the_spec(tmp_path):
    """A user's assignor is found beside the spec, as `planner consumers` finds it."""
    (tmp_path / "own_assignor.py").write_text(
        "def assign(topics, subscriptions, owned=None):\n"
        "    first = sorted(subscriptions)[0]\n"
        "    every = [(topic, at) for topic in sorted(topics) for at in range(topics[topic])]\n"
        "    return {member: every if member == first else [] for member in subscriptions}\n"
    )
    made = planned(
        tmp_path, ALL, CLUSTER.replace("group: billing,", 'group: billing, assignor: "own_assignor:assign",')
    )

    assert [2, 0] == [member["partitions"] for member in made["consumers"]["groups"][0]["members"]]


def test_pages_share_the_space_that_there_is():
    """Sections share the space of the report: a long one is cut at a line's end, with the number of lines left out."""
    long = Lines([f"line {number} {'x' * 90}" for number in range(2_000)])
    pages = (View("Short", (ViewSection("", (Lines(("a", "b")),)),), source="planner a"),
             View("Long", (ViewSection("", (long,)),), source="planner b"))  # fmt: skip
    short, folded = markdown.report(typed(small()), pages).split("<details>\n<summary>")[8:10]

    assert "Short</summary>\n\n- a\n- b\n\n</details>\n\n" == short
    shown = folded.count("- line")
    assert 150 < shown < 700
    assert f"\n\n{2_000 - shown:,} lines left out here: see `planner b`.\n\n</details>" in folded


@pytest.mark.slow
@pytest.mark.parametrize("document", [small, huge])
def test_no_page_makes_a_report_too_long(document):
    """Three sections of a megabyte each don't make the report too long, beside a plan of any size."""
    rows = Table("row", range(150_000), (Column("row", lambda _: "row"),))
    pages = [View(name, (ViewSection("", (rows,)),), source="planner x") for name in ("One", "Two", "Three")]
    written = markdown.report(typed(document()), pages)

    assert len(written.encode()) <= markdown.MOST_BYTES
    assert 3 == written.count("lines left out here: see `planner x`.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("report: {failure: racks}", "report.failure: unknown key; did you mean 'failures'? allowed: failures, growth"),
        ("report: {failures: hosts}", "report.failures: 'hosts' isn't possible here; allowed: brokers, racks, pairs"),
        ("report: {failures: [brokers, 0]}", "report.failures[1]: 0 isn't possible here; allowed: brokers, racks"),
        ("report: {failures: 3}", "report.failures: 3 can't fail of 2 brokers; allowed: at most as many"),
        ("report: {growth: {month: 3}}", "report.growth.month: unknown key"),
        ("report: {growth: {months: 0}}", "report.growth.months: 0 isn't possible here"),
        ("report: {consumers: 3}", "report.consumers: 3 isn't possible here; allowed: true or false"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, asked, said):
    """A wrong key or value is refused with its place and what is allowed."""
    with pytest.raises(SpecError) as refused:
        planned(tmp_path, asked)

    assert said in str(refused.value)


def test_what_cannot_be_told_is_said(tmp_path):
    """Sections that lack racks, sizes, rates or groups are refused at once."""
    bare = CLUSTER.replace("rack: a, ", "").replace("rack: b, ", "").replace(", size: 20GB", "")
    bare = bare.replace(", size: 1GB", "").split("growth:")[0]
    with pytest.raises(SpecError) as refused:
        planned(tmp_path, ALL, bare)

    assert [
        "report.consumers: no consumer group is declared; allowed: the key consumers with at least one group, or false",
        "report.failures[1]: 'racks' can't be judged, no broker has a rack; allowed: racks, or brokers",
        "report.growth: growth can't be judged without sizes or rates; allowed: either of them, or no report.growth",
    ] == sorted(str(each).split(": ", 1)[1].removesuffix(" here") for each in refused.value.findings)


@pytest.mark.slow
def test_growth_is_planned_with_little_work(monkeypatch):
    """For growth the solver runs with little work; here its plan is within 5 % of the bound."""
    from planner.whatif import brokers_for_growth

    asked = []
    original = optimum.solve
    monkeypatch.setattr(
        brokers_for_growth.optimum,
        "solve",
        lambda *args, work: asked.append(work) or original(*args, work=work),
    )
    data = DATA / "growth" / "spec.yaml"
    _, case, *_ = growth.cases(reading.load(data), 12)
    row = growth.evaluate(case)

    assert {LITTLE_WORK} == set(asked)
    problem = case.forecast.problem
    whole = original(problem, problem.balance)
    assert row["bytes_moved"] <= whole.least_bytes * 1.05

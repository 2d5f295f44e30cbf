"""If a budget cuts a plan short, the first line of every output says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Ran, run
from folders import ROOT

SAID = "FIRST STEP ONLY (budget: at most 40 MB copied). "
CHANGES = """\
changes: {remove_brokers: [6], add_brokers: [{id: 7, rack: r0, class: small}]}
budget: {bytes_moved: 40MB}
"""
OUTPUTS = (
    "show s.plan",
    "diff s.plan s.plan",
    "failures s.plan",
    "growth s.yaml --engine local",
    "consumers s.yaml --plan s.plan --engine local",
    "whatif s.yaml --engine local --candidates 4 --out again.plan",
    "resume s.plan --state six-brokers --out rest.plan",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with three what-ifs, with a plan that a budget cuts short."""
    made = tmp_path_factory.mktemp("first-step")
    spec = (ROOT / "examples" / "what-if.yaml").read_text(encoding="utf-8")
    before, _, after = spec.partition("changes:\n")
    text = f"{before}{CHANGES}balance:{after.partition('balance:')[2]}"
    (made / "state").symlink_to(ROOT / "examples" / "state")
    (made / "consumers").symlink_to(ROOT / "examples" / "consumers")
    (made / "six-brokers").symlink_to(ROOT / "examples" / "state" / "six-brokers")
    (made / "s.yaml").write_text(text, encoding="utf-8")
    ran = run(made, "whatif s.yaml --engine local --candidates 4")
    assert ran.code == 0, ran.err
    return made


@pytest.mark.parametrize("typed", [*OUTPUTS, "check s.plan"])
def test_the_first_line_of_a_text(typed: str, folder: Path) -> None:
    """Text on a terminal begins with the first step."""
    assert told(run(folder, typed)).startswith(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("typed", OUTPUTS)
def test_the_first_line_of_a_markdown(typed: str, folder: Path) -> None:
    """Markdown for a comment on a pull request begins with the first step."""
    assert told(run(folder, f"{typed} --format markdown")).startswith(f"**{SAID}")


def test_what_files_say_first(folder: Path) -> None:
    """The report says it first, in both forms and in its title; the playbooks' variables say it too."""
    plan = folder / "s.plan"
    assert (plan / "report.md").read_text(encoding="utf-8").startswith(f"**{SAID}")
    page = (plan / "report.html").read_text(encoding="utf-8")
    assert "<title>FIRST STEP ONLY: " in page
    assert page.partition("<body")[2].index(SAID) < page.partition("<body")[2].index("Copies ")
    role = plan / "ansible" / "roles" / "kafka_reassign"
    assert f'kafka_reassign_first_step: !unsafe "{SAID}' in (role / "vars" / "main" / "plan.yml").read_text("utf-8")


@pytest.mark.slow
def test_a_fleet_says_it_of_each_cluster_and_no_gap(folder: Path) -> None:
    """A fleet says it for each cluster, and shows no gap, because a first step's cost depends on its budget."""
    (folder / "t.yaml").write_bytes((folder / "s.yaml").read_bytes())
    fleet = "whatif s.yaml t.yaml --engine local --candidates 4 --out fleet --format"
    rows = told(run(folder, f"{fleet} markdown")).splitlines()[2:4]
    assert [True] * 2 == [row.split(" | ")[1].startswith("FIRST STEP ONLY") and " | – | 4 | " in row for row in rows]
    assert [False] * 2 == [row["complete"] for row in json.loads(run(folder, f"{fleet} json").out)["clusters"]]


@pytest.mark.slow
def test_growth_within_the_budget_is_no_first_step(folder: Path) -> None:
    """If the whole change fits into the budget, growth doesn't call it a first step."""
    text = (folder / "s.yaml").read_text(encoding="utf-8")
    (folder / "ample.yaml").write_text(text.replace("40MB", "40GB"), encoding="utf-8")
    assert "FIRST STEP" not in told(run(folder, "growth ample.yaml --engine local"))


def told(ran: Ran) -> str:
    """The output of a command, which is checked to succeed."""
    assert ran.code == 0, ran.err
    return ran.out

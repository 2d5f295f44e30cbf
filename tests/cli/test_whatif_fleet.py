"""A fleet: one command plans many clusters into a folder each, with one summary, and writes all plans or none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from folders import copy_examples

from planner.cli import whatif_fleet
from planner.cli.main import main
from planner.export import output_folder
from planner.model.errors import InfeasibleError, PlannerError, SetupError, UnsafePlanError

GOOD = ("expand", "leaders-only", "no-racks")
STEPS = "read report.html in each folder, then cd FOLDER/ansible && ansible-playbook apply.yml --check"
ONE_OF_THEM = "each made as if the others weren't: apply one of them"


@pytest.fixture
def clusters(tmp_path, monkeypatch) -> Path:
    """A folder with three valid specs; commands run in its parent folder."""
    folder = tmp_path / "clusters"
    copy_examples(folder, GOOD)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def whatif(capsys):
    """Runs `whatif` in this process, and returns exit code, stdout and stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["whatif", *map(str, arguments), "--engine", "local", "--candidates", "20"])
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run


def files(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their paths."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plans(folder: Path) -> list[str]:
    """The names of the plan folders in a folder."""
    return sorted(file.parent.name for file in folder.glob("*/plan.json"))


@pytest.mark.slow
def test_each_folder_of_a_fleet_is_what_its_spec_alone_gives(clusters, whatif, tmp_path):
    """Each plan of a fleet has the same bytes as if its spec were planned alone."""
    code, _, said = whatif(*(clusters / f"{name}.yaml" for name in GOOD), "--out", "fleet")

    assert (0, "") == (code, said)
    for name in GOOD:
        whatif(clusters / f"{name}.yaml", "--out", tmp_path / "alone" / name)
        assert files(tmp_path / "alone" / name) == files(tmp_path / "fleet" / name)


@pytest.mark.slow
def test_a_quoted_pattern_is_a_fleet_beside_its_specs(clusters, whatif):
    """A quoted pattern is expanded by the command; without --out each plan is beside its spec."""
    code, shown, _ = whatif("clusters/*.yaml")

    assert 0 == code
    assert ["expand.plan", "leaders-only.plan", "no-racks.plan"] == plans(clusters)
    table, _, following = shown.partition("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == ["Cluster", "orders-eu", "orders-eu", "lab"]
    assert ["Verdict", "Copied", "Replicas", "Leaders"] == table.split()[1:5]
    again, last = following.splitlines()
    assert "orders-eu has 2 plans, each made as if the others weren't: apply one of them" == again
    assert last.startswith("Next: read report.html in each folder")


@pytest.mark.parametrize(
    ("verdicts", "following"),
    [
        (("nothing to do", "nothing to do, 1 warning"), ["Next: nothing to apply"]),
        (("nothing to do", "as asked"), [f"Next: {STEPS}"]),
        (("as asked", "as asked"), [f"a has 2 plans, {ONE_OF_THEM}", f"Next: {STEPS}"]),
    ],
)
def test_what_follows_is_for_plans_that_change_something(verdicts, following):
    """A plan with nothing to do isn't to be applied, and isn't one of two plans to choose from."""
    numbers = dict.fromkeys(("bytes_moved", "replicas_moved", "leaders_changed", "least_bytes_moved", "candidates"), 0)
    rows = [
        {"cluster": "a", "verdict": each, "has_something_to_do": each == "as asked", "complete": True, "folder": "f"}
        | numbers
        for each in verdicts
    ]

    (section,) = whatif_fleet.view(rows).sections
    assert following == [getattr(each, "value", each) for each in section.blocks[1].lines]


@pytest.mark.slow
def test_a_pattern_that_matches_one_file_is_a_fleet_of_one(clusters, whatif, tmp_path):
    """A pattern that matches one file is a fleet too, so that plans go to the same place for any number of files."""
    code, shown, _ = whatif("clusters/no-*.yaml", "--out", "fleet", "--format", "json")

    assert 0 == code
    assert ["no-racks"] == plans(tmp_path / "fleet")
    assert [str(Path("fleet/no-racks"))] == [row["folder"] for row in json.loads(shown)["clusters"]]


@pytest.mark.slow
def test_a_file_named_like_a_pattern_is_that_file(clusters, whatif):
    """A file whose name looks like a pattern is that file."""
    spec = clusters / "no-racks.yaml"
    spec.rename(clusters / "no[racks].yaml")

    assert 0 == whatif("clusters/no[racks].yaml")[0]
    assert ["no[racks].plan"] == plans(clusters)


def test_a_pattern_without_files_is_refused(clusters, whatif):
    """A pattern without a match is refused."""
    code, _, said = whatif("clusters/*.yml")

    assert 1 == code
    assert "clusters/*.yml: no file matches" in said


@pytest.mark.slow
def test_the_summary_has_the_plans_own_numbers(clusters, whatif):
    """The summary as JSON has the same numbers, folders and ids as the plans."""
    _, shown, _ = whatif("clusters/expand.yaml", "clusters/no-racks.yaml", "--format", "json")

    for row, name in zip(json.loads(shown)["clusters"], ("expand", "no-racks"), strict=True):
        plan = json.loads((clusters / f"{name}.plan" / "plan.json").read_text())
        chosen = next(each for each in plan["compared"] if each["label"] == "this plan")
        assert row == {
            "cluster": plan["cluster"]["name"],
            "spec": f"clusters/{name}.yaml",
            "verdict": "as asked" if name == "expand" else "as asked, 1 warning",
            "has_something_to_do": True,
            "complete": True,
            "bytes_moved": chosen["bytes_moved"],
            "replicas_moved": chosen["replicas_moved"],
            "leaders_changed": chosen["leaders_changed"],
            "least_bytes_moved": plan["bound"]["least_bytes_moved"],
            "gap_percent": plan["bound"]["gap_percent"],
            "candidates": plan["candidates"]["evaluated"],
            "folder": f"clusters/{name}.plan",
            "plan_id": plan["plan_id"],
        }


@pytest.mark.slow
def test_a_first_step_is_said_in_a_few_words(clusters, whatif):
    """A plan that is only a first step is marked so in the summary."""
    spec = (clusters / "expand.yaml").read_text(encoding="utf-8")
    (clusters / "step.yaml").write_text(f"{spec}budget: {{bytes_moved: 100MB}}\n", encoding="utf-8")
    _, shown, _ = whatif("clusters/step.yaml", "clusters/no-racks.yaml", "--format", "json")

    row = json.loads(shown)["clusters"][0]
    assert (False, "FIRST STEP ONLY") == (row["complete"], row["verdict"])


@pytest.mark.slow
def test_the_summary_as_markdown_escapes_names(clusters, whatif):
    """A cluster's name is escaped in Markdown: it can't open a cell or notify anybody."""
    spec = clusters / "no-racks.yaml"
    spec.write_text(spec.read_text().replace("name: lab", 'name: "a|b @all"'))

    _, shown, _ = whatif("clusters/*.yaml", "--format", "markdown")

    assert 5 == len(shown.partition("\n\n")[0].splitlines())
    assert "| a\\|b @<!-- -->all | as asked, 1 warning |" in shown


def test_every_fault_of_every_spec_is_told_and_nothing_is_written(clusters, whatif):
    """All faults of all specs are reported before anything is planned, and nothing is written."""
    (clusters / "one.yaml").write_text("version: 1\nclutser: {}\n")
    (clusters / "two.yaml").write_text("version: 1\ncluster: {name: x}\nlimits: {eta: soon}\n")

    code, shown, said = whatif("clusters/*.yaml")

    assert (1, "") == (code, shown)
    assert "clusters/one.yaml:2:1: clutser" in said
    assert "clusters/two.yaml:2:1: cluster.brokers" in said
    assert "clusters/two.yaml:3:10: limits.eta" in said
    assert [] == plans(clusters)


@pytest.mark.slow
def test_a_crossed_gate_in_one_cluster_leaves_all_unwritten(clusters, whatif):
    """If one plan exceeds a limit, the exit code is 3, the spec and its limit are named, and no plan is written."""
    spec = clusters / "expand.yaml"
    spec.write_text(spec.read_text().replace("bytes_moved: 300MB", "bytes_moved: 3MB"))

    code, _, said = whatif("clusters/*.yaml")

    assert 3 == code
    assert "no plan was written for any of the 3 specs, as one of them is refused" in said
    assert "clusters/expand.yaml: " in said
    assert "limits.bytes_moved" in said
    assert [] == plans(clusters)


def test_a_folder_of_somebody_elses_stops_the_whole_fleet_first(clusters, whatif):
    """A folder with other files is refused before the sweep, together with the faults of other specs."""
    (clusters / "expand.plan").mkdir()
    (clusters / "expand.plan" / "thesis.tex").write_text("years of work")
    (clusters / "one.yaml").write_text("version: 1\nclutser: {}\n")

    code, _, said = whatif("clusters/*.yaml")

    assert 1 == code
    assert "clusters/expand.yaml: clusters/expand.plan: isn't empty" in said
    assert "clusters/one.yaml:2:1: clutser" in said
    assert [] == plans(clusters)


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (("clusters/expand.yaml", "other/expand.yaml", "--out", "fleet"), "fleet/expand"),
        (("clusters/expand.yaml", "clusters/expand.yml"), "clusters/expand.plan"),
        (("clusters/*.yaml", "clusters/expand.yaml"), "clusters/expand.plan"),
    ],
)
def test_two_specs_for_one_folder_are_refused(clusters, whatif, arguments, folder):
    """Two specs with the same output folder are refused, because the second plan would replace the first."""
    for copy in (Path("other/expand.yaml"), Path("clusters/expand.yml")):
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(clusters / "expand.yaml", copy)

    code, _, said = whatif(*arguments)

    assert 1 == code
    assert f"{arguments[0].replace('*', 'expand')} and {arguments[1]} would both be written to {folder}" in said
    assert [] == plans(clusters)


@pytest.mark.slow
def test_detailed_exitcode_is_2_where_any_cluster_has_something_to_do(clusters, whatif, tmp_path):
    """--detailed-exitcode is 2 if any plan moves something, and 0 if none does."""
    for name in ("even-1", "even-2"):
        (tmp_path / f"{name}.yaml").write_text(
            "version: 1\ncluster:\n  name: even\n  brokers: [{id: 1}, {id: 2}]\n"
            "  topics:\n    - name: t\n      partitions: [{replicas: [1], size: 1GB}, {replicas: [2], size: 1GB}]\n"
        )

    assert 0 == whatif("even-*.yaml", "--detailed-exitcode")[0]
    assert 2 == whatif("even-*.yaml", "clusters/expand.yaml", "--detailed-exitcode")[0]


@pytest.mark.slow
def test_a_disk_that_ends_between_two_folders_says_which_are_written(clusters, whatif, monkeypatch):
    """If the disk is full between two folders, the error names the folders that are complete."""
    write = output_folder.write

    def full(folder: Path, written: dict[str, bytes], *_: object) -> None:
        if folder.name == "no-racks.plan":
            raise SetupError(f"{folder}: can't be written: No space left on device")
        write(folder, written)

    monkeypatch.setattr(output_folder, "write", full)

    code, _, said = whatif("clusters/*.yaml")

    assert 1 == code
    assert "No space left on device; written before that: clusters/expand.plan, clusters/leaders-only.plan" in said


def test_validate_takes_as_many_specs(clusters, capsys):
    """`validate` takes many specs, as a pre-commit hook passes them, and reports each."""
    with pytest.raises(SystemExit) as ended:
        main(["validate", "clusters/*.yaml"])

    assert 0 == (ended.value.code or 0)
    assert [f"clusters/{name}.yaml: valid" for name in GOOD] == capsys.readouterr().out.splitlines()


def test_validate_lists_the_valid_ones_beside_an_error(clusters, capsys):
    """`validate` lists the valid specs also if another one is invalid."""
    Path("clusters/bad.yaml").write_text("version: 2\n")
    with pytest.raises(SystemExit) as ended:
        main(["validate", f"clusters/{GOOD[0]}.yaml", "clusters/bad.yaml", f"clusters/{GOOD[1]}.yaml"])

    shown = capsys.readouterr()
    assert 1 == ended.value.code
    assert [f"clusters/{name}.yaml: valid" for name in GOOD[:2]] == shown.out.splitlines()
    assert "clusters/bad.yaml:1:1: version" in shown.err


@pytest.mark.parametrize(
    ("errors", "kind", "code"),
    [
        ((UnsafePlanError("gate"), UnsafePlanError("disk")), UnsafePlanError, 3),
        ((UnsafePlanError("gate"), InfeasibleError("racks")), PlannerError, 1),
    ],
)
def test_a_crossed_gate_is_the_exit_code_only_where_nothing_worse_happened(errors, kind, code):
    """The exit code is 3 only if all errors are exceeded limits; each error is reported in any case."""
    specs = [Path("a.yaml"), Path("b.yaml"), Path("c.yaml")]

    def step(number: int) -> None:
        if number:
            raise errors[number - 1]

    with pytest.raises(kind) as refused:
        whatif_fleet.each_of(specs, step)

    assert code == refused.value.exit_code
    assert [f"{spec}: {error}" for spec, error in zip(specs[1:], errors, strict=True)] == str(
        refused.value
    ).splitlines()[1:]


def test_a_ring_of_links_as_the_output_folder_is_refused(planner, tmp_path):
    """An output folder in a circular link is refused with one sentence."""
    (tmp_path / "s.yaml").write_text(
        "version: 1\ncluster:\n  name: n\n  brokers: [{id: 1}]\n  topics: [{name: t, partitions: [{replicas: [1]}]}]\n"
    )
    (tmp_path / "ring").symlink_to("ring")

    for out in ("ring", "ring/inside"):
        ran = planner("whatif", tmp_path / "s.yaml", "--engine", "local", "--out", tmp_path / out)

        assert (1, True) == (ran.code, f"{out}: can't be written: " in ran.err)

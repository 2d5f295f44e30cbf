"""Plans every example and compares its output byte for byte with `tests/cases/<name>/`.

`pytest tests/test_examples.py --update-goldens` writes the current output; review the diff before you commit it.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from folders import ROOT, TESTS
from rich.console import Console

from planner.cli import whatif_fleet
from planner.cli.main import main
from planner.plan import plan_file
from planner.plan.document.plan_types import Plan
from planner.report import terminal
from planner.report.terminal import Detail

CASES = TESTS / "cases"
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.yaml"))
# A quick run skips these. It plans the seeds' own clusters, and the cheapest example of each kind of change.
SLOW = {
    "add-rack",
    "apart",
    "broker-sets",
    "busiest-hours",
    "caps",
    "expand",
    "log-dirs",
    "no-racks",
    "remove-brokers",
    "third-rack",
    "tp_re_02",
    "what-if",
    "who-leads",
}

# The role's own files and the page's frame are the same for every plan, so only one example keeps a copy.
ROLE_SHOWN_BY = "expand"
SHOWN_ONCE = ("ansible/", "report.html")
# Another version of the drawing library may draw differently. tests/report/test_plots.py tests what plots show.
PLOT = re.compile(rb"<svg .*?</svg>", re.DOTALL)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in EXAMPLES],
)
def planned(request, tmp_path_factory):
    """An example's name, plan and folder. The plan is made in this process, with few candidates."""
    name = request.param
    out = tmp_path_factory.mktemp(name) / "plan"
    options = whatif_fleet.WhatifOptions(out=out, candidates=300, engine="local")
    plan = whatif_fleet.whatif(ROOT / "examples" / f"{name}.yaml", options, Console(file=io.StringIO())).plan
    return name, plan, out


@pytest.mark.slow
def test_an_adopted_example_writes_exactly_its_golden_folder(tmp_path, request):
    """Adopting the output of Kafka's --generate for expand.yaml's cluster writes exactly the golden folder."""
    given, spec = ROOT / "examples" / "adopt" / "generate.txt", ROOT / "examples" / "adopt" / "expand.yaml"
    with pytest.raises(SystemExit) as ended:
        main(["adopt", str(given), str(spec), "--out", str(tmp_path / "plan"), "--quiet"])

    assert 0 == ended.value.code
    _is_golden("adopt-generate", plan_file.read(tmp_path / "plan"), tmp_path / "plan", request)


def _screen(plan: Plan, detail: Detail) -> bytes:
    """What `planner show` prints into a pipe."""
    screen = io.StringIO()
    terminal.show_plan(plan, Console(file=screen, width=1000), "plan", detail=detail)
    return screen.getvalue().encode()


def test_an_example_writes_exactly_its_golden_folder(planned, request):
    """All files except the candidates' table, and both screens, short and full, are byte for byte the golden ones."""
    name, plan, out = planned
    _is_golden(name, plan, out, request)


def _is_golden(name: str, plan: Plan, out: Path, request: pytest.FixtureRequest) -> None:
    screens = {"screen.txt": _screen(plan, "summary"), "verbose.txt": _screen(plan, "everything")}
    actual = {**screens, **_shown(name, out)}
    if request.config.getoption("--update-goldens"):
        _write(CASES / name, actual)

    expected = {
        path.relative_to(CASES / name).as_posix(): path.read_bytes()
        for path in (CASES / name).rglob("*")
        if path.is_file()
    }
    assert sorted(expected) == sorted(actual)
    for path, content in expected.items():
        assert content.decode() == actual[path].decode(), path


def test_an_example_has_a_plot_for_each_picture_of_its_page(planned):
    """The folder has the same plots as the page."""
    _, _, out = planned
    shown = re.findall(rb'<svg [^>]*id="plot-(\w+)"', (out / "report.html").read_bytes())

    assert sorted(shown) == sorted(path.stem.encode() for path in (out / "plots").glob("*.svg"))
    assert {b"brokers", b"racks"} & set(shown)


def test_an_example_moves_next_to_the_proven_least(planned):
    """Windows on counts leave no gap. Windows on bytes leave at most 0.25 %, because the clusters are small."""
    _, plan, _ = planned

    assert plan.bound.gap_percent <= (0.25 if plan.bound.method == "prices" else 0)


def test_an_example_breaks_no_rule(planned):
    """According to the independent check, the winner breaks no rule."""
    _, plan, _ = planned
    broken = [term for term in plan.terms if term.name in ("left_to_change", "rack_spread_broken")]

    racks = all(broker.rack is not None for broker in plan.brokers)
    assert [0, 0 if racks else None] == [term.plan for term in broken]


def test_expand_fills_the_new_brokers():
    """Two brokers a rack become three, and replicas and leaders differ by at most 1."""
    plan = json.loads((CASES / "expand" / "plan.json").read_text())
    after = [broker["after"] for broker in plan["brokers"]]

    assert 9 == len(after)
    for count in ("replicas", "leaders"):
        values = [load[count] for load in after]
        assert max(values) - min(values) <= 1


def test_leaders_only_moves_no_byte():
    """With `rebalance: leaders`, a plan copies no byte and at most reorders replica lists."""
    plan = json.loads((CASES / "leaders-only" / "plan.json").read_text())

    assert 0 == plan["bound"]["bytes_moved"]
    assert all(sorted(row["replicas"]) == sorted(row["replicas_before"]) for row in plan["partitions"])


def test_tp_re_01_gives_the_new_broker_its_share():
    """Of five partitions on one broker, the new broker gets two, as in the seed's own plan."""
    plan = json.loads((CASES / "tp_re_01" / "plan.json").read_text())

    assert [[1], [1]] == [row["replicas"] for row in plan["partitions"]]


def test_tp_re_02_adds_the_other_broker_and_keeps_all_replicas():
    """RF 1 → 2: every partition gains one replica, and none loses one."""
    plan = json.loads((CASES / "tp_re_02" / "plan.json").read_text())

    assert [[0, 1]] * 3 == [sorted(row["replicas"]) for row in plan["partitions"]]


def test_tp_demo_03_needs_an_election_and_no_reassignment():
    """The preferred leaders are already even, so the plan only elects them, as the seed does."""
    case = CASES / "tp_demo_03"

    assert [] == json.loads((case / "reassignment.json").read_text())["partitions"]
    elected = json.loads((case / "preferred-replica.json").read_text())["partitions"]
    assert [0, 2] == [row["partition"] for row in elected]


def _shown(name: str, out: Path) -> dict[str, bytes]:
    files = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    return {
        path: PLOT.sub(b"<svg></svg>", file.read_bytes()) if path == "report.html" else file.read_bytes()
        for path, file in files.items()
        # SHA256SUMS includes the table's digest, and another version of the library may write the table differently.
        if path not in ("candidates.parquet", "SHA256SUMS")
        and not path.startswith("plots/")
        and (name == ROLE_SHOWN_BY or not path.startswith(SHOWN_ONCE))
    }


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for old in [path for path in folder.rglob("*") if path.is_file()]:
        old.unlink()
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)

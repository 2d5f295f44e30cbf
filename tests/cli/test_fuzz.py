"""More than two thousand broken and hostile inputs: each is refused with a message or accepted, and nothing crashes.

The inputs are drawn from seeds, so a failure names the seed to draw again. `PLANNER_FUZZ_INPUTS` sets how many there
are; the quick profile draws a few.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import properties
import pytest
import yaml
from fuzz_inputs import FROM_FILES, HOSTILE, INLINE, STATE_FILES, mutated, named
from fuzz_values import plan_with_wrong_values, spec_with_a_wrong_value
from rich.console import Console

from planner.approval import plan_diff
from planner.cli import one_spec
from planner.cli.importing import ImportOptions, import_state
from planner.cli.output import reads_plan
from planner.cli.whatif_fleet import WhatifOptions, whatif
from planner.export import templated_files
from planner.export.terraform_data_source import described
from planner.inputs.spec.reading import load
from planner.inputs.state.spec_writer import TITLE
from planner.model.errors import PlannerError
from planner.model.generated_text import is_as_written
from planner.plan import plan_file
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.report import markdown, terminal

INPUTS = int(os.environ.get("PLANNER_FUZZ_INPUTS") or properties.scaled(2_000))
# Seconds of CPU time, so that an endless loop fails and a busy machine doesn't.
SLOWEST_SECONDS = 60.0

Step = Callable[[], object]


def spec_alone(folder: Path, rng: random.Random) -> Step:
    """A broken spec with its topics inside."""
    (folder / "s.yaml").write_bytes(mutated(INLINE.encode(), rng))
    return lambda: load(folder / "s.yaml")


def spec_with_files(folder: Path, rng: random.Random) -> Step:
    """A sound spec with two state files, of which one or both are broken."""
    broken = rng.choice([("describe.txt",), ("log-dirs.txt",), ("describe.txt", "log-dirs.txt")])
    for name in ("describe.txt", "log-dirs.txt"):
        data = STATE_FILES[name].encode()
        (folder / name).write_bytes(mutated(data, rng) if name in broken else data)
    (folder / "s.yaml").write_text(FROM_FILES, encoding="utf-8")
    return lambda: load(folder / "s.yaml")


def imported_files(folder: Path, rng: random.Random) -> Step:
    """One to four files of any format, most of them broken, are imported; the result is read as a spec."""
    names = rng.sample(sorted(STATE_FILES), rng.randint(1, 4))
    for name in names:
        data = STATE_FILES[name].encode()
        (folder / name).write_bytes(mutated(data, rng) if rng.random() < 0.6 else data)
    out = folder / "out" / "cluster.yaml"
    out.parent.mkdir()
    topic, name = (rng.choice([usual, usual, rng.choice(HOSTILE)]) for usual in ("a-1", "n"))
    options = ImportOptions(topic=topic, name=name, reassigning=rng.choice(["refuse", "target"]), out=out)
    return lambda: _imported([folder / name for name in names], options, out)


def _imported(files: list[Path], options: ImportOptions, out: Path) -> None:
    import_state(files, options)
    assert is_as_written(out.read_bytes(), TITLE)
    # The reader has to add racks that no source has, and to correct names and numbers that Kafka wouldn't accept, and
    # impossible changes from Terraform.
    refusal = refused(lambda: load(out)) or ""
    told = (
        "has no rack, but others have",
        ": changes.",
        "; allowed: a whole number from",
        "? allowed: the names that it has",
    )
    assert not refusal or any(each in refusal for each in told), refusal


def planned_names(folder: Path, rng: random.Random) -> Step:
    """A spec with hostile names is planned: it is refused, or all files contain the names unchanged."""
    cluster, rack, value = (rng.choice(["plain", rng.choice(HOSTILE)]) for _ in range(3))
    (folder / "s.yaml").write_text(named(cluster, rack, value), encoding="utf-8")
    (folder / "out").mkdir()
    out = folder / "out" / "plan"
    return lambda: _planned(folder / "s.yaml", out, (cluster, rack, value))


def _planned(spec: Path, out: Path, names: tuple[str, str, str]) -> None:
    plan = whatif(spec, WhatifOptions(out=out, engine="local", candidates=4), Console(file=StringIO())).plan
    cluster, rack, value = names
    written = json.loads((out / "plan.json").read_bytes())
    assert json.loads(codec.encode(plan)) == written
    assert (cluster, {rack, "b", "c"}, value) == (
        written["cluster"]["name"],
        {broker["rack"] for broker in written["brokers"]},
        written["topics"][0]["config"]["cleanup.policy"],
    )
    for path in out.rglob("*.json"):
        json.loads(path.read_bytes())
    for path in out.rglob("*.yml"):
        yaml.load(path.read_bytes(), _Ansible)
    for page in [*out.rglob("*.html"), *out.rglob("*.svg")]:
        assert "<script>alert" not in page.read_text(encoding="utf-8"), page
    declared = json.loads((out / "terraform" / "kafka_topics.auto.tfvars.json").read_bytes())
    # Terraform would expand `${` and `%{` in configuration, also in JSON; it doesn't in a variable's values.
    assert value == declared["kafka_topics"]["a-1"]["config"]["cleanup.policy"]


def wrong_values(folder: Path, rng: random.Random) -> Step:
    """A spec with every key and one wrong value is read, or planned if it is accepted.

    The spec asks for the sections on growth, failures and consumers, so these are judged too.
    """
    (folder / "s.yaml").write_text(spec_with_a_wrong_value(rng), encoding="utf-8")
    if rng.random() < 0.9:
        return lambda: load(folder / "s.yaml")
    (folder / "out").mkdir()
    options = WhatifOptions(out=folder / "out" / "plan", engine="local", candidates=4)
    return lambda: whatif(folder / "s.yaml", options, Console(file=StringIO()))


def forged_plans(folder: Path, rng: random.Random) -> Step:
    """A plan.json with wrong values and the matching id, given to all commands that read a plan."""
    plan = plan_with_wrong_values(json.loads(codec.encode(_made())), rng)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return lambda: _shown(folder / "plan.json")


@cache
def _made() -> Plan:
    """The plan of the sound spec into which the hostile names are put."""
    with TemporaryDirectory() as made:
        spec, out = Path(made, "s.yaml"), Path(made, "s.plan")
        spec.write_text(named("n", "a", "delete"), encoding="utf-8")
        whatif(spec, WhatifOptions(out=out, engine="local", candidates=4), Console(file=StringIO()))
        return plan_file.read(out)


def _shown(path: Path) -> None:
    """Shows, renders and compares a plan as the commands do; `reads_plan` refuses a plan that makes them fail."""

    @reads_plan
    def command(plan: Path) -> int:
        read = plan_file.read(plan)
        terminal.show_plan(read, Console(file=StringIO()), detail="everything")
        markdown.report(read, one_spec.pages_of(read))
        templated_files.files(read)
        plan_diff.diff(_made(), read)
        described(read)
        return 0

    command(plan=path)


class _Ansible(yaml.SafeLoader):
    """Loads YAML safely, with Ansible's tag for text that isn't a template."""


_Ansible.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))

KINDS: dict[str, tuple[Callable[[Path, random.Random], Step], float]] = {
    "spec": (spec_alone, 0.32),
    "state": (spec_with_files, 0.27),
    "import": (imported_files, 0.37),
    "plan": (planned_names, 0.04),
    "value": (wrong_values, 0.1),
    "forged": (forged_plans, 0.1),
}


def outcome(step: Step, name: str) -> str:
    """`taken` or `refused`; an unexpected error fails the test with the seed."""
    before = time.process_time()
    try:
        refusal = refused(step)
    except Exception as error:
        raise AssertionError(f"{name}: {type(error).__name__}: {error}") from error
    assert refusal is None or refusal.strip(), f"{name}: an error without words"
    assert time.process_time() - before < SLOWEST_SECONDS, f"{name} took too long"
    return "taken" if refusal is None else "refused"


def refused(step: Step) -> str | None:
    """The message of the refusal, or None."""
    try:
        step()
    except PlannerError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_crashes_and_nothing_is_left_behind(kind: str, tmp_path: Path) -> None:
    """Inputs of each kind are accepted or refused, some of each; a refused input leaves no files."""
    make, share = KINDS[kind]
    count = {"taken": 0, "refused": 0}
    for seed in range(round(INPUTS * share)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        step = make(folder, random.Random(f"{kind} {seed}"))
        before = listed(folder)
        found = outcome(step, f"{kind} {seed}")
        count[found] += 1
        assert found == "taken" or before == listed(folder), f"{kind} {seed}"
    assert min(count.values()) > 0, count


def listed(folder: Path) -> dict[str, Any]:
    """Each path below a folder with its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }

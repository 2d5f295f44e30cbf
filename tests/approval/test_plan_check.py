"""`planner check`, `resume`, `diff` and `show` as a user runs them: what was approved is what runs."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import Ran, Run
from folders import ROOT
from interrupted import after_batches
from jsonschema import Draft202012Validator
from plan_documents import change, document, typed
from state_texts import read_topics

from planner.approval import plan_check as approval
from planner.approval.changes_since_plan import ClusterNow, Sources
from planner.cli.main import main
from planner.export.folder_check import SUMS, sums
from planner.inputs.state.spec_writer import describe
from planner.model.file_reading import digest
from planner.plan import build
from planner.plan.document import codec

DESCRIBED = "topics-describe.txt"
SCHEMAS = ROOT / "schemas"
CAPTURED = "2026-11-20T10:00:00Z"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An example's plan with a time to expire, made once; tests use copies."""
    folder = tmp_path_factory.mktemp("approval")
    shutil.copytree(ROOT / "examples" / "state", folder / "state")
    text = (ROOT / "examples" / "expand.yaml").read_text()
    dated = text.replace("  name: orders-eu\n", f"  name: orders-eu\n  captured_at: {CAPTURED}\n")
    (folder / "expand.yaml").write_text(f"{dated}\nvalid_for: 7d\n")
    with pytest.raises(SystemExit) as ended:
        main(["whatif", str(folder / "expand.yaml"), "--engine", "local", "--candidates", "20"])
    assert 0 == ended.value.code
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Path:
    """A copy of that folder: the plan `expand.plan`, and the state that it was made from."""
    shutil.copytree(made, tmp_path / "site")
    return tmp_path / "site"


def summed_anew(plan: Path) -> None:
    """Writes SHA256SUMS for the files that are there now."""
    files = {path.relative_to(plan).as_posix(): path.read_bytes() for path in plan.rglob("*") if path.is_file()}
    del files[SUMS]
    (plan / SUMS).write_bytes(sums({path: digest(content) for path, content in files.items()}))


def state(site: Path) -> Path:
    """The folder of the state's files."""
    return site / "state" / "six-brokers"


def carried_out(site: Path, batches: int) -> None:
    """Changes the state to what it is after the plan's first batches."""
    plan = json.loads((site / "expand.plan" / "plan.json").read_text())
    file = state(site) / DESCRIBED
    topics = read_topics(file.read_text(), DESCRIBED)
    now = after_batches(plan, ClusterNow({topic.name: topic for topic in topics}), batches)
    file.write_text(describe(tuple(now.topics[name] for name in sorted(now.topics))))


def check(planner: Run, site: Path, *arguments: object) -> Ran:
    """Runs `planner check` with the time one day after the capture."""
    return planner("check", site / "expand.plan", "--now", "2026-11-21T10:00:00Z", *arguments)


def resume(planner: Run, site: Path, *arguments: object) -> Ran:
    """Runs `planner resume` from the state."""
    rest = ("--captured-at", "2026-11-21T10:00:00Z", "--out", site / "rest.plan")
    return planner("resume", site / "expand.plan", "--state", state(site), *rest, *arguments)


@pytest.mark.slow
def test_an_untouched_plan_is_as_it_was_made(planner: Run, site: Path) -> None:
    """An unchanged plan passes; its files are counted, and the time of its expiry is shown."""
    files = sum(path.is_file() for path in (site / "expand.plan").rglob("*"))
    ran = check(planner, site)

    assert (0, "") == (ran.code, ran.err)
    assert f"is unchanged, with all of its {files} files\n" in ran.out
    assert "valid until 2026-11-27T10:00:00Z\n" in ran.out


def test_an_expired_plan_is_refused_with_both_moments(tmp_path: Path) -> None:
    """A plan is valid until its end, and refused from that second on. A plan without an end is always valid."""
    ends = {"validity": codec.as_json(build.validity("2026-11-20T10:00:00Z", 60))}
    endless, ending = tmp_path / "endless.json", tmp_path / "ending.json"
    for file, validity in ((endless, {}), (ending, ends)):
        made = typed(document([change("a", 0, [1, 9], [3, 4])], **validity))
        file.write_bytes(codec.encode(codec.identified(made)))

    def refused(file: Path, now: datetime) -> str:
        return " ".join(
            map(str, approval.check(file, Sources(), lambda _: {}, approval.CheckOptions(now=now)).refusals)
        )

    assert "" == refused(endless, datetime(2999, 1, 1, tzinfo=UTC))
    assert "" == refused(ending, datetime(2026, 11, 20, 10, 0, 59, tzinfo=UTC))
    end = datetime(2026, 11, 20, 10, 1, tzinfo=UTC)
    assert "valid until 2026-11-20T10:01:00Z, now it is 2026-11-20T10:01:00Z" in refused(ending, end)


@pytest.mark.slow
def test_log_dirs_of_the_plan_are_looked_for_in_the_state(tmp_path: Path) -> None:
    """A plan that moves replicas to a log dir is refused if the broker no longer has that log dir."""
    row = change("b", 0, [1], [1]) | {"reason": "balance_log_dirs", "log_dirs": ["/d"], "log_dirs_before": ["/c"]}
    file, topics, dirs = (tmp_path / name for name in ("plan.json", "topics.txt", "log-dirs.txt"))
    file.write_bytes(codec.encode(codec.identified(typed(document([row])))))
    head = "Topic: b\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
    topics.write_text(f"{head}\tTopic: b\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n")
    dirs.write_text('{"version":1,"brokers":[{"broker":1,"logDirs":[{"logDir":"/c","error":null,"partitions":[]}]}]}')

    said = "\n".join(map(str, approval.check(file, Sources((topics, dirs)), lambda _: {}).refusals))
    assert "broker 1: has no usable log dir /d" in said
    # `planner resume` would refuse that plan too, so the message doesn't advise it.
    assert "plan again" in said
    assert "resume" not in said


def test_every_changed_missing_or_extra_file_is_named(planner: Run, site: Path) -> None:
    """Every changed, missing and extra file is named at once."""
    plan = site / "expand.plan"
    for changed in ("batches/01/reassignment.json", "report.md", "candidates.parquet"):
        (plan / changed).write_bytes((plan / changed).read_bytes() + b"\n")
    (plan / "rollback.json").unlink()
    (plan / "batches" / "99").mkdir()
    (plan / "batches" / "99" / "reassignment.json").write_text("{}")

    ran = check(planner, site)

    assert (1, "") == (ran.code, ran.out)
    for line in (
        "batches/01/reassignment.json isn't the file that was made",
        "report.md isn't the file that was made",
        "candidates.parquet isn't the file that was made",
        "rollback.json is missing",
        "batches/99/reassignment.json isn't part of the plan",
        "planner render writes the files of a plan.json again",
    ):
        assert line in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.slow
def test_the_table_of_candidates_is_bound_by_its_rows(planner: Run, site: Path) -> None:
    """A changed candidates.parquet is found even with new digests, and so is a missing one."""
    plan = site / "expand.plan"
    table = plan / "candidates.parquet"
    rows = pq.read_table(table)
    pq.write_table(rows.slice(1), table)
    summed_anew(plan)
    other = check(planner, site)
    table.unlink()
    gone = check(planner, site)

    assert (1, 1) == (other.code, gone.code)
    assert "  candidates.parquet isn't the file that was made\n" in other.err
    assert "  candidates.parquet is missing\n" in gone.err


def test_without_its_digests_a_folder_is_not_as_it_was_made(planner: Run, site: Path) -> None:
    """A folder without SHA256SUMS is refused; plan.json alone needs none, because its id is checked."""
    (site / "expand.plan" / "SHA256SUMS").unlink()
    ran = check(planner, site)

    assert (1, True) == (ran.code, "  SHA256SUMS is missing\n" in ran.err)
    assert 0 == planner("check", site / "expand.plan" / "plan.json", "--now", CAPTURED).code


def test_an_expired_plan_is_refused(planner: Run, site: Path) -> None:
    """`--now` after the end refuses the plan and shows both times; a wrong time is a usage error."""
    late = planner("check", site / "expand.plan", "--now", "2026-11-28T00:00:00+02:00")

    assert (1, "") == (late.code, late.out)
    assert "was valid until 2026-11-27T10:00:00Z, now it is 2026-11-27T22:00:00Z" in late.err
    assert "--now 'noon' isn't a moment; allowed: " in planner("check", site / "expand.plan", "--now", "noon").err


@pytest.mark.parametrize(
    ("alone", "why"),
    [
        (("--strict-state",), "--strict-state needs the cluster's state; allowed: with --state or --bootstrap-servers"),
        (("--command-config", "none.properties"), "--command-config is for --bootstrap-servers; allowed: both, or"),
    ],
)
def test_nothing_is_held_against_a_cluster_that_no_option_names(
    planner: Run, site: Path, alone: tuple[str, ...], why: str
) -> None:
    """The plan would be called unchanged, and nobody had looked at the cluster."""
    refused = planner("check", site / "expand.plan", *alone)

    assert (1, "") == (refused.code, refused.out)
    assert why in refused.err


@pytest.mark.slow
def test_it_fits_the_cluster_where_it_was_found_and_on_its_way(planner: Run, site: Path) -> None:
    """The plan fits the cluster before its first batch and after some batches."""
    before = check(planner, site, "--state", state(site) / DESCRIBED)
    carried_out(site, 2)
    after = check(planner, site, "--state", state(site))

    assert (0, 0) == (before.code, after.code)
    assert "as the plan found them" in before.out
    assert "as the plan wants them" in after.out


@pytest.mark.slow
def test_captures_that_disagree_are_told(planner: Run, site: Path) -> None:
    """Captures that contradict each other give a note; --strict-state refuses them, a resumed plan has a warning."""
    then = (site / "then.txt").resolve()
    then.write_text((state(site) / DESCRIBED).read_text())
    carried_out(site, 9)
    both = ("--state", then, "--state", state(site) / DESCRIBED)
    said = f"the state: {DESCRIBED} (kafka-topics --describe) disagrees with then.txt about the replicas of partitions "

    fits, strict = check(planner, site, *both), check(planner, site, *both, "--strict-state")
    assert (0, 1) == (fits.code, strict.code)
    assert f"\nnote: {said}" in fits.out
    assert f"\n  {said}" in strict.err
    rest = resume(planner, site, "--state", then, "--verbose").out
    assert f"then.txt (kafka-topics --describe) disagrees with six-brokers/{DESCRIBED} about the replicas" in rest
    then.write_text(then.read_text().replace("Leader: 1\tReplicas: 1,2\tIsr: 1,2", "Leader: 99\tReplicas: 99\tIsr: 99"))
    assert f"\n  {said}" in check(planner, site, *both).err


def test_a_cluster_that_moved_on_is_refused_partition_by_partition(planner: Run, site: Path) -> None:
    """Partitions that were moved are refused with their replicas now and in the plan; the first 20 are named."""
    plan = json.loads((site / "expand.plan" / "plan.json").read_text())
    file = state(site) / DESCRIBED
    moved = file.read_text()
    for row in plan["partitions"]:
        lists = ",".join(map(str, row["replicas_before"]))
        start = f"Topic: {row['topic']}\tPartition: {row['partition']}\t"
        line = next(line for line in moved.splitlines() if start in line)
        other = ",".join(map(str, [*row["replicas_before"][1:], 99]))
        leader = line.split("Leader: ")[1].split("\t")[0]
        changed = line.replace(f"Replicas: {lists}", f"Replicas: {other}").replace(f"Isr: {lists}", f"Isr: {other}")
        moved = moved.replace(line, changed.replace(f"Leader: {leader}", "Leader: 99"))
    file.write_text(moved)

    ran = check(planner, site, "--state", file)

    assert (1, "") == (ran.code, ran.out)
    row = plan["partitions"][0]
    before = ",".join(map(str, row["replicas_before"]))
    other = ",".join(map(str, [*row["replicas_before"][1:], 99]))
    assert f"  {row['topic']}-{row['partition']}: has replicas {other}; the plan was made from {before}\n" in ran.err
    assert f"  and {len(plan['partitions']) - 20} more\n" in ran.err
    assert "\ncapture the state again and plan again" in ran.err


def test_brokers_that_are_not_live_are_to_be_started(planner: Run, site: Path) -> None:
    """A new broker that hasn't been started needs no new capture: the refusal says to start it."""
    live = site / "brokers.txt"
    racks = {broker: f"r{(broker - 1) % 3}" for broker in range(1, 9)}
    live.write_text("".join(f"h:9092 (id: {broker} rack: {rack}) -> (\n)\n" for broker, rack in racks.items()))
    ran = check(planner, site, "--state", state(site) / DESCRIBED, "--state", live)

    assert "\n  broker 9: isn't live; the plan counts on it\nstart what isn't live, or capture the state" in ran.err


@pytest.mark.slow
def test_a_state_that_cannot_be_read_is_told_with_its_place(planner: Run, site: Path) -> None:
    """A missing state file and a state file of unknown format are errors with their place."""
    (site / "odd.txt").write_text("hello\n")

    assert "odd.txt:1:1: no state in a known format" in check(planner, site, "--state", site / "odd.txt").err
    missing = check(planner, site, "--state", site / "none.txt")
    assert (1, True) == (missing.code, "none.txt' can't be read" in missing.err)


@pytest.mark.slow
def test_the_rest_of_a_plan_is_written_as_a_plan(planner: Run, site: Path) -> None:
    """`planner resume` writes the rest as a plan that can be checked as any other; the approved plan isn't changed."""
    carried_out(site, 2)
    ran = resume(planner, site, "--detailed-exitcode")
    rest = json.loads((site / "rest.plan" / "plan.json").read_text())
    plan = json.loads((site / "expand.plan" / "plan.json").read_text())

    assert 2 == ran.code, ran.err
    assert plan["plan_id"] == rest["resumes"]["plan_id"]
    assert 0 < len(rest["partitions"]) < len(plan["partitions"])
    assert "2026-11-28T10:00:00Z" == rest["validity"]["valid_until"]
    assert ["plan.json", "six-brokers/"] == [rest["inputs"][0]["path"], rest["inputs"][1]["path"][:12]]
    again = planner("check", site / "rest.plan", "--now", "2026-11-22T10:00:00Z", "--state", state(site))
    assert (0, "") == (again.code, again.err)
    assert 0 == check(planner, site).code
    assert (
        f"finishes plan {plan['plan_id'][:12]}"
        in planner("check", site / "rest.plan", "--now", CAPTURED, "--bound").err
    )


@pytest.mark.slow
def test_the_same_state_gives_the_same_bytes(planner: Run, site: Path) -> None:
    """Resuming twice from the same state gives the same bytes: nothing depends on the machine or the clock."""
    carried_out(site, 1)
    resume(planner, site)
    first = {path.relative_to(site / "rest.plan"): path.read_bytes() for path in (site / "rest.plan").rglob("*.*")}
    resume(planner, site)

    assert first == {
        path.relative_to(site / "rest.plan"): path.read_bytes() for path in (site / "rest.plan").rglob("*.*")
    }


@pytest.mark.slow
def test_there_is_nothing_left_after_the_last_batch(planner: Run, site: Path) -> None:
    """After the last batch the rest is empty, and --detailed-exitcode is 0."""
    carried_out(site, len(json.loads((site / "expand.plan" / "plan.json").read_text())["batches"]))
    ran = resume(planner, site, "--detailed-exitcode", "--format", "json")

    assert (0, [], []) == (ran.code, json.loads(ran.out)["partitions"], json.loads(ran.out)["batches"])


def test_resuming_asks_for_what_it_needs(planner: Run, site: Path) -> None:
    """`resume` needs a state, and the time of its capture if the plan expires; without them nothing is written."""
    without = planner("resume", site / "expand.plan", "--out", site / "rest.plan")
    silent = planner("resume", site / "expand.plan", "--state", state(site), "--out", site / "rest.plan")

    assert (1, True) == (without.code, "the cluster's state is missing; allowed: --state" in without.err)
    assert (1, True) == (silent.code, "--captured-at" in silent.err)
    assert not (site / "rest.plan").exists()


@pytest.mark.parametrize("given", [".", "plan.json"])
def test_the_rest_does_not_replace_the_plan_that_it_finishes(planner: Run, site: Path, given: str) -> None:
    """Its rollback alone goes back to where the cluster was."""
    plan = site / "expand.plan"
    before = (plan / "rollback.json").read_bytes()
    ran = planner("resume", plan / given, "--state", state(site), "--captured-at", CAPTURED, "--out", plan)

    assert (1, True) == (ran.code, "has the rollback of what is applied already; allowed: another folder" in ran.err)
    assert before == (plan / "rollback.json").read_bytes()


def test_a_plan_that_was_changed_is_not_resumed(planner: Run, site: Path) -> None:
    """`resume` refuses a plan whose files were changed, because nobody approved them."""
    (site / "expand.plan" / "reassignment.json").write_text("{}")

    assert (1, True) == ((ran := resume(planner, site)).code, "reassignment.json isn't the file" in ran.err)


@pytest.mark.slow
def test_diff_tells_a_plan_from_its_rest(planner: Run, site: Path) -> None:
    """`diff` of a plan and its rest has exit code 2; its JSON fits the schema, and its output is the same twice."""
    carried_out(site, 1)
    resume(planner, site)
    both = (site / "expand.plan", site / "rest.plan")
    text, markdown = planner("diff", *both), planner("diff", *both, "--format", "markdown")
    found = json.loads(planner("diff", *both, "--format", "json").out)

    assert (0, 2, 0) == (
        text.code,
        planner("diff", *both, "--detailed-exitcode").code,
        planner("diff", both[0], both[0], "--detailed-exitcode").code,
    )
    assert "Partitions no longer changed" in text.out
    assert "<details>\n<summary>Partitions no longer changed" in markdown.out
    schema = json.loads((SCHEMAS / "plan-diff.schema.json").read_text())
    assert [] == [error.message for error in Draft202012Validator(schema).iter_errors(found)]
    assert text.out == planner("diff", *both).out


@pytest.mark.slow
def test_what_show_prints_for_machines_has_the_shape_of_its_schema(planner: Run, site: Path) -> None:
    """`show --format json` prints plan.json itself, which fits its schema."""
    carried_out(site, 1)
    resume(planner, site)
    schema = json.loads((SCHEMAS / "plan.schema.json").read_text())
    for plan in (site / "expand.plan", site / "rest.plan"):
        shown = json.loads(planner("show", plan, "--format", "json").out)

        assert [] == [error.message for error in Draft202012Validator(schema).iter_errors(shown)]
        assert json.loads((plan / "plan.json").read_text()) == shown

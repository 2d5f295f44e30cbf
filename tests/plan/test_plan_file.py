"""Reading a plan.json: any file gives either a plan or an error of one sentence."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plan_documents import change, document, with_id

from planner.model.errors import PlannerError, StalePlanError
from planner.plan import plan_file
from planner.plan.document import codec

Plan = dict[str, Any]


def sound() -> Plan:
    """Two partitions in two batches."""
    first, second = change("a", 0, (1, 2), (3, 2)), change("b", 1, (2, 3), (1, 3))
    return with_id(document([first, second], [[first], [second]]))


def refusal(content: bytes, folder: Path) -> str:
    """The reason why a plan.json isn't read."""
    (folder / "plan.json").write_bytes(content)
    with pytest.raises(PlannerError) as caught:
        plan_file.read(folder)
    return str(caught.value)


def test_a_yaml_file_is_no_plan(tmp_path: Path) -> None:
    """Who shows the YAML instead of its plan is told where the plan is."""
    (tmp_path / "expand.yaml").write_text("version: 1\n")
    with pytest.raises(PlannerError, match=r"expand\.yaml: is YAML; allowed: a plan or its folder; planner"):
        plan_file.read(tmp_path / "expand.yaml")


def test_a_sound_plan_is_read(tmp_path: Path) -> None:
    """A plan is read by its path or by its folder's path."""
    plan = sound()
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    read = plan_file.read(tmp_path)
    assert plan == codec.as_json(read)
    assert read == plan_file.read(tmp_path / "plan.json")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[" * 200_000, "it is nested too deeply"),
        (b'{"format_version":' * 800 + b"1" + b"}" * 800, "format_version is "),
        (
            b'{"format_version": "1.0", "x":' + b"[" * 900 + b"]" * 900 + b"}",
            "was made by an earlier planner (format 1.0)",
        ),
        (rb'{"plan_id": "\ud800"}', "a text in it has half a character"),
        (b'{"plan_id": NaN}', "NaN isn't a number in JSON"),
        (b'{"plan_id": 1e999}', "1e999 is too large a number"),
        (b'{"plan_id": ' + b"9" * 5_000 + b"}", "a number has thousands of digits"),
        (b"\xff", "byte 0xff at 0 isn't UTF-8"),
        (b"", "Expecting value"),
        (b"[]", "isn't a plan"),
        (b"{}", "format_version is null"),
        (b'{"format_version": "1.' + b"9" * 5_000 + b'"}', 'format_version is "1.99'),
    ],
)
def test_what_is_no_plan_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    """A file that is no plan, in whatever way, is refused with one sentence."""
    found = refusal(content, tmp_path)
    assert reason in found
    assert len(found) < 400


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A missing file, a pipe that nobody writes to, and a loop of links are refused."""
    os.mkfifo(tmp_path / "p")
    (tmp_path / "ring").symlink_to("ring")
    for name, reason in (("gone", "No such file"), ("p", "a pipe"), ("ring", "symbolic links")):
        with pytest.raises(PlannerError, match=f"can't be read as a plan: .*{reason}"):
            plan_file.read(tmp_path / name)


def _set(*path: str | int, to: Any) -> Callable[[Plan], None]:
    def change_it(plan: Plan) -> None:
        inner: Any = plan
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to

    return change_it


CONTRADICTIONS: dict[str, tuple[Callable[[Plan], None], str]] = {
    "strange broker": (_set("partitions", 0, "replicas", to=[99, 2]), "$.partitions[0].replicas has broker 99"),
    "strange old broker": (_set("partitions", 0, "replicas_before", to=[99, 1]), "replicas_before has broker 99"),
    "broker twice": (_set("partitions", 0, "replicas", to=[2, 2]), "$.partitions[0].replicas is [2, 2]"),
    "leader": (_set("partitions", 0, "leader_before", to=3), "$.partitions[0].leader_before is 3; allowed: null, 1, 2"),
    "topic": (_set("partitions", 0, "topic", to="z"), "$.partitions[0].topic is 'z', which isn't in $.topics"),
    "partition": (_set("partitions", 1, "partition", to=77), "$.partitions[1].partition is 77; allowed: below"),
    "batch": (_set("batches", 1, "partitions", 0, "partition", to=5), "$.batches[1].partitions[0] is b-5, which isn't"),
    "number": (_set("batches", 1, "number", to=1), "$.batches[1].number is 1; allowed: 2"),
    "no batch": (lambda plan: plan["batches"].pop(), "$.partitions[1] (b-1) moves in no batch"),
    "brokers": (lambda plan: plan["brokers"].append(plan["brokers"][0]), "which is there twice; allowed: once"),
    "known of some": (
        _set("brokers", 0, "before", "network_in", to=5),
        "network_in is null; allowed: a number, as the",
    ),
    "unknown of one": (_set("brokers", 0, "after", "size_bytes", to=None), "$.brokers[0].after.size_bytes is null"),
    "compared": (_set("compared", to=[]), "$.compared has 0 rows of label 'this plan'; allowed: one"),
    "inputs": (_set("inputs", to=[]), "$.inputs is empty"),
    "huge": (_set("partitions", 0, "size_bytes", to=10**30), "$.partitions[0].size_bytes is 1000000000000000000"),
}


def stepwise() -> Plan:
    """A partition that takes two batches, elected in the second; and one whose replica only changes its log dir."""
    whole = change("a", 0, (1, 2), (3, 4))
    inside = change("b", 1, (2, 3), (2, 3)) | {
        "reason": "balance_log_dirs",
        "log_dirs_before": ["/c", "any"],
        "log_dirs": ["/d", "any"],
    }
    return document([whole, inside], [[whole | {"replicas": [1, 4]}, inside], [whole | {"replicas_before": [1, 4]}]])


def _step(batch: int, to: Any, key: str = "replicas", number: int = 0) -> Callable[[Plan], None]:
    return _set("batches", batch, "partitions", number, key, to=to)


OTHER_STEPS: dict[str, tuple[Callable[[Plan], None], str]] = {
    "ends elsewhere": (
        _step(1, [1, 3]),
        "$.batches[1].partitions[0].replicas is [1, 3] for a-0, which goes 1,2 → 3,4 in $.partitions; allowed: [3, 4]",
    ),
    "unknown brokers": (_step(1, [99, 98]), "$.batches[1].partitions[0].replicas is [99, 98]"),
    "fewer replicas": (_step(1, [3]), "$.batches[1].partitions[0].replicas is [3]"),
    "fewer meanwhile": (
        lambda plan: (_step(0, [1])(plan), _step(1, [1], "replicas_before")(plan), None)[-1],
        "$.batches[0].partitions[0].replicas is [1] for a-0",
    ),
    "by way of another": (
        lambda plan: (_step(0, [1, 9])(plan), _step(1, [1, 9], "replicas_before")(plan), None)[-1],
        "$.batches[0].partitions[0].replicas is [1, 9] for a-0",
    ),
    "twice the same broker": (
        lambda plan: (_step(0, [4, 4])(plan), _step(1, [4, 4], "replicas_before")(plan), None)[-1],
        "$.batches[0].partitions[0].replicas is [4, 4]; allowed: each once",
    ),
    "another way back": (
        _step(0, [3], "replicas_before"),
        "$.batches[0].partitions[0].replicas_before is [3] for a-0, which goes 1,2 → 3,4 in $.partitions; "
        "allowed: [1, 2], which it has by then",
    ),
    "a break": (_step(1, [4, 1], "replicas_before"), "$.batches[1].partitions[0].replicas_before is [4, 1] for a-0"),
    "nothing done": (
        lambda plan: (_step(0, [1, 2])(plan), _step(1, [1, 2], "replicas_before")(plan), None)[-1],
        "or no such step, because it changes nothing",
    ),
    "nothing left to do": (lambda plan: plan["batches"].pop(), "$.batches[0].partitions[0].replicas is [1, 4] for a-0"),
    "no batches": (_set("batches", to=[]), "$.partitions[0] (a-0) moves in no batch"),
    "twice in a batch": (
        lambda plan: plan["batches"][0]["partitions"].append(plan["batches"][0]["partitions"][0]),
        "$.batches[0].partitions[2] has the partition 'a-0', which is there twice; allowed: once",
    ),
    "log dir": (_step(0, ["/e", "any"], "log_dirs", 1), "$.batches[0].partitions[1].log_dirs is ['/e', 'any'] for b-1"),
    "log dir of the way back": (
        _step(0, ["/e", "any"], "log_dirs_before", 1),
        "$.batches[0].partitions[1].log_dirs_before is ['/e', 'any'] for b-1",
    ),
    "log dir of none": (_step(1, ["/e", "any"], "log_dirs"), "$.batches[1].partitions[0].log_dirs is ['/e', 'any']"),
    "log dirs before alone": (lambda plan: plan["partitions"][1].pop("log_dirs"), "allowed: both or neither"),
    "elected early": (
        lambda plan: plan["batches"][0]["elect"].append(plan["batches"][1]["elect"].pop()),
        "$.batches[0].elect[0] is a-0; allowed: each partition with another leader in $.partitions, once, after",
    ),
    "elected twice": (
        lambda plan: plan["batches"][0]["elect"].append(plan["batches"][1]["elect"][0]),
        "$.batches[0].elect[0] is a-0; allowed: ",
    ),
    "elected for nothing": (
        lambda plan: plan["batches"][1]["elect"].append({"topic": "b", "partition": 1}),
        "$.batches[1].elect[1] is b-1; allowed: ",
    ),
    "not elected": (_set("batches", 1, "elect", to=[]), "$.partitions[0] (a-0) is elected in no batch; allowed: in"),
    "elected stranger": (
        lambda plan: plan["batches"][1]["elect"].append({"topic": "z", "partition": 0}),
        "$.batches[1].elect[1] is z-0, which isn't in $.partitions; allowed: ",
    ),
}


@pytest.mark.parametrize("name", OTHER_STEPS)
def test_batches_that_do_something_else_than_the_partitions_are_refused(name: str, tmp_path: Path) -> None:
    """Reviewers read $.partitions, and Kafka gets the steps of $.batches: no step may lead elsewhere."""
    damage, expected = OTHER_STEPS[name]
    plan = copy.deepcopy(stepwise())
    (tmp_path / "plan.json").write_bytes(json.dumps(with_id(plan)).encode())
    assert plan_file.read(tmp_path).batches
    damage(plan)
    found = refusal(json.dumps(with_id(plan)).encode(), tmp_path)
    assert expected in found


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_right_id_over_wrong_content_is_refused(name: str, tmp_path: Path) -> None:
    """A plan with wrong content and a fitting id is refused, with the path of the content and what is allowed."""
    damage, expected = CONTRADICTIONS[name]
    plan = copy.deepcopy(sound())
    damage(plan)
    found = refusal(json.dumps(with_id(plan)).encode(), tmp_path)
    assert expected in found


def test_an_unfitting_id_is_refused(tmp_path: Path) -> None:
    """A plan whose id doesn't fit is refused, whatever else is wrong."""
    (tmp_path / "plan.json").write_text(json.dumps({**sound(), "rack_aware": False}), encoding="utf-8")
    with pytest.raises(StalePlanError, match="plan_id doesn't fit the content"):
        plan_file.read(tmp_path)


def test_the_folder_of_a_restart_is_no_plan(tmp_path: Path) -> None:
    """The folder of a rolling restart is refused, and named as that."""
    (tmp_path / "restart.json").touch()
    with pytest.raises(PlannerError, match="is a restart's folder, which planner check takes; allowed: a plan or"):
        plan_file.read(tmp_path)

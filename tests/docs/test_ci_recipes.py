"""examples/ci: the forges' schemas accept the files, shellcheck the shell, and every step runs on fake forges."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fake_forges
import pytest
import yaml
from folders import ROOT

CI = ROOT / "examples" / "ci"
WORKFLOW, ACTION, GITLAB = (CI / name for name in ("github-actions.yml", "kafka-planner/action.yml", "gitlab-ci.yml"))
HOOKS = ROOT / ".pre-commit-hooks.yaml"
CASE = ROOT / "tests" / "cases" / "expand"
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
PLAN, SPEC = "clusters/orders-eu.plan", "clusters/orders-eu.yaml"
MARKER = f"<!-- kafka-planner: {SPEC} -->"


def loaded(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def shells() -> dict[str, str]:
    """Every piece of shell in the recipes by its place. GitLab runs all of a job's script in one shell."""
    steps = {"action": loaded(ACTION)["runs"]["steps"]}
    steps |= {name: job["steps"] for name, job in loaded(WORKFLOW)["jobs"].items()}
    found = {f"{job}: {step['name']}": step["run"] for job, all_ in steps.items() for step in all_ if "run" in step}
    jobs = {name: job for name, job in loaded(GITLAB).items() if isinstance(job, dict) and "script" in job}
    return found | {name: "\n".join(job["script"]) for name, job in jobs.items()}


def tool(*words: object) -> subprocess.CompletedProcess[str]:
    """Run one of the tools of the test extra."""
    command = [str(Path(sys.executable).parent / str(words[0])), *map(str, words[1:])]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "options"),
    [
        (WORKFLOW, ["vendor.github-workflows"]),
        (ACTION, ["vendor.github-actions"]),
        (GITLAB, ["vendor.gitlab-ci", "--data-transform", "gitlab-ci"]),
    ],
    ids=["workflow", "action", "gitlab"],
)
def test_the_forges_schemas_accept_the_file(path: Path, options: list[str]) -> None:
    """The files fit the published JSON Schemas that check-jsonschema includes."""
    ran = tool("check-jsonschema", "--builtin-schema", *options, path)

    assert (0, "ok -- validation done") == (ran.returncode, ran.stdout.strip()), ran.stdout


@pytest.mark.parametrize("name", shells())
def test_the_shell_is_sound(name: str, tmp_path: Path) -> None:
    """shellcheck and bash -n accept the shell, and no expression of the forge is pasted into it."""
    script = tmp_path / "step.sh"
    script.write_text(f"#!/usr/bin/env bash\nset -eo pipefail\n{shells()[name]}")
    ran = tool("shellcheck", "--severity", "style", script)

    assert 0 == ran.returncode, ran.stdout
    assert 0 == subprocess.run(["bash", "-n", script], check=False).returncode
    assert "${{" not in shells()[name]


def test_permissions_are_the_least() -> None:
    """The plan job may write comments, the apply job nothing. An apply isn't canceled in the middle of a batch."""
    workflow, gitlab = loaded(WORKFLOW), loaded(GITLAB)
    jobs = workflow["jobs"]

    assert ({}, {"contents": "read"}) == (workflow["permissions"], jobs["apply"]["permissions"])
    assert {"contents": "read", "pull-requests": "write"} == jobs["plan"]["permissions"]
    assert (False, False) == (
        jobs["apply"]["concurrency"]["cancel-in-progress"],
        gitlab["kafka apply"]["interruptible"],
    )


@dataclass(frozen=True)
class Forge:
    """A checkout with a committed plan, and fake commands of a forge."""

    folder: Path
    env: Mapping[str, str]

    @property
    def checkout(self) -> Path:
        """The repository's folder."""
        return self.folder / "checkout"

    @property
    def comments(self) -> list[str]:
        """The bodies of all comments."""
        return [comment["body"] for comment in json.loads((self.folder / "comments").read_text())]

    @property
    def used(self) -> list[str]:
        """The log of the tools' use."""
        return (self.folder / "used").read_text().splitlines()

    def run(self, shell: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a piece of shell as a runner does."""
        script = self.folder / "step.sh"
        script.write_text(shell)
        return subprocess.run(
            [*BASH, str(script)],
            cwd=self.checkout,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def git(self, *words: str) -> str:
        """Run git in the checkout."""
        ran = subprocess.run(
            ["git", *words], cwd=self.checkout, env=self.env, capture_output=True, text=True, check=True
        )
        return ran.stdout.strip()


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """A forge where the golden plan of examples/expand.yaml is committed, and planning gives the same plan."""
    shutil.copytree(CASE, tmp_path / "next")
    own = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
    names = {f"GIT_{who}_{what}": "t@t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env = {**os.environ, **own, **names, "GIT_CONFIG_NOSYSTEM": "1", **fake_forges.install(tmp_path, tmp_path / "next")}
    made = Forge(tmp_path, env)
    shutil.copytree(CASE, made.checkout / PLAN)
    (made.checkout / SPEC).write_text("version: 1\n")
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("commit", "-qm", "a plan"),
        ("remote", "add", "origin", "."),
    ):
        made.git(*words)
    return made


def another_plan(forge: Forge, file: str = "plan.json") -> None:
    """Make planning give another plan than the committed one, or another file in it."""
    (forge.folder / "next" / file).write_text("{}")


def refusal(forge: Forge, said: str = "limits.bytes_moved: the plan comes to 2 bytes, allowed: at most 1") -> None:
    """Make planning refuse the plan."""
    (forge.folder / "next" / "refused.txt").write_text(said)


def github(forge: Forge, before: str = "0" * 40) -> list[int]:
    """Run the action's own steps until one fails. Return their exit codes."""
    env = {
        "SPEC": SPEC, "PLAN": PLAN, "WHATIF_OPTIONS": "--engine local", "PACKAGE": "kafka-planner",
        "CONSTRAINTS": "c.txt",
        "RUNNER_TEMP": str(forge.folder / "temp"), "GITHUB_OUTPUT": str(forge.folder / "output"), "BEFORE": before,
        "GITHUB_REPOSITORY": "o/r", "PULL_REQUEST": "7", "GH_TOKEN": "secret",
    }  # fmt: skip
    codes: list[int] = []
    for step in loaded(ACTION)["runs"]["steps"]:
        output = forge.folder / "output"
        code = output.read_text().split("code=")[-1].strip() if output.exists() else ""
        if "run" in step and not any(codes):
            codes.append(forge.run(step["run"], **env, CODE=code).returncode)
    return codes


def gitlab(forge: Forge) -> int:
    """Run GitLab's planning job. Return its exit code."""
    env = {
        **loaded(GITLAB)["variables"], "KAFKA_PLANNER_TOKEN": "secret", "CI_API_V4_URL": "https://gitlab.invalid/api/v4",
        "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }  # fmt: skip
    return forge.run("\n".join(loaded(GITLAB)["kafka plan"]["script"]), **env).returncode


def planned_on(name: str, forge: Forge, **more: str) -> int:
    """Run a forge's planning job. Return its last exit code."""
    return github(forge, **more)[-1] if name == "github" else gitlab(forge)


both = pytest.mark.parametrize("name", ["github", "gitlab"])


@pytest.mark.slow
@both
def test_a_plan_as_committed_is_commented_once(name: str, forge: Forge) -> None:
    """A second push updates the comment. Other people's comments stay."""
    for _ in range(2):
        assert 0 == planned_on(name, forge)
        others, (ours,) = forge.comments[:2], forge.comments[2:]

        assert ["hello", "<!-- other -->"] == others
        assert ours.startswith(f"{MARKER}\n## Kafka plan\n")
        assert len(ours) < 65_536
    assert any("pip install --quiet -c" in line and "kafka-planner" in line for line in forge.used)


@pytest.mark.slow
@both
@pytest.mark.parametrize("file", ["plan.json", "ansible/roles/kafka_reassign/tasks/batch.yml"])
def test_a_folder_that_is_not_the_plan_of_its_spec_fails(name: str, file: str, forge: Forge) -> None:
    """If planning gives another plan than the committed one, the job fails and comments on the new plan."""
    another_plan(forge, file)

    assert 1 == planned_on(name, forge)
    assert forge.comments[2].startswith(MARKER)


@both
def test_a_refusal_is_told_and_fails(name: str, forge: Forge) -> None:
    """The job ends with the refusal's exit code, and the comment has the limit's key."""
    refusal(forge)

    assert 3 == planned_on(name, forge)
    assert "~~~~~~~~text\nlimits.bytes_moved: the plan comes to 2 bytes" in forge.comments[2]


@pytest.mark.slow
@both
def test_a_refusal_cannot_end_its_block(name: str, forge: Forge) -> None:
    """Whatever the refusal's lines begin with, they stay text, and only the last line ends the block."""
    refusal(forge, "x\n~~~~~~~~\n  ~~~~~~~~~\r~~~~~~~~ \n@octocat")

    assert 3 == planned_on(name, forge)
    block = forge.comments[2].split("~~~~~~~~text\n")[1]
    assert ["~~~~~~~~"] == re.findall(r"^ {0,3}~{8,}[ \t]*$", block, re.MULTILINE)
    assert block.rstrip().endswith("@octocat\n\n~~~~~~~~")


@pytest.mark.slow
def test_what_changed_since_the_last_push_is_folded_in(forge: Forge) -> None:
    """The comment has the differences from the last push's plan, if there was a last push."""
    assert 0 == github(forge)[-1]
    assert "Since the last push" not in forge.comments[2]
    assert 0 == github(forge, forge.git("rev-parse", "HEAD"))[-1]
    assert forge.comments[2].endswith("<summary>Since the last push</summary>\n\nthe same plan\n\n</details>\n")


@pytest.mark.slow
def test_a_long_report_leaves_the_diff_out(forge: Forge) -> None:
    """A comment on GitHub has at most 65,536 characters, so a long report is kept without the differences."""
    (forge.folder / "comment.md").write_text("x" * 64_950)
    github(forge, forge.git("rev-parse", "HEAD"))

    assert f"{MARKER}\n{'x' * 64_950}" == forge.comments[2]


@pytest.mark.slow
def test_what_is_other_than_on_the_target_branch_is_folded_in(forge: Forge) -> None:
    """GitLab's job fetches the target branch and adds the differences from its plan."""
    another_plan(forge)
    gitlab(forge)

    assert forge.comments[2].endswith("<summary>Beside the target branch</summary>\n\nanother plan\n\n</details>\n")


def applied(name: str, forge: Forge, check: str) -> tuple[int, list[str]]:
    """Run a forge's apply job. Return its exit code and the log of the tools' use."""
    steps: Sequence[str] = loaded(GITLAB)["kafka apply"]["script"]
    if name == "github":
        steps = [step["run"] for step in loaded(WORKFLOW)["jobs"]["apply"]["steps"] if "run" in step]
    env = {"PLAN": PLAN, "BOOTSTRAP_SERVERS": "k:9092", "KAFKA_BOOTSTRAP_SERVERS": "k:9092", "CHECK": check}
    for step in steps if name == "github" else ["\n".join(steps)]:
        code = forge.run(step, **env).returncode
        if code:
            break
    return code, [line for line in forge.used if not line.startswith("-m pip")]


@both
def test_an_apply_checks_first_then_runs_the_committed_playbooks(name: str, forge: Forge) -> None:
    """An apply checks the plan, and then runs apply.yml and verify.yml in the plan's own folder."""
    code, used = applied(name, forge, check="0")

    assert 0 == code
    assert [
        f"planner check {PLAN} --strict --bootstrap-servers k:9092",
        "ansible-playbook apply.yml in orders-eu.plan/ansible",
        "ansible-playbook verify.yml in orders-eu.plan/ansible",
    ] == used


@pytest.mark.slow
@both
def test_a_plan_that_does_not_fit_any_more_is_not_applied(name: str, forge: Forge) -> None:
    """If the check fails, the job ends with its exit code and no playbook runs."""
    assert (1, [f"planner check {PLAN} --strict --bootstrap-servers k:9092"]) == applied(name, forge, check="1")


def test_the_commands_used_exist() -> None:
    """Every command and option of the planner in the recipes exists."""
    from planner.cli.commands import command

    text = "\n".join(shells().values())
    used = re.findall(r"\bplanner (whatif|diff|check)\b([^;\n]*)", text)
    known = {name: {opt for param in command(name).params for opt in param.opts} for name, _ in used}

    assert {"whatif", "diff", "check"} == known.keys()
    assert [] == [opt for name, rest in used for opt in re.findall(r"--[a-z-]+", rest) if opt not in known[name]]


def test_the_hook_is_one_of_pre_commits() -> None:
    """pre-commit's own validator accepts the hook. It matches specs, but not files of a plan."""
    (hook,) = loaded(HOOKS)
    ran = tool("pre-commit", "validate-manifest", HOOKS)

    assert 0 == ran.returncode, ran.stdout
    assert re.match(hook["files"], SPEC)
    assert not re.match(hook["files"], f"{PLAN}/report.md")


@pytest.mark.slow
@pytest.mark.parametrize(("add", "code", "said"), [("", 0, "Passed"), ("limit: {}\n", 1, "did you mean 'limits'?")])
def test_the_hook_runs_under_pre_commit(add: str, code: int, said: str, forge: Forge) -> None:
    """The real pre-commit runs the hook with this checkout's planner instead of installing one."""
    (hook,) = loaded(HOOKS)
    entry = f"{sys.executable} -c 'from planner.cli.main import main; main()' {hook['entry'].removeprefix('planner ')}"
    config = {"repos": [{"repo": "local", "hooks": [{**hook, "language": "system", "entry": entry}]}]}
    (forge.checkout / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    (forge.checkout / SPEC).write_text(
        "version: 1\ncluster:\n  name: c\n  brokers: [{id: 1}]\n"
        f"  topics: [{{name: t, partitions: [{{replicas: [1]}}]}}]\n{add}"
    )
    forge.git("add", ".")
    command = [str(Path(sys.executable).parent / "pre-commit"), "run", "--color", "never"]
    env = {**forge.env, "PRE_COMMIT_HOME": str(forge.folder / "pre-commit"), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=forge.checkout, env=env, capture_output=True, text=True, check=False)

    assert (code, True) == (ran.returncode, said in ran.stdout), ran.stdout


def test_a_plans_files_keep_their_line_ends_and_all_but_the_report_are_folded(forge: Forge) -> None:
    """The lines of docs/files.md, for a plan in a folder inside the repository, and for one at its root."""
    (lines,) = re.findall(r"```gitattributes\n(.*?)```", (ROOT / "docs" / "files.md").read_text(), re.DOTALL)
    (forge.checkout / ".gitattributes").write_text(lines)
    for plan in (PLAN, "orders-eu.plan"):
        files = [f"{plan}/{name}" for name in ("plan.json", "ansible/apply.yml", "report.md")]
        found = forge.git("check-attr", "text", "linguist-generated", "--", *files).splitlines()
        values = [line.rpartition(": ")[2] for line in found]
        assert [*("unset", "true") * 2, "unset", "false"] == values

"""The list of commands, their summaries and examples, the imports of `--help`, and wrong usage."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from planner.cli.commands import COMMANDS, EXAMPLES, command, commands

SPEC = str(Path(__file__).parents[2] / "examples" / "expand.yaml")
LINES = [line for lines in EXAMPLES.values() for line in lines]


def test_every_command_has_examples() -> None:
    """Each command has examples, except the group `spark`."""
    assert set(EXAMPLES) == set(COMMANDS) - {"spark"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_ends_with_them(name: str) -> None:
    """Each example is on its own line in the command's help, even in a narrow terminal."""
    shown = CliRunner().invoke(commands, [name, "--help"], terminal_width=60).output

    assert [] == [line for line in EXAMPLES[name] if f"  {line}\n" not in shown]


@pytest.mark.parametrize("line", LINES)
def test_each_parses(line: str) -> None:
    """Each example's options and values are valid; the commands aren't run."""
    program, name, *words = shlex.split(line)
    context = command(name).make_context(name, words, parent=None)

    assert "planner" == program
    assert [] == context.args


@pytest.mark.parametrize("line", [each.replace("orders.yaml", SPEC) for each in EXAMPLES["place"]])
def test_each_of_place_runs(line: str) -> None:
    """The examples of `place` run without an error."""
    assert 0 == CliRunner().invoke(commands, shlex.split(line)[1:], standalone_mode=False).return_value


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The completion scripts that the docs recommend are printed for each shell."""
    monkeypatch.setenv("_PLANNER_COMPLETE", f"{shell}_source")
    shown = CliRunner().invoke(commands, [], prog_name="planner")

    assert 0 == shown.exit_code
    assert "_PLANNER_COMPLETE" in shown.output


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_in_the_list_is_the_command_s_own(name: str) -> None:
    """The list repeats each command's summary, because `planner --help` imports no command."""
    assert COMMANDS[name].summary == command(name).get_short_help_str(1_000)


def test_help_imports_no_command() -> None:
    """`planner --help` imports neither commands nor numpy, so that it is fast."""
    program = "import sys; from planner.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    program += "print(sorted({'numpy', 'pyarrow', 'planner.cli.whatif_fleet'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]" == ran.stdout.splitlines()[-1]


def test_modules_of_most_commands_import_no_solver() -> None:
    """Parts of SciPy are imported where they are first used: reading a spec or a plan needs none of them."""
    program = "import sys, planner.cli.planning, planner.cli.review, planner.cli.importing\n"
    program += "print(sorted({'scipy.sparse', 'scipy.optimize', 'matplotlib'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]" == ran.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("whatif",), "Missing argument"),
        (("whatif", "x.yaml", "--engine", "flink"), "flink"),
        (("whatif", "x.yaml", "--candidates", "0"), "0"),
        (("nonsense",), "nonsense"),
        (("show", "missing.json"), "missing.json"),
    ],
)
def test_wrong_usage_exits_1(planner, arguments, said):
    """Wrong usage exits with 1, because 2 means that a plan has moves."""
    ran = planner(*arguments)

    assert 1 == ran.code
    assert said in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("failures x.yaml --seed 3", "--seed is for sets of any number of brokers; allowed: with --of 3, for example"),
        ("failures x.yaml --of pairs --scenarios 9", "--scenarios is for sets of any number of brokers; allowed:"),
        ("consumers x.yaml --engine spark", "Spark is for what --sweep tries; allowed: with --sweep"),
        ("consumers x.yaml --partitions 3", "Spark is for what --sweep tries; allowed: with --sweep"),
        ("consumers x.yaml --add-partitions a=4 --add-partitions a=5", "a is here twice; allowed: each topic once"),
        ("size x.yaml --row 1 -o y.yaml --format json", "--format is for the table of clusters; allowed:"),
        ("size x.yaml --row 1 -o y.yaml --html p", "--html is for the table of clusters; allowed: without --row"),
        ("size x.yaml --row 1 -o y.yaml --engine local", "--engine is for the table of clusters; allowed: without"),
        ("show --journal x --quiet", "--quiet and --verbose are for a PLAN; allowed: without --journal"),
        ("show x.plan -v --format json", "--quiet works only with --format text, and --verbose only with text or"),
        ("show x.plan -q --format markdown", "--quiet works only with --format text, and --verbose only with text or"),
        ("whatif a.yaml b.yaml -v", "--quiet and --verbose are for one plan; allowed: a single SPEC"),
        ("check x.plan/plan.json --strict", "--strict judges the files of a folder, and x.plan/plan.json isn't one"),
        (
            "place --brokers 0 --partitions 1 --replication-factor 1 --start-index 0 --next-replica-shift 0 --topic t",
            "--topic is the name in JSON; allowed: with --format json",
        ),
        (
            "place --brokers 0 --partitions 1 --replication-factor 1 --algorithm round-robin --start-partition 2 "
            "--format replica-assignment",
            "--start-partition 2: kafka-topics leaves out a list for each partition that is there",
        ),
    ],
)
def test_an_option_that_would_change_nothing_is_refused(planner, line, said):
    """An option without an effect is refused, with what is allowed, before any file is read."""
    ran = planner(*shlex.split(line))

    assert (1, "") == (ran.code, ran.out)
    assert said in " ".join(ran.err.split())


@pytest.mark.parametrize("group", [(), ("spark",)])
def test_without_a_command_the_help_is_printed(planner, group):
    """Without a command the same help is printed as with --help."""
    assert planner(*group, "--help").out in planner(*group).err + planner(*group).out

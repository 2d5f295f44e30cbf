"""What Spark sessions take from the environment and put back, and on which Java they run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from folders import ROOT

from planner.model.errors import SetupError
from spark_jobs import session


def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment without Java, but with the programs on PATH that a shell script needs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "ps", "cat", "uname", "readlink", "env", "sed", "grep", "expr"):
        found = next((path for folder in ("/bin", "/usr/bin") if (path := Path(folder) / name).exists()), None)
        if found:
            (tools / name).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    return {**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def python(code: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python code in its own process."""
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.spark
def test_a_machine_without_java_plans_with_the_wheels_own(tmp_path):
    """Without Java on PATH and without JAVA_HOME, `planner whatif` runs on Spark with an empty stderr."""
    out = tmp_path / "plan"
    code = "from planner.cli.main import main; main()"
    arguments = ["whatif", str(ROOT / "examples" / "expand.yaml"), "--out", str(out), "--candidates", "50"]
    environment = without_java(tmp_path)

    assert 0 != subprocess.run(["/bin/sh", "-c", "command -v java"], env=environment, check=False).returncode
    ran = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert (out / "plan.json").exists()


@pytest.mark.spark
def test_a_session_leaves_the_environment_as_it_was(tmp_path):
    """A session sets environment variables for Spark while it is open, and restores them afterwards."""
    code = (
        "import os; from spark_jobs import session; before = dict(os.environ)\n"
        "with session.open_session(master='local[1]'): assert 'SPARK_HOME' in os.environ\n"
        "assert before == dict(os.environ)"
    )
    # The shell may choose a Python for another Spark. A local session's workers must not use it.
    environment = {**os.environ, "PYSPARK_PYTHON": "no-such-python"}

    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)

    assert (0, "") == (ran.returncode, ran.stderr)


@pytest.mark.spark
def test_what_a_session_writes_goes_with_it(tmp_path):
    """Java's temporary files and Spark's blocks are in one folder, which is deleted at the end."""
    code = (
        "from spark_jobs import session\n"
        "with session.open_session(master='local[1]') as context:\n"
        "    java = context._jvm.java.lang.System\n"
        "    print(java.getProperty('java.io.tmpdir'), context.getConf().get('spark.local.dir'))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_LOCAL_DIRS"}
    ran = python(code, environment | {"TMPDIR": str(tmp_path)})

    assert [tmp_path, tmp_path] == [Path(folder).parent for folder in ran.stdout.split()], ran.stderr
    assert [] == list(tmp_path.iterdir())


@pytest.mark.spark
def test_a_session_within_another_shares_its_context_and_leaves_it_open(spark):
    """A process has only one context. The session that opened it also stops it."""
    with session.open_session(master="local[1]") as inner:
        assert inner is spark.sparkContext
        assert [0, 1, 2] == inner.range(3).collect()
    assert 3 == spark.range(3).count()


@pytest.mark.spark
def test_a_java_that_was_killed_while_its_session_stopped_is_not_taken_again(tmp_path):
    """If Java was killed, the process's next session starts another Java."""
    code = (
        "from pyspark import SparkContext\n"
        "from spark_jobs import session, worker_tasks\n"
        "for _ in range(2):\n"
        "    with session.open_session(master='local[1]') as spark:\n"
        "        print(worker_tasks.cores(spark))\n"
        "    SparkContext._gateway.proc.kill()\n"
        "    SparkContext._gateway.proc.wait()"
    )
    ran = python(code, {**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert (0, "1\n1\n", "") == (ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.spark
def test_a_local_session_listens_on_loopback_alone(spark):
    """A local session listens only on 127.0.0.1, without Spark's web page."""
    conf = spark.sparkContext.getConf()

    assert ["127.0.0.1", "127.0.0.1"] == [conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")]
    assert "false" == conf.get("spark.ui.enabled")


@pytest.mark.spark
def test_an_unreachable_master_is_one_clear_error(tmp_path):
    """If the master can't be reached, the error names it, without a traceback, and nothing is written."""
    code = "from planner.cli.main import main; main()"
    arguments = ["whatif", str(ROOT / "examples" / "expand.yaml"), "--out", str(tmp_path / "plan")]
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--master", "nonsense"], capture_output=True, text=True, check=False
    )

    assert 1 == ran.returncode
    assert "nonsense" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "plan").exists()


@pytest.mark.spark
@pytest.mark.parametrize("room", ["size=4k", "nr_inodes=1", "nr_inodes=4"])
def test_a_scratch_disk_that_is_full_is_one_sentence(room, tmp_path):
    """On a real full disk of one page or a few files, the error is one sentence, and nothing is written."""
    scratch, out = tmp_path / "scratch", tmp_path / "plan"
    scratch.mkdir()
    mounted = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    alone = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)), "sh", "-c", mounted, "sh"]
    if not shutil.which("unshare") or subprocess.run([*alone, room, scratch, "true"], check=False).returncode:
        pytest.skip("no disk of its own for a command on this machine")
    # Data for workers goes through a file, as on a large cluster.
    code = (
        "from spark_jobs import worker_tasks; worker_tasks._WITH_A_TASK = 0; from planner.cli.main import main; main()"
    )
    arguments = ["whatif", str(ROOT / "examples" / "expand.yaml"), "--out", str(out), "--master", "local[2]"]
    ran = subprocess.run(
        [*alone, room, scratch, sys.executable, "-c", code, *arguments],
        env=os.environ | {"SPARK_LOCAL_DIRS": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (1, "", 1) == (ran.returncode, ran.stdout, ran.stderr.count("\n")), ran.stderr
    assert re.search(r"the disk of (its|Spark's) scratch folder is full", ran.stderr)
    assert not out.exists()


@pytest.mark.spark
def test_warm_makes_an_archive_that_sessions_then_use(tmp_path):
    """The wheel's Java has no class archive. `planner spark warm` makes one, and the next session uses it."""
    environment = without_java(tmp_path)
    warmed = python("from planner.cli.main import main; main(['spark', 'warm'])", environment)

    assert (0, "") == (warmed.returncode, warmed.stderr)
    archive = Path(warmed.stdout.split(": ")[0])
    assert archive.stat().st_size > 10_000_000
    used = python(
        "from spark_jobs import session\n"
        "with session.open_session(master='local[1]', frames=True) as spark:\n"
        "    print(spark.sparkContext.getConf().get('spark.driver.extraJavaOptions'), spark.range(7).count())",
        environment,
    )
    assert f"-XX:SharedArchiveFile={archive}" in used.stdout
    assert used.stdout.endswith("7\n")


@pytest.mark.spark
@pytest.mark.parametrize("many_rows", [False, True])
def test_java_has_both_compilers_for_many_rows_alone(many_rows):
    """Java's own options show that it has only one compiler unless there are many rows."""
    asked = python(
        "from spark_jobs import session\n"
        f"with session.open_session(master='local[1]', many_rows={many_rows}) as spark:\n"
        "    java = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()\n"
        "    print(session.ONE_COMPILER in list(java.getInputArguments()))",
        {**os.environ},
    )

    assert (f"{not many_rows}\n", "") == (asked.stdout, asked.stderr)


def test_a_connect_server_that_is_not_there_is_one_clear_error():
    """If the Connect server can't be reached, the error names --remote and the address."""
    with (
        pytest.raises(SetupError, match=r"--remote sc://127\.0\.0\.1:1"),
        session.open_session(remote="sc://127.0.0.1:1"),
    ):
        pass


def test_code_is_zipped_the_same_each_time(tmp_path):
    """The archives for a cluster's executors depend only on the code."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    first, second = (
        [Path(each.partition("#")[0]).read_bytes() for each in session.code_archives(folder)] for folder in folders
    )

    assert first == second


@pytest.mark.parametrize(("master", "local"), [("local", True), ("local[*]", True), ("local-cluster[1,1,512]", False)])
def test_only_masters_in_this_process_count_as_local(master, local):
    """`local-cluster` doesn't count, because its executors are separate processes that need our code."""
    assert local == session.is_local(master)


@pytest.mark.parametrize(
    ("master", "on_loopback"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,[::1]:7078", True),
        ("spark://10.0.0.7:7077,localhost:7077", False),
        ("spark://master.example:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_the_driver_listens_on_loopback_alone_where_all_workers_are_here(master, on_loopback):
    """Elsewhere, executors call the driver. A Kubernetes API on this machine may run its pods elsewhere."""
    assert on_loopback == session.is_on_loopback(master)


@pytest.mark.parametrize(
    ("master", "opened"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("spark://h:7077", "spark://h:7077"),
    ],
)
def test_a_local_master_starts_a_failed_task_again(master, opened):
    """A local master gets 4 attempts a task, as clusters do, unless the user has set a number. Spark's default is 1."""
    assert opened == session._patient(master)


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:1", "spark://127.0.0.1:1,localhost:1", "spark://[x", "spark://h:y"]
)
def test_a_standalone_master_that_is_not_there_is_one_clear_error(master):
    """If no master answers, the error comes at once. Spark itself would retry for a minute."""
    with (
        pytest.raises(SetupError, match=re.escape(f"--master {master}: no Spark master answers there")),
        session.open_session(master=master),
    ):
        pass


@pytest.mark.parametrize("master", ["x", " ", "local[x]", "local[0]", "local-cluster[1]", "spark://", "mesos://h:5050"])
def test_a_master_that_spark_does_not_know_is_one_clear_error(master):
    """An unknown kind of master is refused before Java would print a stack."""
    with (
        pytest.raises(SetupError, match=re.escape(f"--master {master}: no Spark master; allowed: spark://host:7077, ")),
        session.open_session(master=master),
    ):
        pass

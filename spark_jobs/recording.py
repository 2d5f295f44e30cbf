"""The archive of classes made by the way: the first session's Java writes down at its end which classes it has loaded.

That takes some seconds of its own, while the command chooses the plan and writes the files. Where the command is done
before, Java is given two seconds more; what isn't whole by then is thrown away, and the next run tries again.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

from planner.model import interrupts, processes
from spark_jobs.java import ClassArchive, Java

SPARE_SECONDS = 2


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
        if self.made is None or self._archive is None:
            return False
        try:
            return self.java is not None and not self.java.wait(seconds) and self._keep(self.made, self._archive)
        except subprocess.TimeoutExpired:
            processes.end_all()
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

"""Reads the state of a cluster as it is now, for a plan that exists: files of Kafka's tools, or the cluster itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from planner import file_reading
from planner.errors import Finding, ImportStateError, SetupError, SpecError
from planner.importers import log_dirs
from planner.importers.parts import StatePart
from planner.log_dirs_values import NO_LOG_DIRS, LogDirs, merged
from planner.model import InputFile
from planner.state.files import UnreadableError, files_in, read_file
from planner.state.importing import client_settings
from planner.state.live import read_live
from planner.state.now import Now, now_of
from planner.yaml_source import decode


@dataclass(frozen=True)
class Sources:
    """Where the state is read from: files and folders, a running cluster, or both."""

    files: tuple[Path, ...] = ()
    bootstrap_servers: str | None = None
    command_config: Path | None = None

    @property
    def any(self) -> bool:
        """True where there is anything to read."""
        return bool(self.files) or self.bootstrap_servers is not None


def read_now(sources: Sources, *, with_log_dirs: bool = False) -> Now:
    """The cluster as the sources show it, and which replica lies in which log dir where that is wanted.

    SpecError with every fault of every file; SetupError where the cluster can't be reached, or there is no such file.
    """
    if sources.command_config is not None and sources.bootstrap_servers is None:
        raise SetupError("--command-config is for --bootstrap-servers; allowed: both, or leave it out")
    parts: list[StatePart] = []
    inputs: list[InputFile] = []
    findings: list[Finding] = []
    if sources.bootstrap_servers is not None:
        parts.append(read_live(sources.bootstrap_servers, client_settings(sources.command_config)))
    for path, written in _paths(sources.files):
        try:
            found = read_file(path, written)
        except UnreadableError as error:
            raise SetupError(str(error)) from None
        except SpecError as error:
            findings += error.findings
            continue
        parts.append(found.part)
        inputs.append(found.input)
    if findings:
        raise ImportStateError(findings)
    lying = merged(_described(sources.files)) if with_log_dirs else NO_LOG_DIRS
    return now_of(parts, lying, tuple(inputs))


def _paths(files: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Every file with the name that plans and notes give it: no plan says where on a machine it lay."""
    for given in files:
        try:
            for path in files_in(given):
                yield path, path.relative_to(given.parent).as_posix()
        except UnreadableError as error:
            raise SetupError(str(error)) from None


def _described(files: Sequence[Path]) -> Iterator[LogDirs]:
    for path, written in _paths(files):
        text = decode(file_reading.read_bytes(path, file_reading.STATE_LINES), path.as_posix())
        if log_dirs.recognises(text):
            yield log_dirs.places(text, written)

"""The cluster as it is now, read from files of Kafka's tools or from the cluster: what plans are held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planner.inputs.importers import log_dirs_describe
from planner.inputs.importers.state_parts import StatePart
from planner.inputs.state.client_properties import client_settings
from planner.inputs.state.live_cluster import read_live
from planner.inputs.state.merge import merge, moving_now
from planner.inputs.state.state_files import UnreadableError, files_in, read_file
from planner.inputs.yaml_source import decode
from planner.model import file_reading
from planner.model.cluster import NO_LOG_DIRS, Config, LogDirs, Topic, merged
from planner.model.errors import Finding, ImportStateError, SetupError, SpecError
from planner.model.spec import InputFile


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
        if log_dirs_describe.recognises(text):
            yield log_dirs_describe.places(text, written)


Key = tuple[str, int]


@dataclass(frozen=True)
class Now:
    """A cluster now. Topics by name; partitions that are being reassigned have the replicas of their target.

    `moving` are those partitions; `racks` are the racks of the live brokers by id, None where no source tells who is
    live; `sizes` are bytes of one replica, None where no source has any. `inputs` are the files all this was read from.
    """

    topics: Mapping[str, Topic]
    moving: frozenset[Key] = frozenset()
    racks: Mapping[int, str | None] | None = None
    sizes: Mapping[Key, int] | None = None
    log_dirs: LogDirs = NO_LOG_DIRS
    inputs: tuple[InputFile, ...] = field(default=())
    config_defaults: Config = ()


def now_of(parts: Sequence[StatePart], log_dirs: LogDirs = NO_LOG_DIRS, inputs: tuple[InputFile, ...] = ()) -> Now:
    """The sources as one state; ImportStateError where they hold no partition, or contradict themselves."""
    merged = merge(parts, to_targets=True)
    return Now(
        topics={topic.name: topic for topic in merged.assignment.topics},
        moving=frozenset(moving_now(parts)),
        racks={broker.id: broker.rack for broker in merged.brokers} if merged.brokers else None,
        sizes=merged.sizes,
        log_dirs=log_dirs,
        inputs=inputs,
        config_defaults=merged.config_defaults,
    )

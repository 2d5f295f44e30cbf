"""`planner import`: the `cluster` part of a spec, from output of Kafka's tools in any known format."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from planner.cli.output import FILE, PATH, echo_line, echo_page, live_options, say
from planner.export import folder_check, folder_swap
from planner.export.output_folder import replace_file, require_unchanged, require_unread, say_nothing
from planner.inputs.importers.terraform_show import left_out, targets
from planner.inputs.spec.spec_document import PROFILES, REFUSED
from planner.inputs.state.live_cluster import live_parts
from planner.inputs.state.merge import ALLOWED_TEXT, TEXT, Merged, merge
from planner.inputs.state.spec_writer import TITLE, Imported, text, too_long, with_state_files
from planner.inputs.state.state_files import read_all
from planner.inputs.state.state_notes import conditions, left_out_brokers
from planner.model import interrupts
from planner.model.cluster import MIN_INSYNC, Broker, brokers_holding, in_force, keyed_partitions
from planner.model.errors import SetupError
from planner.model.formats import counted, printable, size


@dataclass(frozen=True)
class ImportOptions:
    """The options of `planner import`, as given on the command line."""

    bootstrap_servers: str | None = None
    command_config: Path | None = None
    name: str = "imported"
    topic: str | None = None
    reassigning: str = "refuse"
    out: Path | None = None


@dataclass(frozen=True)
class Result:
    """The YAML, a summary of what was found, notes on the state as sentences, and the paths that were written."""

    yaml: str
    summary: str
    notes: tuple[str, ...]
    paths: tuple[str, ...] = ()


def import_state(files: Sequence[Path], options: ImportOptions) -> Result:
    """Reads all sources, and writes the YAML to `options.out` if that is given.

    SpecError has every error of every source. SetupError if the cluster can't be reached, or `out` can't be written.
    """
    if not files and options.bootstrap_servers is None:
        raise SetupError("nothing to import; allowed: files, --bootstrap-servers, or both")
    if not TEXT.fullmatch(options.name):
        raise SetupError(f"--name {options.name[:60]!r} can't be used; allowed: {ALLOWED_TEXT}")
    if options.out is not None:
        if not options.out.name:
            raise SetupError("--output has no file name; allowed: a file")
        require_unread("--output", options.out, files)
        try:
            require_unchanged(options.out, "planner import", TITLE)
        except OSError as error:
            raise SetupError(f"{options.out}: can't be written: {error.strerror}; nothing was changed") from error
    # The running cluster comes first, so that it takes precedence.
    parts = live_parts(options.bootstrap_servers, options.command_config)
    parts += read_all(files, lambda _, path: path.as_posix(), options.topic, piped=True)
    merged = merge(parts, to_targets=options.reassigning == "target")
    imported = _imported(merged, options, any(part.shows_inherited for part in parts))
    if options.topic and options.topic not in {topic.name for topic in imported.topics}:
        raise SetupError(f"--topic {options.topic}: each file names its topics; allowed: leave it out")
    notes = (*merged.notes, *left_out(imported.targets, merged.declared_by), *conditions(merged))
    notes += tuple(left_out_brokers(parts, imported.brokers))
    if merged.platform and not imported.profile:
        notes += (f"no cap on replicas is published for {merged.platform}: cluster.profile is left out",)
    if options.out is None:
        large = too_long(imported)
        return Result(text(imported), _summary(imported), (*notes, large) if large else notes)
    return _write_files(imported, notes, options.out)


def _summary(imported: Imported) -> str:
    """A summary like `6 brokers in 3 racks, 21 topics, 91 partitions, 402 MB`."""
    racks = {broker.rack for broker in imported.brokers if broker.rack is not None}
    replicas = {key: len(each.replicas) for key, each in keyed_partitions(imported.topics)}
    brokers, rack_text = counted(len(imported.brokers), "broker"), counted(len(racks), "rack")
    unsized = len(replicas.keys() - imported.sizes.keys())
    sizes = size(sum(size_bytes * replicas.get(key, 0) for key, size_bytes in imported.sizes.items()))
    parts = (
        f"{brokers} in {rack_text}" if racks else f"{brokers} without racks",
        counted(len(imported.topics), "topic"),
        counted(len(replicas), "partition"),
        sizes if imported.sizes else "sizes unknown",
        *((f"{counted(unsized, 'partition')} without a size",) if unsized and imported.sizes else ()),
    )
    return ", ".join(parts)


def _imported(merged: Merged, options: ImportOptions, shows_inherited: bool) -> Imported:
    """The merged state with what else the YAML needs: a name, all brokers that hold replicas, and addresses."""
    topics, defaults = merged.assignment.topics, dict(merged.config_defaults)
    if shows_inherited and any(MIN_INSYNC not in in_force(topic, merged.config_defaults) for topic in topics):
        # All topics would show an inherited one, so it is Kafka's default. Without it, the YAML leaves it unknown.
        defaults[MIN_INSYNC] = "1"
    registered = {broker.id: Broker(broker.id, broker.rack, broker.disk_bytes) for broker in merged.brokers}
    brokers = tuple(
        replace(registered.get(number, Broker(number)), cordoned_log_dirs=merged.cordoned.get(number, ()))
        for number in sorted(brokers_holding(topics) | registered.keys())
    )
    servers = tuple(options.bootstrap_servers.split(",") if options.bootstrap_servers else ())
    return Imported(
        options.name,
        brokers,
        topics,
        merged.sizes or {},
        servers,
        merged.only_topics,
        targets({topic.name: [len(each.replicas) for each in topic.partitions] for topic in topics}, merged.targets),
        config_defaults=tuple(sorted(defaults.items())),
        # Reading the spec refuses platforms that place replicas themselves, and says why.
        profile=merged.platform if merged.platform in PROFILES or merged.platform.startswith(tuple(REFUSED)) else "",
    )


def _write_files(imported: Imported, notes: tuple[str, ...], out: Path) -> Result:
    """Writes the YAML, and with many partitions the state into files beside it. Each file is replaced as a whole."""
    folder = out.with_name(f"{out.stem}.state")
    imported, state_files = with_state_files(imported, folder.name)
    yaml_text = text(imported)
    try:
        # Both or none are written, because the old YAML doesn't fit the new state.
        with interrupts.delayed_signals():
            if state_files:
                _require_ours(folder, out)
                contents = folder_check.with_sums({name: content.encode() for name, content in state_files.items()})
                folder_swap.replace(folder, contents, (), folder_swap.signatures(folder), say_nothing)
            replace_file(out, yaml_text.encode())
    except OSError as error:
        raise SetupError(f"{out}: can't be written: {error.strerror}; what was there is as it was") from error
    paths = (*(folder / name for name in sorted(state_files)), out)
    return Result(yaml_text, _summary(imported), notes, tuple(map(str, paths)))


def _require_ours(folder: Path, out: Path) -> None:
    """SetupError if the folder isn't an unchanged earlier import: it may hold captures, or somebody may have edited it.

    An earlier import has a SHA256SUMS, the files that it lists, and no others.
    """
    if folder.is_dir() and not any(folder.iterdir()):
        return
    difference = folder_check.compare_with_list(folder) if folder.is_dir() and folder_check.listed_in(folder) else None
    if folder.exists() and (difference is None or difference.differences or difference.own):
        raise SetupError(
            f"{folder}: wasn't written by planner import, or was changed since; allowed: another name than {out.name}"
        )


@click.command("import")
@click.argument("files", metavar="[FILE...]", type=PATH, nargs=-1)
@live_options
@click.option("--name", default="imported", show_default=True, help="The cluster's name.")
@click.option("--topic", help="The topic of files that don't name theirs, such as 0:1,1:0.")
@click.option(
    "--reassigning",
    type=click.Choice(["refuse", "target"]),
    default="refuse",
    show_default=True,
    help="What to do with partitions that are being reassigned: refuse them, or use their targets.",
)
@click.option("-o", "--output", "out", type=FILE, help="File to write. [default: stdout]")
def import_(files: tuple[Path, ...], **options: Any) -> int:
    """Write the cluster part of a SPEC from the output of Kafka's tools.

    Reads files and folders; the format of each file is recognized from its content.

    Known formats are the output of kafka-topics --describe, kafka-log-dirs --describe, kafka-broker-api-versions and
    kafka-reassign-partitions, its JSON files, znodes, terraform show -json, and Cruise Control's answers. Answers of
    brokers take precedence over znodes, and znodes over documents; of two sources of the same kind, the one named first
    counts. Disagreements are reported on stderr.
    """
    result = import_state(files, ImportOptions(**options))
    say(f"found {result.summary}")
    for note in result.notes:
        say(f"note: {printable(note, 2_000)}")
    for path in result.paths:
        echo_line(str(path))
    if result.paths:
        spec = shlex.quote(result.paths[-1])
        say(f"next: write what to change under changes in {spec}, then planner validate {spec}")
    else:
        echo_page(result.yaml)
    return 0

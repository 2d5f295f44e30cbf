"""`planner load`: make a profile of a cluster's load from weeks of metrics, or show one."""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
import pyarrow as pa
from rich.console import Console

from planner.cli.engine import EngineOptions, on_spark, phases_shown, spark_options
from planner.cli.shown import FILE, Format, echo_line, format_option, show_found
from planner.export.output_folder import PAGE, PARQUET, replace_file, require_unread
from planner.inputs.load import profile_file
from planner.inputs.load.profile_statistics import TABLE_COLUMNS
from planner.model.errors import SetupError, did_you_mean
from planner.model.file_reading import LOAD, read_bytes
from planner.model.formats import counted
from planner.model.load_history import About
from planner.whatif import load_view


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--output", "out", type=FILE, help="Profile to write.")
@click.option("--show", is_flag=True, help="Show FILE, a profile, instead of making one.")
@click.option("--html", "page", type=FILE, help="Page with plots to write, too.")
@click.option("--column", "columns", multiple=True, help="NAME=COLUMN: what a table calls time, topic, size_bytes, …")
@click.option("--time-zone", default="UTC", show_default=True, help="The cluster's, such as Europe/Berlin.")
@spark_options
@format_option
def load(
    files: tuple[str, ...],
    out: Path | None,
    show: bool,
    page: Path | None,
    columns: tuple[str, ...],
    time_zone: str,
    form: Format,
    **engine: str | int | None,
) -> int:
    """Write a profile of each partition's load from FILEs of metrics.

    A FILE is a table (Parquet, CSV, JSON lines), an answer of Prometheus, or what Kafka's tools print.
    """
    options = EngineOptions("spark", **engine)  # type: ignore[arg-type]
    if show and (len(files) != 1 or out):
        raise click.UsageError("--show takes one profile, and no --output")
    if not show and out is None:
        raise click.UsageError("Missing option '-o' / '--output': the profile to write, such as load.parquet")
    for option, path, begins in (("--output", out, PARQUET), ("--html", page, PAGE)):
        if path:
            _writable(option, path)
            require_unread(option, path, files, begins)
    if out is None:
        rows, about = profile_file.decoded(read_bytes(Path(files[0]), LOAD), files[0])
    else:
        on_spark(options, otherwise=True)
        rows, about = _made(files, _names(columns), _zone(time_zone), options)
        content = profile_file.encoded(rows, about)
        replace_file(out, content)
    if page:
        replace_file(page, load_view.page(rows, about))
    summary = load_view.summary(rows, about)
    show_found(form, lambda: dataclasses.asdict(summary), lambda: load_view.view(summary))
    if out:
        made = counted(len(rows), "partition")
        echo_line(f"{out}: {made}, {len(content):,} bytes; next: cluster.load: {out} in the YAML", err=True)
    return 0


def _made(
    files: tuple[str, ...], names: Mapping[str, str], zone: str, options: EngineOptions
) -> tuple[pa.Table, About]:
    with phases_shown(Console(stderr=True)) as phase:
        phase.begin("starting Spark")
        from spark_jobs import load_profile as job  # planner never imports pyspark; this is its only door
        from spark_jobs import session

        with session.open_session(master=options.master, remote=options.remote, frames=True, many_rows=True) as spark:
            return job.profile(spark, job.LoadRequest(files, names, zone), options.partitions, phase.begin)


def _writable(option: str, out: Path) -> None:
    """SetupError if a file couldn't be written, before the minutes of work that it takes to make it."""
    folder = Path(os.path.realpath(out)).parent
    if not folder.is_dir():
        raise SetupError(f"{option} {out}: {folder} is no folder; allowed: a file in a folder that exists")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SetupError(f"{option} {out}: {folder} can't be written to; allowed: a file in a folder that can")


def _names(columns: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for each in columns:
        name, sign, column = each.partition("=")
        if not sign or not column or name not in TABLE_COLUMNS:
            raise SetupError(
                f"--column {each}: {did_you_mean(name, TABLE_COLUMNS)}"
                f"allowed: NAME=COLUMN with one of {', '.join(TABLE_COLUMNS)}"
            )
        names[name] = column
    return names


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SetupError(f"--time-zone {name}: is no time zone; allowed: a name such as Europe/Berlin or UTC") from None

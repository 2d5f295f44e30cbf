"""`planner load`, `growth`, `size` and `drain`: a cluster's load, how long it lasts, brokers to buy, room on a disk."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
import pyarrow as pa
from rich.console import Console

from planner.cli import output
from planner.cli.engine import IN_PROCESS, EngineOptions, compute, engine_options, uses_spark
from planner.cli.output import FILE, Format
from planner.cli.whatif_fleet import WhatifOptions, whatif
from planner.export import output_folder
from planner.inputs import load_profile_file
from planner.inputs.load_profile_statistics import TABLE_COLUMNS
from planner.inputs.spec import reading
from planner.inputs.state.spec_writer import drained, with_brokers
from planner.model.amounts import LEAST_BYTES, lacks_unit, parse_bytes
from planner.model.balance import exact
from planner.model.document_fields import PPM
from planner.model.errors import PlannerError, SetupError, did_you_mean
from planner.model.file_reading import LOAD, read_bytes
from planner.model.formats import counted, printable, size_and_bytes
from planner.model.load_history import HistoryFacts
from planner.model.spec import Spec
from planner.plan.document import codec
from planner.report.terminal import Detail
from planner.whatif import brokers_for_growth, growth_report, load_report, sizing, sizing_report


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("-o", "--output", "out", type=FILE, help="Profile to write.")
@click.option("--show", is_flag=True, help="Show FILE, a profile, instead of making one.")
@click.option("--html", "page", type=FILE, help="Also write a page with plots.")
@click.option("--column", "columns", multiple=True, help="NAME=COLUMN: a table's column for time, topic, size_bytes, …")
@click.option("--time-zone", default="UTC", help="The cluster's time zone, such as Europe/Berlin. [default: UTC]")
@engine_options()
@output.format_option
def load(
    files: tuple[str, ...],
    out: Path | None,
    show: bool,
    page: Path | None,
    columns: tuple[str, ...],
    time_zone: str,
    engine: EngineOptions,
    form: Format,
) -> int:
    """Write a profile of each partition's load from FILEs of metrics.

    A FILE is a table (Parquet, CSV, JSON lines), an answer of Prometheus, or what Kafka's tools print.
    """
    if show:
        making = ("out", "columns", "time_zone", "master", "remote", "partitions")
        output.refuse_given("is for making a profile; allowed: without --show", *making)
        if len(files) != 1:
            raise click.UsageError("--show takes one profile")
    if not show and out is None:
        raise click.UsageError("Missing option '-o' / '--output': the profile to write, such as load.parquet")
    output_folder.require_two_files("--output", out, "--html", page)
    # A history is Parquet, as a profile is, and would be lost.
    outputs = (out, "a load profile", load_profile_file.is_profile), (page, "a page", output_folder.is_page)
    for option, (path, description, is_own) in zip(("--output", "--html"), outputs, strict=True):
        if path:
            output_folder.require_writable(option, path)
            output_folder.require_unread(option, path, files)
            output_folder.require_own(option, path, description, is_own)
    if out is None:
        rows, about = load_profile_file.decoded(read_bytes(Path(files[0]), LOAD), files[0])
    else:
        uses_spark(engine, otherwise=True)
        rows, about = _profile(files, _names(columns), _zone(time_zone), engine)
        content = load_profile_file.encoded(rows, about)
        output_folder.replace_file(out, content)
    if page:
        output_folder.replace_file(page, load_report.page(rows, about))
    summary = load_report.summary(rows, about)
    output.show_found(form, lambda: dataclasses.asdict(summary), lambda: load_report.view(summary))
    if out:
        partitions = counted(len(rows), "partition")
        output.say(f"{out}: {partitions}, {len(content):,} bytes; next: write cluster.load: {out} in the YAML")
    return 0


def _profile(
    files: tuple[str, ...], names: Mapping[str, str], zone: str, options: EngineOptions
) -> tuple[pa.Table, HistoryFacts]:
    with output.phases_shown(Console(stderr=True)) as phase:
        phase.begin("starting Spark")
        from spark_jobs import load_profile as job
        from spark_jobs import session

        with session.open_session(master=options.master, remote=options.remote, frames=True, many_rows=True) as spark:
            return job.profile(spark, job.LoadRequest(files, names, zone), options.partitions, phase.begin, output.say)


def _names(columns: tuple[str, ...]) -> dict[str, str]:
    names: dict[str, str] = {}
    for each in columns:
        name, sign, column = each.partition("=")
        if not sign or not column or name not in TABLE_COLUMNS:
            raise SetupError(
                f"--column {each}: {did_you_mean(name, TABLE_COLUMNS)}"
                f"allowed: NAME=COLUMN with one of {', '.join(TABLE_COLUMNS)}"
            )
        if name in names:
            raise SetupError(f"--column {each}: {name} is {names[name]} already; allowed: each name once")
        names[name] = column
    return names


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SetupError(
            f"--time-zone {name}: isn't a time zone; allowed: a name such as Europe/Berlin or UTC"
        ) from None


# From this number of clusters on, a second worker saves more time than starting Spark takes.
MANY = 100


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option(
    "--months", type=click.IntRange(min=1, max=120), default=12, show_default=True, help="Months to look ahead."
)
@engine_options(IN_PROCESS)
@output.format_option
def growth(path: Path, months: int, engine: EngineOptions, form: Format) -> int:
    """Show when brokers of SPEC reach a limit.

    Today and as planned, and how many more brokers would help.
    """
    spark_wanted = uses_spark(engine, otherwise=False)
    spec = reading.load(path)
    rated = any(part.bytes_in_per_sec for topic in spec.cluster.topics for part in topic.partitions)
    if not spec.cluster.sizes_known and not rated:
        raise PlannerError(
            f"{path}: growth can't be judged without sizes or rates; allowed: cluster.state.sizes or cluster.rates"
        )
    cases = brokers_for_growth.cases(spec, months)
    rows = compute(engine, spark_wanted, brokers_for_growth.questions(cases))
    document = growth_report.document(spec, cases, brokers_for_growth.today_row(cases[0]), rows)
    output.show_found(form, lambda: codec.as_json(document), lambda: growth_report.view(document))
    return 0


def _write_row(path: Path, spec: Spec, combinations: Sequence[sizing.Combination], number: int, out: Path) -> None:
    """Writes a copy of a spec that asks for one cluster of the table. SetupError if the table has no such number."""
    if number > len(combinations):
        raise SetupError(f"--row {number}: there is no such cluster; allowed: 1 to {len(combinations)}")
    output_folder.require_beside(out, path)
    output_folder.require_unread("--output", out, reading.files_read(path, spec))
    title = f"Written by planner size for {printable(path.name)}: the brokers of one row are under changes."
    output_folder.require_unchanged(out, f"planner size of {path}", title)
    chosen, used = combinations[number - 1], sizing.sizing_of(spec).disk_used_ppm
    share = None if used == PPM else f"{exact(used / 10_000)}%"
    try:
        text = with_brokers(
            path.read_text(encoding="utf-8-sig"), chosen.added, chosen.removed, chosen.broker_class, share, title
        )
    except ValueError as error:
        allowed = "allowed: each key at the beginning of a line, and no alias of a value that changes or sizing have"
        raise SetupError(f"{path}: can't be rewritten: {error}; {allowed}") from None
    output_folder.replace_file(out, text.encode())


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option("--row", type=click.IntRange(min=1), help="Write a SPEC for the cluster with this number to --output.")
@click.option("-o", "--output", "out", type=FILE, help="SPEC to write.")
@click.option("--html", "page", type=FILE, help="Also write a page with a plot.")
@engine_options(f"spark for {MANY} clusters or more, else local")
@output.format_option
def size(path: Path, row: int | None, out: Path | None, page: Path | None, engine: EngineOptions, form: Format) -> int:
    """Show which brokers to buy for SPEC, and how many.

    Plans every class and number of brokers that sizing allows, and judges each by growth and failures.
    """
    if (row is None) != (out is None):
        raise click.UsageError("--row and --output go together")
    if row is not None:
        of_table = ("page", "engine", "master", "remote", "partitions", "form")
        output.refuse_given("is for the table of clusters; allowed: without --row", *of_table)
    spec = reading.load(path)
    try:
        combinations = sizing.combinations(spec)
    except SetupError as error:
        raise SetupError(f"{path}: {error}") from None
    if row is not None and out is not None:
        _write_row(path, spec, combinations, row, out)
        if short := sizing_report.reached_sentence(sizing.evaluate(sizing.SizingStudy.of(spec), combinations[row - 1])):
            output.say(f"warning: {short}")
        output.say(f"{out}: next: planner whatif {shlex.quote(str(out))}")
        return 0
    if page:
        output_folder.require_writable("--html", page)
        output_folder.require_unread("--html", page, reading.files_read(path, spec))
        output_folder.require_own("--html", page, "a page", output_folder.is_page)
    spark = uses_spark(engine, otherwise=len(combinations) >= MANY)
    rows = compute(engine, spark, sizing.questions(spec, combinations), tasks_each=sizing.TASKS_EACH)
    document = sizing_report.document(spec, combinations, sizing.today_row(spec), rows)
    if page:
        output_folder.replace_file(page, sizing_report.page(document))
    output.show_found(form, lambda: codec.as_json(document), lambda: sizing_report.view(document))
    if document.chosen is not None:
        today, bought = (
            shlex.quote(str(each)) for each in (path, path.with_name(f"{path.stem}-{document.chosen}.yaml"))
        )
        output.say(f"next: planner size {today} --row {document.chosen} -o {bought}")
    return 0


@click.command()
@click.argument("path", metavar="SPEC", type=FILE)
@click.option("--broker", type=click.IntRange(min=0), required=True, help="Id of the broker whose disk is too full.")
@click.option("--for", "amount", metavar="disk=SIZE", required=True, help="Bytes to free at least, such as disk=200GB.")
@click.option("-o", "--output", "out", type=FILE, help="SPEC to write. [default: SPEC's name with -drain-BROKER]")
@output.format_option
@output.detail_options
@output.shows_refused
def drain(path: Path, broker: int, amount: str, out: Path | None, form: Format, detail: Detail | None) -> int:
    """Plan to free disk space on a broker of SPEC with the fewest bytes.

    --for is how much to free at least, not how much the broker may hold. The plan keeps the rules of SPEC (racks,
    topics, placement, caps, limits) and copies as little as possible; the report says how far it is from the proven
    minimum. SPEC's changes and balance are ignored.

    Writes a new SPEC, whose capacity.max_disk is the most that the broker may hold, and its plan next to it.
    """
    spec, new_path = reading.load(path), out or path.with_name(f"{path.stem}-drain-{broker}{path.suffix}")
    output_folder.require_beside(new_path, path)
    output_folder.require_unread("--output", new_path, reading.files_read(path, spec))
    most = _most_bytes(spec, broker, amount, path)
    title = f"Written by planner drain for {printable(path.name)}: all that broker {broker} may hold is its max_disk."
    output_folder.require_unchanged(new_path, f"planner drain --broker {broker} of {path}", title)
    output_folder.check(new_path.with_suffix(".plan"))
    old_content = new_path.read_bytes() if new_path.exists() else None
    output_folder.replace_file(new_path, drained(path.read_text("utf-8-sig"), broker, most, title).encode())
    options = WhatifOptions(engine="local", out=new_path.with_suffix(".plan"))
    try:
        planned = whatif(new_path, options, Console(stderr=True))
    except BaseException:
        # If there is no plan, the SPEC isn't written either.
        new_path.unlink() if old_content is None else output_folder.replace_file(new_path, old_content)
        raise
    output.say(f"{new_path}: written, and planned")
    output.show(planned.plan, form, detail, planned.job.folder, len(planned.files))
    return 0


def _most_bytes(spec: Spec, broker: int, amount: str, path: Path) -> int:
    """The most bytes that the broker may hold afterwards. SetupError if that amount can't be freed."""
    resource, _, size = amount.partition("=")
    try:
        freed = parse_bytes(size) if resource == "disk" and not lacks_unit(size, LEAST_BYTES) else 0
    except ValueError:
        freed = 0
    if freed <= 0:
        raise SetupError(f"--for {amount}: isn't an amount to free; allowed: disk= and a size, such as disk=200GB")
    brokers = {each.id: each for each in spec.cluster.brokers}
    if broker not in brokers:
        allowed = ", ".join(map(str, brokers))
        raise SetupError(f"--broker {broker}: isn't in cluster.brokers of {path}; allowed: {allowed}")
    if not spec.cluster.sizes_known:
        raise SetupError(f"{path}: no size of a partition is known; allowed: cluster.state.sizes")
    parts = [part for topic in spec.cluster.topics for part in topic.partitions]
    bytes_held = sum(part.size_bytes for part in parts if broker in part.replicas)
    if freed >= bytes_held:
        raise SetupError(
            f"--for {amount}: broker {broker} holds {size_and_bytes(bytes_held)}; allowed: less than that. To empty "
            f"it, changes.remove_brokers: [{broker}]"
        )
    target = brokers[broker]
    # A max_disk is below the disk; one that SPEC states stays, if it is lower.
    limits = (bytes_held - freed, None if target.disk_bytes is None else target.disk_bytes - 1, target.max_disk_bytes)
    return min(each for each in limits if each is not None)

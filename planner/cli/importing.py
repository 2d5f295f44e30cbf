"""`planner import`: what a cluster prints, of any age and format, as the `cluster` part of a spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from planner.cli.shown import echo_line, echo_page
from planner.figures import printable
from planner.state.importing import Options, import_state


@click.command("import")
@click.argument("files", metavar="[FILE...]", type=click.Path(path_type=Path), nargs=-1)
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Ask a running cluster; needs the extra 'live'.")
@click.option(
    "--command-config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A Java client's properties for TLS and SASL, as Kafka's tools take them.",
)
@click.option("--name", default="imported", show_default=True, help="What the cluster is called.")
@click.option("--topic", help="The topic of files that don't name theirs, such as 0:1,1:0.")
@click.option(
    "--reassigning",
    type=click.Choice(["refuse", "target"]),
    default="refuse",
    show_default=True,
    help="Partitions that are being reassigned: refuse them, or take their targets.",
)
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. [default: stdout]")
def import_(files: tuple[Path, ...], **options: Any) -> int:
    """Write the cluster part of a spec from what a cluster prints: FILEs and folders, their formats told by content.

    Read are the outputs of kafka-topics --describe, kafka-log-dirs --describe, kafka-broker-api-versions and
    kafka-reassign-partitions, its JSON files, znodes, terraform show -json, and Cruise Control's answers. What brokers
    answer outranks znodes, znodes outrank documents; within a rank the source named first counts. What they disagree
    about goes to stderr.
    """
    result = import_state(files, Options(**options))
    for note in result.notes:
        echo_line(f"note: {printable(note)}", err=True)
    for path in result.written:
        echo_line(str(path))
    if not result.written:
        echo_page(result.yaml)
    return 0

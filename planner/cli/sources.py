"""The options that say where the state of the cluster as it is now comes from; `check` and `resume` share them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from planner.approval.cluster_now import Sources

_OPTIONS = (
    click.option(
        "--state",
        "files",
        metavar="FILE",
        type=click.Path(path_type=Path),
        multiple=True,
        help="What Kafka's tools print now, or a folder of it; any format that planner import reads. May be repeated.",
    ),
    click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Ask a running cluster; needs the extra 'live'."),
    click.option(
        "--command-config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A Java client's properties for TLS and SASL, as Kafka's tools take them.",
    ),
)


def options(command: Callable[..., int]) -> Callable[..., int]:
    """A command with these options, which get it as one `sources`."""

    @wraps(command)
    def given(files: tuple[Path, ...], bootstrap_servers: str | None, command_config: Path | None, **rest: Any) -> int:
        return command(sources=Sources(files, bootstrap_servers, command_config), **rest)

    for option in reversed(_OPTIONS):
        given = option(given)
    return given

"""`planner consumers`: what a change does to those who read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from planner.cli import consumers_job
from planner.cli.shown import Format, echo_json, echo_page, format_option
from planner.whatif.consumers import consumers_report as consumers_view

_COUNTS = re.compile(r"([0-9]{1,6})-([0-9]{1,6})", re.ASCII)
_TOPIC = re.compile(r"([A-Za-z0-9._-]{1,249})=([0-9]{1,6})", re.ASCII)


def _grown(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """`orders=24`: a topic and its new partition count."""
    found = [_TOPIC.fullmatch(value) for value in values]
    for value, match in zip(values, found, strict=True):
        if match is None:
            raise click.BadParameter(f"{value!r} isn't a topic and its partitions; allowed: such as orders=24")
    return tuple((match[1], int(match[2])) for match in found if match)


def _range(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """`2-12`: the fewest and the most consumers."""
    if value is None:
        return None
    match = _COUNTS.fullmatch(value)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise click.BadParameter(f"{value!r} isn't a range of consumers; allowed: such as 2-12")
    return int(match[1]), int(match[2])


@click.command()
@click.argument("spec", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--plan", type=click.Path(path_type=Path), help="A plan of SPEC: which partitions change racks.")
@click.option("--group", "groups", multiple=True, help="Only this group; may be given again.")
@click.option("--add-partitions", "grown", multiple=True, callback=_grown, metavar="TOPIC=COUNT", help="What if.")
@click.option("--key", "keys", multiple=True, help="Follow this key through changed partition counts.")
@click.option("--sweep", is_flag=True, help="How many consumers, and which assignor, through Spark.")
@click.option("--consumers", callback=_range, metavar="2-12", help="The numbers of consumers that --sweep tries.")
@click.option("--engine", type=click.Choice(["spark", "local"]), default="spark", show_default=True)
@click.option("--master", help="Spark master. [default: local[*]]")
@click.option("--remote", help="Spark Connect server.")
@format_option
def consumers(spec: Path, form: Format, **options: Any) -> int:
    """Show who reads what in SPEC's consumer groups, how even that is, and what moves when something happens.

    Groups stand in SPEC's `consumers`: written there, or as kafka-consumer-groups --describe prints them.
    """
    found = consumers_job.consumers(spec, consumers_job.ConsumersOptions(**options))
    match form:
        case "json":
            echo_json(found)
        case "markdown":
            echo_page(consumers_view.markdown(found))
        case _:
            echo_page(consumers_view.text(found))
    return 0

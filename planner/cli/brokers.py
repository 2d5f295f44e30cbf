"""Brokers on a command line: `--brokers 0,1,2 --racks 0=a,1=b`, or those of a spec."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from planner.inputs.spec import reading
from planner.inputs.state.merge import merge
from planner.inputs.state.state_files import files_in, read_file
from planner.model.cluster import Topic

Brokers = tuple[tuple[int, str | None], ...]

LARGEST_ID = 2**31 - 1
# The key stands at a spec's top, after a comment.
_HEAD_BYTES = 65_536


def _ids(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """`0,1,2`: brokers' ids, each once; ascending, as Kafka sorts them."""
    if value is None:
        return None
    ids = [_id(word) for word in value.split(",")]
    if None in ids or len(set(ids)) < len(ids):
        raise click.BadParameter(f"{value!r} isn't a list of brokers; allowed: ids, each once, such as 0,1,2")
    return tuple(sorted(each for each in ids if each is not None))


def _racks(_: click.Context, __: click.Parameter, value: str | None) -> tuple[tuple[int | None, str], ...] | None:
    """`0=a,1=b`: the rack of each broker."""
    if value is None:
        return None
    pairs = [word.partition("=") for word in value.split(",")]
    racks = tuple((_id(broker), rack.strip()) for broker, _, rack in pairs)
    if any(broker is None or not rack for broker, rack in racks) or len(dict(racks)) < len(racks):
        raise click.BadParameter(f"{value!r} isn't a list of racks; allowed: a rack a broker, such as 0=a,1=b")
    return racks


def _id(word: str) -> int | None:
    text = word.strip()
    return int(text) if re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) and int(text) <= LARGEST_ID else None


def broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--brokers`, `--racks` and `--disable-rack-aware`."""
    for option in (
        click.option("--disable-rack-aware", is_flag=True, help="Place without looking at racks."),
        click.option("--racks", callback=_racks, metavar="0=a,1=b", help="Their racks."),
        click.option("--brokers", callback=_ids, metavar="0,1,2", help="The brokers, instead of a file's."),
    ):
        command = option(command)
    return command


def given(brokers: tuple[int, ...] | None, racks: tuple[tuple[int, str], ...] | None) -> Brokers:
    """The brokers of `--brokers` with the racks of `--racks`, by id; UsageError where a rack has no broker."""
    named = dict(racks or ())
    unknown = sorted(named.keys() - set(brokers or ()))
    if unknown:
        allowed = ", ".join(map(str, brokers)) if brokers else "only together with --brokers"
        raise click.UsageError(f"--racks names broker {unknown[0]}; allowed: {allowed}")
    return tuple((broker, named.get(broker)) for broker in brokers or ())


def of_file(path: Path) -> tuple[tuple[Topic, ...], Brokers, bool]:
    """The topics, the brokers with their racks, and whether placement is rack-aware, of a spec or of state files.

    State files are what Kafka's tools print, or a folder of such files; brokers are known from few of them, else none.
    SpecError or ImportStateError where it is neither.
    """
    if _is_spec(path):
        wish = reading.load(path)
        return (
            wish.cluster.topics,
            tuple(sorted((each.id, each.rack) for each in wish.cluster.brokers)),
            wish.rack_aware,
        )
    merged = merge([read_file(each, each.as_posix()).part for each in files_in(path)])
    return merged.assignment.topics, tuple((each.id, each.rack) for each in merged.brokers), True


def _is_spec(path: Path) -> bool:
    """True for YAML by its name, or with the key `cluster` at the beginning of a line."""
    if path.suffix in (".yaml", ".yml"):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return re.search(rb"^cluster\s*:", file.read(_HEAD_BYTES), re.MULTILINE) is not None
    except OSError:  # whoever reads it then says why it can't be read
        return False

"""Where a command computes: on Spark, or in this process, with the same result.

`whatif` runs on Spark. The other commands run in this process, unless an option of Spark's is given; `failures` of any
K brokers at once are so many that they run on Spark, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import click

from planner.model.errors import SetupError


@dataclass(frozen=True)
class EngineOptions:
    """The options that say where a command computes; with `engine` None the command decides."""

    engine: Literal["spark", "local"] | None = None
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def engine_options(default: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """`--engine`, `--master`, `--remote` and `--partitions`, with what `--engine` is by default."""

    def decorated(command: Callable[..., int]) -> Callable[..., int]:
        every = (
            click.option("--engine", type=click.Choice(["spark", "local"]), help=f"[default: {default}]"),
            click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]"),
            click.option("--remote", help="Spark Connect server, such as sc://host:15002."),
            click.option(
                "--partitions",
                type=click.IntRange(min=1),
                help="Spark partitions; the result doesn't depend on it.",
            ),
        )
        for option in reversed(every):
            command = option(command)
        return command

    return decorated


IN_PROCESS = "local, or spark with one of the next options"


def on_spark(options: EngineOptions, *, otherwise: bool) -> bool:
    """True where a command computes on Spark; `otherwise` decides where no option does. SetupError: conflicts."""
    given: list[tuple[str, Any]] = [(name, getattr(options, name)) for name in ("master", "remote", "partitions")]
    named = [name for name, value in given if value is not None]
    if options.engine == "local" and named:
        raise SetupError(f"--{named[0]} is Spark's; allowed: --engine spark, or leave it out")
    if options.master and options.remote:
        raise SetupError("--master and --remote exclude each other; allowed: one of them")
    return options.engine == "spark" or (options.engine is None and (otherwise or bool(named)))

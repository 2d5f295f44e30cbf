"""Where a command computes: on Spark or in this process.

A command computes on Spark or in this process, with the same result. `whatif` and `load` run on Spark. The others run
in this process, unless an option for Spark is given, or the work is large enough for Spark: `failures` of any
K brokers at once, and `size` of many clusters.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Literal, TypeVar

import click

from planner.model.errors import SetupError

T = TypeVar("T")


@dataclass(frozen=True)
class EngineOptions:
    """The options that say where a command computes. If `engine` is None, the command decides."""

    engine: Literal["spark", "local"] | None = None
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def engine_options(default: str | None = None) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Adds the options for Spark, and `--engine` if it has a `default`. The command gets them as one `engine`.

    Without a default, the command computes on Spark.
    """

    def gathered(command: Callable[..., int]) -> Callable[..., int]:
        @click.option("--master", help="Spark master, such as spark://host:7077 or yarn. [default: local[*]]")
        @click.option("--remote", help="Spark Connect server, such as sc://host:15002.")
        @click.option(
            "--partitions", type=click.IntRange(min=1), help="Spark partitions; the result doesn't depend on it."
        )
        @wraps(command)
        def with_engine(
            master: str | None,
            remote: str | None,
            partitions: int | None,
            engine: Literal["spark", "local"] | None = None if default else "spark",
            **other_options: Any,
        ) -> int:
            return command(engine=EngineOptions(engine, master, remote, partitions), **other_options)

        description = "Where the work is done: on Spark, or in this process, without Java. The result is the same."
        option = click.option(
            "--engine", type=click.Choice(["spark", "local"]), help=f"{description} [default: {default}]"
        )
        return option(with_engine) if default else with_engine

    return gathered


IN_PROCESS = "local, or spark with one of the next options"


def uses_spark(options: EngineOptions, *, otherwise: bool) -> bool:
    """True if a command computes on Spark; `otherwise` if no option decides. SetupError if options conflict."""
    spark_options = [name for name in ("master", "remote", "partitions") if getattr(options, name) is not None]
    if options.engine == "local" and spark_options:
        raise SetupError(f"--{spark_options[0]} is Spark's; allowed: --engine spark, or leave it out")
    if options.master and options.remote:
        raise SetupError("--master and --remote exclude each other; allowed: one of them")
    return options.engine == "spark" or (options.engine is None and (otherwise or bool(spark_options)))


def compute(options: EngineOptions, spark: bool, questions: Sequence[Callable[[], T]], **settings: Any) -> list[T]:
    """The answers to the questions of a what-if, in order, from Spark or from this process.

    `settings` are what `spark_jobs.worker_tasks.answers` takes.
    """
    if not spark:
        return [each() for each in questions]
    from spark_jobs import session, worker_tasks

    with session.open_session(master=options.master, remote=options.remote) as opened:
        return worker_tasks.answers(opened, questions, options.partitions, **settings)


def local_worker_count(options: EngineOptions) -> int | None:
    """The number of Spark's workers on this machine; None if they may be on others."""
    from spark_jobs import session

    master = options.master or session.LOCAL
    return None if options.remote or not session.is_local(master) else session.local_cores(master)


@contextmanager
def session_in_background(options: EngineOptions) -> Iterator[Any]:
    """A session that starts in the background, while the caller reads the specs. If the block fails, Spark is ended."""
    from spark_jobs import java, session, spark_jvm, worker_tasks

    record = java.Recording()
    opens = session.open_session(master=options.master, remote=options.remote, recording=record)
    try:
        with spark_jvm.opened(opens, worker_tasks.start_workers) as opening:
            yield opening
    except BaseException:
        record.finish(0)
        raise
    context = click.get_current_context(silent=True)
    end = partial(record.finish, close=partial(opening.close, failed=False))
    # Java may still have to write its archive of classes. That happens after the result is printed.
    context.call_on_close(end) if context else end()

"""`planner place`: what a placement gives: Kafka's own, for a start index and a shift or a seed, or a round robin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from planner.cli.brokers import Brokers, broker_options, given, of_file
from planner.cli.shown import echo_json, show_view
from planner.model.errors import InfeasibleError
from planner.report.view import Column, Joined, Lines, Name, Section, Table, Value, View
from planner.strategies import kafka_classic, kafka_striped, round_robin

Lists = Sequence[tuple[int, ...]]

_COUNT = click.IntRange(min=1, max=200_000)
# The option below them, and JSON, have all.
_ROWS_SHOWN = 10_000
_INDEX = click.IntRange(min=0, max=2**31 - 1)


@click.command()
@click.argument("spec", type=click.Path(path_type=Path, dir_okay=False), required=False)
@broker_options
@click.option(
    "--algorithm", type=click.Choice(["classic", "striped", "round-robin"]), default="classic", show_default=True
)
@click.option("--partitions", type=_COUNT, required=True, help="How many partitions to place.")
@click.option("--replication-factor", type=click.IntRange(min=1, max=32_767), required=True)
@click.option("--start-index", type=_INDEX, help="Position of partition 0's leader among the brokers.")
@click.option("--next-replica-shift", type=_INDEX, help="Distance of its second replica, less one (classic).")
@click.option("--start-partition", type=_INDEX, default=0, show_default=True, help="The first partition's id.")
@click.option(
    "--java-random-seed", type=click.IntRange(-(2**63), 2**63 - 1), help="Seed of java.util.Random (striped)."
)
@click.option("--topic", help="The topic's name, which JSON needs.")
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown", "replica-assignment"]), default="text")
def place(spec: Path | None, form: str, topic: str | None, **options: Any) -> int:
    """Show where Kafka places new partitions.

    For a new topic, or for partitions added to one.

    The brokers are those of --brokers, or of SPEC. The classic algorithm (AdminUtils) is that of ZooKeeper clusters
    and of kafka-reassign-partitions --generate before Kafka 4.1; striped is KRaft's. round-robin is the plain one of
    many introductions, replica j of partition i on broker (i + j) mod n: Kafka's own shifts the followers after each
    round of the brokers, so that the load of one that fails goes to more than its neighbors.
    """
    brokers, rack_aware = _brokers(spec, options)
    lists = _placed(brokers, rack_aware, options)
    first = options["start_partition"]
    match form:
        case "json":
            echo_json(_reassignment(topic, first, lists))
        case "replica-assignment":
            click.echo(replica_assignment(lists))
        case "markdown":
            show_view(_view(first, lists, dict(brokers)), "markdown")
        case _:
            show_view(_view(first, lists, dict(brokers)), "text")
    return 0


def replica_assignment(lists: Lists) -> str:
    """`0:1,1:0,0:1`, as kafka-topics --replica-assignment takes it: brokers with colons, partitions with commas."""
    return ",".join(":".join(map(str, replicas)) for replicas in lists)


def _brokers(spec: Path | None, options: dict[str, Any]) -> tuple[Brokers, bool]:
    """The brokers by id, and whether racks count."""
    if (spec is None) == (options["brokers"] is None):
        raise click.UsageError("the brokers come from --brokers or from SPEC; allowed: one of them")
    if spec is None:
        return given(options["brokers"], options["racks"]), not options["disable_rack_aware"]
    given(None, options["racks"])
    _, brokers, rack_aware = of_file(spec)
    if not brokers:
        raise click.UsageError(f"{spec}: a state file doesn't list the brokers; allowed: a spec, or --brokers")
    return brokers, rack_aware and not options["disable_rack_aware"]


def _placed(brokers: Brokers, rack_aware: bool, options: dict[str, Any]) -> Lists:
    count, factor = options["partitions"], options["replication_factor"]
    pair, seed = (options["start_index"], options["next_replica_shift"]), options["java_random_seed"]
    if options["algorithm"] == "round-robin":
        if pair[1] is not None or seed is not None:
            raise click.UsageError("round-robin takes --start-index alone; allowed: no shift, no --java-random-seed")
        return _round_robin(brokers, rack_aware, options)
    if options["algorithm"] == "striped":
        if seed is None or pair != (None, None):
            raise click.UsageError("striped takes --java-random-seed; allowed: no --start-index, no shift")
        known = [(broker, rack if rack_aware else None, False) for broker, rack in brokers]
        return kafka_striped.place(known, count, factor, java_random_seed=seed)
    if None in pair or seed is not None:
        raise click.UsageError("classic takes --start-index and --next-replica-shift; allowed: no --java-random-seed")
    try:
        return kafka_classic.place(
            brokers,
            count,
            factor,
            start_index=pair[0],
            next_replica_shift=pair[1],
            start_partition_id=options["start_partition"],
            rack_aware=rack_aware,
        )
    except InfeasibleError as error:
        raise InfeasibleError(str(error).replace("set rack_aware: disabled", "use --disable-rack-aware")) from None


def _round_robin(brokers: Brokers, rack_aware: bool, options: dict[str, Any]) -> Lists:
    """Over the brokers by id, alternated by rack where each has one."""
    racked = [(broker, rack) for broker, rack in brokers if rack is not None]
    alternated = rack_aware and len(racked) == len(brokers)
    order = kafka_classic.rack_alternated(racked) if alternated else [broker for broker, _ in brokers]
    start = (options["start_index"] or 0) + options["start_partition"]
    return round_robin.place(order, options["partitions"], options["replication_factor"], start)


def _reassignment(topic: str | None, first: int, lists: Lists) -> dict[str, Any]:
    """Kafka's reassignment JSON."""
    if not topic:
        raise click.UsageError("--format json needs --topic; allowed: the topic's name")
    rows = [
        {"topic": topic, "partition": first + number, "replicas": list(replicas)}
        for number, replicas in enumerate(lists)
    ]
    return {"version": 1, "partitions": rows}


def _view(first: int, lists: Lists, racks: dict[int, str | None]) -> View:
    """A row a partition, with the racks where any broker has one; and all of it as one option of Kafka's tools."""

    def named(replicas: tuple[int, ...]) -> Value:
        names = (racks[broker] for broker in replicas)
        return Joined(tuple(None if rack is None else Name(rack) for rack in names), ",")

    column = Column[tuple[int, tuple[int, ...]]]
    racked = any(rack is not None for rack in racks.values())
    columns = (
        column("Partition", lambda row: str(row[0])),
        column("Replicas", lambda row: ",".join(map(str, row[1])), numeric=False),
        *((column("Racks", lambda row: named(row[1]), numeric=False),) if racked else ()),
    )
    option = f"--replica-assignment {replica_assignment(lists)}"
    table = Table("", "", "partition", list(enumerate(lists, start=first)), columns, most=_ROWS_SHOWN)
    return View("", (Section("", (table, Lines((Name(option, len(option)),), bulleted=False))),))

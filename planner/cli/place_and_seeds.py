"""`planner place` and `planner seeds`: where Kafka's placement puts replicas, and which seeds explain an assignment.

Both take their brokers from a spec or from `--brokers 0,1,2 --racks 0=a,1=b`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from planner.cli.output import FILE, PATH, Format, echo_json, format_option, show_found, show_view
from planner.inputs.importers.state_parts import OF_TOPIC_NAME, TOPIC_NAME
from planner.inputs.spec import reading
from planner.inputs.state.merge import merge
from planner.inputs.state.state_files import files_in, read_file
from planner.model.cluster import NUMBER, Topic, brokers_holding
from planner.model.document_fields import LARGEST_ID
from planner.model.errors import InfeasibleError, did_you_mean
from planner.model.formats import counted, ranges, replica_assignment, replica_list
from planner.report.view import Column, Joined, Lines, Name, Table, Value, View, ViewSection, visible
from planner.strategies import kafka_classic, kafka_striped
from planner.strategies.kafka_classic import Brokers
from planner.whatif import explain_seeds
from planner.whatif.explain_seeds import Explanation, Verdict

TopicLists = Sequence[tuple[int, ...]]

# A spec has the key `cluster` within so many first bytes, perhaps after a comment.
_HEAD_BYTES = 65_536
_COUNT = click.IntRange(min=1, max=200_000)
_INDEX = click.IntRange(min=0, max=LARGEST_ID)
# The most rows in the table of a placement. JSON has all of them.
_ROWS_SHOWN = 10_000


def _ids(text: str) -> tuple[int, ...]:
    """The broker ids from a value like `0,1,2`, in ascending order like Kafka's. Each may be there once."""
    ids = [_id(word) for word in text.split(",")]
    if None in ids or len(set(ids)) < len(ids):
        raise click.BadParameter(f"{text!r} isn't a list of brokers; allowed: ids, each once, such as 0,1,2")
    return tuple(sorted(each for each in ids if each is not None))


def _racks(text: str) -> tuple[tuple[int | None, str], ...]:
    """The rack of each broker from a value like `0=a,1=b`."""
    pairs = [word.partition("=") for word in text.split(",")]
    racks = tuple((_id(broker), rack.strip()) for broker, _, rack in pairs)
    if any(broker is None or not rack for broker, rack in racks) or len(dict(racks)) < len(racks):
        raise click.BadParameter(f"{text!r} isn't a list of racks; allowed: one rack for each broker, such as 0=a,1=b")
    return racks


def _id(word: str) -> int | None:
    text = word.strip()
    return int(text) if NUMBER.fullmatch(text) and int(text) <= LARGEST_ID else None


def _broker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options `--brokers`, `--racks` and `--disable-rack-aware`."""
    command = click.option("--disable-rack-aware", is_flag=True, help="Ignore racks.")(command)
    command = click.option("--racks", type=_racks, metavar="0=a,1=b", help="Their racks.")(command)
    return click.option("--brokers", type=_ids, metavar="0,1,2", help="Broker ids, instead of those in a file.")(
        command
    )


def brokers_of_options(brokers: tuple[int, ...] | None, racks: tuple[tuple[int, str], ...] | None) -> Brokers:
    """The brokers of `--brokers` with the racks of `--racks`. UsageError if a rack is given for another broker."""
    rack_of = dict(racks or ())
    unknown = sorted(rack_of.keys() - set(brokers or ()))
    if unknown:
        allowed = ", ".join(map(str, brokers)) if brokers else "only together with --brokers"
        raise click.UsageError(f"--racks names broker {unknown[0]}; allowed: {allowed}")
    return tuple((broker, rack_of.get(broker)) for broker in brokers or ())


def read_brokers(path: Path) -> tuple[tuple[Topic, ...], Brokers, bool]:
    """The topics, the brokers with their racks, and whether placement is rack-aware, read from a spec or state files.

    State files are outputs of Kafka's tools, or a folder of them. Only some of them list the brokers; otherwise there
    are none. SpecError or ImportStateError if the file is neither.
    """
    if _is_spec(path):
        spec = reading.load(path)
        brokers = tuple(sorted((each.id, each.rack) for each in spec.cluster.brokers))
        return spec.cluster.topics, brokers, spec.rack_aware
    merged = merge([read_file(each, each.as_posix()) for each in files_in(path)])
    return merged.assignment.topics, tuple((each.id, each.rack) for each in merged.brokers), True


def _is_spec(path: Path) -> bool:
    """True if the file's name ends like that of a YAML, or if one of its lines begins with the key `cluster`."""
    if path.suffix in (".yaml", ".yml"):
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return re.search(rb"^cluster\s*:", file.read(_HEAD_BYTES), re.MULTILINE) is not None
    except OSError:  # Reading the file later reports the error.
        return False


@click.command()
@click.argument("spec", type=FILE, required=False)
@_broker_options
@click.option(
    "--algorithm",
    type=click.Choice(["classic", "striped", "round-robin"]),
    default="classic",
    show_default=True,
    help="How replicas are placed.",
)
@click.option("--partitions", type=_COUNT, required=True, help="Number of partitions to place.")
@click.option(
    "--replication-factor", type=click.IntRange(min=1, max=32_767), required=True, help="Replicas of each partition."
)
@click.option("--start-index", type=_INDEX, help="Position of partition 0's leader among the brokers.")
@click.option("--next-replica-shift", type=_INDEX, help="Distance of its second replica, less one (classic).")
@click.option("--start-partition", type=_INDEX, default=0, show_default=True, help="The first partition's id.")
@click.option(
    "--java-random-seed", type=click.IntRange(-(2**63), 2**63 - 1), help="Seed of java.util.Random (striped)."
)
@click.option("--topic", help="The topic's name; needed for JSON.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown", "replica-assignment"]),
    default="text",
    help="What stdout shows.",
)
def place(
    spec: Path | None,
    form: Literal["text", "json", "markdown", "replica-assignment"],
    topic: str | None,
    **options: Any,
) -> int:
    """Show where Kafka places new partitions.

    For a new topic, or for partitions added to one.

    The brokers are those of --brokers, or of SPEC. The classic algorithm (AdminUtils) is that of ZooKeeper clusters
    and of kafka-reassign-partitions --generate before Kafka 4.1; striped is KRaft's. round-robin is the plain scheme of
    many introductions: replica j of partition i on broker (i + j) mod n, counted in the order of their ids, or, with
    racks, one broker of each rack in turn. Kafka's own schemes shift the followers after each round of the brokers, so
    that the load of a failed broker goes to more than its neighbors.
    """
    brokers, rack_aware = _brokers(spec, options)
    first_id, last_id = options["start_partition"], options["start_partition"] + options["partitions"] - 1
    if last_id > LARGEST_ID:
        raise click.UsageError(
            f"--start-partition {first_id}: the last id is {last_id}; allowed: ids up to {LARGEST_ID}"
        )
    if topic and form != "json":
        raise click.UsageError("--topic is the name in JSON; allowed: with --format json")
    if first_id and form == "replica-assignment":
        reason = "kafka-topics leaves out a list for each partition that is there"
        raise click.UsageError(f"--start-partition {first_id}: {reason}; allowed: --format json")
    lists = _replica_lists(brokers, rack_aware, options)
    match form:
        case "json":
            if not TOPIC_NAME.fullmatch(topic or ""):
                problem = f"--topic {topic!r} isn't possible" if topic else "--format json needs --topic"
                raise click.UsageError(f"{problem}; allowed: the topic's name, {OF_TOPIC_NAME}")
            rows = [{"topic": topic, "partition": first_id + n, "replicas": list(each)} for n, each in enumerate(lists)]
            echo_json({"version": 1, "partitions": rows})
        case "replica-assignment":
            click.echo(replica_assignment(lists))
        case "text" | "markdown":
            show_view(_placement_view(first_id, lists, dict(brokers)), form)
    return 0


def _brokers(spec: Path | None, options: dict[str, Any]) -> tuple[Brokers, bool]:
    """The brokers of the options or of the spec, by id, and whether the placement is rack-aware."""
    if (spec is None) == (options["brokers"] is None):
        raise click.UsageError("the brokers come from --brokers or from SPEC; allowed: one of them")
    if spec is None:
        return brokers_of_options(options["brokers"], options["racks"]), not options["disable_rack_aware"]
    brokers_of_options(None, options["racks"])
    _, brokers, rack_aware = read_brokers(spec)
    if not brokers:
        raise click.UsageError(f"{spec}: a state file doesn't list the brokers; allowed: a spec, or --brokers")
    return brokers, rack_aware and not options["disable_rack_aware"]


def _replica_lists(brokers: Brokers, rack_aware: bool, options: dict[str, Any]) -> TopicLists:
    """The replica lists by the options' algorithm. UsageError if the options have a seed that it doesn't accept."""
    count, factor = options["partitions"], options["replication_factor"]
    pair, seed = (options["start_index"], options["next_replica_shift"]), options["java_random_seed"]
    if options["algorithm"] == "round-robin":
        if pair[1] is not None or seed is not None:
            raise click.UsageError(
                "--algorithm round-robin takes only --start-index; allowed: no shift and no --java-random-seed"
            )
        racked = [(broker, rack) for broker, rack in brokers if rack is not None]
        alternated = rack_aware and len(racked) == len(brokers)
        order = kafka_classic.rack_alternated(racked) if alternated else [broker for broker, _ in brokers]
        return kafka_classic.round_robin(order, count, factor, (pair[0] or 0) + options["start_partition"])
    if options["algorithm"] == "striped":
        if seed is None or pair != (None, None):
            raise click.UsageError("--algorithm striped needs --java-random-seed; allowed: that alone, no shift")
        usable = [(broker, rack if rack_aware else None, False) for broker, rack in brokers]
        return kafka_striped.place(usable, count, factor, java_random_seed=seed)
    if None in pair or seed is not None:
        raise click.UsageError(
            "--algorithm classic needs --start-index and --next-replica-shift; allowed: both, and no --java-random-seed"
        )
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


def _placement_view(first_id: int, lists: TopicLists, racks: dict[int, str | None]) -> View:
    """One row per partition, with racks if any broker has one; then all lists as an option of Kafka's tools."""

    def rack_names(replicas: tuple[int, ...]) -> Value:
        names = (racks[broker] for broker in replicas)
        return Joined(tuple(None if rack is None else Name(rack) for rack in names), ",")

    column = Column[tuple[int, tuple[int, ...]]]
    racked = any(rack is not None for rack in racks.values())
    columns = (
        column("Partition", lambda row: str(row[0])),
        column("Replicas", lambda row: replica_list(row[1]), numeric=False),
        *((column("Racks", lambda row: rack_names(row[1]), numeric=False),) if racked else ()),
    )
    option = f"--replica-assignment {replica_assignment(lists)}"
    table = Table("partition", list(enumerate(lists, start=first_id)), columns, most=_ROWS_SHOWN)
    # kafka-topics --alter skips a list for each existing partition, so the option would be wrong.
    options = () if first_id else (Lines((Name(option, len(option)),), bulleted=False),)
    return View("", (ViewSection("", (table, *options)),))


# By verdict: the words in the table, and those after its count in the summary.
_VERDICTS: dict[Verdict, tuple[str, str]] = {
    "exact": ("start and shift", "explained by a start index and a shift"),
    "nearest": ("nearest ones", "nearly explained by a start index and a shift"),
    "round_robin": ("plain round robin", "placed by a plain round robin"),
    "striped": ("KRaft, at random", "placed by KRaft"),
    "none": ("no seeds found", "not explained: edited or grown by KRaft since, or placed with other brokers or racks"),
}
_DIFFERENCES_SHOWN = 20


def seeds_document(explanation: Explanation) -> dict[str, Any]:
    """The explanation of a topic as JSON."""
    return {
        "topic": explanation.topic,
        "partitions": explanation.partitions,
        "replication_factor": explanation.replication_factor,
        "verdict": explanation.verdict,
        "start_index": explanation.start_index if explanation.start_index >= 0 else None,
        "next_replica_shifts": list(explanation.shifts),
        "brokers": list(explanation.brokers.order) if explanation.brokers else None,
        "brokers_are": explanation.brokers.name if explanation.brokers else None,
        "rack_aware": explanation.brokers.rack_aware if explanation.brokers and explanation.shifts else None,
        "created_with_partitions": explanation.grown_from,
        "differences": [
            {"partition": each.partition, "replicas": list(each.replicas), "expected": list(each.expected)}
            for each in explanation.differences
        ],
    }


def seeds_view(explanations: Sequence[Explanation]) -> View:
    """One row per topic, one line per partition that differs, and the count of each verdict."""
    column = Column[Explanation]

    def placed_by(row: Explanation) -> str:
        grew = "" if row.grown_from is None else f"; {row.grown_from} grew to {row.partitions}"
        return f"{_VERDICTS[row.verdict][0]}{grew}"

    columns = (
        column("Topic", lambda row: Name(row.topic), numeric=False),
        column("Partitions", lambda row: row.partitions),
        column("RF", lambda row: str(row.replication_factor)),
        column("Placed by", placed_by, numeric=False),
        column("Start index", lambda row: str(row.start_index) if row.start_index >= 0 else None),
        column("Shift", lambda row: ranges(row.shifts) if row.shifts else None, numeric=False),
        column("On", lambda row: row.brokers.name if row.brokers else None, numeric=False),
        column("Differ", lambda row: len(row.differences) if row.shifts else None),
    )
    differ = [(each.topic, difference) for each in explanations for difference in each.differences]
    lines = []
    for topic, each in differ[:_DIFFERENCES_SHOWN]:
        lists = f": {replica_list(each.replicas)}, where the seeds give {replica_list(each.expected)}"
        lines.append(Joined((Name(f"{topic}-{each.partition}"), lists)))
    extra = len(differ) - len(lines)
    more_lines = (f"and {counted(extra, 'more partition')} that differ; --format json has all",) if extra else ()
    counts = Counter(each.verdict for each in explanations)
    verdicts = [f"{counts[verdict]} {words}" for verdict, (_, words) in _VERDICTS.items() if counts[verdict]]
    summary = f"{counted(len(explanations), 'topic')}: {', '.join(verdicts)}"
    blocks = visible(Table("topic", explanations, columns), Lines(lines), Lines((*more_lines, summary), bulleted=False))
    return View("", (ViewSection("", blocks),))


@click.command()
@click.argument("file", metavar="SPEC|STATE-FILE", type=PATH)
@_broker_options
@click.option("--topic", "names", multiple=True, help="Only this topic. May be repeated.")
@format_option
def seeds(file: Path, names: tuple[str, ...], form: Format, **options: Any) -> int:
    """Find the seeds that explain each topic's assignment.

    A start index and the next replica shift, by topic.

    If a shift is a list, each of its values gives the same assignment. A plain round robin has no shift: replica j
    of partition i is on broker (start index + i + j) mod n. The brokers are those of SPEC, or of
    --brokers, with all that hold replicas; with neither, those that hold replicas. If they don't explain a topic,
    the first ones of them are tried, and those that the topic uses.
    """
    topics, brokers, rack_aware = read_brokers(file)
    all_brokers = brokers_of_options(options["brokers"], options["racks"]) or brokers
    used = brokers_holding(each for each in topics if not names or each.name in names)
    if options["brokers"] and (missing := used - dict(all_brokers).keys()):
        holds = f"broker {min(missing)} isn't one of them, but has replicas in {file}"
        raise click.UsageError(f"--brokers: {holds}; allowed: a list with all of {ranges(used)}")
    explanations = explain_seeds.explain(
        topics, all_brokers, rack_aware=rack_aware and not options["disable_rack_aware"]
    )
    topic_names = {each.topic for each in explanations}
    for name in names:
        if name not in topic_names:
            message = f"--topic {name}: {file} has no such topic; {did_you_mean(name, topic_names)}allowed"
            more_text = f" and {counted(len(topic_names) - 5, 'other')}" if len(topic_names) > 5 else ""
            raise click.UsageError(f"{message}: {', '.join(sorted(topic_names)[:5])}{more_text}")
    selected = [each for each in explanations if not names or each.topic in names]
    show_found(form, lambda: {"topics": [seeds_document(each) for each in selected]}, lambda: seeds_view(selected))
    return 0

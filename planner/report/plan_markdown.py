"""plan.json → report.md, the comment under a pull request: what to decide on first, every move folded below.

GitHub refuses comments over 65,536 characters, so each section has its own allowance of bytes: whatever does not fit
is counted and named, and the two long lists share what the rest has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from planner.execution.gates import gate_cells
from planner.model import formats
from planner.model.formats import amount, arrow, counted, number, size
from planner.model.markup import LONGEST_NAME, code, text
from planner.plan import headline
from planner.plan.bound_file import LONGEST_PROOF
from planner.plan.document.batch_types import BatchRow, PartitionRow
from planner.plan.document.cluster_types import BrokerRow, InputRow, RackRow, TopicRow
from planner.plan.document.front_types import ComparedRow, FrontFigures, ParetoRow, ScenarioRow, VariantRow
from planner.plan.document.log_dir_types import LogDirMoveRow, LogDirRow
from planner.plan.document.new_partition_types import NewPartitionsRow, PlacementRow
from planner.plan.document.plan_types import Plan
from planner.plan.document.term_types import LimitRow, RelaxedRow, TermRow
from planner.plan.templates import environment
from planner.report import sentences
from planner.report import verdict as report_verdict
from planner.report.appendix import Page, folds
from planner.report.sentences import derived_why, known_size, limit_of, pace

# Below GitHub's 65,536, for a bot that adds a line of its own. Counted in bytes: never fewer than characters.
MOST_BYTES = 65_000
# What a screen holds, and what is worth unfolding.
_BROKERS_SHOWN = 12
_BROKERS_UNFOLDED = 60
_POINTS_SHOWN = 8
_LOG_DIRS_SHOWN = 32
_LONGEST_RACK = 60


@dataclass(frozen=True)
class MarkdownSection:
    """Lines that fit, and a sentence on those that don't (empty where all do)."""

    lines: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of the lines with their newlines."""
        return sum(len(line.encode()) + 1 for line in self.lines)


def markdown(plan: Plan, pages: Sequence[Page] = ()) -> str:
    """The report of a plan.json document, under 65,536 bytes however large the plan; GitHub and GitLab read it alike.

    Sizes are decimal, brokers are ids, a replica list names its preferred leader first. `pages` are folded in.
    """
    view = _overview(plan)
    template = environment().get_template("report.md.j2")
    changed = [topic for topic in plan.topics if topic.partitions_changed]
    view |= {
        "topics_changed": counted(len(changed), "topic"),
        "replicas_inside": counted(len(_dir_moves(plan)), "replica"),
        "partitions_changed": counted(len(plan.partitions), "partition"),
        "folds": (),
    }
    # The frames of both lists are measured with a sentence in the place of their lines.
    frame = MarkdownSection(left_out="x" * 10 * LONGEST_NAME)
    free = MOST_BYTES - len(template.render(view, topics=frame, partitions=frame).encode())
    view |= {"folds": folds(pages, free // 2)}
    free = MOST_BYTES - len(template.render(view, topics=frame, partitions=frame).encode())
    topics = _topics(plan, changed, free // 3)
    partitions = _partitions(plan, free - topics.size_bytes)
    return template.render(view, topics=topics, partitions=partitions).rstrip() + "\n"


def _overview(plan: Plan) -> dict[str, Any]:
    """Everything above the folded lists, as escaped text; bounded by each section's allowance."""
    return {
        "cluster": text(plan.cluster.name, 100),
        "first_step": text(headline.first_step(plan), 600),
        "headline": text(headline.headline(plan)),
        "verdict": text(report_verdict.verdict(plan)),
        "evenness": text(report_verdict.evenness(plan)),
        "risks": [text(line) for line in report_verdict.risks(plan)],
        "terraform": text(report_verdict.terraform(plan)),
        "wishes": text(sentences.wishes(plan.changes), 600),
        "pace": text(pace(plan)),
        "derived": text(derived_why(plan), 1_000),
        "of_proof": "Proof, of this step alone" if headline.first_step(plan) else "Proof of the least",
        "proof": text(plan.bound.proof.rstrip("."), LONGEST_PROOF),
        "chosen": text(headline.chosen(plan)),
        "reasons": text(sentences.reasons(plan)),
        "warnings": _section(plan.warnings, text, 6_000, _rest("warning")),
        "relaxed": _section(plan.balance.relaxed, _relaxed, 3_000, _rest("window")),
        "limits": _section(plan.limits, _limit, 2_000, _rest("gate")),
        "terms": _section(_by_group(plan.terms), _term, 7_000, _rest("term")),
        "brokers": _brokers(plan, sentences.fullest_and_emptiest(plan.brokers, _BROKERS_SHOWN), 4_000),
        "all_brokers": _more_brokers(plan),
        "disks": sentences.states_disks(plan),
        "traffic": sentences.states_traffic(plan),
        "racks": _section(plan.racks, _rack(plan), 1_500, _rest("rack")),
        "log_dirs": _log_dirs(plan),
        "dir_moves": _section(_dir_moves(plan), _dir_move, 4_000, _rest("replica")),
        "compared": _section(plan.compared, _compared(plan), 3_000, _rest("row")),
        "placed_new": _section(sentences.placed_new(plan), _placed_new, 2_000, _rest("row")),
        "new_topics": _section(plan.new_topics, _new_topic, 6_000, _rest("topic", lambda t: code(t.topic))),
        "new_lists": _section(plan.new_topics, _new_list, 8_000, _rest("topic", lambda t: code(t.topic))),
        "variants": _section(plan.variants, _variant(plan), 3_000, _rest("variant")),
        "front": _front(plan),
        "scenarios": _section(plan.scenarios, _scenario, 3_000, _rest("scenario")),
        "batches": _batches(plan),
        "evaluated": text(sentences.searched(plan)),
        "plan_id": code(plan.plan_id),
        "inputs": _inputs(plan.inputs),
        "rule": text(plan.candidates.rule.rstrip(".")),
    }


def _section(
    rows: Sequence[Any], line: Callable[[Any], str], most_bytes: int, left_out: Callable[[Sequence[Any]], str]
) -> MarkdownSection:
    """The first rows whose lines fit into `most_bytes`; no line is made that isn't needed, there may be a million."""
    lines: list[str] = []
    for row in rows:
        made = line(row)
        most_bytes -= len(made.encode()) + 1
        if most_bytes < 0:
            break
        lines.append(made)
    rest = rows[len(lines) :]
    return MarkdownSection(tuple(lines), left_out(rest) if rest else "")


def _rest(noun: str, name: Callable[[Any], str] | None = None) -> Callable[[Sequence[Any]], str]:
    """The sentence on rows left out; with `name` it says from which to which, as escaped text."""

    def sentence(rows: Sequence[Any]) -> str:
        named = f", {name(rows[0])} to {name(rows[-1])}," if name and len(rows) > 1 else ""
        return f"{counted(len(rows), noun)}{named} left out here: see plan.json."

    return sentence


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _relaxed(row: RelaxedRow) -> str:
    topic = "all" if row.topic is None else code(row.topic)
    return _row(text(formats.words(row.window)), topic, text(row.wanted), sentences.reached(row), text(row.why))


def _limit(row: LimitRow) -> str:
    verdict = "**crossed**" if row.crossed else "kept"
    return _row(code(row.key), *gate_cells(row.key, row.value, row.limit, row.broker), verdict)


def _by_group(terms: Iterable[TermRow]) -> list[tuple[str, TermRow]]:
    """The terms behind their group, which only the first of each group has: it is read as a heading."""
    rows: list[tuple[str, TermRow]] = []
    last = None
    for term in terms:
        rows.append(("" if term.group == last else term.group, term))
        last = term.group
    return rows


def _term(row: tuple[str, TermRow]) -> str:
    group, term = row
    today, still, plan = (amount(value, term.unit) for value in sentences.columns(term))
    shown = plan if plan == today else f"**{plan}**"
    unit = text(formats.unit_of(term.unit))
    return _row(
        f"**{text(group)}**" if group else "",
        text(formats.words(term.name)),
        today,
        still,
        shown,
        limit_of(term),
        unit,
        text(term.meaning),
    )


def _load(plan: Plan, row: BrokerRow | RackRow) -> list[str]:
    before, after = row.before, row.after
    counts = [arrow(number(getattr(before, key)), number(getattr(after, key))) for key in ("replicas", "leaders")]
    held = arrow(known_size(plan, before.size_bytes), known_size(plan, after.size_bytes))
    return [*counts, held, *sentences.traffic(plan, row)]


def _brokers(plan: Plan, shown: Sequence[BrokerRow], most_bytes: int) -> MarkdownSection:
    section = _section(shown, lambda broker: _broker(plan, broker), most_bytes, _rest("broker"))
    kept = {broker.id for broker in shown[: len(section.lines)]}
    rest = [broker.id for broker in plan.brokers if broker.id not in kept]
    named = f"{counted(len(rest), 'broker')} neither among the fullest nor the emptiest left out here"
    return MarkdownSection(section.lines, f"{named} ({text(formats.ranges(rest))}): see plan.json." if rest else "")


def _more_brokers(plan: Plan) -> MarkdownSection:
    """A longer table to unfold, where the one in sight leaves brokers out."""
    if len(plan.brokers) <= _BROKERS_SHOWN:
        return MarkdownSection()
    return _brokers(plan, sentences.fullest_and_emptiest(plan.brokers, _BROKERS_UNFOLDED), 6_000)


def _broker(plan: Plan, broker: BrokerRow) -> str:
    rack = formats.UNKNOWN if broker.rack is None else code(broker.rack, _LONGEST_RACK)
    role = "" if broker.role == "stays" else f"**{text(broker.role)}**"
    copied = (known_size(plan, getattr(broker, key)) for key in ("bytes_in", "bytes_out"))
    disk = [sentences.broker_peak(broker)] if sentences.states_disks(plan) else []
    return _row(str(broker.id), rack, role, *_load(plan, broker), *copied, *disk)


def _rack(plan: Plan) -> Callable[[RackRow], str]:
    def line(rack: RackRow) -> str:
        brokers = arrow(number(rack.brokers_before), number(rack.brokers_after))
        name = formats.UNKNOWN if rack.rack is None else code(rack.rack, _LONGEST_RACK)
        return _row(name, brokers, *_load(plan, rack))

    return line


def _log_dirs(plan: Plan) -> MarkdownSection:
    rows = sentences.log_dirs(plan)
    shown = sorted(rows[:_LOG_DIRS_SHOWN], key=lambda row: (row[0], row[1].path))
    section = _section(shown, _log_dir, 4_000, _rest("log dir"))
    hidden = len(rows) - len(section.lines)
    return MarkdownSection(
        section.lines, f"{counted(hidden, 'log dir')} left out here: see plan.json." if hidden else ""
    )


def _log_dir(of_broker: tuple[int, LogDirRow]) -> str:
    broker, row = of_broker
    before, after = row.before, row.after
    allowed = formats.UNKNOWN if row.error else f"{size(row.least_bytes)} to {size(row.most_bytes)}"
    return _row(
        str(broker),
        code(row.path),
        arrow(number(before.replicas), number(after.replicas)),
        arrow(size(before.size_bytes), size(after.size_bytes)),
        text(row.error.rpartition(".")[2]) if row.error else allowed,
        size(row.bytes_in),
        size(row.bytes_out),
    )


def _dir_moves(plan: Plan) -> Sequence[LogDirMoveRow]:
    return plan.log_dirs.moves if plan.log_dirs else ()


def _dir_move(row: LogDirMoveRow) -> str:
    name = code(f"{row.topic}-{row.partition}")
    way = f"{code(row.log_dir_before)} → {code(row.log_dir)}"
    return _row(name, str(row.broker), way, size(row.size_bytes))


def _compared(plan: Plan) -> Callable[[ComparedRow], str]:
    def line(row: ComparedRow) -> str:
        counts = [
            number(getattr(row, key))
            for key in ("replicas_moved", "leaders_changed", "replica_spread", "leader_spread", "topic_replica_spread")
        ]
        label = text(row.label)
        return _row(
            f"**{label}**" if row.label == "this plan" else label,
            sentences.completes(plan, row),
            known_size(plan, row.bytes_moved),
            *counts,
            sentences.above(row),
        )

    return line


def _placed_new(row: PlacementRow) -> str:
    label, counts = text(row.label), [number(getattr(row, key)) for key in sentences.EVENNESS]
    return _row(f"**{label}**" if row.label == "this plan" else label, *counts)


def _new_topic(topic: NewPartitionsRow) -> str:
    config = ", ".join(code(f"{key}={value}") for key, value in sorted(topic.config.items()))
    partitions = arrow(number(topic.partitions_before), number(topic.partitions))
    return _row(code(topic.topic), partitions, number(topic.replication_factor), config or formats.UNKNOWN)


def _new_list(topic: NewPartitionsRow) -> str:
    """The replicas of one topic's new partitions, as `kafka-topics --replica-assignment` has them."""
    lists = ",".join(":".join(map(str, replicas)) for replicas in topic.replicas)
    return f"- {code(topic.topic)}, from partition {topic.partitions_before} on: {code(lists, 4_000)}"


def _front(plan: Plan) -> MarkdownSection:
    points = sentences.spread_out(plan.pareto, _POINTS_SHOWN)
    section = _section(points, lambda point: _point(plan, point), 3_000, _rest("point"))
    hidden = len(plan.pareto) - len(section.lines)
    return MarkdownSection(
        section.lines, f"{counted(hidden, 'point')} between left out here: see plan.json." if hidden else ""
    )


def _point(plan: Plan, point: ParetoRow) -> str:
    return _row(
        text(sentences.origin(plan, point)),
        *sentences.moves(plan, point),
        sentences.completes(plan, point),
        *([_missed(plan, point)] if plan.scenarios else []),
        "**this plan**" if point.chosen else "",
    )


def _missed(plan: Plan, row: FrontFigures) -> str:
    return f"{number(len(plan.scenarios) - row.scenarios_missed)} of {number(len(plan.scenarios))}"


def _variant(plan: Plan) -> Callable[[VariantRow], str]:
    def line(row: VariantRow) -> str:
        name = text(row.name, _LONGEST_RACK)
        return _row(
            f"**{name}**" if row.chosen else name,
            text(sentences.wishes(row.changes, 3)),
            number(row.brokers),
            *sentences.moves(plan, row),
            sentences.completes(plan, row),
            formats.duration(row.seconds_at_throttle),
            *([_missed(plan, row)] if plan.scenarios else []),
            text(row.why_not or "") or ("**this plan**" if row.chosen else ""),
        )

    return line


def _scenario(row: ScenarioRow) -> str:
    return text(sentences.scenario(row))


def _batches(plan: Plan) -> MarkdownSection:
    def left_out(rows: Sequence[BatchRow]) -> str:
        copied = known_size(plan, sum(row.bytes_moved for row in rows))
        return f"{_rest('batch', lambda row: str(row.number))(rows)} They copy {copied}.".replace("batchs", "batches")

    return _section(plan.batches, lambda batch: _batch(plan, batch), 1_200, left_out)


def _batch(plan: Plan, batch: BatchRow) -> str:
    return _row(
        str(batch.number),
        number(len(batch.partitions)),
        number(len(batch.elect)),
        number(batch.replicas_moved),
        known_size(plan, batch.bytes_moved),
        formats.duration(batch.seconds_at_throttle) if plan.cluster.sizes_known else formats.UNKNOWN,
        sentences.peak_disk(batch),
    )


def _inputs(inputs: Sequence[InputRow]) -> str:
    """The files with the start of their digests; the whole digests are in plan.json."""
    shown = [f"{text(file.path, 120)} (SHA-256 {code(file.sha256[:12])}…)" for file in inputs[:4]]
    more = len(inputs) - len(shown)
    return ", ".join([*shown, *([f"and {counted(more, 'more file')}"] if more else [])]) or "no file"


def _topics(plan: Plan, changed: Sequence[TopicRow], most_bytes: int) -> MarkdownSection:
    """The largest movers first."""
    rows = sorted(changed, key=lambda topic: (-topic.bytes_moved, -topic.replicas_moved, topic.name))
    return _section(rows, lambda topic: _topic(plan, topic), most_bytes, _rest("topic", lambda t: code(t.name)))


def _topic(plan: Plan, topic: TopicRow) -> str:
    before = "/".join(map(str, topic.replication_factor_before))
    after = "mixed" if topic.replication_factor is None else str(topic.replication_factor)
    return _row(
        code(topic.name),
        f"{number(topic.partitions_changed)} of {number(topic.partitions)}",
        arrow(before, after),
        number(topic.replicas_moved),
        known_size(plan, topic.bytes_moved),
    )


def _partitions(plan: Plan, most_bytes: int) -> MarkdownSection:
    def name(row: PartitionRow) -> str:
        return code(f"{row.topic}-{row.partition}")

    def line(row: PartitionRow) -> str:
        before, after = (", ".join(map(str, getattr(row, key))) for key in ("replicas_before", "replicas"))
        leader = "none" if row.leader_before is None else str(row.leader_before)
        leaders = arrow(leader, leader if row.reason == "balance_log_dirs" else str(row.replicas[0]))
        return _row(
            name(row), arrow(before, after), leaders, known_size(plan, row.size_bytes), formats.words(row.reason)
        )

    return _section(plan.partitions, line, most_bytes, _rest("partition", name))

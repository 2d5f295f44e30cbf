"""Reads one YAML file, and the state files that it names, as a `Spec`. This is the entry point of `inputs`.

Of a spec's files, only this module, `state_files` and the sources of a load open any; the modules for their content
take text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from planner.inputs import cluster_load, load_profile_file
from planner.inputs.importers import consumer_groups
from planner.inputs.importers.state_parts import Assignment, StatePart
from planner.inputs.importers.terraform_show import target_notes, targets
from planner.inputs.spec import build_spec
from planner.inputs.spec.build_spec import Described
from planner.inputs.spec.caps_and_capacity_checks import CAPACITY_RULES, CAPACITY_TOPIC_RULES
from planner.inputs.spec.checks import Rules, rule_findings
from planner.inputs.spec.document_checks import DOCUMENT_RULES, log_dir_findings, size_findings, source_findings
from planner.inputs.spec.leader_checks import LEADER_RULES, LEADER_TOPIC_RULES
from planner.inputs.spec.new_topic_checks import NEW_TOPIC_RULES
from planner.inputs.spec.placement_checks import PLACEMENT_RULES, SET_RULES
from planner.inputs.spec.schema_errors import schema_findings
from planner.inputs.spec.spec_document import SpecDocument
from planner.inputs.spec.topic_checks import PATTERN_RULES, TOPIC_RULES, described_findings
from planner.inputs.state.merge import Merged, merge
from planner.inputs.state.state_files import Expected, files_in, read_file, read_text
from planner.inputs.state.state_notes import broker_notes
from planner.inputs.yaml_source import Path as Keys
from planner.inputs.yaml_source import decode, key_text, read_yaml
from planner.model import file_reading
from planner.model.cluster import CONFIGS_UNKNOWN, LogDirs, merge_log_dirs
from planner.model.document_fields import InputRow
from planner.model.errors import Finding, ImportStateError, Place, PlannerError, SpecError
from planner.model.load_history import Span, WeekOfLoad
from planner.model.spec import DescribedGroup, Monthly, Spec, first_rule

_OF_DOCUMENT = (*DOCUMENT_RULES, *SET_RULES, *LEADER_RULES, *CAPACITY_RULES)
_OF_TOPICS = (*TOPIC_RULES, *NEW_TOPIC_RULES, *PLACEMENT_RULES, *CAPACITY_TOPIC_RULES, *LEADER_TOPIC_RULES)


@dataclass(frozen=True)
class _Topics:
    """Today's topics, None if they can't be read, and the errors in them.

    `document` is the YAML's, with what the state files add; `merged` is their merged state, None without files.
    `unsized` is as in `build_spec`. `notes` are those about a load profile, and `history` is its span. `log_dirs` reads
    the log dirs of each file that has them.
    """

    document: SpecDocument
    assignment: Assignment | None = None
    unsized: int | None = None
    inputs: tuple[InputRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    history: Span | None = None
    growth: Monthly = field(default_factory=Monthly)
    week: WeekOfLoad | None = None
    merged: Merged | None = None
    log_dirs: tuple[Callable[[], LogDirs], ...] = ()


@dataclass(frozen=True)
class _Source:
    """A file that `cluster.state` names: its key, path, expected content, and its topic if the content has no name."""

    keys: Keys
    path: Path
    expected: Expected
    topic: str | None = None

    def files(self) -> tuple[Path, ...]:
        """The file, or the files of the folder; UnreadableError if there is none."""
        return files_in(self.path) if self.expected == "state" else (self.path,)


def files_read(path: Path, spec: Spec) -> tuple[Path, ...]:
    """The YAML file, and every other file that its spec was read from."""
    return (path, *(path.parent / each.path for each in spec.inputs))


def load(path: Path) -> Spec:
    """The spec in a YAML file. SpecError has every error in it and its state files, from one pass.

    Nothing is written. Places name the YAML by `path` as given, and state files by their paths beside it.
    """
    file = path.as_posix()
    data = _read(path, Finding(Place(file), "", ""), file_reading.SPEC)
    document = SpecDocument(**vars(read_yaml(decode(data, file), file)))
    if "plan_id" in document.value:
        raise SpecError([Finding(Place(file, 1, 1), "", "is a plan; allowed: the YAML file that it was made from")])
    unreadable = {finding.key for finding in document.findings}
    of_schema = (finding for finding in schema_findings(document) if finding.key not in unreadable)
    broken = [*document.findings, *of_schema, *document.with_places(source_findings(document))]
    topics = _with_load(document, path.parent, broken)
    document = replace(topics.document, assignment=topics.assignment or Assignment())
    described, group_files, of_groups = _group_files(document, path.parent, broken)
    findings = [*broken, *topics.findings, *of_groups]
    # If a state file can't be read, it is unknown whether a pattern matches a topic.
    of_topics = _OF_TOPICS if topics.findings else (*_OF_TOPICS, *PATTERN_RULES)
    findings += rule_findings(document, broken, Rules(_OF_DOCUMENT, of_topics if topics.assignment else ()))
    if described and topics.assignment is not None:
        findings += document.with_places(described_findings(document, described))
    if not topics.findings and topics.assignment is not None:
        findings += document.with_places(size_findings(document, topics.unsized))
    if findings or topics.assignment is None:
        raise SpecError(findings)
    group_inputs = group_files if document.get("report", "consumers") else ()
    inputs = (InputRow(path.name, file_reading.digest(data)), *topics.inputs, *group_inputs)
    spec = build_spec.build_spec(document, topics.unsized, inputs, _log_dirs(document, topics), described)
    # The first rate of growth that matches a topic counts, so those of the YAML come first.
    ends = cluster_load.unstated_ends(topics.growth.at_end, spec.cluster.rates)
    growth = replace(spec.growth, rates=(*spec.growth.rates, *topics.growth.rates), at_end=ends)
    notes = (*(_notes(spec, topics.merged) if topics.merged else ()), *topics.notes)
    outgrown = cluster_load.growth_warning(spec.cluster, ends, topics.history) if topics.history else ()
    cluster = replace(spec.cluster, notes=notes, outgrown=outgrown)
    return replace(spec, cluster=cluster, growth=growth, week=topics.week)


def _with_load(document: SpecDocument, folder: Path, broken: list[Finding]) -> _Topics:
    """The topics of the YAML or of its state files, if their keys are sound; with sizes, rates and growth from the
    profile in `cluster.load` that no other source states.
    """
    bad_keys = (finding.key for finding in broken)
    if any(key == "cluster" or key.startswith(("cluster.topics", "cluster.state")) for key in bad_keys):
        return _Topics(document)
    if document.get("cluster", "topics"):
        topics = _Topics(document, build_spec.inline_assignment(document), build_spec.inline_unsized(document))
    else:
        topics = _from_files(document, folder)
    keys = ("cluster", "load")
    document, name = topics.document, document.get(*keys)
    if topics.assignment is None or not name or any(finding.key == "cluster.load" for finding in broken):
        return topics
    finding, sized = document.finding(keys, ""), topics.unsized is not None
    try:
        content = _read(folder / name, finding, file_reading.LOAD)
        rows, about = load_profile_file.decoded(content, (folder / name).as_posix())
        load = cluster_load.cluster_load(rows, about)
    except SpecError as error:
        return replace(topics, findings=(*topics.findings, *error.findings))
    except PlannerError as error:
        return replace(topics, findings=(*topics.findings, replace(finding, message=str(error))))
    today, months = topics.assignment.topics, [*build_spec.keys_of_months(document)]
    hourly_keys, week = [*build_spec.keys_of_hours(document)], cluster_load.week_of_load(rows, about)
    lacks = cluster_load.without_hours(today, week, hourly_keys)
    reason = cluster_load.mismatch_message(today, load, sized=sized) or (hourly_keys and lacks)
    if not reason and months and not (load.growth or document.get("growth")):
        needs = ".".join(map(str, months[0]))
        reason = f"says nothing of growth, which {needs} needs; allowed: more than two weeks of history, or growth"
    if reason:
        return replace(topics, findings=(*topics.findings, replace(finding, message=f"{name!r} {reason}")))
    unsized = cluster_load.count_without_size(today, load)
    no_sizes = sum(len(topic.partitions) for topic in today) <= unsized
    return replace(
        topics,
        assignment=cluster_load.loaded(topics.assignment, load, sized=sized),
        unsized=topics.unsized if sized else None if no_sizes else unsized,
        inputs=(*topics.inputs, InputRow(name, file_reading.digest(content))),
        notes=(*topics.notes, *cluster_load.notes(today, load)),
        history=about.span,
        growth=Monthly(load.growth, at_end=load.at_end),
        week=None if lacks else replace(week, planned_for=build_spec.at_busiest_hours(document)),
    )


def _group_files(
    document: SpecDocument, folder: Path, broken: list[Finding]
) -> tuple[Described, list[InputRow], list[Finding]]:
    """The groups in the state files that `consumers` names, the files, and the errors in them.

    No file is opened if the key `consumers` has errors.
    """
    described, inputs, findings = dict[str, tuple[DescribedGroup, ...]](), list[InputRow](), list[Finding]()
    if any(finding.key.startswith("consumers") for finding in broken):
        return described, inputs, findings
    state_files: dict[str, Keys] = {}
    for path, item in document.items("consumers"):
        if "state" in item:
            state_files.setdefault(item["state"], (*path, "state"))
    for name, keys in state_files.items():
        try:
            text, input_row = read_text(folder / name, name)
            described[name] = consumer_groups.parse(text, (folder / name).as_posix())
            inputs.append(input_row)
        except file_reading.UnreadableError as error:
            findings.append(document.finding(keys, str(error)))
        except SpecError as error:
            findings += error.findings
    return described, inputs, findings


def _log_dirs(document: SpecDocument, topics: _Topics) -> LogDirs:
    """The log dir of each replica, read only if balance.log_dirs asks for it; SpecError with every error.

    The state files have passed every check. If several describe a broker, the first counts.
    """
    if build_spec.log_dirs_tolerance(document).kind == "none":
        return LogDirs()
    if document.get("cluster", "topics"):
        log_dirs = build_spec.inline_log_dirs(document)
    else:
        log_dirs = merge_log_dirs(read() for read in topics.log_dirs)
    if findings := list(document.with_places(log_dir_findings(document, log_dirs))):
        raise SpecError(findings)
    return log_dirs


def _sources(document: SpecDocument, folder: Path) -> Iterator[_Source]:
    """The files that `cluster.state` names, in their order of precedence: the assignment, the sizes, the others."""
    state = document.get("cluster", "state")
    prefix: Keys = ("cluster", "state")
    if "assignment" in state:
        yield _Source((*prefix, "assignment"), folder / state["assignment"], "assignment")
    if "sizes" in state:
        yield _Source((*prefix, "sizes"), folder / state["sizes"], "sizes")
    for number, item in enumerate(state.get("files", ())):
        file, topic = (item, None) if isinstance(item, str) else (item["file"], item.get("topic"))
        yield _Source((*prefix, "files", number), folder / file, "state", topic)


def _from_files(document: SpecDocument, folder: Path) -> _Topics:
    """The state files merged into one state. If some can't be read, the others are used, so that rules can run."""
    parts, findings = list[StatePart](), list[Finding]()
    for source in _sources(document, folder):
        try:
            for path in source.files():
                name = path.relative_to(folder).as_posix()
                parts.append(read_file(path, name, source.topic, expected=source.expected))
        except file_reading.UnreadableError as error:
            findings.append(document.finding(source.keys, str(error)))
        except SpecError as error:
            findings += (replace(each, key=each.key or key_text(source.keys)) for each in error.findings)
    merged = None
    if not findings or any(part.entries for part in parts):
        try:
            merged = merge(parts, to_targets=document.get("cluster", "state", "reassigning") == "target")
        except ImportStateError as error:
            findings += error.findings
    document = _with_state(document, None if findings else merged)
    if findings or merged is None:
        return _Topics(document, merged.assignment if merged else None, findings=tuple(findings))
    log_dirs = tuple(part.log_dirs for part in parts if part.log_dirs)
    inputs = tuple(InputRow(part.file, part.sha256) for part in parts)
    return replace(_with_sizes(document, merged), inputs=inputs, log_dirs=log_dirs)


def _notes(spec: Spec, merged: Merged) -> Iterator[str]:
    """Notes where the sources differ from each other and from the YAML."""
    yield from merged.notes
    yield from broker_notes(spec.cluster.brokers, spec.changes.add_brokers, merged.brokers)
    if merged.targets:
        yield from target_notes(targets(_factors_after(spec), merged.targets), merged.declared_by)
    if not merged.configs_known and not spec.cluster.config_defaults:
        yield CONFIGS_UNKNOWN


def _factors_after(spec: Spec) -> dict[str, list[int]]:
    """The replication factor of each partition after `changes`, by topic."""
    factors = {topic.name: [len(row.replicas) for row in topic.partitions] for topic in spec.cluster.topics}
    for new in spec.changes.new_partitions:
        factors.setdefault(new.topic, []).extend([new.replication_factor] * (new.count - new.first))
    for topic in spec.cluster.topics:
        if rule := first_rule(topic.name, spec.changes.set_replication_factor):
            factors[topic.name] = [rule.replication_factor] * len(factors[topic.name])
    return factors


def _with_state(document: SpecDocument, merged: Merged | None) -> SpecDocument:
    """The document with what the files add: sizes, inherited configurations, cordons, and the topics that may move.

    If the files couldn't be read, sizes count as known, so that no rule reports what the files may contain.
    """
    cluster = dict(document.get("cluster"))
    value = {**document.value, "cluster": cluster}
    if cluster["state"].get("files") and (merged is None or merged.sizes is not None):
        cluster["state"] = {"sizes": "one of files", **cluster["state"]}
    if merged is None:
        return replace(document, value=value)
    if merged.config_defaults:
        cluster["config_defaults"] = dict(merged.config_defaults) | _mapping(cluster.get("config_defaults"))
    if merged.only_topics is not None:
        value["topics"] = {"include": list(merged.only_topics)} | _mapping(document.get("topics"))
    return replace(document, value=value, cordoned=merged.cordoned)


def _mapping(value: Any) -> dict[str, Any]:
    """The value under an unchecked key; empty if it isn't a mapping, because the schema reports that."""
    return value if isinstance(value, dict) else {}


def _with_sizes(document: SpecDocument, merged: Merged) -> _Topics:
    """The assignment with its sizes. If no partition has a size, the sizes are of another cluster: a finding."""
    topics = _Topics(document, merged.assignment, merged=merged)
    if (sizes := merged.sizes) is None:
        return topics
    entries = merged.assignment.entries
    unsized = sum((entry.topic, entry.partition.id) not in sizes for entry in entries)
    sized = merged.assignment.with_partitions(
        lambda topic, each: replace(each, size_bytes=sizes.get((topic, each.id), 0))
    )
    topics = replace(topics, assignment=sized, unsized=unsized)
    if unsized < len(entries):
        return topics
    keys: Keys = ("cluster", "state", "sizes")
    is_stated = keys in document.places
    who = f"{document.get(*keys)!r} has none" if is_stated else "none of the files has any"
    message = f"{who} of the assignment's partitions; allowed: the sizes of the same cluster"
    return replace(topics, findings=(document.finding(keys, message),))


def _read(path: Path, finding: Finding, kind: file_reading.FileKind) -> bytes:
    """A file's bytes; SpecError at the place where the YAML names the file."""
    try:
        file_reading.require_text_name(path)
        return file_reading.read_bytes(path, kind)
    except file_reading.UnreadableError as error:
        raise SpecError([Finding(finding.place, finding.key, str(error))]) from None

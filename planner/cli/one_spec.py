"""The work for one spec, from its file to the files of its plan; the same in this process and in Spark's workers.

The specs of a fleet are independent. With many specs, one of Spark's workers reads, sweeps, plans and renders each spec
as a whole. The driver sends paths to workers on this machine, and specs that it has read to other workers. There are
two steps, reading and planning. All specs are read before any is planned, so that all errors are reported at once.
Between the steps, specs and plans are kept in files, so that memory doesn't grow with their number.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from msgspec import structs

from planner.approval import plan_check
from planner.export import folder_check, output_folder
from planner.export.templated_files import files as rendered
from planner.inputs.spec import reading
from planner.inputs.yaml_source import decode, read_yaml
from planner.model import file_reading
from planner.model.build_problem import with_replica_lists
from planner.model.errors import Finding, PlannerError, SetupError, SpecError
from planner.model.formats import counted
from planner.model.spec import ReportSections, Spec
from planner.plan import bound_json, build
from planner.plan.document import codec
from planner.plan.document.plan_types import Plan
from planner.plan.document.whatif_types import FailuresSection, GrowthSection
from planner.report import html
from planner.report import markdown as report_markdown
from planner.report.view import View
from planner.sweep import candidates_file, choice, evaluate
from planner.sweep.candidates import without_pandas
from planner.sweep.choice import Alternative, with_variant
from planner.sweep.evaluate import Search
from planner.whatif import (
    brokers_for_growth,
    consumers_report,
    failure_simulation,
    failures_report,
    group_events_and_keys,
    growth_report,
)
from planner.whatif.cluster_states import PLANNED, TODAY
from planner.whatif.consumers_report import ConsumersQuestion
from planner.whatif.failure_sets import MOST
from planner.whatif.failures_report import Subject
from planner.whatif.own_assignors import importable

_CAPTURED_AT = ("cluster", "captured_at")


@dataclass(frozen=True)
class SpecJob:
    """A spec's file, and the folder of its plan."""

    spec: Path
    folder: Path


def load_spec(path: Path) -> Spec:
    """The spec to plan from. SpecError if its state is of the future."""
    spec = reading.load(path)
    try:
        plan_check.require_past(spec.captured_at, "cluster.captured_at:")
    except SetupError as error:
        # A spec has no places, so the YAML is read again.
        file = path.as_posix()
        place = read_yaml(decode(file_reading.read_bytes(path, file_reading.SPEC), file), file).place(_CAPTURED_AT)
        raise SpecError([Finding(place, "", str(error))]) from None
    return spec


def alternatives(job: SpecJob, candidates: int | None, seed: int | None) -> tuple[Alternative, ...]:
    """The alternatives of a spec. The command line takes precedence over the YAML. The folder is checked too."""
    spec = load_spec(job.spec)
    output_folder.check(job.folder)
    count = spec.sweep.candidates if candidates is None else candidates
    swept = replace(spec.sweep, candidates=count, seed=spec.sweep.seed if seed is None else seed)
    return choice.alternatives(replace(spec, sweep=swept))


def search(job: SpecJob, alternative: Alternative) -> Search:
    """The search for an alternative. The path in `sweep.scores` is relative to the spec's folder."""
    root = alternative.spec.sweep.scores
    folder = job.spec.resolve().parent
    scores = (
        None if root is None else candidates_file.folder(root, folder, alternative.spec.cluster.name, alternative.name)
    )
    return Search(alternative.problem, alternative.candidates, scores)


def with_report_sections(path: Path, spec: Spec, planned: build.Planned) -> build.Planned:
    """The plan with the sections that its spec's `report` asks for. The user's assignors are in the spec's folder."""
    with importable(path.resolve().parent, spec.consumers):
        return planned._replace(plan=with_sections(spec, planned.plan))


def with_sections(spec: Spec, plan: Plan) -> Plan:
    """The plan with the sections that its spec's `report` asks for, and a new id; unchanged if it asks for none.

    Modules with the user's own assignors must be importable.
    """
    if spec.report == ReportSections():
        return plan
    sections, changed = spec.report, with_variant(spec, plan.choice.variant)
    consumers = None
    if sections.consumers:
        groups = group_events_and_keys.resolve_groups(changed.consumers, changed.cluster)
        consumers = consumers_report.section(ConsumersQuestion(changed, groups, {}, plan=plan))
    complete = structs.replace(
        plan,
        failures=_failures(changed, plan) if sections.failures else None,
        growth=_growth(changed, plan, sections.growth_months) if sections.growth_months is not None else None,
        consumers=consumers,
    )
    return codec.identified(complete)


def pages_of(plan: Plan) -> tuple[View, ...]:
    """The pages to fold into the report of a plan, in this order: failures, growth, consumers."""
    views = list[View]()
    if plan.failures:
        kinds = ", ".join(failures_report.kind_name(kind.of) for kind in plan.failures.kinds)
        of_failures = (failures_report.view_section(plan.failures, plan.plan_id),)
        views.append(View(f"What breaks if brokers fail ({kinds})", of_failures, source="planner failures"))
    if plan.growth:
        months, of_growth = counted(plan.growth.months, "month"), (growth_report.view_section(plan.growth),)
        views.append(View(f"How long the cluster lasts ({months})", of_growth, source="planner growth"))
    if plan.consumers:
        groups, of_groups = counted(len(plan.consumers.groups), "group"), consumers_report.view_sections(plan.consumers)
        views.append(View(f"Consumers ({groups})", of_groups, source="planner consumers"))
    return tuple(views)


def _failures(spec: Spec, plan: Plan) -> FailuresSection:
    """The section of `planner failures`. Rows of single brokers and racks leave out batches, which may be thousands."""
    subject = Subject.of(spec, plan)
    scenarios = failure_simulation.all_scenarios(subject.problem, spec.report.failures, MOST, spec.sweep.seed)
    study = failure_simulation.study(subject.spec, subject.problem, subject.batches, scenarios)
    rows = failure_simulation.join_rows(each() for each in failure_simulation.questions(study, scenarios))
    section = failures_report.section(subject, scenarios, rows)
    ends_only = [
        structs.replace(row, states=tuple(each for each in row.states if each.state in (TODAY, PLANNED)))
        for row in section.scenarios
    ]
    return structs.replace(section, scenarios=tuple(ends_only))


def _growth(spec: Spec, plan: Plan, months: int) -> GrowthSection:
    """The section of `planner growth`, with the plan's own assignment as the planned one.

    If no broker gets full in that plan, no more brokers are tried.
    """
    base, *larger_cases = brokers_for_growth.cases(spec, months)
    planned = brokers_for_growth.row_of(base, with_replica_lists(base.forecast.problem, plan.replica_lists))
    cases = [base] if planned["first"] < 0 else [base, *larger_cases]
    rows = [planned, *(brokers_for_growth.evaluate(each) for each in cases[1:])]
    return growth_report.section(spec, cases, brokers_for_growth.today_row(base), rows)


def rendered_files(plan: Plan) -> dict[str, bytes]:
    """All files that are rendered from the plan, by relative path."""
    pages = pages_of(plan)
    return {
        **rendered(plan),
        "plan.json": codec.encode(plan),
        "report.md": report_markdown.report(plan, pages).encode(),
        **html.files(plan, pages),
    }


def files_of(plan: Plan, other_files: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of a plan's folder, by relative path: those rendered from it, `other_files`, and the digests of all."""
    return folder_check.with_sums({**rendered_files(plan), **other_files})


class PlanFiles(NamedTuple):
    """A plan, and all of its files by relative path."""

    plan: Plan
    files: dict[str, bytes]


def plan_files(planned: build.Planned, rows: pa.Table) -> PlanFiles:
    """A plan with all its files, also those that can't be rendered from it: its bound, and the candidates' `rows`."""
    bound = {} if planned.bound is None else {bound_json.FILE: planned.bound}
    other_files = {candidates_file.FILE: candidates_file.encoded(rows), **bound}
    return PlanFiles(planned.plan, files_of(planned.plan, other_files))


class ReadSpec(NamedTuple):
    """A spec that was read: its path on the machine that read it, its alternatives, and the search for each."""

    spec: Path
    alternatives: tuple[Alternative, ...]
    searches: tuple[Search, ...]


class SpecFacts(NamedTuple):
    """Facts about a spec that was read: the folders for its candidates' rows, and whether only this machine can plan
    it, because it names assignors in its folder.
    """

    scores: tuple[str, ...]
    only_here: bool


def plan_spec(read_spec: ReadSpec) -> bytes | PlannerError:
    """Sweeps a spec that has been read, chooses its plan and renders it. Returns `PlanFiles`, pickled for a file.

    An error in the spec is returned, not raised.
    """
    without_pandas()
    try:
        results = [evaluate.run(each.problem, each.candidates, scores=each.scores) for each in read_spec.searches]
        swept = choice.swept(read_spec.alternatives, results)
        plan = with_report_sections(read_spec.spec, swept[0].spec, build.planned(swept))
    except PlannerError as error:
        return error
    return pickle.dumps(plan_files(plan, choice.scores(swept)))


@dataclass(frozen=True)
class FleetSteps:
    """The two steps for each spec of a fleet, by number. A step returns an error in the spec.

    Specs that were read, and plans, are files in `folder`. A step may be repeated if its worker dies.
    """

    jobs: Sequence[SpecJob]
    candidates: int | None
    seed: int | None
    folder: Path

    def read_spec(self, number: int) -> SpecFacts | PlannerError:
        """Reads a spec and builds its problems."""
        job = self.jobs[number]
        try:
            all_alternatives = alternatives(job, self.candidates, self.seed)
        except PlannerError as error:
            return error
        searches = tuple(search(job, each) for each in all_alternatives)
        self._file(number, "read").write_bytes(pickle.dumps(ReadSpec(job.spec, all_alternatives, searches)))
        has_own = any(":" in group.assignor for group in all_alternatives[0].spec.consumers)
        return SpecFacts(tuple(each.scores.path for each in searches if each.scores is not None), has_own)

    def pickled(self, number: int) -> bytes:
        """A spec that has been read, pickled."""
        return self._file(number, "read").read_bytes()

    def plan(self, number: int) -> PlannerError | None:
        """Plans a spec that has been read."""
        return self.keep(number, plan_spec(pickle.loads(self.pickled(number))))

    def keep(self, number: int, pickled: bytes | PlannerError) -> PlannerError | None:
        """Writes a spec's pickled plan to its file; returns an error as it is."""
        if isinstance(pickled, PlannerError):
            return pickled
        self._file(number, "made").write_bytes(pickled)
        return None

    def plans(self) -> Iterator[PlanFiles]:
        """The plan of each spec, one after the other, once all are planned."""
        for number in range(len(self.jobs)):
            plan: PlanFiles = pickle.loads(self._file(number, "made").read_bytes())
            yield plan

    def _file(self, number: int, step: str) -> Path:
        return self.folder / f"{number}.{step}"

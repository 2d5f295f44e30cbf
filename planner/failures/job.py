"""What `planner failures` does, step by step: find the spec and its plan, judge every scenario, write the rows.

Files and Spark are touched here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from planner import plan_file
from planner.errors import SetupError, StalePlanError
from planner.failures import rows as failures
from planner.failures.scenarios import KINDS, MOST, Scenarios
from planner.failures.summary import Subject, document
from planner.file_writing import replace_file
from planner.spec import reading as spec


@dataclass(frozen=True)
class Options:
    """The options of `failures`, as given on the command line; `engine` None: Spark for any K brokers, else here."""

    plan: Path | None = None
    of: tuple[str, ...] = ()
    engine: Literal["spark", "local"] | None = None
    scenarios: int = MOST
    seed: int = 0
    out: Path | None = None
    master: str | None = None
    remote: str | None = None
    partitions: int | None = None


def run(path: Path, options: Options, errors: Console) -> dict[str, Any]:
    """The document of a spec or a plan; writes the rows where `options.out` says so."""
    if options.out is not None and not Path(os.path.realpath(options.out)).parent.is_dir():
        raise SetupError(f"{options.out}: can't be written: {options.out.parent} isn't a folder")
    subject = find(path, options.plan)
    kinds = options.of or KINDS
    wanted = failures.all_scenarios(subject.problem, kinds, options.scenarios, options.seed)
    study = failures.study(subject.spec, subject.problem, subject.batches, wanted)
    rows = _rows(study, wanted, options)
    if options.out is not None:
        _write(rows, options.out)
    return document(subject, wanted, rows)


def find(path: Path, plan: Path | None) -> Subject:
    """The spec and the plan that are meant: SPEC with the plan beside it, if there is one, or a plan with its spec.

    StalePlanError where a plan was made from other files than there are now, and no other plan will do.
    """
    if path.is_dir() or path.name == "plan.json":
        if plan is not None:
            raise SetupError(f"{path} is a plan already; allowed: a plan, or a spec with --plan")
        return _of_plan(_spec_of(path), path, None)
    beside = path.with_suffix(".plan")
    if plan is None and not (beside / "plan.json").is_file():
        note = f"there is no plan beside the spec: today alone; planner whatif {path.name} makes one"
        return Subject.of(spec.load(path), None, (note,))
    return _of_plan(path, plan or beside, beside if plan is None else None)


def _spec_of(path: Path) -> Path:
    """The spec that a plan was made from: beside the plan's folder, under the name that the plan knows."""
    folder = path if path.is_dir() else path.parent
    name = plan_file.read(path)["inputs"][0]["path"]
    found = folder.resolve().parent / name
    if not found.is_file():
        raise SetupError(f"{path}: its spec {name!r} isn't beside it; allowed: planner failures SPEC --plan {path}")
    return folder.parent / name if folder.parent != folder else found


def _of_plan(path: Path, plan: Path, found: Path | None) -> Subject:
    """The spec with its plan; one that was only found beside it is passed over where it is of other files."""
    wish, made = spec.load(path), plan_file.read(plan)
    if made["inputs"] == [{"path": each.path, "sha256": each.sha256} for each in wish.inputs]:
        return Subject.of(wish, made)
    if found is None:
        raise StalePlanError(f"{plan}: made from other files than {path} and its state are now; make the plan again")
    note = (
        f"{found.name} was made from other files than there are now: today alone; planner whatif {path.name} renews it"
    )
    return Subject.of(wish, None, (note,))


def _rows(study: failures.Study, wanted: Sequence[Scenarios], options: Options) -> pa.Table:
    many = any(each.kind not in KINDS for each in wanted)
    if (options.engine or ("spark" if many else "local")) == "local":
        if options.master or options.remote or options.partitions:
            raise SetupError("--master, --remote and --partitions are Spark's; allowed: --engine spark")
        return failures.run(study, wanted)
    from spark_jobs import failures as job
    from spark_jobs import session  # planner never imports pyspark; this is its only door

    with session.open_session(master=options.master, remote=options.remote) as spark:
        return job.run(spark, study, wanted, partitions=options.partitions)


def _write(rows: pa.Table, out: Path) -> None:
    buffer = BytesIO()
    pq.write_table(rows.replace_schema_metadata(None).combine_chunks(), buffer, compression="zstd")
    try:
        replace_file(out, buffer.getvalue())
    except OSError as error:
        raise SetupError(f"{out}: can't be written: {error.strerror}") from error

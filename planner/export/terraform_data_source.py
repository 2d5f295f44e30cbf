"""Answers Terraform's `external` data source: a plan as a flat object of strings.

Terraform asks at every plan and apply, so this module only reads. Structured values are JSON inside a string, for
`jsondecode`. Source: the protocol of the provider hashicorp/external, 2.x.
"""

import json
from pathlib import Path

from planner.model.errors import PlannerError, StalePlanError
from planner.model.file_reading import STATE_LINES, UnreadableError, digest, json_value, read_bytes
from planner.model.formats import first_names
from planner.model.generated_text import json_text
from planner.plan import headline, plan_file
from planner.plan.document.plan_types import Plan

KEYS = ("plan", "spec")
_ALLOWED = '{"plan": "path of a plan.json or its folder"} or {"spec": "path of a YAML whose plan lies beside it"}'


def query(text: str) -> tuple[str, Path]:
    """The query on stdin: `plan` or `spec`, and a path. PlannerError for anything else."""
    try:
        request = json_value(text)
    except ValueError as error:
        raise PlannerError(f"stdin: can't be read as a query: {error}; allowed: {_ALLOWED}") from error
    if not isinstance(request, dict) or len(request) != 1 or not request.keys() <= set(KEYS):
        keys = ", ".join(request) or "nothing" if isinstance(request, dict) else json.dumps(request)[:60]
        raise PlannerError(f"stdin: {keys} is asked for; allowed: {_ALLOWED}")
    ((key, path),) = request.items()
    if not isinstance(path, str) or not Path(path).name or "\0" in path:
        raise PlannerError(f"stdin: {key}: {json.dumps(path)[:60]} isn't a path; allowed: {_ALLOWED}")
    return key, Path(path)


def answer(text: str) -> dict[str, str]:
    """The answer to a query. StalePlanError if the plan beside a `spec` was made from another one, or if a file that it
    was made from is missing or changed.
    """
    key, path = query(text)
    if key == "plan":
        return described(plan_file.read(path))
    plan_folder = path.with_suffix(".plan")
    plan = plan_file.read(plan_folder)
    input_paths = [file.path for file in plan.inputs]
    if path.name not in input_paths:
        message = f"{plan_folder} wasn't made from it, but from {first_names(input_paths) or 'no file'}"
        raise StalePlanError(f"{path}: {message}; allowed: a YAML with its own plan beside it (planner whatif)")
    for file in plan.inputs:
        input_file = path.parent / file.path
        try:
            sha256 = digest(read_bytes(input_file, STATE_LINES))
        except UnreadableError as error:
            raise StalePlanError(f"{input_file}: the plan was made from it, but {error}") from error
        if sha256 != file.sha256:
            allowed = f"the file with SHA-256 {file.sha256}, or a new plan (planner whatif)"
            raise StalePlanError(f"{input_file}: changed since the plan was made: SHA-256 {sha256}; allowed: {allowed}")
    return described(plan)


def described(plan: Plan) -> dict[str, str]:
    """The strings that Terraform gets. `bytes_moved` is empty if sizes are unknown."""
    chosen = plan.own_row
    created = sorted(row.topic for row in plan.new_topics if not row.partitions_before)
    return {
        "plan_id": plan.plan_id,
        "cluster": plan.cluster.name,
        "complete": "false" if plan.unfinished else "true",
        "created_topics": json_text(created, separators=(",", ":")),
        "headline": headline.first_sentences(plan),
        "has_changes": "true" if plan.has_something_to_do else "false",
        "bytes_moved": str(chosen.bytes_moved) if plan.cluster.sizes_known else "",
        "replicas_moved": str(chosen.replicas_moved),
        "leaders_changed": str(chosen.leaders_changed),
        "partitions_changed": str(len(plan.partitions)),
        "batches": str(len(plan.batches)),
        "gap_percent": str(plan.bound.gap_percent),
        "warnings": json_text(plan.warnings, separators=(",", ":")),
        "kafka_topics": json_text(plan.declared_topics, separators=(",", ":")),
    }

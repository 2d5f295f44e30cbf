"""`planner external`: a plan as a data source of Terraform."""

from __future__ import annotations

import sys

import click

from planner.cli.shown import echo_json, reads_plan
from planner.export import terraform_external
from planner.model.errors import PlannerError
from planner.model.file_reading import SHORT


@click.command()
@reads_plan
def external() -> int:
    """Answer Terraform's `external` data source.

    Reads a query from stdin; writes a flat JSON object of strings to stdout.

    The query is {"plan": PATH} for a plan.json or its folder, or {"spec": PATH} for the plan beside a YAML, which is
    refused where a file that it was made from has changed since. Nothing is planned or written.

    \b
    data "external" "plan" {
      program = ["planner", "external"]
      query   = { plan = "${path.module}/../expand.plan" }
    }
    """
    try:
        text = sys.stdin.read(SHORT.most_bytes + 1)  # it may have no end
    except UnicodeDecodeError:
        raise PlannerError("stdin: isn't text in UTF-8; allowed: a query as Terraform sends it") from None
    if len(text) > SHORT.most_bytes:
        raise PlannerError(f"stdin: has more than {SHORT.most_bytes:,} characters; allowed: a query, which is short")
    echo_json(terraform_external.answer(text))
    return 0

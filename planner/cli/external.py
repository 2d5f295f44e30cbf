"""`planner external`: a plan as a data source of Terraform."""

from __future__ import annotations

import sys

import click

from planner import plan_file
from planner.cli.shown import echo_json
from planner.terraform import external as terraform_external


@click.command()
def external() -> int:
    """Answer Terraform's `external` data source: a query on stdin, a flat JSON object of strings on stdout.

    The query is {"plan": PATH} for a plan.json or its folder, or {"spec": PATH} for the plan beside a YAML, which is
    refused where a file that it was made from has changed since. Nothing is planned or written.

    \b
    data "external" "plan" {
      program = ["planner", "external"]
      query   = { plan = "${path.module}/../expand.plan" }
    }
    """
    found = terraform_external.answer(sys.stdin.read(), plan_file.read)
    echo_json(found)
    return 0

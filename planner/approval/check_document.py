"""What `planner check` found, as JSON for programs: in the shape of `schemas/plan-check.schema.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from planner.approval.changed_since import Since
from planner.approval.check import CheckedPlan
from planner.approval.staleness import Difference, Fit, Standing
from planner.export.folder_check import FileFinding
from planner.model import expiry
from planner.plan import headline

FORMAT_VERSION = "1.0"


def document(checked: CheckedPlan) -> Mapping[str, Any]:
    """Everything, also of a plan that is refused; `state` is null where no state was given."""
    held = checked.held
    return {
        "format_version": FORMAT_VERSION,
        "plan_id": checked.plan["plan_id"],
        "planner_version": checked.plan.get("planner_version"),
        "first_step": headline.first_step(checked.plan) or None,
        "approved": not checked.refusals,
        "refusals": [str(each) for each in checked.refusals],
        "valid_until": expiry.valid_until(checked.plan),
        "files": held.files if held else 0,
        "differences": [_file(each) for each in held.differences] if held else [],
        "operators_files": [_file(each) for each in held.own] if held else [],
        "state": None if checked.fit is None else _state(checked.fit, checked.since),
    }


def _file(finding: FileFinding) -> dict[str, Any]:
    return {"path": finding.path, "what": finding.what, "effect": finding.effect, "sha256": finding.sha256}


def _state(fit: Fit, since: Since | None) -> dict[str, Any]:
    counts = Counter(fit.standings.values())
    return {
        "brokers_known": fit.brokers_known,
        "partitions": {standing.name.lower(): counts[standing] for standing in Standing},
        "moving": fit.moving,
        "stale": [_difference(each) for each in fit.stale],
        "notes": [_difference(each) for each in fit.told],
        "outside": None if since is None else _outside(since),
    }


def _difference(each: Difference) -> dict[str, str]:
    return {"kind": each.kind, "subject": each.subject, "message": each.message}


def _outside(since: Since) -> dict[str, Any]:
    return {
        "partitions_changed": since.partitions,
        "other_replicas": len(since.replicas),
        "another_leader": len(since.leaders),
        "new": since.more,
        "gone": since.fewer,
        "topics_new": list(since.topics_new),
        "topics_gone": list(since.topics_gone),
        "size_bytes_before": since.bytes_before,
        "size_bytes_now": since.bytes_now,
        "unnamed": since.unnamed,
        "configs": [each._asdict() for each in since.configs],
    }

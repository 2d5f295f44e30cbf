"""How long a plan may be applied: from the moment when its state was captured, for as long as `valid_for` says.

Both are inputs, so that a plan says the same whenever it is made. The clock is read where a plan is used alone: by
`planner check`, and by the playbook's first task.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

ALLOWED = "a date and time with its zone, such as 2026-11-20T10:00:00Z or 2026-11-20T11:00:00+01:00"


def parse_moment(text: str) -> datetime:
    """A moment in UTC, whole seconds; ValueError for anything but a date and time of ISO 8601 with its zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or len(text) <= len("2026-11-20"):
        raise ValueError(f"{text!r} has no zone")
    return moment.astimezone(UTC).replace(microsecond=0)


def written(moment: datetime) -> str:
    """A moment as plans and playbooks have it, `2026-11-20T10:00:00Z`: later ones sort behind earlier ones."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def end(captured_at: str, valid_for_seconds: int | None) -> str | None:
    """The moment from which a plan of a state isn't valid any more; None where it always is."""
    if valid_for_seconds is None:
        return None
    return written(parse_moment(captured_at) + timedelta(seconds=valid_for_seconds))

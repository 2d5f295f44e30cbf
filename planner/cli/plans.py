"""Commands that take a plan: whatever its content makes fail is said of that content."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from planner.errors import PlannerError, StalePlanError

_DEBUG = "PLANNER_DEBUG"


def reads_plan(command: Callable[..., int]) -> Callable[..., int]:
    """The command, refusing a plan whose parts don't fit together.

    Its id fits, or it wouldn't have been read: somebody has made that anew after a change, or we have a defect.
    """

    @wraps(command)
    def reading(**options: Any) -> int:
        try:
            return command(**options)
        except (PlannerError, click.ClickException, click.exceptions.Exit, OSError, MemoryError):
            raise
        except Exception as error:
            if os.environ.get(_DEBUG):
                raise
            about = " ".join(str(error).split())[:200]
            raise StalePlanError(
                f"the plan's content contradicts itself ({type(error).__name__}: {about}): it was changed after it was "
                f"made, and its plan_id made anew; make it again (planner whatif). {_DEBUG}=1 shows where it fails"
            ) from error

    return reading

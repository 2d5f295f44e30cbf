"""The number of examples that hypothesis draws for a property: few in a quick run, all if all tests are asked for.

Both profiles draw the same examples in every run, and no property fails for being slow.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

QUICK, FULL = "quick", "full"
FULL_EXAMPLES = 100  # for a property that doesn't state a number
QUICK_EXAMPLES = 6
FEWEST = 3

for _name, _examples in ((QUICK, QUICK_EXAMPLES), (FULL, FULL_EXAMPLES)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )


def are_all(marks: str) -> bool:
    """True if these marks ask for all tests."""
    return marks in ("", "not long")


def load(marks: str) -> None:
    """Load the profile that `HYPOTHESIS_PROFILE` names. Without it, load the full one if all tests are asked for."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or (FULL if are_all(marks) else QUICK))


def examples(full: int) -> settings:
    """Settings with `full` examples in the full profile, and the same share of them in the quick profile."""
    return settings(max_examples=max(min(FEWEST, full), scaled(full)))


def scaled(full: int) -> int:
    """The profile's share of `full` examples."""
    return full * settings.default.max_examples // FULL_EXAMPLES

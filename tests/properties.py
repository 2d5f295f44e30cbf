"""How many examples hypothesis draws of a property: few for a quick verdict, all where all tests are asked for.

Either profile draws the same examples in every run, and no property fails for being slow.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

QUICK, FULL = "quick", "full"
FULL_EXAMPLES = 100  # of a property that doesn't say how many it needs
QUICK_EXAMPLES = 10
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
    """True where these marks ask for all tests."""
    return marks in ("", "not long")


def load(marks: str) -> None:
    """Take the profile that `HYPOTHESIS_PROFILE` names, else the full one where all tests are asked for."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or (FULL if are_all(marks) else QUICK))


def examples(full: int) -> settings:
    """A property's own number of examples in the full profile, and the same share of it in the quick one."""
    return settings(max_examples=max(min(FEWEST, full), scaled(full)))


def scaled(full: int) -> int:
    """The profile's share of a number."""
    return full * settings.default.max_examples // FULL_EXAMPLES

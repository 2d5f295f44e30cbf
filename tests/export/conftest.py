"""The supported lines of ansible-core, for tests that run on each."""

from __future__ import annotations

from pathlib import Path

import ansible_lines
import pytest

# Each push tests the oldest and the newest line. All other tests use the line that is installed with the planner.
_OLDEST, *_BETWEEN, _NEWEST = ansible_lines.LINES
_LINES = (_OLDEST, *(pytest.param(line, marks=pytest.mark.long) for line in _BETWEEN), _NEWEST)


@pytest.fixture(scope="module", params=_LINES, ids=lambda line: line.release.rpartition(".")[0])
def programs(request: pytest.FixtureRequest) -> Path:
    """The programs of one line of ansible-core. They are installed once and kept in pytest's cache."""
    line = request.param
    return ansible_lines.programs(line, request.config.cache.mkdir(f"ansible-core-{line.release}"))

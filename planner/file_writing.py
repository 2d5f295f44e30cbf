"""One file, written all or nothing: who looks finds what was there before, or all of the new content."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from planner import interrupts


def replace_file(path: Path, content: bytes) -> None:
    """Write a file, through links, in the place of what is there; OSError where the system refuses.

    What is no regular file (a pipe, a terminal) takes the content as it comes.
    """
    goal = Path(os.path.realpath(path))
    if goal.exists() and not goal.is_file():
        goal.write_bytes(content)
        return
    with interrupts.held():
        handle, staged = tempfile.mkstemp(prefix=f".{goal.name}.", dir=goal.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(staged).chmod(_mode(goal))
            Path(staged).replace(goal)
        except BaseException:
            Path(staged).unlink(missing_ok=True)
            raise


def _mode(path: Path) -> int:
    """As the file has them, or as a new file gets them."""
    if path.exists():
        return path.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask

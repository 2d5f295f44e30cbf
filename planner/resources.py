"""Where `templates/` and `schemas/` lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from planner.errors import SetupError

PACKAGE = Path(__file__).resolve().parent


def resource(folder: str, name: str = "") -> Path:
    """The path of a file (or, without `name`, of the folder) that is shipped with the planner.

    The wheel's own copy wins, so that an installed planner never reads a folder that happens to lie beside it.
    Raises SetupError where the file is in neither place.
    """
    roots = (PACKAGE / "_data", PACKAGE.parent)
    for root in roots:
        path = root / folder / name
        if path.exists():
            return path
    wanted = Path(folder, name).as_posix()
    raise SetupError(f"{wanted} isn't part of this installation; install the kafka-planner wheel again")

"""The folders of a checkout."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
DATA = TESTS / "data"
EXAMPLES = ROOT / "examples"


def copy_examples(folder: Path, names: Iterable[str]) -> None:
    """Copy these specs of examples/, and the state that they read, into a folder."""
    shutil.copytree(EXAMPLES / "state", folder / "state")
    for name in names:
        shutil.copy(EXAMPLES / f"{name}.yaml", folder)


def capture(name: str) -> str:
    """The text of a file in tests/data, which a tool of a real cluster printed."""
    return (DATA / name).read_text(encoding="utf-8")

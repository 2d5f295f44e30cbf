"""The folders of a checkout."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
DATA = TESTS / "data"
EXAMPLES = ROOT / "examples"


def capture(name: str) -> str:
    """The text of a file in tests/data, which a tool of a real cluster printed."""
    return (DATA / name).read_text(encoding="utf-8")

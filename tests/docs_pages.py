"""The command blocks of the pages in docs/, and of the README: what is typed, and what is shown of its output."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

# A comment before a block says who runs it: nothing means `pytest -m docs`.
_BLOCK = re.compile(r"(?:<!-- runs: (?P<where>[a-z ]+) -->\n)?```(?P<kind>sh|text)\n(?P<body>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """One block of commands; `shown` are the lines of its output that the page shows, with `…` for any text."""

    where: str
    script: str
    shown: tuple[str, ...]


def commands(page: Path) -> list[Command]:
    """The command blocks of a page in order, each with the text blocks up to the next one."""
    found: list[Command] = []
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "sh":
            found.append(Command(block["where"] or "everywhere", block["body"], ()))
        elif found and not block["body"].startswith("#"):
            last = found.pop()
            found.append(Command(last.where, last.script, (*last.shown, *block["body"].splitlines())))
    return found


def missing(command: Command, output: str) -> list[str]:
    """Lines shown that the output doesn't have; blanks at the ends don't count."""
    lines = {line.strip() for line in output.splitlines()}
    return [line for line in command.shown if not any(re.fullmatch(_pattern(line), got) for got in lines)]


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.strip().split("…"))

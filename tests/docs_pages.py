"""The command blocks of docs/ and the README: the commands, and the output that the page shows for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent

# A comment before a block says which tests run it. Without a comment, `pytest -m docs` runs it.
_BLOCK = re.compile(r"(?:<!-- runs: (?P<where>[a-z ]+) -->\n)?```(?P<kind>sh|text)\n(?P<body>.*?)```", re.DOTALL)


@dataclass(frozen=True)
class Command:
    """One block of commands. `shown` are the output lines that the page shows; `…` stands for any text."""

    where: str
    script: str
    shown: tuple[str, ...]


def commands(page: Path) -> list[Command]:
    """The command blocks of a page in order, each with the text blocks between it and the next command block."""
    found: list[Command] = []
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["kind"] == "sh":
            found.append(Command(block["where"] or "everywhere", block["body"], ()))
        elif found and not block["body"].startswith("#"):
            last = found.pop()
            found.append(Command(last.where, last.script, (*last.shown, *block["body"].splitlines())))
    return found


def missing(command: Command, output: str) -> list[str]:
    """Lines that the page shows but the output doesn't have. Blanks at the ends of a line don't count."""
    lines = {line.strip() for line in output.splitlines()}
    return [line for line in command.shown if not any(re.fullmatch(_pattern(line), got) for got in lines)]


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.strip().split("…"))

"""Names and sentences as Markdown in which nothing is markup, whatever they hold."""

from __future__ import annotations

import re

from planner.model.formats import UNKNOWN, printable

# Long enough for the longest topic name; a rack or a sentence may be of any length.
LONGEST_NAME = 250
LONGEST_TEXT = 300

# What Markdown, HTML or a forge could take for markup. `@` would notify whoever bears a rack's name.
AT_SIGN = "@<!-- -->"
_MARKUP = re.compile(r"[\\`*_{}\[\]#|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": AT_SIGN}


def text(value: str, at_most: int = LONGEST_TEXT) -> str:
    """A sentence or a name for Markdown's running text or table cell: nothing in it is markup any more."""
    escaped = "".join(_ENTITIES.get(character, character) for character in printable(value, at_most))
    return _MARKUP.sub(r"\\\g<0>", escaped.replace(AT_SIGN, "\0")).replace("\0", AT_SIGN)


def code(name: str, at_most: int = LONGEST_NAME) -> str:
    """A name as a code span for a table cell; pipes are escaped there even inside code."""
    shown = printable(name, at_most).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else UNKNOWN

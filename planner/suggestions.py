"""What was probably meant by a name, or a pattern of names, that doesn't exist."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_MOST = 3
# Beyond, only names that begin or end alike are compared: a comparison takes some microseconds.
_MANY = 2_000
_GLOB = str.maketrans("", "", "*?[]!")


def did_you_mean(word: str, known: Collection[str], most: int = _MOST) -> str:
    """`did you mean 'logs'? `, with a blank at its end, or nothing where no known name is close.

    Capitals don't count, nor do the signs of a shell-style pattern.
    """
    bare = word.translate(_GLOB).lower()
    if not bare:
        return ""
    by_lower: dict[str, str] = {}
    for name in known:
        by_lower.setdefault(name.lower(), name)
    candidates: Collection[str] = by_lower
    if len(by_lower) > _MANY:
        candidates = [name for name in by_lower if name[:2] == bare[:2] or name[-2:] == bare[-2:]][:_MANY]
    close = [by_lower[name] for name in get_close_matches(bare, candidates, n=most)]
    close = close or sorted(name for lower, name in by_lower.items() if bare in lower)[:most]
    return f"did you mean {' or '.join(map(repr, close))}? " if close else ""

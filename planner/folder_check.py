"""A plan's folder held against the files that its plan.json gives: what differs, and what is the operator's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from planner.file_effects import effect, is_operators
from planner.folder_entries import Entry


@dataclass(frozen=True)
class Finding:
    """A file that isn't as the plan gives it: in what way, and what such a file could do; empty where nothing."""

    path: str
    what: str
    effect: str
    sha256: str | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.what}{f': {self.effect}' if self.effect else ''}"


@dataclass(frozen=True)
class Held:
    """How a folder differs: `differences` refuse it, `own` are the operator's files; `files` counts the plan's."""

    differences: tuple[Finding, ...] = ()
    own: tuple[Finding, ...] = ()
    files: int = 0


def held(expected: Mapping[str, str], now: Mapping[str, Entry]) -> Held:
    """The files of a folder now beside the digests of those that belong there, both by relative path."""
    found = sorted([*_of_plan(expected, now), *_added(expected, now)], key=lambda each: each.path)
    needed = _folders_of(path for path in expected if not is_operators(path, added=False))
    own = {each.path for each in found if is_operators(each.path, added=each.path not in expected)} - needed
    return Held(
        tuple(each for each in found if each.path not in own),
        tuple(each for each in found if each.path in own),
        len([path for path in expected if path in now and path not in own]),
    )


def _of_plan(expected: Mapping[str, str], now: Mapping[str, Entry]) -> Iterator[Finding]:
    """The plan's own files that are gone, or other than they were made."""
    for path, sha256 in expected.items():
        entry = now.get(path)
        if entry is None:
            # Below a link or a file in the place of a folder, which is told itself.
            if not any(folder in now for folder in _folders_of([path])):
                yield Finding(path, "is missing", "")
            continue
        what = _unlike(entry, sha256)
        if what:
            yield Finding(path, what, effect(path, executable=entry.executable), entry.sha256)


def _unlike(entry: Entry, sha256: str) -> str:
    """In which way a file isn't the one that was made; empty where it is."""
    if entry.kind != "file":
        return f"is a {entry.kind}, not the file that was made"
    if entry.sha256 != sha256:
        return "isn't the file that was made"
    return "is executable, which no file of a plan is" if entry.executable else ""


def _added(expected: Mapping[str, str], now: Mapping[str, Entry]) -> Iterator[Finding]:
    """Files that the plan doesn't have."""
    for path, entry in now.items():
        if path not in expected:
            kind = "" if entry.kind == "file" else f"is a {entry.kind} that "
            yield Finding(
                path, f"{kind}isn't part of the plan", effect(path, executable=entry.executable), entry.sha256
            )


def _folders_of(paths: Iterator[str] | list[str]) -> set[str]:
    """All folders above these paths."""
    return {str(folder) for path in paths for folder in PurePosixPath(path).parents}

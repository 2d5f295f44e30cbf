"""The journal of a run: a file of JSON lines on the admin host, one for each event."""

# Runs on the admin host: the standard library and Python 3.8 are enough.
from __future__ import annotations

import contextlib
import errno
import json
import os
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.kafka_reassign_cluster import ToolError

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def _now():
    return datetime.now(timezone.utc)  # noqa: UP017  (Python 3.8 has no datetime.UTC)


def folder_of(given, make=True):
    """The folder for journals and for the settings from before a run. Only its owner may read it."""
    try:
        folder = Path(given or Path.home() / ".local" / "state" / "kafka_reassign")
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home
        said = f"journals and throttles from before can't be kept ({error}); allowed: in kafka_reassign_journal_dir,"
        raise ToolError(f"{said} the path of a folder on the admin host that can be written") from None
    return folder


def replace_json(path, content):
    """Replace a file as a whole. The new content is on the disk before it takes the old file's place, then its name."""
    partial = path.with_suffix(".part")
    with partial.open("w") as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Some network file systems refuse this for folders.
        with contextlib.suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def read_json(path):
    """The content of a file that `replace_json` wrote; {} if there is none."""
    try:
        content = json.loads(path.read_text()) if path.exists() else {}
    except ValueError:
        content = None
    if not isinstance(content, dict):
        said = f"{path} is damaged. It says what runs have to restore. Put back a copy, or move it away"
        raise ToolError(f"{said}; then the throttles or cordons that it has aren't restored")
    return content


def begin(given):
    """Create the journal of a new run, and return its path."""
    name = f"{_now().strftime('%Y%m%dT%H%M%SZ')}-{given['direction']}-{given['plan_id'][:12]}.jsonl"
    path = folder_of(given["journal_dir"]) / name
    path.touch(mode=0o600)
    return str(path)


def append(path, entries):
    """Append entries to the journal, each with the current time. Without a journal, nothing is written."""
    if path and entries:
        time = _now().strftime(_TIME)
        with Path(path).open("a") as file:
            file.writelines(json.dumps({"time": time, **each}, sort_keys=True) + "\n" for each in entries)


def summary(path):
    """The seconds since the run began, the figures of each batch that it moved, and the leaders of each election."""
    if not path:
        return {"seconds": 0, "figures": [], "elections": []}
    entries = [json.loads(line) for line in Path(path).read_text().splitlines()]
    began = datetime.strptime(entries[0]["time"], _TIME).replace(tzinfo=timezone.utc)  # noqa: UP017
    figures = [each["figures"] for each in entries if each["event"] == "end" and "figures" in each]
    elections = [each["elections"] for each in entries if "elections" in each]
    return {"seconds": round((_now() - began).total_seconds()), "figures": figures, "elections": elections}

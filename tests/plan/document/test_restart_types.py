"""The document of a restart: its id is of all else, and its bytes are canonical."""

from __future__ import annotations

import hashlib
import json

from clusters import spec_of
from msgspec import json as msgspec_json

from planner.plan.document.restart_types import FILE, RestartDocument
from planner.whatif import restart_steps

RACKS = {1: "a", 2: "b", 3: "b"}


def made() -> RestartDocument:
    """One with a step that refuses writes."""
    config = {"t": (("min.insync.replicas", "2"),)}
    return restart_steps.document(spec_of(RACKS, {"t": [[1, 2], [3, 1]]}, config=config))


def test_the_id_is_of_all_else() -> None:
    """Another limit on the brokers of a step is another restart."""
    document = json.loads(made().encoded())
    unnamed = json.dumps(document | {"restart_id": ""}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    assert "restart.json" == FILE
    assert hashlib.sha256(unnamed.encode()).hexdigest() == document["restart_id"] == made().restart_id
    assert made() == made().identified()


def test_it_is_read_back_as_it_was_written() -> None:
    """By its types."""
    assert made() == msgspec_json.decode(made().encoded(), type=RestartDocument)


def test_names_are_those_of_kafkas_tools() -> None:
    """And a step that refuses writes is one of those that have to be allowed."""
    document = made()
    assert {"t-0", "t-1"} == {name for each in document.steps[0].writes_refused for name in each.names}
    assert document.steps[0] in document.refusing

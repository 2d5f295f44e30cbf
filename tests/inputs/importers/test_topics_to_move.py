"""The topics-to-move JSON."""

from __future__ import annotations

import pytest
from folders import capture

from planner.inputs.importers.any_format import read_part
from planner.model.errors import ImportStateError


def test_topics_to_move_of_a_real_cluster() -> None:
    """The file that the capture's --generate was given."""
    part = read_part(capture("kraft-4.1/topics-to-move.json"), "t.json")
    expected = ("orders", "payments", "clickstream", "audit.log", "user_profile-changelog", "dead-letter")
    assert expected == part.only_topics


@pytest.mark.parametrize("entry", ['{"topic":"a b"}', '{"topic":5}', '"orders"'])
def test_an_entry_that_is_no_topic_is_named(entry: str) -> None:
    """With its place in the list; a sound one beside it is none of the findings."""
    with pytest.raises(ImportStateError, match=r"^t\.json:1:1: topics\[1\]\.topic: .* isn't a topic; allowed:"):
        read_part(f'{{"version":1,"topics":[{{"topic":"orders"}},{entry}]}}', "t.json")


def test_a_topic_that_is_named_twice_may_move_once() -> None:
    """The names stay in the file's order."""
    text = '{"version":1,"topics":[{"topic":"b"},{"topic":"a"},{"topic":"b"}]}'
    assert ("b", "a") == read_part(text, "t.json").only_topics

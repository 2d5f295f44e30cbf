"""The format of a state file is told from its content, and refused where it is unknown."""

from __future__ import annotations

import pytest
from folders import capture
from state_texts import read_topics

from planner.inputs.importers.any_format import read_part
from planner.model.errors import ImportStateError


def test_the_format_is_told_from_the_content() -> None:
    """The file's name plays no part."""
    described = read_topics(capture("kraft-4.1/kafka-topics-describe.txt"), "x")
    generated = read_topics(capture("kraft-4.1/kafka-reassign-partitions-generate.txt"), "x")
    assert [topic.name for topic in described] == [topic.name for topic in generated]


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"brokers": []}', "\x00", '{"version":1,"partitions":[]}'])
def test_unknown_formats_name_the_file_and_what_is_known(text: str) -> None:
    """Neither importer guesses."""
    with pytest.raises(ImportStateError, match=r"^f:1:1: no assignment in a known format; allowed: .*describe"):
        read_topics(text, "f")
    with pytest.raises(ImportStateError, match=r"^f:1:1: no sizes in a known format; allowed: .*kafka-log-dirs"):
        read_part(text, "f", expected="sizes")

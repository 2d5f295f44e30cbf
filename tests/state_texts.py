"""Reads the topics of a state file's text."""

from __future__ import annotations

from planner.inputs.state.merge import merge
from planner.inputs.state.state_files import read_part
from planner.model.cluster import Topic


def read_topics(text: str, file: str) -> tuple[Topic, ...]:
    """Today's topics by name, from a text in any format that holds an assignment."""
    return merge([read_part(text, file, expected="assignment")]).assignment.topics

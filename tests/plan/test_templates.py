"""The Jinja environment: what is missing is an error, and Jinja of Ansible's stays as it is."""

from __future__ import annotations

import jinja2
import pytest

from planner.plan.templates import environment


def render(text: str, **values: object) -> str:
    """A template of this text."""
    return environment().from_string(text).render(values)


def test_a_value_that_nobody_gave_is_an_error() -> None:
    """A misspelled name must not become an empty line of a playbook."""
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        render("[[ missing ]]")


def test_ansibles_own_jinja_is_text() -> None:
    """Only the delimiters of ours are read."""
    text = "{{ inventory_hostname }} {% if x %}y{% endif %} {# z #}"
    assert f"{text} 1" == render(f"{text} [[ one ]][# gone #]", one=1)


def test_names_are_quoted_by_filters() -> None:
    """What looks like a template to Ansible is marked as data."""
    assert '!unsafe "{{ x }}"' == render("[[ name | yaml_text ]]", name="{{ x }}")

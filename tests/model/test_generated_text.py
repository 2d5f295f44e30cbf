"""Other people's strings in generated text: each format reads them back unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import hostile
import jinja2
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.model.generated_text import environment, json_text, yaml_scalar, yaml_text

HOSTILE = hostile.strings(Path("/canary"))
# Without quotes, YAML reads these as another type or refuses them.
NO_STRINGS = (
    *("", "~", "True", "true", "no", "null", "<<", "=", "!", "&", "*"),
    *("1", "01", "0x10", "1_000", "1:30", "1.5", ".inf", "2020-01-01", "2020-01-01T00:00:00Z"),
)
texts = st.text() | st.sampled_from(HOSTILE)


class _AnsibleLoader(yaml.SafeLoader):
    """Reads `!unsafe` as ansible-core 2.19 and later: it resolves the text as if it had no quotes."""

    def unsafe(self, node: yaml.ScalarNode) -> object:
        """The value of a tagged scalar."""
        tag = self.resolve(yaml.ScalarNode, node.value, (True, False))
        return self.construct_object(yaml.ScalarNode(tag, node.value, node.start_mark, node.end_mark))


_AnsibleLoader.add_constructor("!unsafe", _AnsibleLoader.unsafe)


def seen(text: str) -> bool:
    """True if the text has no character that controls a terminal or reverses text."""
    return not set(text) & set(hostile.UNPRINTABLE)


@given(texts)
def test_yaml_text_is_the_text_on_one_line(text: str) -> None:
    """Whichever way Ansible reads a tagged scalar."""
    scalar = yaml_text(text)
    assert {"key": text, "next": 1} == yaml.load(f"key: {scalar}\nnext: 1\n", _AnsibleLoader)
    assert "\n" not in scalar
    assert seen(scalar)


@pytest.mark.parametrize("text", [*HOSTILE, "a", "r1", "/opt/kafka/bin", "kafka-1:9092"])
def test_yaml_text_is_tagged_whatever_it_looks_like(text: str) -> None:
    """Text is tagged, except if Ansible would read it as another type; such text is no template."""
    assert yaml_text(text).startswith("!unsafe ") == (text not in NO_STRINGS)


@given(texts, texts)
def test_json_text_is_json_that_shows_what_it_holds(key: str, text: str) -> None:
    """Letters as they are; what a terminal would obey, or nobody sees, as escapes."""
    written = json_text({key: [text]})
    assert {key: [text]} == json.loads(written)
    assert seen(written)
    assert '{"é": "\\u202e\\u009b😀\\udb40\\udc41"}' == json_text({"é": "\u202e\x9b😀\U000e0041"})


@given(texts)
def test_yaml_scalar_shows_what_it_holds(text: str) -> None:
    """The same for YAML."""
    written = yaml_scalar(text)
    assert text == yaml.safe_load(written)
    assert seen(written)
    assert '"é\\U0000202e"' == yaml_scalar("é\u202e")


def render(text: str, **values: object) -> str:
    """Renders a template of this text."""
    return environment().from_string(text).render(values)


def test_a_value_that_nobody_gave_is_an_error() -> None:
    """A missing value is an error, so that a misspelled name doesn't become an empty line in a playbook."""
    with pytest.raises(jinja2.UndefinedError, match="missing"):
        render("[[ missing ]]")


def test_ansibles_own_jinja_is_text() -> None:
    """Ansible's own delimiters stay text; only ours are evaluated."""
    text = "{{ inventory_hostname }} {% if x %}y{% endif %} {# z #}"
    assert f"{text} 1" == render(f"{text} [[ one ]][# gone #]", one=1)


def test_names_are_quoted_by_filters() -> None:
    """The filter yaml_text marks a name that looks like a template as data."""
    assert '!unsafe "{{ x }}"' == render("[[ name | yaml_text ]]", name="{{ x }}")

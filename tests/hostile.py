"""Strings that try to run as code or markup in Ansible, Jinja, YAML, a shell, a terminal, Markdown and HTML."""

from __future__ import annotations

from pathlib import Path

# Characters that no terminal and no comment may get: control characters except newline and tab, and bidi controls.
UNPRINTABLE = (
    *(chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"),
    *"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029\ufeff",
)


def payloads(canary: Path) -> tuple[str, ...]:
    """Strings that create the file `canary` if anything runs one of them."""
    touch = f"touch {canary}"
    header = "#jinja2:variable_start_string:'[[',variable_end_string:']]'"
    return (
        f"{header},x:[[ lookup('pipe','{touch};echo a:b') ]].",
        f"#jinja2: trim_blocks: True\n{{{{ lookup('pipe', '{touch}') }}}}",
        f"{{{{ lookup('pipe', '{touch}') }}}}",
        f"{{% set x = lookup('pipe', '{touch}') %}}",
        f"{{{{ [].__class__.__base__ }}}} {{{{ query('pipe', '{touch}') }}}}",
        f"!!python/object/apply:os.system ['{touch}']",
        f"$({touch})",
        f"`{touch}`",
        f"'; {touch} #",
        f'"; {touch} #',
        f"| {touch}",
        f"\n{touch}\n",
    )


SYNTAX = (
    "#jinja2:", "#jinja2:9092", "{{", "}}", "{{ 1 + 1 }}", "{{ undefined_name }}", "{% for", "{%", "{#", "#}",
    "[[ 1 ]]", "[%", "!unsafe x", "!vault x", "!", "&", "*", "$ANSIBLE_VAULT;1.1;AES256\n3132", "omit", "{{ omit }}",
    "__omit_place_holder__", '{"__ansible_unsafe": "{{ 1 }}"}', '{"__ansible_vault": "x"}', '{"__ansible_type": "x"}',
    "AnsibleUndefined", "$HOME", "${HOME}", "~", "~root", "%{ if true }x%{ endif }", "${path.module}", "$${x}", "-x",
    "--help", "@x", "&a", "*a", "? a", "| a", "> a", ": ", "a: b", "# c", " #c", "'", '"', "\\", "'''", "a\\nb", "%",
    "[1, 2]", "{1: 2}", "['a']", "(1,)", "---", "...", "<<", "=", "- a", "", "True", "true", "no", "y", "null",
    "None", "1", "01", "1e5", "0x10", "0o7", "1_000", "1:30", "1.5", ".inf", "2020-01-01", "2020-01-01T00:00:00Z",
    " a", "a ", "é", "\U0001f600", "\ud7ff", "\ufffd", "a" * 300,
)  # fmt: skip


def strings(canary: Path) -> tuple[str, ...]:
    """All these strings, each once."""
    controls = ("\n", "a\nb", "\r\n", "\t", "\x1b[31mred", *(f"a{character}b" for character in UNPRINTABLE))
    return tuple(dict.fromkeys((*payloads(canary), *SYNTAX, *controls)))

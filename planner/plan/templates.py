"""The one Jinja environment that every template of ours is rendered by."""

from __future__ import annotations

from functools import cache

import jinja2

from planner.model.file_reading import resource
from planner.model.quoting import FILTERS


@cache
def environment() -> jinja2.Environment:
    """The one Jinja environment. Its delimiters are its own, since the playbooks it writes hold Jinja themselves."""
    environment = jinja2.Environment(
        block_start_string="[%",
        block_end_string="%]",
        variable_start_string="[[",
        variable_end_string="]]",
        comment_start_string="[#",
        comment_end_string="#]",
        loader=jinja2.FileSystemLoader(resource("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(FILTERS)
    return environment

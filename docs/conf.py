"""The site of these pages: `python -m sphinx -W docs site`."""

from planner import __version__

project = "kafka-planner"
project_copyright = "its authors; Apache-2.0"
release = version = __version__

extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["README.md"]
html_theme = "furo"
html_title = f"kafka-planner {release}"
html_show_sphinx = False
html_copy_source = False
# Headings down to this level can be linked to.
myst_heading_anchors = 3
# Blocks of the YAML may be parts of it, with an ellipsis.
suppress_warnings = ["misc.highlighting_failure"]
# Same pages, same bytes.
html_last_updated_fmt = None

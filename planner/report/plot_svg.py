"""Writes figures as SVG, with names for screen readers, tooltips on marks, and colors for light and dark pages.

The same figure gives the same bytes. Each color has a role. It is drawn in the light theme's color, and a style sheet
replaces it; without the style sheet the light colors stay.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"

# Role → its color on a light page and on a dark page. Text has a contrast of at least 4.5, marks have at least 3.
ROLES: Mapping[str, tuple[str, str]] = {
    "page": ("#ffffff", "#0d1117"),
    "text": ("#1f2328", "#e6edf3"),
    "quiet": ("#59636e", "#9aa4af"),
    "line": ("#d1d9e0", "#3d444d"),
    "before": ("#8a939d", "#7d8590"),
    "after": ("#0969da", "#4493f8"),
    "in": ("#1a7f37", "#3fb950"),
    "out": ("#bc4c00", "#f0883e"),
    "heat": ("#218bff", "#2f81f7"),
}
COLOR = {role: light for role, (light, _) in ROLES.items()}
_ROLE = {light: role for role, light in COLOR.items()}

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FONT_SIZE = 9

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": FONT_SIZE,
    # Names aren't formulas, because a topic may be called $x$.
    "text.parse_math": False,
    "text.color": COLOR["text"],
}


@dataclass(frozen=True)
class Mark:
    """One drawn element: its id within the plot, and the text that is shown when the mouse points at it."""

    id: str
    title: str


@dataclass(frozen=True)
class Drawing:
    """A figure, its title and description, and the marks of each of its artists by the artist's gid."""

    figure: Figure
    title: str
    description: str
    marks: Mapping[str, Sequence[Mark]]


@dataclass(frozen=True)
class Plot:
    """A plot as an SVG element for a page; the page contains `STYLE`. `marks` is the number of marks."""

    name: str
    title: str
    description: str
    svg: str
    marks: int

    @property
    def file(self) -> bytes:
        """The plot as a separate file, with its style sheet."""
        opening, rest = self.svg.split(">", 1)
        return f"{opening}><style>{STYLE}</style>{rest}\n".encode()


def _style() -> str:
    """CSS custom properties of each role and rules that use them; dark if the reader's system is, never on paper."""
    light, dark = (";".join(f"--{role}:{colors[theme]}" for role, colors in ROLES.items()) for theme in (0, 1))
    rules = (f".{key}-{role}{{{key}:var(--{role})}}" for role in ROLES for key in ("fill", "stroke"))
    return (
        f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{''.join(rules)}"
        f".mark:hover{{stroke:var(--text);stroke-width:1.5}}"
        # A name stays readable on a line or a point.
        "#plot-held text,#plot-front text{paint-order:stroke;stroke:var(--page);stroke-width:3px}"
    )


STYLE = _style()


@contextmanager
def settings() -> Iterator[None]:
    """Applies matplotlib's defaults and ours, and ignores the user's matplotlibrc and warnings on fonts and caches."""
    # Imported here, because matplotlib is slow to import and most commands draw nothing.
    import logging
    import warnings

    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        import matplotlib

        with matplotlib.rc_context(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            matplotlib.rcdefaults()
            matplotlib.rcParams.update(_SETTINGS)
            yield
    finally:
        logger.setLevel(level)


def as_svg(name: str, drawing: Drawing) -> Plot:
    """A drawing as SVG; call it within `settings`. ValueError if an artist drew another number of marks than stated."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = name
    image = BytesIO()
    drawing.figure.savefig(image, format="svg", metadata={"Date": None, "Creator": None})
    root = ET.fromstring(image.getvalue())
    _remove_metadata(root)
    for gid, marks in drawing.marks.items():
        _set_marks(root, name, gid, marks)
    _drop_ids(root, name)
    _use_role_classes(root)
    _describe(root, name, drawing)
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", _LINK[1:].split("}")[0])
    count = sum(map(len, drawing.marks.values()))
    return Plot(name, drawing.title, drawing.description, ET.tostring(root, encoding="unicode"), count)


def _tag(name: str) -> str:
    return f"{{{SVG}}}{name}"


def _remove_metadata(root: ET.Element) -> None:
    """Removes the metadata, and the style that only resets the file's own defaults."""
    for child in list(root):
        if child.tag == _tag("metadata"):
            root.remove(child)
    for definitions in root.findall(_tag("defs")):
        for style in definitions.findall(_tag("style")):
            definitions.remove(style)
        if not len(definitions):
            root.remove(definitions)
    for element in root.iter():
        element.text = element.text if element.text and element.text.strip() else None
        element.tail = "\n" if element.tail else None


def _visible_elements(element: ET.Element) -> Iterator[ET.Element]:
    """The visible elements of an artist, in the order in which they were drawn."""
    for child in element:
        if child.tag in (_tag("path"), _tag("use")):
            yield child
        elif child.tag != _tag("defs"):
            yield from _visible_elements(child)


def _set_marks(root: ET.Element, name: str, gid: str, marks: Sequence[Mark]) -> None:
    group = next((element for element in root.iter(_tag("g")) if element.get("id") == gid), None)
    elements = [] if group is None else list(_visible_elements(group))
    if len(elements) != len(marks):
        raise ValueError(f"plot {name}: {gid} drew {len(elements)} marks instead of {len(marks)}")
    for element, mark in zip(elements, marks, strict=True):
        element.set("id", f"{name}-{mark.id}")
        element.set("class", "mark")
        ET.SubElement(element, _tag("title")).text = mark.title


def _drop_ids(root: ET.Element, name: str) -> None:
    """Removes ids that nothing refers to, because a page with two plots would have them twice."""
    used = {element.get(_LINK, "")[1:] for element in root.iter()}
    used |= {clip[5:-1] for element in root.iter() if (clip := element.get("clip-path"))}
    for element in root.iter():
        if element.get("id") and element.get("id") not in used and not element.get("id", "").startswith(f"{name}-"):
            del element.attrib["id"]


def _use_role_classes(root: ET.Element) -> None:
    """Turns style attributes into presentation attributes, which a style sheet can override, and adds role classes."""
    for element in root.iter():
        pairs = (each.split(":", 1) for each in element.attrib.pop("style", "").split(";") if ":" in each)
        declared = {key.strip(): value.strip() for key, value in pairs}
        if "font" in declared:
            declared["font-size"] = re.sub(r"^\D*([\d.]+)px.*$", r"\1", declared.pop("font"))
        classes = [element.get("class", "")]
        for key, value in declared.items():
            element.set(key, value)
            if key in ("fill", "stroke") and value in _ROLE:
                classes.append(f"{key}-{_ROLE[value]}")
        if any(classes):
            element.set("class", " ".join(filter(None, classes)))


def _describe(root: ET.Element, name: str, drawing: Drawing) -> None:
    """Gives the image its size, a name and a description for screen readers, and the page's background."""
    width, height = (root.get(key, "").removesuffix("pt") for key in ("width", "height"))
    root.attrib |= {"width": width, "height": height, "role": "img", "id": f"plot-{name}", "font-family": _FONT}
    root.attrib |= {"aria-labelledby": f"plot-{name}-title", "aria-describedby": f"plot-{name}-description"}
    texts = (("title", drawing.title), ("desc", drawing.description))
    for index, (tag, text) in enumerate(texts):
        element = ET.Element(_tag(tag), {"id": f"plot-{name}-{'title' if tag == 'title' else 'description'}"})
        element.text = text
        root.insert(index, element)
    page = {"width": "100%", "height": "100%", "fill": COLOR["page"], "class": "fill-page"}
    root.insert(len(texts), ET.Element(_tag("rect"), page))

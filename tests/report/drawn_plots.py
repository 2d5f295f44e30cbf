"""The plots of a document, drawn once per document, and what is in them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from functools import cache

from plan_documents import typed

from planner.report import plot_movement, plots
from planner.report.plot_svg import SVG, Plot


def draw(plan) -> tuple[Plot, ...]:
    """The plots of a document."""
    return plots.draw(typed(plan), plot_movement.movement(typed(plan)))


def by_name(plan) -> dict[str, Plot]:
    """The plots of a plan, drawn once."""
    return {plot.name: plot for plot in drawn(json.dumps(plan))}


@cache
def drawn(plan: str) -> tuple[Plot, ...]:
    """The plots of a plan's JSON."""
    return draw(json.loads(plan))


def marks(plot: Plot) -> dict[str, str]:
    """The id within the plot and the tooltip of each mark."""
    root = ET.fromstring(plot.file)
    found = [each for each in root.iter() if "mark" in each.get("class", "").split()]
    return {each.get("id").removeprefix(f"{plot.name}-"): each.find(f"{{{SVG}}}title").text for each in found}


def texts(plot: Plot) -> list[str]:
    """The texts in a plot."""
    return ["".join(each.itertext()).strip() for each in ET.fromstring(plot.file).iter(f"{{{SVG}}}text")]

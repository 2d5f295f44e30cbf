"""What all plots share: names that don't overlap."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from drawn_plots import draw
from report_documents import small

from planner.report.plot_svg import SVG


def test_no_name_of_a_point_is_printed_over_another():
    """Two points at the same place have their names above each other."""
    plan = small()
    plan["compared"].append({**plan["compared"][2], "label": "Kafka --generate, median of 900"})
    (plot,) = (each for each in draw(plan) if each.name == "front")
    shown = [each for each in ET.fromstring(plot.file).iter(f"{{{SVG}}}text") if "Kafka" in "".join(each.itertext())]

    assert 2 == len(shown)
    heights = [float(re.search(r"(?:translate\(\S+ |y=\")(-?[\d.]+)", ET.tostring(each).decode())[1]) for each in shown]
    assert abs(heights[0] - heights[1]) >= 8

"""Plots as SVG: the same bytes each time, with names for screen readers, in colors for light and dark pages."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from drawn_plots import by_name, draw
from folders import ROOT
from large_plans import HOSTILE, hostile
from plan_documents import typed
from report_documents import small

from planner.report import plot_movement, plot_svg, plots
from planner.report.plot_svg import ROLES, SVG


@pytest.mark.slow
def test_the_same_plan_gives_the_same_bytes(tmp_path, monkeypatch):
    """A plot is the same bytes in one process, and in another one whose user has settings for matplotlib."""
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nlines.linewidth: 9\nsvg.fonttype: path\n")
    program = "import sys; from plan_documents import typed; from report_documents import small\n"
    program += "from planner.report import plots\n"
    program += "from planner.report import plot_movement\nplan = typed(small())\n"
    program += "drawn = plots.draw(plan, plot_movement.movement(plan))\n"
    program += "sys.stdout.buffer.write(b''.join(plot.file for plot in drawn))"
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "MPLCONFIGDIR": str(tmp_path), "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)

    first, second = (b"".join(plot.file for plot in draw(small())) for _ in range(2))
    assert first == second
    assert first == other.stdout
    assert b"" == other.stderr


def test_a_plot_is_an_image_with_a_name_and_a_description():
    """Each plot is an image with a title and a description, for people who can't see it."""
    for plot in by_name(small()).values():
        root = ET.fromstring(plot.file)
        by_id = {each.get("id"): each for each in root.iter()}
        assert "img" == root.get("role")
        assert plot.title == by_id[root.get("aria-labelledby")].text
        assert plot.description == by_id[root.get("aria-describedby")].text


def test_ids_are_on_the_page_once():
    """No id is in two plots, because all plots are on one page."""
    ids = Counter(each.get("id") for plot in by_name(small()).values() for each in ET.fromstring(plot.svg).iter())
    del ids[None]

    assert [] == [name for name, count in ids.items() if count > 1]


def test_every_color_is_a_role_that_dark_pages_exchange():
    """Every color belongs to a role that dark pages replace, so that no color suits light pages only."""
    for plot in by_name(small()).values():
        for element in ET.fromstring(plot.svg).iter():
            for key in ("fill", "stroke"):
                if (color := element.get(key, "none")) != "none":
                    role = next(role for role, (light, _) in ROLES.items() if light == color)
                    assert f"{key}-{role}" in element.get("class").split()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_roles_stand_out_from_the_page(theme):
    """Contrast with the page by WCAG: at least 4.5 for text, 3 for marks."""
    page = ROLES["page"][theme]

    for role in ("text", "quiet", "after", "in", "out"):
        assert contrast(ROLES[role][theme], page) >= 4.5, role
    assert contrast(ROLES["before"][theme], page) >= 3


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio of two sRGB colors."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    """WCAG 2.2, relative luminance of an sRGB color."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.slow
def test_hostile_names_are_text():
    """With hostile names, a plot is well-formed and has only known SVG elements and no control characters."""
    for plot in draw(hostile()):
        root = ET.fromstring(plot.file)
        tags = {each.tag.removeprefix(f"{{{SVG}}}") for each in root.iter()}
        assert tags <= {"svg", "style", "title", "desc", "rect", "g", "path", "text", "use", "defs"}
        assert "\x1b" not in plot.svg
        assert "\u202e" not in plot.svg
    assert HOSTILE[:15] in "".join(ET.fromstring(by_name(hostile())["racks"].svg).itertext())


def test_marks_that_were_not_drawn_are_an_error():
    """A plot whose marks weren't all drawn is an error."""
    with plot_svg.settings():
        name, drawing = next(iter(plots._drawings(typed(small()), plot_movement.movement(typed(small())))))
        drawing.marks["point0"] = []
        with pytest.raises(ValueError, match="plot front: point0 drew 1 marks instead of 0"):
            plot_svg.as_svg(name, drawing)


@pytest.mark.slow
def test_commands_start_without_the_library():
    """Importing the commands doesn't import matplotlib."""
    program = "import sys, planner.cli.commands; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "False\n" == ran.stdout

"""The plots: what is drawn is what the plan says, bounded however large it is, the same bytes each time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from functools import cache

import pytest
from folders import ROOT
from large_plans import HOSTILE, hostile, large
from plan_documents import change, document, typed
from report_documents import GB, small, with_disks, with_traffic

from planner.report import plot_svg, plot_values, plots
from planner.report.plot_svg import ROLES, SVG, Plot

NAMES = ["front", "brokers", "racks", "movement", "batches", "held"]


def draw(plan) -> tuple[Plot, ...]:
    """The plots of a document."""
    return plots.draw(typed(plan), plot_values.movement(typed(plan)))


def by_name(plan) -> dict[str, Plot]:
    """The plots of a plan, drawn once."""
    return {plot.name: plot for plot in drawn(json.dumps(plan))}


@cache
def drawn(plan: str) -> tuple[Plot, ...]:
    """The plots of a plan's JSON."""
    return draw(json.loads(plan))


def marks(plot: Plot) -> dict[str, str]:
    """Id within the plot → what a pointer is told, of each mark."""
    root = ET.fromstring(plot.file)
    found = [each for each in root.iter() if "mark" in each.get("class", "").split()]
    return {each.get("id").removeprefix(f"{plot.name}-"): each.find(f"{{{SVG}}}title").text for each in found}


def test_all_plots_of_a_plan_that_copies_in_their_order():
    """Six plots, of which each says how many marks it has."""
    found = by_name(small())

    assert NAMES == list(found)
    assert {name: len(marks(plot)) for name, plot in found.items()} == {
        name: plot.marks for name, plot in found.items()
    }


def test_the_front_has_a_point_for_each_plan_and_for_kafkas_own():
    """Points say what they are and both of their values."""
    assert {
        "point-1": "Kafka --generate, best of 900: 70.0 GB copied, +2.50 % leaders above share",
        "point-2": "do nothing: 0 B copied, +60 % leaders above share",
        "point-3": "this plan: 24.0 GB copied, +3.25 % leaders above share",
        "point-4": "replicas 5%, leaders 5%: 30.0 GB copied, +1 % leaders above share",
    } == marks(by_name(small())["front"])


def texts(plot: Plot) -> list[str]:
    """What is printed in a plot."""
    return ["".join(each.itertext()).strip() for each in ET.fromstring(plot.file).iter(f"{{{SVG}}}text")]


def test_lines_of_disks_are_named_and_have_their_limits():
    """Brokers that end at about the same share a text; a disk that all have, and the limit, where they are near."""
    found = texts(by_name(with_disks())["held"])

    assert {"1–3", "4", "disk 50.0 GB", "limits.disk_used 45.0 GB"} <= set(found)
    assert not [each for each in texts(by_name(small())["held"]) if "disk" in each]
    assert not [each for each in texts(by_name(with_disks(900 * GB))["held"]) if "disk 900" in each]


def test_no_name_of_a_point_is_printed_over_another():
    """Two points in one place have their names above each other."""
    plan = small()
    plan["compared"].append({**plan["compared"][2], "label": "Kafka --generate, median of 900"})
    (plot,) = (each for each in draw(plan) if each.name == "front")
    shown = [each for each in ET.fromstring(plot.file).iter(f"{{{SVG}}}text") if "Kafka" in "".join(each.itertext())]

    assert 2 == len(shown)
    heights = [float(re.search(r"(?:translate\(\S+ |y=\")(-?[\d.]+)", ET.tostring(each).decode())[1]) for each in shown]
    assert abs(heights[0] - heights[1]) >= 8


def test_two_bars_for_each_broker_and_measure():
    """Four brokers, three measures, before and after; the added one is named so."""
    found = marks(by_name(small())["brokers"])

    assert 4 * 3 * 2 == len(found)
    assert "broker 1, before: 40.0 GB bytes held" == found["size_bytes-before-1"]
    assert "broker +4, after: 2 replicas" == found["replicas-after-4"]


def test_traffic_has_panels_where_rates_are_known():
    """Five measures instead of three."""
    found = marks(by_name(with_traffic())["brokers"])

    assert 4 * 5 * 2 == len(found)
    assert "broker 1, after: 58.5 MB/s network in" == found["network_in-after-1"]


def test_many_brokers_are_a_heat_map_with_a_cell_for_each_measure_today_and_after():
    """A new broker has no cell today; each cell says how far it is from the mean."""
    plan = large(49, 1, 2, 20, 2)
    plan["brokers"][0]["after"]["replicas"] = 40
    found = marks(by_name(plan)["brokers"])

    assert (49 + 50) * 3 == len(found)
    assert "broker 1, today: 90.0 GB bytes held, at the mean" == found["size_bytes-before-1"]
    assert "broker 1, plan: 40 replicas, 32.9 % below the mean" == found["replicas-after-1"]
    assert not [each for each in found if each.endswith("before-50")]


def test_the_map_has_a_cell_for_each_two_brokers_that_copy():
    """Senders are the leaders of today."""
    assert {"from-1-to-4": "1 to 4: 12.0 GB", "from-2-to-4": "2 to 4: 12.0 GB"} == marks(by_name(small())["movement"])


def test_batches_along_time_with_what_each_broker_copies():
    """A box for each batch, and for each broker in it a half for what it copies in, and one for out."""
    assert {
        "batch-1": "batch 1: 1 replica, 12.0 GB, 1 election, 4 min",
        "batch-2": "batch 2: 1 replica, 12.0 GB, 1 election, 4 min",
        "in-1-4": "batch 1, broker 4: copies in 12.0 GB",
        "in-2-4": "batch 2, broker 4: copies in 12.0 GB",
        "out-1-1": "batch 1, broker 1: copies out 12.0 GB",
        "out-2-2": "batch 2, broker 2: copies out 12.0 GB",
    } == marks(by_name(small())["batches"])


def test_a_line_for_what_each_broker_holds():
    """Both copies count until the batch is complete."""
    found = marks(by_name(small())["held"])

    assert 4 == len(found)
    assert "broker 4: 0 B today, at most 24.0 GB, 2.00 GB afterwards" == found["broker-4"]


def test_what_brokers_hold_while_batches_run():
    """A replica that leaves goes when its batch is complete; stepwise changes count in each of their batches."""
    steps = [change("t", 0, [1, 2], [3, 2], size=10), change("t", 0, [3, 2], [3, 4], size=10)]
    whole = change("t", 0, [1, 2], [3, 4], size=10)
    plan = document([whole], [[steps[0]], [steps[1]]])
    moved = plot_values.movement(typed(plan))

    assert (1, 2, 3, 4, 9) == moved.brokers
    assert [[300, 300, 300, 300, 300], [300, 300, 310, 300, 300], [290, 300, 310, 310, 300]] == moved.held.tolist()
    # The leader of today serves the first step; the second one's copy comes from who is left.
    assert [(1, 3, 10), (3, 4, 10)] == sorted(plot_values.copied_pairs(moved))


def test_a_plan_that_copies_nothing_has_no_map_and_no_batches():
    """Only leaders change."""
    plan = document([change("t", 0, [1, 2], [2, 1])])

    assert ["brokers", "racks"] == [plot.name for plot in draw(plan)]


def test_unknown_sizes_are_counted_in_replicas():
    """No byte is named anywhere."""
    plan = small()
    plan["cluster"]["sizes_known"] = False
    found = by_name(plan)

    assert {"from-1-to-4": "1 to 4: 1", "from-2-to-4": "2 to 4: 1"} == marks(found["movement"])
    assert not re.search(r"\d [kMG]?B\b", "".join(plot.svg for plot in found.values()))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_large_plan_has_few_marks_and_says_whom_it_sums_up(name):
    """400 brokers and 900 batches: each plot stays small; who comes keeps half of the places."""
    plan = large(300, 100, 40, 50, 900, racks=[_rack(number) for number in range(80)])
    plot = by_name(plan)[name]

    assert plot.marks <= 1_600
    assert len(plot.svg) < 400_000
    if name == "brokers":
        added = {title.partition(",")[0] for title in marks(plot).values()} & {f"broker {n}" for n in range(301, 401)}
        assert 100 == len(added)
        assert "mean of the other 161" in plot.description


def _rack(number: int):
    load = {"replicas": number, "leaders": 1, "size_bytes": GB, "network_in": None, "network_out": None}
    return {"rack": f"r{number}", "brokers_before": 3, "brokers_after": 4, "before": load, "after": load}


def test_runs_of_batches_cover_all_of_them():
    """No batch is in two runs or in none, and time goes on without a gap."""
    plan = large(6, 3, 5, 20, 100)
    parts = plot_values.runs(typed(plan), 24)

    assert [0, *[part.end for part in parts]] == [*[part.first for part in parts], 100]
    assert sum(60 + number for number in range(100)) == parts[-1].start + parts[-1].seconds
    assert "batches 1 to 4" == parts[0].name


@pytest.mark.slow
def test_the_same_plan_gives_the_same_bytes(tmp_path, monkeypatch):
    """Within a process, and in another one whose user has settings of their own for the library."""
    (tmp_path / "matplotlibrc").write_text("font.size: 20\nlines.linewidth: 9\nsvg.fonttype: path\n")
    program = "import sys; from plan_documents import typed; from report_documents import small\n"
    program += "from planner.report import plots\n"
    program += "from planner.report import plot_values\nplan = typed(small())\n"
    program += "drawn = plots.draw(plan, plot_values.movement(plan))\n"
    program += "sys.stdout.buffer.write(b''.join(plot.file for plot in drawn))"
    environment = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "MPLCONFIGDIR": str(tmp_path), "PYTHONHASHSEED": "7"}
    other = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)

    first, second = (b"".join(plot.file for plot in draw(small())) for _ in range(2))
    assert first == second
    assert first == other.stdout
    assert b"" == other.stderr


def test_a_plot_is_an_image_with_a_name_and_a_description():
    """For whoever doesn't see it."""
    for plot in by_name(small()).values():
        root = ET.fromstring(plot.file)
        by_id = {each.get("id"): each for each in root.iter()}
        assert "img" == root.get("role")
        assert plot.title == by_id[root.get("aria-labelledby")].text
        assert plot.description == by_id[root.get("aria-describedby")].text


def test_ids_are_on_the_page_once():
    """All plots stand on one page."""
    ids = Counter(each.get("id") for plot in by_name(small()).values() for each in ET.fromstring(plot.svg).iter())
    del ids[None]

    assert [] == [name for name, count in ids.items() if count > 1]


def test_every_colour_is_a_role_that_dark_pages_exchange():
    """No colour is left that only suits a light page."""
    for plot in by_name(small()).values():
        for element in ET.fromstring(plot.svg).iter():
            for key in ("fill", "stroke"):
                if (colour := element.get(key, "none")) != "none":
                    role = next(role for role, (light, _) in ROLES.items() if light == colour)
                    assert f"{key}-{role}" in element.get("class").split()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_roles_stand_out_from_the_page(theme):
    """By the WCAG's measure: text at least 4.5, marks 3."""
    page = ROLES["page"][theme]

    for role in ("text", "quiet", "after", "in", "out"):
        assert contrast(ROLES[role][theme], page) >= 4.5, role
    assert contrast(ROLES["before"][theme], page) >= 3


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, contrast ratio of two sRGB colours."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance of an sRGB colour."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.slow
def test_hostile_names_are_text():
    """Well-formed, no element that isn't SVG's own, no mathematics, no control characters."""
    for plot in draw(hostile()):
        root = ET.fromstring(plot.file)
        tags = {each.tag.removeprefix(f"{{{SVG}}}") for each in root.iter()}
        assert tags <= {"svg", "style", "title", "desc", "rect", "g", "path", "text", "use", "defs"}
        assert "\x1b" not in plot.svg
        assert "\u202e" not in plot.svg
    assert HOSTILE[:15] in "".join(ET.fromstring(by_name(hostile())["racks"].svg).itertext())


def test_marks_that_were_not_drawn_are_an_error():
    """What the plot says of itself is counted."""
    with plot_svg.settings():
        name, drawing = next(iter(plots._drawings(typed(small()), plot_values.movement(typed(small())))))
        drawing.marks["point0"] = []
        with pytest.raises(ValueError, match="plot front: point0 drew 1 marks instead of 0"):
            plot_svg.finished(name, drawing)


@pytest.mark.slow
def test_commands_start_without_the_library():
    """It is imported when something is drawn."""
    program = "import sys, planner.cli.commands; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert "False\n" == ran.stdout

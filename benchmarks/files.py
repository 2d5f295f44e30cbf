"""Writes the benchmark's files: the output as Markdown, all numbers as JSON, and the curves as SVG.

The same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.table import Figures
from planner.export.output_folder import replace_file
from planner.model import interrupts
from planner.model.errors import SetupError
from planner.model.generated_text import canonical_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]

_WIDTH_INCHES, _HEIGHT_INCHES = 9.0, 3.6
# The SVG's ids are hashes with this fixed salt, so they never change; text stays text, in the reader's own font.
_SETTINGS: Any = {"svg.hashsalt": "kafka-planner", "svg.fonttype": "none", "font.size": 9}
_PHASES = ("build", "solve", "leaders", "check")


def check(folder: Path) -> None:
    """SetupError if the folder can't be made or matplotlib is missing; call it before hours of measuring."""
    if find_spec("matplotlib") is None:
        raise SetupError("--out draws plots, for which matplotlib is missing: install the kafka-planner wheel again")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"--out {folder}: the folder can't be made: {error.strerror}") from error


def write(folder: Path, lines: Sequence[str], figures: Sequence[Figures]) -> None:
    """Write `bench.md`, `bench.json` and the plots of the measured tables into an existing folder."""
    names = sorted({each.table for each in figures})
    tables = {table: [each.values for each in figures if each.table == table] for table in names}
    files = {
        "bench.md": "\n".join([*lines, ""]).encode(),
        "bench.json": canonical_json(tables).encode(),
        **{f"{name}.svg": draw(tables[name]) for name, draw in PLOTS.items() if name in tables},
    }
    with interrupts.delayed_signals():
        for name, content in files.items():
            replace_file(folder / name, content)


def scale(points: Rows) -> bytes:
    """Seconds of each phase, and peak memory, against the number of replicas, all on logarithmic axes."""
    with _panels() as (axes, image):
        replicas = [point["replicas"] for point in points]
        for phase in _PHASES:
            axes[0].plot(replicas, [point[f"{phase}_seconds"] for point in points], marker="o", label=phase)
        axes[0].plot(replicas, [point["seconds"] for point in points], marker="s", color="black", label="sum")
        axes[1].plot(replicas, [point["peak_bytes"] / 1e6 for point in points], marker="o", color="black")
        for panel, title in zip(axes, ("seconds", "peak memory, MB"), strict=True):
            panel.set(xscale="log", yscale="log", xlabel="replicas", title=title)
            panel.grid(alpha=0.3)
        axes[0].legend()
    return image.getvalue()


def sweep(timings: Rows) -> bytes:
    """Seconds of each sweep, with and without the session's start, against the number of Spark's workers."""
    with _panels() as (axes, image):
        jobs = list(dict.fromkeys(timing["job"] for timing in timings))
        for panel, job in zip(axes, jobs, strict=False):
            job_timings = [timing for timing in timings if timing["job"] == job and timing["workers"]]
            workers = [timing["workers"] for timing in job_timings]
            with_start = [timing["seconds"] for timing in job_timings]
            without_start = [timing["seconds"] - timing["session_seconds"] for timing in job_timings]
            panel.plot(workers, with_start, marker="o", label="with the session's start")
            panel.plot(workers, without_start, marker="o", label="without")
            panel.plot(
                workers, [without_start[0] * workers[0] / each for each in workers], ":", label="without, if ideal"
            )
            panel.set(xlabel="workers", title=f"{job}, seconds", xticks=workers)
            panel.set_ylim(bottom=0)
            panel.grid(alpha=0.3)
        axes[0].legend()
    return image.getvalue()


@contextmanager
def _panels() -> Iterator[tuple[Sequence[Axes], BytesIO]]:
    """Two panels side by side; at the end of the block they are written to the image."""
    # Imported here, because matplotlib is slow to import and most runs draw nothing.
    import matplotlib
    from matplotlib.figure import Figure

    image = BytesIO()
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(_WIDTH_INCHES, _HEIGHT_INCHES), layout="tight")
        yield figure.subplots(1, 2), image
        # Without the time and the library's version, so that the bytes stay the same.
        figure.savefig(image, format="svg", metadata={"Date": None, "Creator": None})


PLOTS: Mapping[str, Callable[[Rows], bytes]] = {"scale": scale, "sweep": sweep}

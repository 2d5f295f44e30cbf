"""`python -m benchmarks`: measures plans, speed and memory, and prints the results as Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import benchmark
from planner.cli.main import run
from planner.cli.output import echo_page


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("cases", nargs=-1)
@click.option("--plans", is_flag=True, help="Plans beside baselines and peers.")
@click.option("--windows", is_flag=True, help="Even disks, and peers' own balance.")
@click.option("--candidates", is_flag=True, help="Candidates a second on one core.")
@click.option("--sweep", is_flag=True, help="The sweep through Spark, with one worker and with two.")
@click.option(
    "--long",
    is_flag=True,
    help="With --sweep, 100 million placements, a million replicas and 200 clusters; with --sizes, all clusters.",
)
@click.option("--load", is_flag=True, help="A load profile of a generated month, with one worker and with two.")
@click.option("--partitions", type=click.IntRange(min=1), default=5_000, show_default=True, help="With --load.")
@click.option("--step", type=click.IntRange(1, 3600), default=3600, show_default=True, help="With --load: seconds.")
@click.option("--sizes", is_flag=True, help="Clusters that could be bought, with one worker and with two.")
@click.option("--scale", is_flag=True, help="Time and memory from a thousand replicas to 2.8 million.")
@click.option("--corners", is_flag=True, help="Clusters that are slow to plan: large partitions, unlike brokers.")
@click.option("--exact", type=click.IntRange(min=1), help="Plans of so many random clusters, judged by CP-SAT.")
@click.option("--ablate", is_flag=True, help="What plans move with a part of the optimum switched off.")
@click.option("--adopt", is_flag=True, help="What adopt says of other planners' plans.")
@click.option("--hours", is_flag=True, help="Plans for the busiest hours beside plans for the mean.")
@click.option("--rules", is_flag=True, help="Plans with each of the rules on placement and leaders.")
@click.option("--seed", default="public", show_default=True, help="Seed of the cases.")
@click.option("--seeds", type=click.IntRange(min=1), help="Kafka's placements tried. [default: by the cluster's size]")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for numbers and plots.")
def benchmarks(
    cases: tuple[str, ...],
    exact: int | None,
    seed: str,
    seeds: int | None,
    out: Path | None,
    long: bool,
    partitions: int,
    step: int,
    **sections: bool,
) -> int:
    """Measure plans of the benchmark CASES, and how speed grows, as Markdown.

    Without CASES or a section everything is measured, which takes most of an hour.
    """
    requested = tuple(
        section for section, is_requested in {**sections, "exact": exact is not None}.items() if is_requested
    )
    scope = benchmark.Scope(cases, requested, seed, seeds, out, exact, long, partitions, step)
    for line in benchmark.lines(scope):
        echo_page(f"{line}\n")
    return 0


if __name__ == "__main__":
    run(lambda: benchmarks, "python -m benchmarks")

"""What the design promises of the code: imports point one way, one module prints, files and functions are short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLANNER = ROOT / "planner"
FILES = sorted([*PLANNER.rglob("*.py"), *(ROOT / "spark_jobs").rglob("*.py")])

# From the bottom up: a module imports what is below it, and what is in its own package.
LAYERS = (
    {"processes"},
    {"interrupts"},
    {"balance", "execution_values", "group_values", "log_dirs_values", "monthly"},
    {"partition_changes"},
    {"errors", "model", "amounts", "java_random", "quoting", "figures", "folds", "memory", "text_tables"},
    {"excess"},
    {"effective_config", "file_reading", "file_writing", "stated_sizes", "suggestions"},
    {"file_effects", "folder_entries", "gate_figures", "headline", "markup", "pace", "terminal"},
    {"checks", "shares", "loads", "bounds"},
    {"manifest", "folder_check", "folder_lock"},
    {"folder_swap"},
    {
        "bound_document",
        "draws",
        "windows",
        "problem",
        "log_dirs_packing",
        "log_dirs_batches",
        "resources",
        "role",
        "terraform",
        "output_folder",
        "validity",
        "yaml_source",
        "importers",
    },
    {"scenarios", "certified", "budget", "exposure", "min_isr_warnings", "state", "plan_schema"},
    {"flow", "score", "spec", "staleness"},
    {"strategies", "relaxed"},
    {
        "candidates",
        "changes",
        "log_dirs",
        "sweep_tables",
        "plan_budget",
        "plan_conditions",
        "plan_new_partitions",
        "seeds",
        "stages",
    },
    {"sweep"},
    {"variants"},
    {"batches", "choice"},
    {"gates", "risks", "plan_sections", "plan_terms", "log_dirs_document", "resilience"},
    {"candidates_file"},
    {"plan_front"},
    {"plan", "render", "plots"},
    {"plan_consistency"},
    {"plan_file"},
    {"consumers", "failures", "growth"},
    {"what_ifs"},
    {"report", "screen", "bench", "resume", "plan_diff"},
    {"fleet", "plan_diff_shown"},
    {"workflow"},
    {"approval"},
    {"approval_document"},
    {"cli"},
)
MOST_LINES, LONGEST_FUNCTION = 400, 45


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def family(module: str) -> str:
    """The layer's word for a module of the planner: its package, or its own name."""
    return module.removeprefix("planner").removeprefix(".").split(".")[0]


def tree(path: Path) -> ast.Module:
    """A file as Python's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(node: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere inside, names of modules imported from packages resolved."""
    modules = {name_of(path) for path in FILES}
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module:
            for alias in each.names:
                inner = f"{each.module}.{alias.name}"
                yield inner if inner in modules else each.module


def imports_of(name: str) -> set[str]:
    """What a module, or any module of a package, of the planner imports of the planner."""
    path = PLANNER / name
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return {family(module) for file in files for module in imports(tree(file)) if module.startswith("planner.")}


planner_files = pytest.mark.parametrize("path", [f for f in FILES if PLANNER in f.parents], ids=name_of)
all_files = pytest.mark.parametrize("path", FILES, ids=name_of)


@planner_files
def test_imports_point_one_way(path: Path) -> None:
    """A module imports only from the layers below its own, or from its own package."""
    level = {name: number for number, names in enumerate(LAYERS) for name in names}
    importer = family(name_of(path))
    wrong = [
        f"{name_of(path)} -> {module}"
        for module in imports(tree(path))
        if module.startswith("planner.")
        and family(module) != importer
        and level.get(family(module), len(LAYERS)) >= level.get(importer, 0 if importer else len(LAYERS))
    ]
    assert [] == wrong


def test_every_module_has_a_layer() -> None:
    """A new module is given a place before it is used, and no layer names one that is gone."""
    assert {family(name_of(path)) for path in FILES if PLANNER in path.parents} - {""} == set().union(*LAYERS)


def test_no_cycles() -> None:
    """No module imports itself by way of others, packages included."""
    graph = {name_of(path): {m for m in imports(tree(path)) if m != name_of(path)} for path in FILES}
    done: set[str] = set()
    while ready := {name for name in graph.keys() - done if not (graph[name] & graph.keys()) - done}:
        done |= ready
    assert set() == graph.keys() - done


@planner_files
def test_planner_never_imports_spark(path: Path) -> None:
    """pyspark is imported in spark_jobs alone, and that only inside the functions that need it."""
    module = tree(path)
    assert [] == [name for name in imports(module) if name.split(".")[0] in ("pyspark", "py4j")]
    top = ast.Module([node for node in module.body if not isinstance(node, ast.FunctionDef)], [])
    assert [] == [name for name in imports(top) if name.startswith("spark_jobs")]


@all_files
def test_only_the_commands_print(path: Path) -> None:
    """print, click.echo, consoles of one's own, and sys.stdout are the command line's."""
    if family(name_of(path)) == "cli":
        return
    calls = [ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    printing = [call for call in calls if call in ("print", "click.echo", "echo", "Console", "rich.print")]
    streams = [call for call in calls if call.startswith(("sys.stdout.", "sys.stderr."))]
    assert [] == printing + streams


def test_strategies_do_not_know_the_judge() -> None:
    """No strategy looks at the checks it will be judged by, nor at the scores."""
    assert set() == imports_of("strategies") & {"checks", "score", "relaxed", "sweep"}


def test_the_judge_knows_no_strategy() -> None:
    """The checks know the problem alone: not how plans are made, nor what windows or scores are."""
    assert {"model"} == imports_of("checks")


@all_files
def test_files_are_short(path: Path) -> None:
    """A file is read in one go."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES


@all_files
def test_functions_are_short(path: Path) -> None:
    """So is a function, docstring and all."""
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    long = {f.name: f.end_lineno - f.lineno + 1 for f in functions if f.end_lineno - f.lineno >= LONGEST_FUNCTION}  # type: ignore[operator]
    assert {} == long

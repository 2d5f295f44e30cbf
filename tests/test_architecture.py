"""The code keeps the design's rules: imports point one way, only cli prints, files and functions are short."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from folders import ROOT

pytestmark = pytest.mark.house

FILES = sorted(path for folder in ("planner", "spark_jobs", "benchmarks") for path in (ROOT / folder).rglob("*.py"))

# The packages that each package may import directly. It may also import what those may import.
MAY_IMPORT = {
    "model": (),
    "inputs": ("model",),
    "scoring": ("model",),
    "strategies": ("scoring",),
    "sweep": ("strategies",),
    "execution": ("scoring",),
    "plan": ("sweep", "execution"),
    "export": ("plan",),
    "approval": ("plan", "export", "inputs"),
    "report": ("plan",),
    "whatif": ("plan", "report"),
    "spark_jobs": ("whatif", "inputs"),
    "cli": ("whatif", "approval", "report", "spark_jobs"),
    "consumers": ("whatif",),
    "benchmarks": ("cli",),
}
# Names that fit any value, so that a reader can't tell what they hold.
VAGUE = {"asked", "begun", "enough", "every", "found", "here", "held", "led"}
VAGUE |= {"lying", "made", "there", "told", "tried", "wanted", "whole"}
MOST_LINES, LONGEST_FUNCTION = 400, 45


@cache
def trees() -> Mapping[Path, ast.Module]:
    """The syntax tree of every file. Reading waits for the first test that needs the trees."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {path: name_of(path) for path in FILES}
MODULES = set(NAMES.values())


def package_of(module: str) -> str:
    """`inputs` for `planner.inputs.spec.reading`, `spark_jobs` for `spark_jobs.sweep`, `` for `planner`."""
    parts = module.split(".")
    return "".join(parts[1:2]) if parts[0] == "planner" else parts[0]


def imports(node: ast.AST) -> Iterator[str]:
    """Every module imported anywhere inside the node. A module imported from a package gets its full name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.module:
            for alias in each.names:
                inner = f"{each.module}.{alias.name}"
                yield inner if inner in MODULES else each.module


def names_of(tree: ast.Module) -> Iterator[ast.arg | ast.Name]:
    """The parameters and variables of a module's functions; fields of classes have their class to explain them."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                yield node


def allowed(package: str) -> set[str]:
    """All packages that a package may import, directly or through others."""
    direct = set(MAY_IMPORT[package])
    return direct.union(*map(allowed, direct))


def test_the_packages_are_those_of_the_design() -> None:
    """planner/ has the designed packages and consumers.py. Each package has a docstring, and its face no imports."""
    found = {path.parent.name for path in (ROOT / "planner").glob("*/__init__.py")}
    assert set(MAY_IMPORT) - {"spark_jobs", "benchmarks", "consumers"} == found
    assert {"__init__.py", "consumers.py"} == {path.name for path in (ROOT / "planner").glob("*.py")}
    faces = [tree for path, tree in trees().items() if path.name == "__init__.py"]
    assert all(ast.get_docstring(tree) and not any(imports(tree)) for tree in faces)


def test_imports_point_one_way() -> None:
    """A package imports only the packages that MAY_IMPORT allows, and there are no import cycles."""
    graph = {NAMES[path]: {name for name in imports(tree) if name in MODULES} for path, tree in trees().items()}
    wrong = [
        f"{module} -> {other}"
        for module, others in graph.items()
        for other in others
        if package_of(module) and package_of(other) not in {"", package_of(module), *allowed(package_of(module))}
    ]
    assert [] == wrong
    done: set[str] = set()
    while ready := {name for name in graph.keys() - done if not graph[name] - {name} - done}:
        done |= ready
    assert set() == graph.keys() - done


def test_spark_has_one_door() -> None:
    """planner/ never imports pyspark, and imports spark_jobs only inside of the functions that need it."""
    for path, tree in trees().items():
        outside = ast.Module([node for node in tree.body if not isinstance(node, ast.FunctionDef)], [])
        if "planner" in path.relative_to(ROOT).parts:
            assert not [name for name in imports(tree) if name.split(".")[0] in ("pyspark", "py4j")], path
            assert not [name for name in imports(outside) if name.startswith("spark_jobs")], path


def test_only_the_commands_print() -> None:
    """Only cli calls print, click.echo or Console, or writes to sys.stdout or sys.stderr."""
    for path, tree in trees().items():
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        printing = [call for call in calls if call in ("print", "click.echo", "echo", "Console", "rich.print")]
        streams = [call for call in calls if call.startswith(("sys.stdout.", "sys.stderr."))]
        assert package_of(NAMES[path]) == "cli" or [] == printing + streams, path


def test_the_judge_and_the_makers_do_not_know_each_other() -> None:
    """The check imports only the model. No strategy imports the check or the scores that judge its plans."""
    judge = {name for path, tree in trees().items() if path.name == "independent_check.py" for name in imports(tree)}
    assert {"model"} == {package_of(name) for name in judge if name.startswith("planner.")}
    makers = {
        name for path, tree in trees().items() if package_of(NAMES[path]) == "strategies" for name in imports(tree)
    }
    assert set() == makers & {f"planner.scoring.{name}" for name in ("independent_check", "score", "missed_targets")}


def test_files_and_functions_are_read_in_one_go() -> None:
    """A file has at most 400 lines, also of tests and of the role, and a function at most 45, including docstrings."""
    paths = (*FILES, *(path for folder in ("tests", "templates") for path in (ROOT / folder).rglob("*.py")))
    files = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    assert {} == {path: lines for path, lines in files.items() if lines > MOST_LINES}
    functions = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert {} == {
        each.name: lines for each in functions if (lines := (each.end_lineno or 0) - each.lineno + 1) > LONGEST_FUNCTION
    }


def test_names_say_what_they_hold() -> None:
    """No parameter or variable has a name that fits any value."""
    names = {
        f"{path}:{node.lineno}": name
        for path, tree in trees().items()
        for node in names_of(tree)
        if (name := node.arg if isinstance(node, ast.arg) else node.id) in VAGUE
    }
    assert {} == names

"""The modules of a user's own assignors: found beside the spec, and nothing else that lies there is ever imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from planner.group_values import ConsumerGroup


@contextmanager
def importable(folder: Path, groups: Iterable[ConsumerGroup]) -> Iterator[None]:
    """The modules that the groups' assignors name (`module:function`) can be imported from `folder` meanwhile.

    What is installed has precedence. The folder isn't on `sys.path`: a library that looks for an optional package of
    its own, as pandas does for numexpr, would run whatever lies there under that name.
    """
    finder = _Named(folder, tuple(group.assignor.partition(":")[0] for group in groups if ":" in group.assignor))
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # Another spec of the same run may have a module of the same name.
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.found]:
            del sys.modules[name]


class _Named:
    """Finds the top packages of the named modules in one folder, and remembers which it found."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self.folder = folder
        self.names = {module.partition(".")[0] for module in modules}
        self.found: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What `sys.meta_path` asks for; modules within a package are found by the package."""
        if name not in self.names:
            return None
        spec = PathFinder.find_spec(name, [str(self.folder)], target)
        if spec is not None:
            self.found.add(name)
        return spec

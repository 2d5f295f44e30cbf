"""A user's own assignor of consumer groups, `module:function`: found in one folder, called, and its result checked."""

import importlib
import re
import sys
from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from planner.model.cluster import PartitionKey
from planner.model.errors import PlannerError
from planner.model.spec import ConsumerGroup

Owned = Mapping[str, Sequence[PartitionKey]]
Ownership = dict[str, list[PartitionKey]]
Assignor = Callable[[dict[str, int], dict[str, list[str]], dict[str, list[PartitionKey]]], Owned]

_OWN_ASSIGNOR = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", re.ASCII)


def load(assignor: str, kafkas: Iterable[str]) -> Assignor:
    """The function that `module:function` names; PlannerError if there is none. `kafkas`: the other allowed names."""
    module, _, name = assignor.partition(":")
    allowed = f"allowed: {', '.join(kafkas)}, or module:function of your own"
    if not _OWN_ASSIGNOR.fullmatch(assignor):
        raise PlannerError(f"assignor {assignor!r} isn't known; {allowed}")
    try:
        # Only the result goes to stdout, so that --format json stays JSON whatever a user's own module prints.
        with redirect_stdout(sys.stderr):
            function: Assignor = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:  # a user's own module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise PlannerError(f"assignor {assignor!r} can't be loaded: {reason}; {allowed}") from error
    return function


def assigned_by(
    function: Assignor, counts: dict[str, int], members: dict[str, list[str]], owned: Owned, assignor: str
) -> Ownership:
    """The checked result of a user's own assignor: each partition has one owner, who subscribes to its topic."""
    try:
        with redirect_stdout(sys.stderr):  # as in `load`
            result = function(dict(counts), dict(members), {member: list(each) for member, each in owned.items()})
            pairs = [(member, topic, partition) for member, each in result.items() for topic, partition in each]
    except (Exception, SystemExit) as error:  # a user's own function may raise anything, and give anything
        reason = f"{type(error).__name__}: {error}"
        usage = "allowed: a function of topics, subscriptions and owned that gives each member its partitions"
        raise PlannerError(f"assignor {assignor!r} doesn't assign: {reason}; {usage}") from error
    allowed = "allowed: each partition once, with a member that subscribes to its topic"
    unassigned = {(topic, partition) for topic, count in counts.items() for partition in range(count)}
    owners: Ownership = {member: [] for member in members}
    for member, topic, partition in pairs:
        if (topic, partition) not in unassigned or topic not in members.get(member, ()):
            raise PlannerError(f"assignor {assignor!r} gives {topic}-{partition} to {member!r}; {allowed}")
        unassigned.remove((topic, partition))
        insort(owners[member], (topic, partition))
    if unassigned:
        topic, partition = min(unassigned)
        raise PlannerError(f"assignor {assignor!r} gives {topic}-{partition} to nobody; {allowed}")
    return owners


@contextmanager
def importable(folder: Path, groups: Iterable[ConsumerGroup]) -> Iterator[None]:
    """Makes the modules of the groups' assignors (`module:function`) importable from `folder` within the context.

    Installed modules have precedence. The folder isn't on `sys.path`, because a library that looks for an optional
    package (as pandas does for numexpr) would run any file of this name there.
    """
    finder = _FolderFinder(folder, tuple(group.assignor.partition(":")[0] for group in groups if ":" in group.assignor))
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # Another spec of the same run may have a module with the same name.
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.found_names]:
            del sys.modules[name]


class _FolderFinder:
    """Finds the top-level packages of the named modules in one folder, and remembers which it found."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        self.folder = folder
        self.names = {module.partition(".")[0] for module in modules}
        self.found_names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Called by `sys.meta_path`; a package finds its own modules."""
        if name not in self.names:
            return None
        spec = PathFinder.find_spec(name, [str(self.folder)], target)
        if spec is not None:
            self.found_names.add(name)
        return spec

"""Runs `ansible-playbook` as it is, in this very process, with what plays of before have worked out at hand.

Each play packs the same five modules for its host, at 0.2 s of CPU each, and each of its tasks, being a fork, loads
all filters and tests anew. Here the packed modules are kept for the next play of the same roles on the same Ansible,
where Ansible keeps them for the next task; and the filters are loaded before the tasks are forked.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path


def command(python: Path, program: Path) -> list[str]:
    """How a program of Ansible's is run with a Python that has it; what is packed is kept as long as this process."""
    return [str(python), "-P", __file__, _kept().name, str(program)]


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="packed-")


def _main(kept: str, program: str) -> None:
    sys.argv[:] = [program, *sys.argv[3:]]
    from ansible import constants, release
    from ansible.cli import playbook
    from ansible.plugins.loader import filter_loader, test_loader

    modules = hashlib.sha256(f"{release.__version__} {sys.version}".encode())
    for path in sorted(Path("roles").glob("*/*/*.py")):
        modules.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    own = Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache")
    _link(Path(kept, modules.hexdigest()), own)
    # Before Ansible's own clean-up, which is registered already.
    atexit.register(_link, own, Path(kept, modules.hexdigest()))
    for loader in (filter_loader, test_loader):
        list(loader.all())
    gc.freeze()
    sys.exit(playbook.main(sys.argv))


def _link(source: Path, target: Path) -> None:
    """Give the files of a folder to another one, whole as they are; one that is there stays."""
    target.mkdir(exist_ok=True)
    for path in source.glob("*-ZIP*") if source.is_dir() else ():
        if not path.name.endswith((".lock", "-part")):
            with suppress(FileExistsError):
                os.link(path, target / path.name)


if __name__ == "__main__":
    _main(*sys.argv[1:3])

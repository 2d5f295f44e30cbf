"""Runs the real `ansible-playbook` in this process, and reuses work that earlier plays have done.

Each play packs the same five modules for its host, at 0.2 s of CPU each. Each task is a fork that loads all filters
and tests again. This module keeps the packed modules, so that the next play of the same roles on the same Ansible
finds them in Ansible's own cache, and it loads the filters before the tasks are forked.
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
    """The command that runs a program of Ansible in this way. Packed modules are kept until this process ends."""
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
    # atexit runs this before Ansible's own clean-up, because Ansible has already registered that.
    atexit.register(_link, own, Path(kept, modules.hexdigest()))
    for loader in (filter_loader, test_loader):
        list(loader.all())
    gc.freeze()
    sys.exit(playbook.main(sys.argv))


def _link(source: Path, target: Path) -> None:
    """Link the finished files of one folder into another. Files that exist there are kept."""
    target.mkdir(exist_ok=True)
    for path in source.glob("*-ZIP*") if source.is_dir() else ():
        if not path.name.endswith((".lock", "-part")):
            with suppress(FileExistsError):
                os.link(path, target / path.name)


if __name__ == "__main__":
    _main(*sys.argv[1:3])

"""Runs Ansible's modules in forks of one process that has imported their library; each import takes 0.2 s of CPU.

`interpreter` is a stand-in for `python` in a play. It passes its streams, folder and environment to the server. A fork
of the server runs the module from standard input, as Python does.
"""

from __future__ import annotations

import gc
import hashlib
import marshal
import os
import socket
import subprocess
import sys
import tempfile
import zipimport
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from fork_server import serve, start

# It imports only what is built in, because `json`, `os` and `socket` would take half of its CPU.
CLIENT = """\
#!{python} -IS
import _socket, posix, sys
if sys.argv[1:]:
    posix.execv("{python}", ["{python}", *sys.argv[1:]])
server = _socket.socket(_socket.AF_UNIX)
server.connect("{address}")
words = [posix.getcwdb(), *(name + b"=" + value for name, value in posix.environ.items())]
streams = b"".join(each.to_bytes(4, sys.byteorder) for each in (0, 1, 2))
rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
server.sendmsg([len(b"\\0".join(words)).to_bytes(4, "big")], rights)
server.sendall(b"\\0".join(words))
sys.exit(int(server.recv(16) or b"1"))
"""


def interpreter(python: Path) -> str:
    """The path of a stand-in for a Python that has Ansible. Its server ends with this process."""
    return str(_client(python)[1])


@cache
def _client(python: Path) -> tuple[tempfile.TemporaryDirectory[str], Path, subprocess.Popen[bytes]]:
    """The stand-in, its folder and its server, which are kept until this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="modules-")
    address = Path(folder.name, "server")
    client = Path(folder.name, "python")
    client.write_text(CLIENT.format(python=python, address=address))
    client.chmod(0o755)
    return folder, client, start(python, __file__, folder.name, str(address))


class _PathWithPayload(list[str]):
    """The folders of a package's modules, including the zip that a play sends, which has the role's own module."""

    def __init__(self, paths: Iterable[str], folder: str) -> None:
        super().__init__(paths)
        self.folder = folder

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        yield from (f"{path}/{self.folder}" for path in sys.path if path.endswith(".zip"))


def _serve(address: str) -> None:
    """Answer requests until the parent process has ended."""
    import ansible
    import ansible.modules

    # Each fork inherits these. Older lines of Ansible lack some.
    for name in ("basic", "_internal._json._profiles._module_legacy_c2m", "_internal._ansiballz._loader"):
        with suppress(ImportError):
            import_module(f"ansible.module_utils.{name}")
    for name in ("base64", "encodings.cp437", "runpy", "zipfile"):
        import_module(name)

    # Each payload has the same modules of the role. Compiling them takes 20 ms.
    zipimport._compile_source = partial(_compiled, Path(address).parent)
    ansible.__path__ = _PathWithPayload(ansible.__path__, "ansible")
    ansible.module_utils.__path__ = _PathWithPayload(ansible.module_utils.__path__, "ansible/module_utils")
    ansible.modules.__path__ = _PathWithPayload(ansible.modules.__path__, "ansible/modules")

    gc.disable()  # A module ends soon, and looking for garbage would copy the memory of the server.
    serve(address, _run)


def _compiled(folder: Path, pathname: str, source: bytes) -> Any:
    """The code of a module in a payload. The first fork that compiles it keeps it in a file."""
    kept = folder / hashlib.sha256(source).hexdigest()
    with suppress(FileNotFoundError):
        return marshal.loads(kept.read_bytes())
    code = compile(source, pathname, "exec", dont_inherit=True)
    own = kept.with_suffix(f".{os.getpid()}")
    own.write_bytes(marshal.dumps(code))
    own.replace(kept)
    return code


def _run(caller: socket.socket) -> None:
    """Run one module in this fork and send its exit code to the caller."""
    length, streams, _, _ = socket.recv_fds(caller, 4, 3)
    with caller.makefile("rb") as received:
        folder, *environment = received.read(int.from_bytes(length, "big")).split(b"\0")
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(each.split(b"=", 1) for each in environment)
    sys.argv = [""]
    code = 0
    try:
        exec(
            compile(sys.stdin.buffer.read(), "<stdin>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__}
        )
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(str(code).encode())
        os._exit(code)


if __name__ == "__main__":
    _serve(sys.argv[1])

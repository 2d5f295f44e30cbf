"""Compares a plan's folder with the files that its plan.json gives, and finds changed files and the operator's own.

Files are compared by kind and digest; links aren't followed. Each of the operator's files is listed with its possible
effect. SHA256SUMS lists the digests of a plan's files in the format of `sha256sum --check`, so that anybody can check
without the planner that the reviewed files are the ones that run.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, Self

from planner.model.errors import SetupError, StalePlanError
from planner.model.file_reading import digest

SUMS, MISSING = "SHA256SUMS", "is missing"
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")

# The operator's places: inventories (the planner writes an example, hosts.yml) and their variables; and, for added
# files, the folder where Terraform reads and keeps files beside the plan's variables.
_PLACES = ("ansible/inventory/", "ansible/group_vars/", "ansible/host_vars/")
_ADDED_PLACES = ("terraform/",)

_VARIABLES = (
    "Ansible variables: kafka_reassign_bin_dir chooses which programs run, kafka_reassign_bootstrap_servers which "
    "cluster they change, and a template in any value can run a program on the Ansible host"
)
_HOSTS = (
    "the machine that the commands run on and how Ansible reaches it; an inventory plugin or a template in any value "
    "can run a program on the Ansible host"
)
_CODE = "Python code that Ansible loads and runs on the Ansible host or on the admin host"

# The first pattern that a path matches gives the file's possible effect.
_EFFECTS = (
    (r"ansible/(inventory/)?(group_vars|host_vars)(/.*)?", _VARIABLES),
    (r"ansible/inventory(/.*)?", _HOSTS),
    (r"(ansible|terraform)", "everything below it comes from elsewhere"),
    (r"ansible/ansible\.cfg", "Ansible's settings: they choose roles, plugins, inventory and connection"),
    (r"ansible/collections(/.*)?", "Ansible collections: plugins and roles that Ansible loads"),
    (r"ansible/(.*/)?(\w+_plugins|library|module_utils|plugins)(/.*)?", _CODE),
    (r"ansible/roles/[^/]+/vars(/.*)?", "variables of the role: Ansible loads every file of vars/main/"),
    (r"ansible/roles/[^/]+/defaults(/.*)?", "default variables of the role: Ansible loads all of defaults/main/"),
    (r"ansible/roles/[^/]+/meta(/.*)?", "the role's dependencies: roles that run before it"),
    (r"ansible/roles/[^/]+/(tasks|handlers)(/.*)?", "tasks, which run whatever they name"),
    (r"ansible/roles/kafka_reassign/files(/.*)?", "a file that the role can hand to Kafka's tools"),
    (r"ansible/roles(/.*)?", "part of an Ansible role, which runs whatever it names"),
    (r"ansible/[^/]+\.ya?ml", "a playbook, which runs whatever it names"),
    (r"terraform/\.terraform(/.*)?", "providers and modules that Terraform runs"),
    (r"terraform/.*\.tfstate(\..*)?", "Terraform's state: what it believes to exist, secrets included"),
    (r"terraform/.*\.tfvars(\.json)?", "Terraform variables: a later file takes precedence over the plan's"),
    (r"terraform/.*\.tf(\.json)?", "Terraform configuration: what it changes, and programs that it runs"),
    (r"terraform/\.terraform\.lock\.hcl", "which providers Terraform accepts"),
    (r"batches/.*|[^/]+\.json", "a file that could be handed to Kafka's tools by hand"),
)


def effect(path: str, *, executable: bool = False) -> str:
    """A phrase on the possible effect of a file at a path of a plan's folder; empty if no tool reads it."""
    if executable and path.startswith("ansible/inventory/"):
        return "an executable file in an inventory: Ansible runs it on the Ansible host"
    return next((phrase for pattern, phrase in _EFFECTS if re.fullmatch(pattern, path)), "")


def is_operators(path: str, *, added: bool) -> bool:
    """True if a file, changed or `added`, is the operator's own."""
    in_place = f"{path}/".startswith(_PLACES)
    return in_place or (added and f"{path}/".startswith(_ADDED_PLACES))


EntryKind = Literal["file", "link", "device"]


@dataclass(frozen=True)
class FolderEntry:
    """A file, a link, or a device, pipe or socket (`device`), which is never opened.

    `sha256` is of a file's bytes or of a link's target; None for a device.
    """

    kind: EntryKind
    executable: bool
    sha256: str | None

    @classmethod
    def read(cls, path: Path) -> Self:
        """The entry at a path."""
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return cls("link", False, digest(b"link to " + os.fsencode(path.readlink())))
        if not stat.S_ISREG(mode):
            return cls("device", False, None)
        with path.open("rb") as file:
            return cls("file", bool(mode & 0o111), hashlib.file_digest(file, "sha256").hexdigest())


def entries(folder: Path) -> dict[str, FolderEntry]:
    """Everything below a folder except folders, by relative POSIX path; a link to a folder is a link.

    SetupError if an entry can't be read, because it can't be approved unread.
    """
    return dict(sorted(_below(folder, folder)))


def _below(folder: Path, top: Path) -> Iterator[tuple[str, FolderEntry]]:
    try:
        with os.scandir(folder) as scanned:
            for each in scanned:
                path = Path(each.path)
                if each.is_dir(follow_symlinks=False):
                    yield from _below(path, top)
                else:
                    yield path.relative_to(top).as_posix(), FolderEntry.read(path)
    except OSError as error:
        raise SetupError(f"{error.filename or folder}: can't be read: {error.strerror}") from error


def sums(digests: Mapping[str, str]) -> bytes:
    """The content of SHA256SUMS: a line for each path, sorted by path."""
    return "".join(f"{digests[path]}  {path}\n" for path in sorted(digests)).encode()


def with_sums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files and their SHA256SUMS."""
    return {**files, SUMS: sums({name: digest(file) for name, file in files.items()})}


def listed(text: str, name: str) -> dict[str, str]:
    """The digests by path of a SHA256SUMS named `name`; StalePlanError for a line that isn't a digest and a path."""
    digests: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise StalePlanError(
                f"{name}:{number}: {line[:60]!r} isn't a digest and a path; allowed: the file as it was written"
            )
        digests[match[2]] = match[1]
    return digests


def listed_in(folder: Path) -> dict[str, str]:
    """The digests by path that a folder's SHA256SUMS lists; empty if it can't be read."""
    try:
        return listed((folder / SUMS).read_text(encoding="utf-8"), SUMS) if (folder / SUMS).is_file() else {}
    except (OSError, UnicodeDecodeError, StalePlanError):
        return {}


@dataclass(frozen=True)
class FileFinding:
    """A file that isn't as the plan gives it: how it differs, and its possible effect (empty if none)."""

    path: str
    what: str
    effect: str
    sha256: str | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.what}{f': {self.effect}' if self.effect else ''}"


@dataclass(frozen=True)
class FolderCheck:
    """How a folder differs: it is refused for `differences`, `own` are the operator's, `files` counts the plan's."""

    differences: tuple[FileFinding, ...] = ()
    own: tuple[FileFinding, ...] = ()
    files: int = 0


def compare_folder(expected: Mapping[str, str], actual: Mapping[str, FolderEntry]) -> FolderCheck:
    """Compares a folder's files with the digests of the expected files, both by relative path."""
    findings = sorted(_findings(expected, actual), key=lambda each: each.path)
    needed = _folders_of(path for path in expected if not is_operators(path, added=False))
    own_paths = {each.path for each in findings if is_operators(each.path, added=each.path not in expected)} - needed
    return FolderCheck(
        tuple(each for each in findings if each.path not in own_paths),
        tuple(each for each in findings if each.path in own_paths),
        len([path for path in expected if path in actual and path not in own_paths]),
    )


def compare_with_list(folder: Path) -> FolderCheck:
    """Compares a folder with its own SHA256SUMS; without that file, finds only files in the operator's places."""
    digests, actual = listed_in(folder), entries(folder)
    if not digests:
        return FolderCheck(own=compare_folder({}, actual).own)
    return compare_folder(digests | {SUMS: actual[SUMS].sha256 or ""}, actual)


def _findings(expected: Mapping[str, str], actual: Mapping[str, FolderEntry]) -> Iterator[FileFinding]:
    """The plan's files that are missing or changed, and files that aren't part of the plan."""
    for path in expected.keys() - actual.keys():
        # If a link or a file replaces a folder, only that is reported, not the files missing below it.
        if not any(folder in actual for folder in _folders_of([path])):
            yield FileFinding(path, MISSING, "")
    for path, entry in actual.items():
        difference = ""
        if path not in expected:
            difference = f"{'' if entry.kind == 'file' else f'is a {entry.kind} that '}isn't part of the plan"
        elif entry.kind != "file":
            difference = f"is a {entry.kind}, not the file that was made"
        elif entry.sha256 != expected[path]:
            difference = "isn't the file that was made"
        elif entry.executable:
            difference = "is executable, which no file of a plan is"
        if difference:
            yield FileFinding(path, difference, effect(path, executable=entry.executable), entry.sha256)


def _folders_of(paths: Iterable[str]) -> set[str]:
    """All folders above these paths."""
    return {str(folder) for path in paths for folder in PurePosixPath(path).parents}

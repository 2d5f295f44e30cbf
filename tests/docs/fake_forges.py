"""Commands that CI recipes find on PATH: a forge that keeps comments in a file, and tools that log their use."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

_FORGE = """
import json, os, sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

store = Path(os.environ["FORGE"])
comments = json.loads(store.read_text())
words = sys.argv[1:]


def after(name):
    return words[words.index(name) + 1] if name in words else None


def save(method, url, body):
    tail = urlsplit(url).path.rsplit("/", 1)[-1]
    known = [each for each in comments if str(each["id"]) == tail]
    if method == "POST":
        comments.append({"id": len(comments) + 1, "body": body})
    elif known:
        known[0]["body"] = body
    else:
        sys.exit(f"no comment {tail}")
    store.write_text(json.dumps(comments))
"""

_GH = """
(url,) = [word for word in words if word.startswith("repos/")]
assert words[0] == "api" and os.environ["GH_TOKEN"], words
if after("--method"):
    name, _, file = after("--field").partition("=@")
    assert name == "body", words
    save(after("--method"), url, Path(file).read_text())
else:
    assert after("--jq") == ".[]" and "--paginate" in words, words
    print(*map(json.dumps, comments), sep="\\n")
"""

_CURL = """
url = words[-1]
assert after("--header") == "PRIVATE-TOKEN: secret" and "--fail" in words, words
if after("--request"):
    name, _, file = after("--data-urlencode").partition("@")
    assert name == "body", words
    save({"PUT": "PATCH", "POST": "POST"}[after("--request")], url, Path(file).read_text())
    Path(after("--output")).write_text("{}")
else:
    page = int(parse_qs(urlsplit(url).query)["page"][0])
    # Two a page, so that there are several.
    more = page + 1 if len(comments) > 2 * page else ""
    Path(after("--dump-header")).write_text(f"HTTP/2 200\\r\\nx-next-page: {more}\\r\\nx-page: {page}\\r\\n")
    Path(after("--output")).write_text(json.dumps(comments[2 * page - 2 : 2 * page]))
"""

# whatif writes the plan in $NEXT or refuses; show prints $COMMENT; check exits with $CHECK.
_PLANNER = """
import os, shutil, sys
from pathlib import Path

words = sys.argv[1:]
with Path(os.environ["USED"]).open("a") as used:
    print("planner", *words, file=used)
match words[0]:
    case "whatif":
        refused = Path(os.environ["NEXT"]) / "refused.txt"
        if refused.exists():
            print(refused.read_text(), file=sys.stderr)
            sys.exit(3)
        folder = Path(words[words.index("--out") + 1])
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.environ["NEXT"], folder)
        sys.exit(2)
    case "diff":
        before, after = (Path(word, "plan.json").read_text() for word in words[1:3])
        print("the same plan" if before == after else "another plan")
    case "show":
        assert words[2:] == ["--format", "markdown"] and Path(words[1], "plan.json").exists(), words
        print(Path(os.environ["COMMENT"]).read_text(), end="")
    case "check":
        sys.exit(int(os.environ.get("CHECK", "0")))
"""

_ANSIBLE = """
import os, sys
from pathlib import Path

with Path(os.environ["USED"]).open("a") as used:
    print("ansible-playbook", *sys.argv[1:], "in", "/".join(Path.cwd().parts[-2:]), file=used)
"""

_PYTHON = '#!/bin/sh\nif [ "$1 $2" = "-m pip" ]; then echo "$@" >>"$USED"; else exec "{python}" "$@"; fi\n'


def install(folder: Path, next_plan: Path) -> dict[str, str]:
    """Write the commands into a folder. Return their environment. They log to the files `comments` and `used`."""
    tools = folder / "bin"
    tools.mkdir(parents=True)
    programs = {"gh": _FORGE + _GH, "curl": _FORGE + _CURL, "planner": _PLANNER, "ansible-playbook": _ANSIBLE}
    for name, text in programs.items():
        _executable(tools / name, f"#!{sys.executable}\n{text}")
    _executable(tools / "python3", _PYTHON.format(python=sys.executable))
    (folder / "comments").write_text(json.dumps([{"id": 1, "body": "hello"}, {"id": 2, "body": "<!-- other -->"}]))
    (folder / "used").write_text("")
    (folder / "comment.md").write_text("## Kafka plan\n")
    named = {"FORGE": "comments", "USED": "used", "COMMENT": "comment.md"}
    return {name: str(folder / file) for name, file in named.items()} | {"NEXT": str(next_plan)}


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)

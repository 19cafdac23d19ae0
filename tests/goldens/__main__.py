"""Take goldens anew, or compare two commits on this machine.

`python -m tests.goldens [NAME …]` writes the goldens with these words in their names, all without one.
`python -m tests.goldens --between OLD [NEW]` runs the cases of both commits (NEW: the working tree) and prints what
moved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tests.goldens import golden


def main() -> None:
    """Run what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--between", nargs="+", metavar="COMMIT")
    parser.add_argument("--to", type=Path, default=golden.FILE, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.between:
        print("\n".join(between(*given.between[:2])) or "nothing has moved")  # noqa: T201
        return
    take(given.names, given.to)


def take(words: list[str], file: Path) -> None:
    """Write the goldens whose names have one of the words; others stay, unless this is another machine."""
    from tests.goldens.cases import CASES, taken

    told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    mine = golden.fingerprint()
    if words and told.get("fingerprint") != mine:
        sys.exit("the goldens are of another machine or other versions: take all of them, or none")
    kept = {name: told["cases"][name] for name in CASES if words and name in told["cases"]}
    for name in CASES:
        if not words or any(word in name for word in words):
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kept[name] = golden.summary(taken(name, Path(folder) / "case"))
                print(name, flush=True)  # noqa: T201
    text = json.dumps({"fingerprint": mine, "cases": kept}, indent=1, sort_keys=True, default=str)
    file.write_text(text + "\n", encoding="utf-8")


def between(old: str, new: str | None = None) -> list[str]:
    """Return which cases differ in a bit between two commits."""
    with tempfile.TemporaryDirectory() as place:
        found = [_of(commit, Path(place)) for commit in (old, new)]
    both = found[0].keys() & found[1].keys()
    return [
        f"{name}: {line}" for name in sorted(both) for line in golden.differences(found[1][name], found[0][name], True)
    ]


def _of(commit: str | None, place: Path) -> dict[str, Any]:
    """Run the cases of a commit in a working tree of its own; None is the present one."""
    tree, file = Path.cwd(), place / f"{commit or 'working tree'}.json"
    if commit is not None:
        tree = place / commit.replace("/", "-")
        subprocess.run(["git", "worktree", "add", "--detach", "--force", tree, commit], check=True, capture_output=True)
    try:
        environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.goldens", "--to", str(file)]
        subprocess.run(command, cwd=tree, env=environment, check=True)
    finally:
        if commit is not None:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True, capture_output=True)
    return json.loads(file.read_text(encoding="utf-8"))["cases"]


if __name__ == "__main__":
    main()

"""Build the wheel and the sdist, install each in a bare environment of every Python found, and use it.

`python tools/check_wheel.py` prints one line for each; `make dist` calls it. Environments are made in a temporary
folder, with the versions of `constraints.txt`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
USE = """
import lignn, pathlib
assert (pathlib.Path(lignn.__file__).parent / "py.typed").is_file()
graph = lignn.datasets.load("karate")
print(lignn.__version__, lignn.NodeClassifier(max_epochs=3).fit(graph).predict()[:3])
"""


def run(*command: str | Path, cwd: Path = CHECKOUT) -> str:
    """Run a command that has to succeed, without the checkout in the path, and return what it printed."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def found() -> dict[str, Path | None]:
    """Return the interpreter of each version, None if there is none that starts."""
    pythons: dict[str, Path | None] = dict.fromkeys(PYTHONS)
    places = [Path(place) for place in os.environ["PATH"].split(os.pathsep)]
    places += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    for version in PYTHONS:
        for python in (place / f"python{version}" for place in places):
            works = (
                python.is_file()
                and subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0
            )
            if works:
                pythons[version] = python
                break
    return pythons


def main() -> None:
    """Build, install and use."""
    dist = CHECKOUT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, CHECKOUT, cwd=Path(tempfile.gettempdir()))
    for version, python in found().items():
        if python is None:
            print(f"Python {version}: not found, not tested")
            continue
        for file in sorted(dist.iterdir()):
            with tempfile.TemporaryDirectory() as place:
                bare = Path(place)
                run(python, "-m", "venv", bare / "venv")
                pip = [
                    bare / "venv" / "bin" / "python",
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                ]
                run(*pip, "--constraint", CHECKOUT / "constraints.txt", file, cwd=bare)
                said = run(bare / "venv" / "bin" / "python", "-c", USE, cwd=bare)
                run(bare / "venv" / "bin" / "lignn", "fit", "karate", "-o", "model", "--max-epochs", "2", cwd=bare)
                print(f"Python {version}: {file.name}: {said}", flush=True)


if __name__ == "__main__":
    main()

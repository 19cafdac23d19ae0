"""Build the wheel and the sdist, install both in a bare environment of every Python found, and use them as a user does.

`python tools/check_wheel.py [3.12 …]` prints one line for each; `make dist` calls it. Each environment is made in a
temporary folder, with the versions of `constraints.txt`, and removed again. The sdist replaces the wheel in it.
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
STEPS = (
    "",
    "--version",
    "inspect payments",
    "fit payments -o model --backbone sage --max-epochs 20",
    "predict model -o predictions.csv",
    "diagnose model",
)
"""Arguments of `lignn`."""
USE = """
import lignn, pathlib
assert (pathlib.Path(lignn.__file__).parent / "py.typed").is_file()
print(lignn.__version__, lignn.load("model").predict()[:3])
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


def use(environment: Path, work: Path) -> str:
    """Go through the first steps of the tutorial in an empty folder, and return what Python says of the package."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(CHECKOUT / "examples" / "payments", work / "payments")
    for line in STEPS:
        run(environment / "bin" / "lignn", *line.split(), cwd=work)
    if (work / "predictions.csv").read_text(encoding="utf-8").count("\n") != 401:
        raise SystemExit("predictions.csv has not one row for each of the 400 accounts")
    return run(environment / "bin" / "python", "-c", USE, cwd=work)


def check(python: Path, version: str, files: list[Path]) -> None:
    """Install and use each file in a new environment of `python`."""
    with tempfile.TemporaryDirectory() as place:
        environment = Path(place) / "venv"
        run(python, "-m", "venv", environment)
        install = [environment / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for number, file in enumerate(files):
            again = ["--force-reinstall", "--no-deps"] if number else []
            run(*install, *again, "--constraint", CHECKOUT / "constraints.txt", file, cwd=Path(place))
            said = use(environment, Path(place) / "work")
            print(f"Python {version}: {file.name}: {said}", flush=True)


def main() -> None:
    """Build, install and use."""
    dist = CHECKOUT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", dist, CHECKOUT, cwd=Path(tempfile.gettempdir()))
    files = [next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))]
    for version, python in found().items():
        if python is None:
            print(f"Python {version}: not found, not tested")
        elif version in (sys.argv[1:] or PYTHONS):
            check(python, version, files)


if __name__ == "__main__":
    main()

"""Several processes at once: saves to one folder, fits of one model, a reader beside writers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lignn
from tests.classifier.small import fitted
from tests.cli.conftest import write_tables

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems have no locks")
TIMES = 200 if os.environ.get("LIGNN_FAULTS") == "all" else 25


def race(folder: Path, *roles: list[str | int]) -> tuple[list[int], str]:
    """Return the exit codes of processes that run at the same time, and what they print."""
    checkout = Path(__file__).parent.parent.parent
    paths = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.race", json.dumps(roles)],
        cwd=folder,
        env=os.environ | one_thread | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    """From the first save on, the folder has one whole model."""
    classifiers = {"one": fitted("lpa"), "two": fitted("reslpa")}
    for name, classifier in classifiers.items():
        classifier.save(tmp_path / name)
    writers: list[list[str | int]] = [["save", name, "both", TIMES] for name in classifiers]
    codes, said = race(tmp_path, *writers, ["load", "both", TIMES, *classifiers])
    assert (codes, said) == ([0, 0, 0], "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both", "one", "two"]
    last = f"generation-{2 * TIMES}"
    assert (tmp_path / "both" / "current").read_text() == f"{last}\n"
    assert {path.name for path in (tmp_path / "both").iterdir()} == {"current", last}
    found = lignn.load(tmp_path / "both").predict_proba()
    assert any(np.array_equal(found, classifier.predict_proba()) for classifier in classifiers.values())


def test_two_fits_of_one_model(tmp_path: Path) -> None:
    write_tables(tmp_path / "mine")
    fit = ["lignn", "fit", "mine", "-o", "same", "--hidden", "4", "--max-epochs", "40", "--json"]
    codes, said = race(tmp_path, [*fit], [*fit])
    assert sorted(codes) in ([0, 2], [0, 0])  # both only if one has finished before the other starts
    assert said.count("error: same: another lignn fit is making this model") == codes.count(2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "same"]
    assert lignn.load(tmp_path / "same").n_iter_ == 40

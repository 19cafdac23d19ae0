"""Every reader either reads a mutated file or refuses it in a sentence that names it; see `readers`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lignn.classifier import config_file
from lignn.errors import InputError
from lignn.graph import validate
from tests.faults import readers

CHECKOUT = Path(__file__).parents[2]
PAST = sorted(readers.CORPUS.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as on Linux")
def test_mutated_files_are_read_or_refused(tmp_path):
    """A short round, always the same; `make fuzz` goes on for as long as you like."""
    command = [sys.executable, "-m", "tests.faults.readers", "--place", tmp_path / "case"]
    paths = os.pathsep.join(filter(None, [str(CHECKOUT), *sys.path]))
    done = subprocess.run(
        command, cwd=CHECKOUT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr}\nthe case: {tmp_path / 'case'}"
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["reader"] for record in told[:-1]} == set(readers.READERS)
    assert told[-1]["faults"] == 0
    assert told[-1]["cases"] >= 16 * len(readers.READERS)
    assert told[-1]["read"] > 0


@pytest.mark.parametrize("case", PAST, ids=lambda case: case.name)
def test_past_faults(case, tmp_path):
    shutil.copytree(case, tmp_path / "case")
    assert readers.check(case.name.partition(".")[0], tmp_path / "case") in ("read", "refused")


@pytest.fixture(scope="module", autouse=True)
def model(tmp_path_factory):
    """A model; the first one compiles and imports, which is no part of the time that a case may take."""
    folder = tmp_path_factory.mktemp("model")
    readers.write_model(folder)
    readers.read_model(folder)
    return folder


def refused(model, tmp_path, text):
    """Return whether a model with another config is refused."""
    shutil.copytree(model, tmp_path / "case")
    readers.model_file(tmp_path / "case", "config.json").write_text(text)
    return readers.check("forged-model", tmp_path / "case") == "refused"


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, "[]", "{}", "1", '{"format": "a"}', '{"format": 2}'])
def test_configs_that_are_none(text, model, tmp_path):
    assert refused(model, tmp_path, text)


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": {}},
        {"files": {"../graph.npz": "0"}},
        {"parameters": 1},
        {"parameters": {"colour": "red"}},
        {"objects": {}},
        {"objects": ["hidden"]},
        {"resolved": {"hidden": 10**30}},
        {"classes": {"names": None, "multilabel": False}},
        {"classes": {"names": ["red"], "multilabel": 3}},
        {"training": {"best": 0, "end": "never", "final": {}, "further": 0, "mask_rate": None}},
        {"solution": {"status": "fine"}},
        {"calibration": {"a": 1}},
        {"graph": 5},
        {"inputs": {"num_features": "many", "feature_names": None}},
        {"features": {"columns": [], "groups": [{"treatment": "standard", "inputs": [], "width": 1}], "sparse": False}},
    ],
    ids=str,
)
def test_forged_configs(change, model, tmp_path):
    """A part of the config was changed, and the checksum fits."""
    told = json.loads(readers.model_file(model, "config.json").read_text())
    told.pop("checksum")
    told |= change
    assert refused(model, tmp_path, json.dumps(told | {"checksum": config_file.own_checksum(told)}))


def test_a_graph_that_is_too_large_is_named_with_its_file(tmp_path, monkeypatch):
    readers.READERS["npz"].write(tmp_path)
    monkeypatch.setattr(validate, "memory", lambda: 30)
    with pytest.raises(InputError, match=r"graph\.npz: 8 nodes are too many"):
        readers.read_npz(tmp_path)

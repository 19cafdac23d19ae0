"""Tables with columns of all kinds, from the command line."""

import json

import pytest

from tests.classifier.test_features import tabular
from tests.cli.commands import outcome, run

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")
BLOCK = """Columns: 3 are features, 2 are ignored
  height  number: scaled, 10 missing → the mean, with an indicator
  colour  category: one-hot, values in fewer than 4 rows together
  since   date: age in days, scaled; month as a cycle; weekday as a cycle
  name    id: ignored: an id, every row has another value
  same    constant: ignored: all rows have the same value
"""


@pytest.fixture
def graph(tmp_path):
    tabular().write(tmp_path / "people.npz")
    return str(tmp_path / "people.npz")


def refused(*arguments):
    found = outcome(*arguments)
    assert (found.code, found.out, len(found.err.splitlines())) == (2, "", 1)
    return found.err


def test_fit_tells_what_became_of_the_columns(graph, tmp_path):
    found = outcome("fit", graph, "-o", str(tmp_path / "m"), "--max-epochs", "2")
    assert (found.code, BLOCK in found.out, "features reach" in found.err) == (0, True, False)
    out = run("fit", graph, "-o", str(tmp_path / "j"), "--max-epochs", "2", "--json")
    assert json.loads(out)["columns"]["since"] == "age in days, scaled; month as a cycle; weekday as a cycle"
    assert 'features = "auto"' in (tmp_path / "m" / "generation-1" / "settings.toml").read_text(encoding="utf-8")


def test_raw_columns_are_refused_in_one_line(graph, tmp_path):
    err = refused("fit", graph, "-o", str(tmp_path / "m"), "--features", "raw")
    assert "people: features='raw' needs features as numbers, which 'height' (10 missing)" in err
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["people.npz"]


def test_a_model_without_its_graph(graph, tmp_path):
    model = str(tmp_path / "m")
    out = run("fit", graph, "-o", model, "--max-epochs", "2", "--no-graph")
    assert f"predict by: lignn predict {model} --graph GRAPH -o predictions.csv" in out
    assert not list((tmp_path / "m").rglob("graph.npz"))
    assert len(run("predict", model, "--graph", graph).splitlines()) == 91
    for arguments in (["predict", model], ["predict", model, "--labels", graph], ["diagnose", model]):
        assert "the model was saved without the graph it was trained on" in refused(*arguments)

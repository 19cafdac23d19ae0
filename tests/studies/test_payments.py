"""The table of payments as a graph, and the splits of the study of rows."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.model_selection import train_test_split

from lignn.errors import DatasetError
from lignn.evaluation.page import Table
from lignn.studies import graphs, run, runner, study
from lignn.studies.case import StudyCase
from lignn.studies.results import Results
from lignn.studies.views import inputs
from tests.studies import tiny

COLUMNS = "Time,Source,Target,Location,Type,Amount,Labels"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A table of 60 payments in place of the published one."""
    rng = np.random.default_rng(0)
    rows = [
        [str(i), f"S{rng.integers(9)}", f"T{rng.integers(4)}", "L1", f"TP{rng.integers(3)}", "2.5", str(i % 3)]
        for i in range(60)
    ]
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "S-FFSD.csv").write_text("\n".join([COLUMNS, *map(",".join, rows)]) + "\n")
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    return rows


def config(method: dict, **changes: object) -> StudyCase:
    values = {"dataset": "s-ffsd", "task": "classify", "method": method, "split": {"kind": "by_time", "number": 0}}
    return StudyCase.of(values | changes, "here")


def test_payments_are_joined_to_their_values_and_to_the_next_two(table: list[list[str]]) -> None:
    graph = graphs.load("s-ffsd")
    sources, targets, kinds = (len({row[column] for row in table}) for column in (1, 2, 4))
    assert graph.num_nodes == 60 + sources + targets + 1 + kinds
    assert graph.edge_types == ("Source", "Target", "Location", "Type", "Next")
    counts = graph.edge_type.bincount().tolist()
    assert counts == [2 * 60] * 4 + [2 * (59 + 58)]
    assert graph.y[:60].tolist() == [-1 if row[6] == "2" else int(row[6]) for row in table]
    assert (graph.y[60:] == -1).all()
    same = graph.edge_type == 0
    hub = graph.edge_index[0, same & (graph.edge_index[1] == 7)]
    others = graph.edge_index[1, same & (graph.edge_index[0] == hub)]
    assert set(others.tolist()) == {i for i, row in enumerate(table) if row[1] == table[7][1]}


def test_splits_are_the_published_one_and_the_latest_fifth(table: list[list[str]]) -> None:
    graph = graphs.load("s-ffsd")
    labels = np.array([int(row[6]) for row in table])
    train, test = train_test_split(np.arange(60), stratify=labels, test_size=0.2, random_state=7)
    number, found = graphs.choose_split(graph, {"kind": "random", "states": [2, 7], "number": 1})
    assert number == 1
    assert set(found.train.nonzero().flatten().tolist()) == set(train[labels[train] < 2].tolist())
    assert set(found.test.nonzero().flatten().tolist()) == set(test[labels[test] < 2].tolist())
    _, latest = graphs.choose_split(graph, {"kind": "by_time", "number": 0})
    known = np.flatnonzero(labels < 2)
    assert latest.test.nonzero().flatten().tolist() == known[32:].tolist()
    assert not latest.val.any()
    _, earlier = graphs.choose_split(graph, {"kind": "by_time", "number": 1})
    assert torch.equal(earlier.train | earlier.test, latest.train)
    assert earlier.test.nonzero().flatten().tolist() == known[26:32].tolist()


def test_without_the_table_one_sentence_says_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not runner.is_here("s-ffsd")
    with pytest.raises(DatasetError, match=r"s-ffsd: raw/S-FFSD.csv is in none of the folders .* under \$LIGNN_DATA"):
        graphs.load("s-ffsd")
    assert runner.unavailable(["s-ffsd", "tabular"]) == ["s-ffsd"]


@pytest.mark.usefixtures("table")
def test_a_classifier_is_scored_on_labels_that_it_was_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    one = config({"name": "label_input", "base": "logistic"}, training={"metric": "roc_auc"})
    found = run.perform(one)
    assert found["nodes"] == 8
    assert found["scores"]["test"] == found["scores"]["roc_auc"]
    assert 0 <= found["scores"]["average_precision"] <= 1
    assert found["solve"] is None
    again = run.perform(config({"name": "label_reuse", "base": "logistic", "max_steps": 2, "tol": 1e-12}))
    assert again["solve"]["steps"] == 2
    whole = graphs.load("s-ffsd")
    hidden = graphs.choose_split(whole, one.split)[1].test
    flipped = whole.replace(y=torch.where(hidden, 1 - whole.y, whole.y))
    monkeypatch.setitem(graphs.OWN, "s-ffsd", lambda _: flipped)
    other = run.perform(one)["scores"]
    assert other["roc_auc"] == pytest.approx(1 - found["scores"]["roc_auc"])  # the same predictions, other labels


def test_the_view_has_both_ranks_and_gains_over_the_first_row() -> None:
    def record(row: str, against: str | None, run: int, auc: float) -> dict:
        one = {"method": {"base": "boosted"}, "training": {"metric": "roc_auc"}}
        scores = {"test": auc, "roc_auc": auc, "average_precision": auc / 2}
        return tiny.record(row, run, auc, against=against, dataset="s-ffsd", config=one) | {"scores": scores}

    records = [record("a", None, run, 0.6 + 0.1 * run) for run in range(2)]
    records += [record("b", "a", run, 0.7 + 0.1 * run) for run in range(2)]
    tables = [block for block in inputs.view(Results.of("mine", records, None)) if isinstance(block, Table)]
    assert [table.caption.split(" of ")[0] for table in tables[::2]] == [
        "ROC AUC",
        "average precision",
        "Processor seconds",
    ]
    scores = [[(row[0], row[1].split()[0]) for row in table.rows] for table in tables[:4:2]]
    assert scores == [[("a", "65.00"), ("b", "75.00")], [("a", "32.50"), ("b", "37.50")]]
    gains = [table.rows for table in tables[1:4:2]]
    assert gains == [[["b − a", "+10.00 [+10.00, +10.00]"]], [["b − a", "+5.00 [+5.00, +5.00]"]]]


def test_the_study_compares_rows_that_it_has() -> None:
    one = study.load("rows")
    rows = set(one.rows())
    assert {planned.against for planned in one.plan(1)} - {None} <= rows
    assert {planned.graph for planned in one.plan(1)} >= {"s-ffsd", "cora", "tabular", "chains-20"}

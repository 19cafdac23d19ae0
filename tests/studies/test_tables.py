"""The study of tables: payments that links join, accounts with payments as edges, and the nearest rows."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from lignn.errors import DatasetError
from lignn.studies import graphs, run, study, tables
from lignn.studies.case import StudyCase
from lignn.studies.results import Results
from lignn.studies.views import scores
from tests.studies.test_payments import table  # noqa: F401  (a fixture)


def config(dataset, method, **changes):
    split = {"kind": "stratified", "fractions": [0.5, 0, 0.5], "number": 42}
    return StudyCase.of({"dataset": dataset, "task": "classify", "method": method, "split": split} | changes, "here")


def test_payments_are_rows_that_links_join(table):  # noqa: F811
    graph = graphs.load("s-ffsd-linked")
    assert graph.is_row.tolist() == [True] * 60 + [False] * (graph.num_nodes - 60)
    assert graph.y[:60].tolist() == [-1 if row[6] == "2" else int(row[6]) for row in table]
    assert graph.edge_types[:5] == ("Source", "Target", "Location", "Type", "Source by Time")
    assert graph.table.column_names == ["Time", "Source", "Target", "Location", "Type", "Amount"]
    _, first = graphs.choose_split(graph, {"kind": "random", "states": [2], "number": 0})
    _, plain = graphs.choose_split(graphs.load("s-ffsd"), {"kind": "random", "states": [2], "number": 0})
    assert torch.equal(first.test[:60], plain.test[:60])
    _, latest = graphs.choose_split(graph, {"kind": "by_time", "number": 0})
    known = [i for i, row in enumerate(table) if row[6] != "2"]
    assert latest.test.nonzero().flatten().tolist() == known[32:]


def test_accounts_are_frauds_if_one_of_their_payments_is(table):  # noqa: F811
    graph = graphs.load("s-ffsd-accounts")
    known = {}
    for row in table:
        if row[6] != "2":
            known[row[1]] = max(known.get(row[1], 0), int(row[6]))
    labelled = {str(graph.node_ids[i]): int(graph.y[i]) for i in graph.labelled.nonzero().flatten().tolist()}
    assert labelled == known
    number = graph.node_ids.tolist().index("S0")
    assert graph.columns["edges out"][number].as_py() == sum(row[1] == "S0" for row in table)
    assert not any("Labels" in name for name in graph.columns.column_names)


def test_nearest_rows_are_those_of_scikit_learn():
    graph = graphs.load("wine")
    found = run.perform(config("wine", {"name": "nearest_rows"}, task="nearest_rows"))
    _, split = graphs.choose_split(graph, config("wine", {"name": "x"}).split)
    x, y = StandardScaler().fit_transform(np.stack([c.to_numpy() for c in graph.table.columns], 1)), graph.y.numpy()
    train, test = split.train.numpy(), split.test.numpy()
    assert found["scores"]["test"] == pytest.approx(
        KNeighborsClassifier().fit(x[train], y[train]).score(x[test], y[test])
    )


def test_scores_of_the_rarer_class():
    truth = torch.tensor([0, 0, 0, 1, 1])
    ranked = torch.tensor([0.1, 0.6, 0.3, 0.9, 0.4])
    found = tables.scores(torch.stack([1 - ranked, ranked], 1), truth, "roc_auc")
    assert found["test"] == found["roc_auc"] == pytest.approx(roc_auc_score(truth, ranked))
    assert found["average_precision"] == pytest.approx(average_precision_score(truth, ranked))


def test_every_row_can_be_run_and_shown(table):  # noqa: F811
    planned = study.load("tables").plan(1, ["trees*/s-ffsd*", "trees*/wine", "nearest rows/wine"])
    assert {one.dataset for one in planned} == {
        "s-ffsd-linked", "s-ffsd-linked-time", "s-ffsd-accounts", "wine"
    }  # fmt: skip
    chosen = [one for one in planned if one.dataset in ("wine", "s-ffsd-linked-time")]
    found = [one.description | run.perform(one) | {"status": "ok"} for one in chosen]
    blocks = scores.view(Results.of("tables", found, None))
    assert [len(block.rows) for block in blocks] == [3, 4]
    assert all(len(line) == 6 for block in blocks for line in block.rows)


def test_without_the_table_of_payments_a_sentence_says_where_it_belongs(tmp_path, monkeypatch):
    monkeypatch.setenv("LIGNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert not graphs.is_here("s-ffsd-accounts")
    assert graphs.is_here("wine")
    with pytest.raises(DatasetError, match=r"raw/S-FFSD.csv is in none of the folders"):
        graphs.load("s-ffsd-linked")

import json

import numpy as np
import pytest
import torch

from lignn import Adjacency, bench
from lignn.bench import propagation
from lignn.bench.graphs import power_law_graph
from lignn.errors import ConfigError


def test_graph_has_the_size_and_the_heavy_tail_it_is_meant_to_have():
    graph = power_law_graph(17_000, 240_000)
    adj = Adjacency.normalized(graph)
    assert graph.is_undirected
    assert adj.nnz == pytest.approx(240_000, rel=0.05)
    degree = np.sort(np.diff(adj.indptr.numpy()))
    assert degree[-170:].sum() > 0.12 * adj.nnz  # one per cent of the nodes
    assert np.median(degree) < 0.7 * degree.mean()


def test_sides_compute_the_same_product():
    adj = Adjacency.normalized(power_law_graph(300, 3000))
    x = torch.randn(300, 5)
    torch.testing.assert_close(propagation._gather_scatter(adj)(x), adj @ x)
    torch.testing.assert_close(adj.torch_sparse @ x, adj @ x)


def test_records_of_one_case():
    records = propagation._propagation(power_law_graph(300, 3000), columns=4, rounds=2)
    assert [record["case"].split(", ")[-1] for record in records] == ["forward"] * 3 + ["and backward"] * 3
    assert [record["side"] for record in records[:3]] == ["lignn", "torch.sparse", "gather-scatter"]
    assert all(record["config"]["columns"] == 4 and record["median"] > 0 for record in records)


def test_suite_is_printed_and_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(propagation, "run", lambda quick: propagation._building(power_law_graph(300, 3000), 3))
    records = bench.run("propagation", quick=True, file=tmp_path / "bench.json")
    assert json.loads((tmp_path / "bench.json").read_text()) == records
    assert "building, 300 nodes" in capsys.readouterr().out


def test_unknown_suite_is_refused():
    with pytest.raises(ConfigError, match=r"unknown benchmark suite 'propagate': did you mean 'propagation'\?"):
        bench.run("propagate")

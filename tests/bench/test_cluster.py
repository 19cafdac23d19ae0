"""The suites of stores and processes count what they say."""

import pytest

from lignn.bench import batches, store
from lignn.bench.graphs import write_tables
from tests.problems import half_split, random_graph
from tests.stores import stored


def test_the_bias_of_batches_vanishes_if_one_holds_all_parts(tmp_path, monkeypatch):
    graph = stored(random_graph(60).replace(splits=[half_split(60)]), tmp_path / "s", 6)
    monkeypatch.setattr(batches, "PARTS", 6)
    side = batches.Side(graph, graph.splits[0], None)
    side.run()
    found = {size: batches.bias(side, size) for size in (6, 1)}
    assert max(found[6].values()) < 1e-4  # float32
    assert min(found[1].values()) > 1e-3
    assert side.seconds_to(0.0) == side.seconds[0]
    assert side.seconds_to(2.0) is None
    records = list(batches._compared("small", graph, graph.splits[0], 0.01))
    assert [record["side"] for record in records] == ["exact", "1 part", "2 parts", "4 parts", "8 parts"]


def test_a_store_is_built_from_the_generator_and_trained_on(tmp_path):
    write_tables(tmp_path / "tables", 4000, 8000)
    built = store._build((str(tmp_path), 4))
    assert built["mib"] > 0
    found = [
        store._train((str(tmp_path / "store"), side, store.SETTINGS, store.MEMORY))
        for side in ("in memory", "streamed")
    ]
    assert all(len(each["seconds"]) == store.EPOCHS - 1 for each in found)
    assert found[1]["losses"] == pytest.approx(found[0]["losses"], abs=1e-6)
    graph = store.StoredGraph(tmp_path / "store")
    assert (graph.num_nodes, graph.num_features, graph.num_classes, graph.is_undirected) == (4000, 32, 4, True)
    degree = graph.array("in_degree")
    assert degree.max() > 10 * degree.mean()
    assert graph.manifest["edges"] == pytest.approx(16000, rel=0.1)

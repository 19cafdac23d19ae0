"""Which way edges of own tables are followed: chosen on labels that choose, said, kept and applied."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import lignn
from lignn import Graph, NodeClassifier, Split
from lignn.classifier.race import auto, direction
from lignn.graph.reading import BOTH, GIVEN
from tests.faults.test_leaks import flipped

PAIRS = 60
QUICK: dict[str, Any] = {"quality": "fast", "backbones": ["mlp"], "max_epochs": 2, "hidden": 4}


def pairs(forth: bool) -> Graph:
    """Return children whose label is the sign of their parent's feature, behind edges from or to the parents."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal(2 * PAIRS)
    child, parent = [f"c{i}" for i in range(PAIRS)], [f"p{i}" for i in range(PAIRS)]
    labels = ["up" if value > 0 else "down" for value in x[PAIRS:]] + [None] * PAIRS
    nodes = pa.table({"id": child + parent, "label": labels, "x": x})
    source, target = (parent, child) if forth else (child, parent)
    return Graph.from_tables(nodes, pa.table({"source": source, "target": target}))


@pytest.mark.parametrize(("forth", "wanted"), [(True, GIVEN), (False, BOTH)])
def test_the_better_direction_is_followed(forth: bool, wanted: str) -> None:
    graph = pairs(forth)
    found = direction.chosen(auto.setup_of(QUICK, graph, None))
    assert found.graph.reading is not None
    assert found.graph.reading.direction == wanted
    assert found.graph.is_undirected == (wanted == BOTH)
    assert found.told.startswith(f"Edges are followed {'both ways' if wanted == BOTH else 'as given'} (log loss ")


def test_there_is_nothing_to_choose_where_it_was_said_or_nobody_read_tables() -> None:
    graph = pairs(False)
    assert graph.reading is not None
    said = graph.replace(reading=graph.reading.following(GIVEN))
    for each in (said, graph.replace(reading=None), graph.to_undirected()):
        found = direction.chosen(auto.setup_of(QUICK, each, None))
        assert (found.graph is each, found.told) == (True, "")


def test_the_choice_is_saved_and_applied(tmp_path: Any) -> None:
    graph = pairs(False)
    model = NodeClassifier(**QUICK).fit(graph)
    assert model.graph_.is_undirected
    assert model.leaderboard_ is not None
    assert "both ways" in model.leaderboard_.findings[0]
    model.save(tmp_path / "model")
    loaded = lignn.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(graph), model.predict_proba())  # as it was read: one way
    loaded.add_nodes({"x": [5.0]}, [["p0"], ["new"]], ["new"])
    assert loaded.graph_.is_undirected
    model.save(tmp_path / "handed_on", graph=False)
    other = lignn.load(tmp_path / "handed_on")
    assert np.array_equal(other.predict_proba(graph), other.predict_proba(graph.to_undirected()))


def test_test_labels_do_not_choose_the_direction() -> None:
    graph = pairs(False)
    part = torch.arange(2 * PAIRS) % 2
    split = Split((part == 0) & graph.labelled, torch.zeros(2 * PAIRS, dtype=torch.bool), part == 1)
    told = [direction.chosen(auto.setup_of(QUICK, each, split)).told for each in (graph, flipped(graph, split.test))]
    assert told[0] == told[1] != ""

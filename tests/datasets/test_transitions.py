from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from lignn import Graph, measures
from lignn.datasets import statistics
from lignn.errors import ConfigError
from lignn.graph import pictures

GRAPH = Graph([[0, 0, 0, 1, 2], [1, 2, 2, 0, 1]], y=[0, 0, 1], class_names=["left", "right"], name="small")


def test_the_matrix_is_drawn_with_names_and_numbers() -> None:
    axes = Figure().add_subplot()
    image = pictures.draw_transitions(axes, measures.label_transitions(GRAPH).tolist(), GRAPH.class_names)
    np.testing.assert_allclose(image.get_array(), [[50, 50], [100, 0]])
    assert [text.get_text() for text in axes.texts] == ["50", "50", "100", "0"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["left", "right"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["left", "right"]


def test_many_classes_have_few_ticks_and_no_numbers() -> None:
    axes = Figure().add_subplot()
    nodes = np.arange(40)
    graph = Graph(np.stack([nodes, np.roll(nodes, 1)]), y=nodes)
    pictures.draw_transitions(axes, measures.label_transitions(graph).tolist())
    assert len(axes.texts) == 0
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "5", "10", "15", "20", "25", "30", "35"]


def test_save(tmp_path: Path) -> None:
    statistics.save_transitions(GRAPH, tmp_path / "a.png")
    assert imread(tmp_path / "a.png").shape == (810, 960, 4)
    statistics.save_transitions(GRAPH, tmp_path / "a.svg")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "a.svg"]


@pytest.mark.parametrize("name", ["a.jpg.exe", "a"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"no picture can be written with the ending .*; use \.png, \.svg or \.pdf"):
        statistics.save_transitions(GRAPH, tmp_path / name)
    assert list(tmp_path.iterdir()) == []

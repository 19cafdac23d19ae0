"""The validation labels that a classifier holds back by itself."""

import pytest
import torch

from lignn import Graph, Split
from lignn.classifier.holdout import checked_split, hold_back, own_split
from lignn.errors import InputError, SplitError
from tests.problems import random_graph

EDGES = torch.tensor([[0, 1], [1, 0]])


def labelled(counts, unlabelled=5):
    y = [c for c, count in enumerate(counts) for _ in range(count)] + [-1] * unlabelled
    return Graph(EDGES, y=y)


@pytest.mark.parametrize(("count", "held"), [(1, 0), (2, 1), (3, 1), (10, 2), (100, 20)])
def test_a_fifth_of_each_class_is_held_back_and_training_keeps_one(count, held):
    graph = labelled([count, 50])
    split = own_split(graph, seed=3)
    of_first = graph.y == 0
    assert int((split.val & of_first).sum()) == held
    assert int((split.train & of_first).sum()) == count - held
    assert int((split.val & (graph.y == 1)).sum()) == 10
    assert torch.equal(split.train | split.val, graph.labelled)
    assert torch.equal(split.test, ~graph.labelled)


def test_depends_on_the_seed_alone():
    graph = labelled([20, 20])
    assert torch.equal(own_split(graph, 1).val, own_split(graph, 1).val)
    assert not torch.equal(own_split(graph, 1).val, own_split(graph, 2).val)


def test_one_label_a_class_leaves_no_validation():
    assert not own_split(labelled([1, 1, 1]), 0).val.any()


def test_multilabel_nodes_are_one_stratum():
    split = own_split(random_graph(n=30, multilabel=True), 0)
    assert (int(split.train.sum()), int(split.val.sum())) == (24, 6)


def test_labels_are_held_back_from_the_training_part_alone():
    graph = labelled([10, 10])
    train, test = [*range(6), *range(10, 16)], [*range(6, 10), *range(16, 20)]
    split = hold_back(graph, Split.from_indices(graph.num_nodes, train, [], test), 0)
    assert int(split.val.sum()) == 2
    assert (split.train | split.val).nonzero().flatten().tolist() == train
    assert split.test.nonzero().flatten().tolist() == test


def test_bad_labels_are_one_sentence():
    only_b = Graph(EDGES, y=[1, 1, -1], class_names=["a", "b"])
    with pytest.raises(InputError, match="all labels are of class 'b'; at least two classes need one"):
        own_split(only_b, 0)
    with pytest.raises(InputError, match="no node has a label"):
        own_split(Graph(EDGES, x=[[1.0], [2.0]]), 0)
    graph = labelled([3, 3])
    n = graph.num_nodes
    with pytest.raises(InputError, match="all labels among the training nodes are of class 0"):
        checked_split(graph, Split.from_indices(n, [0, 1], [2], []))
    with pytest.raises(SplitError, match="over 3 nodes, the graph has 11"):
        checked_split(graph, Split.from_indices(3, [0], [1], [2]))


def test_something_else_is_no_split():
    with pytest.raises(SplitError, match=r"a lignn\.Split is needed, got str"):
        checked_split(random_graph(), "train")

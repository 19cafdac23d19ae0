"""Splits by time and by group, and what a fit holds back by them."""

import numpy as np
import pytest
import torch

from lignn import Graph, NodeClassifier, splits
from lignn.classifier.holdout import hold_back, own_split
from lignn.errors import GraphError, SplitError
from lignn.evaluation.compare import split_of
from lignn.graph.split import PARTS
from tests.problems import random_graph

N = 40
EDGES = [[0], [1]]


def timed(time, y=None):
    return Graph(EDGES, y=np.arange(len(time)) % 2 if y is None else y, time=np.asarray(time, float))


def parts(split):
    return [getattr(split, part).nonzero().flatten().numpy() for part in PARTS]


def test_training_is_before_validation_and_validation_before_test():
    time = np.random.default_rng(0).permutation(N)
    train, val, test = parts(splits.by_time(timed(time)))
    assert (len(train), len(val), len(test)) == (24, 8, 8)
    assert time[train].max() < time[val].min()
    assert time[val].max() < time[test].min()


def test_nodes_of_one_time_are_in_one_part_and_nodes_without_one_in_none():
    time = np.array([1.0] * 5 + [2] * 3 + [3] * 2 + [np.nan] * 2)
    train, val, test = parts(splits.by_time(timed(time)))
    assert [set(time[nodes]) for nodes in (train, val, test)] == [{1}, {2}, {3}]  # 0.6 of 10 is nearer to 5 than to 8
    with pytest.raises(SplitError, match="no labelled node is left for val, too many have the same time"):
        splits.by_time(timed([1.0] * 10))


def test_times_and_groups_may_be_given_and_must_be_there():
    graph = Graph(EDGES, y=np.arange(10) % 2)
    _, _, test = parts(splits.by_time(graph, time=-np.arange(10.0)))
    assert sorted(test) == [0, 1]
    with pytest.raises(SplitError, match="graph has no time of its nodes; give time=, one number per node"):
        splits.by_time(graph)
    with pytest.raises(SplitError, match="graph has no group of its nodes; give group="):
        splits.grouped(graph)
    with pytest.raises(GraphError, match=r"group: one number per node is needed \(10\)"):
        splits.grouped(graph, group=[1, 2])
    with pytest.raises(SplitError, match="three non-negative shares"):
        splits.by_time(graph, (0.9, 0.3, 0.1), time=np.arange(10.0))


@pytest.mark.parametrize("seed", range(5))
def test_no_group_is_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(-1, 12, size=200)
    graph = Graph(EDGES, y=np.arange(200) % 3, group=group)
    found = parts(splits.grouped(graph, seed=seed))
    assert sorted(np.concatenate(found)) == list(range(200))
    seen = [set(group[nodes]) - {-1} for nodes in found]
    assert sum(map(len, seen)) == len(set.union(*seen)) == 12
    assert 100 <= len(found[0]) <= 140  # within half a group of 120
    again = parts(splits.grouped(graph, seed=seed))
    assert all(np.array_equal(a, b) for a, b in zip(found, again, strict=True))


def test_one_group_cannot_be_divided():
    with pytest.raises(SplitError, match="too many have the same group"):
        splits.grouped(Graph(EDGES, y=np.arange(10) % 2, group=[3] * 10))


def test_fit_holds_back_the_latest_labels():
    time = np.random.default_rng(1).permutation(N).astype(float)
    time[:3] = np.nan
    y = np.where(np.arange(N) < 30, np.arange(N) % 2, -1)
    graph = timed(time, y)
    split = own_split(graph, seed=0)
    validation = split.val.numpy()
    known = (y >= 0) & ~np.isnan(time)
    assert validation.sum() == 5  # a fifth of 27
    assert time[validation].min() > time[known & ~validation].max()
    assert torch.equal(split.train | split.val, graph.labelled)
    assert torch.equal(own_split(graph, seed=9).val, split.val)


def test_a_class_that_came_last_stays_in_training():
    graph = timed(np.arange(10.0), [0, 1] * 4 + [2, 1])
    split = own_split(graph, 0)
    assert split.val.nonzero().flatten().tolist() == [9]


@pytest.mark.parametrize("seed", range(4))
def test_fit_holds_back_whole_groups_and_the_last_label_of_a_class_stays(seed):
    group = np.repeat(np.arange(10), 4)
    y = np.arange(N) % 2
    y[0] = 2
    graph = Graph(EDGES, y=y, group=group)
    split = own_split(graph, seed)
    train, val, _ = parts(split)
    assert not set(group[train]) & set(group[val])
    assert 2 in y[train]
    assert 0 < len(val) <= 8


def test_without_differing_times_or_groups_labels_are_held_back_class_by_class():
    graph = timed([5.0] * 20)
    plain = own_split(graph.replace(time=None), 3)
    assert torch.equal(own_split(graph, 3).val, plain.val)
    unknown = graph.replace(time=np.full(20, np.nan), group=np.full(20, -1))
    assert torch.equal(own_split(unknown, 3).val, plain.val)
    assert torch.equal(hold_back(unknown, plain, 3).test, plain.test)


def test_a_fit_and_a_comparison_use_them():
    graph = random_graph(n=N).replace(time=np.arange(N, dtype=float))
    classifier = NodeClassifier("lpa").fit(graph)
    assert classifier.split_.val.nonzero().flatten().tolist() == list(range(32, 40))
    assert parts(split_of(graph, 3))[2].tolist() == list(range(32, 40))
    group = np.arange(N) // 4
    drawn = [parts(split_of(random_graph(n=N).replace(group=group), number)) for number in range(2)]
    for found in drawn:
        assert not set(group[found[0]]) & set(group[found[2]])
    assert not np.array_equal(drawn[0][2], drawn[1][2])

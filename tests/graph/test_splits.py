"""Random splits: sizes, strata, seeds, and the splits of the paper."""

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lignn import Graph, splits
from lignn.errors import SplitError

PARTS = ("train", "val", "test")


def labelled_graph(sizes: tuple[int, ...] = (20, 30, 50), unlabelled: int = 10) -> Graph:
    y = torch.cat([torch.full((size,), c) for c, size in enumerate(sizes)] + [torch.full((unlabelled,), -1)])
    return Graph([[], []], y=y[torch.randperm(len(y), generator=torch.Generator().manual_seed(1))])


def counts(graph: Graph, part: torch.Tensor) -> list[int]:
    return torch.bincount(graph.y[part], minlength=graph.num_classes).tolist()


@pytest.mark.parametrize("name", ["chameleon", "squirrel", "amazon_photo", "coauthor_physics"])
def test_splits_of_the_paper(data_root, name):
    graph = Graph.read(data_root / f"{name}.npz")
    ours = splits.per_class(graph, seed=42)
    with np.load(data_root / "paper_splits.npz") as published:
        assert len(ours) == len({key.split("/")[1] for key in published.files if key.startswith(f"{name}/")})
        for run, split in enumerate(ours):
            for part in PARTS:
                nodes = getattr(split, part).nonzero().flatten().tolist()
                assert nodes == sorted(published[f"{name}/{run}/{part}"].tolist())


def test_per_class_sizes():
    graph = labelled_graph()
    drawn = splits.per_class(graph, train=5, val=20, test=30, seed=3, runs=4)
    assert len(drawn) == 4
    for split in drawn:
        assert counts(graph, split.train) == [5, 5, 5]
        assert (int(split.val.sum()), int(split.test.sum())) == (20, 30)
        assert graph.labelled[split.train | split.held_out].all()


def test_per_class_depends_on_the_seed_alone():
    graph = labelled_graph()
    torch.manual_seed(1)
    first = splits.per_class(graph, 5, 20, 30, seed=3, runs=3)
    torch.manual_seed(2)
    again = splits.per_class(graph, 5, 20, 30, seed=3, runs=2)
    other = splits.per_class(graph, 5, 20, 30, seed=4, runs=1)
    assert all(torch.equal(a.test, b.test) for a, b in zip(first[:2], again, strict=True))
    assert not torch.equal(first[0].test, first[1].test)
    assert not torch.equal(first[0].test, other[0].test)


def test_per_class_refusals():
    graph = labelled_graph((3, 40))
    with pytest.raises(SplitError, match="class 0 has 3 labelled nodes, training needs 5"):
        splits.per_class(graph, train=5)
    with pytest.raises(SplitError, match="class 'rare' has 3 labelled nodes"):
        splits.per_class(graph.replace(class_names=["rare", "common"]), train=5)
    with pytest.raises(SplitError, match=r"37 labelled nodes are left after training, 30 \+ 8 are needed"):
        splits.per_class(graph, train=3, val=30, test=8)
    with pytest.raises(SplitError, match="has no labels to split"):
        splits.per_class(Graph([[0], [1]]))
    with pytest.raises(SplitError, match=r"needs one label per node; use splits\.stratified"):
        splits.per_class(Graph([[0], [1]], y=[[0, 1], [1, 1]]))


def test_stratified_keeps_the_shares_in_every_class():
    graph = labelled_graph()
    split = splits.stratified(graph, (0.6, 0.2, 0.2), seed=5)
    assert counts(graph, split.train) == [12, 18, 30]
    assert counts(graph, split.val) == [4, 6, 10]
    assert counts(graph, split.test) == [4, 6, 10]
    assert torch.equal(split.train | split.held_out, graph.labelled)


def test_stratified_may_leave_nodes_out():
    graph = labelled_graph()
    split = splits.stratified(graph, (0.1, 0.1, 0.3))
    assert counts(graph, split.train) == [2, 3, 5]
    assert counts(graph, split.test) == [6, 9, 15]


def test_stratified_depends_on_the_seed_alone():
    graph = labelled_graph()
    first, again, other = (splits.stratified(graph, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.train, again.train)
    assert not torch.equal(first.train, other.train)


def test_stratified_multilabel():
    y = torch.ones(50, 2, dtype=torch.int8)
    y[:10] = -1
    split = splits.stratified(Graph([[], []], y=y), (0.5, 0.25, 0.25))
    assert [int(getattr(split, part).sum()) for part in PARTS] == [20, 10, 10]
    assert not (split.train | split.held_out)[:10].any()


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.6, 0.3, 0.2), (-0.1, 0.5, 0.5)])
def test_stratified_refusals(fractions):
    with pytest.raises(SplitError, match="three non-negative shares that sum to at most 1 are needed"):
        splits.stratified(labelled_graph(), fractions)


class CountEntries(TorchDispatchMode):
    """Counts the entries of all tensors that operators return."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        self.entries += sum(leaf.numel() for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor))
        return found


def test_the_work_grows_with_the_nodes_and_not_with_nodes_times_classes():
    n = 2_000
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), y=torch.arange(n))
    with CountEntries() as counted:
        split = splits.stratified(graph, (1.0, 0.0, 0.0))
    assert split.train.all()
    assert counted.entries < 100 * n

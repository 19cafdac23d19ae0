"""Products of a batch: what is outside comes from the history, and gradients of it are dropped."""

import pytest
import scipy.sparse as sp
import torch

from lignn.propagation import StoredRows
from lignn.propagation.batch import BatchAdjacency, BatchRows, History
from lignn.propagation.rows import dense
from lignn.propagation.streamed import StreamedAdjacency
from lignn.store import Batch
from tests.problems import random_graph
from tests.stores import stored

N, WIDTH = 40, 3


def store_of(tmp_path, **options):
    return stored(random_graph(N, directed=True, weighted=True, num_features=6, **options), tmp_path / "s")


def batch_of(store, parts):
    bounds = store.bounds.tolist()
    return Batch.of(store.share, [slice(bounds[part], bounds[part + 1]) for part in parts])


def states(count, seed=0):
    return torch.randn(count, N, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).unbind()


@pytest.mark.parametrize("normalization", ["symmetric", "row", "none"])
@pytest.mark.parametrize("types", [None, ("a", "b")])
def test_rows_outside_are_those_of_the_last_product(tmp_path, normalization, types):
    store = store_of(tmp_path, edge_types=types)
    whole = StreamedAdjacency(store, store.share, normalization, True, torch.float64)
    history = History(N)
    first, second, third = states(3)
    everything = BatchAdjacency(whole, batch_of(store, range(5)), history)
    assert torch.equal(dense(everything @ first), dense(whole @ first))
    now = first.clone()
    for parts, new in (((1, 3), second), ((2,), third)):
        batch = batch_of(store, parts)
        now[batch.positions] = new[batch.positions]
        history.visit()
        found = BatchAdjacency(whole, batch, history) @ new[batch.positions]
        assert torch.allclose(dense(found), dense(whole @ now)[batch.positions], rtol=0, atol=1e-14)


def test_gradients_stay_in_the_batch(tmp_path):
    store = store_of(tmp_path)
    whole = StreamedAdjacency(store, store.share, "symmetric", True, torch.float64)
    history, batch = History(N), batch_of(store, (0, 4))
    matrix = whole.product(torch.eye(N, dtype=torch.float64), transposed=False)
    block = matrix[batch.positions][:, batch.positions]
    BatchAdjacency(whole, batch_of(store, range(5)), history) @ states(1)[0]
    history.visit()
    x = states(1)[0][batch.positions].requires_grad_()
    upstream = states(1, seed=1)[0][batch.positions]
    dense(BatchAdjacency(whole, batch, history) @ x).backward(upstream)
    assert torch.allclose(x.grad, block.T @ upstream, rtol=0, atol=1e-14)
    assert block.count_nonzero() < matrix[batch.positions].count_nonzero()  # there was something to drop


def test_products_are_told_apart_by_map_and_number():
    history, (one, two, other) = History(N), states(3)
    for name, rows in (("solved", one), ("taped", other)):
        with history.within(name):
            history.next(rows).copy_(rows)
            history.next(two).copy_(two)
    history.next(two).copy_(two)  # of features
    some = one[:4]
    with history.within("taped"):
        assert torch.equal(history.next(some), other)
    with history.within("solved"):
        assert torch.equal(history.next(some), one)
        assert torch.equal(history.next(some), two)
        with pytest.raises(AssertionError):
            history.next(some)  # a product that the visit of all parts has not made


@pytest.mark.parametrize("sparse", [False, True])
def test_features_of_a_batch_are_rows_of_all(tmp_path, sparse):
    graph = random_graph(N, num_features=6)
    if sparse:
        graph = graph.replace(x=sp.csr_array(graph.x.numpy() * (graph.x.numpy() > 0)))
    store = stored(graph, tmp_path / "s", keeps_features=False)
    whole = StoredRows.of(store, store.share, torch.float64, False)
    operator = StreamedAdjacency(store, store.share, "row", True, torch.float64)
    batch, weight = batch_of(store, (1, 4)), torch.eye(6, dtype=torch.float64)
    rows = BatchRows(whole, batch)
    product = dense(whole @ weight)[batch.positions]
    assert torch.equal(dense(rows @ weight), product)
    propagated = BatchAdjacency(operator, batch, History(N)) @ rows
    assert torch.equal(dense(propagated @ weight), dense((operator @ whole) @ weight)[batch.positions])


def test_a_batch_draws_for_its_own_rows(tmp_path):
    store = store_of(tmp_path)

    def draw(share):
        generator = torch.Generator().manual_seed(0)
        return share.drawn(9, lambda size: torch.rand(size, generator=generator) > 0.5), share.rand(generator)

    everything, part = batch_of(store, range(5)), batch_of(store, (2,))
    for found, wanted in zip(draw(everything), draw(store.share), strict=True):
        assert (torch.as_tensor(found) == torch.as_tensor(wanted)).all()
    assert sorted(part.number.tolist()) == list(range(len(part)))
    assert len(draw(part)[0]) == len(part) < N

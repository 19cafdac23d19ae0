"""Epochs of batches: the same as exact ones if there is one batch, no leak through what is remembered, resumed."""

from dataclasses import replace

import pytest
import torch

from lignn import NodeClassifier, Split
from lignn.errors import ConfigError, InputError
from lignn.labels import KnownLabels
from lignn.methods import Carry, build
from lignn.methods.batches import epoch_of_batches
from lignn.training import Training, assemble, scorer
from lignn.training.adam import Adam
from tests.problems import half_split, random_graph
from tests.stores import stored

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")

N, PARTS = 40, 5
TIGHT = {"solver": "picard", "tol": 1e-14, "max_steps": 500, "adjoint": "relative", "contraction": "proved"}
METHODS = {
    "lignn": {"method": "lignn", **TIGHT, "gradient": "exact"},
    "lignn paper": {"method": "lignn", **TIGHT, "gradient": "paper", "jacobian": "diagonal"},
    "lignn feature mask": {"method": "lignn", **TIGHT, "feature_mask": 0.4, "gradient": "exact", "warm_start": True},
    "lignn forward mask": {"method": "lignn", **TIGHT, "forward_mask": True},
    "label input": {"method": "label_input"},
    "lae": {"method": "lae", "tol": 1e-14, "max_steps": 500, "contraction": "proved"},
    "backbone": {"method": "backbone"},
}
BACKBONES = ["gcn", "sgc", "sage", "gcnii", "mlp", "jknet", "rgcn", "gin"]


def store_of(tmp_path, y=None, **options):
    graph = random_graph(N, num_features=12, directed=True, weighted=True, **options)
    graph = graph.replace(splits=[half_split(N)])
    return stored(graph if y is None else graph.replace(y=y), tmp_path / "s", PARTS)


def assembled(store, method="lignn", backbone="gcn", class_weight=None, seed=0, **options):
    """A method with weights from the seed, on the training labels of the store, in double precision."""
    known = KnownLabels.of(store, store.splits[0].train, torch.float64)
    known = known if class_weight is None else replace(known, class_weight=torch.tensor(class_weight))
    network = {"backbone": backbone, "backbone_options": {"hidden": 8}, "edge_types": store.edge_types}

    def make(generator):
        features, classes = store.num_features, store.num_classes
        return build(method, features, classes, generator=generator, **network, **options)

    return assemble(make, store, known, seed=seed)


def trained(store, batch_parts, epochs=4, **options):
    assembly = assembled(store, **options)
    settings = Training(max_epochs=epochs, batch_parts=batch_parts)
    history = assembly.train(scorer(store, store.splits[0]), settings)
    return torch.cat([weight.detach().flatten() for weight in assembly.method.parameters()]), losses(history)


def losses(history):
    return torch.tensor([record["loss"] for record in history.epochs], dtype=torch.float64)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_one_batch_of_all_parts_is_exact(tmp_path, backbone):
    store = store_of(tmp_path, edge_types=("a", "b") if backbone == "rgcn" else None)
    options = METHODS["label input" if backbone == "gin" else "lignn"]  # gin has no equilibrium that is proved
    wanted, exact = trained(store, None, backbone=backbone, **options)
    found, all_parts = trained(store, PARTS, backbone=backbone, **options)
    other, _ = trained(store, 2, backbone=backbone, **options)
    assert torch.allclose(all_parts, exact, rtol=0, atol=1e-10)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-10)
    assert not torch.allclose(other, wanted, rtol=0, atol=1e-3)


def visited(assembly, carry=None, generator=None, batch_parts=2):
    """Run an epoch of batches without updates; return the exact epoch, the batches, and what they supervised."""
    method, outputs, batches = assembly.method.train(), [], []
    original = KnownLabels._supervised

    def noted(labels, output, nodes):
        rows, target = original(labels, output, nodes)
        outputs.append(rows.detach().clone())
        return rows, target

    generator, order = generator or torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    carry = carry or Carry()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KnownLabels, "_supervised", noted)
        epoch = epoch_of_batches(method, assembly.training, generator, carry, batch_parts, order, batches.append)
    return epoch, batches, outputs


@pytest.mark.parametrize("class_weight", [None, [1.0, 3.0, 0.5]])
@pytest.mark.parametrize("name", METHODS)
def test_with_a_fresh_history_batches_predict_as_the_exact_epoch(tmp_path, name, class_weight):
    """No batch sees a label that the exact epoch hides, or any other number than the exact epoch has."""
    store = store_of(tmp_path)
    assembly = assembled(store, class_weight=class_weight, **METHODS[name])
    epoch, batches, outputs = visited(assembly)
    wanted = assembly.method.epoch(assembly.training, torch.Generator().manual_seed(1), Carry())
    assert torch.allclose(epoch.loss, wanted.loss.detach(), rtol=0, atol=1e-12)
    assert len(batches) == -(-PARTS // 2)
    mean = sum(batch.loss.item() for batch in batches) / len(batches)
    assert mean == pytest.approx(wanted.loss.item(), abs=1e-10)
    exact, *of_batches = outputs
    rows = [batch.problem.batch.positions[_supervised(batch)] for batch in batches]
    order = torch.cat(rows).argsort()
    assert torch.allclose(torch.cat(of_batches)[order], exact, rtol=0, atol=1e-10)


def _supervised(batch):
    known = batch.problem.labels
    return known.mask if known.drawn is None else known.mask & known.drawn


@pytest.mark.parametrize("name", ["lignn forward mask", "label input"])
def test_labels_that_supervise_are_no_input_of_their_update(tmp_path, name):
    """In the second epoch too, where the first one was given labels that now supervise."""
    graph = random_graph(N, num_features=12, directed=True, weighted=True)
    found, epochs = [], []
    flipped = graph.y
    for _ in range(3):
        store = store_of(tmp_path, flipped)
        assembly, generator = assembled(store, **METHODS[name]), torch.Generator().manual_seed(1)
        first = visited(assembly, generator=generator)[0]
        second, _, outputs = visited(assembly, assembly.method.passed_on(first), generator)
        found.append(outputs)
        epochs.append((first, second))
        known, y, places = store.splits[0].train, store.y.clone(), store.number
        hidden = second.hidden & known if len(found) == 1 else ~second.hidden & known  # the other ones at last
        y[hidden] = (y[hidden] + 1) % 3
        flipped = torch.empty_like(y).index_copy(0, places, y)
    assert ((epochs[0][1].hidden & ~epochs[0][0].hidden) & store.splits[0].train).any()
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[1], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(found[0], found[2], strict=True))


def fitted(store, batch_parts=2, **options):
    settings = {"precision": "float64", "hidden": 8, "max_epochs": 4, "batch_parts": batch_parts} | options
    return NodeClassifier(**settings).fit(store, store.splits[0])


def test_test_labels_change_nothing(tmp_path):
    graph, split = random_graph(N), half_split(N)
    one, two = (fitted(store_of(tmp_path, y)) for y in (graph.y, torch.where(split.test, (graph.y + 1) % 3, graph.y)))
    assert torch.equal(losses(one.history_), losses(two.history_))
    assert torch.equal(one._fitted.prediction.probabilities, two._fitted.prediction.probabilities)


def test_the_seed_decides_the_batches(tmp_path):
    store = store_of(tmp_path)
    one, same, other = (trained(store, 2, seed=seed, **METHODS["lignn"])[0] for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    orders = [[batch.problem.batch.stretches for batch in visited(assembled(store))[1]] for _ in range(2)]
    assert orders[0] == orders[1]
    rows = torch.cat([torch.arange(piece.start, piece.stop) for batch in orders[0] for piece in batch])
    assert rows.sort().values.tolist() == list(range(N))


@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_interrupted_training_goes_on_to_the_bit(tmp_path, preset, monkeypatch):
    store, options = store_of(tmp_path), {"max_epochs": 6, "preset": preset, "contraction": "free"}
    settings = {"precision": "float64", "hidden": 8, "batch_parts": 2} | options
    updates, step = [], Adam.step

    def stop(optimizer):
        updates.append(optimizer)
        if len(updates) == 11:  # the second of three batches of the fourth epoch
            raise KeyboardInterrupt
        step(optimizer)

    monkeypatch.setattr(Adam, "step", stop)
    with pytest.raises(KeyboardInterrupt):
        NodeClassifier(**settings).fit(store, store.splits[0], checkpoint=tmp_path / "c")
    monkeypatch.undo()
    resumed = NodeClassifier(**settings).fit(store, store.splits[0], checkpoint=tmp_path / "c")
    whole = fitted(store, **options)
    assert torch.equal(losses(resumed.history_), losses(whole.history_))
    assert torch.equal(resumed._fitted.prediction.probabilities, whole._fitted.prediction.probabilities)
    with pytest.raises(InputError, match="another run"):
        NodeClassifier(**settings | {"batch_parts": 3}).fit(store, store.splits[0], checkpoint=tmp_path / "c")


def test_updates_of_labels_train_on_by_batches(tmp_path):
    found = []
    for batch_parts in (None, 2):
        classifier = fitted(store_of(tmp_path), batch_parts)
        classifier.update_labels({0: 1}, epochs=3)
        found.append(classifier.predict_proba())
    assert not (found[0] == found[1]).all()
    assert abs(found[0] - found[1]).max() < 0.1


def test_parts_without_labels_that_supervise_are_passed_over(tmp_path):
    store = store_of(tmp_path)
    train = torch.zeros(N, dtype=torch.bool)
    train[[0, 1]] = True  # both in the first part
    split = Split(train, ~train & (torch.arange(N) < 20), torch.arange(N) >= 20)
    store = store.replace(splits=[split])
    _, batches, _ = visited(assembled(store), batch_parts=1)
    assert len(batches) == 1


def communities(seed=0):
    """Return eight communities of fifty nodes, two of each class, with noisy features."""
    generator = torch.Generator().manual_seed(seed)
    community = torch.arange(400) // 50
    ends = torch.randint(400, (2, 6000), generator=generator)
    inside = (community[ends[0]] == community[ends[1]]) | (torch.rand(6000, generator=generator) < 0.02)
    graph = random_graph(400, num_classes=4, num_features=8, seed=seed)
    y = community % 4
    x = torch.nn.functional.one_hot(y, 8) + torch.randn(400, 8, generator=generator, dtype=torch.float64)
    return graph.replace(edge_index=ends[:, inside & (ends[0] != ends[1])], y=y, x=x).to_undirected()


def test_batches_learn_as_much_as_exact_epochs(tmp_path):
    graph = communities()
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    graph = graph.replace(splits=[Split.from_indices(400, order[:80], order[80:160], order[160:])])
    store = stored(graph, tmp_path / "s", 8)
    options = {"preset": "paper", "hidden": 16, "lr": 0.05, "max_epochs": 12}
    exact, batches = (fitted(store, batch_parts, **options) for batch_parts in (None, 2))
    assert exact.score("test") > 0.9
    assert batches.score("test") > exact.score("test") - 0.03
    assert losses(batches.history_)[3] < losses(exact.history_)[3]  # four updates an epoch


def test_what_batches_cannot_do_is_refused(tmp_path):
    store = store_of(tmp_path)
    for options, message in (
        ({"batch_parts": 0}, "batch_parts: at least 1"),
        ({"batch_parts": 9}, "5 parts, 9 are wanted"),
        ({"batch_parts": 1.5}, "batch_parts: a whole number"),
        ({"method": "label_reuse"}, "label_reuse makes a fixed number of passes"),
    ):
        with pytest.raises(ConfigError, match=message):
            fitted(store, **options)
    with pytest.raises(ConfigError, match="is in memory, and only a store has parts"):
        NodeClassifier(batch_parts=2).fit(random_graph(N))

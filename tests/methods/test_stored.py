"""A stored graph is trained on with the same numbers as a graph in memory, by one process and by several."""

import os
import signal

import numpy as np
import pyarrow as pa
import pytest
import torch

from lignn import Graph, NodeClassifier, Split
from lignn.backbones import GCN
from lignn.bench.cluster import in_processes
from lignn.classifier.planning import plan
from lignn.classifier.saving import load
from lignn.classifier.spec import Spec
from lignn.classifier.update import relabelled
from lignn.errors import ConfigError, InputError, ProcessError
from lignn.processes import current
from lignn.store import StoredGraph
from tests.problems import half_split, random_graph
from tests.stores import stored

pytestmark = pytest.mark.filterwarnings("ignore::lignn.errors.ConvergenceWarning")

N = 40


def options(**more):
    return {"precision": "float64", "hidden": 8, "max_epochs": 3} | more


def losses(classifier):
    return torch.tensor([record["loss"] for record in classifier.history_.epochs], dtype=torch.float64)


def assert_same(found, wanted, number, atol=1e-10):
    assert torch.allclose(losses(found), losses(wanted), rtol=0, atol=atol)
    assert found.history_.final == pytest.approx(wanted.history_.final)
    one, two = torch.from_numpy(found.predict_proba()), torch.from_numpy(wanted.predict_proba())
    assert torch.allclose(one, two[number], rtol=0, atol=100 * atol)  # a temperature is found to about 1e-8


@pytest.mark.parametrize("keeps_features", [True, False])
@pytest.mark.parametrize("backbone", ["gcn", "sgc", "sage", "gcnii", "mlp", "jknet", "gin"])
def test_backbones_as_in_memory(tmp_path, backbone, keeps_features):
    directed = backbone in ("sage", "gcn")
    graph = random_graph(N, directed=directed, weighted=directed, num_features=12)  # wider than the hidden layer
    store = stored(graph, tmp_path / "s", keeps_features=keeps_features)
    for preset in ("paper", "practical"):
        settings = options(backbone=backbone, preset=preset, contraction="free" if backbone == "gin" else None)
        assert_same(NodeClassifier(**settings).fit(store), NodeClassifier(**settings).fit(graph), store.number)


def test_a_residual_network_as_in_memory(tmp_path):
    graph = random_graph(N, num_features=12)
    store = stored(graph, tmp_path / "s")
    settings = options(backbone_options={"num_layers": 3, "residual": True, "norm": "layer"})
    assert_same(NodeClassifier(**settings).fit(store), NodeClassifier(**settings).fit(graph), store.number)


@pytest.mark.parametrize("backbone", ["rgcn", "gcn"])
def test_types_of_edges_as_in_memory(tmp_path, backbone):
    graph = random_graph(N, directed=True, weighted=True)
    kinds = torch.arange(graph.num_edges) % 3
    graph = graph.replace(edge_type=kinds, edge_types=("a", "b", "c"))
    for both in (False, True):
        options_ = options(backbone=backbone, both_directions=both if backbone == "rgcn" else None, calibrate=False)
        store = stored(graph, tmp_path / "s", keeps_features=both)
        assert_same(NodeClassifier(**options_).fit(store), NodeClassifier(**options_).fit(graph), store.number)


def test_tables_are_prepared_as_in_memory(tmp_path):
    graph = random_graph(N)
    columns = {"colour": [["red", "blue"][i % 2] for i in range(N)], "size": np.linspace(0, 9, N) ** 2}
    graph = Graph(graph.edge_index, y=graph.y, table=pa.table(columns), num_nodes=N)
    store = stored(graph, tmp_path / "s")
    found, wanted = NodeClassifier(**options()).fit(store), NodeClassifier(**options()).fit(graph)
    assert_same(found, wanted, store.number)
    assert [column.name for column in found.features_] == ["colour", "size"]
    found.save(tmp_path / "model")
    other = Graph(graph.edge_index, table=pa.table(columns), num_nodes=N)
    assert np.allclose(load(tmp_path / "model").predict_proba(other), wanted.predict_proba(other), atol=1e-8)
    with pytest.raises(InputError, match="--features raw"):
        NodeClassifier(**options(features="raw")).fit(store)


@pytest.mark.parametrize("method", ["backbone", "label_input", "label_reuse", "lae", "lignn"])
def test_methods_as_in_memory(tmp_path, method):
    graph = random_graph(N, multilabel=method == "lignn")
    store = stored(graph, tmp_path / "s")
    split = half_split(N)
    share = Split(*(getattr(split, part)[store.number] for part in ("train", "val", "test")))
    settings = options(method=method, refit=method == "lae")
    found, wanted = NodeClassifier(**settings).fit(store, share), NodeClassifier(**settings).fit(graph, split)
    assert_same(found, wanted, store.number)
    assert found.score("test") == pytest.approx(wanted.score("test"))
    decision, plain = found.decision(), wanted.decision()
    assert (decision.evidence == plain.evidence[store.number]).all()
    assert decision.node_ids.tolist() == [str(number) for number in store.number.tolist()]


def test_labels_of_test_nodes_change_nothing(tmp_path):
    graph, split = random_graph(N), half_split(N)
    found = []
    for y in (graph.y, torch.where(split.test, (graph.y + 1) % 3, graph.y)):
        store = stored(graph.replace(y=y, splits=[split]), tmp_path / "s")
        fitted = NodeClassifier(**options()).fit(store, store.splits[0])
        found.append((losses(fitted), fitted._fitted.prediction.probabilities))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


def test_labels_are_updated_and_models_saved_as_in_memory(tmp_path):
    graph = random_graph(N)
    graph = graph.replace(y=torch.where(torch.arange(N) < 30, graph.y, -1))
    store = stored(graph, tmp_path / "s")
    free = options(contraction="free")
    found, wanted = NodeClassifier(**free).fit(store), NodeClassifier(**free).fit(graph)
    found.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert torch.equal(torch.from_numpy(loaded.predict_proba()), torch.from_numpy(found.predict_proba()))
    wanted.update_labels({35: 2, 1: None})
    loaded.update_labels({"35": 2, "1": None})
    assert_same(loaded, wanted, store.number)
    told, plain = loaded.diagnose(), wanted.diagnose()
    assert told.unique == plain.unique
    assert told.spectral_radius is None


def test_a_plan_counts_hidden_layers_that_are_propagated(tmp_path):
    store = stored(random_graph(N), tmp_path / "s")

    def layers(**settings):
        return plan(Spec.resolve(options(**settings)), store).kept["hidden layers"]

    for backbone in ("gcn", "sage", "gin", "rgcn"):
        assert layers(backbone=backbone) == 0
        assert layers(backbone=backbone, backbone_options={"num_layers": 3}) > 0
        assert layers(backbone=backbone, backbone_options={"num_layers": 1, "residual": True}) > 0
    assert layers(backbone=GCN, backbone_options={"num_layers": 3}) > 0  # a class as its name
    assert layers(backbone="mlp", backbone_options={"num_layers": 3}) == 0
    assert layers(backbone="jknet") > 0


def test_what_cannot_be_streamed_is_refused(tmp_path):
    store = stored(random_graph(N), tmp_path / "s")
    for settings, message in (
        ({"method": "lpa"}, "lpa needs the graph in memory"),
        (
            {"method": "label_input", "method_options": {"base": "boosted"}},
            "label_input over boosted needs the graph in memory",
        ),
        ({"backbone": "gat", "hidden": 8}, "'gat' needs the graph in memory; of a store, use gcn, gcnii"),
        ({"backbone_options": {"norm": "batch"}}, "norm: batch normalisation .* of a store, use norm='layer'"),
        ({"inductive": True}, "needs the graph in memory"),
    ):
        with pytest.raises(ConfigError, match=message):
            NodeClassifier(**settings).fit(store)


def test_what_needs_the_graph_in_memory_says_so(tmp_path):
    graph = random_graph(N)
    graph = graph.replace(y=torch.where(torch.arange(N) < 30, graph.y, -1))
    store = stored(graph, tmp_path / "s")
    fitted = NodeClassifier(**options()).fit(store)
    for call in (
        lambda: fitted.add_nodes(np.zeros((1, graph.num_features)), [[0], [N]], ids=["new"]),
        lambda: fitted.remove_nodes([0]),
        lambda: fitted.suggest(),
        lambda: fitted.remove_edges([[0], [1]]),
    ):
        with pytest.raises(InputError, match="in memory"):
            call()
    assert np.array_equal(fitted.predict(StoredGraph(store.path)), fitted.predict())  # known by its content
    assert fitted.predict(graph).shape == (N,)


SHARED = options(preset="paper", backbone="sage", max_epochs=4, dropout=0.3, input_dropout=0.2, feature_mask=0.2)
"""All that is drawn at random, but one training instead of one per fold."""


def trained_on(path):
    """Fit, and train on with a label of the second process, which had none if the store has few."""
    classifier = NodeClassifier(**SHARED | {"max_epochs": 2}).fit(StoredGraph(path))
    classifier.update_labels(correction(StoredGraph(path)), epochs=2)
    return classifier


def fit_share(path, few, checkpoint, model):
    """Fit in one of two processes, then once more; this time the second process is killed after two epochs."""
    trained_on(few).save(f"{model}-few")
    classifier = NodeClassifier(**SHARED)
    classifier.fit(StoredGraph(path))
    found = {"losses": losses(classifier).numpy(), "halo": len(exchanges(classifier)[0].nodes)}
    found["bytes"] = sum(each.bytes for each in exchanges(classifier))
    new = correction(StoredGraph(path))
    fitted = classifier._fitted
    labels = fitted.prediction.problem.labels
    found["same"] = relabelled(labels, fitted.graph, fitted.classes, new).same_as(labels)
    classifier.update_labels(new)
    found["unique"] = classifier.diagnose().unique
    classifier.save(model)

    def progress(history):
        if len(history.epochs) == 2 and current().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        classifier.fit(StoredGraph(path), progress=progress, checkpoint=checkpoint)
    except ProcessError as error:
        found["told"] = str(error)
    return found


def resumed_share(path, checkpoint):
    """Go on from a checkpoint in one of several processes; return what came out, and how many epochs were trained."""
    classifier, trained = NodeClassifier(**SHARED), []
    classifier.fit(StoredGraph(path), checkpoint=checkpoint, progress=trained.append)
    probabilities = classifier._fitted.prediction.probabilities.numpy()
    return {"losses": losses(classifier).numpy(), "probabilities": probabilities, "trained": len(trained)}


def correction(graph):
    """Return another label for the last node, which the second process holds."""
    return {N - 1: (int(graph.y[-1]) + 1) % 3}


def exchanges(classifier):
    operators = classifier._fitted.prediction.problem._derived.values()
    return [exchange for each in operators for exchange in getattr(each, "exchanges", {}).values()]


def test_two_processes_and_one_that_is_killed(tmp_path):
    store = stored(random_graph(N, directed=True, weighted=True), tmp_path / "s", parts=6)
    checkpoint, model = tmp_path / "c", tmp_path / "m"
    some = random_graph(N)
    few = stored(some.replace(y=torch.where(torch.arange(N) < N // 2, some.y, -1)), tmp_path / "few", parts=6)
    found, dead = in_processes(2, fit_share, store.path, few.path, checkpoint, model)
    assert dead is None
    assert "another process of this run has ended" in found["told"]
    kept = checkpoint.read_bytes()
    resumed = NodeClassifier(**SHARED).fit(StoredGraph(store.path), checkpoint=checkpoint)
    whole = NodeClassifier(**SHARED).fit(StoredGraph(store.path))
    assert resumed.history_.epochs[0]["seconds"] != whole.history_.epochs[0]["seconds"]  # it was read, not trained
    for each in (torch.from_numpy(found["losses"]), losses(resumed)):
        assert torch.allclose(each, losses(whole), rtol=0, atol=1e-10)
    predicted = whole._fitted.prediction.probabilities.numpy()
    for count in (2, 3):
        checkpoint.write_bytes(kept)
        shares = in_processes(count, resumed_share, store.path, checkpoint)
        assert [each["trained"] for each in shares] == [SHARED["max_epochs"] - 2] * count
        if count == 2:  # as many processes as without the kill, so the same to the bit
            assert np.array_equal(shares[0]["losses"], found["losses"])
        assert np.allclose(np.concatenate([each["probabilities"] for each in shares]), predicted, rtol=0, atol=1e-10)
    assert not found["same"]
    whole.update_labels(correction(store))
    saved = load(model)
    one, two = (each._fitted.prediction.probabilities for each in (saved, whole))
    assert torch.allclose(one, two, rtol=0, atol=1e-10)
    assert found["unique"] == whole.diagnose().unique
    one, two = (each._fitted.prediction.probabilities for each in (load(f"{model}-few"), trained_on(few.path)))
    assert torch.allclose(one, two, rtol=0, atol=1e-10)
    assert found["bytes"] > 0
    assert found["bytes"] % (8 * found["halo"]) == 0

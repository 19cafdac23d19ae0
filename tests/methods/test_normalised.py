"""Batch normalisation in an equilibrium: which map is solved, its gradient, and whose statistics it has."""

import copy
from functools import partial

import pytest
import torch
from torch import Generator

from lignn import Graph, NodeClassifier
from lignn.backbones import GCN, resolve
from lignn.backbones.norms import seeing
from lignn.equilibrium import Implicit
from lignn.equilibrium.solvers import Picard
from lignn.errors import ConfigError
from lignn.labels import KnownLabels
from lignn.methods import LIGNN, LabelReuse, Network, Problem, label_inputted
from lignn.training import Training, train
from tests.problems import half_split, random_graph

N = 30
DEEP = {"num_layers": 3, "residual": True, "norm": "batch", "hidden": 6}
TIGHT = Picard(tol=1e-13, max_steps=500)
EXACT = Implicit("exact", Picard(tol=1e-12, max_steps=500, norm="relative"))


def small_problem(seed=0, **options):
    graph = random_graph(n=N, seed=seed, **options)
    return Problem.of(graph, half_split(N).train, torch.float64)


def network(problem, name="gcn", label_inputs=None, **options):
    c = problem.labels.num_classes
    generator = Generator().manual_seed(1)
    width = c if label_inputs is None else label_inputs
    return resolve(name, problem.x.shape[1], c, width, generator, **DEEP | options).double()


def method_of(problem, name="gcn", dropout=0.0, contract=True, **options):
    """LI-GNN over a residual network whose running statistics have moved, and whose map contracts."""
    backbone = network(problem, name, dropout=dropout, **({"heads": 2} if name == "gat" else {}))
    adj = problem.operator(backbone)
    with torch.no_grad():
        for seed in range(3):
            state = torch.rand(N, problem.labels.num_classes, generator=Generator().manual_seed(seed)).double()
            backbone.step(backbone.features(problem.x, adj), state, adj)
        if contract:
            for weight in backbone.label_weights():
                weight.mul_(0.1)
    return LIGNN(backbone, 0.5, solver=TIGHT, loss="logits", **options).train()


def epoch(method, problem):
    return method.epoch(problem, Generator().manual_seed(5))


def statistics(module):
    return {name: value.clone() for name, value in module.named_buffers() if "running" in name}


@pytest.mark.parametrize("hide", ["rows", "labels"])
@pytest.mark.parametrize(("name", "dropout"), [("gcn", 0.0), ("gcn", 0.3), ("gat", 0.0), ("sage", 0.0), ("gin", 0.0)])
def test_the_gradient_is_that_of_finite_differences(name, dropout, hide):
    """Of the loss as a function of all weights: the running statistics are constants, those of the batch are not."""
    problem = small_problem()
    assert_gradient(method_of(problem, name, dropout, gradient=EXACT, hide=hide), problem)


def assert_gradient(method, problem):
    """Compare the gradient of all weights, along random directions, with finite differences."""
    before = copy.deepcopy(method.state_dict())
    found = epoch(method, problem)
    assert found.solution.ok
    found.loss.backward()
    assert found.solution.adjoints[-1].ok
    weights = list(method.parameters())
    directions = [torch.randn(w.shape, generator=Generator().manual_seed(i)).double() for i, w in enumerate(weights)]
    slope = sum((w.grad * d).sum() for w, d in zip(weights, directions, strict=True))
    losses = []
    for step in (1e-6, -1e-6):
        method.load_state_dict(before)
        with torch.no_grad():
            for weight, direction in zip(weights, directions, strict=True):
                weight.add_(step * direction)
        losses.append(epoch(method, problem).loss.detach())
    assert slope.item() == pytest.approx(((losses[0] - losses[1]) / 2e-6).item(), rel=1e-5)


def test_training_solves_the_map_that_predicts(monkeypatch):
    problem, solved = small_problem(), []
    method = method_of(problem, hide="labels")
    solve = label_inputted.solve
    monkeypatch.setattr(label_inputted, "solve", lambda fn, *args, **kw: solved.append(fn) or solve(fn, *args, **kw))
    found = epoch(method, problem)
    state = torch.rand(N, problem.labels.num_classes, generator=Generator().manual_seed(9)).double()
    before = statistics(method)
    trained = solved[0](state).detach()
    given = problem.knowing(problem.labels.hide(0.5, Generator().manual_seed(5)).given)
    assert torch.equal(given.labels.mask, problem.labels.mask & ~found.hidden)
    assert all(torch.equal(value, before[name]) for name, value in statistics(method).items())
    method.eval()
    for name, value in before.items():  # the taped step has moved the statistics since
        method.get_buffer(name).copy_(value)
    torch.testing.assert_close(method.on(given).map(state).detach(), trained)


def test_hidden_labels_are_in_no_step(monkeypatch):
    """Flipping labels that supervise changes the loss, and nothing that it is computed from."""
    problem, outputs = small_problem(), []
    hidden = problem.labels.hide(0.5, Generator().manual_seed(5)).hidden & problem.labels.mask
    onehot = torch.where(hidden[:, None], problem.labels.onehot.roll(1, 1), problem.labels.onehot)
    flipped = problem.knowing(KnownLabels(problem.labels.mask, onehot))
    first = method_of(problem, hide="labels", dropout=0.2, contract=False)
    for method, one in ((first, problem), (copy.deepcopy(first), flipped)):
        loss = method.step.loss
        monkeypatch.setattr(method.step, "loss", lambda k, out, n, loss=loss: outputs.append(out) or loss(k, out, n))
        outputs.append(epoch(method, one).loss)
    assert torch.equal(outputs[0], outputs[2])
    assert not torch.equal(outputs[1], outputs[3])


def test_states_of_other_epochs_are_refused():
    problem = small_problem()
    for wrong in ({"warm_start": True}, {"forward_mask": True}):
        with pytest.raises(ConfigError, match="hide='labels' solves from zero"):
            method_of(problem, hide="labels", **wrong)
    with pytest.raises(ConfigError, match="hide 'label' is unknown; choose from rows, labels"):
        method_of(problem, hide="label")


def test_labels_hidden_in_two_passes_are_label_reuse():
    problem = small_problem()
    backbone, passes = network(problem), partial(Picard, tol=0.0)
    reuse = LabelReuse(copy.deepcopy(backbone), 0.5, iterations=2, loss="logits").train()
    li = LIGNN(backbone, 0.5, solver=passes(max_steps=2), gradient=reuse.gradient, loss="logits", hide="labels").train()
    losses = [epoch(method, problem).loss for method in (reuse, li)]
    assert torch.equal(*losses)


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "rgcn"])
def test_unseen_nodes_have_no_part_in_the_statistics(name):
    problem = small_problem()
    unseen = torch.arange(N) >= 20
    training = problem.without_edges_at(unseen)
    found = []
    for scale in (1.0, 7.0):
        x = torch.where(unseen[:, None], scale * training.x + scale, training.x)
        backbone = network(problem, name, label_inputs=0).train()
        with seeing(backbone, training.seen):
            adj = training.operator(backbone)
            logits = backbone(x, adj)
        logits[~unseen].square().sum().backward()
        grads = [weight.grad for weight in backbone.parameters()]
        found.append((logits[~unseen], *grads, *statistics(backbone).values()))
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))
    plain = network(problem, name, label_inputs=0).train()
    edges = training.edges.edge_index[:, ~unseen[training.edges.edge_index].any(0)]
    small = Graph(edges, num_nodes=20)
    torch.testing.assert_close(found[0][0], plain(training.x[~unseen], plain.adjacency(small, torch.float64)))


@pytest.mark.parametrize("method", ["backbone", "label_input", "label_reuse", "lignn", "lae"])
@pytest.mark.parametrize("inductive", [False, True])
def test_flipped_labels_and_unseen_features_change_no_statistic(method, inductive):
    graph, split = random_graph(n=N, seed=3), half_split(N)
    flipped = graph.replace(y=torch.where(split.test, (graph.y + 1) % graph.num_classes, graph.y))
    graphs = [graph, flipped]
    if inductive:
        graphs.append(graph.replace(x=torch.where(split.held_out[:, None], graph.x + 3, graph.x)))
    found = []
    for one in graphs:
        options = {"backbone_options": {name: value for name, value in DEEP.items() if name != "hidden"}, "hidden": 6}
        fitted = NodeClassifier(method, max_epochs=3, inductive=inductive, precision="float64", **options)
        found.append(fitted.fit(one, split).method_.state_dict())
    moved = [name for name, value in found[0].items() if "running_mean" in name and value.any()]
    assert len(moved) == 4
    first, second, *third = found
    assert all(torch.equal(first[name], second[name]) for name in first)
    if third and method == "backbone":  # predictions of other methods on unseen nodes choose the epoch
        assert all(torch.equal(first[name], third[0][name]) for name in first)


def test_what_is_done_with_a_model_moves_no_statistic():
    graph = random_graph(n=N, seed=3)
    options = {name: value for name, value in DEEP.items() if name != "hidden"}
    fitted = NodeClassifier(backbone_options=options, hidden=6, max_epochs=3).fit(graph, half_split(N))
    before = statistics(fitted.method_)
    fitted.update_labels({28: 1, 1: None})
    fitted.add_nodes(graph.x[:1], [[N, 0], [0, N]])
    fitted.predict_proba()
    fitted.diagnose()
    assert all(torch.equal(value, before[name]) for name, value in statistics(fitted.method_).items())


def test_averaged_weights_have_statistics_of_their_own():
    problem = small_problem()
    method = Network(network(problem, label_inputs=0), loss="logits")
    train(method, problem, problem, None, Generator().manual_seed(0), Training(max_epochs=6, averaged_epochs=4))
    first = method.backbone.first
    hidden = problem.x @ first.lin.weight.T + first.lin.bias
    torch.testing.assert_close(method.backbone.norms[0].running_mean, hidden.mean(0).detach())
    torch.testing.assert_close(method.backbone.norms[0].running_var, hidden.var(0).detach())


def test_the_same_seed_gives_the_same_bits():
    graph, options = random_graph(n=N, seed=3), {name: value for name, value in DEEP.items() if name != "hidden"}
    one, two = (
        NodeClassifier(backbone_options=options, hidden=6, max_epochs=6).fit(graph, half_split(N)) for _ in range(2)
    )
    for name, value in one.method_.state_dict().items():
        assert torch.equal(value, two.method_.state_dict()[name]), name
    assert isinstance(one.method_.step.backbone, GCN)


def test_where_nothing_is_proved_auto_is_free_and_says_what_was_measured():
    graph = random_graph(n=N, seed=3)
    for options in ({"norm": "layer"}, {"norm": "layer", "residual": True}):
        fitted = NodeClassifier(backbone_options=options, hidden=6, max_epochs=3).fit(graph, half_split(N))
        assert fitted._fitted.spec.values["contraction"] == "free"
        assert fitted._fitted.prediction.bound.lipschitz is None
        assert "proved for any labels" not in fitted.well_posed_
        assert "K̂" in fitted.well_posed_ or "start" in fitted.well_posed_
    proved = NodeClassifier(backbone_options={"norm": "batch"}, contraction="proved", hidden=6, max_epochs=9)
    assert proved.fit(graph, half_split(N)).well_posed_.startswith("One equilibrium, proved for any labels")

"""What a label may reach, and what not: labels are flipped, and any change is looked for, to the bit."""

from dataclasses import dataclass, field
from functools import partial

import pytest
import torch

from lignn.equilibrium import Implicit, LastStep
from lignn.equilibrium.solvers import Picard
from lignn.methods import LIGNN, Carry, LabelInput, LabelInputted, LabelReuse, LaE, Problem
from lignn.training import Training, scorer, train
from tests.methods.small import built, gcn
from tests.problems import half_split, random_graph

SOLVER = Picard(tol=1e-10, max_steps=200)
METHODS = {
    "lignn": lambda g: LIGNN(gcn(g), 0.4, False, SOLVER),
    "lignn forward mask": lambda g: LIGNN(gcn(g), 0.4, True, SOLVER),
    "lignn exact": lambda g: LIGNN(gcn(g), 0.4, False, SOLVER, Implicit("exact")),
    "lignn adaptive": lambda g: LIGNN(gcn(g), "adaptive", False, SOLVER),
    "lignn warm": lambda g: LIGNN(gcn(g), 0.4, False, SOLVER, warm_start=True),
    "label input": lambda g: LabelInput(gcn(g), 0.4),
    "label reuse": lambda g: LabelReuse(gcn(g), 0.4, 2),
    "label reuse corrected": lambda g: LabelReuse(gcn(g), 0.4, 2, corrected=True),
    "lae": lambda g: LaE(gcn(g), 0.4),
    "lae feature mask": lambda g: LaE(gcn(g), 0.4, feature_mask=0.5),
    **{name: partial(built, name) for name in ("backbone", "reslpa", "threeference", "ignn", "eignn")},
}
SECOND_STAGE = {
    "correct and smooth": partial(built, "correct_and_smooth"),
    "correct and smooth over lignn": partial(built, "correct_and_smooth", base="lignn"),
}


def flipped(graph, nodes):
    y = graph.y.clone()
    y[nodes] = (y[nodes] + 1) % graph.num_classes
    return graph.replace(y=y)


def run(graph, split, make, inductive):
    """Weights and predictions of every epoch, and the history."""
    torch.manual_seed(0)
    method = make(graph)
    seen = graph.without_edges_at(split.held_out) if inductive else graph
    inference = Problem.of(graph, split.train, torch.float64)
    training = Problem.of(seen, split.train, torch.float64) if inductive else inference
    trace = []

    def note(prediction):
        weights = {name: value.clone() for name, value in method.state_dict().items()}
        trace.append((weights, prediction.probabilities.clone()))

    evaluate = method.evaluate

    def traced(problem, epoch):
        prediction, carry = evaluate(problem, epoch)
        note(prediction)
        return prediction, carry

    method.evaluate = traced
    settings = Training(max_epochs=8, patience=8)
    history = train(method, training, inference, scorer(graph, split), torch.Generator().manual_seed(0), settings)
    note(history.prediction)
    return trace, history


def same(a, b):
    return all(
        torch.equal(p, q) and all(torch.equal(w[name], v[name]) for name in w)
        for (w, p), (v, q) in zip(a, b, strict=True)
    )


@pytest.mark.parametrize("name", [*METHODS, *SECOND_STAGE])
@pytest.mark.parametrize("inductive", [False, True])
def test_test_labels_influence_nothing(name, inductive):
    graph = random_graph(n=30, seed=2)
    split = half_split(30, 2)
    make = (METHODS | SECOND_STAGE)[name]
    before, history = run(graph, split, make, inductive)
    after, history_after = run(flipped(graph, split.test), split, make, inductive)
    assert same(before, after)
    assert history.best == history_after.best
    untold = ("test", "seconds")
    for a, b in zip(history.epochs, history_after.epochs, strict=True):
        assert {k: v for k, v in a.items() if k not in untold} == {k: v for k, v in b.items() if k not in untold}


@pytest.mark.parametrize("name", [*METHODS, *SECOND_STAGE])
def test_validation_labels_only_choose_the_epoch(name):
    """And the steps of C&S: all of the eight epochs are the same."""
    graph = random_graph(n=30, seed=2)
    split = half_split(30, 2)
    make = (METHODS | SECOND_STAGE)[name]
    before, history = run(graph, split, make, inductive=True)
    after, history_after = run(flipped(graph, split.val), split, make, inductive=True)
    assert same(before[:8], after[:8])
    assert [e["val"] for e in history.epochs] != [e["val"] for e in history_after.epochs]
    assert history.best == max(range(8), key=lambda i: (history.epochs[i]["val"], -i))


def test_label_propagation_sees_known_labels_only():
    graph = random_graph(n=30, seed=2)
    split = half_split(30, 2)
    versions = (graph, flipped(graph, split.held_out), flipped(graph, split.train))
    lpa = (built("lpa", g).predict(Problem.of(g, split.train, torch.float64)).probabilities for g in versions)
    first, held_out, train_labels = lpa
    assert torch.equal(first, held_out)
    assert not torch.equal(first, train_labels)


def test_training_labels_do_have_an_influence():
    """Else the tests above could not fail."""
    graph = random_graph(n=30, seed=2)
    split = half_split(30, 2)
    before, _ = run(graph, split, METHODS["lignn"], inductive=False)
    after, _ = run(flipped(graph, split.train), split, METHODS["lignn"], inductive=False)
    assert not same(before, after)


@dataclass
class Watched:
    """A gradient strategy that keeps the taped output and the solved state."""

    inner: object
    out: torch.Tensor = field(default=None)
    state: torch.Tensor = field(default=None)

    def attach(self, solution, maps, solver):
        out = self.inner.attach(solution, maps, solver)
        self.out, self.state = out.detach(), solution.value
        return out


def own_label_reaches_own_prediction(make, fixed_state=False):
    """Flip a supervised node's label: does its own training-time prediction change?"""
    graph = random_graph(n=30, seed=4)
    split = half_split(30, 4)
    outputs = []
    hidden = Problem.of(graph, split.train, torch.float64).labels.hide(0.4, torch.Generator().manual_seed(3))
    node = hidden.supervised.nonzero().flatten()[:1]
    state = None
    for version in (graph, flipped(graph, node)):
        method: LabelInputted = make(graph)
        method.gradient = Watched(method.gradient)
        if fixed_state and state is not None:
            method.solver = Picard(tol=0, max_steps=0)
            method.warm_start = True
        problem = Problem.of(version, split.train, torch.float64)
        method.epoch(problem, torch.Generator().manual_seed(3), Carry(state=state))
        state = method.gradient.state
        outputs.append(method.gradient.out[node])
    return not torch.equal(*outputs)


@pytest.mark.parametrize("name", ["lignn forward mask", "label input", "label reuse", "reslpa"])
def test_own_label_never_reaches_own_prediction(name):
    assert not own_label_reaches_own_prediction(METHODS[name])


@pytest.mark.parametrize("name", ["lignn", "label reuse corrected", "lignn exact", "lae", "lae feature mask"])
def test_the_indirect_path_exists_only_through_the_solved_state(name):
    """Algorithm 1 without forward mask: neighbours' solved predictions have seen the label; the taped step has not."""
    assert own_label_reaches_own_prediction(METHODS[name])
    assert not own_label_reaches_own_prediction(METHODS[name], fixed_state=True)


def test_a_warm_start_opens_the_indirect_path_of_the_forward_mask():
    """A state from an epoch in which the label was shown carries it on."""

    def make(graph):
        return LIGNN(gcn(graph), 0.4, True, Picard(tol=0, max_steps=2), LastStep(), warm_start=True)

    graph = random_graph(n=30, seed=4)
    split = half_split(30, 4)
    problem = Problem.of(graph, split.train, torch.float64)
    first = problem.labels.hide(0.4, torch.Generator().manual_seed(1))
    second = problem.labels.hide(0.4, torch.Generator().manual_seed(3))
    node = (second.supervised & first.given.mask).nonzero().flatten()[:1]
    outputs = []
    for version in (graph, flipped(graph, node)):
        method = make(graph)
        method.gradient = Watched(method.gradient)
        seen = Problem.of(version, split.train, torch.float64)
        first_epoch = method.epoch(seen, torch.Generator().manual_seed(1))
        _, carry = method.evaluate(seen, first_epoch)
        method.epoch(seen, torch.Generator().manual_seed(3), carry)
        outputs.append(method.gradient.out[node])
    assert not torch.equal(*outputs)

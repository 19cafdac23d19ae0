"""Every tensor follows its inputs: steps, losses and backward passes on PyTorch's `meta` device.

No accelerator is here. On `meta` tensors have shapes and no data, so that any look at the data fails, and `OneDevice`
fails on operators whose tensors lie on different devices.
"""

import pytest
import torch

from lignn import NodeClassifier
from lignn.backbones import names
from lignn.declarations import METHODS
from lignn.equilibrium import Space
from lignn.labels import KnownLabels
from lignn.methods import Carry, Problem, build
from tests.classifier.small import small_graph, small_split
from tests.devices import OneDevice
from tests.problems import half_split, random_graph

LABEL_INPUTTED = [name for name, method in METHODS.items() if method.network == "labels"]
OTHERS = [name for name in METHODS if name not in LABEL_INPUTTED and name != "lpa"]
DATA = {"aten::_local_scalar_dense", "aten::nonzero", "aten::_unique2", "aten::masked_select"}
"""Operators that look at the data of a tensor, or whose shapes depend on it."""


@pytest.fixture(autouse=True)
def _blind_stopping_rule(monkeypatch):
    """The solvers' stopping rule looks at lengths, which `meta` does not have: every step is as long as the last."""
    monkeypatch.setattr(Space, "norm", lambda *_: 1.0)
    monkeypatch.setattr(Space, "largest", lambda *_: 1.0)


class OnMeta(OneDevice):
    """Besides, no tensor on `meta` may be asked for its data."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        on_meta = any(isinstance(arg, torch.Tensor) and arg.is_meta for arg in args)
        assert not (on_meta and func.name().partition(".")[0] in DATA), f"{func} looks at data"
        return super().__torch_dispatch__(func, types, args, kwargs)


def on_meta(method, backbone="gcn", **options):
    graph = random_graph(n=20, **options)
    problem = Problem.of(graph, half_split(20).train).to("meta")
    network = {} if METHODS[method].network == "own" else {"dropout": 0.3}
    generator = torch.Generator().manual_seed(0)
    solver = {"max_steps": 3} if "max_steps" in METHODS[method].parameters else {}
    sizes, more = (graph.num_features, graph.num_classes), {"generator": generator, "edge_types": graph.edge_types}
    built = build(method, *sizes, backbone=backbone, backbone_options=network, **more, **solver)
    return built.to("meta"), problem, generator


def run(method, problem, generator):
    """An epoch with its backward pass, and a prediction that the next epoch takes over."""
    with OnMeta() as mode:
        epoch = method.train().epoch(problem, generator, Carry())
        epoch.loss.backward()
        prediction, carry = method.eval().evaluate(problem, epoch)
    assert epoch.loss.is_meta
    assert prediction.probabilities.is_meta
    assert prediction.probabilities.shape == problem.labels.onehot.shape
    assert all(weight.grad is None or weight.grad.is_meta for weight in method.parameters())
    assert any(weight.grad is not None for weight in method.parameters())
    assert "lignn::spmm" in mode.operators or "aten::index" in mode.operators
    return carry


@pytest.mark.parametrize("backbone", names())
@pytest.mark.parametrize("method", LABEL_INPUTTED)
def test_a_step_a_loss_and_its_backward_pass(method, backbone):
    run(*on_meta(method, backbone))


@pytest.mark.parametrize("method", [*LABEL_INPUTTED, "backbone"])
def test_types_of_edges(method):
    run(*on_meta(method, "rgcn", edge_types=("a", "b")))


@pytest.mark.parametrize("method", ["backbone", "reslpa", "threeference", "correct_and_smooth"])
def test_methods_that_take_no_labels_in_or_propagate_them(method):
    run(*on_meta(method))


@pytest.mark.parametrize(
    "options",
    [
        {"forward_mask": True, "feature_mask": 0.5},
        {"solver": "anderson", "warm_start": True},
        {"gradient": "exact"},
        {"gradient": "last_step"},
        {"jacobian": "diagonal"},
    ],
    ids=str,
)
def test_the_choices_of_lignn(options):
    _, problem, generator = on_meta("lignn")
    method = build("lignn", 5, 3, generator=generator, max_steps=3, **options).to("meta")
    carry = run(method, problem, generator)
    if method.warm_start:
        assert carry.state.is_meta
        assert carry.evaluation.solution.value.is_meta


def test_sparse_features_and_several_labels():
    from scipy.sparse import csr_array

    graph = random_graph(n=20, multilabel=True)
    graph = graph.replace(x=csr_array(graph.x.numpy()))
    problem = Problem.of(graph, half_split(20).train).to("meta")
    generator = torch.Generator().manual_seed(0)
    run(build("lignn", 5, 3, generator=generator, feature_mask=0.5, max_steps=3).to("meta"), problem, generator)


def test_the_same_masks_are_drawn_on_every_device():
    graph = random_graph(n=50)
    labels = KnownLabels.of(graph, half_split(50).train)
    here, there = (each.hide(0.4, torch.Generator().manual_seed(1)) for each in (labels, labels.to("meta")))
    assert torch.equal(here.hidden, there.hidden)
    assert torch.equal(here.supervised, there.supervised)
    assert there.given.onehot.is_meta


def test_a_problem_comes_back():
    graph = random_graph(n=20)
    problem = Problem.of(graph, half_split(20).train)
    assert problem.to("cpu").device == problem.device
    assert torch.equal(problem.to("cpu").adjacency() @ problem.x.float(), problem.adjacency() @ problem.x.float())


def test_a_classifier_keeps_its_device(monkeypatch):
    monkeypatch.undo()
    classifier = NodeClassifier(max_epochs=2, device="cpu").fit(small_graph(), small_split())
    assert classifier._fitted.spec.device == "cpu"
    assert classifier.get_params()["device"] == "cpu"

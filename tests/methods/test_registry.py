"""Methods by name: every name builds what it says, and a typing error gets a hint."""

import pytest
import torch

from lignn.backbones import GAT, GCN, SGC
from lignn.equilibrium import Implicit, LastStep
from lignn.equilibrium.solvers import Anderson, Picard
from lignn.errors import ConfigError
from lignn.methods import (
    EIGNN,
    IGNN,
    LIGNN,
    LPA,
    NAMES,
    Boosted,
    CorrectAndSmooth,
    Ensemble,
    LabelInput,
    LabelReuse,
    LaE,
    Logistic,
    Network,
    ResLPA,
    ThreeFerence,
    build,
)

KINDS = {
    "backbone": Network,
    "boosted": Boosted,
    "correct_and_smooth": CorrectAndSmooth,
    "eignn": EIGNN,
    "ensemble": Ensemble,
    "ignn": IGNN,
    "label_input": LabelInput,
    "label_reuse": LabelReuse,
    "lae": LaE,
    "lignn": LIGNN,
    "logistic": Logistic,
    "lpa": LPA,
    "reslpa": ResLPA,
    "threeference": ThreeFerence,
}


def test_these_are_all():
    assert sorted(NAMES) == sorted(KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_every_name(name):
    assert type(build(name, 5, 3)) is KINDS[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_generator_draws_the_weights(name):
    first, second, other = (
        build(name, 5, 3, generator=torch.Generator().manual_seed(s)).state_dict() for s in (1, 1, 2)
    )
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert name in ("lpa", "logistic", "boosted") or any(not torch.equal(first[key], other[key]) for key in first)


def test_options_reach_the_method_and_the_network():
    method = build(
        "lignn",
        5,
        3,
        backbone="gat",
        backbone_options={"hidden": 16, "heads": 4, "dropout": 0.5},
        mask_rate=0.25,
        forward_mask=True,
        max_steps=7,
        solver="anderson",
        gradient="exact",
        warm_start=True,
        feature_mask=0.3,
    )
    assert isinstance(method.step.backbone, GAT)
    assert method.step.backbone.dropouts[0].p == 0.5
    assert method.solver == Anderson(tol=1e-4 / 3, max_steps=7)
    assert method.gradient == Implicit("exact", Anderson(tol=1e-5 * 2 / 9, max_steps=7))
    assert (method.mask_rate, method.masking.forward_mask, method.warm_start, method.feature_mask) == (
        0.25,
        True,
        True,
        0.3,
    )
    assert build("lignn", 5, 3).step.jacobian == "exact"
    assert build("lignn", 5, 3, jacobian="diagonal").step.jacobian == "diagonal"
    assert build("lignn", 5, 3, gradient="last_step").gradient == LastStep()
    assert build("label_reuse", 5, 3, iterations=4).solver == Picard(tol=0, max_steps=4)
    assert build("ignn", 5, 3, backbone_options={"hidden": 7}).weight.shape == (7, 7)
    assert build("reslpa", 5, 3, lam=0.4).step.lam == 0.4


def test_a_network_takes_labels_only_where_the_method_gives_them():
    assert build("label_input", 5, 3).step.backbone.label_inputs == 3
    assert build("backbone", 5, 3).backbone.label_inputs == 0
    assert build("reslpa", 5, 3).step.residual.label_inputs == 0


def test_an_instance_is_taken_as_it_is():
    network = GCN(5, 3, 3)
    assert build("lae", 5, 3, backbone=network).step.backbone is network
    with pytest.raises(ConfigError, match="but 5, 3 and 0 are needed; give its class instead"):
        build("backbone", 5, 3, backbone=network)


def test_threeference_always_stands_on_one_hop():
    backbone = build("threeference", 5, 3, backbone_options={"hidden": 8}).step.backbone
    assert isinstance(backbone, SGC)
    assert backbone.hops == 1


def test_correct_and_smooth_stands_behind_any_method():
    method = build("correct_and_smooth", 5, 3, base="label_reuse", backbone="sage", lambda_c=0.2)
    assert isinstance(method.base, LabelReuse)
    assert method.lambda_c == 0.2


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lignm", {}, "method 'lignm' is unknown; did you mean 'lignn'?"),
        ("transformer", {}, "method 'transformer' is unknown; choose from backbone, boosted, correct_and_smooth"),
        ("lignn", {"maskrate": 0.5}, "method 'lignn' has no option 'maskrate'; did you mean 'mask_rate'?"),
        ("lpa", {"lamb": 0.5}, "method 'lpa' has no option 'lamb'; did you mean 'lam'?"),
        ("backbone", {"mask_rate": 0.5}, "method 'backbone' has no option 'mask_rate'; choose from loss"),
        ("correct_and_smooth", {"base": "lpaa"}, "base 'lpaa' is unknown; did you mean 'lpa'?"),
        ("label_input", {"base": "bosted"}, "base 'bosted' is unknown; did you mean 'boosted'?"),
        ("label_reuse", {"base": "lpa"}, "base 'lpa' is unknown; choose from backbone, boosted, logistic"),
        (
            "lignn",
            {"base": "boosted"},
            "base: method 'lignn' has none, only correct_and_smooth",
        ),
        ("label_input", {"base": "boosted", "hop": 1}, "method 'boosted' has no option 'hop'; did you mean 'hops'?"),
        ("label_input", {"base": "boosted", "hops": 3}, "hops: 0, 1 or 2 is needed, got 3"),
        ("label_input", {"base": "logistic", "label_folds": 1}, "label_folds: at least 2, or 0 to hide no labels"),
        (
            "label_reuse",
            {"base": "logistic", "label_folds": 0},
            "label_folds: labels must be hidden if predictions",
        ),
        ("label_reuse", {"base": "boosted", "max_steps": -1}, "tol and max_steps must not be negative"),
        ("boosted", {"hop": 1}, "method 'boosted' has no option 'hop'; did you mean 'hops'?"),
        ("lignn", {"backbone": "jknt"}, "backbone 'jknt' is unknown; did you mean 'jknet'?"),
        ("lignn", {"backbone_options": {"hiden": 3}}, "backbone GCN has no option 'hiden'; did you mean 'hidden'?"),
        ("lignn", {"solver": "andersen"}, "solver 'andersen' is unknown; did you mean 'anderson'?"),
        ("lignn", {"gradient": "exakt"}, "gradient 'exakt' is unknown; did you mean 'exact'?"),
        ("lignn", {"jacobian": "diag"}, "jacobian 'diag' is unknown; choose from exact, diagonal"),
        ("eignn", {"route": "closd"}, "route 'closd' is unknown; did you mean 'closed'?"),
        ("ignn", {"backbone_options": {"hiddn": 3}}, "method 'ignn' has no option 'hiddn'; did you mean 'hidden'?"),
        ("ignn", {"backbone_options": {"hidden": 0}}, "hidden: a layer has a width of at least 1, not 0"),
        ("lpa", {"lam": "x"}, "method 'lpa': lam: a number is needed, got 'x'"),
        ("label_reuse", {"iterations": 1.5}, "method 'label_reuse': iterations: a whole number is needed, got 1.5"),
        ("label_reuse", {"corrected": 1}, "method 'label_reuse': corrected: true or false is needed, got 1"),
        ("lignn", {"backbone_options": {"num_layers": True}}, "backbone GCN: num_layers: a whole number is needed"),
        ("lignn", {"backbone_options": {"hidden": 0}}, "hidden: a layer has a width of at least 1, not 0"),
        ("lignn", {"backbone": "sgc", "backbone_options": {"hops": -1}}, "hops: a number of at least 0 is needed"),
        ("lignn", {"backbone": "gcnii", "backbone_options": {"theta": -5}}, "theta: a number of at least 0 is needed"),
    ],
)
def test_unknown_names_get_a_hint(name, options, message):
    with pytest.raises(ConfigError) as error:
        build(name, 5, 3, **options)
    assert str(error.value).startswith(message)


def test_a_label_inputted_method_needs_label_inputs():
    with pytest.raises(ConfigError, match=r"as many label inputs as classes \(3\), this backbone has 0"):
        LabelInput(GCN(5, 3))

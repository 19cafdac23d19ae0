"""Presets, and every way in which a parameter can be wrong."""

import numpy as np
import pytest
import torch

from lignn.backbones import GCN
from lignn.classifier.spec import Spec
from lignn.declarations import POLICY, PRESETS
from lignn.equilibrium import Implicit, LastStep
from lignn.equilibrium.solvers import Anderson, Picard
from lignn.errors import ConfigError
from lignn.methods import IGNN, LIGNN, LPA, NAMES
from lignn.methods.masking import ShareOfTraining


def settings(**parameters):
    return Spec.resolve(parameters)


def build(num_features=5, num_classes=3, **parameters):
    return settings(**parameters).build(num_features, num_classes, torch.Generator().manual_seed(0))


def build_all(**parameters):
    return build(**parameters), settings(**parameters).training


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", NAMES)
def test_every_method_can_be_built_with_every_preset(method, preset):
    built = build(method=method, preset=preset)
    assert all(weight.isfinite().all() for weight in built.parameters())


def test_the_paper_preset_has_the_paper_s_values():
    method = build(preset="paper")
    assert method.solver == method.inference == Picard(tol=1e-4 / 3, max_steps=10)
    assert method.gradient == Implicit("paper", Picard(tol=1e-5 * 2 / 9, max_steps=10))
    assert (method.mask_rate, method.warm_start, method.feature_mask, method.masking.forward_mask) == (
        0.5,
        False,
        0.0,
        False,
    )
    assert method.step.backbone.convs[0].lin.weight.shape == (64, 3 + 5)
    training = settings(preset="paper").training
    assert (training.lr, training.weight_decay, training.max_epochs, training.patience) == (0.01, 0.0, 1000, 100)


def test_a_residual_network_has_values_of_its_own():
    deep = {"num_layers": 8, "residual": True, "norm": "batch"}
    for given in ({"backbone_options": deep}, {"backbone": GCN(5, 3, 3, residual=True)}):
        values = settings(**given).values
        assert (values["lr"], values["patience"], values["dropout"], values["contraction"]) == (0.005, 150, 0.2, "free")
        assert (values["hide"], values["warm_start"], values["averaged_epochs"]) == ("labels", False, 1)
    method = build(backbone_options=deep)
    assert isinstance(method.masking, ShareOfTraining)
    assert method.step.backbone.dropout == 0.2
    assert settings(backbone_options=deep, lr=0.1, dropout=0.4).values["lr"] == 0.1
    assert settings(backbone_options=deep, method="backbone").training.lr == 0.005
    plain = settings(backbone_options={"num_layers": 8, "norm": "batch"}).values
    assert (plain["lr"], plain["patience"], "hide" in plain) == (0.01, 50, False)
    paper = settings(backbone_options=deep, preset="paper").values
    assert (paper["lr"], paper["patience"], "hide" in paper) == (0.01, 100, False)
    with pytest.raises(ConfigError, match=r"leave out warm_start .* method option hide='rows'"):
        build(backbone_options=deep, warm_start=True)
    assert build(backbone_options=deep, warm_start=True, method_options={"hide": "rows"}).warm_start


def test_what_is_given_wins_over_the_preset():
    method = build(solver="picard", tol=1e-3, max_steps=7, gradient="last_step", mask_rate=0.3, hidden=9)
    assert method.solver == Picard(tol=1e-3, max_steps=7)
    assert method.gradient == LastStep()
    assert method.mask_rate == 0.3
    assert build(mask_rate="adaptive").mask_rate == "adaptive"
    assert method.step.backbone.convs[0].lin.weight.shape[0] == 9
    assert build(preset="paper", tol=1e-3).solver == Picard(tol=1e-3, max_steps=10)


def test_where_the_contraction_is_not_proved_fewer_labels_are_hidden():
    assert settings().values["mask_rate"] == settings(contraction="proved").values["mask_rate"] == 0.8
    assert settings(contraction="free").values["mask_rate"] == 0.5
    assert settings().with_contraction("proved").values["mask_rate"] == 0.8
    assert settings().with_contraction("free").values["mask_rate"] == 0.5
    assert settings(mask_rate=0.3).with_contraction("free").values["mask_rate"] == 0.3
    assert settings(mask_rate=0.3, contraction="free").values["mask_rate"] == 0.3
    assert settings(preset="paper", contraction="auto").with_contraction("free").values["mask_rate"] == 0.5


def test_settings_that_are_written_before_the_contraction_is_chosen_leave_open_what_follows_from_it():
    written = settings().plain()
    assert written["contraction"] == "auto"
    assert not written.keys() & {"mask_rate", "weight_decay", "input_dropout"}
    again = settings(**written)
    assert again.with_contraction("free").values["mask_rate"] == 0.5
    assert again.values == settings().values
    assert settings(mask_rate=0.3).plain()["mask_rate"] == 0.3
    assert settings().with_contraction("proved").plain()["mask_rate"] == 0.8
    assert again.relaxed.values == settings().relaxed.values
    assert settings().relaxed.plain()["weight_decay"] == 0.0
    assert settings(weight_decay=1e-3).plain()["weight_decay"] == 1e-3


def test_a_built_method_may_be_taught():
    network = build(method="backbone")
    assert settings(method=network, teaching=0.5).training.teaching == 0.5
    assert settings(method=network).training.teaching == 0.0


def test_numpy_numbers_are_numbers():
    method = build(hidden=np.int64(8), mask_rate=np.float32(0.25), max_steps=np.int32(5), tol=np.float64(1e-2))
    assert method.mask_rate == 0.25
    assert method.solver.max_steps == 5


def test_solver_of_other_methods():
    assert build(method="lpa", tol=1e-9).solver == Anderson(tol=1e-9)
    assert build(method="ignn", solver="picard", max_steps=5).solver == Picard(max_steps=5)
    assert build(method="lpa").solver == LPA().solver
    assert build(method="ignn").solver == IGNN(5, 3).solver
    assert build(method="lae", max_steps=17).solver.max_steps == 17


def test_options_go_through():
    assert build(method="lpa", method_options={"lam": 0.3}).step.lam == 0.3
    assert len(build(backbone_options={"num_layers": 3}).step.backbone.convs) == 3


def test_objects_are_copied():
    backbone = GCN(5, 3, label_inputs=3)
    built = build(backbone=backbone)
    assert built.step.backbone is not backbone
    assert torch.equal(built.step.backbone.convs[0].lin.weight, backbone.convs[0].lin.weight)
    method = LIGNN(backbone)
    assert build(method=method, preset="paper", lr=0.1, method_options={}) is not method


def test_a_foreign_class_gets_the_options_it_has():
    class Foreign(torch.nn.Module):
        def __init__(self, in_channels, hidden_channels, out_channels):
            super().__init__()
            self.lins = torch.nn.Sequential(
                torch.nn.Linear(in_channels, hidden_channels), torch.nn.Linear(hidden_channels, out_channels)
            )

        def forward(self, x):
            return self.lins(x)

    assert build(backbone=Foreign, hidden=11).step.backbone.module.lins[0].weight.shape == (11, 8)


def test_a_tolerance_changes_the_forward_solve_alone():
    """It used to swap the paper's adjoint for another one."""
    method = build(preset="paper", tol=1e-3)
    assert method.solver == Picard(tol=1e-3, max_steps=10)
    assert (
        method.gradient == build(preset="paper").gradient == Implicit("paper", Picard(tol=1e-5 * 2 / 9, max_steps=10))
    )
    assert build(tol=1e-3).gradient == build().gradient
    assert build(tol=1e-3).gradient.solver.norm == "relative"
    assert build(preset="paper", mask_rate="adaptive", tol=1e-3).gradient.solver.growth == 1.1


def test_solvers_and_gradients_are_names_or_objects():
    solver, gradient = Anderson(tol=1e-5, max_steps=9, memory=3), Implicit("exact", Picard(max_steps=4))
    method = build(solver=solver, gradient=gradient)
    assert (method.solver, method.inference, method.gradient) == (solver, solver, gradient)
    assert build(solver=solver).gradient.solver == Anderson(1e-2, 9, "relative", 1.0, memory=3)
    assert build(method="lpa", solver=solver).solver == solver


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "papre"}, "preset 'papre' is unknown; did you mean 'paper'"),
        ({"method": "lignm"}, "method 'lignm' is unknown; did you mean 'lignn'"),
        ({"method": 3}, "method: a name or a Method is needed, got 3"),
        ({"backbone": "gcnn"}, "backbone 'gcnn' is unknown; did you mean 'gcn'"),
        ({"backbone": 3}, "backbone: a name, a class or a module is needed"),
        ({"solver": "andersen"}, "did you mean 'anderson'"),
        ({"gradient": "exakt"}, "did you mean 'exact'"),
        ({"precision": "float16"}, "precision 'float16' is unknown"),
        ({"hidden": "64"}, "hidden: a whole number is needed, got '64'"),
        ({"hidden": 0}, "hidden: at least 1"),
        ({"max_steps": 0}, "max_steps: at least 1"),
        ({"hidden": True}, "hidden: a whole number is needed, got True"),
        ({"dropout": 1.5}, "dropout: a probability"),
        ({"lr": "fast"}, "lr: a number is needed, got 'fast'"),
        ({"lr": -1.0}, "lr: a positive number is needed, got -1"),
        ({"seed": None}, "seed: a whole number is needed, got None"),
        ({"inductive": 1}, "inductive: true or false is needed, got 1"),
        ({"mask_rate": 1.5}, "mask_rate: a number between 0 and 1"),
        ({"mask_rate": "adaptiv"}, "mask_rate: a number between 0 and 1, or 'adaptive'"),
        ({"feature_mask": 1.0}, "feature_mask: a share"),
        ({"tol": -1.0}, "must not be negative"),
        ({"method_options": ["lam"]}, "method_options: a table is needed"),
        (
            {"method": "lpa", "mask_rate": 0.5},
            "mask_rate: method 'lpa' has no such parameter, only label_input, ",
        ),
        ({"method": "label_input", "tol": 0.5}, "tol: method 'label_input' has no such parameter"),
        ({"method": "lpa", "method_options": {"lamda": 0.5}}, "has no option 'lamda'; did you mean 'lam'"),
        ({"method_options": {"maskrate": 0.5}}, "has no option 'maskrate'; did you mean 'mask_rate'"),
        ({"method": LPA(), "mask_rate": 0.5}, "method: LPA is built already and cannot take mask_rate$"),
        ({"method": LPA(), "backbone": "gat", "hidden": 8}, "is built already and cannot take backbone, hidden"),
        ({"method": LPA(), "method_options": {"lam": 0.5}}, "is built already and cannot take method_options"),
        ({"solver": Picard(), "tol": 0.1}, "solver: Picard is built already and cannot take tol"),
        ({"device": "cuda:77"}, "device: 'cuda:77' cannot be used here"),
        ({"device": "gpu"}, "device: 'gpu' cannot be used here"),
        ({"method_options": {"adjoint": "exact"}}, "adjoint 'exact' is unknown; choose from paper, relative"),
        ({"seed": -1}, "seed: a whole number of at least 0"),
        ({"backbone_options": {"layers": 3}}, "no option 'layers'.*did you mean 'num_layers'"),
    ],
)
def test_wrong_parameters_are_one_sentence(parameters, message):
    with pytest.raises(ConfigError, match=message):
        build_all(**parameters)


def test_rules_of_the_policy_are_values_that_are_checked():
    rules = {name: POLICY[name].off for name in POLICY}
    assert {name: Spec.resolve({}).values[name] for name in POLICY} == {
        "least_epochs": 100,
        "averaged_epochs": 30,
        "evaluate_every": 5,
        "underfits": 0.5,
        "learned": 0.2,
        "sure": 0.9,
        "pooled": 50,
    }
    off = Spec.resolve({"policy": rules})
    assert {name: off.values[name] for name in POLICY} == rules
    assert (off.training.averaged_epochs, off.training.evaluate_every, off.training.sure) == (1, 1, 0)
    wrong_ones = [
        ({"sur": 1}, "did you mean 'sure'"),
        ({"least_epochs": 1.5}, "policy: least_epochs needs a whole number of at least 0, got 1.5"),
        ({"sure": "no"}, "policy: sure needs a number of at least 0, got 'no'"),
        ({"sure": -1}, "got -1"),
    ]
    for wrong, said in wrong_ones:
        with pytest.raises(ConfigError, match=said):
            Spec.resolve({"policy": wrong})

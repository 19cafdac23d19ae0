import json
from dataclasses import replace

import pytest

from lignn import methods
from lignn.studies import run
from lignn.studies.resolved import resolved
from tests.studies import tiny

GCN, LIGCN = (planned.config for planned in tiny.STUDY.plan(1))


def settings(method: dict, **changes: object) -> dict:
    config = replace(GCN, method=method, **changes)
    assembly, _, _ = run.assembled(config)
    return resolved(config, assembly.method, run.settings_of(config.training))


def test_a_result_has_what_the_config_leaves_to_the_code():
    found = run.perform(LIGCN)["settings"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    classes = found["dataset"]["num_classes"]
    picard = {"class": "Picard", "max_steps": 5, "norm": "rms", "growth": None}
    assert found["method"]["solver"] == found["method"]["inference"] == picard | {"tol": 1e-4 / classes}
    adjoint = picard | {"tol": 1e-5 * (classes - 1) / classes**2}
    assert found["method"]["gradient"] == {"class": "Implicit", "form": "paper", "solver": adjoint}
    assert found["method"]["masking"] == {
        "class": "LoopingState",
        "forward_mask": False,
        "constant_scale": True,
    }
    assert (found["method"]["mask_rate"], found["method"]["jacobian"]) == (0.5, "exact")
    network = {"class": "GCN", "hidden": 4, "num_layers": 2, "dropout": 0.0, "residual": False, "norm": "none"}
    assert found["backbone"] == network
    assert (found["training"]["max_epochs"], found["training"]["patience"]) == (2, 100)
    assert (found["dataset"]["chains_per_class"], found["dataset"]["noise"]) == (3, 0.0)


@pytest.mark.parametrize("name", methods.NAMES)
def test_every_method_has_plain_settings(name):
    found = settings({"name": name}, backbone={})
    assert found["method"]["name"] == name
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_methods_with_a_base_or_a_network_of_their_own():
    found = settings({"name": "correct_and_smooth", "base": "reslpa", "lambda_c": 0.2})["method"]
    assert (found["lambda_c"], found["steps"]) == (0.2, 50)
    base = found["base"]
    assert (base["name"], base["lam"], base["solver"]["class"]) == ("reslpa", 0.9, "Anderson")
    own = settings({"name": "ignn"})
    assert (own["backbone"], own["method"]["hidden"], own["method"]["kappa"]) == ({}, 4, 0.9)
    assert own["method"]["solver"]["tol"] == 3e-6


def test_the_network_of_3ference_is_the_one_that_was_built():
    config = replace(GCN, method={"name": "threeference"})
    assembly, _, _ = run.assembled(config)
    found = resolved(config, assembly.method, run.settings_of(config.training))["backbone"]
    network = assembly.method.step.backbone
    assert (found["class"], found["hops"], found["hidden"]) == ("SGC", network.hops, 4)
    assert (found["head"] == "mlp") == (network.head.first.weight.shape[0] == 4)

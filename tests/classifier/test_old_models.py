"""Models outlive the version that saved them: they load, and predict and learn as they did then."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import lignn
from lignn.declarations import METHODS, PRESETS
from lignn.errors import DataWarning

FOLDER = Path(__file__).parent / "models"
MODELS = sorted(file.with_suffix("") for file in FOLDER.glob("*/*.npz"))
pytestmark = pytest.mark.filterwarnings("ignore:.*contraction 'measured', which is gone")


@pytest.fixture(autouse=True)
def _one_thread():
    """The expected numbers were computed by one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.parent.name}-{model.name}")
def test_predicts_as_when_it_was_saved(model):
    expected = np.load(model.with_name(f"{model.name}.npz"))
    classifier = lignn.load(model)
    # only rounding differs between processors
    np.testing.assert_allclose(classifier.predict_proba(), expected["saved"], rtol=0, atol=1e-6)
    again = classifier.method_.on(classifier._fitted.prediction.problem).solve()
    np.testing.assert_allclose(again.probabilities, classifier._fitted.prediction.probabilities, rtol=0, atol=1e-6)
    several = model.name == "multilabel"
    classifier.update_labels({0: [1]} if several else {0: 1, 3: None})
    # the update of then started from the last equilibrium, that of now from zero: the same within the tolerance
    np.testing.assert_allclose(classifier.predict_proba(), expected["updated"], rtol=0, atol=5e-5)
    classifier.update_labels({5: [0]} if several else {5: 0}, epochs=2)
    # Adam's first steps have the sign of a gradient; where batch normalisation makes it zero, rounding decides
    atol = 2e-3 if model.name == "threeference" else 1e-5
    np.testing.assert_allclose(classifier.predict_proba(), expected["trained"], rtol=0, atol=atol)


@pytest.mark.parametrize("name", ["default", "paper_adaptive", "lae"])
def test_a_change_of_preset_does_not_change_a_saved_model(name, monkeypatch):
    def updated():
        classifier = lignn.load(FOLDER / "0.1.0" / name)
        classifier.update_labels({5: 0}, epochs=2)
        return classifier.predict_proba()

    before = updated()
    for preset in PRESETS:
        monkeypatch.setitem(PRESETS, preset, PRESETS[preset] | {"hidden": 7, "lr": 0.5, "dropout": 0.1})
        for method in ("lignn", "lae"):
            monkeypatch.setitem(METHODS[method].presets, preset, {**METHODS[method].presets[preset], "mask_rate": 0.9})
    assert np.array_equal(updated(), before)


def test_a_measured_contraction_is_free_now_and_a_warning_says_so_once(tmp_path):
    with pytest.warns(DataWarning, match=r"generation-1: the model was fitted with contraction 'measured', .* 'free'"):
        classifier = lignn.load(FOLDER / "0.2.0" / "measured")
    assert classifier.contraction == classifier._fitted.spec.values["contraction"] == "free"
    assert classifier._fitted.spec.values["mask_rate"] == 0.5
    assert "kappa" not in classifier.method_.state_dict()
    classifier.save(tmp_path)
    with warnings.catch_warnings(action="error"):
        again = lignn.load(tmp_path)
    assert np.array_equal(again.predict_proba(), classifier.predict_proba())


def test_saved_again_it_has_the_present_format(tmp_path):
    for model in MODELS:
        classifier = lignn.load(model)
        classifier.save(tmp_path / model.name)
        again = lignn.load(tmp_path / model.name)
        assert np.array_equal(again.predict_proba(), classifier.predict_proba())
        assert again.get_params() == classifier.get_params()
        for each in (again, classifier):
            each.update_labels({5: [0] if model.name == "multilabel" else 0}, epochs=1)
        assert np.array_equal(again.predict_proba(), classifier.predict_proba())

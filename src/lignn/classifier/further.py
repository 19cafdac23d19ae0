"""Further epochs of a fitted model, when labels have changed."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch

from lignn.classifier import imbalance
from lignn.classifier.calibration import Outcome, calibrate
from lignn.classifier.fit import own_torch_modes, predicted, with_training
from lignn.classifier.model import Fitted
from lignn.graph import Graph
from lignn.graph.hetero import of_labelled_types
from lignn.labels import KnownLabels
from lignn.methods import Carry
from lignn.methods.method import Evaluation
from lignn.training import Assembly, End, score_on


@own_torch_modes()
def go_on(fitted: Fitted, known: KnownLabels, truth: Graph, epochs: int) -> Fitted:
    """Continue training from the present weights and equilibrium with other known labels, on a copy of the method.

    If validation labels are left that are not known, the best of the epochs is kept and calibrated again.
    Otherwise the last epoch is kept and the calibration stays.
    """
    spec = fitted.spec
    known = imbalance.weighted(spec, fitted.classes, known)
    problem = fitted.prediction.problem.knowing(known)
    method = copy.deepcopy(fitted.prediction.bound.method)
    held_out = fitted.split.val & truth.labelled & ~known.mask
    unseen = fitted.split.held_out & ~known.mask
    seen = problem.without_edges_at(unseen) if spec.values["inductive"] else problem
    scored = problem.space.count(held_out) > 0  # of all processes, which must do the same
    decides = spec.log_loss_decides
    score = score_on(truth, {"val": held_out}, fitted.metric, problem.space, decides) if scored else None
    generator = torch.Generator().manual_seed(_further_seed(spec.values["seed"], fitted.further))
    options = replace(spec.training, max_epochs=epochs, patience=epochs, goes_on=True)
    assembly = Assembly(method, seen, problem, generator, of_labelled_types(truth, known.mask))
    history = assembly.train(score, options, _carry(fitted))
    split = fitted.split if history.end is End.NOTHING_TO_TRAIN else with_training(fitted.split, known.mask)
    prediction = predicted(history)
    outcome = Outcome.of(prediction, truth, held_out)
    calibration = calibrate(outcome.probabilities, outcome.truth) if spec.values["calibrate"] else None
    return replace(
        fitted,
        split=split,
        prediction=prediction,
        calibration=calibration or fitted.calibration,
        held_out=outcome if len(outcome.truth) else fitted.held_out,
        mask_rate=history.carry.mask_rate,
        further=fitted.further + epochs,
    )


def _carry(fitted: Fitted) -> Carry:
    """Return what the first epoch of an update takes over: the mask rate, and the equilibrium as a start.

    The equilibrium belongs to other labels, so it is an evaluation of the problem of before.
    """
    prediction = fitted.prediction
    if prediction.solution is None or not prediction.bound.accepts_start:
        return Carry(fitted.mask_rate)
    evaluation = Evaluation(prediction.problem, prediction.solution)
    return Carry(fitted.mask_rate, prediction.solution.value, evaluation)


def _further_seed(seed: int, epochs: int) -> int:
    """Return another seed after every update, so that not all of them hide the same labels."""
    return int(np.random.SeedSequence((seed, epochs)).generate_state(1, np.uint64)[0])

"""A fit over several processes as one value: the first process collects the rows of all."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lignn.classifier.model import Fitted
from lignn.graph import Split
from lignn.graph.split import PARTS
from lignn.methods import Prediction, Problem
from lignn.store import share_of, whole_of


def gathered(fitted: Fitted) -> Fitted:
    """Return the fit with the rows of all processes in the first one; in the others, and if there are none, itself.

    The result belongs to one process: it solves and predicts on the whole graph alone.
    """
    prediction, processes = fitted.prediction, fitted.prediction.problem.processes
    if processes.count == 1:
        return fitted

    def mask_of_all(mask: Tensor) -> Tensor:
        return processes.whole(mask.to(torch.uint8)).bool()

    labels, solution = prediction.problem.labels, prediction.solution
    mask, onehot = mask_of_all(labels.mask), processes.whole(labels.onehot)
    split = Split(*(mask_of_all(getattr(fitted.split, part)) for part in PARTS))
    probabilities = processes.whole(prediction.probabilities)
    if solution is not None:
        solution = replace(solution, value=processes.whole(solution.value), adjoints=[])
    if not processes.is_first:
        return fitted
    graph = whole_of(fitted.graph).replace(name=fitted.graph.name)
    problem = Problem.with_labels(graph, replace(labels, mask=mask, onehot=onehot, share=share_of(graph)))
    bound = prediction.bound.method.on(problem)
    return replace(fitted, graph=graph, split=split, prediction=Prediction(bound, probabilities, solution))

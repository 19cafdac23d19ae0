"""One training loop for every learnable method."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Generator, Tensor

from lignn.backbones.norms import seeing
from lignn.equilibrium import Status
from lignn.errors import ProcessError
from lignn.methods import BoundMethod, Carry, Epoch, Method, Problem
from lignn.propagation import SparseMatrix
from lignn.training.history import DECIDING, End, History, Interrupted, Scorer
from lignn.training.hooks import Averaging, Hook, InputDropout, Stopping, Teaching
from lignn.training.hooks.teaching import may_teach
from lignn.training.run import Run
from lignn.training.settings import Training


def train(
    method: Method,
    training: Problem,
    inference: Problem,
    score: Scorer | None,
    generator: Generator,
    settings: Training | None = None,
    *,
    carry: Carry | None = None,
    teachers: Tensor | None = None,
    hooks: Iterable[Hook] = (),
) -> History:
    """Train `method` and leave it with the weights of the epoch with the best validation score.

    `Interrupted` is raised on Ctrl-C if at least one epoch can be kept.

    Args:
        method: the method to train.
        training: the problem of the loss; in the inductive setting without the edges of held-out nodes.
        inference: the problem of the predictions, with the full graph. The same object as `training` in the
            transductive setting.
        score: turns a prediction into numbers; `val` chooses the epoch, the others are only recorded. Without a scorer
            the last epoch is kept.
        generator: draws the masks and dropout of all epochs; usually the one that has drawn the weights.
        settings: how to train.
        carry: what the first epoch takes over from an earlier training.
        teachers: mask of the nodes whose predictions may teach; None for all.
        hooks: what else happens around the epochs, after what `settings` asks for.
    """
    with enough_threads(inference), seeing(method, training.seen):
        learned = method.learn(training)
        if any(True for _ in method.parameters()):
            settings = settings or Training()
            every = [*hooks_of(settings, method, training, inference, teachers), *hooks]
            method.train()  # between evaluations; changing the mode takes longer than a small product
            history = History(carry=carry or Carry())
            history = _epochs(Run(method, training, inference, score, generator, settings, every, history))
        else:
            history = History(end=End.AT_ONCE if learned else End.NOTHING_TO_TRAIN)
        try:
            _predict(method.eval().on(inference), score, history)
        except KeyboardInterrupt:
            # A second interruption is meant, and one of several processes cannot predict alone.
            if history.best < 0 or history.end is End.INTERRUPTED or inference.processes.count > 1:
                raise
            history.end = End.INTERRUPTED
            _predict(method.on(inference), score, history)
    if history.end is End.INTERRUPTED:
        raise Interrupted(history)
    return history


def hooks_of(
    settings: Training, method: Method, training: Problem, inference: Problem, teachers: Tensor | None
) -> Sequence[Hook]:
    """Return the hooks that settings ask for; their order is that of their random draws."""
    hooks: list[Hook] = []
    if settings.teaching and may_teach(training, inference):
        hooks.append(Teaching(settings, teachers))
    if settings.input_dropout:
        hooks.append(InputDropout(settings.input_dropout))
    if settings.averaged_epochs > 1:
        hooks.append(Averaging(method, settings.averaged_epochs))
    return [*hooks, Stopping()]


def _epochs(run: Run) -> History:
    """Run all epochs, and leave the method with the best weights."""
    try:
        with ExitStack() as around:
            for hook in run.hooks:
                around.enter_context(hook.training(run))
            while run.history.end is None:
                run.history.end = _epoch(run)
    except (KeyboardInterrupt, ProcessError):
        if run.history.best < 0 or run.inference.processes.count > 1:  # one of several processes cannot finish alone
            raise
        run.history.end = End.INTERRUPTED
    run.method.load_state_dict(run.best_weights)
    return run.history


def _epoch(run: Run) -> End | None:
    """Update the weights, predict, and record both; return why training ends after this epoch, if it does."""
    start, number, problem = time.perf_counter(), len(run.history.epochs), run.training
    for hook in run.hooks:
        problem = hook.before_epoch(run, problem)
    epoch = run.updated(problem)
    record: dict[str, Any] = {"epoch": number, "loss": epoch.loss.item()}
    if not math.isfinite(record["loss"]):
        return End.NON_FINITE
    epoch = replace(epoch, loss=epoch.loss.detach())  # frees the tape before the evaluation
    for hook in run.hooks:
        hook.after_update(run, record)
    evaluated = run.settings.evaluates(number, scored=run.score is not None)
    if evaluated:
        found = _evaluation(run, problem, epoch)
        if found is None:
            return End.NON_FINITE
        record |= found
    else:
        run.history.carry = run.method.passed_on(epoch)
    record |= _solves(epoch) | {"seconds": time.perf_counter() - start}
    run.history.add(record, number >= run.settings.first_epoch, evaluated)
    for hook in run.hooks:
        end = hook.after_epoch(run, record)
        run.history.end = run.history.end or end
    return run.history.end


def _evaluation(run: Run, problem: Problem, epoch: Epoch) -> dict[str, Any] | None:
    """Predict and score, and keep the weights if they are the best; return the scores, None if nothing is finite."""
    with ExitStack() as around:
        for hook in run.hooks:
            around.enter_context(hook.evaluating(run, problem))
        run.method.eval()
        prediction, run.history.carry = run.method.evaluate(run.inference, epoch)
        solution = prediction.solution  # if the map is not finite, it holds the last finite state
        failed = solution is not None and solution.status is Status.NON_FINITE
        if failed or not math.isfinite(run.inference.space.largest(prediction.probabilities)):
            return None
        scores = {} if run.score is None else dict(run.score(prediction))
        if run.history.would_be_best(scores, len(run.history.epochs) >= run.settings.first_epoch):
            run.best_weights = run.weights()
    run.method.train()
    return scores | ({} if solution is None else {"evaluation": solution.record()})


def _solves(epoch: Epoch) -> dict[str, Any]:
    """Describe the solves of an epoch in plain values."""
    if epoch.solution is None:
        return {}
    adjoints = epoch.solution.adjoints
    solves = {"forward": epoch.solution.record(), "backward": adjoints[-1].record() if adjoints else None}
    return solves if epoch.mask_rate is None else {"mask_rate": epoch.mask_rate, **solves}


def _predict(bound: BoundMethod, score: Scorer | None, history: History) -> None:
    """Add the prediction of the trained weights to the history, and its scores."""
    if score is not None:
        bound.choose(lambda prediction: score(prediction)["val"])
    history.prediction = bound.solve()
    if score is not None:
        history.final = {name: value for name, value in score(history.prediction).items() if name not in DECIDING}


SMALL = 1 << 20
"""Multiplications of one pass over the graph, 64 columns wide, up to which one thread is as fast as several."""


@contextmanager
def enough_threads(problem: Problem) -> Iterator[None]:
    """Use one thread on a small graph until the context ends: idle threads of PyTorch spin, and only cost energy.

    The choice depends on the size of the graph alone, so that a seed gives the same result in every run.
    """
    nodes, x = len(problem.labels.mask), problem.x
    entries = 0 if x is None else x.nnz if isinstance(x, SparseMatrix) else x.numel()
    before = torch.get_num_threads()
    small = problem.device.type == "cpu" and 64 * (problem.edges.num_edges + nodes + entries) <= SMALL
    try:
        if small and before > 1:
            torch.set_num_threads(1)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)

"""The updates of an epoch: one on the whole graph, or one on each batch of a store's parts."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Generator

from lignn.methods import Epoch, Problem
from lignn.training.run import Run


def updated(run: Run, problem: Problem) -> Epoch:
    """Change the weights of the method, and return the epoch that did."""
    if run.settings.batch_parts is not None:
        return _by_batches(run, problem, run.settings.batch_parts)
    epoch = run.method.epoch(problem, run.generator, run.history.carry)
    _update(run, epoch)
    return epoch


def _update(run: Run, epoch: Epoch) -> None:
    """Change the weights by the gradient of a loss; one that is not finite has none."""
    if not math.isfinite(epoch.loss.item()):
        return
    run.optimizer.zero_grad()
    epoch.loss.backward()
    run.optimizer.step()
    with torch.no_grad():
        run.method.project(run.inference)


def _by_batches(run: Run, problem: Problem, batch_parts: int) -> Epoch:
    """Make many updates; the batches depend on the seed and the number of the epoch alone."""
    from lignn.methods.batches import epoch_of_batches  # needs what reads stores

    drawn = np.random.SeedSequence((run.generator.initial_seed(), len(run.history.epochs)))
    order = Generator().manual_seed(int(drawn.generate_state(1, np.uint64)[0]) >> 1)
    carry, update = run.history.carry, partial(_update, run)
    return epoch_of_batches(run.method, problem, run.generator, carry, batch_parts, order, update)

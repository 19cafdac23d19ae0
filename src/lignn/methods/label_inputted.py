"""Algorithm 1: the base class of LPA, ResLPA, 3ference, Label Input, Label Reuse, LI-GNN and LaE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import Generator, Tensor

from lignn.backbones import frozen_dropout, solving
from lignn.equilibrium import Gradient, Implicit, Map, Maps, Solution, solve
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.labels import HiddenLabels, LabelInput
from lignn.methods.contraction import FREE, Contraction
from lignn.methods.fused import InputMap
from lignn.methods.masking import Masking
from lignn.methods.method import Carry, Epoch, Evaluation, Method, known_state
from lignn.methods.problem import Prediction, Problem
from lignn.methods.steps import BoundLabelInputted, Step, first_step

MaskRate = float | Literal["adaptive"]


class LabelInputted(Method):
    """`Ỹ = step(input(Ỹ))`: a method whose step takes known labels and its own predictions as input.

    An epoch draws which labels to hide, solves for the state, tapes one step on the masked state, and supervises the
    known nodes whose label was hidden, and the taught ones whose row was. A prediction solves with all known labels
    clamped. If a training solve would be the same to the bit as that of the last prediction, its solution is used
    instead.

    Args:
        step: what one propagation computes.
        masking: which labels are inputs.
        solver: solver of the state; `Picard(tol=0, max_steps=k)` for k passes.
        gradient: how the state is differentiated.
        mask_rate: β, or "adaptive": 0.5 first, then the last backward `K̂ - 0.1` within 0.1 … 0.9, so that a map that
            contracts less is masked more.
        inference: solver of predictions, default `solver`.
        warm_start: start each solve from the last epoch's state instead of zero.
        reuse_evaluation: use the state of the last prediction as the solved one if both are on the same problem.
        feature_mask: share of the nodes whose features are hidden in the taped step.
        contraction: what is promised about the equilibrium of predictions, see `methods.contraction`.
    """

    def __init__(
        self,
        step: Step,
        masking: Masking,
        solver: Solver,
        gradient: Gradient,
        mask_rate: MaskRate = 0.5,
        inference: Solver | None = None,
        warm_start: bool = False,
        reuse_evaluation: bool = False,
        feature_mask: float = 0.0,
        contraction: Contraction = FREE,
    ) -> None:
        super().__init__()
        if mask_rate != "adaptive" and not (isinstance(mask_rate, float) and 0 < mask_rate < 1):
            raise ConfigError(f"mask_rate: a number between 0 and 1, or 'adaptive', is needed, got {mask_rate!r}")
        if mask_rate == "adaptive" and not isinstance(gradient, Implicit):
            raise ConfigError("mask_rate 'adaptive' needs an implicit gradient, because it follows the adjoint solve")
        if not 0 <= feature_mask < 1:
            raise ConfigError(f"feature_mask: a share from 0 to below 1 is needed, got {feature_mask}")
        self.step, self.contraction = step, contraction
        self.masking, self.solver, self.gradient = masking, solver, gradient
        self.mask_rate, self.inference = mask_rate, inference or solver
        self.warm_start, self.reuse_evaluation, self.feature_mask = warm_start, reuse_evaluation, feature_mask

    def on(self, problem: Problem) -> BoundLabelInputted:
        """Bind the method to a problem, in the mode (training or evaluation) that the module is in."""
        return BoundLabelInputted(self, problem)

    def project(self, problem: Problem) -> None:
        """Keep the promise about the equilibrium after an update."""
        self.contraction.project(self.step, problem)

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:
        """Run Algorithm 1, lines 1 to 11; the backward pass of the loss is lines 12 to 16."""
        carry = carry or Carry()
        rate = carry.mask_rate or (0.5 if self.mask_rate == "adaptive" else self.mask_rate)
        labels = problem.labels.hide(rate, generator)
        with frozen_dropout(self.step, generator):
            seen, space = problem.knowing(self.masking.seen(labels)), problem.space
            step = self.step.bind(seen)
            described = self._described(seen, labels)
            solved = InputMap(step, partial(self.masking.solved, labels), described[0], partial(self._solving, problem))
            masked_features = seen.hide_features(self.feature_mask, generator) if self.feature_mask else seen
            taped_step = self.step.bind(masked_features) if self.feature_mask else step
            supervised, within = self.step.supervised(taped_step), partial(problem.within, "taped")
            maps = Maps(
                solved,
                taped=InputMap(supervised, partial(self.masking.taped, labels), described[1], within),
                approximate=self._approximate(masked_features, labels),
                space=space,
            )
            solution = self._known(carry, problem, solved)
            if solution is None:
                solution = solve(solved, self._start(problem, carry.state), self.solver, throw=False, space=space)
            out = self.gradient.attach(solution, maps, self.solver)
        loss = self.step.loss(labels.known, out, labels.supervised)
        return Epoch(loss, problem, carry, solution, rate, labels.hidden)

    def teacher(self, problem: Problem) -> BoundLabelInputted | None:
        """Return the bound method; None if its loss takes known labels alone, or if it reuses an evaluation."""
        return self.on(problem) if self.step.teachable and not self.reuse_evaluation else None

    def evaluate(self, problem: Problem, epoch: Epoch) -> tuple[Prediction, Carry]:
        """Solve with all known labels clamped; the carry has the next mask rate and the states for later solves."""
        bound, last = self.on(problem), epoch.carry.evaluation
        start = self._start(problem, None if last is None else last.solution.value)
        prediction = bound.solve(start, self.inference)
        solution = prediction.solution
        assert solution is not None
        evaluation = None
        if self.warm_start or self.reuse_evaluation:
            evaluation = Evaluation(problem, solution)
        elif self._may_repeat and problem is epoch.problem:
            evaluation = Evaluation(problem, solution, (bound.first_step(),))
        return prediction, replace(self.passed_on(epoch), evaluation=evaluation)

    def passed_on(self, epoch: Epoch) -> Carry:
        """Return the next mask rate, the state and the last evaluation, if later solves start from them."""
        carried = epoch.solution.value if self.warm_start and epoch.solution is not None else None
        return Carry(self._next_rate(epoch), carried, epoch.carry.evaluation if self.warm_start else None)

    def _approximate(self, problem: Problem, labels: HiddenLabels) -> Map | None:
        """Return the taped map with the step's approximate Jacobian, if it has one."""
        step = self.step.bind_adjoint(problem)
        if step is None:
            return None
        inputs = self._described(problem, labels)[1]
        return InputMap(step, partial(self.masking.taped, labels), inputs, partial(self._solving, problem, "taped"))

    def _described(self, problem: Problem, labels: HiddenLabels) -> tuple[LabelInput | None, LabelInput | None]:
        """Return the inputs of the solved and of the taped map as factors and offsets, if the masking knows them."""
        describe = None if problem.streamed else getattr(self.masking, "inputs", None)
        return (None, None) if describe is None else describe(labels)

    def _next_rate(self, epoch: Epoch) -> float | None:
        """Adapt β to the contraction that the backward pass has measured."""
        if self.mask_rate != "adaptive" or epoch.solution is None or not epoch.solution.adjoints:
            return epoch.carry.mask_rate
        contraction = epoch.solution.adjoints[-1].contraction
        return min(max(contraction - 0.1, 0.1), 0.9) if contraction > 0 else 0.5

    def _known(self, carry: Carry, problem: Problem, solved: Map) -> Solution | None:
        """Return the training solution if the last evaluation has found it."""
        evaluation = carry.evaluation
        if evaluation is None or evaluation.problem is not problem:
            return None
        if self.reuse_evaluation:
            return known_state(evaluation.solution.value)
        return replace(evaluation.solution, adjoints=[]) if self._repeats(evaluation, solved) else None

    def _repeats(self, evaluation: Evaluation, solved: Map) -> bool:
        """Return whether the training solve is that of `evaluation`: the same start, solver and map.

        Dropout, batch normalisation or a change of the weights make another map, whose first step differs.
        """
        space = evaluation.problem.space
        changes = (first_step(solved, torch.zeros_like(mark), space) - mark for mark in evaluation.mark)
        return any(space.largest(change) == 0 for change in changes)

    @property
    def _may_repeat(self) -> bool:
        """Whether training and prediction solve from the same start, with the same solver and labels."""
        return not self.warm_start and self.solver == self.inference and self.masking.solves_inference

    def _start(self, problem: Problem, last: Tensor | None) -> Tensor:
        zero = torch.zeros_like(problem.labels.onehot)
        return last if self.warm_start and last is not None and last.shape == zero.shape else zero

    @contextmanager
    def _solving(self, problem: Problem, name: str = "solved") -> Iterator[None]:
        """Return the context of a map that is iterated: only the taped step may update batch statistics."""
        with solving(self.step), problem.within(name):
            yield

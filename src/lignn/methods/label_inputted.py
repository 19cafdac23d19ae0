"""The one class behind LPA, ResLPA, 3ference, Label Input, Label Reuse, LI-GNN and LaE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import torch
from torch import Generator, Tensor

from lignn.backbones import frozen_dropout, solving
from lignn.equilibrium import Gradient, Implicit, Map, Maps, Solution, Status, solve
from lignn.equilibrium.solvers import Solver
from lignn.errors import ConfigError
from lignn.labels import HiddenLabels, KnownLabels
from lignn.methods.method import Method, Score
from lignn.methods.problem import Prediction, Problem
from lignn.methods.steps import Step

MaskRate = float | Literal["adaptive"]


class Masking(Protocol):
    """Which known labels go into the solved map, and which into the taped step."""

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """The labels that the solved map is clamped to."""
        ...

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Input of a step of the solved map."""
        ...

    def taped(self, labels: HiddenLabels, state: Tensor, constant_scale: bool) -> Tensor:
        """Input of the step that is supervised; it must not contain a supervised node's label in that node's row."""
        ...


@dataclass(frozen=True)
class ShareOfTraining:
    """Label Input and Label Reuse: the labels that supervise are hidden from every step; `M_i Y + (I - M_i) Ŷ`."""

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """`M_i Y`."""
        return labels.given

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """`M_i Y + (I - M_i) Ŷ`."""
        return labels.given.clamp(state)

    def taped(self, labels: HiddenLabels, state: Tensor, constant_scale: bool) -> Tensor:  # noqa: ARG002
        """The same."""
        return labels.given.clamp(state)


@dataclass(frozen=True)
class LoopingState:
    """LI-GNN: all labels are clamped, and whole rows of the state are hidden, in the taped step or in every step.

    Attributes:
        forward_mask: Algorithm 1's flag: hide rows in the forward solve too.
    """

    forward_mask: bool = False

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """`M_t Y`."""
        return labels.known

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """`(I - M_t) Ŷ + M_t Y`, or with the forward mask `I_i (…) / (1-β)`."""
        return labels.mask(state, constant_scale=False) if self.forward_mask else labels.known.clamp(state)

    def taped(self, labels: HiddenLabels, state: Tensor, constant_scale: bool) -> Tensor:
        """`I_i ((I - M_t) Ŷ + M_t Y) / (1-β)`."""
        return labels.mask(state, constant_scale)


@dataclass(frozen=True, eq=False)
class _Evaluation:
    """A prediction's solve: of which problem, and where its first step led, if training may repeat it."""

    problem: Problem
    solution: Solution
    first_step: Tensor | None


def _uncounted(step: Step, fn: Map) -> Map:
    """`fn`, whose calls batch normalisation does not count: only the taped step's."""

    def call(state: Tensor) -> Tensor:
        with solving(step):
            return fn(state)

    return call


class LabelInputted(Method):
    """`Ỹ = step(input(Ỹ))`: a step that is fed labels and its own predictions.

    An epoch draws which labels to hide, solves for the state, tapes one step on the masked state, and supervises the
    known nodes whose label was hidden. A prediction solves with all known labels clamped. Where the training solve
    would repeat that of the last prediction to the bit, it is not run again.

    Args:
        step: what one propagation computes.
        masking: which labels go in.
        solver: of the state; `Picard(tol=0, max_steps=k)` for k passes.
        gradient: how the state is differentiated.
        mask_rate: β, or "adaptive": 0.5 first, then the last backward `K̂ - 0.1` within 0.1 … 0.9, so that a map that
            contracts less is masked more.
        inference: solver of predictions, default `solver`.
        warm_start: start each solve from the last epoch's state instead of zero.
        reuse_evaluation: take the last prediction's state as the solved one wherever it was made on the same problem.
        feature_mask: share of the nodes whose features are hidden in the taped step.
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
    ) -> None:
        super().__init__()
        if mask_rate != "adaptive" and not (isinstance(mask_rate, float) and 0 < mask_rate < 1):
            raise ConfigError(f"mask_rate: a number between 0 and 1, or 'adaptive', is needed, got {mask_rate!r}")
        if mask_rate == "adaptive" and not isinstance(gradient, Implicit):
            raise ConfigError("mask_rate 'adaptive' follows the adjoint solve, which only the implicit gradients have")
        if not 0 <= feature_mask < 1:
            raise ConfigError(f"feature_mask: a share from 0 to below 1 is needed, got {feature_mask}")
        self.step = step
        self.masking = masking
        self.solver = solver
        self.gradient = gradient
        self.inference = inference or solver
        self.adaptive = mask_rate == "adaptive"
        self.rate = 0.5 if mask_rate == "adaptive" else mask_rate
        self.warm_start = warm_start
        self.reuse_evaluation = reuse_evaluation
        self.feature_mask = feature_mask
        self.solution: Solution | None = None
        self._states: dict[str, Tensor] = {}
        self._trained: Problem | None = None
        self._evaluation: _Evaluation | None = None
        self._resumed = False

    def loss(self, problem: Problem, generator: Generator) -> Tensor:
        """Algorithm 1, lines 1 to 11; the backward pass of the result is lines 12 to 16."""
        labels = problem.labels.hide(self.rate, generator)
        paper = isinstance(self.gradient, Implicit) and self.gradient.form == "paper"
        with frozen_dropout(self.step, generator):
            visible = problem.knowing(self.masking.seen(labels))
            step = self.step.bind(visible)
            hidden = visible.hide_features(self.feature_mask, generator) if self.feature_mask else None
            taped_step = step if hidden is None else self.step.bind(hidden)

            solved = _uncounted(self.step, lambda state: step(self.masking.solved(labels, state)))

            def masked(state: Tensor) -> Tensor:
                return self.masking.taped(labels, state, constant_scale=paper)

            def taped(state: Tensor) -> Tensor:
                return taped_step(masked(state))

            approximate = self.step.bind_adjoint(visible if hidden is None else hidden)
            through = None
            if approximate is not None:
                through = _uncounted(self.step, lambda state: approximate(masked(state)))
            self.solution = self._solution(problem, solved)
            out = self.gradient.attach(self.solution, Maps(solved, taped, through), self.solver)
        self._trained = problem
        if self.warm_start:
            self._states["training"] = self.solution.value
        return self.step.loss(labels.known, out, labels.supervised)

    def _solution(self, problem: Problem, solved: Map) -> Solution:
        """The training solve, or its solution where that is known already."""
        evaluation = self._evaluation
        if self._resumed or (self.reuse_evaluation and evaluation is not None and evaluation.problem is problem):
            return Solution(self._states["evaluation"], Status.BUDGET, 0, (), 0.0, 0.0)
        if evaluation is not None and evaluation.problem is problem and self._repeats(evaluation, solved):
            return replace(evaluation.solution, adjoints=[])
        return solve(solved, self._first(problem, "training"), self.solver, throw=False)

    def _repeats(self, evaluation: _Evaluation, solved: Map) -> bool:
        """Whether the training solve is that of `evaluation`: same start, solver and map.

        Dropout, batch normalisation or a change of the weights make another map: its first step tells.
        """
        if evaluation.first_step is None or not self._alike:
            return False
        with torch.no_grad():
            return torch.equal(solved(torch.zeros_like(evaluation.first_step)), evaluation.first_step)

    @property
    def _alike(self) -> bool:
        """Whether training and prediction solve from the same start, by the same solver, with the same labels."""
        return not self.warm_start and self.solver == self.inference and self.masking == LoopingState()

    def _first(self, problem: Problem, use: str) -> Tensor:
        zero = torch.zeros_like(problem.labels.onehot)
        warm = self._states.get(use, zero) if self.warm_start else zero
        return warm if warm.shape == zero.shape else zero

    def predict(self, problem: Problem) -> Prediction:
        """The forward solve unmasked, with all known labels clamped."""
        with torch.no_grad():
            fn = self.inference_map(problem)
            solution = solve(fn, self._first(problem, "evaluation"), self.inference, throw=False)
            if self.reuse_evaluation and self._trained is not None:
                self._evaluation = _Evaluation(problem, solution, None)
            elif self._alike and problem is self._trained:
                self._evaluation = _Evaluation(problem, solution, fn(torch.zeros_like(problem.labels.onehot)))
        if (self.warm_start or self.reuse_evaluation) and self._trained is not None:
            self._states["evaluation"], self._resumed = solution.value, False
        probabilities = self.step.probabilities(solution.value, problem.labels.multilabel)
        return Prediction(probabilities, problem.evidence, problem.labels.multilabel, solution)

    def equilibrium(self, problem: Problem, start: Tensor | None = None) -> Solution:
        """The solution of `inference_map`, from `start` or from zero."""
        start = torch.zeros_like(problem.labels.onehot) if start is None else start
        with torch.no_grad():
            return solve(self.inference_map(problem), start, self.inference, throw=False)

    def inference_map(self, problem: Problem) -> Map:
        """`Ŷ ↦ step((I - M_t) Ŷ + M_t Y)`, in the mode (training or not) that the module is in."""
        step = self.step.bind(problem)
        return lambda state: step(problem.labels.clamp(state))

    def after_update(self) -> None:
        """Adapt the mask rate to the contraction that the backward pass has just measured."""
        if self.adaptive and self.solution is not None and self.solution.adjoints:
            contraction = self.solution.adjoints[-1].contraction
            self.rate = min(max(contraction - 0.1, 0.1), 0.9) if contraction > 0 else 0.5

    def second_stage(self, problem: Problem, score: Score | None) -> None:  # noqa: ARG002
        """Training is over: predictions start from zero, whatever state it has left."""
        self._states, self._trained, self._evaluation, self._resumed = {}, None, None, False

    def account(self) -> dict[str, Any]:
        """Mask rate, forward and backward solve of the last epoch."""
        if self.solution is None:
            return {}
        backward = self.solution.adjoints[-1].record() if self.solution.adjoints else None
        return {"mask_rate": self.rate, "forward": self.solution.record(), "backward": backward}

    def extra_state(self) -> dict[str, Any]:
        """The mask rate, the states that warm starts begin with, and whether the next epoch reuses the last one."""
        evaluation = self._evaluation
        reusable = self.reuse_evaluation and evaluation is not None and evaluation.problem is self._trained
        return {"rate": self.rate, "reusable": reusable, **self._states}

    def load_extra_state(self, state: dict[str, Any]) -> None:
        """Take up what `extra_state` gave."""
        self.rate = state["rate"]
        self._states = {use: state[use] for use in ("training", "evaluation") if use in state}
        self._resumed = state["reusable"]

"""The interface of every method of the family, and the values that epochs pass on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Generator, Tensor, nn

from lignn.equilibrium import Solution, Status
from lignn.methods.problem import BoundMethod, Prediction, Problem
from lignn.processes import ALONE, Processes


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The solve of an epoch's prediction, from which the next epoch may continue.

    Attributes:
        problem: the problem that was solved.
        solution: its solution.
        mark: tensors that tell whether the next epoch's solve would be the same one. An evaluation without a mark is
            used as it is; one with a mark can be computed again and is not saved.
    """

    problem: Problem
    solution: Solution
    mark: tuple[Tensor, ...] = ()


@dataclass(frozen=True, eq=False)
class Carry:
    """What an epoch passes on to the next. The first epoch starts with `Carry()`.

    Attributes:
        mask_rate: β of the next epoch, if the method adapts it.
        state: the solved training state, for methods with a warm start.
        evaluation: the solve of the last prediction, for methods that continue from it.
    """

    mask_rate: float | None = None
    state: Tensor | None = None
    evaluation: Evaluation | None = None

    def plain(self, processes: Processes = ALONE) -> dict[str, Any]:
        """Return tensors and plain values by name, for checkpoints; the first of several processes gets all rows."""
        values: dict[str, Any] = {"mask_rate": self.mask_rate}
        if self.state is not None:
            values["state"] = processes.whole(self.state)
        if self.evaluation is not None and not self.evaluation.mark:
            values["evaluation"] = processes.whole(self.evaluation.solution.value)
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def of(cls, plain: dict[str, Any], inference: Problem) -> Carry:
        """Restore what `plain` returned; `inference` is the problem of the predictions."""
        rows = {name: inference.own_rows(plain[name]) for name in ("state", "evaluation") if name in plain}
        tensors = {name: tensor.to(inference.device) for name, tensor in rows.items()}
        state = tensors.get("evaluation")
        evaluation = None if state is None else Evaluation(inference, known_state(state))
        return cls(plain.get("mask_rate"), tensors.get("state"), evaluation)


def known_state(state: Tensor) -> Solution:
    """Return a solution that was taken over instead of solved."""
    return Solution(state, Status.BUDGET, 0, (), 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Epoch:
    """The taped part of one epoch.

    Attributes:
        loss: the loss; the caller differentiates it.
        problem: the problem that the loss was computed on.
        carry: what the epoch started with.
        solution: the training solve; its adjoints are appended by the backward pass. None for methods without one.
        mask_rate: β of this epoch, for methods that hide labels.
        hidden: mask of the nodes whose label input was hidden; None for methods that hide none.
    """

    loss: Tensor
    problem: Problem
    carry: Carry
    solution: Solution | None = None
    mask_rate: float | None = None
    hidden: Tensor | None = None


class Method(nn.Module, ABC):
    """A trainable way to predict labels. Its only state is its weights; `lignn.training` has the loop over epochs.

    A plain training loop:

        carry = Carry()
        for _ in range(epochs):
            epoch = method.train().epoch(problem, generator, carry)
            epoch.loss.backward()
            optimizer.step()
            prediction, carry = method.eval().evaluate(problem, epoch)
    """

    @abstractmethod
    def on(self, problem: Problem) -> BoundMethod:
        """Bind the method to a problem."""

    def predict(self, problem: Problem) -> Prediction:
        """Predict with all known labels of `problem`: `on(problem).solve()`."""
        return self.on(problem).solve()

    def learn(self, problem: Problem) -> bool:  # noqa: ARG002
        """Fit what needs no epochs to the known labels of `problem`; return whether there was anything to fit."""
        return False

    def epoch(self, problem: Problem, generator: Generator, carry: Carry | None = None) -> Epoch:  # noqa: ARG002
        """Compute the loss of one epoch. All randomness comes from `generator`.

        Methods without parameters have nothing to train and no epoch.
        """
        raise AssertionError(f"{type(self).__name__} has nothing to train")

    def teacher(self, problem: Problem) -> BoundMethod | None:  # noqa: ARG002
        """Return the bound method whose sure predictions `epoch` can learn from; None if only known labels teach."""
        return None

    def project(self, problem: Problem) -> None:
        """Change the weights after an update, so that predictions on `problem` have what the method promises."""

    def evaluate(self, problem: Problem, epoch: Epoch) -> tuple[Prediction, Carry]:  # noqa: ARG002
        """Predict after the update of `epoch`; also return what the next epoch takes over."""
        return self.predict(problem), Carry()

    def passed_on(self, epoch: Epoch) -> Carry:  # noqa: ARG002
        """Return what the epoch after `epoch` takes over if nothing is predicted between them."""
        return Carry()

    def adopt_choices(self, other: Method) -> None:
        """Take over what `BoundMethod.choose` has chosen for `other`, a method of the same kind."""

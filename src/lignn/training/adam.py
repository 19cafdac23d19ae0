"""Adam, as `torch.optim.Adam`, in one operator a step.

It calls PyTorch's own function. The class `torch.optim.Adam` is not used because its constructor imports PyTorch's
compiler, which takes a second, longer than a fit on a small graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

Slots = dict[str, Tensor]
"""`step`, `exp_avg` and `exp_avg_sq` of one parameter, named as in PyTorch's checkpoints."""


class Adam:
    """Adam with weight decay as an L2 penalty.

    Args:
        parameters: what to update.
        lr: learning rate.
        weight_decay: factor of the penalty.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.lr, self.weight_decay = lr, weight_decay
        self.slots: dict[int, Slots] = {}

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Update all parameters that have a gradient."""
        numbers = [number for number, parameter in enumerate(self.parameters) if parameter.grad is not None]
        for number in numbers:
            if number not in self.slots:
                self.slots[number] = _slots(self.parameters[number])
        slots = [self.slots[number] for number in numbers]
        parameters: list[Tensor] = [self.parameters[number] for number in numbers]
        with torch.no_grad():
            adam(
                parameters,
                [parameter.grad for parameter in parameters if parameter.grad is not None],
                [slot["exp_avg"] for slot in slots],
                [slot["exp_avg_sq"] for slot in slots],
                [],
                [slot["step"] for slot in slots],
                fused=all(parameter.device.type == "cpu" and not parameter.is_complex() for parameter in parameters),
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.lr,
                weight_decay=self.weight_decay,
                eps=1e-8,
                maximize=False,
            )

    def state(self) -> dict[int, Slots]:
        """Return a copy of all moments, for checkpoints."""
        return {number: {name: value.clone() for name, value in slot.items()} for number, slot in self.slots.items()}

    def load_state(self, state: dict[Any, Slots]) -> None:
        """Restore what `state` returned; keys may be texts. Raises if it does not fit the parameters."""
        slots = {int(number): slot for number, slot in state.items()}
        for number, slot in slots.items():
            fresh = _slots(self.parameters[number])
            if {name: value.shape for name, value in slot.items()} != {name: v.shape for name, v in fresh.items()}:
                raise ValueError("the moments of Adam do not fit the weights")
            slots[number] = {name: slot[name].to(value) for name, value in fresh.items()}
        self.slots = slots


def _slots(parameter: nn.Parameter) -> Slots:
    moments = {name: torch.zeros_like(parameter, requires_grad=False) for name in ("exp_avg", "exp_avg_sq")}
    return {"step": torch.zeros((), dtype=torch.float32), **moments}

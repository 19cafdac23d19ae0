"""Which known labels are inputs, and which supervise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from lignn.labels import HiddenLabels, KnownLabels, LabelInput


class Masking(Protocol):
    """Choice of the known labels that are inputs of the solved map and of the taped step.

    A masking that also has `inputs` (see `LoopingState`) can be solved by compiled code.
    """

    @property
    def solves_inference(self) -> bool:
        """Whether the solved map is the one that predictions solve: all known labels clamped, nothing hidden."""
        ...

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """Return the labels that the solved map is clamped to."""
        ...

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Return the input of a step of the solved map."""
        ...

    def taped(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Return the input of the supervised step; no supervised node's row may contain its own label."""
        ...


@dataclass(frozen=True)
class ShareOfTraining:
    """Masking of Label Input and Label Reuse, `M_i Y + (I - M_i) Ŷ`: labels that supervise are hidden in every step."""

    solves_inference: ClassVar[bool] = False

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """Return `M_i Y`."""
        return labels.given

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Return `M_i Y + (I - M_i) Ŷ`."""
        return labels.given.clamp(state)

    taped = solved

    def inputs(self, labels: HiddenLabels) -> tuple[LabelInput, LabelInput]:
        """Return `solved` and `taped` as factors and offsets of rows."""
        return labels.given.clamped, labels.given.clamped


@dataclass(frozen=True)
class LoopingState:
    """Masking of LI-GNN: all labels are clamped, and whole rows of the state are hidden.

    Rows are hidden in the taped step, and with the forward mask in every step.

    Attributes:
        forward_mask: whether to hide rows in the forward solve too (a flag of Algorithm 1).
        constant_scale: whether the backward pass ignores the factor `1/(1-β)` of the taped step, as the paper's form of
            the implicit gradient does.
    """

    forward_mask: bool = False
    constant_scale: bool = False

    @property
    def solves_inference(self) -> bool:
        """True without the forward mask."""
        return not self.forward_mask

    def seen(self, labels: HiddenLabels) -> KnownLabels:
        """Return `M_t Y`."""
        return labels.known

    def solved(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Return `(I - M_t) Ŷ + M_t Y`, or with the forward mask `I_i (…) / (1-β)`."""
        return labels.mask(state, constant_scale=False) if self.forward_mask else labels.known.clamp(state)

    def taped(self, labels: HiddenLabels, state: Tensor) -> Tensor:
        """Return `I_i ((I - M_t) Ŷ + M_t Y) / (1-β)`."""
        return labels.mask(state, self.constant_scale)

    def inputs(self, labels: HiddenLabels) -> tuple[LabelInput, LabelInput]:
        """Return `solved` and `taped` as factors and offsets of rows."""
        solved = labels.masked(constant_scale=False) if self.forward_mask else labels.known.clamped
        return solved, labels.masked(self.constant_scale)

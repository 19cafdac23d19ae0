"""What a model teaches itself: predictions of unlabelled nodes that it is sure of supervise beside the known labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import one_hot

FEWEST = 0.1
"""Share of the unlabelled nodes that have to teach before they get their full weight."""


@dataclass(frozen=True, eq=False)
class Taught:
    """Predicted classes of unlabelled nodes, which supervise as if they were known.

    Lee, "Pseudo-label: the simple and efficient semi-supervised learning method for deep neural networks", 2013. A
    class weighs as much among all taught nodes as among the known labels, however many nodes it teaches: otherwise the
    classes that are easily told would crowd out the others. A class that hardly teaches yet weighs less, and no taught
    node weighs more than a known one of its class, in units of λ.

    Attributes:
        nodes: mask of these nodes; on the CPU.
        onehot: their predicted classes, n×c, with rows of zeros for all other nodes.
        weight: weight of a node by its class (c).
    """

    nodes: Tensor
    onehot: Tensor
    weight: Tensor

    @classmethod
    def of(
        cls, probabilities: Tensor, teachers: Tensor, counts: Tensor, shares: Tensor, weight: float, sure: float
    ) -> Taught | None:
        """Return what predictions teach; None if none of them is sure enough.

        Args:
            probabilities: predicted ones of all nodes, n×c.
            teachers: mask of the nodes that may teach, none of which has a known label; on the CPU.
            counts: number of known labels of each class (c).
            shares: of each class in the loss of the known labels (c).
            weight: weight λ of all taught nodes together, in units of the known labels'.
            sure: probability from which on a prediction teaches.
        """
        confidence, predicted = probabilities.max(1)
        nodes = teachers & (confidence >= sure).cpu()
        taught = int(nodes.sum())
        if not taught:
            return None
        chosen = one_hot(predicted, len(shares)).to(probabilities) * nodes.to(probabilities)[:, None]
        shares, counts = shares.to(probabilities), counts.to(probabilities)
        fewest = counts.maximum(FEWEST * int(teachers.sum()) * shares).clamp(min=1)
        return cls(nodes, chosen, weight * taught * shares / chosen.sum(0).maximum(fewest))

    def mean(self, losses: Tensor, target: Tensor) -> Tensor:
        """Return the weighted mean of one loss per node, for some of the taught nodes and their rows of `onehot`."""
        return (losses * (target @ self.weight)).mean()

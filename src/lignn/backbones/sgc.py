"""Simplified graph convolution."""

from __future__ import annotations

from typing import Literal
from weakref import ref

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import Features, LinearFirst, check_choice
from lignn.backbones.layers import DenseLayers, layer_widths
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, PerOperator, SparseMatrix


class SGC(LinearFirst):
    """`Ã^K [S | X]` into one linear map (the paper's text), or into an MLP (the authors' runs).

    Wu et al., "Simplifying graph convolutional networks", ICML 2019, eq. 8. The linear head equals PyG's `SGConv` on
    `[S | X]`.

    Dense features are propagated once for all: `Ã^K X` does not depend on the weights and is kept as long as X and Ã
    live. Sparse ones would fill up, so their product with the first weight is propagated instead.

    Args:
        num_features: width of X.
        num_classes: c.
        label_inputs: width of the label state S.
        hidden: width of the MLP's hidden layers.
        num_layers: number of the MLP's linear maps.
        dropout: probability, behind each of the MLP's ReLUs.
        hops: number of propagations, K.
        head: "linear" or "mlp".
        batch_norm: batch normalisation in the MLP.
        generator: draws the weights.
    """

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        hidden: int = 64,
        num_layers: int = 3,
        dropout: float = 0.0,
        hops: int = 2,
        head: Literal["linear", "mlp"] = "linear",
        batch_norm: bool = True,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs)
        check_choice("head", head, ("linear", "mlp"))
        if hops < 0:
            raise ConfigError(f"hops: a number of at least 0 is needed, got {hops}")
        widths = layer_widths(label_inputs + num_features, hidden, num_layers if head == "mlp" else 1, num_classes)
        self.hops = hops
        self.head = DenseLayers(widths, dropout, batch_norm, generator)
        self._kept: PerOperator[tuple[ref[Tensor], int, Tensor]] = PerOperator()

    @property
    def first_bias(self) -> Tensor | None:
        """Bias of the head's first layer."""
        return self.head.first.bias

    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """`Ã^K X W_xᵀ + b`."""
        propagated = self._propagated_once(x, adj) if isinstance(x, Tensor) else None
        if propagated is None:
            return super().features(x, adj)
        return nn.functional.linear(propagated, self.head.first.weight[:, self.label_inputs :], self.first_bias)

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """`Ã^K x Wᵀ`."""
        first = self.head.first
        if first.widens(x):
            return first.share(self._propagate(x, adj), columns)
        return self._propagate(first.share(x, columns), adj)

    def rest(self, hidden: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """What the head has beyond its first linear map."""
        return self.head.rest(hidden)

    def _propagate(self, x: Tensor, adj: Adjacency) -> Tensor:
        for _ in range(self.hops):
            x = adj @ x
        return x

    def _propagated_once(self, x: Tensor, adj: Adjacency) -> Tensor | None:
        """`Ã^K X`, kept for the first X that comes with this Ã; None for others, such as X masked anew each epoch."""
        if x.requires_grad or x.is_inference():
            return None
        kept_x, version, product = self._kept.get(adj, (None, 0, None))
        other = kept_x() if kept_x is not None else None
        if other is None or (other is x and version != x._version):
            with torch.inference_mode(False):  # the product may be taped later
                product = self._propagate(x, adj)
            self._kept[adj] = ref(x), x._version, product
            return product
        return product if other is x else None

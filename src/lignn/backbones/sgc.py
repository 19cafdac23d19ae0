"""Simplified graph convolution."""

from __future__ import annotations

from typing import ClassVar, Literal
from weakref import ref

import torch
from torch import Generator, Tensor, nn

from lignn.backbones.backbone import Features, LinearFirst, Norms, check_choice
from lignn.backbones.layers import DenseLayers, layer_widths
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, PerOperator, SparseMatrix


class SGC(LinearFirst):
    """`head(Ã^K [S | X])`, where the head is one linear map (as in the paper's text) or an MLP (as in its runs).

    Wu et al., "Simplifying graph convolutional networks", ICML 2019, eq. 8. With the linear head equal to PyG's
    `SGConv` on `[S | X]`.

    `Ã^K X` does not depend on the weights. For dense features it is computed once and kept as long as X and Ã live.
    Sparse features would become dense; their product with the first weight is propagated instead.

    The arguments num_features, num_classes, label_inputs, hidden, num_layers, dropout and generator are those of
    `LinearFirst`; hidden, num_layers and dropout apply to the MLP only.

    Args:
        hops: number of propagations, K.
        head: "linear" or "mlp".
        batch_norm: whether the MLP has batch normalisation.
    """

    bounded: ClassVar[bool] = True

    # Written out, since the option `head` cannot be a field: its default would hide the layers of the same name.
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
        *,
        generator: Generator | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs, hidden, num_layers, dropout, generator=generator)
        check_choice("head", head, ("linear", "mlp"))
        if hops < 0:
            raise ConfigError(f"hops: a number of at least 0 is needed, got {hops}")
        widths = layer_widths(self.input_width, hidden, num_layers if head == "mlp" else 1, num_classes)
        self.hops = hops
        self.head = DenseLayers(widths, dropout, batch_norm, generator)
        self._kept: PerOperator[tuple[ref[Tensor], int, Tensor]] = PerOperator()

    @property
    def linear_bias(self) -> Tensor | None:
        """Bias of the head's first layer."""
        return self.head.first.bias

    @property
    def label_weight(self) -> Tensor | None:
        """`W_z`, the label columns of the head's weight, if there is one hop and the head is one linear map."""
        if self.hops != 1 or len(self.head.lins) > 1:
            return None
        return self.head.first.weight[:, : self.label_inputs].detach()

    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """Compute `Ã^K X W_xᵀ + b`."""
        propagated = self._propagated_once(x, adj) if isinstance(x, Tensor) else None
        if propagated is None:
            return super().features(x, adj)
        return nn.functional.linear(propagated, self.head.first.weight[:, self.label_inputs :], self.linear_bias)

    def linear(self, x: Tensor | SparseMatrix, adj: Adjacency, columns: slice) -> Tensor:
        """Compute `Ã^K x Wᵀ`."""
        first = self.head.first
        if first.propagates_first(x):
            return first.product(self._propagate(x, adj), columns)
        return self._propagate(first.product(x, columns), adj)

    def after_linear(self, hidden: Tensor, adj: Adjacency) -> Tensor:  # noqa: ARG002
        """Apply the layers of the head after its first linear map."""
        return self.head.after_first(hidden)

    @property
    def is_deep(self) -> bool:
        """False: only the first layer is propagated."""
        return False

    def gain(self, norms: Norms, centred: bool) -> Tensor:
        """Return `‖Ã‖^K` times that of the head."""
        return norms[0] ** self.hops * self.head.gain(self.label_columns, centred)

    def label_weights(self) -> list[Tensor]:
        """Return the label columns of the head's first weight."""
        return [self.head.first.weight.detach()[:, self.label_columns]]

    def _propagate(self, x: Tensor, adj: Adjacency) -> Tensor:
        for _ in range(self.hops):
            x = adj @ x
        return x

    def _propagated_once(self, x: Tensor, adj: Adjacency) -> Tensor | None:
        """Return `Ã^K X`, kept for the first X used with this Ã; None for any other X, such as one masked per epoch."""
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

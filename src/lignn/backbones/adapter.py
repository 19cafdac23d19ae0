"""Adapter that makes any PyTorch module a backbone, by concatenating its inputs."""

from __future__ import annotations

import inspect
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from lignn.backbones.backbone import Backbone, Features, check_choice
from lignn.backbones.layers import Seeded
from lignn.errors import ConfigError
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization

GraphArgument = Literal["edge_index", "adj_t", "none"]


class Adapter(Backbone, Seeded):
    """PyTorch module on `[S | X]`: any model of `torch_geometric.nn.models`, or one with the same kind of `forward`.

    The module gets the graph without added self-loops and without normalisation. Repeated edges are merged; their
    summed weights (or their number) are passed as `edge_weight` if `forward` has an argument of that name. Sparse
    features are converted to a dense n×d tensor.

    Dropout inside the module draws from PyTorch's global random state. Within `frozen_dropout` each call starts from
    the same seed, so the masks stay the same, and the global random state is restored after the call.

    Args:
        module: network that maps inputs of width label_inputs + num_features to logits n×c.
        num_features: width of X; 0 for a graph without features.
        num_classes: number of classes, c.
        label_inputs: width of the label state S; 0 for a network without label input.
        graph: form in which the module takes the graph as its second argument: "edge_index" (2×E), "adj_t" (a
            `torch.sparse` CSR matrix, target × source), or "none". By default it is read from the signature of
            `forward`: "adj_t" if the argument has that name, "none" if there is no second argument, else "edge_index".
    """

    normalization: ClassVar[Normalization] = "none"
    self_loops: ClassVar[bool] = False

    def __init__(
        self,
        module: nn.Module,
        num_features: int,
        num_classes: int,
        label_inputs: int = 0,
        graph: GraphArgument | None = None,
    ) -> None:
        super().__init__(num_features, num_classes, label_inputs)
        parameters = list(inspect.signature(module.forward).parameters)
        if graph is None:
            graph = "none" if len(parameters) < 2 else "adj_t" if parameters[1] == "adj_t" else "edge_index"
        check_choice("graph", graph, ("edge_index", "adj_t", "none"))
        self.module = module
        self.graph = graph
        self._takes_weight = graph == "edge_index" and "edge_weight" in parameters

    def features(self, x: Features, adj: Adjacency) -> Tensor:
        """Return X as a dense tensor."""
        if x is None:
            return adj.values.new_zeros(adj.shape[0], 0)
        return x.to_dense() if isinstance(x, SparseMatrix) else x

    def step(self, features: Tensor, state: Tensor | None, adj: Adjacency) -> Tensor:
        """Compute the module's logits on `[S | X]`."""
        if state is None:
            state = features.new_zeros(features.shape[0], self.label_inputs)
        inputs = torch.cat([state, features], 1) if self.label_inputs else features
        if self.seed is None or not self.training:
            logits = self._call(inputs, adj)
        else:
            with torch.random.fork_rng([inputs.device] if inputs.is_cuda else []):
                torch.manual_seed(self.seed)
                logits = self._call(inputs, adj)
        wanted = (inputs.shape[0], self.num_classes)
        if logits.shape != wanted:
            name = type(self.module).__name__
            raise ConfigError(
                f"backbone: {name} gives outputs of shape {tuple(logits.shape)}, logits {wanted} are needed"
            )
        return logits

    def _call(self, inputs: Tensor, adj: Adjacency) -> Tensor:
        if self.graph == "none":
            return self.module(inputs)
        if self.graph == "adj_t":
            return self.module(inputs, adj.torch_sparse)
        weight = {"edge_weight": adj.edge_weight} if self._takes_weight else {}
        return self.module(inputs, adj.edge_index, **weight)

"""What a method sees of a graph, a method bound to that graph, and its prediction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

import scipy.sparse as sp
import torch
from torch import Generator, Tensor

from lignn.backbones import Backbone
from lignn.backbones.layers import dropout_mask
from lignn.equilibrium import WHOLE, Map, Solution, Space
from lignn.equilibrium.solvers import Solver
from lignn.graph import Graph, measures, types
from lignn.labels import KnownLabels
from lignn.processes import ALONE, Processes
from lignn.propagation import Adjacency, SparseMatrix
from lignn.propagation.adjacency import Normalization
from lignn.propagation.sparse import scaled_rows
from lignn.store import StoredGraph

if TYPE_CHECKING:
    from lignn.methods.method import Method

T = TypeVar("T")

Score = Callable[["Prediction"], float]
"""Returns the validation score of a prediction: all that a method may learn from validation labels."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph as a method sees it: features, edges, and only those labels that are known.

    Features, label matrices and operators are on one device. The edges and all masks stay on the CPU.

    Attributes:
        x: features, dense or sparse; None for a graph without features.
        edges: the graph without features, labels and splits.
        labels: the known labels.
        seen: mask of the nodes that training may see; None for all.
    """

    x: Tensor | SparseMatrix | None
    edges: Graph
    labels: KnownLabels
    streamed: ClassVar[bool] = False
    """Whether each product reads the graph from the disk."""
    _derived: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    seen: Tensor | None = None

    @classmethod
    def of(cls, graph: Graph, known: Tensor, dtype: torch.dtype = torch.float32) -> Problem:
        """Return the problem of `graph` in which the labels of the nodes in `known` (a mask) are known."""
        return cls.with_labels(graph, KnownLabels.of(graph, known, dtype))

    @classmethod
    def with_labels(cls, graph: Graph, labels: KnownLabels) -> Problem:
        """Return the problem of `graph` with the given labels instead of its own, in the precision of `labels`.

        This chooses the engine: a graph in memory is multiplied there, a stored one is streamed.
        """
        if isinstance(graph, StoredGraph):
            from lignn.methods.stored import StoredProblem  # which is a problem itself

            return StoredProblem.with_labels(graph, labels)
        dtype = labels.onehot.dtype
        x: Tensor | SparseMatrix | None = None
        if isinstance(graph.x, sp.csr_array):
            x = SparseMatrix.from_scipy(graph.x, dtype)
        elif graph.x is not None:
            x = graph.x.to(dtype)
        return cls(x, graph.structure(), labels)

    @property
    def space(self) -> Space:
        """The reductions over the state, for the solvers."""
        return WHOLE

    @property
    def dtype(self) -> torch.dtype:
        """Precision of all numbers."""
        return self.labels.onehot.dtype

    @property
    def device(self) -> torch.device:
        """Device of features, label matrices and operators."""
        return self.labels.onehot.device

    def to(self, device: torch.device | str) -> Problem:
        """Return the same problem on another device."""
        return replace(
            self, x=None if self.x is None else self.x.to(device), labels=self.labels.to(device), _derived={}
        )

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`, computed once for this graph and kept with it; it must not depend on the labels."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def adjacency(self, normalization: Normalization = "symmetric", self_loops: bool = True) -> Adjacency:
        """Return the normalised operator of the graph."""

        def make() -> Adjacency:
            return Adjacency.normalized(self.edges, normalization, self_loops, self.dtype).to(self.device)

        return self.once((normalization, self_loops), make)

    def operator(self, backbone: Backbone) -> Adjacency:
        """Return the operator that a backbone propagates with."""
        return self.once(backbone.operator, lambda: backbone.adjacency(self.edges, self.dtype).to(self.device))

    @property
    def processes(self) -> Processes:
        """The processes that share the problem."""
        return ALONE

    def own_rows(self, whole: Tensor) -> Tensor:
        """Return those rows of a whole state that this process holds."""
        return whole

    def rows(self, state: Tensor) -> Tensor:
        """Return a state as networks take it: itself, or as rows of which a block is computed at a time."""
        return state

    def within(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context in which all products belong to the map of this name; only a batch tells them apart."""
        return nullcontext()

    def lazy(self, lam: float, type_weights: Mapping[str, float] | None = None) -> Adjacency:
        """Return `A_λ = (1-λ) I + λ Ã`.

        Args:
            lam: λ.
            type_weights: factors of the weights of the edges by the name of their type, see `types.weighted`.
        """
        if not type_weights:
            return self.once(("lazy", lam), lambda: self.adjacency().lazy(lam))

        def make() -> Adjacency:
            edges = types.weighted(self.edges, type_weights)
            return Adjacency.normalized(edges, dtype=self.dtype).lazy(lam).to(self.device)

        return self.once(("lazy", lam, repr(type_weights)), make)

    def knowing(self, labels: KnownLabels) -> Problem:
        """Return the same graph with other known labels."""
        return replace(self, labels=labels)

    def without_edges_at(self, nodes: Tensor) -> Problem:
        """Return the same nodes without the edges that touch `nodes` (a mask): what inductive training sees."""
        return replace(self, edges=self.edges.without_edges_at(nodes), seen=~nodes, _derived={})

    def hide_features(self, rate: float, generator: Generator) -> Problem:
        """Set each node's features to zero with probability `rate`, and scale the others by `1/(1-rate)`."""
        shown = self.labels.draw(generator) >= rate
        factor = shown.to(self.device, self.dtype) / (1 - rate)
        return replace(self, x=None if self.x is None else scaled_rows(self.x, factor))

    def drop_features(self, rate: float, generator: Generator) -> Problem:
        """Set each entry of the features to zero with probability `rate`, and scale the others by `1/(1-rate)`."""
        if self.x is None:
            return self
        if isinstance(self.x, SparseMatrix):
            values = self.x.values
            return replace(self, x=self.x.with_values(values * dropout_mask(values.shape, rate, values, generator)))
        return replace(self, x=self.x * dropout_mask(self.x.shape, rate, self.x, generator))

    @cached_property
    def evidence(self) -> Tensor:
        """Mask of the nodes that a known label reaches along the edges; others are predicted from features alone."""
        return measures.reached(self.edges, self.labels.mask)


class LabelWeight(NamedTuple):
    """`W_z` and `Ã` of a map `Z ↦ σ(Ã Z W_z + …)`, to which Theorem 1 applies."""

    weight: Tensor
    adjacency: Adjacency


class Effects(NamedTuple):
    """What known labels do for the state of one class at one node.

    Attributes:
        gains: what each label adds to it, compared with having to predict the label (n).
        shares: how much of it comes from each label, compared with a node about which nothing is said (n).
        together: how much of it comes from all labels together.
    """

    gains: Tensor
    shares: Tensor
    together: float


@dataclass(frozen=True, eq=False)
class BoundMethod(ABC):
    """A method bound to a problem: the value that `method.on(problem)` returns.

    It holds everything that callers need to know about the method: its map, how to solve it, how to change the labels,
    and the properties below. The method's weights must not change while it is in use.

    Attributes:
        method: the method, in evaluation mode.
        problem: the graph and its known labels.
    """

    method: Method
    problem: Problem

    takes_labels: ClassVar[bool] = False
    """Whether known labels are an input, so that other labels give another prediction without training."""
    linear: ClassVar[bool] = False
    """Whether the map is affine in the state."""
    proof: ClassVar[str | None] = None
    """Why the equilibrium is unique for any weights, graph and labels; None if that is not proved."""
    label_free: ClassVar[tuple[str, ...]] = ()
    """Cached values that depend on features and weights only; `with_labels` passes them on."""

    @property
    def map(self) -> Map | None:
        """The map `Ŷ ↦ step((I - M_t) Ŷ + M_t Y)` on label states; None for methods without one."""
        return None

    @property
    def solver(self) -> Solver | None:
        """The solver of the map; None for methods without one."""
        return None

    @property
    def iterates(self) -> bool:
        """Whether a prediction is an equilibrium and not a fixed number of passes."""
        return False

    @property
    def accepts_start(self) -> bool:
        """Whether a solve may start at any label state."""
        return self.iterates and self.map is not None

    @property
    def keeps_start(self) -> bool:
        """Whether part of the start is known to stay in the solution, so that there are many equilibria."""
        return False

    @property
    def lipschitz(self) -> float | None:
        """A bound of the map's Lipschitz constant that holds for all known labels; None if none can be given."""
        return None

    @property
    def idle(self) -> bool:
        """Whether a second stage took no steps, so that this is its base method under another name."""
        return False

    @property
    def label_weight(self) -> LabelWeight | None:
        """The weight that Theorem 1 bounds; None for maps that the theorem does not cover."""
        return None

    @abstractmethod
    def solve(self, start: Tensor | None = None, solver: Solver | None = None) -> Prediction:
        """Predict with all known labels, without randomness or gradients.

        Args:
            start: the label state at which the solve starts, default zero. Methods without a `map` ignore it.
            solver: solver to use instead of the method's own. Methods without a `map` ignore it.
        """

    def effects(self, prediction: Prediction, node: int, number: int) -> Effects | None:  # noqa: ARG002
        """Return what the known labels do for class `number` at a node; None: the `map` has to be differentiated."""
        return None

    def choose(self, score: Score) -> None:  # noqa: B027
        """Choose by validation score what is not trained, such as a number of steps; later predictions use it."""

    def with_labels(self, labels: KnownLabels) -> Self:
        """Bind the method to the same graph with other known labels; features are not processed again."""
        other = replace(self, problem=self.problem.knowing(labels))
        vars(other).update({name: vars(self)[name] for name in self.label_free if name in vars(self)})
        return other

    def __getstate__(self) -> dict[str, Any]:
        # Cached values may be closures, which cannot be pickled. They are computed again when needed.
        return {"method": self.method, "problem": self.problem}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Class probabilities of every node.

    Attributes:
        bound: the method and problem that the prediction was made with.
        probabilities: n×c; rows sum to one, except for multi-label tasks.
        solution: the solve behind the prediction; None for methods that do not solve.
    """

    bound: BoundMethod
    probabilities: Tensor
    solution: Solution | None = None

    @property
    def problem(self) -> Problem:
        """The graph and the labels that were known."""
        return self.bound.problem

    @property
    def evidence(self) -> Tensor:
        """Mask of the nodes that a known label reaches."""
        return self.problem.evidence

    @cached_property
    def labels(self) -> Tensor:
        """Class numbers (n), or 0/1 rows (n×c) for multi-label tasks."""
        several = self.problem.labels.multilabel
        return (self.probabilities > 0.5).to(torch.int8) if several else self.probabilities.argmax(1)

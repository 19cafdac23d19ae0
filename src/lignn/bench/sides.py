"""LI-GCN on both sides: the same graph, first weights and numbers of steps for lignn and for the textbook."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp
import torch
from torch import Tensor

from lignn import datasets
from lignn.backbones import GCN
from lignn.bench import textbook
from lignn.bench.graphs import power_law
from lignn.equilibrium import Implicit
from lignn.equilibrium.solvers import Picard
from lignn.graph import Graph, Split, splits
from lignn.labels import KnownLabels
from lignn.methods import LIGNN, Carry, Epoch, Problem
from lignn.training import Scores, assemble, scorer
from lignn.training.adam import Adam

HIDDEN = 64
MASK_RATE = 0.25
LEARNING_RATE = 0.01
TEN_STEPS = textbook.Budget(10)


@dataclass(frozen=True, eq=False)
class Task:
    """A graph and a split; inductive: training does not see the edges of validation and test nodes."""

    graph: Graph
    split: Split

    @property
    def training_graph(self) -> Graph:
        """The graph that training sees."""
        return self.graph.without_edges_at(self.split.held_out)

    @property
    def problem(self) -> Problem:
        """The whole graph with the training labels, as methods see it."""
        return Problem.of(self.graph, self.split.train)

    @property
    def features(self) -> Tensor:
        """The features, dense."""
        return dense_inputs(self.graph)[:, self.graph.num_classes :].contiguous()


def load_task(source: str | int, run: int = 0, communities: bool = False) -> Task:
    """One of the paper's random splits of a dataset, or a power-law graph of so many edges, maybe with communities."""
    if isinstance(source, str):
        graph = datasets.load(source)
        return Task(graph, splits.per_class(graph, seed=splits.PAPER_SEED, runs=run + 1)[run])
    graph = power_law(source, communities=communities)
    return Task(graph, graph.splits[0])


def backbone(graph: Graph, seed: int) -> GCN:
    """The network of both sides, with its first weights."""
    generator = torch.Generator().manual_seed(seed)
    return GCN(graph.num_features, graph.num_classes, graph.num_classes, HIDDEN, generator=generator)


class Lignn:
    """LI-GCN by lignn, in Algorithm 1's own way: cold starts, plain iteration, the paper's gradient.

    Args:
        task: what to learn.
        steps: of every solve.
        seed: of first weights and masks.
        inductive: train without the edges of held-out nodes.
    """

    def __init__(self, task: Task, steps: int = 10, seed: int = 0, inductive: bool = True) -> None:
        budget = Picard(tol=0, max_steps=steps)
        method = LIGNN(backbone(task.graph, seed), MASK_RATE, solver=budget, gradient=Implicit("paper", budget))
        labels = KnownLabels.of(task.graph, task.split.train)
        unseen = task.split.held_out if inductive else None
        assembly = assemble(lambda _: method, task.graph, labels, seed=seed, unseen=unseen)
        self.method, self.training, self.inference = method, assembly.training, assembly.inference
        self.generator, self.carry = assembly.generator, Carry()
        self.score = scorer(task.graph, task.split)
        self.optimizer = Adam(method.parameters(), LEARNING_RATE)

    def epoch(self) -> Scores:
        """Run one update and one evaluation."""
        return self.evaluate(self.update())

    def update(self) -> Epoch:
        """Solve, tape a step, solve the adjoint, change the weights."""
        self.method.train()
        self.optimizer.zero_grad()
        epoch = self.method.epoch(self.training, self.generator, self.carry)
        epoch.loss.backward()
        self.optimizer.step()
        return epoch

    def evaluate(self, epoch: Epoch) -> Scores:
        """Solve on the whole graph, and score."""
        self.method.eval()
        prediction, self.carry = self.method.evaluate(self.inference, epoch)
        return self.score(prediction)


class Textbook:
    """LI-GCN by PyG, see `textbook`.

    Args:
        task: what to learn.
        forward: budget of solves.
        backward: budget of the adjoint, default that of solves.
        seed: of first weights and masks.
        inductive: train without the edges of held-out nodes.
    """

    def __init__(
        self,
        task: Task,
        forward: textbook.Budget = TEN_STEPS,
        backward: textbook.Budget | None = None,
        seed: int = 0,
        inductive: bool = True,
    ) -> None:
        graph, known = task.graph, task.split.train
        c = graph.num_classes
        inputs = dense_inputs(graph)
        assert graph.y is not None
        self.y, self.split = graph.y, task.split
        self.inference = textbook.Data.of(inputs, graph.edge_index, graph.y, known, c)
        self.training = self.inference
        if inductive:
            self.training = textbook.Data.of(inputs, task.training_graph.edge_index, graph.y, known, c)
        self.model = textbook.LIGCN(inputs.shape[1], c, HIDDEN, MASK_RATE, forward, backward or forward)
        self.model.net.load_state_dict(backbone(graph, seed).state_dict())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)
        self.generator = torch.Generator().manual_seed(seed)

    def epoch(self) -> Scores:
        """One update, one evaluation."""
        self.model.epoch(self.training, self.optimizer, self.generator)
        return self.evaluate()

    def evaluate(self) -> Scores:
        """Solve on the whole graph, and score."""
        right = self.model.solve(self.inference).argmax(1) == self.y
        return {part: right[getattr(self.split, part)].float().mean().item() for part in ("train", "val", "test")}


def dense_inputs(graph: Graph) -> Tensor:
    """`[0 | X]`, dense, built without a second copy."""
    empty = (graph.num_nodes, graph.num_classes)
    if isinstance(graph.x, sp.csr_array):
        return torch.from_numpy(sp.hstack([sp.csr_array(empty, dtype="float32"), graph.x]).toarray()).float()
    assert graph.x is not None
    return torch.cat([torch.zeros(empty), graph.x], 1)

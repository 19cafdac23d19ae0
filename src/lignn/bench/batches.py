"""Epochs of batches of a store's parts beside exact epochs: their time, what they learn in it, and their bias."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import torch
from torch import Generator, Tensor

from lignn import datasets
from lignn.bench.graphs import write_tables
from lignn.bench.timing import Record, Timing, record
from lignn.classifier.fit import assembled
from lignn.classifier.spec import Spec
from lignn.equilibrium import Implicit, Solution
from lignn.graph import Split, splits
from lignn.labels import KnownLabels
from lignn.methods import LIGNN, Carry, Epoch
from lignn.methods.batches import Visit, epoch_of_batches
from lignn.store import StoredGraph
from lignn.store.build import Options, build
from lignn.training import scorer
from lignn.training.adam import Adam

PARTS = 16
SIZES = (None, 1, 2, 4, 8)
"""Parts in a batch; None: exact epochs."""
SECONDS, SECONDS_IF_LARGE = 8.0, 20.0
"""Time that each side may train, without evaluations."""
LEAST = 2
"""Number of epochs that each side trains at least."""
CLOSE = 0.99
"""Share of the best validation score of all sides that counts as reached."""
SETTINGS: dict[str, Any] = {"contraction": "proved", "dropout": 0.0, "seed": 0}
TIGHT = 1e-6
"""Tolerance of the solves that the bias is measured with."""


def run(quick: bool) -> Iterator[Record]:
    """Measure on communities, and on Physics, divided by METIS and in blocks, with many labels and with few."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        if quick:
            graph = _communities(folder, 10**4)
            yield from _compared("communities, metis", graph, graph.splits[0], 1.0)
            return
        graph = _communities(folder, 10**5)
        yield from _compared("communities, metis", graph, graph.splits[0], SECONDS)
        graph = _communities(folder, 10**6)
        yield from _compared("10⁷ edges, metis", graph, graph.splits[0], SECONDS_IF_LARGE, (None, 1, 4), biased=False)
        for partition in ("metis", "blocks"):
            build(datasets.load("coauthor_physics"), folder / partition, Options(PARTS, partition))
            graph = StoredGraph(folder / partition).replace(unit_rows=True)
            many = splits.stratified(graph, (0.6, 0.2, 0.2), seed=0)
            yield from _compared(f"coauthor_physics, {partition}", graph, many, SECONDS)
            if partition == "metis":
                few = splits.per_class(graph, seed=splits.PAPER_SEED, runs=1)[0]
                yield from _compared("coauthor_physics, metis, 10 labels a class", graph, few, SECONDS)


def _communities(folder: Path, nodes: int) -> StoredGraph:
    """Return a store of communities with ten entries a node."""
    write_tables(folder / f"{nodes}", nodes, 5 * nodes)
    build(folder / f"{nodes}", folder / f"{nodes}.store", Options(PARTS, "metis", undirected=True))
    return StoredGraph(folder / f"{nodes}.store")


class Side:
    """LI-GCN with the default settings, but without dropout, trained by exact epochs or by batches.

    Args:
        graph: the store.
        split: its split.
        batch_parts: number of parts in a batch; None for exact epochs.
    """

    def __init__(self, graph: StoredGraph, split: Split, batch_parts: int | None) -> None:
        settings = Spec.resolve(SETTINGS)
        assembly = assembled(settings, graph, KnownLabels.of(graph, split.train), split.test)
        self.method, self.problem = assembly.method, assembly.training
        self.batch_parts, self.carry = batch_parts, Carry()
        self.optimizer = Adam(self.method.parameters(), settings.training.lr, settings.training.weight_decay)
        self.score = scorer(graph, split)
        self.seconds: list[float] = []
        self.scores: list[dict[str, float]] = []

    def run(self) -> None:
        """Train an epoch, which is timed, and score."""
        start = perf_counter()
        epoch = self.epoch(self.update)
        self.seconds.append(perf_counter() - start)
        prediction, self.carry = self.method.eval().evaluate(self.problem, epoch)
        self.scores.append(self.score(prediction))

    def epoch(self, update: Callable[[Epoch], None]) -> Epoch:
        """Run an epoch, whose random numbers depend on how many there were before."""
        method, generator = self.method.train(), Generator().manual_seed(len(self.seconds))
        if self.batch_parts is None:
            epoch = method.epoch(self.problem, generator, self.carry)
            update(epoch)
            return replace(epoch, loss=epoch.loss.detach())
        order, size = Generator().manual_seed(len(self.seconds)), self.batch_parts
        return epoch_of_batches(method, self.problem, generator, self.carry, size, order, update)

    def update(self, epoch: Epoch) -> None:
        """Change the weights."""
        self.optimizer.zero_grad()
        epoch.loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            self.method.project(self.problem)

    def tightened(self) -> Side:
        """Return a copy with its own weights, whose solves, forward and backward, leave no error behind."""
        other, method = copy.copy(self), cast(LIGNN, copy.deepcopy(self.method))
        method.solver = replace(method.solver, tol=TIGHT, max_steps=500)
        method.gradient = Implicit("exact", replace(method.solver, norm="relative"))
        other.method, other.optimizer = method, Adam(method.parameters(), self.optimizer.lr)
        other.optimizer.load_state(self.optimizer.state())
        return other

    @property
    def best(self) -> dict[str, float]:
        """The scores of the best epoch on the validation nodes."""
        return max(self.scores, key=lambda scores: scores["val"])

    def seconds_to(self, wanted: float) -> float | None:
        """Return the seconds of training until a validation score is reached; None if it was not."""
        reached = [number for number, scores in enumerate(self.scores, 1) if scores["val"] >= wanted]
        return sum(self.seconds[: reached[0]]) if reached else None


def _compared(
    case: str,
    graph: StoredGraph,
    split: Split,
    seconds: float,
    sizes: Sequence[int | None] = SIZES,
    biased: bool = True,
) -> Iterator[Record]:
    """Train all sides in turn, an epoch at a time, for so many seconds each; measure their bias too if wanted."""
    Side(graph, split, PARTS).run()  # reads the files and compiles the kernels
    sides = {size: Side(graph, split, size) for size in sizes}
    while running := [side for side in sides.values() if sum(side.seconds) < seconds or len(side.seconds) < LEAST]:
        for side in running:
            side.run()
    exact = sides[None]
    wanted = CLOSE * max(side.best["val"] for side in sides.values())
    config = {"nodes": graph.num_nodes, "entries": graph.num_edges, "labels": int(split.train.sum()), "parts": PARTS}
    reference = Timing(tuple(exact.seconds))
    for size, side in sides.items():
        timing = Timing(tuple(side.seconds))
        ratio = timing.median / reference.median  # numbers of epochs differ
        figures: Record = {"median": timing.median, "spread": timing.spread, "ratio": ratio, "score": side.best["test"]}
        figures |= {"epochs": len(side.seconds), "seconds_to_score": side.seconds_to(wanted)}
        if size is not None and biased:
            figures |= bias(exact, size)
        name = "exact" if size is None else f"{size} part" + "s" * (size > 1)
        yield record(case, name, config | SETTINGS | {"seconds": seconds, "close": CLOSE}, **figures)


def bias(trained: Side, batch_parts: int) -> Record:
    """Return how far batches are off, at the weights of a trained side.

    * gradient: the relative error of the mean gradient of all batches, without updates between them: what is outside
        of a batch is up to date, and only the gradients of the halo are missing.
    * prediction: the mean change of a probability in the last batch of an epoch with updates, if what is outside of
        that batch is brought up to date.
    """
    side = trained.tightened()
    side.batch_parts = batch_parts
    mean = _gradient(side, side.epoch) / -(-PARTS // batch_parts)
    side.batch_parts = None
    exact = _gradient(side, side.epoch)
    side.batch_parts = batch_parts
    last: list[tuple[Epoch, Any]] = []

    def note(epoch: Epoch) -> None:
        last[:] = [(epoch, copy.deepcopy(side.method.state_dict()))]
        side.update(epoch)

    side.epoch(note)
    epoch, weights = last[0]
    side.method.load_state_dict(weights)
    method: Any = side.method  # without dropout, the map of a prediction is that of training
    state = method.on(side.problem).solve(solver=method.solver).solution.value
    visit, solution = cast(Visit, epoch.problem), cast(Solution, epoch.solution)
    stale = (solution.value - state[visit.batch.positions]).abs().mean()
    return {"gradient_error": float((mean - exact).norm() / exact.norm()), "prediction_error": float(stale)}


def _gradient(side: Side, epoch: Callable[[Callable[[Epoch], None]], Any]) -> Tensor:
    """Return the sum of the gradients of all losses of an epoch."""
    side.optimizer.zero_grad()
    epoch(lambda each: each.loss.backward())
    return torch.cat([weight.grad.flatten() for weight in side.method.parameters() if weight.grad is not None])

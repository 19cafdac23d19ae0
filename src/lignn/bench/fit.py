"""LI-GCN trained to the end at the paper's settings: time and test score."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import mean
from time import perf_counter
from typing import Any

from lignn.bench import textbook
from lignn.bench.sides import LEARNING_RATE, MASK_RATE, Lignn, Task, Textbook, backbone, load_task
from lignn.bench.timing import Record, Timing, record
from lignn.methods import LIGNN
from lignn.training import Training, train

GRAPHS = ("chameleon", "amazon_photo")
PAPER = Training(lr=LEARNING_RATE, max_epochs=1000, patience=100)
"""Training settings of the paper."""
STEPS = 10
"""Maximum number of steps of a solve."""
SPLITS = 2
"""With more splits, the textbook version would take hours on Photo."""

Fit = Callable[[Task, int, Training], dict[str, Any]]


def run(quick: bool) -> Iterator[Record]:
    """Train on the first splits of the paper; the seed is the number of the split."""
    settings = Training(lr=LEARNING_RATE, max_epochs=5, patience=5) if quick else PAPER
    sources: list[str | int] = [10_000] if quick else list(GRAPHS)
    for source in sources:
        outcomes: dict[str, list[dict[str, Any]]] = {name: [] for name in SIDES}
        for number in range(SPLITS):
            problem = load_task(source, number)
            Lignn(problem).epoch()  # compiles the kernels
            for name, side in SIDES.items():
                outcomes[name].append(side(problem, number, settings))
        yield from _records(problem.graph.name, outcomes, settings)


def fit_lignn(problem: Task, seed: int, settings: Training, warm_start: bool = True) -> dict[str, Any]:
    """Train LI-GCN with lignn; by default each solve starts from the state of the last epoch."""
    start = perf_counter()
    side = Lignn(problem, STEPS, seed)
    side.method = LIGNN(backbone(problem.graph, seed), MASK_RATE, max_steps=STEPS, warm_start=warm_start)
    history = train(side.method, side.training, side.inference, side.score, side.generator, settings)
    return {"seconds": perf_counter() - start, "epochs": len(history.epochs), "score": history.best_record["test"]}


fit_as_published = partial(fit_lignn, warm_start=False)
"""Train LI-GCN with lignn; each solve starts from zero, as in Algorithm 1."""


def fit_textbook(problem: Task, seed: int, settings: Training) -> dict[str, Any]:
    """Train LI-GCN with PyG, with the same tolerances and the same early stopping."""
    start = perf_counter()
    c = problem.graph.num_classes
    forward = textbook.Budget(STEPS, 1e-4 / c)
    backward = textbook.Budget(STEPS, 1e-5 * (c - 1) / c**2)
    side = Textbook(problem, forward, backward, seed)
    history = [side.epoch()]
    best = 0
    while len(history) < settings.max_epochs and len(history) - 1 - best < settings.patience:
        history.append(side.epoch())
        if history[-1]["val"] > history[best]["val"]:
            best = len(history) - 1
    return {"seconds": perf_counter() - start, "epochs": len(history), "score": history[best]["test"]}


SIDES: dict[str, Fit] = {"lignn": fit_lignn, "lignn, cold starts": fit_as_published, "textbook": fit_textbook}


def _records(case: str, outcomes: dict[str, list[dict[str, Any]]], settings: Training) -> list[Record]:
    timings = {name: Timing(tuple(each["seconds"] for each in found)) for name, found in outcomes.items()}
    config = {"steps": STEPS, "mask_rate": MASK_RATE, "epochs": settings.max_epochs, "lr": settings.lr}
    records = []
    for name, found in outcomes.items():
        means = {figure: mean(each[figure] for each in found) for figure in ("epochs", "score")}
        records.append(record(case, name, config, **timings[name].figures(timings["lignn"]), **means, runs=found))
    return records

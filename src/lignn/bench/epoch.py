"""One epoch of LI-GCN, training and evaluation, with fixed numbers of steps: time and memory."""

from __future__ import annotations

from collections.abc import Iterator

from lignn.bench.graphs import power_law
from lignn.bench.sides import HIDDEN, Lignn, Task, Textbook, load_task
from lignn.bench.timing import Record, compare
from lignn.evaluation import peak

SideClass = type[Lignn] | type[Textbook]
SIDES: dict[str, SideClass] = {"lignn": Lignn, "textbook": Textbook}
ROUNDS = {"chameleon": 15, "amazon_photo": 9, "coauthor_physics": 3}
CONFIG = {"forward": 10, "adjoint": 10, "evaluation": 10, "hidden": HIDDEN, "setting": "inductive, paper split 0"}


def run(quick: bool) -> Iterator[Record]:
    """Time both sides in one process, and measure the memory of two epochs of each side in a process of its own."""
    sources: list[str | int] = [10_000] if quick else list(ROUNDS)
    for source in sources:
        problem = load_task(source)
        epochs = {name: side(problem).epoch for name, side in SIDES.items()}
        records = compare(problem.graph.name, epochs, ROUNDS.get(str(source), 2), CONFIG)
        del epochs
        for record in records:
            record["peak_mib"] = peak.in_fresh_process(prepare, _two_epochs, record["side"], source).peak_mib
        yield from records


def prepare(name: str, source: str | int, inductive: bool = True, communities: bool = False) -> tuple[SideClass, Task]:
    """Return the class of a side and its task, after an epoch on a small graph that loads and compiles all code."""
    problem = load_task(source, communities=communities)
    small = power_law(1000, problem.graph.num_classes)
    SIDES[name](Task(small, small.splits[0]), inductive=inductive).epoch()
    return SIDES[name], problem


def _two_epochs(prepared: tuple[SideClass, Task]) -> None:
    side_class, problem = prepared
    side = side_class(problem)
    for _ in range(2):
        side.epoch()

"""The plan of a fit on a stored graph: what is kept in memory, what is streamed, and how long an epoch will take."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from lignn.backbones import Backbone
from lignn.backbones.registry import factory_of, names_with
from lignn.backbones.stack import ConvolutionStack
from lignn.classifier.spec import Spec
from lignn.errors import ConfigError
from lignn.labels import Classes, KnownLabels
from lignn.methods import Problem
from lignn.propagation import StoredRows
from lignn.store import StoredGraph
from lignn.store.memory import give_back_large
from lignn.store.share import BLOCK

METHODS = ("lignn", "lae", "label_input", "label_reuse", "backbone")
"""Methods whose steps are products with Ã and maps of rows."""
PROGRAM = 550 * 10**6
"""Bytes of anonymous memory of Python, PyTorch and compiled kernels before any data."""
STATES = 10
"""States (n×c) that a solve, its adjoint and the taped step hold at once; a solver with memory holds more."""
PER_NODE = 40
"""Bytes a node of masks, random numbers and their temporary copies."""
_PRODUCTS = 5
"""Products of a step that solves and of one that is taped, whose inputs batches remember, and the state."""
TOLERANCE = 1.1
"""A plan may need this many times the memory that is allowed: its sizes are estimates."""
_KEPT = 1.6
"""Memory in units of a plan's that is enough even if the C library keeps what is freed; 1.45 was seen."""
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_bytes(text: str) -> int:
    """Return the number of bytes in a text such as 2GB or 500MB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)I?B?\s*", text.upper())
    if not found:
        raise ConfigError(f"memory: {text!r} is no size; write it like 2GB or 500MB")
    return int(float(found[1]) * _UNITS[f"{found[2]}B" if found[2] else ""])


def size(count: float) -> str:
    """Return a number of bytes in words."""
    unit = next(unit for unit in ("TB", "GB", "MB", "KB", "") if count >= _UNITS[unit] or not unit)
    return f"{count / _UNITS[unit]:.3g} {unit or 'B'}"


@dataclass(frozen=True)
class Plan:
    """What a process of a fit keeps in memory, and what it reads again and again.

    Attributes:
        keeps_features: whether the product of features and first weight is kept, or computed by block in every step.
        kept: bytes in memory by what they hold.
        streamed: bytes that a product reads, by what they hold.
        seconds: estimated seconds of an epoch; None if nothing was timed.
        batches: number of batches of an epoch; None for exact epochs.
    """

    keeps_features: bool
    kept: dict[str, int]
    streamed: dict[str, int]
    seconds: float | None = None
    batches: int | None = None

    @property
    def total(self) -> int:
        """Bytes in memory."""
        return sum(self.kept.values())

    def within(self, memory: int | None) -> None:
        """Let freed memory go back to the system if the plan would not keep within `memory` bytes otherwise.

        Memory that goes back has to be cleared when it is used again, so this takes time.
        """
        if memory is not None and self.total * _KEPT > memory:
            give_back_large()

    def __str__(self) -> str:
        kept = ", ".join(f"{what} {size(count)}" for what, count in self.kept.items() if count)
        streamed = ", ".join(f"{what} {size(count)}" for what, count in self.streamed.items() if count)
        lines = [f"memory {size(self.total)}: {kept}", f"streamed by each product: {streamed}"]
        if self.batches is not None:
            lines.append(f"updates of an epoch: {self.batches}, each on a batch of parts while all others stand still")
        return "\n".join(lines + ([] if self.seconds is None else [f"at most about {self.seconds:.3g} s an epoch"]))


def plan(spec: Spec, graph: StoredGraph, memory: int | None = None) -> Plan:
    """Choose what to keep within `memory` bytes for each process; without a limit, all that saves time.

    Raises:
        ConfigError: if the method cannot be streamed, or does not fit into the memory.
    """
    check(spec)
    check_batches(spec, graph)
    mine = graph.mine()
    n, width, c = mine.num_nodes, spec.dtype.itemsize, len(Classes.of(graph))
    hidden = hidden_width(spec)
    states = STATES + (2 * _memory_of_solver(spec) if spec.values.get("solver") != "picard" else 0)
    arrays = graph.manifest["arrays"]
    sparse = "x_data" in arrays
    parts = [graph.manifest["parts"][direction] for direction in graph.manifest["parts"]]
    entries = max(part["local"] + part["halo"] for each in parts for part in each)
    halo = max(part["nodes"] for each in parts for part in each)
    deep = _is_deep(spec, graph)
    layers = 3 * n * hidden * width if deep else 0
    batch = spec.training.batch_parts
    kept = {
        "program": PROGRAM,
        "states": states * n * c * width,
        "labels and degrees": PER_NODE * n + 3 * n * width,
        "one part": entries * width + 2 * halo * c * width,
        "one block": 12 * BLOCK * hidden * width,
        "dropout": n * hidden // 8 + 20 * n if spec.values.get("dropout") else 0,
        "hidden layers": layers,
        "history": 0 if batch is None else _PRODUCTS * n * (hidden if deep else c) * width,
    }
    narrow = not sparse and graph.num_features <= hidden  # then its product is computed by block, see StoredRows.keeps
    products = 0 if narrow else 4 * n * hidden * width  # with its gradient and their products with Ã, or its history
    chosen = memory is None or sum(kept.values()) + products <= memory * TOLERANCE
    if chosen:
        kept["features × weight"] = products
    elif sparse:
        _refuse(sum(kept.values()) + products, memory, "sparse features are needed as products with the weight")
    if memory is not None and sum(kept.values()) > memory * TOLERANCE:
        _refuse(sum(kept.values()), memory, "see which part is large in docs/guides/scale.md")
    share = n / graph.total
    edges = sum(_bytes(arrays, name) for name in arrays if name.startswith(("in_", "in.")))
    x = 0 if "x" not in arrays or (chosen and not narrow) else int(_bytes(arrays, "x") * share)
    batches = None if batch is None else -(-len(graph.manifest["sizes"]) // batch)
    return Plan(chosen, kept, {"edges": int(edges * share), "features": x}, batches=batches)


def timed(chosen: Plan, spec: Spec, graph: StoredGraph) -> Plan:
    """Return the plan with the estimated seconds of an epoch, from a step without features and a block of them."""
    mine = graph.mine()
    n, c, d = mine.num_nodes, len(Classes.of(graph)), graph.num_features
    zeros = torch.zeros(n, c, dtype=spec.dtype)
    nothing = KnownLabels(torch.zeros(n, dtype=torch.bool), zeros, share=mine.share)
    problem: Any = Problem.with_labels(mine, nothing)
    x = problem.x
    problem = replace(problem, x=StoredRows.empty(x.share, spec.dtype))
    if spec.chooses_contraction:
        spec = spec.with_contraction("free")  # the promise does not change the time of a step
    method = spec.build(0, c, torch.Generator().manual_seed(0), graph.edge_types)
    bound: Any = method.to(spec.dtype).eval().on(problem)
    step = bound.map or (lambda _: type(bound)(method, problem).probabilities)
    with torch.no_grad():
        seconds = _seconds(lambda: step(nothing.onehot))
        if chosen.streamed["features"]:
            block = torch.zeros(min(BLOCK, n), d, dtype=spec.dtype)
            weight = torch.zeros(d, hidden_width(spec), dtype=spec.dtype)
            seconds += _seconds(lambda: block @ weight) * n / len(block)
    steps = spec.values.get("max_steps") or 1
    exact = 0 if chosen.batches is None else steps + 1  # what visits begin with
    return replace(chosen, seconds=seconds * (steps_of_epoch(steps) + exact))


def steps_of_epoch(steps: int) -> int:
    """Return how many steps an epoch costs whose solves take so many: forward, evaluation, and the adjoint twice.

    The adjoint computes each block once more. The taped step and its gradient cost three.
    """
    return 4 * steps + 3


def _seconds(work: Callable[[], object]) -> float:
    work()  # reads the files and compiles the kernels
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def hidden_width(spec: Spec) -> int:
    """Return the width of the hidden layers."""
    return int(spec.network().get("hidden", 64))


def check(spec: Spec) -> None:
    """Raise if the method or its network cannot be streamed."""
    if spec.method not in METHODS or spec.learns_rows:
        name = f"{spec.name} over {spec.method_options['base']}" if spec.learns_rows else spec.name
        raise ConfigError(f"method: {name} needs the graph in memory; of a store, use {', '.join(METHODS)} on networks")
    network = spec.backbone if isinstance(spec.backbone, torch.nn.Module) else factory_of(spec.backbone)
    if not getattr(network, "streams", False):
        raise ConfigError(
            f"backbone: {spec.backbone!r} needs the graph in memory; of a store, use {', '.join(names_with('streams'))}"
        )
    norm = network.norm if isinstance(network, ConvolutionStack) else spec.backbone_options.get("norm")
    if norm == "batch":
        raise ConfigError(
            "norm: batch normalisation has statistics of all nodes, so it needs the graph in memory; of a store, use "
            "norm='layer'"
        )


def check_batches(spec: Spec, graph: StoredGraph) -> None:
    """Raise if the batches that are wanted cannot be trained on."""
    size, parts = spec.training.batch_parts, len(graph.manifest["sizes"])
    if size is None:
        return
    if spec.method == "label_reuse":
        raise ConfigError("batch_parts: label_reuse makes a fixed number of passes over the graph; use lignn or lae")
    if graph.processes.count > 1:
        raise ConfigError("batch_parts: batches are visited by one process; leave out --workers")
    if size > parts:
        raise ConfigError(f"batch_parts: {graph.name} has {parts} parts, {size} are wanted in a batch; give fewer")


def _memory_of_solver(spec: Spec) -> int:
    return int(getattr(spec.values.get("solver"), "memory", 5)) if spec.values.get("max_steps") else 0


def _is_deep(spec: Spec, graph: StoredGraph) -> bool:
    """Return whether a network propagates its hidden layers, which takes more memory."""
    method = spec.build(graph.num_features, len(Classes.of(graph)), torch.Generator(), graph.edge_types)
    return any(part.is_deep for part in method.modules() if isinstance(part, Backbone))


def _bytes(arrays: dict[str, Any], name: str) -> int:
    entry = arrays[name]
    return math.prod(entry["shape"]) * int(entry["dtype"][2:])


def _refuse(needed: int, memory: int | None, why: str) -> None:
    raise ConfigError(
        f"memory: about {size(needed)} are needed, {size(memory or 0)} are allowed ({why}); raise --memory, use more "
        "--workers, or narrower hidden layers"
    )

"""Requests a second and times of `lignn serve`, beside an empty FastAPI route and beside a plain function around PyG.

Each side is a process of its own, asked by one client over one connection, in turns.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch

from lignn.bench.sides import HIDDEN, Task, dense_inputs, load_task
from lignn.bench.timing import Record, Side, Timing, interleaved, record
from lignn.classifier import NodeClassifier
from lignn.graph import Graph

EPOCHS = 20
"""Of training: the weights do not change how long an answer takes."""
_MANY = 1000


def run(quick: bool) -> Iterator[Record]:
    """Measure one prediction, 1 000 predictions, one label, and the first page."""
    sources: list[str | int] = [10_000] if quick else ["cora", "amazon_photo", "coauthor_physics", 10**6]
    for source in sources:
        task = load_task(source)
        with tempfile.TemporaryDirectory() as folder:
            yield from _measured(task, Path(folder), quick)


def _measured(task: Task, folder: Path, quick: bool) -> Iterator[Record]:
    classifier = NodeClassifier(max_epochs=2 if quick else EPOCHS).fit(task.graph, task.split)
    classifier.save(folder / "model")
    task.graph.replace(splits=()).write(folder / "graph.npz")
    name, rounds = task.graph.name, 30 if quick else 400
    ids = [str(i) for i in range(task.graph.num_nodes)] if task.graph.node_ids is None else task.graph.node_ids.tolist()
    with ExitStack() as stack:
        service = stack.enter_context(_process("-m", "lignn", "serve", str(folder / "model"), "--port", "0"))
        plain = stack.enter_context(_process("-m", "lignn.bench.serve", str(folder / "graph.npz")))
        nodes = iter(np.random.default_rng(0).choice(ids, 100_000).tolist())
        one: dict[str, Side] = {
            "lignn serve": lambda: service.ask("GET", f"/predictions/{next(nodes)}"),
            "empty route": lambda: plain.ask("GET", "/empty"),
        }
        yield from _records(f"one prediction, {name}", one, rounds)
        forward: dict[str, Side] = {
            "lignn serve": lambda: service.ask("GET", f"/predictions/{next(nodes)}"),
            "plain PyG": lambda: plain.ask("GET", "/forward/0"),
        }
        yield from _records(f"one prediction, beside a forward pass, {name}", forward, 5 if quick else 20)
        many = json.dumps({"ids": ids[:_MANY]})
        yield from _records(
            f"1 000 predictions, {name}",
            {"lignn serve": lambda: service.ask("POST", "/predictions", many)},
            rounds // 4,
        )
        yield from _label_records(task, classifier, service, ids, 10 if quick else 400)
        yield from _records(
            f"first page, {name}", {"lignn serve": lambda: service.ask("GET", "/", accept="text/html")}, 5
        )


def _label_records(
    task: Task, classifier: NodeClassifier, service: Connection, ids: list[str], updates: int
) -> Iterator[Record]:
    """Label the same nodes over HTTP and by `update_labels`, in turns."""
    y = task.graph.y
    assert y is not None
    unknown = np.random.default_rng(0).permutation(task.split.test.nonzero().flatten().numpy())[: updates + 1].tolist()
    one, other = iter(unknown), iter(unknown)

    def over_http() -> None:
        node = next(one)
        label = classifier.class_names_[int(y[node])]
        service.ask("PUT", f"/labels/{ids[node]}", json.dumps({"label": label}))

    def in_process() -> None:
        node = next(other)
        classifier.update_labels({node: int(y[node])})

    timings = interleaved({"lignn serve": over_http, "update_labels": in_process}, len(unknown) - 1)
    yield from _of(f"one label, {task.graph.name}", timings, {"updates": updates})


def _records(case: str, sides: dict[str, Side], rounds: int) -> list[Record]:
    return _of(case, interleaved(sides, rounds), {"rounds": rounds})


def _of(case: str, timings: dict[str, Timing], config: dict[str, Any]) -> list[Record]:
    reference = next(iter(timings.values()))
    found = []
    for side, timing in timings.items():
        p99 = float(np.quantile(timing.seconds, 0.99))
        figures = timing.figures(reference) | {"p99": p99, "requests_per_second": 1 / timing.median}
        found.append(record(case, side, config, **figures))
    return found


class Connection:
    """One open connection to a service.

    Args:
        address: of the service.
    """

    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=600)

    def ask(self, method: str, path: str, body: str | None = None, accept: str = "application/json") -> bytes:
        """Return the answer to a request; raise if it is an error."""
        headers = {"Content-Type": "application/json", "Accept": accept}
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        except ConnectionError:  # A server closes a connection that was idle for long, while the other side was asked.
            self._connection.close()
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:200]!r}")
        return content

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@contextmanager
def _process(*arguments: str) -> Iterator[Connection]:
    """Start a service, and wait until it says where it is."""
    command = [sys.executable, *arguments]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            found = next((m for line in process.stdout if (m := re.match(r"(http://\S+?):? ", line))), None)
            if found is None:
                raise RuntimeError(f"{' '.join(command)} has ended")
            start = perf_counter()
            connection = Connection(found[1])
            while perf_counter() < start + 60:
                try:
                    connection.ask("GET", "/health")
                    break
                except (OSError, RuntimeError):
                    connection = Connection(found[1])
            yield connection
            connection.close()
        finally:
            process.terminate()


def serve_plainly(file: Path) -> None:
    """Serve a network with random weights on the graph in a file, as one would write it first.

    Each request computes a forward pass of PyG's GCN.
    """
    import uvicorn
    from fastapi import FastAPI
    from torch_geometric.nn import GCN

    graph = Graph.read(file)
    inputs = dense_inputs(graph)
    network = GCN(inputs.shape[1], HIDDEN, 2, graph.num_classes).eval()
    app = FastAPI()

    @app.get("/forward/{node}")
    def forward(node: int) -> dict[str, float]:
        with torch.no_grad():
            row = network(inputs, graph.edge_index).softmax(1)[node]
        return {str(number): float(share) for number, share in enumerate(row)}

    @app.get("/empty")
    async def empty() -> dict[str, str]:
        return {}

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {}

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]} is ready\n")
    sys.stdout.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])


if __name__ == "__main__":
    serve_plainly(Path(sys.argv[1]))

"""What one would write first: a FastAPI function around PyG that computes a forward pass for each request."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import torch

from lignn.bench.sides import HIDDEN, dense_inputs
from lignn.graph import Graph


def main(file: Path) -> None:
    """Serve a network with random weights on the graph in `file`."""
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
    main(Path(sys.argv[1]))

"""The process that trains: `python -m lignn.serve.child FOLDER`; it tells its progress in lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

_NICE = 3
"""Requests come before training."""


def main(folder: Path) -> int:
    """Train on the graph in `folder`, and save the model there."""
    from lignn.classifier import NodeClassifier
    from lignn.classifier.race.auto import Standing
    from lignn.declarations import is_race
    from lignn.errors import ConvergenceWarning, LignnError
    from lignn.graph import Graph

    warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate of the model tells it
    graph = Graph.read(folder / "graph.npz")
    parameters = json.loads((folder / "parameters.json").read_text(encoding="utf-8"))
    try:
        classifier = NodeClassifier(**parameters)

        def tell(now: Any) -> None:
            if isinstance(now, Standing):  # of a race; its fits take the place of epochs
                _say({"epoch": now.done, "epochs": now.total})
            else:
                _say({"epoch": len(now.epochs), "score": now.epochs[-1].get("val")})

        if not is_race(parameters):
            _say({"epochs": _epochs(classifier)})
        classifier.fit(graph, graph.splits[0] if graph.splits else None, progress=tell)
        classifier.save(folder / "model")
    except LignnError as error:
        _say({"error": str(error)})
        return 2
    return 0


def _epochs(classifier: Any) -> int:
    from lignn.classifier.spec import Spec

    return Spec.resolve(classifier.get_params(deep=False)).training.max_epochs


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    sys.exit(main(Path(sys.argv[1])))

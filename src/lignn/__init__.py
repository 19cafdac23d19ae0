"""Label-inputted Implicit Graph Neural Networks: the labels of a half-labelled graph.

Names are imported on first use, so that `import lignn` and `lignn --help` are quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from lignn import backbones, datasets, errors, methods
    from lignn.classifier import AutoClassifier, NodeClassifier, TabularClassifier, load
    from lignn.equilibrium import fixed_point, solvers
    from lignn.graph import Graph, Split, measures, splits
    from lignn.propagation import Adjacency

_HOMES = {
    "Adjacency": "lignn.propagation",
    "AutoClassifier": "lignn.classifier",
    "Graph": "lignn.graph",
    "NodeClassifier": "lignn.classifier",
    "Split": "lignn.graph",
    "TabularClassifier": "lignn.classifier",
    "backbones": "lignn",
    "datasets": "lignn",
    "errors": "lignn",
    "fixed_point": "lignn.equilibrium",
    "load": "lignn.classifier",
    "measures": "lignn.graph",
    "methods": "lignn",
    "solvers": "lignn.equilibrium",
    "splits": "lignn.graph",
}

__all__ = [
    "Adjacency",
    "AutoClassifier",
    "Graph",
    "NodeClassifier",
    "Split",
    "TabularClassifier",
    "backbones",
    "datasets",
    "errors",
    "fixed_point",
    "load",
    "measures",
    "methods",
    "solvers",
    "splits",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lignn' has no attribute {name!r}")
    home = _HOMES[name]
    value = import_module(f"lignn.{name}") if home == "lignn" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

"""Checkpoints of a classifier's training: to go on from, and to keep the best of what was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from lignn.errors import InputError
from lignn.methods import Method
from lignn.training import History, checkpoint


@contextmanager
def checkpoint_file(given: Path | None, method: Method) -> Iterator[Path]:
    """Where training writes its checkpoint: the file given, else a temporary one that serves an interruption."""
    if given is not None:
        _check_same_model(given, method)
        yield given
    else:
        with TemporaryDirectory() as folder:
            yield Path(folder) / "checkpoint.safetensors"


def _check_same_model(path: Path, method: Method) -> None:
    if not path.exists():
        return
    theirs = {name: tensor.shape for name, tensor in checkpoint.read(path)["weights"].items()}
    if theirs != {name: tensor.shape for name, tensor in method.state_dict().items()}:
        raise InputError(f"{path}: the checkpoint of another model; delete it, or give another file")


def best_so_far(path: Path, method: Method) -> History | None:
    """Load the best weights of an interrupted training into `method`; None if it had no epoch."""
    if not path.exists():
        return None
    state = checkpoint.read(path)
    history = state["history"]
    if history["best"] < 0:
        return None
    method.load_state_dict(state["best"])
    return History(history["epochs"], history["best"], None)

"""Checkpoints of a training in progress, so that a killed run can continue, and the hook that writes them.

A file is replaced as a whole. It is a safetensors file with tensors by path (`weights/…`, `best/…`, `optimizer/…`,
`carry/…`, `taught/…`, `generator`), and everything else as JSON in its metadata, with a checksum of both. Nothing is
unpickled.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from lignn.atomic import whole_file
from lignn.errors import InputError, ProcessError
from lignn.training.hooks.hook import Hook

if TYPE_CHECKING:
    from lignn.training.run import Run

VERSION = 3


def flatten(tree: dict[Any, Any], prefix: str = "") -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors by path, and the plain values by path."""
    tensors: dict[str, Tensor] = {}
    values: dict[str, Any] = {}
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Tensor):
            # Safetensors refuses tensors that share memory.
            tensors[path] = value.detach().clone().contiguous()
        elif isinstance(value, dict) and value:
            inner_tensors, inner_values = flatten(value, f"{path}/")
            tensors |= inner_tensors
            values |= inner_values
        else:
            values[path] = value
    return tensors, values


def unflatten(flat: dict[str, Any]) -> dict[str, Any]:
    """Return the nested dictionaries that `flatten` was given; keys are text."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, key = path.split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[key] = value
    return tree


def write(path: Path, state: dict[str, Any]) -> None:
    """Write nested dictionaries of tensors and plain values."""
    tensors, values = flatten(state)
    with whole_file(path) as temporary:
        text = json.dumps(values)
        metadata = {"version": str(VERSION), "values": text, "checksum": _checksum(tensors, text)}
        # save_file would make the file readable for its owner only
        temporary.write_bytes(save(tensors, metadata))


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote."""
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        version = int(metadata["version"])
        intact = version != VERSION or metadata["checksum"] == _checksum(tensors, metadata["values"])
        values = json.loads(metadata["values"])
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (SafetensorError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a checkpoint, or a damaged one ({error}); delete it to start over") from error
    if version != VERSION:
        raise InputError(
            f"{path}: a checkpoint of format {version}, but this lignn reads format {VERSION}; delete it to start over"
        )
    if not intact:
        raise InputError(f"{path}: the checkpoint is not what was saved (damaged or changed); delete it to start over")
    return unflatten(values | tensors)


def _checksum(tensors: dict[str, Tensor], values: str) -> str:
    """Return the SHA-256 of all tensors, with their names, types and shapes, and of the plain values."""
    digest = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class Checkpoints(Hook):
    """Writes all that the next epoch depends on to a file, and continues from it with the same result.

    The file has whole epochs only: one that is interrupted in its middle is repeated from its beginning.

    Args:
        path: the file; training continues from it if it exists.
        run_id: tells this run from others, whose files are refused. The file of run "a" is one of an earlier attempt
            of run "a/b", which replaces it.
        seconds: seconds between two checkpoints.
    """

    def __init__(self, path: Path, run_id: str = "", seconds: float = 10.0) -> None:
        self.path, self.run_id, self.seconds = path, run_id, seconds
        self._written = 0.0
        self._whole: dict[str, Any] = {}

    @contextmanager
    def training(self, run: Run) -> Iterator[None]:
        """Continue from the file, and write it at the end, or on an interruption."""
        if self.path.exists():
            self._resume(run)
        self._whole, self._written = self._state(run), time.monotonic()
        try:
            yield
            if run.history.epochs:  # there is nothing to continue if the first epoch failed
                self._write(run)
        except (KeyboardInterrupt, ProcessError):
            self._write(run)
            raise

    def after_epoch(self, run: Run, record: dict[str, Any]) -> None:  # noqa: ARG002
        """Note the state, and write it if the last time is long ago."""
        self._whole = self._state(run)
        if time.monotonic() - self._written > self.seconds:
            self._write(run)
            self._written = time.monotonic()

    def _state(self, run: Run) -> dict[str, Any]:
        return {"run": self.run_id, **run.state()}

    def _write(self, run: Run) -> None:
        if run.inference.processes.is_first:
            write(self.path, self._whole)

    def _resume(self, run: Run) -> None:
        try:
            state = read(self.path)
            theirs = state.get("run", "")
            if self.run_id.startswith(f"{theirs}/"):
                return
            if theirs != self.run_id or not run.fits(state):
                raise InputError(
                    f"{self.path}: the checkpoint of another run with another graph, split or settings; "
                    "delete it, or give another file"
                )
            run.load(state)
        except InputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"{self.path}: a damaged checkpoint ({error}); delete it to start over") from error

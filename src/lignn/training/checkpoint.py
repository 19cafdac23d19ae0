"""Checkpoints of a training in progress, so that a killed run can continue. The file is replaced as a whole.

It is a safetensors file with tensors by path (`weights/…`, `best/…`, `optimizer/…`, `carry/…`, `taught/…`,
`generator`), and everything else as JSON in its metadata, with a checksum of both. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from lignn.atomic import whole_file
from lignn.errors import InputError

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

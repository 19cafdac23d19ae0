"""A golden: a hash of what one case gave, numbers for other machines, and the machine that it was taken on."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

FILE = Path(__file__).parent / "goldens.json"
PACKAGES = ("torch", "numpy", "numba", "scipy", "scikit-learn", "lightgbm")
UNITS = ("sse", "avx", "fma", "amx", "asimd", "sve")
"""Beginnings of the names of a processor's vector units."""
TOLERANCE = 1e-4
"""Largest difference of a number on another machine, absolute or relative."""


def fingerprint() -> dict[str, Any]:
    """Return what rounding depends on: the processor's vector units, and versions. Goldens take one thread."""
    units = sorted(name for name in _flags() if name.startswith(UNITS))
    return {
        "machine": platform.machine(),
        "units": hashlib.sha256(" ".join(units).encode()).hexdigest()[:12],
        **{name: version(name) for name in PACKAGES},
    }


def _flags() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return []
    lines = (line.partition(":") for line in text.splitlines())
    return next((value.split() for name, _, value in lines if name.strip() in ("flags", "Features")), [])


def summary(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return for every part of a result its hash, and for arrays numbers that may differ in rounding.

    Args:
        found: arrays, bytes, or plain values by name.
    """
    return {name: _summary(value) for name, value in found.items()}


def _summary(value: Any) -> dict[str, Any]:
    if isinstance(value, bytes):
        return {"hash": _hash(value)}
    if isinstance(value, np.ndarray | torch.Tensor):
        array = np.ascontiguousarray(value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value)
        content = f"{array.dtype} {array.shape} ".encode() + array.tobytes()
        flat = array.astype(float).ravel()
        weights = np.cos(np.arange(len(flat)))  # a sum that a swap of two entries changes
        numbers = [flat.mean(), flat.std(), float(flat @ weights) / max(len(flat), 1), *flat[:3]]
        return {"hash": _hash(content), "numbers": [round(float(number), 8) for number in numbers]}
    text = json.dumps(value, sort_keys=True, default=str)
    return {"hash": _hash(text.encode()), "value": value}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def differences(found: Mapping[str, Any], golden: Mapping[str, Any], same_machine: bool) -> list[str]:
    """Return in which parts two summaries differ: in any bit on the same machine, else by more than rounding."""
    if found.keys() != golden.keys():
        return [f"the parts are {', '.join(found)}, not {', '.join(golden)}"]
    return [
        f"{name}: {found[name]} is not {golden[name]}"
        for name in golden
        if not _same(found[name], golden[name], same_machine)
    ]


def _same(found: Mapping[str, Any], golden: Mapping[str, Any], same_machine: bool) -> bool:
    if same_machine or found["hash"] == golden["hash"]:
        return found["hash"] == golden["hash"]
    if "numbers" in golden:
        return np.allclose(found["numbers"], golden["numbers"], rtol=TOLERANCE, atol=TOLERANCE)
    if "value" in golden:
        return _close(json.loads(json.dumps(found["value"], default=str)), golden["value"])
    return True  # a file's bits have no other meaning on another machine


def _close(found: Any, golden: Any) -> bool:
    """Return whether plain values are the same but for rounding: statuses and steps are, losses may differ."""
    if isinstance(golden, float) and isinstance(found, float):
        return bool(np.isclose(found, golden, rtol=TOLERANCE, atol=TOLERANCE))
    if isinstance(golden, dict) and isinstance(found, dict):
        return found.keys() == golden.keys() and all(_close(found[name], golden[name]) for name in golden)
    if isinstance(golden, list) and isinstance(found, list):
        return len(found) == len(golden) and all(map(_close, found, golden))
    return bool(found == golden)

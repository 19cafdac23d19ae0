"""A check that code does not mix devices, for machines without an accelerator.

PyTorch's `meta` device has shapes and dtypes but no numbers. To PyTorch it is a device like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COPY = torch.ops.aten.copy_.default


class OneDevice(TorchDispatchMode):
    """Mode in which an operator fails if its tensor arguments are on different devices.

    As in PyTorch, a CPU tensor without dimensions counts as a number, and `a.copy_(b)` may copy between devices.

    Attributes:
        operators: names of all operators that were called in this mode, such as "aten::mul".
    """

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        devices = {str(tensor.device) for tensor in tensors if tensor.ndim or tensor.device.type != "cpu"}
        if len(devices) > 1 and func is not COPY:
            raise AssertionError(f"{func} was called with tensors on {' and '.join(sorted(devices))}")
        self.operators.append(func.name().partition(".")[0])
        return func(*args, **kwargs)

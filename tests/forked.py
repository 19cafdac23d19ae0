"""Functions run in processes of their own, which need not import PyTorch again."""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PRELOADED = ["torch", "pandas", "sklearn.linear_model", "matplotlib.pyplot", "lignn.training", "lignn.classifier"]


def errors_of(function: Callable[..., Any], *arguments: Any, folder: Path) -> str:
    """Call a function in a folder and a process of its own, and return its traceback, an empty text if it has none.

    The process is forked from one that has imported PyTorch and lignn and has done nothing else.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as place:
        error = Path(place) / "error"
        process = context.Process(target=_call, args=(function, arguments, folder, error))
        process.start()
        process.join()
        return "" if process.exitcode == 0 else error.read_text(encoding="utf-8") or f"exit code {process.exitcode}"


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], folder: Path, error: Path) -> None:
    os.chdir(folder)
    with open(os.devnull, "w") as nothing, error.open("w", encoding="utf-8") as errors:
        sys.stdout, sys.stderr = nothing, errors
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc(file=errors)
            errors.flush()
            os._exit(1)
        finally:
            sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

"""Fixtures for all tests."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("lignn", deadline=None)  # a test says nothing about the clock of a busy machine
settings.load_profile("lignn")

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores. Threads of PyTorch that wait for work would take them from each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """PyG scripts some of its classes when it is imported, which torch deprecates; all other warnings are errors."""
    config.addinivalue_line("filterwarnings", r"ignore:.torch\.jit\.script. is deprecated:DeprecationWarning")


@pytest.fixture(autouse=True)
def same_draws() -> None:
    """Let a test draw the same weights whatever ran before it in its worker."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real datasets."""
    if not os.environ.get("LIGNN_DATA"):
        pytest.skip("set LIGNN_DATA to the folder of real datasets")
    return Path(os.environ["LIGNN_DATA"])

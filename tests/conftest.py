"""Fixtures for all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """PyG scripts some of its classes when it is imported, which torch deprecates; all other warnings are errors."""
    config.addinivalue_line("filterwarnings", r"ignore:.torch\.jit\.script. is deprecated:DeprecationWarning")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real datasets."""
    if not os.environ.get("LIGNN_DATA"):
        pytest.skip("set LIGNN_DATA to the folder of real datasets")
    return Path(os.environ["LIGNN_DATA"])

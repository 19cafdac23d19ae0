"""Fixtures for graphs."""

import pytest

from tests.graph.folders import put


@pytest.fixture
def folder(tmp_path):
    """Return a folder with two valid tables."""
    path = tmp_path / "mine"
    path.mkdir()
    put(path)
    return path

"""Fixtures for graphs."""

import pytest

from tests.graph.folders import put


@pytest.fixture
def folder(tmp_path):
    """A folder with two good tables."""
    path = tmp_path / "mine"
    path.mkdir()
    put(path)
    return path

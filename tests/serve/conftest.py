"""A model on the disk, and services over it."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the service needs fastapi, uvicorn and prometheus_client: lignn[serve]")
from starlette.testclient import TestClient

from lignn.datasets.sources import Source
from lignn.serve import child
from lignn.serve.app import application
from lignn.serve.opening import Place
from lignn.serve.security import Policy
from lignn.serve.service import Service
from lignn.serve.training import Training
from tests.classifier.small import fitted, small_graph


@pytest.fixture(scope="session")
def original(tmp_path_factory) -> Path:
    """A model that must not be written to."""
    folder = tmp_path_factory.mktemp("original") / "model"
    fitted(max_epochs=5).save(folder)
    return folder


@pytest.fixture
def model(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "model"))


@pytest.fixture
def graph_file(tmp_path) -> Path:
    """The small graph without labels."""
    path = tmp_path / "small.npz"
    small_graph().replace(y=None, class_names=None).write(path)
    return path


@pytest.fixture
def training_here(monkeypatch):
    """Train without a child process, whose start takes longer than the training of a small model."""

    def run_child(_, folder):
        assert child.main(folder) == 0

    monkeypatch.setattr(Training, "_run_child", run_child)


@contextmanager
def serving(name: Path, **policy):
    """A client of a service in this process, which is ready, and the service."""
    place = Place.of(str(name), Source(str(name)), None, None)
    service = Service(place, Policy(**policy))
    with TestClient(application(service), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        service.engine.opened.wait(60)
        assert service.engine.failure is None, service.engine.failure
        yield client, service


@pytest.fixture
def client(model):
    with serving(model) as (client, _):
        yield client

"""A fake internet that holds only the files of a test."""

from __future__ import annotations

import io
from email.message import Message
from pathlib import Path
from urllib.error import URLError

import pytest


class Response(io.BytesIO):
    """The parts of the result of `urlopen` that PyG and OGB use."""

    def info(self) -> Message:
        headers = Message()
        headers["Content-Length"] = str(len(self.getvalue()))
        return headers


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a temporary cache folder for datasets; no other folder is searched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIGNN_DATA", raising=False)
    return tmp_path / "cache" / "lignn" / "datasets"


@pytest.fixture
def internet(cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Return files by a part of their address; only the transfer is faked, PyG and OGB process the files themselves."""
    files: dict[str, bytes] = {}

    def fetch(address: str, **_: object) -> Response:
        for part, content in files.items():
            if part in address:
                return Response(content)
        raise URLError("offline")

    def copy(address: str, folder: str) -> None:
        (Path(folder) / address.rpartition("/")[2]).write_bytes(fetch(address).read())

    monkeypatch.setattr("urllib.request.urlopen", fetch)
    monkeypatch.setattr("torch_geometric.io.fs.cp", copy)
    return files

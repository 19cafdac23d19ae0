"""An internet that consists of the files a test puts there."""

from __future__ import annotations

import io
from email.message import Message
from pathlib import Path
from urllib.error import URLError

import pytest


class Response(io.BytesIO):
    """What `urlopen` returns, as far as PyG and OGB look at it."""

    def info(self) -> Message:
        headers = Message()
        headers["Content-Length"] = str(len(self.getvalue()))
        return headers


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder for datasets, in a temporary place; no other folder is known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIGNN_DATA", raising=False)
    return tmp_path / "cache" / "lignn" / "datasets"


@pytest.fixture
def internet(cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Files by a part of their address. Only the fetching of bytes is replaced: PyG's and OGB's own processing runs."""
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

import gzip
import io
import sys
import zipfile

import numpy as np
import pytest
import torch

import lignn
from lignn.errors import DatasetError
from tests.datasets import archives


def table(rows: object) -> bytes:
    """Return a gzipped CSV file without a header."""
    text = io.StringIO()
    np.savetxt(text, np.atleast_2d(rows), delimiter=",", fmt="%.9g")
    return gzip.compress(text.getvalue().encode())


def arxiv(x: np.ndarray, y: np.ndarray, parts: dict[str, list[int]]) -> bytes:
    """Return an archive with the layout of OGB's arxiv.zip."""
    files = {
        "raw/edge": archives.EDGES,
        "raw/num-node-list": [[len(x)]],
        "raw/num-edge-list": [[len(archives.EDGES)]],
        "raw/node-feat": x,
        "raw/node-label": y[:, None],
        "raw/node_year": np.full((len(x), 1), 2015),
        **{f"split/time/{part}": np.array(nodes)[:, None] for part, nodes in parts.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("arxiv/RELEASE_v1.txt", "")
        archive.mkdir("arxiv/processed")
        for name, rows in files.items():
            archive.writestr(f"arxiv/{name}.csv.gz", table(rows))
    return buffer.getvalue()


def test_download(internet: dict[str, bytes], capfd: pytest.CaptureFixture[str]) -> None:
    n = 45
    x, y = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32), archives.labels(n, 40)
    parts = {"train": list(range(2, 40)), "valid": [0, 40, 41], "test": [1, 42, 43, 44]}
    internet["nodeproppred/arxiv.zip"] = arxiv(x, y, parts)

    graph = lignn.datasets.load("ogbn_arxiv")
    assert capfd.readouterr().out == ""
    assert torch.equal(graph.x, torch.from_numpy(x))
    assert np.array_equal(graph.y, y)
    assert graph.num_classes == 40
    proper = [tuple(edge) for edge in archives.EDGES.tolist() if edge[0] != edge[1]]
    assert archives.pairs(graph.edge_index) == sorted(proper + [(j, i) for i, j in proper])
    (split,) = graph.splits
    assert [mask.nonzero().flatten().tolist() for mask in (split.train, split.val, split.test)] == list(parts.values())


def test_ogb_is_optional(internet: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ogb.nodeproppred", None)
    with pytest.raises(DatasetError, match=r"^ogbn_arxiv is downloaded by OGB, which is not installed; pip install"):
        lignn.datasets.load("ogbn_arxiv")

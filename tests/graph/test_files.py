"""Arrays from files: whatever the bytes, they are read or refused, and never crash compiled code."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from lignn.errors import TableError
from lignn.graph import files

MATRIX = np.array([[0, 1.5, 0, 0], [2, 0, 0, 0], [0, 0, 0, 3], [0, 0, 0, 4]])
KINDS = ("csr", "csc", "bsr", "coo", "dia")


def save(path: Path, kind: str, **changes: object) -> Path:
    """Write `MATRIX` as `scipy.sparse.save_npz` does, with some arrays changed."""
    sp.save_npz(path, getattr(sp, f"{kind}_array")(MATRIX))
    with np.load(path) as file:
        arrays = dict(file) | {key: np.asarray(value) for key, value in changes.items()}
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_sparse_format_is_read(tmp_path, kind):
    matrix = files.read_features(save(tmp_path / "x.npz", kind), 4)
    assert isinstance(matrix, sp.csr_array)
    assert np.array_equal(matrix.toarray(), MATRIX)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("csc", {"indices": [1, 10**9, 2, 3]}, "entry 1 of indices is 1000000000, it must be between 0 and 3"),
        ("csc", {"indptr": [0, -7, 1, 1, 4]}, "entry 1 of indptr is -7, it must be between 0 and 4"),
        ("csr", {"indices": [1, 0, 3, -1]}, "entry 3 of indices is -1"),
        ("csr", {"indptr": [0, 3, 2, 3, 4]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 4, 4, 4, 0]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 2**63 - 1, 0, 0, 0]}, "entry 1 of indptr"),
        ("csr", {"indptr": [1, 1, 2, 3, 4]}, "indptr must rise from 0"),
        ("csr", {"indptr": [0, 1, 4]}, "indptr must be 5 integers, got int64 of shape"),
        ("csr", {"indices": [1, 0, 3, 2.5]}, "indices must be 4 integers, got float64"),
        ("csr", {"data": [1, 2, 3]}, "indices must be 3 integers, got int32 of shape"),
        ("csr", {"data": ["a", "b", "c", "d"]}, "numbers are needed, data holds <U1"),
        ("csr", {"data": [[1, 2], [3, 4]]}, "data has 2 dimensions"),
        ("csr", {"format": "abc"}, "its format 'abc' is unknown"),
        ("bsr", {"indices": [10**9] * 4}, "entry 0 of indices is 1000000000"),
        ("bsr", {"data": np.ones((4, 0, 1))}, "division|modulo"),
        ("coo", {"row": [0, 1, 2, 10**9]}, "entry 3 of row is 1000000000"),
        ("coo", {"col": np.array([0, 1, 2, 2**64 - 1], np.uint64)}, "entry 3 of col is 18446744073709551615"),
        ("dia", {"offsets": [-1, 0, 10**9]}, "entry 2 of offsets is 1000000000"),
    ],
)
def test_bad_indices_never_reach_compiled_code(tmp_path, kind, changes, message):
    path = save(tmp_path / "x.npz", kind, **changes)
    with pytest.raises(TableError, match=message) as caught:
        files.read_features(path, 4)
    assert str(caught.value).startswith(f"{path}: not a whole sparse .npz file (")


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_any_index_is_read_or_refused(kind, data):
    with tempfile.TemporaryDirectory() as folder:
        path = save(Path(folder) / "x.npz", kind)
        with np.load(path) as file:
            arrays = dict(file)
        key = data.draw(st.sampled_from([key for key in arrays if arrays[key].dtype.kind in "iu" and key != "shape"]))
        arrays[key].flat[data.draw(st.integers(0, arrays[key].size - 1))] = data.draw(st.integers(-(2**31), 2**31 - 1))
        np.savez(path, **arrays)
        with contextlib.suppress(TableError):
            assert files.read_features(path, 4).toarray().shape == MATRIX.shape


def test_numbers_of_any_type_become_floats():
    assert files.as_floats(np.arange(3)).dtype == np.float32
    assert files.as_floats(np.array([1.5], ">f8")).dtype == np.dtype("=f8")
    assert files.as_floats(np.array([1.5], np.float16)).dtype == np.float32


def test_values_that_a_type_cannot_have(tmp_path):
    np.save(tmp_path / "mask.npy", np.array([True, False]))
    raw = (tmp_path / "mask.npy").read_bytes()
    (tmp_path / "mask.npy").write_bytes(raw[:-1] + b"\7")
    with pytest.raises(TableError, match=r"mask\.npy: not a whole \.npy file \(a truth value is neither 0 nor 1\)"):
        files.read_npy(tmp_path / "mask.npy")
    for code in (0x110000, 0xD800):
        np.save(tmp_path / "text.npy", np.array([code], np.uint32).view("U1"))
        with pytest.raises(TableError, match="a text has characters that do not exist"):
            files.read_npy(tmp_path / "text.npy")

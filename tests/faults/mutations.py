"""Mutations of valid files, drawn by Hypothesis: of their bytes, and of what the bytes mean."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

Mutation = Callable[[DataObject, bytes], bytes]

NUMBERS = (0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**40, 2**63 - 1, -(2**63), 2**64 - 1)
TEXTS = (
    *("", " ", "-1", "-1.0", "nan", "NULL", "?", "inf", "1e999", "1e-400", "9" * 400, "0x10", "1_000", "١", "-0", "+1"),
    *("|", "||", "a|", "a|NA", '"', '""', '"a', ",", "\n", "\r", "\0", "a\0", "\ufeff", "\u200b", "\u00a0", "é", "é"),
    *(
        "id",
        "label",
        "split",
        "train",
        "val",
        "TEST",
        "a",
        "red",
        "x" * 200_000,
        "2**9",
        "true",
        "None",
        "../..",
        "\u202e",
    ),
)
VALUES = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        10**30,
        -(10**30),
        0.5,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "a",
        "\ud800",
        "0",
    ),
    *([], [[]], {}, {"a": 1}, [1, "a", None], ["a", "a"], "float64", "lpa", "mlp", 1e-9, 2**40, 10**6),
)
TYPES = ("?", "i1", "u1", "<i4", ">i8", "u8", "f2", "f4", ">f8", "g", "c8", "U1", "U9", "S3", "M8[s]", "V2")


def of_bytes(data: DataObject, content: bytes) -> bytes:
    """Change bytes: flip, overwrite, cut off, remove, repeat, insert or swap some."""
    raw = bytearray(content)
    for _ in range(data.draw(st.sampled_from((1, 1, 1, 2, 4)))):
        if not raw:
            break
        start = data.draw(st.integers(0, len(raw) - 1))
        end = min(len(raw), start + data.draw(st.sampled_from((1, 2, 4, 8, 40, len(raw)))))
        kind = data.draw(st.sampled_from(("flip", "byte", "number", "cut", "remove", "repeat", "insert", "swap")))
        if kind == "flip":
            raw[start] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "byte":
            raw[start] = data.draw(st.integers(0, 255))
        elif kind == "number":
            width = data.draw(st.sampled_from((2, 4, 8)))
            number = data.draw(st.sampled_from(NUMBERS)) % 256**width
            raw[start : start + width] = number.to_bytes(width, data.draw(st.sampled_from(("little", "big"))))
        elif kind == "cut":
            del raw[start:]
        elif kind == "remove":
            del raw[start:end]
        elif kind == "repeat":
            raw[start:start] = raw[start:end] * data.draw(st.sampled_from((1, 2, 100)))
        elif kind == "insert":
            raw[start:start] = data.draw(st.binary(max_size=8))
        else:
            other = data.draw(st.integers(0, len(raw) - 1))
            raw[start], raw[other] = raw[other], raw[start]
    return bytes(raw)


def of_text(data: DataObject, content: bytes) -> bytes:
    """Replace a word, or change the encoding."""
    text = content.decode(errors="replace")
    if data.draw(st.integers(0, 9)) == 0:
        return text.encode(data.draw(st.sampled_from(("utf-16", "utf-16-le", "latin-1", "utf-8-sig"))), "replace")
    words = text.split(" ")
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.sampled_from(TEXTS))
    return " ".join(words).encode()


def of_csv(data: DataObject, content: bytes) -> bytes:
    """Replace cells, or add or remove rows and columns."""
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, len(rows) - 1))
        kind = data.draw(st.sampled_from(("cell", "cell", "cell", "column", "row", "longer", "shorter", "none")))
        if kind == "cell" and rows[row]:
            rows[row][data.draw(st.integers(0, len(rows[row]) - 1))] = data.draw(st.sampled_from(TEXTS) | st.text())
        elif kind == "column":
            text = data.draw(st.sampled_from(TEXTS))
            rows = [[*cells, text if i else f"x{len(cells)}"] for i, cells in enumerate(rows)]
        elif kind == "row":
            rows.insert(row, list(rows[data.draw(st.integers(0, len(rows) - 1))]))
        elif kind == "longer":
            rows[row].append("1")
        elif kind == "shorter":
            del rows[row][-1:]
        elif kind == "none" and len(rows) > 1:
            del rows[row]
    quoting = data.draw(st.sampled_from((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
    end = data.draw(st.sampled_from(("\n", "\n", "\n", "\r\n", "\r")))
    out = io.StringIO(newline="")
    csv.writer(out, quoting=quoting, lineterminator=end).writerows(rows)
    return out.getvalue().encode(errors="surrogatepass")


def of_gzip(data: DataObject, content: bytes) -> bytes:
    """Change a packed table of texts."""
    return gzip.compress(of_csv(data, gzip.decompress(content)))


def of_json_value(data: DataObject, value: Any) -> Any:
    """Return a JSON value with one of its parts replaced, removed or added."""
    inside = isinstance(value, dict | list) and value and data.draw(st.integers(0, 5))
    if not inside:
        return data.draw(st.sampled_from(VALUES))
    changed = dict(value) if isinstance(value, dict) else list(value)
    keys = sorted(changed) if isinstance(changed, dict) else range(len(changed))
    key: Any = data.draw(st.sampled_from(keys))
    kind = data.draw(st.integers(0, 9))
    if kind == 0:
        del changed[key]
    elif kind == 1 and isinstance(changed, dict):
        changed[data.draw(st.sampled_from(("", "a", "files", "format", "x/y", "weights")))] = changed[key]
    else:
        changed[key] = of_json_value(data, changed[key])
    return changed


def of_json(data: DataObject, content: bytes) -> bytes:
    """Change a part of a JSON document, or nest it very deeply."""
    if data.draw(st.integers(0, 19)) == 0:
        return b'{"format": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    return json.dumps(of_json_value(data, json.loads(content))).encode()


def _array(data: DataObject, array: np.ndarray) -> np.ndarray:
    kind = data.draw(st.sampled_from(("type", "entry", "entry", "shape", "random")))
    if kind == "type":
        with np.errstate(all="ignore"):
            try:
                return array.astype(data.draw(st.sampled_from(TYPES)))
            except (ValueError, TypeError, RuntimeError):
                return np.zeros(array.shape, "u8")
    if kind == "entry" and array.size and array.dtype.kind in "biuf":
        changed = array.copy()
        limits = (
            np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo("u1" if array.dtype == bool else array.dtype)
        )
        choices = [
            0,
            1,
            2,
            limits.min,
            limits.max,
            limits.max // 2,
            *([np.nan, np.inf] if array.dtype.kind == "f" else []),
        ]
        changed.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(st.sampled_from(choices))
        return changed
    if kind == "shape":
        shapes = (
            array.ravel(),
            array[None],
            array.T,
            array[:0] if array.ndim else array,
            np.repeat(array, 2, 0) if array.ndim else array,
        )
        return shapes[data.draw(st.integers(0, len(shapes) - 1))]
    return np.array(data.draw(st.lists(st.sampled_from(NUMBERS[:-1]), max_size=6)), "i8")


def of_npy(data: DataObject, content: bytes) -> bytes:
    """Change type, shape or entries of an array."""
    out = io.BytesIO()
    np.save(out, _array(data, np.load(io.BytesIO(content))))
    return out.getvalue()


def of_npz(data: DataObject, content: bytes) -> bytes:
    """Change, remove, rename or exchange arrays."""
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    for _ in range(data.draw(st.integers(1, 2))):
        key = data.draw(st.sampled_from(sorted(arrays)))
        kind = data.draw(st.integers(0, 9))
        if kind == 0 and len(arrays) > 1:
            del arrays[key]
        elif kind == 1:
            arrays[data.draw(st.sampled_from((*arrays, "edge_weight", "y", "num_nodes", "x", "a/b")))] = arrays[key]
        else:
            arrays[key] = _array(data, arrays[key])
    out = io.BytesIO()
    (np.savez if data.draw(st.booleans()) else np.savez_compressed)(out, **arrays)
    return out.getvalue()


def of_parquet(data: DataObject, content: bytes) -> bytes:
    """Replace columns by others of any type."""
    table = pq.read_table(io.BytesIO(content))
    n = len(table)
    columns = (
        *(pa.array([text] * n) for text in TEXTS if text.isprintable()),
        *(pa.array([value] * n) for value in (True, 2**40, 0.5, float("nan"), None, b"\xff", [1], {"a": 1})),
        *(pa.array(range(n)), pa.array([float(i) for i in range(n)]), pa.array(["a"] * n).dictionary_encode()),
        *(pa.array([0] * n, kind) for kind in (pa.timestamp("ns"), pa.date32(), pa.decimal128(5, 2), pa.duration("s"))),
        pa.Array.from_buffers(pa.string(), n, pa.array([b"\xff"] * n).buffers()),
    )
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, table.num_columns - 1))
        name = data.draw(st.sampled_from((*table.column_names, "labels", "x9", "", "weight")))
        column = columns[data.draw(st.integers(0, len(columns) - 1))]
        table = table.set_column(at, name, column) if data.draw(st.booleans()) else table.append_column(name, column)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def of_safetensors(data: DataObject, content: bytes) -> bytes:
    """Change the header: names, types, shapes and places of tensors, and the values beside them."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if "values" in header.get("__metadata__", {}) and data.draw(st.booleans()):
        values = json.loads(header["__metadata__"]["values"])
        header["__metadata__"]["values"] = json.dumps(of_json_value(data, values))
    else:
        header = of_json_value(data, header)
    text = json.dumps(header).encode()
    size = data.draw(st.sampled_from((len(text),) * 9 + NUMBERS)) % 2**64
    return size.to_bytes(8, "little") + text + content[8 + int.from_bytes(content[:8], "little") :]

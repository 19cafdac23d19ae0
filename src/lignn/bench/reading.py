"""Reading of tables: processor time and peak memory, beside Polars and SciPy."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv
import scipy.sparse as sp

from lignn.bench.timing import Record, at_most, record
from lignn.evaluation import peak
from lignn.graph import Graph

NODES, EDGES, COLUMNS = 10**6, 10**7, 10**5
CPU_TO_REACH, MIB_TO_REACH = 15.0, 1536.0


def run(quick: bool) -> Iterator[Record]:
    """Read a long and a wide graph, each side in a process of its own; times are processor time of all threads."""
    sides = {"lignn": _lignn} | ({"Polars + SciPy": _polars} if find_spec("polars") else {})
    nodes, edges, columns = (2_000, 20_000, 500) if quick else (NODES, EDGES, COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        for case, width in ((f"{nodes:,} nodes, {edges:,} edges", 2), (f"20 nodes, {columns:,} columns", columns)):
            _write(Path(folder), *((nodes, edges) if width == 2 else (20, 40)), width)
            reference = None
            for name, side in sides.items():
                seconds, mib = _measured(side, folder)
                reference = reference or seconds
                figures = {"median": seconds, "spread": 0.0, "ratio": seconds / reference, "peak_mib": mib}
                yield record(case, name, {"nodes": nodes, "edges": edges, "columns": columns}, **figures)
                if name == "lignn" and width == 2:
                    yield at_most("processor seconds", seconds, CPU_TO_REACH)
                    yield at_most("peak of the process in MiB", mib, MIB_TO_REACH)


def _write(folder: Path, nodes: int, edges: int, width: int) -> None:
    """Write tables with ids in random order, and a class and `width` numbers per node."""
    generator = np.random.default_rng(0)
    ids = generator.permutation(3 * nodes)[:nodes]
    numbers = {f"x{i}": generator.random(nodes).astype(np.float32) for i in range(width)}
    tables = {
        "nodes": {"id": ids, "label": np.arange(nodes) % 5} | numbers,
        "edges": dict(zip(("source", "target"), ids[generator.integers(0, nodes, (2, edges))], strict=True)),
    }
    for name, columns in tables.items():
        pa.csv.write_csv(pa.table(columns), folder / f"{name}.csv")


def _measured(side: Callable[[str], tuple[float, float]], folder: str) -> tuple[float, float]:
    """Return processor seconds, and the peak of the whole process in MiB; NaN on other systems than Linux."""
    return peak.in_fresh_process(str, side, folder).value


def _lignn(folder: str) -> tuple[float, float]:
    from lignn.graph import table_reader  # noqa: F401  not timed

    start = process_time()
    Graph.read(folder)
    return process_time() - start, _peak()


def _polars(folder: str) -> tuple[float, float]:
    """Read the tables by Polars, number the ends of the edges by joins, and make the matrices."""
    import polars as pl

    start = process_time()
    nodes, edges = pl.read_csv(f"{folder}/nodes.csv"), pl.read_csv(f"{folder}/edges.csv")
    numbers = nodes.select("id").with_row_index("number")
    ends = [
        edges.select(end).join(numbers, left_on=end, right_on="id", how="left", maintain_order="left")["number"]
        for end in ("source", "target")
    ]
    pair = tuple(end.to_numpy() for end in ends)
    sp.csr_array(sp.coo_array((np.ones(len(edges), np.float32), pair), shape=(len(nodes),) * 2))
    nodes.drop("id", "label").to_numpy().astype(np.float32)
    return process_time() - start, _peak()


def _peak() -> float:
    mib = peak.resident("VmHWM")
    return float("nan") if mib is None else mib

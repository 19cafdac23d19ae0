"""A small folder of tables, and the error message of reading it."""

import os
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lignn import Graph
from lignn.errors import InputError

NODES = "id,label,split,age\na,cat,train,1\nb,dog,val,2.5\nc,,test,-3e-1\n"
EDGES = "source,target\na,b\nb,c\n"


def put(folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> None:
    for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def put_parquet(folder: Path, nodes: dict) -> None:
    (folder / "nodes.csv").unlink()
    pq.write_table(pa.table(nodes), folder / "nodes.parquet")


def problem(folder: Path, **options: Any) -> str:
    """Return the error message of reading the folder, without its path and the advice to leave out rows."""
    with pytest.raises(InputError) as caught:
        Graph.read(folder, **options)
    return re.sub(r"\ncorrect them, or leave .*", "", str(caught.value).replace(f"{folder}{os.sep}", ""))

"""`graph.json`: what the tables of a graph cannot express, so that a graph is read back exactly as it was written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from os.path import lexists
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import TableError
from lignn.graph import names
from lignn.graph.files import open_file
from lignn.graph.graph import Graph

FILE = "graph.json"
_FORMAT = 1


@dataclass(frozen=True)
class Metadata:
    """The content of `graph.json`: optional beside tables made by hand, always present in folders written by lignn."""

    format: int | None = None
    """Version of the format. None: the folder was made by hand, and its texts are normalised."""
    classes: tuple[str, ...] | None = None
    """All classes in order, including those without a node. None: the labels in the table, sorted."""
    class_names: bool = True
    """Whether `classes` are names; if not, they are class numbers."""
    node_ids: bool = True
    """Whether the ids are names; if not, they are node numbers."""
    feature_names: bool = True
    """Whether the columns of features have names; if not, they are numbered."""
    weight_type: str = "float32"
    """Type of the edge weights, float32 or float64."""
    time: bool = False
    """Whether the nodes have a column `time`."""
    group: bool = False
    """Whether the nodes have a column `group` of group numbers."""
    edge_types: tuple[str, ...] | None = None
    """All types of edges in order, for a column `edge_type`. None: the edges have no types, or the types there are."""

    @classmethod
    def of(cls, graph: Graph) -> Metadata:
        """Return the metadata of `graph`."""
        classes = graph.class_names or tuple(map(str, range(graph.num_classes)))
        weight = "float32" if graph.edge_weight is None else str(graph.edge_weight.numpy().dtype)
        return cls(
            format=_FORMAT,
            classes=classes or None,
            class_names=graph.class_names is not None,
            node_ids=graph.node_ids is not None,
            feature_names=graph.feature_names is not None,
            weight_type=weight,
            time=graph.time is not None,
            group=graph.group is not None,
            edge_types=graph.edge_types,
        )

    @property
    def node_roles(self) -> dict[str, str]:
        """Columns of the nodes by role, in a folder written by lignn."""
        return {"id": "id"} | {role: role for role in ("time", "group") if getattr(self, role)}

    @property
    def edge_roles(self) -> dict[str, str]:
        """Columns of the edges by role besides the ends and the weight, in a folder written by lignn."""
        return {} if self.edge_types is None else {"edge_type": "edge_type"}

    @property
    def is_exact(self) -> bool:
        """Whether lignn wrote the folder, so that its texts are read as they are."""
        return self.format is not None

    def normalised(self, texts: pa.Array) -> pa.Array:
        """Return the texts of a table, normalised as by `names.normalised` unless they are exact."""
        if self.is_exact:
            return texts
        return pc.utf8_trim(pc.utf8_normalize(texts, form="NFC"), characters=names.TRIMMED)

    def write(self, folder: Path) -> None:
        """Write `graph.json` into `folder`."""
        new = {"time", "group", "edge_types"}  # left out where there are none, so that lignn 0.2 reads the folder
        entries = {key: value for key, value in asdict(self).items() if value or key not in new}
        text = json.dumps(entries, indent=2, ensure_ascii=False)
        (folder / FILE).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Metadata:
        """Read `graph.json` in `folder`; return the defaults if there is none."""
        path = folder / FILE
        if not lexists(path):
            return cls()
        with open_file(path) as file:
            content = file.read()
        try:
            entries = json.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise TableError(f"{path}: is not JSON ({error})") from error
        if not isinstance(entries, dict):
            raise TableError(f'{path}: must be a JSON object such as {{"classes": ["a", "b"]}}')
        if entries.get("format", _FORMAT) != _FORMAT:
            raise TableError(f"{path}: was written by a newer lignn; update lignn to read it")
        for key, value in entries.items():
            _check(path, key, value)
        for key in ("classes", "edge_types"):
            if entries.get(key) is not None:
                exact = "format" in entries
                entries[key] = tuple(name if exact else names.normalised(name) for name in entries[key])
                if len(set(entries[key])) < len(entries[key]):
                    raise TableError(f"{path}: {key!r} must be null or a list of different texts")
        return cls(**entries)


def _check(path: Path, key: str, value: object) -> None:
    if key == "format":
        return
    if key in ("classes", "edge_types"):
        texts = isinstance(value, list) and all(
            isinstance(name, str) and not names.SURROGATE.search(name) for name in value
        )
        fits, wanted = value is None or texts, "null or a list of different texts"
    elif key in ("class_names", "node_ids", "feature_names", "time", "group"):
        fits, wanted = isinstance(value, bool), "true or false"
    elif key == "weight_type":
        fits, wanted = value in ("float32", "float64"), '"float32" or "float64"'
    else:
        raise TableError(f"{path}: unknown entry {key!r}; known are {', '.join(Metadata.__dataclass_fields__)}")
    if not fits:
        raise TableError(f"{path}: {key!r} must be {wanted}")

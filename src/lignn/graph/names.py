"""Names of nodes, classes and features: how texts are normalised and checked, and which labels mean unknown."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from lignn.errors import DataWarning, GraphError, InputError, UnknownNodeError, quoted

if TYPE_CHECKING:
    from lignn.graph.graph import Graph

MISSING = ("?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NAN", "NULL", "Null", "null", "None")
"""Labels that mean unknown by default, besides -1."""

SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which is not a text; it stands for bytes that could not be decoded."""

_MINUS_ONE = {"-1", "-1.0"}
_ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
INVISIBLE = f"[{_ZERO_WIDTH}]"
"""Pattern of a character without width."""
TRIMMED = "".join(filter(str.isspace, map(chr, range(0x3001)))) + _ZERO_WIDTH
"""Characters that are removed at both ends of a text: white space, no-break spaces and zero-width characters."""


def normalised(text: str) -> str:
    """Return `text` in Unicode's composed form (NFC), without white space and invisible characters around it."""
    return unicodedata.normalize("NFC", text).strip(TRIMMED)


def missing_marks(missing: Collection[str] | None, classes: Collection[str] = ()) -> set[str]:
    """Return the labels that mean unknown: `missing`, or by default -1 and the usual marks; never a class."""
    given = [missing] if isinstance(missing, str) else missing
    marks = {*MISSING, *_MINUS_ONE} if given is None else {normalised(str(mark)) for mark in given}
    return marks.difference(classes) | {""}


def unknown_labels(labels: Collection[str], missing: Collection[str] | None, classes: Collection[str] = ()) -> set[str]:
    """Return those of the distinct, normalised labels that mean unknown; raise if -1 may be a class."""
    unknown = missing_marks(missing, classes).intersection(labels)
    others = set(labels) - unknown
    if missing is None and unknown & _MINUS_ONE and not classes and others and others <= {"1", "1.0"}:
        raise GraphError(
            "the labels are only -1 and 1, so that -1 may be a class or mean unknown; "
            "give missing=['-1'] (--missing=-1) if it means unknown, missing=[] (--missing=) if it is a class"
        )
    return unknown


def note_unknown(where: str, labels: Iterable[str]) -> None:
    """Warn that these labels are read as unknown; empty ones need no note."""
    count = Counter(label for label in labels if label)
    if count:
        marks = ", ".join(f"{quoted(mark)} ({count[mark]})" for mark in sorted(count))
        message = f"{where}: read as unknown labels: {marks}; give missing=[…] (--missing) to change this"
        warnings.warn(message, DataWarning, stacklevel=2)


def note_twins(where: str, texts: Iterable[str]) -> None:
    """Warn of texts that differ only in their case, in invisible characters, or in look-alike forms of characters."""
    first: dict[str, str] = {}
    pairs = []
    for text in texts:
        key = re.sub(INVISIBLE, "", unicodedata.normalize("NFKC", text)).casefold()
        if first.setdefault(key, text) != text:
            pairs.append(f"{quoted(first[key])} and {quoted(text)}")
    if pairs:
        more = f" ({len(pairs) - 1} more such pairs)" if len(pairs) > 1 else ""
        warnings.warn(f"{where}: {pairs[0]} are almost equal, but are kept apart{more}", DataWarning, stacklevel=2)


def sorted_classes(names: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct class names in order: integers by value (2 before 10), then texts alphabetically."""
    return tuple(sorted(set(names), key=_sort_key))


def _sort_key(name: str) -> tuple[bool, int, str]:
    integer = re.fullmatch(r"-?\d{1,18}", name, re.ASCII)
    return not integer, int(name) if integer else 0, name


def class_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the classes as a tuple; raise if two are equal."""
    names = tuple(str(name) for name in names)
    if repeated := _repeated(names):
        raise GraphError(f"class_names: two classes are named {repeated}")
    return names


def feature_names(names: Sequence[str], num_features: int) -> tuple[str, ...]:
    """Return the names of the features as a tuple; raise if two are equal or if there are too few or too many."""
    names = tuple(str(name) for name in names)
    if len(names) != num_features:
        raise GraphError(f"feature_names: one name per feature is needed ({num_features}), got {len(names)}")
    if repeated := _repeated(names):
        raise GraphError(f"feature_names: two features are named {repeated}")
    return names


def _repeated(names: Sequence[str]) -> str | None:
    """Return a name that occurs twice, in quotes; None if all are different."""
    return None if len(set(names)) == len(names) else repr(Counter(names).most_common(1)[0][0])


def node_ids(ids: Any, num_nodes: int) -> np.ndarray:
    """Return the ids of the nodes as a NumPy string array; raise if two are equal."""
    try:
        ids = np.asarray(ids, dtype=np.dtypes.StringDType())
    except (ValueError, TypeError) as error:
        raise GraphError(f"node_ids: texts are needed ({error})") from error
    if ids.shape != (num_nodes,):
        raise GraphError(f"node_ids: one id per node is needed ({num_nodes} nodes), got shape {ids.shape}")
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise GraphError(f"node_ids: {str(ids[first])!r} is the id of node {first} and of node {second}")
    return ids


def node_number(graph: Graph, node: Any) -> int:
    """Return the number of a node that is given by its id (a text) or its number."""
    return node_numbers(graph, [node])[0]


def node_numbers(graph: Graph, nodes: Iterable[Any]) -> list[int]:
    """Return the numbers of several nodes, whose ids are looked up together."""
    nodes = list(nodes)
    by_number = all(isinstance(node, Integral) for node in nodes)
    ids = [] if by_number or graph.node_ids is None else graph.node_ids.tolist()
    by_id = {name: i for i, name in enumerate(ids)}
    return [_node_number(graph, by_id, node) for node in nodes]


def _node_number(graph: Graph, by_id: Mapping[str, int], node: Any) -> int:
    if isinstance(node, Integral) and not isinstance(node, bool):
        if int(node) in range(graph.num_nodes):
            return int(node)
        raise UnknownNodeError(f"node {node} is outside of 0 … {graph.num_nodes - 1}")
    if graph.node_ids is None:
        raise InputError(f"node {node!r}: the nodes of this graph have numbers, no ids")
    found = lookup(by_id, str(node))
    if found is None:
        raise UnknownNodeError(f"node {str(node)!r} is not in the graph")
    return found


def lookup(numbers: Mapping[str, int], name: str) -> int | None:
    """Return the number of a name as it is given, else of its normalised form; None if there is neither."""
    return numbers.get(name, numbers.get(normalised(name)))

"""Named graphs: generated, part of an installed library, or read from a file that is downloaded once.

`load(name)` returns a graph in the paper's edge convention together with its public splits. Importing this package and
listing its names need neither torch nor the network.
"""

from __future__ import annotations

import inspect
from os import PathLike
from typing import TYPE_CHECKING, Any

from lignn.datasets.catalogue import find, names
from lignn.errors import DatasetError, did_you_mean

if TYPE_CHECKING:
    from lignn.graph import Graph

__all__ = ["load", "names"]


def load(name: str, root: str | PathLike[str] | None = None, **options: Any) -> Graph:
    """Return the graph called `name` with its public splits, in the convention behind the paper's statistics.

    A stored dataset is read from the file `<name>.npz` in the first of these folders that has it: `root`, the folder
    `$LIGNN_DATA`, the user's cache folder. If none has it, it is downloaded through PyG's or OGB's own dataset class
    and kept in the cache folder.

    Args:
        name: one of `names()`, or `chains-<length>` with any length.
        root: folder to search first.
        options: keyword arguments of this dataset. With `raw_features=True`, Cora, Citeseer and Pubmed come without row
            normalisation, and the Coauthor and Amazon graphs with word counts instead of 0/1. The options of the chains
            and the digits are the keyword arguments of `embedded.chains` and `embedded.digits`.
    """
    entry = find(name)
    make = entry.maker()
    allowed = [p.name for p in inspect.signature(make).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in options:
        if option not in allowed:
            advice = did_you_mean(option, allowed) if allowed else "it has none"
            raise DatasetError(f"{name} has no option {option!r}; {advice}")
    if not entry.is_stored:
        return make(*entry.arguments, **options).replace(name=name)
    from lignn.datasets import places

    return make(places.read(entry, root), **options)

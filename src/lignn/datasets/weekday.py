"""Weekday: the synthetic task of the paper that no end-to-end network solves."""

from __future__ import annotations

import numpy as np

from lignn.graph import Graph

CLASS_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def weekday() -> Graph:
    """The 14 610 days from 1980-01-01 to 2019-12-31, labelled by weekday (the paper's Figure 3).

    Features are the 8 digits of YYYYMMDD. A directed edge leads from each day to its 4 nearest in Euclidean distance.
    All are at distance 1, where most days have more than four others; the paper's graph has what `torch.topk` takes.
    """
    days = np.arange("1980-01-01", "2020-01-01", dtype="datetime64[D]")
    x = np.array([list(str(day).replace("-", "")) for day in days], np.float32)
    y = (days.astype(np.int64) + 3) % 7  # 1970-01-01, day 0, was a Thursday
    return Graph.knn(x, 4, y=y, node_ids=days.astype(str), class_names=CLASS_NAMES)

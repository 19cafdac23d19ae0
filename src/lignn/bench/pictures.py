"""Pictures of records: bars of times, or curves of time and memory against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from lignn.atomic import whole_file
from lignn.bench.report import duration
from lignn.bench.timing import Record
from lignn.evaluation.drawing import BLUE, GREEN, MARKS, ORANGE, PURPLE, VERMILION, rendered

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION)
"""Colours of the sides, in order of appearance."""


def draw(records: Sequence[Record], title: str) -> Figure:
    """Draw curves if all records have a size (`edges` or `steps`), else bars."""
    measured = [record for record in records if "case" in record]
    for size in ("edges", "steps"):
        if all(size in record for record in measured):
            return _curves(measured, size, title)
    return _bars([record for record in measured if "median" in record], title)


def write(records: Sequence[Record], title: str, file: Path) -> None:
    """Write the picture as SVG."""
    with whole_file(file) as temporary:
        temporary.write_bytes(rendered(draw(records, title), "svg"))


def _places(records: Sequence[Record], key: str) -> dict[str, int]:
    """Number the different values of `key` in order of appearance."""
    return {value: place for place, value in enumerate(dict.fromkeys(record[key] for record in records))}


def _bars(records: Sequence[Record], title: str) -> Figure:
    """Draw the times of every case on a logarithmic scale, with the ratio to the first side beside each bar."""
    cases, sides = _places(records, "case"), _places(records, "side")
    height = 0.8 / len(sides)
    figure = Figure(figsize=(8, 1.2 + 0.28 * len(cases) * (len(sides) + 0.6)), layout="constrained")
    axes = figure.subplots()
    for record in records:
        place = sides[record["side"]]
        y = cases[record["case"]] + place * height
        axes.barh(y, record["median"], height, color=_COLOURS[place % len(_COLOURS)])
        ratio = "" if place == 0 else f", {record['ratio']:.3g}×"
        look: Any = {"textcoords": "offset points", "va": "center", "fontsize": "small"}
        axes.annotate(duration(record["median"]) + ratio, (record["median"], y), (3, 0), **look)
    times = [record["median"] for record in records]
    axes.set(xscale="log", xlabel="seconds, median", title=title, xlim=(min(times) / 2, max(times) * 8))
    axes.set_yticks([place + height * (len(sides) - 1) / 2 for place in range(len(cases))], list(cases))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    patches = [Patch(color=_COLOURS[place % len(_COLOURS)], label=side) for side, place in sides.items()]
    figure.legend(handles=patches, frameon=False, loc="outside lower center", ncols=len(sides))
    return figure


def _curves(records: Sequence[Record], size: str, title: str) -> Figure:
    """Draw time and memory, if recorded, against size; both axes are logarithmic."""
    names = {"median": "seconds an epoch", "peak_mib": "peak memory, MiB"}
    shown = [key for key in names if any(record.get(key) for record in records)]
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    figure.suptitle(title)
    for axes, key in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        for side, place in _places(records, "side").items():
            points = [(record[size], record[key]) for record in records if record["side"] == side and record.get(key)]
            axes.plot(*zip(*points, strict=True), color=_COLOURS[place], marker=MARKS[place], label=side)
        axes.set(xscale="log", yscale="log", xlabel=size, ylabel=names[key])
        if key == "peak_mib" and size == "steps":
            axes.set(yscale="linear", ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
    return figure

"""Pictures as options of Apache ECharts. Texts are drawn on the canvas, so that none of them is read as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lignn.notebook import BLACK, BLUE, GREEN, GREY, OLIVE, ORANGE, PURPLE, SKY_BLUE, VERMILION
from lignn.serve.insight import Quality

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY_BLUE, OLIVE, BLACK)
"""Of Okabe and Ito: distinct without full colour vision."""
SYMBOLS = ("circle", "rect", "triangle", "diamond", "roundRect", "pin")
"""Shapes tell classes apart beyond the number of colours."""
_MOST_NUMBERS = 12
"""Maximum number of classes for which a cell is wide enough for a number."""
_BINS = 10


def colour(number: int, dark: bool = False) -> str:
    """Return the colour of a class."""
    found = COLOURS[number % len(COLOURS)]
    return "#E0E0E0" if dark and found == BLACK else found


def symbol(number: int) -> str:
    """Return the shape of a class."""
    return SYMBOLS[number // len(COLOURS) % len(SYMBOLS)]


def outline(dark: bool) -> dict[str, Any]:
    """Return the line around areas of colour, some of which have little contrast with the background."""
    return {"borderColor": text_colour(dark), "borderWidth": 1}


def text_colour(dark: bool) -> str:
    """Return the colour of texts; its contrast is above 7 on both backgrounds."""
    return "#E8E8E8" if dark else "#212121"


def base(dark: bool) -> dict[str, Any]:
    """Return what all pictures have."""
    return {
        "animation": False,
        "aria": {"enabled": True},
        "textStyle": {"color": text_colour(dark), "fontFamily": "inherit"},
        "tooltip": {"renderMode": "richText", "confine": True},
    }


def _axis(kind: str, name: str, dark: bool, **more: Any) -> dict[str, Any]:
    ink = text_colour(dark)
    return {
        "type": kind,
        "name": name,
        "nameLocation": "middle",
        "nameGap": 26,
        "nameTextStyle": {"color": ink},
        "axisLabel": {"color": ink, "hideOverlap": True},
        "splitLine": {"lineStyle": {"color": "#555" if dark else "#DDD"}},
        **more,
    }


def counts(classes: Sequence[str], given: Sequence[int], predicted: Sequence[int], dark: bool) -> dict[str, Any]:
    """Draw how many nodes have each class, given and predicted."""
    bars = [
        {
            "name": name,
            "type": "bar",
            "data": list(values),
            "itemStyle": {"color": fill, **outline(dark)},
            "barMaxWidth": 22,
        }
        for name, values, fill in (("given", given, BLUE), ("predicted", predicted, ORANGE))
    ]
    return base(dark) | {
        "legend": {"textStyle": {"color": text_colour(dark)}, "top": 0},
        "grid": {"left": 8, "right": 16, "top": 30, "bottom": 8, "containLabel": True},
        "xAxis": _axis("value", "", dark, minInterval=1),
        "yAxis": _axis("category", "", dark, data=list(classes), inverse=True),
        "series": bars,
    }


def confidences(confidence: np.ndarray, dark: bool) -> dict[str, Any]:
    """Draw a histogram of the confidence of unlabelled nodes."""
    heights, edges = np.histogram(confidence, _BINS, (0.0, 1.0))
    names = [f"{low:.0%}" for low in edges[:-1]]
    return base(dark) | {
        "grid": {"left": 8, "right": 16, "top": 12, "bottom": 24, "containLabel": True},
        "xAxis": _axis("category", "confidence, from", dark, data=names),
        "yAxis": _axis("value", "", dark, minInterval=1),
        "series": [
            {
                "type": "bar",
                "data": heights.tolist(),
                "itemStyle": {"color": BLUE, **outline(dark)},
                "barCategoryGap": "10%",
            }
        ],
    }


def reliability(quality: Quality, dark: bool) -> dict[str, Any]:
    """Draw the share of right predictions over the confidence; on the diagonal both agree."""
    points = [[sure, right] for sure, right, _ in quality.reliability]
    sizes = [max(8, min(28, 8 + 2 * count**0.5)) for _, _, count in quality.reliability]
    data = [{"value": point, "symbolSize": size} for point, size in zip(points, sizes, strict=True)]
    ideal = {"type": "line", "data": [[0, 0], [1, 1]], "symbol": "none", "lineStyle": {"color": GREY, "type": "dashed"}}
    return base(dark) | {
        "grid": {"left": 24, "right": 24, "top": 16, "bottom": 26, "containLabel": True},
        "xAxis": _axis("value", "mean confidence", dark, min=0, max=1),
        "yAxis": _axis("value", "share right", dark, min=0, max=1, nameGap=34),
        "series": [ideal, {"type": "line", "data": data, "lineStyle": {"color": BLUE}, "itemStyle": {"color": BLUE}}],
    }


def matrix(values: np.ndarray, classes: Sequence[str], across: str, down: str, dark: bool) -> dict[str, Any]:
    """Draw a matrix as shades of one hue, which need no colour vision, with shares in percent."""
    shares = 100 * values / np.maximum(values.sum(1, keepdims=True), 1e-12)
    cells = [[j, i, round(float(shares[i, j]), 1)] for i in range(len(classes)) for j in range(len(classes))]
    small, ink = len(classes) <= _MOST_NUMBERS, text_colour(dark)
    light = {"label": {"color": "#000000"}}
    data = [{"value": cell, **(light if cell[2] <= 50 else {"label": {"color": "#FFFFFF"}})} for cell in cells]
    return base(dark) | {
        "grid": {"left": 26, "right": 16, "top": 10, "bottom": 34, "containLabel": True},
        "xAxis": _axis(
            "category", across, dark, data=list(classes), axisLabel={"color": ink, "rotate": 35}, nameGap=44
        ),
        "yAxis": _axis("category", down, dark, data=list(classes), inverse=True, nameGap=60),
        "visualMap": {"show": False, "min": 0, "max": 100, "inRange": {"color": ["#EFF3FF", "#6BAED6", "#08519C"]}},
        "series": [{"type": "heatmap", "data": data, "label": {"show": small, "fontSize": 12}}],
    }


def course(scores: Sequence[tuple[int, float]], dark: bool) -> dict[str, Any]:
    """Draw the validation score over the number of labels."""
    return base(dark) | {
        "grid": {"left": 8, "right": 16, "top": 12, "bottom": 24, "containLabel": True},
        "xAxis": _axis("value", "labels", dark, min="dataMin", max="dataMax", minInterval=1),
        "yAxis": _axis("value", "", dark, min=0, max=1),
        "series": [
            {
                "type": "line",
                "data": [list(score) for score in scores],
                "symbolSize": 5,
                "lineStyle": {"color": BLUE},
                "itemStyle": {"color": BLUE},
            }
        ],
    }


def chart_map(
    places: np.ndarray,
    names: Sequence[str],
    labels: Sequence[int],
    links: np.ndarray,
    classes: Sequence[str],
    dark: bool,
) -> dict[str, Any]:
    """Draw nodes at their places, coloured by class, with the edges between them."""
    categories = [
        {"name": name, "symbol": symbol(i), "itemStyle": {"color": colour(i, dark), **outline(dark)}}
        for i, name in enumerate(classes)
    ]
    categories.append({"name": "none", "itemStyle": {"color": GREY, **outline(dark)}})
    data = [
        {"name": name, "x": float(x), "y": float(y), "category": label}
        for name, (x, y), label in zip(names, places, labels, strict=True)
    ]
    series = {
        "type": "graph",
        "layout": "none",
        "preserveAspect": True,
        "roam": True,
        "data": data,
        "links": [{"source": int(a), "target": int(b)} for a, b in links],
        "categories": categories,
        "symbolSize": 6 if len(names) > 500 else 10,
        "lineStyle": {"color": "#BDBDBD" if dark else "#757575", "opacity": 0.15 if len(links) > 1000 else 0.35},
        "left": 10,
        "right": 10,
        "top": 40,
        "bottom": 10,
    }
    present = sorted(set(labels))
    legend = {
        "data": [categories[i]["name"] for i in present],
        "textStyle": {"color": text_colour(dark)},
        "type": "scroll",
        "top": 0,
    }
    return base(dark) | {"legend": legend, "series": [series]}

"""Pictures as options of Apache ECharts. Texts are drawn on the canvas, so that none of them is read as HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lignn.evaluation.drawing import BLACK, BLUE, GREEN, GREY, OLIVE, ORANGE, PURPLE, SKY_BLUE, VERMILION
from lignn.serve.insight import Quality

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY_BLUE, OLIVE, BLACK)
"""Of Okabe and Ito: distinct without full colour vision."""
SYMBOLS = ("circle", "rect", "triangle", "diamond", "roundRect", "pin")
"""Shapes tell classes apart beyond the number of colours."""
DASHES = ("solid", "dashed", "dotted")
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


def text_colour(dark: bool) -> str:
    """Return the colour of texts; its contrast is above 7 on both backgrounds."""
    return "#E8E8E8" if dark else "#212121"


def _base(dark: bool) -> dict[str, Any]:
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


def neighbourhood(
    around: Mapping[str, Any],
    classes: Sequence[str],
    *,
    why: Mapping[str, float],
    blinking: Collection[str] = (),
    dark: bool = False,
) -> dict[str, Any]:
    """Draw the nodes around one: colour = class, ring = given label, opacity = confidence, arrows = direction.

    Args:
        around: see `insight.neighbourhood`.
        classes: all classes, in the order of their colours.
        why: gain of the labels that count most for the node in the middle, by id; lines join them to it.
        blinking: nodes whose prediction has just changed.
        dark: whether the background is dark.
    """
    number = {name: place for place, name in enumerate(classes)}
    nodes = [
        _node(record, number, middle=record["id"] == around["id"], why=why, blinking=blinking, dark=dark)
        for record in around["nodes"]
    ]
    place = {record["id"]: index for index, record in enumerate(around["nodes"])}
    links = _links(around, place, dark)
    strongest = max((abs(gain) for gain in why.values()), default=1.0) or 1.0
    links += [
        {
            "source": place[node],
            "target": place[around["id"]],
            "lineStyle": {
                "color": VERMILION,
                "width": 1 + 4 * abs(gain) / strongest,
                "type": "dashed",
                "curveness": 0.25,
            },
            "value": f"why: {gain:+.3f}",
        }
        for node, gain in why.items()
        if node in place and node != around["id"]
    ]
    series = {
        "type": "graph",
        "layout": "force",
        "roam": True,
        "scaleLimit": {"min": 0.3, "max": 6},
        "force": {"repulsion": 160 if len(nodes) > 25 else 500, "edgeLength": [60, 140], "layoutAnimation": False},
        "data": nodes,
        "links": links,
        "label": {"show": len(nodes) <= 40, "position": "right", "color": text_colour(dark), "fontSize": 12},
        "labelLayout": {"hideOverlap": True},
        "emphasis": {"focus": "adjacency"},
        "edgeSymbolSize": 7,
    }
    return _base(dark) | ({"series": [series]} if nodes else {})


def _node(
    record: Mapping[str, Any],
    number: Mapping[str, int],
    *,
    middle: bool,
    why: Mapping[str, float],
    blinking: Collection[str],
    dark: bool,
) -> dict[str, Any]:
    label, given = record["label"], record["given"]
    shown = label if label in number else given if given in number else None
    fill = GREY if shown is None else colour(number[shown], dark)
    sure = 1.0 if record["confidence"] is None else record["confidence"]
    ring = colour(number[given], dark) if given in number else "#9E9E9E" if dark else "#757575"
    style = {"color": _faded(fill, 0.25 + 0.75 * sure), "borderColor": ring, "borderWidth": 5 if given else 1}
    if record["id"] in blinking:
        style |= {"shadowBlur": 18, "shadowColor": VERMILION, "borderColor": VERMILION, "borderWidth": 4}
    size = 30 if middle else 20 if record["id"] in why else 15
    told = (
        f"{label} {record['confidence']:.0%}"
        if label is not None and record["confidence"] is not None
        else "no prediction"
    )
    return {
        "name": record["id"],
        "value": told + (f", given {given}" if given else ""),
        "symbol": "circle" if shown is None else symbol(number[shown]),
        "symbolSize": size + (6 if record["id"] in blinking else 0),
        "itemStyle": style,
        "label": {"show": True, "fontWeight": "bold"} if middle else {},
    }


def _links(around: Mapping[str, Any], place: Mapping[str, int], dark: bool) -> list[dict[str, Any]]:
    """Return the edges; of an undirected graph each pair once, without arrows."""
    types = {name: i for i, name in enumerate(dict.fromkeys(edge.get("type") for edge in around["edges"]))}
    links = []
    for edge in around["edges"]:
        ends = place[edge["source"]], place[edge["target"]]
        if around["undirected"] and ends[0] > ends[1]:
            continue
        words = [edge["type"]] if "type" in edge else []
        words += [f"weight {edge['weight']:g}"] if "weight" in edge else []
        line = {"color": "#9E9E9E" if dark else "#757575", "type": DASHES[types[edge.get("type")] % len(DASHES)]}
        links.append(
            {
                "source": ends[0],
                "target": ends[1],
                "symbol": ["none", "none" if around["undirected"] else "arrow"],
                "lineStyle": line | {"curveness": 0.0 if around["undirected"] else 0.12},
                "value": ", ".join(words),
            }
        )
    return links


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:.2f})"


def counts(classes: Sequence[str], given: Sequence[int], predicted: Sequence[int], dark: bool) -> dict[str, Any]:
    """Draw how many nodes have each class, given and predicted."""
    bars = [
        {"name": name, "type": "bar", "data": list(values), "itemStyle": {"color": fill}, "barMaxWidth": 22}
        for name, values, fill in (("given", given, BLUE), ("predicted", predicted, ORANGE))
    ]
    return _base(dark) | {
        "legend": {"textStyle": {"color": text_colour(dark)}, "top": 0},
        "grid": {"left": 8, "right": 16, "top": 30, "bottom": 8, "containLabel": True},
        "xAxis": _axis("value", "", dark),
        "yAxis": _axis("category", "", dark, data=list(classes), inverse=True),
        "series": bars,
    }


def confidences(confidence: np.ndarray, dark: bool) -> dict[str, Any]:
    """Draw a histogram of the confidence of unlabelled nodes."""
    heights, edges = np.histogram(confidence, _BINS, (0.0, 1.0))
    names = [f"{low:.0%}" for low in edges[:-1]]
    return _base(dark) | {
        "grid": {"left": 8, "right": 16, "top": 12, "bottom": 24, "containLabel": True},
        "xAxis": _axis("category", "confidence, from", dark, data=names),
        "yAxis": _axis("value", "", dark),
        "series": [{"type": "bar", "data": heights.tolist(), "itemStyle": {"color": BLUE}, "barCategoryGap": "10%"}],
    }


def reliability(quality: Quality, dark: bool) -> dict[str, Any]:
    """Draw the share of right predictions over the confidence; on the diagonal both agree."""
    points = [[sure, right] for sure, right, _ in quality.reliability]
    sizes = [max(8, min(28, 8 + 2 * count**0.5)) for _, _, count in quality.reliability]
    data = [{"value": point, "symbolSize": size} for point, size in zip(points, sizes, strict=True)]
    ideal = {"type": "line", "data": [[0, 0], [1, 1]], "symbol": "none", "lineStyle": {"color": GREY, "type": "dashed"}}
    return _base(dark) | {
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
    return _base(dark) | {
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
    return _base(dark) | {
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
        {"name": name, "symbol": symbol(i), "itemStyle": {"color": colour(i, dark)}} for i, name in enumerate(classes)
    ]
    categories.append({"name": "no prediction", "itemStyle": {"color": GREY}})
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
    return _base(dark) | {"legend": legend, "series": [series]}

"""The neighbourhood of a node as an option of Apache ECharts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lignn.notebook import GREY, VERMILION
from lignn.serve.page.pictures import base, colour, symbol, text_colour

DASHES = ("solid", "dashed", "dotted")
"""Lines of edge types, in order."""
_CARD = {False: "#FFFFFF", True: "#1D1D1D"}
"""Background of the picture, as in page.css."""
_LINE = {False: "#757575", True: "#9E9E9E"}
"""Edges and outlines, by whether the background is dark; their contrast is above 4."""
_DISC, _GAP = 0.6, 0.76
"""Where the disc and the gap around it end, of a node with a given label; the ring follows."""
_LABELLED, _CROWDED = 40, 25
"""Number of nodes up to which all are named, and above which they are put closer together."""


def draw(
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
    series = {
        "type": "graph",
        "layout": "force",
        "roam": True,
        "scaleLimit": {"min": 0.3, "max": 6},
        "force": {
            "repulsion": 160 if len(nodes) > _CROWDED else 500,
            "edgeLength": [60, 140],
            "layoutAnimation": False,
        },
        "data": nodes,
        "links": [*_links(around, dark), *_reasons(around, why)],
        "label": {
            "show": len(nodes) <= _LABELLED,
            "position": "bottom",
            "distance": 9,
            "color": text_colour(dark),
            "fontSize": 12,
        },
        "labelLayout": {"hideOverlap": True},
        "lineStyle": {"opacity": 1},
        "emphasis": {"focus": "adjacency"},
        "edgeSymbolSize": 7,
    }
    return base(dark) | ({"series": [series]} if nodes else {})


def class_of(record: Mapping[str, Any], classes: Collection[str]) -> str | None:
    """Return the class that gives a node its colour: the predicted one, else the given one; of several the first."""
    for told in (record["label"], record["given"]):
        for name in () if told is None else (told, told.split("|")[0]):
            if name in classes:
                return name
    return None


def edge_types(around: Mapping[str, Any]) -> dict[str, str]:
    """Return the line of each type of the edges in view."""
    types = dict.fromkeys(edge["type"] for edge in around["edges"] if "type" in edge)
    return {name: DASHES[place % len(DASHES)] for place, name in enumerate(types)}


def _node(
    record: Mapping[str, Any],
    number: Mapping[str, int],
    *,
    middle: bool,
    why: Mapping[str, float],
    blinking: Collection[str],
    dark: bool,
) -> dict[str, Any]:
    label, given, sure = record["label"], record["given"], record["confidence"]
    shown = class_of(record, number)
    paint = GREY if shown is None else colour(number[shown], dark)
    fill = _faded(paint, _CARD[dark], 0.25 + 0.75 * (1.0 if sure is None else sure))
    named = class_of({"label": None, "given": given}, number)
    ring = None if given is None else _LINE[dark] if named is None else colour(number[named], dark)
    style: dict[str, Any] = {"color": fill if ring is None else _ringed(fill, ring, _CARD[dark])}
    style |= {"borderColor": _LINE[dark], "borderWidth": 1}
    changed = record["id"] in blinking
    if changed:
        style |= {"shadowBlur": 18, "shadowColor": VERMILION, "borderColor": VERMILION, "borderWidth": 4}
    told = "no prediction" if label is None or sure is None else f"{label} {sure:.0%}"
    return {
        "name": record["id"],
        "value": told + (f", given {given}" if given else ""),
        "symbol": "circle" if shown is None else symbol(number[shown]),
        "symbolSize": (32 if middle else 20 if record["id"] in why else 16) + 6 * (ring is not None) + 6 * changed,
        "itemStyle": style,
        "label": {"show": True, "fontWeight": "bold"} if middle else {},
    }


def _ringed(fill: str, ring: str, gap: str) -> dict[str, Any]:
    """Return a disc, a gap and a ring; the gap tells a ring of the disc's own colour from a larger disc."""
    stops = ((0, fill), (_DISC, fill), (_DISC, gap), (_GAP, gap), (_GAP, ring), (1, ring))
    colours = [{"offset": offset, "color": paint} for offset, paint in stops]
    return {"type": "radial", "x": 0.5, "y": 0.5, "r": 0.5, "colorStops": colours}


def _places(around: Mapping[str, Any]) -> dict[str, int]:
    return {record["id"]: index for index, record in enumerate(around["nodes"])}


def _links(around: Mapping[str, Any], dark: bool) -> list[dict[str, Any]]:
    """Return the edges; of an undirected graph each pair once, without arrows."""
    place, dashes, undirected = _places(around), edge_types(around), around["undirected"]
    links = []
    for edge in around["edges"]:
        ends = place[edge["source"]], place[edge["target"]]
        if undirected and ends[0] > ends[1]:
            continue
        words = [edge["type"]] if "type" in edge else []
        words += [f"weight {edge['weight']:g}"] if "weight" in edge else []
        line = {"color": _LINE[dark], "type": dashes.get(edge.get("type"), "solid")}
        links.append(
            {
                "source": ends[0],
                "target": ends[1],
                "symbol": ["none", "none" if undirected else "arrow"],
                "lineStyle": line | {"curveness": 0.0 if undirected else 0.12},
                "value": ", ".join(words),
            }
        )
    return links


def _reasons(around: Mapping[str, Any], why: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return lines from the labels that count most to the node in the middle, the thicker the more they count."""
    place = _places(around)
    strongest = max((abs(gain) for gain in why.values()), default=1.0) or 1.0
    return [
        {
            "source": place[node],
            "target": place[around["id"]],
            "lineStyle": {
                "color": VERMILION,
                "width": 1.5 + 4 * abs(gain) / strongest,
                "type": "dashed",
                "curveness": 0.25,
            },
            "value": f"why: {gain:+.3f}",
        }
        for node, gain in why.items()
        if node in place and node != around["id"]
    ]


def _faded(colour: str, background: str, opacity: float) -> str:
    """Mix a colour with the background: like a transparent one, but lines behind it do not show."""
    places = (1, 3, 5)
    mixed = (opacity * int(colour[i : i + 2], 16) + (1 - opacity) * int(background[i : i + 2], 16) for i in places)
    return "#" + "".join(f"{round(part):02X}" for part in mixed)

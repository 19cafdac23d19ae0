"""The view of the whole: counts, confidence, quality, the map, the certificate, exports, training."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from nicegui import events, ui

from lignn.errors import GraphError, InputError
from lignn.graph import Graph, measures
from lignn.propagation import Adjacency
from lignn.serve.page import neighbourhood, overview, pictures
from lignn.serve.page.desk import counts
from lignn.serve.page.parts import button, heading
from lignn.serve.state import State
from lignn.serve.training import training_data

if TYPE_CHECKING:
    from lignn.serve.page.frame import Frame


_POLL_SECONDS = 0.5


class Overview:
    """The second tab.

    Args:
        frame: the page.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def build(self) -> None:
        """Make the elements."""
        with ui.row().classes("tool-row"):
            for ending in ("labels.csv", "predictions.csv", "predictions.parquet"):
                button(ending, partial(ui.download.from_url, f"/{ending}"), icon="download")
            if not self._frame.service.policy.read_only:
                self._train = ui.button("Train on", icon="model_training", on_click=self._start).props("dense no-caps")
        self._status = ui.label("").props('role="status" aria-live="polite"')
        self._progress = ui.linear_progress(0, show_value=False).props('aria-label="Training"').classes("wide")
        self._progress.set_visibility(False)
        self._charts = ui.element("div").classes("chart-grid")
        ui.timer(_POLL_SECONDS, self._follow_training)

    async def refresh(self) -> None:
        """Compute and draw everything for the present state."""
        service, state, dark = self._frame.service, self._frame.desk.state, self._frame.dark
        quality = await service.quality(state)
        words = str(await service.certificate(state)) if state.fitted is not None else "There is no model yet."
        chart = await service.once("map", state.graph, _map_of, state)
        transitions = await service.compute(_transitions, state)
        predicted, confidence = await service.compute(_of_predictions, state)
        names = state.class_names
        given = counts(state)
        self._charts.clear()
        with self._charts:
            self._card("Nodes by class", pictures.counts(names, [given[n] for n in names], predicted, dark))
            if confidence is not None:
                self._card("Confidence of unlabelled nodes", pictures.confidences(confidence, dark))
            if quality is not None:
                self._card(f"Reliability: {quality}", pictures.reliability(quality, dark))
                if quality.confusion is not None:
                    drawn = pictures.matrix(quality.confusion, state.classes.names, "predicted", "given", dark)
                    self._card("Confusion on held-out labels (%)", drawn)
            if transitions is not None:
                title = "Label transitions along edges (%)"
                self._card(title, pictures.matrix(transitions, names, "at the target", "at the source", dark))
            with ui.element("section").classes("card"):
                heading("Certificate")
                for line in words.splitlines():
                    ui.label(line)
            self._card(_map_title(state, chart), _map_option(state, chart, dark), tall=True)

    def _card(self, title: str, option: dict[str, Any], tall: bool = False) -> None:
        with ui.element("section").classes("card tall" if tall else "card"):
            heading(title)
            ui.echart(option, on_point_click=self._clicked if tall else None).classes("map-chart" if tall else "chart")

    async def _clicked(self, event: events.EChartPointClickEventArguments) -> None:
        if event.data_type == "node":
            self._frame.show_labels()
            await self._frame.view.walk(event.name)

    async def _start(self) -> None:
        async def work() -> None:
            await self._frame.service.compute(self._frame.service.training.start)

        await self._frame.guarded(work())

    def _follow_training(self) -> None:
        status = self._frame.service.training.status
        running = status.state == "running"
        self._progress.set_visibility(running)
        self._progress.set_value(status.epoch / status.epochs if status.epochs else 0)
        score = "" if status.score is None else f", validation {status.score:.1%}"
        told = f"Training: epoch {status.epoch} of at most {status.epochs}{score}" if running else status.message
        self._status.set_text(told)
        if not self._frame.service.policy.read_only:
            self._train.set_enabled(not running)


def _of_predictions(state: State) -> tuple[list[int], np.ndarray | None]:
    """Return how many nodes have each class predicted, and the confidence of unlabelled nodes."""
    if state.fitted is None:
        return [0] * len(state.class_names), None
    decision = state.decision(slice(None))
    labels = decision.labels
    found = labels.sum(0) if labels.ndim == 2 else np.bincount(labels, minlength=len(state.classes))
    new = [0] * (len(state.class_names) - len(state.classes))
    return [*map(int, found), *new], decision.confidence[~decision.known]


def _transitions(state: State) -> np.ndarray | None:
    """Return the transitions between given labels; None if no edge joins two of them."""
    try:
        graph, split = training_data(state)
        y = graph.y
        assert y is not None
        if split is not None:
            y = y.clone()
            y[split.val] = -1
        return measures.label_transitions(graph.replace(y=y)).numpy()
    except (GraphError, InputError):
        return None


def _map_of(state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nodes = overview.sample(state.graph)
    links = overview.links_between(state.graph, nodes)
    return nodes, links, overview.places(state.graph, nodes, links)


def _map_title(state: State, drawn: tuple[np.ndarray, ...]) -> str:
    shown, n = len(drawn[0]), state.graph.num_nodes
    return f"Map of {n} nodes" if shown == n else f"Map: {shown} of {n} nodes, by chance"


def _map_option(state: State, drawn: tuple[np.ndarray, np.ndarray, np.ndarray], dark: bool) -> dict[str, Any]:
    nodes, links, places = drawn
    names = state.class_names
    if state.fitted is None:
        told = [state.waiting.get(state.ids[node]) for node in nodes]
    else:
        told = state.decision(nodes).names.tolist()
    found = [neighbourhood.class_of({"label": name, "given": None}, names) for name in told]
    labels = [len(names) if name is None else names.index(name) for name in found]
    return pictures.chart_map(places, [state.ids[node] for node in nodes], labels, links, names, dark)


MOST_NODES = 5_000
MOST_LINKS = 8_000
_DIMENSIONS, _HOPS, _ROUNDS, _OTHERS = 16, 4, 120, 24
_SCALE = 1000.0
"""ECharts rounds the ends of lines to whole numbers."""


def sample(graph: Graph, most: int = MOST_NODES) -> np.ndarray:
    """Return the nodes to be drawn: all, or `most` of them by chance."""
    if graph.num_nodes <= most:
        return np.arange(graph.num_nodes)
    return np.sort(np.random.default_rng(0).choice(graph.num_nodes, most, replace=False))


def links_between(graph: Graph, nodes: np.ndarray) -> np.ndarray:
    """Return the edges between some nodes, each pair once, as places in `nodes`; a sample if there are many."""
    place = np.full(graph.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    ends = place[graph.edge_index.numpy()]
    ends = np.sort(ends[:, (ends >= 0).all(0) & (ends[0] != ends[1])], 0)
    links = np.unique(ends, axis=1).T
    if len(links) > MOST_LINKS:
        links = links[np.sort(np.random.default_rng(0).choice(len(links), MOST_LINKS, replace=False))]
    return links


def places(graph: Graph, nodes: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return a place for each of `nodes`.

    The start is the main plane of random features that were spread along the edges. Then links pull, and a few other
    nodes that are drawn by chance push, so that a round costs O(nodes + links).
    """
    generator = np.random.default_rng(0)
    noise = torch.from_numpy(generator.standard_normal((graph.num_nodes, _DIMENSIONS))).float()
    reach = Adjacency.normalized(graph, "row", True, torch.float32)
    for _ in range(_HOPS):
        noise = reach @ noise
    spread = noise.numpy()[nodes]
    spread = spread - spread.mean(0)
    plane = spread @ np.linalg.svd(spread, full_matrices=False)[2][:2].T
    at = plane / (np.abs(plane).max() + 1e-9) + 1e-3 * generator.standard_normal(plane.shape)
    ideal = 1.5 / np.sqrt(len(nodes))
    degree = np.maximum(np.bincount(links.ravel(), minlength=len(nodes)), 1)[:, None]
    for turn in range(_ROUNDS if len(nodes) > 1 else 0):
        pull = np.zeros_like(at)
        gap = at[links[:, 1]] - at[links[:, 0]]
        np.add.at(pull, links[:, 0], gap)
        np.add.at(pull, links[:, 1], -gap)
        others = generator.integers(len(nodes), size=(len(nodes), _OTHERS))
        away = at[:, None] - at[others]
        distance = (away**2).sum(2, keepdims=True) + 0.01 * ideal**2
        push = (away / distance).sum(1) * ideal**2 * len(nodes) / _OTHERS
        move = pull / degree + 0.05 * push - 0.01 * at
        length = np.linalg.norm(move, axis=1, keepdims=True)
        at = at + move / np.maximum(length, 1e-12) * np.minimum(length, 0.1 * (1 - turn / _ROUNDS))
    return _SCALE * at

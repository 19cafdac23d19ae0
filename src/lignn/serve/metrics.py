"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lignn.serve.service import Service

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class _OfEngine:
    """Reads the engine whenever it is asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Any]:
        engine = self._service.engine
        yield GaugeMetricFamily("lignn_ready", "Whether the service is ready.", float(engine.ready))
        yield CounterMetricFamily("lignn_solves", "Solves after changes.", engine.counts.solves)
        yield CounterMetricFamily("lignn_changes", "Changes that were made.", engine.counts.changes)
        yield GaugeMetricFamily("lignn_last_burst_seconds", "Time of the last burst of changes.", engine.counts.seconds)
        running = float(self._service.training.status.state == "running")
        yield GaugeMetricFamily("lignn_training", "Whether a model is being trained.", running)
        if engine.ready:
            state = engine.state
            yield GaugeMetricFamily("lignn_version", "Number of the last change.", state.version)
            yield GaugeMetricFamily("lignn_nodes", "Nodes of the graph.", state.graph.num_nodes)
            labels = int(state.draft.labels.mask.sum()) + len(state.waiting)
            yield GaugeMetricFamily("lignn_labels", "Labels that are given.", labels)


class Measured:
    """The layer that counts requests and takes their time, by route.

    Args:
        app: the application.
        service: whose figures are told.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self.registry = app, CollectorRegistry()
        self.registry.register(_OfEngine(service))
        self._seconds = Histogram(
            "lignn_request_seconds", "Time of requests.", ["route"], buckets=_BUCKETS, registry=self.registry
        )
        self._count = Counter("lignn_requests", "Requests.", ["method", "route", "status"], registry=self.registry)
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "page")
            seconds, count = self._of(scope["method"], route, status)
            seconds.observe(perf_counter() - start)
            count.inc()

    def _of(self, method: str, route: str, status: int) -> tuple[Any, Any]:
        key = (method, route, status)
        if key not in self._children:
            self._children[key] = self._seconds.labels(route), self._count.labels(method, route, str(status))
        return self._children[key]

    async def answer(self, _: Request) -> Response:
        """Return all figures."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)

"""Why, what next, what is around, how reliable; training; the state of the service itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from lignn.serve import insight
from lignn.serve.routes.common import PROBLEMS, Json, TheService, Writable, versioned
from lignn.serve.routes.predictions import NodeId
from lignn.serve.schemas import FitOut
from lignn.serve.service import Service

router = APIRouter(responses=PROBLEMS)
_POLL_SECONDS = 0.2
_MOST_HOPS, _MOST_NODES = 4, 300


@router.get("/explanations/{node_id:path}", tags=["insight"])
async def explanation(node_id: NodeId, service: TheService, k: Annotated[int, Query(ge=1, le=1000)] = 10) -> Response:
    """Return the known labels that count most for the prediction of a node."""
    state = service.state
    found = await service.compute(insight.explanation, state, state.number(node_id), k)
    return versioned(asdict(found) | {"version": state.version})


@router.get("/suggestions", tags=["insight"])
async def suggestions(
    service: TheService, k: Annotated[int, Query(ge=1, le=insight.MOST_SUGGESTIONS)] = 10
) -> Response:
    """Return the unlabelled nodes whose labels would help most."""
    state = service.state
    found = await service.compute(insight.suggestions, state, k)
    return versioned({"version": state.version, "suggestions": [state.record(number) for number in found]})


@router.get("/graph/{node_id:path}", tags=["insight"])
async def neighbourhood(
    node_id: NodeId,
    service: TheService,
    hops: Annotated[int, Query(ge=0, le=_MOST_HOPS)] = 1,
    limit: Annotated[int, Query(ge=1, le=_MOST_NODES, description="Most nodes; the nearest ones are kept.")] = 60,
) -> Response:
    """Return the neighbourhood of a node with its predictions."""
    state = service.state
    state.number(node_id)
    neighbours = await service.neighbours(state)
    return versioned(await service.compute(insight.neighbourhood, state, neighbours, node_id, hops, limit))


@router.get("/diagnosis", tags=["insight"])
async def diagnosis(service: TheService) -> Response:
    """Return the certificate of the present predictions, in numbers and in words."""
    state = service.state
    found = await service.certificate(state)
    return versioned({"version": state.version, **asdict(found), "words": str(found)})


@router.get("/model", tags=["service"])
async def model(service: TheService) -> Response:
    """Return what is served: the model's settings, its score on held-out labels, the graph, the classes."""
    return versioned(await service.facts())


@router.post("/fit", tags=["training"], response_model=FitOut, status_code=202, dependencies=[Writable])
async def fit(service: TheService) -> Response:
    """Train a new model with the labels so far, in the background; it takes over when it is done."""
    return Json((await service.compute(service.training.start)).record(), 202)


@router.get("/fit", tags=["training"], response_model=FitOut)
async def fit_status(service: TheService) -> Response:
    """Return how far training is."""
    return Json(service.training.status.record())


@router.delete("/fit", tags=["training"], response_model=FitOut, dependencies=[Writable])
async def stop_fit(service: TheService) -> Response:
    """End training; the present model stays."""
    service.training.stop()
    return Json(service.training.status.record())


@router.get(
    "/fit/events",
    tags=["training"],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}},
)
async def fit_events(service: TheService) -> Response:
    """Follow training as server-sent events, until it ends."""
    return StreamingResponse(_events(service), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def _events(service: Service) -> AsyncIterator[bytes]:
    last: Any = None
    while True:
        status = service.training.status
        if status != last:
            last = status
            yield b"event: " + status.state.encode() + b"\ndata: " + orjson.dumps(status.record()) + b"\n\n"
        if status.state != "running":
            return
        await asyncio.sleep(_POLL_SECONDS)


@router.get("/health", tags=["service"])
async def health(service: TheService) -> Response:
    """Return whether the service is ready; 503 while it starts, or if it could not."""
    engine = service.engine
    if engine.failure is not None:
        return Json({"status": "failed", "detail": engine.failure}, 503)
    if not engine.ready:
        return Json({"status": "starting"}, 503)
    return Json({"status": "ok", "version": engine.state.version})

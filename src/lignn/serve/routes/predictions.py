"""Predictions: of one node, of some, of all."""

from __future__ import annotations

import io
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Path, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from lignn.classifier import prediction_table
from lignn.classifier.decision import Decision
from lignn.errors import InputError
from lignn.serve.routes.common import PROBLEMS, TheService, versioned
from lignn.serve.schemas import PredictionOut, PredictionRequest, PredictionsOut
from lignn.serve.state import State

router = APIRouter(tags=["predictions"], responses=PROBLEMS)
NodeId = Annotated[str, Path(description="Id of the node.", examples=["a17"])]
_MEDIA = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_TABLES: dict[int | str, dict[str, Any]] = {
    200: {"content": {media.partition(";")[0]: {"schema": {"type": "string"}} for media in _MEDIA.values()}}
}
"""Tables, for the OpenAPI document."""


class _DirectRoute(APIRoute):
    """A route whose only parameter is a node's id: the one asked for most often is spared FastAPI's dependencies."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        async def handler(request: Request) -> Response:
            return self.endpoint(request.path_params["node_id"], request.app.state.service)

        return handler


def one(node_id: NodeId, service: TheService) -> Response:
    """Return the prediction of a node."""
    state = service.state
    return versioned(state.record(state.number(node_id)))


router.add_api_route(
    "/predictions/{node_id:path}", one, response_model=PredictionOut, route_class_override=_DirectRoute
)


@router.get("/predictions.{ending}", response_class=Response, responses=_TABLES)
async def table(ending: Literal["csv", "parquet"], service: TheService) -> Response:
    """Return the predictions of all nodes as a table."""
    state = service.state
    return await service.compute(_file, state, state.rows, ending)


@router.post("/predictions", response_model=PredictionsOut, responses=_TABLES)
async def many(
    service: TheService,
    wanted: PredictionRequest,
    format: Annotated[Literal["json", "csv", "parquet"], Query(description="Tables have no pages.")] = "json",  # noqa: A002
) -> Response:
    """Return the predictions of some nodes, or of all, page by page or as a table."""
    state = service.state
    if wanted.ids is not None:
        numbers = np.array([state.number(node) for node in wanted.ids], dtype=np.int64)
    else:
        numbers = state.rows
    if format != "json":
        return await service.compute(_file, state, numbers, format)
    page = numbers[wanted.offset : wanted.offset + wanted.limit]
    end = wanted.offset + len(page)
    rows = await service.compute(records, state, page)
    following = end if end < len(numbers) and len(page) else None
    return versioned({"version": state.version, "total": len(numbers), "next": following, "predictions": rows})


def records(state: State, numbers: np.ndarray) -> list[dict[str, Any]]:
    """Return the predictions of several nodes as JSON has them."""
    if state.fitted is None:
        return [state.record(number) for number in numbers.tolist()]
    decision, names = state.decision(numbers), state.classes.names
    columns = (
        decision.node_ids.tolist(),
        decision.names.tolist(),
        decision.confidence.tolist(),
        decision.evidence.tolist(),
        _given(decision),
        decision.probabilities.tolist(),
    )
    return [
        {
            "id": node,
            "label": label,
            "confidence": confidence,
            "evidence": evidence,
            "given": given,
            "probabilities": dict(zip(names, row, strict=True)),
            "version": state.version,
        }
        for node, label, confidence, evidence, given, row in zip(*columns, strict=True)
    ]


def _given(decision: Decision) -> list[str | None]:
    return [name if known else None for name, known in zip(decision.given.tolist(), decision.known, strict=True)]


def _file(state: State, numbers: np.ndarray, ending: str) -> Response:
    """Return predictions as the content of a file."""
    if state.fitted is None:
        raise InputError("there is no model yet, so there are no predictions to write")
    table = prediction_table.of(state.decision(numbers))
    if ending == "csv":
        content = prediction_table.as_csv(table).encode()
    else:
        buffer = io.BytesIO()
        pa.parquet.write_table(table, buffer)
        content = buffer.getvalue()
    headers = {"Content-Disposition": f'attachment; filename="predictions.{ending}"', "ETag": f'"{state.version}"'}
    return Response(content, media_type=_MEDIA[ending], headers=headers)

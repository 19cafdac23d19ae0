"""Labels: given, corrected, withdrawn, and their history."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from lignn.serve import export
from lignn.serve.engine import Request
from lignn.serve.routes.common import PROBLEMS, Expected, TheService, Who, Writable, versioned
from lignn.serve.routes.predictions import NodeId
from lignn.serve.schemas import MOST_ROWS, ChangeOut, HistoryOut, LabelBody, LabelsBody
from lignn.serve.service import label_changes, told

router = APIRouter(tags=["labels"], responses=PROBLEMS)


@router.put("/labels/{node_id:path}", response_model=ChangeOut, dependencies=[Writable])
async def put_label(node_id: NodeId, body: LabelBody, service: TheService, who: Who, expected: Expected) -> Response:
    """Give a node a label; predictions take it into account at once."""
    service.state.number(node_id)
    request = Request(label_changes([(node_id, body.label)]), who, expected, body.new_class)
    return versioned(told(await service.change(request), [node_id]))


@router.delete("/labels/{node_id:path}", response_model=ChangeOut, dependencies=[Writable])
async def remove_label(node_id: NodeId, service: TheService, who: Who, expected: Expected) -> Response:
    """Withdraw the label of a node."""
    service.state.number(node_id)
    outcome = await service.change(Request(label_changes([(node_id, None)]), who, expected))
    return versioned(told(outcome, [node_id]))


@router.post("/labels", response_model=ChangeOut, dependencies=[Writable])
async def post_labels(body: LabelsBody, service: TheService, who: Who, expected: Expected) -> Response:
    """Give or withdraw many labels, all or none, in one solve."""
    changes = label_changes([(one.id, one.label) for one in body.labels])
    outcome = await service.change(Request(changes, who, expected, body.new_class))
    return versioned(told(outcome, [one.id for one in body.labels]))


@router.get("/labels", response_model=HistoryOut)
async def history(
    service: TheService,
    after: Annotated[int, Query(ge=0, le=2**53, description="Changes with a larger number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1000,
    node: Annotated[str | None, Query(description="Only changes of the label of this node.")] = None,
    who: Annotated[str | None, Query(description="Only changes by this person.")] = None,
) -> Response:
    """Return the history of labels: who gave which and when, with the old and the new value."""
    journal, version = service.engine.journal, service.state.version
    found = await service.compute(lambda: journal.entries(after, kind="label", key=node, who=who, limit=limit))
    following = found[-1].seq if len(found) == limit else None
    return versioned({"version": version, "next": following, "changes": [entry.record() for entry in found]})


@router.get("/labels.csv", response_class=Response, responses={200: {"content": {"text/csv": {}}}})
async def table(service: TheService) -> Response:
    """Return all labels that are given by now, with who gave them and when."""
    content = await service.compute(export.csv_of, service.state, service.engine.journal)
    headers = {"Content-Disposition": 'attachment; filename="labels.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=headers)

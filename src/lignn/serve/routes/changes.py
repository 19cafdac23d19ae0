"""Changes of nodes, edges and features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from lignn.errors import InputError
from lignn.serve.changes import Work, edge_key, feature_columns
from lignn.serve.engine import Outcome, Request
from lignn.serve.journal import Change
from lignn.serve.routes.common import PROBLEMS, Expected, TheService, Who, Writable, versioned
from lignn.serve.routes.predictions import NodeId
from lignn.serve.schemas import ChangeOut, Edge, EdgesBody, FeaturesBody, NodesBody
from lignn.serve.service import told
from lignn.serve.state import State

router = APIRouter(tags=["graph"], responses=PROBLEMS)


def _edges(edges: Sequence[Edge], gone: bool = False) -> list[Change]:
    return [
        Change("edge", edge_key(edge.source, edge.target, edge.type), None if gone else _value(edge)) for edge in edges
    ]


def _value(edge: Edge) -> dict[str, Any]:
    given = {"weight": edge.weight, "columns": edge.columns}
    return {name: value for name, value in given.items() if value is not None}


@router.post("/nodes", response_model=ChangeOut)
async def add_nodes(
    body: NodesBody,
    service: TheService,
    who: Who,
    dry_run: Annotated[bool, Query(description="Predict the nodes, but do not keep them.")] = False,
) -> Response:
    """Add nodes with their features and edges, and return their predictions."""
    nodes = [Change("node", node.id, {"features": node.features}) for node in body.nodes]
    changes = [*nodes, *_edges(body.edges)]
    ids = [node.id for node in body.nodes]
    if dry_run:
        outcome = await service.compute(_tried, service.state, changes)
        return versioned(told(outcome, ids) | {"version": outcome.before.version})
    if service.policy.read_only:
        raise HTTPException(403, "the service is read-only; add ?dry_run=true to predict nodes without keeping them")
    return versioned(told(await service.change(Request(changes, who)), ids))


def _tried(state: State, changes: Sequence[Change]) -> Outcome:
    work, made = Work.on(state).taking(changes)
    return Outcome(work.solved(state.version), state, made)


@router.delete("/nodes/{node_id:path}", response_model=ChangeOut, dependencies=[Writable])
async def remove_node(node_id: NodeId, service: TheService, who: Who, expected: Expected) -> Response:
    """Remove a node with its edges and label."""
    service.state.number(node_id)
    return versioned(told(await service.change(Request([Change("node", node_id, None)], who, expected)), []))


@router.patch("/nodes/{node_id:path}", response_model=ChangeOut, dependencies=[Writable])
async def change_features(
    node_id: NodeId, body: FeaturesBody, service: TheService, who: Who, expected: Expected
) -> Response:
    """Change features of a node."""
    state = service.state
    state.number(node_id)
    features = body.features
    if isinstance(features, list):
        names = feature_columns(state.graph)
        if len(features) != len(names):
            raise InputError(f"features: {len(names)} numbers are needed, got {len(features)}")
        features = dict(zip(names, features, strict=True))
    request = Request([Change("features", node_id, features)], who, expected)
    return versioned(told(await service.change(request), [node_id]))


@router.put("/edges", response_model=ChangeOut, dependencies=[Writable])
async def put_edges(body: EdgesBody, service: TheService, who: Who, expected: Expected) -> Response:
    """Add edges; one that is there already gets the new weight, and one that carries columns comes beside it."""
    outcome = await service.change(Request(_edges(body.edges), who, expected))
    return versioned(told(outcome, _ends(body.edges)))


@router.delete("/edges", response_model=ChangeOut, dependencies=[Writable])
async def remove_edges(body: EdgesBody, service: TheService, who: Who, expected: Expected) -> Response:
    """Remove edges, all of which must be there."""
    outcome = await service.change(Request(_edges(body.edges, gone=True), who, expected))
    return versioned(told(outcome, _ends(body.edges)))


def _ends(edges: Sequence[Edge]) -> list[str]:
    return list(dict.fromkeys(end for edge in edges for end in (edge.source, edge.target)))

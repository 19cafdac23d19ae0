"""Bodies and answers of the service; they make the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from lignn.serve.changes import MOST_CHARACTERS

MOST_ROWS = 10_000
"""Ids, labels, nodes or edges in one body."""

Id = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS, examples=["a17"])]
ClassName = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS, examples=["fraud"])]
Number = Annotated[float, Field(allow_inf_nan=False)]
Cell = Annotated[str, Field(max_length=10_000)]
LabelValue = Annotated[
    ClassName | list[ClassName],
    Field(description="Name of a class; for multi-label models a list of names.", examples=["fraud"]),
]


class Body(BaseModel):
    """A body; what it does not know is refused."""

    model_config = ConfigDict(extra="forbid")


class PredictionRequest(Body):
    """Which nodes to predict."""

    ids: Annotated[list[Id], Field(max_length=MOST_ROWS)] | None = Field(
        None, description="Nodes; without them, all nodes are meant, page by page.", examples=[["a17", "a18"]]
    )
    offset: Annotated[int, Field(ge=0, le=2**53)] = 0
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS)] = 1000


class LabelBody(Body):
    """A label."""

    label: LabelValue
    new_class: bool = Field(False, description="Whether the label may be of a class that is not known yet.")


class NodeLabel(Body):
    """A label of a node; null removes it."""

    id: Id
    label: LabelValue | None


class LabelsBody(Body):
    """Many labels, all or none."""

    labels: Annotated[list[NodeLabel], Field(min_length=1, max_length=MOST_ROWS)]
    new_class: bool = False


Features = Annotated[
    dict[str, Number | bool | Cell | None] | list[Number],
    Field(
        description="Values by the name of the column, or numbers in the order of the columns.", examples=[[0.5, 1.0]]
    ),
]


class NewNode(Body):
    """A node to be added."""

    id: Id
    features: Features | None = None


class Edge(Body):
    """An edge; in an undirected graph it counts in both directions. `columns` is what it carries, such as an amount."""

    source: Id
    target: Id
    weight: Annotated[Number, Field(ge=0, le=1e30)] | None = None
    type: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)] | None = None
    columns: dict[str, Number | bool | Cell | None] | None = None


class NodesBody(Body):
    """Nodes and the edges that join them, all or none."""

    nodes: Annotated[list[NewNode], Field(min_length=1, max_length=MOST_ROWS)]
    edges: Annotated[list[Edge], Field(max_length=MOST_ROWS)] = []


class EdgesBody(Body):
    """Edges, all or none."""

    edges: Annotated[list[Edge], Field(min_length=1, max_length=MOST_ROWS)]


class FeaturesBody(Body):
    """New features of a node; those that are not named stay."""

    features: Features


class PredictionOut(BaseModel):
    """A prediction, with the columns of predictions.csv."""

    id: str = Field(examples=["a17"])
    label: str | None = Field(examples=["fraud"], description="Predicted class; null before the first model.")
    confidence: float | None = Field(examples=[0.93], description="Its calibrated probability.")
    evidence: bool = Field(description="Whether a known label reaches the node along the edges.")
    given: str | None = Field(description="The label that was given, which need not be the predicted one.")
    probabilities: dict[str, float] = Field(examples=[{"fraud": 0.93, "fine": 0.07}])
    version: int = Field(examples=[42], description="The state that the prediction is from.")


class PredictionsOut(BaseModel):
    """Predictions of one state."""

    version: int
    total: int = Field(description="Number of nodes that were asked for.")
    next: int | None = Field(description="Offset of the next page; null if this is the last one.")
    predictions: list[PredictionOut]


class ChangeOut(BaseModel):
    """What a change did."""

    version: int
    changes: int = Field(description="Number of things that were changed; 0 if all were so already.")
    changed: int = Field(description="Number of nodes whose predicted label is another one now.")
    changed_ids: list[str] = Field(description="Ids of at most 100 of them.")
    predictions: list[PredictionOut] = Field(description="Of the nodes in the request, at most 100.")


class ProblemOut(BaseModel):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["node 'a99' is not in the graph"])


class FitOut(BaseModel):
    """How far training is."""

    state: str = Field(examples=["running"])
    epoch: int
    epochs: int
    score: float | None
    message: str
    number: int
    version: int


class HistoryOut(BaseModel):
    """Changes in their order."""

    version: int
    next: int | None = Field(description="The `after` of the next page; null if there are no more changes.")
    changes: list[dict[str, Any]]

"""Labels of the test nodes of a model's split are in no answer, whatever they are."""

import numpy as np
import pytest

from lignn.serve import insight
from lignn.serve.page import overview
from lignn.serve.page.desk import counts
from tests.classifier.small import fitted, small_graph, small_split
from tests.serve.conftest import serving
from tests.serve.test_training import wait_for

TEST = small_split().test
GIVEN, NEAR = (f"node{i}" for i in TEST.nonzero().flatten().tolist()[:2])
ROUTES = (
    "/predictions.csv", "/predictions.parquet", "/labels", "/labels.csv", "/suggestions?k=20", "/diagnosis", "/model",
    "/fit", "/fit/events", "/health", "/metrics", "/openapi.json",
    *(f"/{what}/{node}" for what in ("predictions", "explanations", "graph") for node in (GIVEN, NEAR, "node0")),
)  # fmt: skip
CLOCKED = ("seconds", "_created", 'route="/fit"')
"""Figures of `/metrics` that are no two times the same; `/fit` is asked until training is done."""
CHANGES = (
    ("POST", "/labels", {"labels": [{"id": GIVEN, "label": "c"}]}),
    ("DELETE", f"/labels/{GIVEN}", None),
    ("PUT", f"/labels/{GIVEN}", {"label": "b"}),
    ("PUT", "/edges", {"edges": [{"source": GIVEN, "target": NEAR}]}),
    ("PATCH", f"/nodes/{NEAR}", {"features": {"0": 0.5}}),
    ("POST", "/nodes", {"nodes": [{"id": "kept", "features": [0.5] * 6}]}),
    ("DELETE", "/nodes/kept", None),
)


def flipped():
    """The small graph with other labels on all test nodes."""
    graph = small_graph()
    y = graph.y.clone()
    y[TEST] = (y[TEST] + 1) % 3
    return graph.replace(y=y)


def answers(client):
    """What every route says, without times and without the identity of the model."""
    told = {route: client.get(route) for route in ROUTES}
    assert {answer.status_code for answer in told.values()} == {200}
    found = {route: answer.content for route, answer in told.items()}
    found["/metrics"] = [line for line in told["/metrics"].text.splitlines() if not any(w in line for w in CLOCKED)]
    history = told["/labels"].json()["changes"]
    found["/labels"] = [(entry["id"], entry["old"], entry["new"]) for entry in history]
    found["/labels.csv"] = sorted(line.rsplit(",", 1)[0] for line in told["/labels.csv"].text.splitlines())
    everything = client.post("/predictions", json={}).json()
    tried = client.post("/nodes?dry_run=true", json={"nodes": [{"id": "new", "features": [0.5] * 6}]}).json()
    return found | {"all": everything, "tried": tried}


def seen_on_the_page(state):
    quality = insight.quality(state)
    return [
        counts(state), quality.score, quality.confusion.tolist(), quality.reliability,
        overview._transitions(state).tolist(), insight.least_confident(state, 20),
        insight.contradicting(state, 20), insight.suggestions(state, 20),
    ]  # fmt: skip


def course(graph, folder):
    """All answers of a service of a model of `graph`: at first, after changes, after a new fit."""
    fitted(graph=graph, max_epochs=5).save(folder)
    found = []
    with serving(folder) as (client, service):
        found += [answers(client), seen_on_the_page(service.state)]
        for method, path, body in CHANGES:
            found.append(client.request(method, path, json=body).json())
            assert found[-1]["changes"] == 1, found[-1]
        found += [answers(client), seen_on_the_page(service.state)]
        client.post("/fit")
        status = wait_for(client)
        assert status["state"] == "done", status
        found += [status["score"], answers(client), seen_on_the_page(service.state)]
        found.append(client.delete(f"/nodes/{NEAR}").json())
        found += [entry.change for entry in service.engine.journal.entries() if entry.change.kind != "fit"]
    return found


def test_flipped_test_labels_change_no_answer(tmp_path, training_here):
    graph = flipped()
    assert (graph.y != small_graph().y).sum() == TEST.sum() == 30
    one, other = course(small_graph(), tmp_path / "one"), course(graph, tmp_path / "other")
    for left, right in zip(one, other, strict=True):
        assert left == right


def test_every_route_is_compared(client):
    """A route that is added must be added above; those that change something are in `CHANGES` or in `course`."""
    document = client.get("/openapi.json").json()["paths"]
    read = {path.replace(".{ending}", ".csv") for path, methods in document.items() if "get" in methods}
    assert read <= {route.partition("?")[0].replace(f"/{GIVEN}", "/{node_id}") for route in ROUTES}


def test_labels_given_live_are_inputs(model):
    """The test above compares answers that depend on labels: one that is given changes predictions elsewhere."""
    with serving(model) as (client, _):
        before = [row["probabilities"] for row in client.post("/predictions", json={}).json()["predictions"]]
        client.put(f"/labels/{GIVEN}", json={"label": "b"})
        after = [row["probabilities"] for row in client.post("/predictions", json={}).json()["predictions"]]
    changed = [not np.allclose(list(x.values()), list(y.values())) for x, y in zip(before, after, strict=True)]
    assert sum(changed) > 1


@pytest.mark.parametrize("part", ["train", "val"])
def test_other_labels_do_change_answers(tmp_path, part):
    """Flipping labels that may count is seen, so that the first test looks at what it should."""
    y = small_graph().y.clone()
    mask = getattr(small_split(), part)
    y[mask] = (y[mask] + 1) % 3
    found = []
    for name, graph in (("one", small_graph()), ("other", small_graph().replace(y=y))):
        fitted(graph=graph, max_epochs=5).save(tmp_path / name)
        with serving(tmp_path / name) as (_, service):
            found.append(seen_on_the_page(service.state))
    assert found[0] != found[1]

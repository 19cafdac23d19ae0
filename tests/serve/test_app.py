"""The routes, over HTTP in one process."""

import io
import shutil

import numpy as np
import pyarrow.parquet
import pytest

import lignn
from lignn.classifier import prediction_table
from lignn.serve import engine, service
from tests.classifier.small import small_graph
from tests.serve.conftest import serving

UNKNOWN = "node1"


@pytest.fixture
def loaded(original):
    return lignn.load(original)


@pytest.fixture(scope="module")
def unchanged(original, tmp_path_factory):
    """One service for all errors, which change nothing."""
    folder = shutil.copytree(original, tmp_path_factory.mktemp("unchanged") / "model")
    with serving(folder) as (client, _):
        yield client


def unlabelled(client, count=1):
    rows = client.post("/predictions", json={}).json()["predictions"]
    return [row["id"] for row in rows if row["given"] is None][:count]


def test_predictions_are_those_of_the_library(client, loaded):
    decision = loaded.decision()
    answer = client.post("/predictions", json={"limit": 50}).json()
    rest = client.post("/predictions", json={"offset": answer["next"]}).json()
    assert (answer["total"], answer["next"], rest["next"]) == (90, 50, None)
    for row, record in enumerate(answer["predictions"] + rest["predictions"]):
        assert record == client.get(f"/predictions/node{row}").json()
        assert record["label"] == decision.names[row]
        assert record["given"] == (decision.given[row] if decision.known[row] else None)
        assert record["evidence"] == decision.evidence[row]
        np.testing.assert_allclose(record["confidence"], decision.confidence[row], rtol=1e-12)
        np.testing.assert_allclose(list(record["probabilities"].values()), decision.probabilities[row], rtol=1e-12)
        assert list(record["probabilities"]) == ["a", "b", "c"]
        assert record["version"] == 0


def test_tables_are_those_of_the_command(client, loaded):
    expected = prediction_table.of(loaded.decision())
    text = client.post("/predictions?format=csv", json={})
    assert text.text == prediction_table.as_csv(expected)
    assert text.headers["etag"] == '"0"'
    parquet = client.post("/predictions?format=parquet", json={"ids": ["node3", "node1"]})
    assert pyarrow.parquet.read_table(io.BytesIO(parquet.content)).equals(expected.take([3, 1]))


def test_a_label_changes_predictions_as_update_labels_does(client, loaded):
    node = unlabelled(client)[0]
    answer = client.put(f"/labels/{node}", json={"label": "b"}, headers={"Lignn-User": "Zo%C3%AB"}).json()
    update = loaded.update_labels({node: "b"})
    assert answer["changed"] == update.changed
    assert answer["version"] == 1
    assert answer["predictions"] == [client.get(f"/predictions/{node}").json()]
    found = [row["confidence"] for row in client.post("/predictions", json={}).json()["predictions"]]
    np.testing.assert_allclose(found, loaded.decision().confidence, rtol=1e-12)
    again = client.put(f"/labels/{node}", json={"label": "b"}).json()
    assert (again["changes"], again["version"]) == (0, 1)
    gone = client.delete(f"/labels/{node}").json()
    assert (gone["changes"], gone["version"]) == (1, 2)
    history = client.get("/labels").json()
    assert [(c["who"], c["old"], c["new"]) for c in history["changes"]] == [
        ("Zoë", None, "b"),
        ("anonymous", "b", None),
    ]
    assert client.get("/labels", params={"who": "Zoë"}).json()["changes"] == history["changes"][:1]
    assert client.get("/labels", params={"after": 1, "limit": 1}).json()["next"] == 2


def test_many_labels_are_all_or_none_and_one_solve(model):
    with serving(model) as (client, service):
        nodes = unlabelled(client, 20)
        bad = client.post(
            "/labels", json={"labels": [{"id": n, "label": "a"} for n in nodes] + [{"id": "who", "label": "a"}]}
        )
        assert bad.status_code == 422
        assert bad.json()["detail"] == "node 'who' is not in the graph"
        assert client.get("/labels").json()["changes"] == []
        done = client.post("/labels", json={"labels": [{"id": node, "label": "a"} for node in nodes]}).json()
        assert (done["changes"], service.engine.counts.solves) == (20, 1)


def test_nodes_edges_and_features_change_as_in_the_library(client, loaded):
    body = {
        "nodes": [{"id": "x/y", "features": [0.5] * 6}, {"id": "z", "features": {str(i): 1 for i in range(6)}}],
        "edges": [{"source": "node1", "target": "x/y"}, {"source": "x/y", "target": "z"}],
    }
    tried = client.post("/nodes?dry_run=true", json=body).json()
    assert tried["version"] == 0
    assert client.get("/model").json()["graph"]["nodes"] == 90
    kept = client.post("/nodes", json=body).json()
    assert [{**p, "version": 0} for p in kept["predictions"]] == [{**p, "version": 0} for p in tried["predictions"]]
    expected = loaded.add_nodes([[0.5] * 6, [1.0] * 6], [["node1", "x/y"], ["x/y", "z"]], ["x/y", "z"])
    np.testing.assert_allclose([p["confidence"] for p in kept["predictions"]], expected.confidence, atol=1e-9)
    steps = [
        (
            lambda: client.put("/edges", json={"edges": [{"source": "z", "target": "node5"}]}),
            lambda: loaded.add_edges([["z"], ["node5"]]),
        ),
        (
            lambda: client.patch("/nodes/z", json={"features": {"3": 2.5}}),
            lambda: loaded.change_features({"z": {"3": 2.5}}),
        ),
        (
            lambda: client.request("DELETE", "/edges", json={"edges": [{"source": "x/y", "target": "z"}]}),
            lambda: loaded.remove_edges([["x/y"], ["z"]]),
        ),
        (lambda: client.delete("/nodes/x/y"), lambda: loaded.remove_nodes(["x/y"])),
    ]
    for over_http, in_library in steps:
        answer = over_http()
        assert answer.status_code == 200, answer.text
        assert answer.json()["changes"] == 1
        assert answer.json()["changed"] == in_library().changed
        found = [row["confidence"] for row in client.post("/predictions", json={}).json()["predictions"]]
        np.testing.assert_allclose(found, loaded.decision().confidence, atol=1e-9)
    assert client.get("/predictions/x/y").status_code == 404
    conflict = client.post("/nodes", json={"nodes": [{"id": "z", "features": [0] * 6}]})
    assert (conflict.status_code, conflict.json()["detail"]) == (409, "node 'z' is in the graph already")


def test_insight(client, loaded):
    explained = client.get("/explanations/node5?k=3").json()
    expected = loaded.explain("node5", 3)
    assert [c["id"] for c in explained["contributions"]] == [c.id for c in expected.contributions]
    np.testing.assert_allclose(explained["contributions"][0]["gain"], expected.contributions[0].gain)
    suggested = client.get("/suggestions?k=4").json()["suggestions"]
    assert [s["id"] for s in suggested] == [f"node{i}" for i in loaded.suggest(4)]
    around = client.get("/graph/node5?hops=1").json()
    ends = small_graph().edge_index
    near = {5, *ends[1, ends[0] == 5].tolist()}
    assert {node["id"] for node in around["nodes"]} == {f"node{i}" for i in near}
    assert len(around["edges"]) == sum(a in near and b in near for a, b in ends.T.tolist())
    assert (around["undirected"], around["truncated"]) == (True, False)
    assert client.get("/graph/node5?hops=3&limit=4").json()["truncated"] is True
    assert client.get("/diagnosis").json()["words"] == str(loaded.diagnose())
    assert client.get("/model").json()["classes"] == ["a", "b", "c"]
    assert client.get("/health").json() == {"status": "ok", "version": 0}
    assert 'lignn_requests_total{method="GET",route="/suggestions",status="200"} 1.0' in client.get("/metrics").text


def test_versions_guard_against_overwriting(client):
    node, other = unlabelled(client, 2)
    seen = client.get(f"/predictions/{node}")
    assert client.put(f"/labels/{node}", json={"label": "a"}).json()["version"] == 1
    late = client.put(f"/labels/{node}", json={"label": "b"}, headers={"If-Match": seen.headers["etag"]})
    assert (late.status_code, late.json()["status"]) == (409, 409)
    assert "was changed after version 0" in late.json()["detail"]
    assert late.headers["content-type"] == "application/problem+json"
    assert client.put(f"/labels/{other}", json={"label": "b"}, headers={"If-Match": '"0"'}).status_code == 200
    assert client.put(f"/labels/{node}", json={"label": "b"}, headers={"If-Match": "1"}).status_code == 200
    assert client.put(f"/labels/{node}", json={"label": "b"}, headers={"If-Match": "soon"}).status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "detail"),
    [
        ("GET", "/predictions/who", None, 404, "node 'who' is not in the graph"),
        ("PUT", "/labels/who", {"label": "a"}, 404, "node 'who' is not in the graph"),
        ("PUT", "/labels/node1", {"label": "z"}, 422, "class 'z' was not there in training; choose from a, b, c"),
        ("PUT", "/labels/node1", {"label": ["a"]}, 422, "one class per node is needed"),
        ("PUT", "/labels/node1", {"lable": "a"}, 422, "body.label: Field required"),
        ("POST", "/predictions", {"ids": ["who"]}, 422, "node 'who' is not in the graph"),
        (
            "POST",
            "/nodes",
            {"nodes": [{"id": "n", "features": [1]}]},
            422,
            "features of 'n': 6 numbers are needed, got 1",
        ),
        ("POST", "/nodes", {"nodes": [{"id": "n", "features": {"0": 1}}]}, 422, "'1' is missing"),
        ("PUT", "/edges", {"edges": [{"source": "node1", "target": "who"}]}, 422, "node 'who' is not in the graph"),
        ("DELETE", "/edges", {"edges": [{"source": "node0", "target": "node0"}]}, 422, "there is no edge from"),
        ("PATCH", "/nodes/node1", {"features": {"9": 1}}, 422, "'9' is no feature"),
        ("GET", "/graph/node1?hops=99", None, 422, "query.hops"),
        ("GET", "/nowhere", None, 404, "Not Found"),
        ("DELETE", "/predictions", None, 405, "Method Not Allowed"),
    ],
)
def test_errors_are_problems_with_one_sentence(unchanged, method, path, body, status, detail):
    answer = unchanged.request(method, path, json=body)
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert detail in answer.json()["detail"]


@pytest.mark.parametrize(
    ("part", "method", "path", "detail"),
    [
        (engine, "PUT", f"/labels/{UNKNOWN}", "too many changes are waiting"),
        (service, "GET", "/suggestions", "too many explanations and overviews"),
    ],
)
def test_a_service_with_too_much_to_do_says_429(client, monkeypatch, part, method, path, detail):
    with monkeypatch.context() as patch:
        patch.setattr(part, "MOST_WAITING", 0)
        busy = client.request(method, path, json={"label": "a"})
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
    assert detail in busy.json()["detail"]
    assert client.request(method, path, json={"label": "a"}).status_code == 200


def test_a_body_that_is_no_json(client):
    answer = client.put("/labels/node1", content=b"{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["title"]) == (422, "Unprocessable Entity")

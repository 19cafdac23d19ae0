"""A new model in the background, and starting from nothing."""

import threading
import time

import numpy as np
import pytest

import lignn
from lignn import Graph
from lignn.classifier import saving
from lignn.errors import ConflictError
from tests.classifier.small import fitted, small_graph, small_split
from tests.serve.conftest import serving

UNKNOWN = [f"node{i}" for i in small_split().test.nonzero().flatten().tolist()]


def wait_for(client, number=1):
    for _ in range(15000):
        status = client.get("/fit").json()
        if status["number"] >= number and status["state"] != "running":
            return status
        time.sleep(0.02)
    raise AssertionError(status)


def test_a_new_model_takes_over_with_what_came_meanwhile(model):
    before = saving.identity(model)
    with serving(model) as (client, service):
        client.put(f"/labels/{UNKNOWN[0]}", json={"label": "b"})
        assert client.put(f"/labels/{UNKNOWN[1]}", json={"label": "new", "new_class": True}).json()["changes"] == 1
        assert client.get(f"/predictions/{UNKNOWN[1]}").json()["given"] == "new"
        assert client.get("/model").json()["new_classes"] == ["new"]
        assert saving.identity(model) == before
        assert client.post("/fit").status_code == 202
        assert client.post("/fit").status_code == 409
        client.put(f"/labels/{UNKNOWN[2]}", json={"label": "c"})
        client.post("/nodes", json={"nodes": [{"id": "later", "features": [0] * 6}]})
        events = client.get("/fit/events").text
        assert wait_for(client)["state"] == "done", wait_for(client)
        assert events.rstrip().splitlines()[-2] == "event: done"
        assert '"epoch":5' in events
        told = client.get("/model").json()
        assert (told["classes"], told["new_classes"], told["replaced"]) == (["a", "b", "c", "new"], [], False)
        assert told["version"] == 5
        labels = [client.get(f"/predictions/{node}").json()["given"] for node in UNKNOWN[:3]]
        assert labels == ["b", "new", "c"]
        assert "new" in client.get("/predictions/later").json()["probabilities"]
        state = service.state
    saved = lignn.load(model)
    assert saved.class_names_ == ("a", "b", "c", "new")
    assert saved.graph_.num_nodes == 90
    with serving(model) as (client, service):
        assert service.engine.skipped == ()
        assert service.state.given_labels() == state.given_labels()
        assert list(service.state.ids) == list(state.ids)


def test_a_training_that_fails_leaves_the_model(model):
    with serving(model) as (client, service):
        service.engine.parameters = {"method": "nonsense"}
        client.post("/fit")
        status = wait_for(client)
        assert status["state"] == "failed"
        assert "'nonsense'" in status["message"]
        assert client.get("/predictions/node1").status_code == 200


def test_a_model_replaced_below_is_not_overwritten(model):
    with serving(model) as (client, _):
        fitted("lpa").save(model)
        theirs = saving.identity(model)
        assert client.get("/model").json()["replaced"] is True
        answer = client.post("/fit")
        assert answer.status_code == 409
        assert "was replaced by another program" in answer.json()["detail"]
        assert client.put(f"/labels/{UNKNOWN[0]}", json={"label": "b"}).status_code == 200
        assert saving.identity(model) == theirs


def test_from_nothing_to_a_model_and_a_new_class(graph_file, training_here):
    y = small_graph().y
    with serving(graph_file) as (client, service):
        service.engine.parameters = {"max_epochs": 3, "hidden": 4}
        assert client.get("/predictions/node1").json()["label"] is None
        first = [row["id"] for row in client.get("/suggestions?k=12").json()["suggestions"]]
        assert len(set(first)) == 12
        refused = client.put("/labels/node0", json={"label": "red"})
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            "class 'red' is new; say new_class=true to make it",
        )
        assert "at least two classes" in client.post("/fit").json()["detail"]
        for node in range(9):
            name = "red" if y[node] == 0 else "blue"
            client.put(f"/labels/node{node}", json={"label": name, "new_class": True})
        assert wait_for(client)["state"] == "done", wait_for(client)
        assert client.get("/predictions/node50").json()["label"] in ("red", "blue")
        for node in (10, 13, 16):
            client.put(f"/labels/node{node}", json={"label": "green", "new_class": True})
        assert wait_for(client, 2)["state"] == "done", wait_for(client, 2)
        assert client.get("/model").json()["classes"] == ["red", "blue", "green"]
    assert (graph_file.parent / "small.model").is_dir()
    with serving(graph_file) as (client, _):
        assert client.get("/predictions/node10").json()["given"] == "green"
        assert client.get("/model").json()["labels"] == 12


def test_a_graph_with_labels_is_fitted_at_once_without_its_test_labels(tmp_path):
    graph = small_graph().replace(splits=(small_split(),))
    graph.write(tmp_path / "labelled.npz")
    with serving(tmp_path / "labelled.npz") as (client, service):
        for _ in range(600):
            if client.get("/fit").json()["number"]:
                break
            time.sleep(0.1)
        assert client.delete("/fit").json()["number"] == 1
        assert set(service.state.given_labels()) == {
            f"node{i}" for i in small_split().train.nonzero().flatten().tolist()
        }


def test_suggestions_without_a_model_spread_over_the_graph(tmp_path):
    """One of each of three cliques comes before a second one of any."""
    clique = [(a, b) for a in range(5) for b in range(5) if a != b]
    edges = np.array([(5 * k + a, 5 * k + b) for k in range(3) for a, b in clique]).T
    Graph(edges, num_nodes=15).write(tmp_path / "cliques.npz")
    with serving(tmp_path / "cliques.npz") as (client, _):
        first = [int(row["id"]) for row in client.get("/suggestions?k=3").json()["suggestions"]]
    assert {node // 5 for node in first} == {0, 1, 2}


def test_the_end_of_the_service_waits_for_the_thread_of_a_training(model):
    with serving(model) as (client, service):
        assert client.post("/fit").status_code == 202
        (thread,) = [each for each in threading.enumerate() if each.name == "lignn-fit"]
    assert not thread.is_alive()
    assert service.training.status.state == "failed"
    with pytest.raises(ConflictError, match="ending"):
        service.training.start()

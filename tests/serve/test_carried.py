"""The service on a graph whose edges carry columns: new payments count at once, and again after a restart."""

import pytest

from tests.classifier.test_carried import M, fitted
from tests.serve.conftest import serving

PAYMENT = {"source": "a0", "target": "a1", "columns": {"amount": 7.5, "day": 900, "kind": "k1"}}


def told(service, node, name):
    graph = service.state.graph
    return graph.columns[name][service.state.number(node)].as_py()


def test_new_payments_count(tmp_path):
    fitted().save(tmp_path / "model")
    with serving(tmp_path / "model") as (client, service):
        assert client.get("/model").json()["graph"]["edge_columns"] == ["amount", "day", "kind"]
        before = told(service, "a0", "edges out")
        assert client.put("/edges", json={"edges": [PAYMENT, PAYMENT]}).status_code == 200
        assert told(service, "a0", "edges out") == before + 2
        assert (told(service, "a0", "amount out: last"), told(service, "a1", "day in: last")) == (7.5, 900)
        new = {"nodes": [{"id": "new"}], "edges": [{**PAYMENT, "target": "new", "columns": {"amount": 1}}]}
        assert client.post("/nodes", json=new).status_code == 200
        assert (told(service, "new", "amount in: sum"), told(service, "new", "day in: last")) == (1, None)
        after = service.state.record(service.state.number("new"))
    with serving(tmp_path / "model") as (_, service):
        assert told(service, "a0", "edges out") == before + 3
        assert service.state.record(service.state.number("new")) == after
        assert service.state.graph.edge_table.ends.shape[1] == M + 3


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ({"source": "a0", "target": "a1"}, "the edges of the graph have columns: give edge_columns for the new edges"),
        (
            {**PAYMENT, "columns": {"amout": 1}},
            "edge_columns: 'amout' is no column of the edges; did you mean 'amount'",
        ),
        ({**PAYMENT, "columns": {"amount": "much"}}, "amount"),
    ],
)
def test_payments_that_do_not_fit_change_nothing(tmp_path, edge, words):
    fitted().save(tmp_path / "model")
    with serving(tmp_path / "model") as (client, service):
        before = service.state.graph
        answer = client.put("/edges", json={"edges": [edge]})
        assert answer.status_code in (400, 409, 422)
        assert words in answer.text
        assert service.state.graph is before

"""The service on a model of one table: new rows join by its rules, and values are no nodes to label."""

from lignn import NodeClassifier
from tests.graph.test_linked import N, linked
from tests.serve.conftest import serving


def test_new_rows_join_by_the_rules_of_the_model(tmp_path):
    NodeClassifier(method="lpa").fit(linked()).save(tmp_path / "model")
    new = {"id": "new", "features": {"card": "c0", "shop": "alone", "amount": 0.5, "day": 3}}
    with serving(tmp_path / "model") as (client, service):
        added = client.post("/nodes", json={"nodes": [new]}).json()
        assert [one["id"] for one in added["predictions"]] == ["new"]
        near = client.get("/graph/new", params={"hops": 1}).json()
        assert {"card=c0", "shop=alone"} <= {node["id"] for node in near["nodes"]}
        ids = [line.split(",")[0].strip('"') for line in client.get("/predictions.csv").text.splitlines()[1:]]
        assert ids == [*map(str, range(N)), "new"]
        assert client.post("/predictions", json={}).json()["total"] == N + 1
        suggested = client.get("/suggestions", params={"k": 5}).json()["suggestions"]
        assert [one["id"] for one in suggested] == ["new"]
        version = service.state.version
        before = service.state.record(service.state.number("new"))
    with serving(tmp_path / "model") as (_, service):
        assert service.state.version == version
        assert service.state.record(service.state.number("new")) == before

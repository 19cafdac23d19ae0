"""Requests drawn from the OpenAPI document: whatever comes in, no answer is a 500."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serve.conftest import serving

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["node1", "a", "0"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "label", "source"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def values(schema: dict[str, Any], parts: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw values of a schema, mostly ones that fit it."""
    if "$ref" in schema:
        return values(parts[schema["$ref"].rsplit("/", 1)[1]], parts)
    if "anyOf" in schema:
        return st.one_of(*(values(one, parts) for one in schema["anyOf"]))
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        fields = {name: values(one, parts) for name, one in schema["properties"].items()}
        required = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(required, optional=fields) | JSON
    if kind == "object":
        return st.dictionaries(st.sampled_from(["0", "1", "nine"]), st.floats(), max_size=6)
    if kind == "array":
        return st.lists(values(schema["items"], parts), max_size=6)
    plain = {
        "string": st.sampled_from(["node1", "node2", "new", "a", "b"]) | st.text(max_size=600),
        "integer": st.integers(-2, 12) | st.integers(),
        "number": st.floats() | st.integers(-(10**400), 10**400),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return plain.get(kind, JSON)


@pytest.fixture(scope="module")
def service(original, tmp_path_factory):
    import shutil

    folder = shutil.copytree(original, tmp_path_factory.mktemp("openapi") / "model")
    with serving(folder) as found:
        yield found


OPERATIONS = [
    ("/predictions/{node_id}", "get"), ("/predictions.{ending}", "get"), ("/predictions", "post"),
    ("/labels/{node_id}", "put"), ("/labels/{node_id}", "delete"), ("/labels", "post"), ("/labels", "get"),
    ("/labels.csv", "get"), ("/nodes", "post"), ("/nodes/{node_id}", "delete"), ("/nodes/{node_id}", "patch"),
    ("/edges", "put"), ("/edges", "delete"), ("/explanations/{node_id}", "get"), ("/suggestions", "get"),
    ("/graph/{node_id}", "get"), ("/diagnosis", "get"), ("/model", "get"), ("/fit", "get"), ("/fit", "post"),
    ("/fit", "delete"), ("/fit/events", "get"), ("/health", "get"),
]  # fmt: skip


def test_all_operations_are_in_the_document(service):
    document = service[0].get("/openapi.json").json()
    found = {(path.replace(":path", ""), method) for path, one in document["paths"].items() for method in one}
    assert found == set(OPERATIONS)
    assert "example" in json.dumps(document["components"]["schemas"]["PredictionOut"])


@pytest.mark.parametrize(
    ("path", "method"), [one for one in OPERATIONS if one not in {("/fit", "post"), ("/diagnosis", "get")}]
)
def test_no_request_breaks_the_service(service, path, method):
    client, _ = service
    document = client.get("/openapi.json").json()
    parts = document["components"]["schemas"]
    operation = document["paths"][path][method]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    query = {p["name"]: values(p["schema"], parts) for p in operation.get("parameters", ()) if p["in"] == "query"}
    node = st.sampled_from(["node1", "node2", "new"]) | st.text(max_size=20)

    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def probe(data: st.DataObject) -> None:
        address = path.replace("{node_id}", quote(data.draw(node).encode("utf-8", "replace"), safe=""))
        address = address.replace("{ending}", data.draw(st.sampled_from(["csv", "parquet", "exe"])))
        told = data.draw(st.fixed_dictionaries({}, optional=query)) if query else {}
        params = {key: str(value) for key, value in told.items() if str(value).isprintable()}
        content = None
        if body is not None:
            content = json.dumps(data.draw(values(body, parts) | JSON))
        headers = {"Content-Type": "application/json"}
        answer = client.request(method.upper(), address, params=params, content=content, headers=headers)
        assert answer.status_code < 500, (address, params, content, answer.text)
        media = answer.headers["content-type"].partition(";")[0]
        if answer.status_code >= 400:
            assert media == "application/problem+json"
        assert media in operation["responses"][str(answer.status_code)]["content"]

    probe()

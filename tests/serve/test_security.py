"""Who may ask, and how much."""

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.request

import pytest
import uvicorn
from starlette.testclient import TestClient

from lignn.datasets.sources import Source
from lignn.errors import InputError
from lignn.serve import running, security
from lignn.serve.app import application
from lignn.serve.engine import Engine
from lignn.serve.opening import Place
from lignn.serve.security import Policy, read_token
from lignn.serve.service import Service
from tests.serve.conftest import serving

TOKEN = "a-token-of-enough-characters"


def test_other_addresses_need_a_token():
    with pytest.raises(
        InputError, match=r"--host 0.0.0.0: other machines can reach this address, so a token is needed"
    ):
        Policy("0.0.0.0")
    Policy("0.0.0.0", TOKEN)
    for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3"):
        Policy(host)


def test_tokens_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("LIGNN_TOKEN", raising=False)
    assert read_token(None) is None
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert read_token(tmp_path / "token") == TOKEN
    monkeypatch.setenv("LIGNN_TOKEN", TOKEN)
    assert read_token(None) == TOKEN
    (tmp_path / "token").write_text("short\n")
    with pytest.raises(InputError, match="at least 16 ASCII characters"):
        read_token(tmp_path / "token")
    with pytest.raises(InputError, match="cannot be read"):
        read_token(tmp_path / "nowhere")


@pytest.fixture(scope="module")
def guarded(original, tmp_path_factory):
    folder = shutil.copytree(original, tmp_path_factory.mktemp("guarded") / "model")
    with serving(folder, token=TOKEN) as (client, _):
        yield client


def test_a_token_is_asked_for(guarded):
    answer = guarded.get("/model")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    for wrong in ("Bearer x", "Bearer", "Basic " + TOKEN, f"Bearer {TOKEN}x"):
        assert guarded.get("/model", headers={"Authorization": wrong}).status_code == 401
    assert guarded.get("/model", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert guarded.get("/health").status_code == 200
    assert guarded.get("/metrics").status_code == 401
    page = guarded.get("/", headers={"Accept": "text/html"}, follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/login")


def test_a_person_logs_in_by_a_form(guarded):
    assert "This is not the token" in guarded.post("/login", data={"token": "x"}).text
    answer = guarded.post("/login", data={"token": TOKEN}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 303
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert guarded.get("/model").status_code == 200
    guarded.cookies.clear()
    assert guarded.get("/model", headers={"Cookie": f"{security.COOKIE}=0"}).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost:8800"}, 200),
        ({"Host": "[::1]:8800"}, 200),
        ({"Origin": "http://evil.example"}, 200),
    ],
)
def test_hosts_are_checked_for_every_request(client, headers, status):
    assert client.get("/model", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_a_page_elsewhere_cannot_change_anything(client, headers, status):
    assert client.put("/labels/node1", json={"label": "a"}, headers=headers).status_code == status


def test_bodies_are_limited(client, monkeypatch):
    json = {"Content-Type": "application/json"}
    deep = client.post("/labels", content=b'{"labels":' + b"[" * 40 + b"]" * 40 + b"}", headers=json)
    assert (deep.status_code, deep.json()["detail"]) == (413, "a body may be nested at most 32 deep")
    brackets = client.put("/labels/node1", json={"label": "[" * 60})
    assert brackets.status_code == 422
    assert "was not there in training" in brackets.json()["detail"]
    monkeypatch.setattr(security, "MOST_BYTES", 100)
    large = client.post("/predictions", json={"ids": ["node1"] * 100})
    assert (large.status_code, large.json()["detail"]) == (413, "a body may have at most 100 bytes")

    def pieces():
        for _ in range(20):
            yield b" " * 20

    assert client.post("/predictions", content=pieces(), headers=json).status_code == 413


def test_read_only(model):
    edge = {"source": "node0", "target": "node1"}
    body = {"labels": {"label": "a"}, "nodes": {"features": {}}, "edges": {"edges": [edge]}, "fit": None}
    with serving(model, read_only=True) as (client, _):
        for method, path in (
            ("PUT", "/labels/node1"),
            ("DELETE", "/labels/node1"),
            ("POST", "/labels"),
            ("DELETE", "/nodes/node1"),
            ("PATCH", "/nodes/node1"),
            ("PUT", "/edges"),
            ("DELETE", "/edges"),
            ("POST", "/fit"),
            ("DELETE", "/fit"),
        ):
            answer = client.request(method, path, json=body[path.split("/")[1]])
            assert (answer.status_code, "read-only" in answer.json()["detail"]) == (403, True), path
        node = {"nodes": [{"id": "n", "features": [0] * 6}]}
        assert client.post("/nodes", json=node).status_code == 403
        assert client.post("/nodes?dry_run=true", json=node).status_code == 200
        assert client.get("/labels").json()["version"] == 0


def test_while_starting_the_service_says_so(model, monkeypatch):
    go, real = threading.Event(), Engine.open
    monkeypatch.setattr(Engine, "open", lambda engine: (go.wait(60), real(engine)))
    service = Service(Place.of(str(model), Source(str(model)), None, None), Policy())
    with TestClient(application(service), base_url="http://127.0.0.1") as client:
        answer = client.get("/predictions/node1")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert client.get("/health").json() == {"status": "starting"}
        go.set()
        service.engine.opened.wait(60)
        assert client.get("/predictions/node1").status_code == 200


def test_a_page_elsewhere_cannot_open_a_socket(client):
    from starlette.websockets import WebSocketDisconnect

    with (
        pytest.raises(WebSocketDisconnect) as refused,
        client.websocket_connect("/socket", headers={"Origin": "http://evil.example"}),
    ):
        pass
    assert refused.value.code == 1008


def test_a_body_may_not_take_for_ever(monkeypatch):
    async def never():
        await asyncio.sleep(60)

    async def refused():
        with pytest.raises(security._RefusedError) as error:
            await security._with_body(never)
        return error.value.status

    monkeypatch.setattr(security, "BODY_SECONDS", 0.01)
    assert asyncio.run(refused()) == 408


@pytest.mark.skipif(shutil.which("openssl") is None, reason="install openssl, which makes a certificate")
def test_https_by_files(model, tmp_path):
    """A client that trusts the certificate gets answers; others, and plain HTTP, get none."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=lignn -addext subjectAltName=IP:127.0.0.1"
    subprocess.run([*command.split(), "-out", certificate, "-keyout", key], check=True, capture_output=True)
    service = Service(Place.of(str(model), Source(str(model)), None, None), Policy())
    server = uvicorn.Server(running.config(application(service), (certificate, key)))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        service.engine.opened.wait(60)
        address = f"https://127.0.0.1:{listening.getsockname()[1]}/health"
        trusting = ssl.create_default_context(cafile=certificate)
        with urllib.request.urlopen(address, timeout=30, context=trusting) as answer:
            assert json.loads(answer.read()) == {"status": "ok", "version": 0}
        for other in (address, address.replace("https", "http")):
            with pytest.raises(OSError):
                urllib.request.urlopen(other, timeout=30)
    finally:
        server.should_exit = True
        thread.join(60)

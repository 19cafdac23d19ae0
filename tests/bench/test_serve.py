"""The client of `lignn bench serve`."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import pytest

from lignn.bench.serve import Connection


class Impatient(BaseHTTPRequestHandler):
    """Closes connections that are idle for a moment."""

    protocol_version, timeout = "HTTP/1.1", 0.05

    def do_GET(self):
        body = b"here"
        self.send_response(404 if self.path == "/nowhere" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Impatient)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_connection_that_was_closed_while_idle_is_opened_again(address):
    connection = Connection(address)
    assert connection.ask("GET", "/") == b"here"
    sleep(0.3)
    assert connection.ask("GET", "/") == b"here"
    connection.close()


def test_an_error_is_no_measurement(address):
    connection = Connection(address)
    with pytest.raises(RuntimeError, match="404"):
        connection.ask("GET", "/nowhere")
    connection.close()

"""Writers, readers and sudden ends: `python -m tests.serve.soak`, or a short form in the tests.

`kill`: four writers label nodes, the service is killed at random moments and started again. Every label that was
answered must be there, none twice. `load`: many clients with mixed calls; no error, memory flat, and the times.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.classifier.small import fitted, small_graph
from tests.serve import browser

CLASSES = "abc"


def call(method: str, address: str, body: Any = None, who: str = "soak") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Lignn-User": who}
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


class Writer(threading.Thread):
    """Labels its own nodes over and over; keeps the last label that was answered, and those asked for since."""

    def __init__(self, number: int) -> None:
        super().__init__(daemon=True)
        self.nodes = [f"node{i}" for i in range(90) if i % 4 == number]
        self.address, self.ended = "", threading.Event()
        self.answered: dict[str, str] = {}
        self.asked: dict[str, set[str]] = {}
        self.count, self._draw = 0, random.Random(number)

    def run(self) -> None:
        while not self.ended.is_set():
            node, label = self._draw.choice(self.nodes), self._draw.choice(CLASSES)
            self.asked.setdefault(node, set()).add(label)
            try:
                call("PUT", f"{self.address}/labels/{node}", {"label": label}, self.name)
            except (OSError, http.client.HTTPException):  # also an answer that was cut off
                self.ended.wait(0.05)
                continue
            self.answered[node] = label
            self.asked.pop(node)
            self.count += 1


def kill(folder: Path, times: int, seconds: float, seed: int = 0) -> dict[str, int]:
    """Kill the service `times` times under four writers; return how many labels were answered and written."""
    model, draw = folder / "model", random.Random(seed)
    fitted("lpa").save(model)
    journal = folder / "model.journal.sqlite"
    writers = [Writer(number) for number in range(4)]
    for turn in range(times):
        with browser.service(str(model), "--no-page") as (address, process):
            _check(address, writers)
            for writer in writers:
                writer.address = address
                if turn == 0:
                    writer.start()
            time.sleep(draw.uniform(0.1, seconds))
            process.kill()
    with browser.service(str(model), "--no-page") as (address, _):
        for writer in writers:
            writer.ended.set()
            writer.join(60)
        _check(address, writers)
    rows = sqlite3.connect(journal).execute("SELECT key, old, new FROM changes ORDER BY seq").fetchall()
    last: dict[str, str] = {}
    for key, old, new in rows:
        assert json.loads(old) != json.loads(new), "a label was written twice"
        assert key not in last or last[key] == old, "a change is missing"
        last[key] = new
    return {"kills": times, "answered": sum(writer.count for writer in writers), "rows": len(rows)}


def _check(address: str, writers: list[Writer]) -> None:
    """Every answered label is there, unless a later one of the same node was on its way."""
    rows = call("POST", f"{address}/predictions", {})["predictions"]
    given = {row["id"]: row["given"] for row in rows}
    for writer in writers:
        for node, label in writer.answered.items():
            assert given[node] in {label, *writer.asked.get(node, ())}, (node, given[node], label)
            writer.answered[node] = given[node]


def load(folder: Path, clients: int, seconds: float) -> dict[str, float]:
    """Let many clients make mixed calls; return counts, times and the growth of memory."""
    fitted("lpa").save(folder / "model")
    times: list[float] = []
    errors: list[str] = []
    end = threading.Event()

    def work(number: int, address: str) -> None:
        draw = random.Random(number)
        while not end.is_set():
            node = f"node{draw.randrange(90)}"
            kind = draw.random()
            start = time.perf_counter()
            try:
                if kind < 0.2:
                    call("PUT", f"{address}/labels/{node}", {"label": draw.choice(CLASSES)})
                elif kind < 0.3:
                    call("POST", f"{address}/predictions", {"limit": 50})
                elif kind < 0.4:
                    call("GET", f"{address}/graph/{node}?hops=2")
                elif kind < 0.5:
                    call("GET", f"{address}/labels?limit=20")
                else:
                    call("GET", f"{address}/predictions/{node}")
            except (OSError, urllib.error.HTTPError) as error:
                errors.append(str(error))
            times.append(time.perf_counter() - start)

    with browser.service(str(folder / "model"), "--no-page") as (address, process):
        threads = [threading.Thread(target=work, args=(i, address), daemon=True) for i in range(clients)]
        for thread in threads:
            thread.start()
        end.wait(seconds / 2)
        half = _memory(process.pid)
        end.wait(seconds / 2)
        whole = _memory(process.pid)
        end.set()
        for thread in threads:
            thread.join(60)
    quantiles = statistics.quantiles(times, n=100)
    return {
        "calls": len(times),
        "errors": len(errors),
        "p50": quantiles[49],
        "p99": quantiles[98],
        "memory_growth": whole / half - 1,
    }


def _memory(process: int) -> int:
    """Return the resident memory of a process in pages."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=50)
    arguments = parser.parse_args()
    assert small_graph().num_nodes == 90
    for found in (
        lambda folder: kill(folder, arguments.kills, 1.0),
        lambda folder: load(folder, arguments.clients, arguments.seconds),
    ):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(found(Path(folder))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

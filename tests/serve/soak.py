"""Writers, readers, failures and sudden ends: `python -m tests.serve.soak`, or a short form in the tests.

`kill`: four writers label nodes, the service is killed at random moments and started again. Every label that was
answered must be there, none twice. `load`: many clients with mixed calls; no error, memory flat, and the times.
`failures`: a disk that takes no more, a locked journal, a model that is replaced: each is told, the service goes on.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import resource
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lignn.bench import timing
from lignn.bench.timing import Record, Timing, record
from tests.classifier.small import fitted, small_graph
from tests.serve import browser

CLASSES = "abc"
MOST_GROWTH = 0.05
"""Of memory, in the second half of the load."""


def call(method: str, address: str, body: Any = None, who: str = "soak") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Lignn-User": who}
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


@dataclass(frozen=True)
class Started:
    """A running service.

    Attributes:
        model: folder of its model.
        address: where it is.
        process: number of its process.
    """

    model: Path
    address: str
    process: int


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
    with closing(sqlite3.connect(journal)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = database.execute("SELECT key, old, new FROM changes ORDER BY seq").fetchall()
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


def refusal(method: str, address: str, body: Any = None) -> tuple[int, str]:
    """Return status and sentence of a request that must be refused."""
    try:
        call(method, address, body)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["detail"]
    raise AssertionError(f"{method} {address} was not refused")


@contextmanager
def started(folder: Path) -> Iterator[Started]:
    """Start a service of a small model."""
    fitted("lpa").save(folder / "model")
    with browser.service(str(folder / "model"), "--no-page") as (address, process):
        yield Started(folder / "model", address, process.pid)


def failures(service: Started) -> dict[str, str]:
    """Let the journal and the model fail below a service; return what it said."""
    address, path, told = service.address, f"{service.address}/labels/node1", {}
    call("PUT", path, {"label": "c"})
    call("PUT", path, {"label": "a"})
    told["disk"] = _with_full_disk(service.process, path)
    told["lock"] = _with_lock(service.model.with_name("model.journal.sqlite"), path)
    fitted("lpa", graph=small_graph().replace(class_names=("a", "b", "d"))).save(service.model)
    assert call("GET", f"{address}/model")["replaced"] is True
    status, told["model"] = refusal("POST", f"{address}/fit")
    assert status == 409, told
    assert call("PUT", path, {"label": "c"})["changes"] == 1
    return told


def _with_full_disk(process: int, path: str) -> str:
    """Forbid the service to write files: each write to the journal fails, as on a full disk."""
    free = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (0, free[1]))
    try:
        status, detail = refusal("PUT", path, {"label": "b"})
        assert status == 503, detail
        assert call("GET", path.replace("labels", "predictions"))["given"] == "a"
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, free)
    assert call("PUT", path, {"label": "b"})["changes"] == 1
    return detail


def _with_lock(journal: Path, path: str) -> str:
    """Hold the journal for longer than the service waits."""
    with closing(sqlite3.connect(journal, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        status, detail = refusal("PUT", path, {"label": "a"})
        assert status == 503, detail
        assert call("GET", path.replace("labels", "predictions"))["given"] == "b"
        other.execute("ROLLBACK")
    assert call("PUT", path, {"label": "a"})["changes"] == 1
    return detail


def calls(number: int, draw: random.Random) -> dict[str, list[tuple[str, str, Any]]]:
    """Return one call, or a few that belong together, of each kind; their number says how often it is made."""
    node, other, label = f"node{draw.randrange(90)}", f"node{draw.randrange(90)}", draw.choice(CLASSES)
    mine = {"nodes": [{"id": f"client{number}", "features": [0.5] * 6}]}
    mine |= {"edges": [{"source": f"client{number}", "target": node}]}
    features = {"features": {str(draw.randrange(6)): draw.random()}}
    many = {"labels": [{"id": f"node{draw.randrange(90)}", "label": label} for _ in range(5)]}
    return {
        "predict 50": [("GET", f"/predictions/{node}", None)],
        "label 18": [("PUT", f"/labels/{node}", {"label": label})],
        "labels 4": [("POST", "/labels", many)],
        "page 8": [("POST", "/predictions", {"limit": 50})],
        "graph 6": [("GET", f"/graph/{node}?hops=2", None)],
        "history 4": [("GET", "/labels?limit=20", None)],
        "explain 4": [("GET", f"/explanations/{node}", None)],
        "suggest 2": [("GET", "/suggestions?k=5", None)],
        "try 2": [("POST", "/nodes?dry_run=true", mine)],
        "node 1": [("POST", "/nodes", mine), ("DELETE", f"/nodes/client{number}", None)],
        "features 1": [("PATCH", f"/nodes/{other}", features)],
    }


def load(service: Started, clients: int, seconds: float) -> dict[str, Any]:
    """Let many clients make mixed calls; return times by kind, errors, and the growth of memory in the second half."""
    times: dict[str, list[float]] = {}
    errors: list[str] = []
    end = threading.Event()

    def work(number: int) -> None:
        draw = random.Random(number)
        while not end.is_set():
            kinds = calls(number, draw)
            kind = draw.choices(list(kinds), [int(name.split()[1]) for name in kinds])[0]
            for method, path, body in kinds[kind]:
                start = time.perf_counter()
                try:
                    call(method, service.address + path, body)
                except (OSError, http.client.HTTPException) as error:
                    errors.append(f"{method} {path}: {error!r}")
                times.setdefault(kind.split()[0], []).append(time.perf_counter() - start)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(clients)]
    for thread in threads:
        thread.start()
    end.wait(seconds / 2)
    half = _memory(service.process)
    end.wait(seconds / 2)
    whole = _memory(service.process)
    end.set()
    for thread in threads:
        thread.join(60)
    return {"times": times, "errors": errors, "growth": whole / half - 1}


def _memory(process: int) -> int:
    """Return the resident memory of a process in pages."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1])


def records(kills: int, clients: int, seconds: float) -> Iterator[Record]:
    """Run all parts; yield their records."""
    config = {"kills": kills, "clients": clients, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        yield record("killed under 4 writers", "lignn serve", config, **kill(Path(folder), kills, 1.0))
    with tempfile.TemporaryDirectory() as folder, started(Path(folder)) as service:
        found, told = load(service, clients, seconds), failures(service)
    yield record("full disk, locked journal, replaced model", "lignn serve", config, told=told, failures=len(told))
    times: dict[str, list[float]] = found["times"]
    for kind, each in sorted(times.items()):
        timing = Timing(tuple(each))
        figures = timing.figures(timing) | {"p99": float(np.quantile(each, 0.99)), "calls": len(each)}
        yield record(f"{clients} clients: {kind}", "lignn serve", config, **figures)
    whole = {name: found[name] for name in ("errors", "growth")}
    yield record(f"{clients} clients, {seconds:g} s", "lignn serve", config, **whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--record", type=Path, help="a .jsonl file for the records")
    options = parser.parse_args()
    made = []
    for one in records(options.kills, options.clients, options.seconds):
        made.append({"suite": "soak", "quick": False} | one)
        print(json.dumps(made[-1], ensure_ascii=False), flush=True)  # noqa: T201
    if options.record is not None:
        timing.write(made, options.record)
    if made[-1]["errors"] or made[-1]["growth"] > MOST_GROWTH:
        sys.exit(f"{len(made[-1]['errors'])} errors; memory grew by {made[-1]['growth']:.0%} in the second half")


if __name__ == "__main__":
    main()

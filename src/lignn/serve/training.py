"""A new model in the background: trained by a child process with the labels so far, then taken over at once.

The old model serves until then, and goes on if training fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from lignn.classifier import load, saving, scoring
from lignn.classifier.draft import Draft
from lignn.errors import ConflictError, InputError, LignnError
from lignn.graph import Graph, Split
from lignn.serve.engine import Engine
from lignn.serve.opening import with_ids
from lignn.serve.state import State

FEWEST = 3
"""Labels that a class needs for a first model, or for one that knows it, to be made without being asked."""


@dataclass(frozen=True)
class Status:
    """How far training is.

    Attributes:
        state: what it is doing.
        epoch: number of epochs so far.
        epochs: most that it may take.
        score: validation score of the last epoch, if labels are held back.
        message: why it ended, in one sentence.
        number: how many times training was started.
        version: version of the state that the labels are from.
    """

    state: Literal["idle", "running", "done", "failed"] = "idle"
    epoch: int = 0
    epochs: int = 0
    score: float | None = None
    message: str = ""
    number: int = 0
    version: int = 0

    def record(self) -> dict[str, Any]:
        """Return the status as JSON has it."""
        return asdict(self)


class Training:
    """Training in the background, at most one at a time.

    Args:
        engine: whose labels to learn from, and who takes the model over.
    """

    def __init__(self, engine: Engine) -> None:
        self.status = Status()
        self._engine, self._lock = engine, threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._stopped = self._closed = False
        self._tried = 0

    def start(self) -> Status:
        """Begin to train; raise if it is training already, or cannot."""
        with self._lock:
            if self.status.state == "running":
                raise ConflictError("training is under way already; wait until it is done, or DELETE /fit")
            if self._closed:
                raise ConflictError("the service is ending")
            state = self._engine.state
            graph, split = training_data(state)
            self._check_folder()
            number, self._stopped = self.status.number + 1, False
            self.status = Status("running", number=number, version=state.version, message="training has begun")
            self._thread = threading.Thread(target=self._run, args=(state, graph, split), name="lignn-fit", daemon=True)
            self._thread.start()
            return self.status

    def start_if_due(self) -> None:
        """Begin to train if there are labels enough for a first model, or of a class that the model does not know."""
        state = self._engine.state
        if self.status.state != "running" and len(state.waiting) > self._tried and is_due(state):
            self._tried = len(state.waiting)
            try:
                self.start()
            except LignnError as error:  # nobody has asked for it, so the status tells it
                self.status = replace(self.status, state="failed", message=str(error))

    def stop(self) -> None:
        """End training; the old model stays."""
        self._stopped, child = True, self._child
        if child is not None:
            child.terminate()

    def close(self) -> None:
        """End training, and wait for its thread: one in the middle of a file ends the whole process by an abort."""
        with self._lock:
            self._closed = True
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _check_folder(self) -> None:
        if self._engine.place.identity() != self._engine.identity:
            raise ConflictError(
                f"{self._engine.place.folder}: the model was replaced by another program since the service began; "
                "start the service again to use that one"
            )

    def _run(self, state: State, graph: Graph, split: Split | None) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="lignn-fit-") as folder:
                self._train(Path(folder), graph, split)
                self._take_over(Path(folder) / "model", state.version)
        except (LignnError, OSError) as error:
            self.status = replace(self.status, state="failed", message=str(error))
        else:
            self._tried = 0
            self.status = replace(self.status, state="done", message="the new model has taken over")

    def _train(self, folder: Path, graph: Graph, split: Split | None) -> None:
        graph.replace(splits=() if split is None else (split,)).write(folder / "graph.npz")
        (folder / "parameters.json").write_text(json.dumps(dict(self._engine.parameters)), encoding="utf-8")
        self._run_child(folder)

    def _run_child(self, folder: Path) -> None:
        """Train in a child process, which cannot harm this one."""
        command = [sys.executable, "-m", "lignn.serve.child", str(folder)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=environment) as child:
            self._child = child
            if self._stopped:  # before there was a child
                child.terminate()
            assert child.stdout is not None
            failure = ""
            for line in child.stdout:
                told = json.loads(line)
                failure = told.pop("error", "")
                self.status = replace(self.status, **told)
        self._child = None
        if child.returncode:
            raise LignnError(failure or f"training was ended before it was done (exit code {child.returncode})")

    def _take_over(self, model: Path, version: int) -> None:
        """Save the new model in place of the old one, and let the engine take it."""
        engine = self._engine
        fitted = with_ids(load(model)._fitted)
        self._check_folder()
        file = saving.settings_file(engine.place.folder)
        saving.write(engine.place.folder, fitted, file.read_text(encoding="utf-8") if file.is_file() else None)
        identity = engine.place.identity()
        assert identity is not None
        state, taken = State.of(Draft.of(fitted), fitted, {}, version), Future[None]()

        def take() -> None:
            try:
                engine.take_model(state, identity, version)
            except Exception as error:
                taken.set_exception(error)
            else:
                taken.set_result(None)

        engine.call(take)
        taken.result()


def is_due(state: State) -> bool:
    """Return whether a new model should be made without being asked."""
    enough = [name for name, count in state.new_classes.items() if count >= FEWEST]
    return len(enough) >= (1 if state.fitted else 2)


def training_data(state: State) -> tuple[Graph, Split | None]:
    """Return the graph with the labels by now, and a split that holds back what the model's own did.

    Labels of test nodes are not in it, except those that were given since.
    """
    names = state.class_names
    multilabel = state.classes.multilabel
    n = state.graph.num_nodes
    y = torch.full((n, len(names)) if multilabel else (n,), -1, dtype=torch.int8 if multilabel else torch.int64)
    split = None
    if state.fitted is not None:
        truth, known = scoring.labels_by_now(state.fitted), state.draft.labels.mask
        assert truth.y is not None
        waiting = torch.zeros(n, dtype=torch.bool)
        waiting[[state.numbers[node] for node in state.waiting]] = True
        held_back = state.draft.split.val & truth.labelled & ~known & ~waiting
        used = known | held_back
        if multilabel:
            y[used] = 0
            y[used, : truth.y.shape[1]] = truth.y[used].to(torch.int8)
        else:
            y[used] = truth.y[used]
        split = Split(known | waiting, held_back, ~(used | waiting)) if held_back.any() else None
    for node, label in state.waiting.items():
        chosen = [names.index(name) for name in ([label] if isinstance(label, str) else label)]
        row = torch.zeros(len(names), dtype=torch.int8)
        row[chosen] = 1
        y[state.numbers[node]] = row if multilabel else chosen[0]
    present = y[(y if y.ndim == 1 else y[:, 0]) >= 0]
    if not multilabel and len(present.unique()) < 2:
        raise InputError("labels of at least two classes are needed before a model can be trained")
    return state.graph.replace(y=y, class_names=names, splits=()), split

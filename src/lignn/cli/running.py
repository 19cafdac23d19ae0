"""A training run on the disk: where its model will be, and what an interrupted one leaves to go on from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lignn.cli import config
from lignn.declarations import PARAMETERS
from lignn.errors import ConfigError, InputError

if TYPE_CHECKING:
    from lignn.classifier import NodeClassifier
    from lignn.graph import Graph

_GRAPH = "graph"
"""Beside an unfinished model's settings: the fingerprint of the graph that it is trained on."""


@dataclass(frozen=True)
class Running:
    """The files of a run: the folder of its model; beside it, until it is done, `MODEL.checkpoint` and its settings."""

    model: Path

    def __post_init__(self) -> None:
        if not self.model.name:
            raise InputError(f"-o {self.model}: a model needs a folder of its own; give it a name")

    @property
    def checkpoint(self) -> Path:
        """The training as far as it is."""
        return self.model.with_name(f"{self.model.name}.checkpoint")

    @property
    def _unfinished(self) -> Path:
        """The settings of a model that is not done."""
        return self.model.with_name(f"{self.model.name}.checkpoint.toml")

    @contextmanager
    def alone(self, first: bool = True) -> Iterator[None]:
        """Refuse a second run for the same model at the same time: it would remove the files of the first.

        Of several processes, the `first` one writes all files.
        """
        from lignn.atomic import locked

        self._check_places()
        if not first:
            yield
            return
        busy = f"{self.model}: another lignn fit is making this model; wait until it is done, or choose another name"
        with locked(self.model.with_name(f".{self.model.name}.fit.lock"), busy):
            yield

    def save(
        self,
        classifier: NodeClassifier,
        settings: dict[str, Any],
        graph: bool = True,
    ) -> None:
        """Save a model together with its resolved settings, with or without its graph."""
        from lignn.classifier import saving

        heading = f"settings of {self.model.name}, for lignn fit --config"
        saving.write(self.model, classifier._fitted, config.text(settings, heading), graph)

    @property
    def begun(self) -> dict[str, Any]:
        """The settings of the interrupted run; empty if there is none."""
        return self._read_unfinished() if self._unfinished.exists() else {}

    def fresh(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of a new run; an interrupted one is not overwritten."""
        if self.checkpoint.exists():
            raise InputError(f"{self.checkpoint}: an interrupted run; add --resume, or delete the file to start over")
        return given

    def resumed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the interrupted run, which cannot change any more."""
        if not self.checkpoint.exists():
            raise InputError(f"{self.checkpoint}: there is no interrupted run to resume; leave --resume out")
        before = self._read_unfinished()
        before.pop(_GRAPH, None)
        for name, value in given.items():
            if before.get(name) != value:
                raise ConfigError(f"--resume: {name} was {before.get(name)!r} and cannot become {value!r} in mid-run")
        return before

    def _check_places(self) -> None:
        """Refuse, before training, what could not be written after it."""
        from lignn.atomic import check_file, check_place
        from lignn.classifier import saving

        check_place(self.model)
        saving.check(self.model)
        check_file(self.checkpoint)

    def _read_unfinished(self) -> dict[str, Any]:
        return config.read(self._unfinished, [*PARAMETERS, _GRAPH])

    @contextmanager
    def kept(self, settings: dict[str, Any], graph: Graph, first: bool = True) -> Iterator[None]:
        """Keep the settings while the body trains and saves; at its end, remove what is only needed to resume."""
        fingerprint = graph.fingerprint()
        if not (self.checkpoint.exists() or first):
            yield
            return
        if not self.checkpoint.exists():
            heading = f"settings of the unfinished {self.model.name}, for --resume"
            config.write(self._unfinished, settings | {_GRAPH: fingerprint}, heading)
        elif self._read_unfinished().get(_GRAPH, fingerprint) != fingerprint:
            raise InputError(
                f"--resume: {graph.name} is not the graph of the interrupted run, or not as it was; give that one "
                f"(with the same --undirected, --missing, --column …), or delete {self.checkpoint} to start over"
            )
        try:
            yield
            if first:
                self.checkpoint.unlink(missing_ok=True)
        finally:
            if first and not self.checkpoint.exists():
                self._unfinished.unlink(missing_ok=True)

"""A search for better settings by validation score, with Optuna: TPE proposes, successive halving prunes.

The results so far are in a file, from which an interrupted search goes on.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from lignn.classifier.spec import Spec
from lignn.datasets.sources import Source
from lignn.declarations import DEFAULT_METHOD, METHODS, METHODS_WITH, METRICS, OF_NETWORK, PARAMETERS, Range
from lignn.errors import ConfigError, InputError
from lignn.evaluation import compare
from lignn.evaluation.compare import Result, SplitCase
from lignn.graph import archive
from lignn.methods.registry import over_rows
from lignn.runs import experiment

if TYPE_CHECKING:
    import optuna

    _Alive = tuple[optuna.Trial, dict[str, Any], list[dict[str, float]]]
    """A trial, its settings, and its results so far."""

SPACE = {name: parameter.search for name, parameter in PARAMETERS.items() if parameter.search}
"""What is searched of the options that matter most: a range, or values."""
_BATCH = 4
"""Trials that are proposed at once, whatever the number of processes: the result depends on the seed alone."""
_PRESET = "preset"
"""Where a study keeps the results of the preset."""
_DIGITS = 3
_FEWEST = 4
"""The fewest whole trials that say what mattered."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and what they gave on average over the splits.

    Attributes:
        settings: the settings; empty for the preset.
        val: validation score, as tables show it: what trials are chosen by.
        test: test score, to check the choice with, never to choose by.
        seconds: time of a run.
        runs: number of splits that they were tried on; a pruned trial has fewer than others.
    """

    settings: Mapping[str, Any]
    val: float
    test: float
    seconds: float
    runs: int

    @classmethod
    def of(cls, settings: Mapping[str, Any], results: Sequence[Mapping[str, float]], factor: int) -> Trial:
        """Average the results of these settings."""
        val, test, seconds = (mean(one[name] for one in results) for name in ("val", "test", "seconds"))
        return cls(settings, factor * val, factor * test, seconds, len(results))


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        trials: those on all splits by validation score, the best first, then the pruned ones.
        importance: share of the variance of the scores that each setting explains (fANOVA); empty for too few trials.
        metric: name of the metric.
    """

    trials: tuple[Trial, ...]
    importance: Mapping[str, float]
    metric: str

    @property
    def preset(self) -> Trial:
        """The trial without any settings."""
        return next(trial for trial in self.trials if not trial.settings)


def space(parameters: Mapping[str, Any]) -> dict[str, Range | tuple[Any, ...]]:
    """Return what is searched for a method; what is given is not."""
    method = parameters.get("method", DEFAULT_METHOD)
    base = (parameters.get("method_options") or {}).get("base")
    if method in METHODS and (METHODS[method].network in ("none", "rows") or over_rows(method, base)):
        name = f"{method} over {base}" if over_rows(method, base) else method
        raise ConfigError(f"{name} has nothing to train and nothing to tune; choose another method")
    preset = Spec.resolve(parameters)
    has = {name for name in SPACE if method in METHODS_WITH[name]} - set(OF_NETWORK) | set(preset.network())
    free = {name: values for name, values in SPACE.items() if name in has and name not in parameters}
    if not free:
        raise ConfigError("all settings that could be searched are given; leave some of them out")
    return free


def tune(
    source: Source,
    parameters: Mapping[str, Any],
    trials: int = 20,
    runs: int = 3,
    jobs: int = 1,
    timeout: float | None = None,
    storage: Path | None = None,
    report: Callable[[Result], None] = lambda _: None,
    on: str | None = None,
) -> Tuned:
    """Search until there are `trials` trials, or the time is over; all of them see the same splits.

    Args:
        source: of the graph.
        parameters: of `NodeClassifier`; those that are given are not searched.
        trials: number of settings to try, with those of the preset.
        runs: number of splits for each of them; worse ones are pruned after fewer.
        jobs: number of processes.
        timeout: seconds after which no result is waited for.
        storage: file of the results so far; if it is there, the search goes on from it.
        report: called after every run.
        on: address of the Ray cluster to run on; None: this machine.
    """
    until = None if timeout is None else time.monotonic() + timeout
    search = _Search(source, parameters, runs, compare.metric_of(source.read(), parameters)[0])
    study = _study(storage, search.identity, parameters.get("seed", 0))
    with closing(
        experiment.run(compare.perform, search.rounds(study, trials), search.results, jobs, until, on)
    ) as done:
        for _, result in done:
            report(result)
    if _PRESET not in study.user_attrs:
        raise InputError("--timeout: the time was over before the settings of the preset were tried; give more")
    return _summary(study, search.metric, runs)


@dataclass(frozen=True, eq=False)
class _Search:
    """What trials run on, and the results of this process.

    Attributes:
        source: of the graph.
        parameters: of `NodeClassifier`, as given.
        runs: number of splits.
        metric: name of the metric.
        results: of the runs of this process; the study keeps those of trials.
    """

    source: Source
    parameters: Mapping[str, Any]
    runs: int
    metric: str
    results: experiment.InMemory = field(default_factory=experiment.InMemory)

    @property
    def identity(self) -> str:
        """A hash that differs where results would: for another graph, other splits or parameters."""
        graph = archive.fingerprint(self.source.read())
        text = (
            f"{graph} {sorted(self.parameters.items())} {self.runs} {sorted(map(repr, space(self.parameters).items()))}"
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def run(self, settings: Mapping[str, Any], number: int, split: int) -> SplitCase:
        """Return the run of a trial of this number on a split; the preset has the number -1."""
        common = {"method": DEFAULT_METHOD, **self.parameters, "metric": self.metric}
        seed = self.parameters.get("seed", 0) + split
        return SplitCase(self.source, common["method"], number, {**common, **settings, "seed": seed})

    def rounds(self, study: optuna.Study, trials: int) -> Iterator[list[SplitCase]]:
        """Yield the runs of the preset, then of some trials at once, split by split; store what they gave."""
        if _PRESET not in study.user_attrs:
            runs = [self.run({}, -1, split) for split in range(self.runs)]
            yield runs
            study.set_user_attr(_PRESET, [self._scores(run) for run in runs])
        while (left := trials - 1 - _done(study)) > 0:
            yield from self._batch(study, min(_BATCH, left))

    def _batch(self, study: optuna.Study, count: int) -> Iterator[list[SplitCase]]:
        """Propose some trials, and yield their runs split by split; after each split, the worse ones are pruned."""
        from optuna.trial import TrialState

        wanted, sign = space(self.parameters), METRICS[self.metric].sign
        asked = [study.ask() for _ in range(count)]
        alive: list[_Alive] = [(trial, _suggested(trial, wanted), []) for trial in asked]
        for split in range(self.runs):
            runs = [self.run(settings, trial.number, split) for trial, settings, _ in alive]
            yield runs
            for run, (trial, settings, results) in zip(runs, list(alive), strict=True):
                results.append(self._scores(run))
                score = sign * mean(one["val"] for one in results)
                trial.set_user_attr("results", results)
                trial.set_user_attr("settings", settings)
                trial.report(score, split + 1)
                if split + 1 == self.runs:
                    study.tell(trial, score)
                elif trial.should_prune():
                    study.tell(trial, state=TrialState.PRUNED)
                    alive = [each for each in alive if each[0] is not trial]

    def _scores(self, run: SplitCase) -> dict[str, float]:
        result = self.results.found[run.id]
        return {"val": result.val, "test": result.test, "seconds": result.seconds}


def _study(storage: Path | None, identity: str, seed: int) -> optuna.Study:
    """Return a new study, or the one in a file, whose unfinished trials are tried again."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("lignn tune needs Optuna; pip install 'lignn[tune]'") from error
    from optuna.storages import InMemoryStorage, JournalStorage
    from optuna.storages.journal import JournalFileBackend
    from optuna.trial import TrialState

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    there = storage is not None and storage.exists()
    try:
        kept = InMemoryStorage() if storage is None else JournalStorage(JournalFileBackend(str(storage)))
        study = optuna.create_study(
            storage=kept, study_name="lignn", direction="maximize", load_if_exists=True,
            pruner=optuna.pruners.SuccessiveHalvingPruner(reduction_factor=2),
        )  # fmt: skip
    except (OSError, ValueError, LookupError) as error:
        raise InputError(f"{storage}: cannot be used for the results of a search ({error})") from error
    if there and study.user_attrs.get("identity", identity) != identity:
        raise InputError(f"{storage}: the results of another search; delete it, or give another --storage")
    study.set_user_attr("identity", identity)
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials), n_startup_trials=2 * _BATCH)
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
        study.enqueue_trial(trial.params)
    return study


def _done(study: optuna.Study) -> int:
    from optuna.trial import TrialState

    return len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)))


def _suggested(trial: optuna.Trial, wanted: Mapping[str, Range | tuple[Any, ...]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, values in wanted.items():
        if isinstance(values, Range):
            drawn = trial.suggest_float(name, values.low, values.high, log=values.log)
            found[name] = float(f"{drawn:.{_DIGITS}g}")
        else:
            found[name] = trial.suggest_categorical(name, values)
    return found


def _summary(study: optuna.Study, metric: str, runs: int) -> Tuned:
    from optuna.trial import TrialState

    factor, sign = METRICS[metric].factor, METRICS[metric].sign
    whole = study.get_trials(states=(TrialState.COMPLETE,))
    pruned = study.get_trials(states=(TrialState.PRUNED,))
    kept: list[tuple[dict[str, Any], Any]] = [({}, study.user_attrs[_PRESET])]
    kept += [(trial.user_attrs["settings"], trial.user_attrs["results"]) for trial in (*whole, *pruned)]
    found = [Trial.of(settings, results, factor) for settings, results in kept]
    ordered = sorted(found, key=lambda trial: (trial.runs < runs, -sign * trial.val))
    importance: dict[str, float] = {}
    if len(whole) >= _FEWEST and len({trial.value for trial in whole}) > 1:
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances

        importance = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0))
    return Tuned(tuple(ordered), importance, metric)
